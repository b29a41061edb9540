"""Sizes: of arguments, of named sizes, and of temporaries that no one gives a shape.

Input: a spec, the sizes of its dims and the values of its scalars. Output: shapes. What is not said
is as large as the definitions need: the largest position that each axis is defined at.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from .document import Document
from .expressions import expression, indexed, positions, reads_data
from .local_names import bounded
from .values import Scope

Bounds = tuple[int, int]  # the least and the largest value


def numbers(
    document: Document, dims: Mapping[str, int], scalars: Mapping[str, Any]
) -> dict[str, Any]:
    """Dims, scalars and named sizes."""
    known = {**scalars, **dims}
    for name, node in document.sizes.items():
        known[name] = _size(node, known)
    return known


def shape_of(document: Document, array: str, known: Mapping[str, Any]) -> tuple[int, ...]:
    axes = document.arrays[array].axes
    assert axes is not None
    sizes = [_size(axis, known) for axis in axes]
    if document.arrays[array].intent == "temporary":
        return tuple(max(size, 0) for size in sizes)
    if min(sizes, default=0) < 0:
        raise ValueError(f"the shape of {array} is {sizes}")
    return tuple(sizes)


def allows(document: Document, dims: Mapping[str, int], scalars: Mapping[str, Any]) -> bool:
    """Whether a call of these sizes is one: its constraints hold and no size is below 0."""
    try:
        known = numbers(document, dims, scalars)
        scope = Scope(document, {})
        if not all(expression(c, scope).value(dict(known)) for c in document.constraints):
            return False
        for name, array in document.arrays.items():
            if array.axes is not None:
                shape_of(document, name, known)
    except (ValueError, ZeroDivisionError):
        return False
    return all(known[name] >= 0 for name in document.sizes)


def _size(node: ast.expr, known: Mapping[str, Any]) -> int:
    match node:
        case ast.Call(func=ast.Name(id="int64"), args=[inner]):
            return int(_number(inner, known))
        case _:
            return int(_number(node, known))


def _number(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """In Python's numbers, which are exact where they are whole."""
    plain = {name: v.item() if hasattr(v, "item") else v for name, v in known.items()}
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    functions = {"min": min, "max": max}
    code = compile(ast.Expression(node), "size", "eval")
    return eval(
        code, {"__builtins__": {}}, {**functions, **{n: plain[n] for n in names & set(plain)}}
    )


# ---------------------------------------------------------------- temporaries


def found_shapes(
    document: Document, known: Mapping[str, Any], scope: Scope
) -> dict[str, tuple[int, ...]]:
    """The shapes of all arrays."""
    shapes = {
        name: shape_of(document, name, known)
        for name, array in document.arrays.items()
        if array.axes is not None
    }
    for _ in range(2):  # what is read before its definition is known the second time
        found: dict[str, tuple[int, ...]] = {}
        ranges = {n: (v, v) for n, v in known.items() if isinstance(v, int)}
        ranges |= {
            n: (int(v), int(v))
            for n, v in known.items()
            if hasattr(v, "dtype") and v.dtype.kind in "iu"
        }
        for name, shape in _defined(document.body, ranges, shapes, scope):
            if name not in document.arrays or document.arrays[name].axes is None:
                found[name] = tuple(map(max, found.get(name, shape), shape))
                shapes[name] = tuple(map(max, shapes.get(name, shape), shape))
    return shapes


def _defined(
    body: Sequence[ast.stmt],
    ranges: Mapping[str, Bounds],
    shapes: Mapping[str, tuple[int, ...]],
    scope: Scope,
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What each definition needs an array's shape to be at least."""
    for statement in body:
        match statement:
            case ast.For(target=ast.Name(id=index), iter=node, body=inner):
                bounds = _domain(node, index, inner, ranges, shapes, scope)
                yield from _defined(inner, {**ranges, index: bounds}, shapes, scope)
            case ast.While(test=test, body=inner):
                index, node, _ = bounded(test)
                bounds = _domain(node, index, inner, ranges, shapes, scope)
                yield from _defined(inner, {**ranges, index: bounds}, shapes, scope)
            case ast.If(body=inner):
                yield from _defined(inner, ranges, shapes, scope)
            case ast.Assign(targets=[ast.Tuple(elts=targets)]) | ast.Assign(targets=targets):
                for target in targets:
                    name, at = target_of(target)
                    free = {
                        p.id: _free(p.id, statement, name, shapes)
                        for p in at
                        if isinstance(p, ast.Name) and p.id not in ranges
                    }
                    ends = (_bounds(p, {**ranges, **free})[1] + 1 for p in at)
                    yield name, tuple(max(end, 0) for end in ends)
            case _:
                continue


def _free(
    index: str, statement: ast.stmt, target: str, shapes: Mapping[str, tuple[int, ...]]
) -> Bounds:
    """Of an index that only the left side introduces."""
    axes = indexed(index, [statement])
    sizes = [shapes[name][axis] for name, axis in axes if name in shapes and name != target]
    sizes = sizes or [shapes[name][axis] for name, axis in axes if name in shapes]
    return 0, max(sizes, default=0) - 1


def _domain(
    node: ast.expr,
    index: str,
    inner: Sequence[ast.stmt],
    ranges: Mapping[str, Bounds],
    shapes: Mapping[str, tuple[int, ...]],
    scope: Scope,
) -> Bounds:
    match node:
        case _ if reads_data(node, scope):
            return 0, min(shapes[name][axis] for name, axis in indexed(index, inner)) - 1
        case ast.Call(func=ast.Name(id="reversed"), args=[forwards]):
            return _domain(forwards, index, inner, ranges, shapes, scope)
        case ast.Call(func=ast.Name(id="range"), args=[upper]):
            return 0, _bounds(upper, ranges)[1] - 1
        case ast.Call(func=ast.Name(id="range"), args=[lower, upper]):
            return _bounds(lower, ranges)[0], _bounds(upper, ranges)[1] - 1
        case _:
            return 0, _bounds(node, ranges)[1] - 1


def _bounds(node: ast.expr, ranges: Mapping[str, Bounds]) -> Bounds:
    """The least and the largest value of a position, of what its names may be; (0, -1) where one
    of them is nothing.
    """
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in ranges]
    if any(low > high for low, high in (ranges[n] for n in names)):
        return 0, -1
    values = [_number(node, dict(zip(names, corner, strict=True)))
              for corner in product(*(ranges[n] for n in names))]  # fmt: skip
    return int(min(values)), int(max(values))


def target_of(target: ast.expr) -> tuple[str, Sequence[ast.expr]]:
    match target:
        case ast.Subscript(value=ast.Name(id=name)):
            return name, positions(target)
        case ast.Name(id=name):
            return name, []
        case _:
            raise ValueError(f"no target: {ast.unparse(target)}")
