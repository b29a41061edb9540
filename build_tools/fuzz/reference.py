"""What a drawn kernel computes, by its statements alone: an evaluation apart from the generator.

Input: a draft, and arrays. Output: the arrays that it defines, evaluated element by element over
Python's `ast`: floats in float64, integers exactly and wrapped when stored. It shares no code with
`gen`, and knows no more of the language than what the fuzzer draws.
"""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .draft import Draft, target_name

Array = NDArray[Any]
Values = dict[str, Any]

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def evaluate(
    draft: Draft, arrays: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, Array]:
    """The outputs by name. arrays: the inputs, of any type; they are not changed. sizes: of dims,
    and the values of scalars.
    """
    values: Values = dict(sizes)
    roles = draft.arrays
    for name, role in roles.items():
        if role in ("in", "inout"):
            values[name] = arrays[name].astype(wide(draft, name))
        else:
            values[name] = np.zeros(shape(draft, name, sizes), wide(draft, name))
    for statement in ast.parse(draft.compute).body:
        _execute(statement, values, draft)
    return {name: values[name] for name, role in roles.items() if role in ("out", "inout")}


def shape(draft: Draft, array: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    extents = (ast.parse(e, mode="eval").body for e in draft.shapes[array])
    return tuple(_value(e, dict(sizes)) for e in extents)


def element(draft: Draft, array: str) -> str:
    """The name of an array's element type."""
    named = draft.types.get(array, "T")
    return draft.element if named == "T" else named


def wide(draft: Draft, array: str) -> np.dtype[Any]:
    kind = np.dtype(element(draft, array)).kind
    return np.dtype(np.float64 if kind == "f" else np.int64)


def _execute(statement: ast.stmt, values: Values, draft: Draft) -> None:
    match statement:
        case ast.For(target=ast.Name(id=index), iter=domain, body=body):
            for value in _domain(domain, values):
                values[index] = value
                for inner in body:
                    _execute(inner, values, draft)
            values.pop(index, None)
        case ast.If(test=test, body=body):
            if _value(test, values):
                for inner in body:
                    _execute(inner, values, draft)
        case ast.Assign(targets=[target], value=value):
            _assign(target, value, None, values, draft)
        case ast.AugAssign(target=target, op=op, value=value):
            _assign(target, value, _BINARY[type(op)], values, draft)
        case _:
            raise ValueError(f"no statement of a drawn kernel: {ast.unparse(statement)}")


def _assign(
    target: ast.expr,
    value: ast.expr,
    update: Callable[[Any, Any], Any] | None,
    values: Values,
    draft: Draft,
) -> None:
    name = target_name(target)
    array = values[name]
    positions = _positions(target)
    free = {
        p.id: array.shape[axis]
        for axis, p in enumerate(positions)
        if isinstance(p, ast.Name) and p.id not in values
    }
    for point in np.ndindex(*free.values()):
        values.update(zip(free, point, strict=True))
        at = tuple(_value(p, values) for p in positions)
        new = _value(value, values)
        new = new if update is None else update(_plain(array[at]), new)
        array[at] = _stored(new, np.dtype(element(draft, name)))
    for index in free:
        values.pop(index, None)


def _stored(value: Any, dtype: np.dtype[Any]) -> Any:
    """Integers wrapped around to the type."""
    if dtype.kind == "f":
        return value
    half = 1 << (8 * dtype.itemsize - 1)
    return (int(value) + half) % (2 * half) - half


def _positions(target: ast.expr) -> Sequence[ast.expr]:
    match target:
        case ast.Subscript(slice=ast.Tuple(elts=elements)):
            return elements
        case ast.Subscript(slice=only):
            return [only]
        case _:
            return []


def _domain(node: ast.expr, values: Values) -> range:
    match node:
        case ast.Call(func=ast.Name(id="range"), args=bounds):
            return range(*(_value(b, values) for b in bounds))
        case _:
            return range(_value(node, values))


def _value(node: ast.expr, values: Values) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            value = values[name]
            return _plain(value[()]) if isinstance(value, np.ndarray) else value
        case ast.Subscript(value=ast.Name(id=name)):
            at = tuple(_value(p, values) for p in _positions(node))
            if any(p < 0 for p in at):
                raise IndexError(f"{name}{list(at)}")
            return _plain(values[name][at])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, values)
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_value(left, values), _value(right, values))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _COMPARE[type(op)](_value(left, values), _value(right, values))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, values) else orelse, values)
        case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as terms]):
            return _reduced(name, list(_terms(terms, values)))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _FUNCTIONS[name](*(_value(a, values) for a in arguments))
        case _:
            raise ValueError(f"no value of a drawn kernel: {ast.unparse(node)}")


_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs}


def _terms(node: ast.GeneratorExp, values: Values) -> Iterator[tuple[int, Any]]:
    """The number of the last index and the value of each term, in order."""

    def go(rest: Sequence[ast.comprehension]) -> Iterator[tuple[int, Any]]:
        if not rest:
            yield 0, _value(node.elt, values)
            return
        assert isinstance(rest[0].target, ast.Name)
        index = rest[0].target.id
        for k in _domain(rest[0].iter, values):
            values[index] = k
            if all(_value(test, values) for test in rest[0].ifs):
                yield from ((k, value) for _, value in go(rest[1:]))
        values.pop(index, None)

    return go(node.generators)


def _reduced(name: str, terms: Sequence[tuple[int, Any]]) -> Any:
    given = [value for _, value in terms]
    match name:
        case "sum":
            return sum(given)
        case "min":
            return min(given)
        case "max":
            return max(given)
        case "argmax":
            return max(terms, key=lambda term: (term[1], -term[0]))[0]
        case "argmin":
            return min(terms, key=lambda term: (term[1], term[0]))[0]
        case _:
            raise ValueError(f"no reduction of a drawn kernel: {name}")


def _plain(value: Any) -> Any:
    return value.item()
