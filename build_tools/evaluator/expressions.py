"""Values: expressions with their types, as closures.

Input: an expression and what its names are. Output: its type, and a function from an environment
(indices, dims, scalars and arrays by name) to its value.
"""

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from . import elements
from .elements import BOOL, INT64, DType, Unspecified, operator
from .functions import called
from .values import Env, Eval, Scope, Typed, binary, select

WRITTEN = "?"  # env[name + WRITTEN]: which elements of an array hold something

SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_CONSTANTS = {"inf": math.inf, "nan": math.nan, "pi": math.pi}
_ARGUMENTS = ("argmin", "argmax")
_ACCUMULATED = {"sum": ("+", 0), "prod": ("*", 1), "min": ("min", None), "max": ("max", None)}


def expression(node: ast.expr, scope: Scope) -> Typed:
    match node:
        case ast.Constant(value=bool(value)):
            return Typed(BOOL, lambda env: value)
        case ast.Constant(value=int() | float() | complex() as number):
            return Typed(type(number), lambda env: number)
        case ast.Name(id=name):
            return _named(name, scope)
        case ast.Subscript(value=ast.Name(id=name)):
            return _element(name, positions(node), scope)
        case ast.Attribute(value=ast.Name(id=record), attr=part):
            return Typed(scope.records[record][part], lambda env: env[record][part])
        case ast.UnaryOp(op=op, operand=operand):
            return _unary(op, expression(operand, scope))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(expression(left, scope), right, scope)
        case ast.BinOp(left=left, op=op, right=right):
            symbol = SYMBOLS[type(op)]
            return binary(symbol, expression(left, scope), expression(right, scope))
        case ast.Compare(left=left, ops=ops, comparators=others):
            values = [expression(v, scope) for v in _numbered([left, *others], scope)]
            pairs = zip(ops, values, values[1:], strict=False)
            return _all([binary(SYMBOLS[type(op)], a, b) for op, a, b in pairs])
        case ast.BoolOp(op=op, values=operands):
            parts = [expression(v, scope) for v in operands]
            return _all(parts) if isinstance(op, ast.And) else _any(parts)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return select(*(expression(v, scope) for v in (test, body, orelse)))
        case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as terms]):
            return reduction(name, terms, scope, None)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return called(name, [expression(a, scope) for a in arguments], scope)
        case _:
            raise ValueError(f"no value: {ast.unparse(node)}")


def _numbered(compared: list[ast.expr], scope: Scope) -> list[ast.expr]:
    """With the number of a word for the word, where a scalar is one."""
    names = [node.id for node in compared if isinstance(node, ast.Name)]
    words = [w for name in names for w in _words(name, scope)]
    return [
        ast.Constant(words.index(node.value))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        else node
        for node in compared
    ]


def _words(name: str, scope: Scope) -> tuple[str, ...]:
    scalar = scope.document.scalars.get(name)
    return scalar.words if scalar else ()


def positions(node: ast.expr) -> Sequence[ast.expr]:
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=several)):
            return several
        case ast.Subscript(slice=only):
            return [only]
        case _:
            return []


def places(nodes: Sequence[ast.expr], scope: Scope) -> Callable[[Env], tuple[int, ...]]:
    values = [expression(p, scope).value for p in nodes]
    if len(values) == 1:
        (only,) = values
        return lambda env: (int(only(env)),)
    return lambda env: tuple([int(value(env)) for value in values])


def _named(name: str, scope: Scope) -> Typed:
    if name in scope.arrays:
        return _element(name, [], scope)
    if name in _CONSTANTS and name not in scope.numbers:
        number = _CONSTANTS[name]
        return Typed(float, lambda env: number)
    of = scope.numbers.get(name, int)
    return Typed(of, lambda env: env[name], counts=of is int)


def _element(name: str, nodes: Sequence[ast.expr], scope: Scope) -> Typed:
    at, stored = places(nodes, scope), scope.arrays[name]
    of, written = elements.computed(stored), name + WRITTEN

    def read(env: Env) -> Any:
        place = at(env)
        array = env[name]
        if any(not 0 <= p < n for p, n in zip(place, array.shape, strict=True)):
            raise IndexError(f"{name}{list(place)} of {list(array.shape)}")
        if written in env and not env[written][place]:
            raise IndexError(f"{name}{list(place)} is read before it is written")
        return array[place]

    return Typed(of, read if of == stored else lambda env: of.type(read(env)))


def _unary(op: ast.unaryop, operand: Typed) -> Typed:
    value = operand.value
    match op:
        case ast.Not():
            return Typed(BOOL, lambda env: not value(env))
        case ast.UAdd():
            return operand
        case ast.USub():
            of = elements.negated(operand.of)
        case _:
            of = elements.inverted(operand.of)
    return Typed(operand.of, lambda env: of(value(env)), operand.counts)


def _power(base: Typed, exponent: ast.expr, scope: Scope) -> Typed:
    match exponent:
        case ast.Constant(value=int(number)) if base.of is int and not base.counts:
            value = base.value
            return Typed(int, lambda env: value(env) ** number)
        case ast.Constant(value=int(number)) if 1 <= number <= 16:
            times, value = operator("*", base.of), base.value
            return Typed(base.of, lambda env: reduce(times, [value(env)] * number), base.counts)
        case _:
            return called("pow", [base, expression(exponent, scope)], scope)


def _all(parts: Sequence[Typed]) -> Typed:
    values = [p.value for p in parts]
    return Typed(BOOL, lambda env: all(v(env) for v in values))


def _any(parts: Sequence[Typed]) -> Typed:
    values = [p.value for p in parts]
    return Typed(BOOL, lambda env: any(v(env) for v in values))


# ---------------------------------------------------------------- reductions


def reduction(name: str, terms: ast.GeneratorExp, scope: Scope, target: DType | None) -> Typed:
    """A reduction; target: the type of the array that it is the whole value of, which it
    accumulates in.
    """
    index = terms.generators[-1].target
    assert isinstance(index, ast.Name)
    term, points = expression(terms.elt, scope), generated(terms, scope)
    if name in _ARGUMENTS:
        value, last, largest = term.value, index.id, name == "argmax"

        def found(env: Env) -> Any:
            pairs = [(value(env), int(env[last])) for _ in points(env)]
            if not pairs:
                raise Unspecified(f"{name} of nothing")
            return np.int64(reduce(lambda a, b: elements.better(largest, a, b), pairs)[1])

        return Typed(INT64, found)
    if name in ("any", "all"):
        holds, every = term.value, name == "all"
        decided = all if every else any
        return Typed(BOOL, lambda env: decided([bool(holds(env)) for _ in points(env)]))
    symbol, none = _ACCUMULATED[name]
    kind = elements.strong(term.of)
    counted = INT64 if kind == BOOL and none is not None else kind
    of = elements.computed(target) if target is not None else counted
    step, each = operator(symbol, of), term.as_(of)

    def joined(env: Env) -> Any:
        values = [each(env) for _ in points(env)]
        if none is not None:
            return reduce(step, values, of.type(none))
        return reduce(step, values) if values else elements.extreme(of, highest=name == "min")

    return Typed(of, joined)


def combined(name: str, terms: ast.GeneratorExp, scope: Scope) -> tuple[list[DType], Eval]:
    """A reduction that the spec defines: the types of its parts, and their values."""
    defined = scope.document.reductions[name]
    types = {part: elements.computed(scope.element(t)) for part, t in defined.parts.items()}
    given = terms.elt.elts if isinstance(terms.elt, ast.Tuple) else [terms.elt]
    each = [expression(v, scope).as_(t) for v, t in zip(given, types.values(), strict=True)]
    first = [
        expression(defined.identity[part], Scope(scope.document, scope.chosen)).as_(t)
        for part, t in types.items()
    ]
    inner = Scope(scope.document, scope.chosen, records={"a": types, "b": types})
    steps: list[tuple[str, Eval]] = []
    for statement in defined.combine:
        assert isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
        part = statement.targets[0].id
        steps.append((part, expression(statement.value, inner).as_(types[part])))
        inner.numbers[part] = types[part]
    points = generated(terms, scope)

    def value(env: Env) -> list[Any]:
        joined = dict(zip(types, (v({}) for v in first), strict=True))
        for _ in points(env):
            term = dict(zip(types, (v(env) for v in each), strict=True))
            names: Env = {"a": joined, "b": term}
            for part, step in steps:
                names[part] = step(names)
            joined = {part: names[part] for part in types}
        return list(joined.values())

    return list(types.values()), value


def generated(terms: ast.GeneratorExp, scope: Scope) -> Callable[[Env], Iterator[None]]:
    """Sets the indices of a reduction in turn, where its conditions hold."""
    levels = []
    for k, generator in enumerate(terms.generators):
        assert isinstance(generator.target, ast.Name)
        later = terms.generators[k + 1 :]
        inside = [
            terms.elt,
            *generator.ifs,
            *(g.iter for g in later),
            *(c for g in later for c in g.ifs),
        ]
        numbers = domain(generator.iter, generator.target.id, inside, scope)
        levels.append(
            (generator.target.id, numbers, [expression(c, scope).value for c in generator.ifs])
        )

    def go(env: Env, depth: int) -> Iterator[None]:
        if depth == len(levels):
            yield None
            return
        index, numbers, conditions = levels[depth]
        for number in numbers(env):
            env[index] = number
            if all(holds(env) for holds in conditions):
                yield from go(env, depth + 1)

    return lambda env: go(env, 0)


def domain(
    node: ast.expr, index: str, inside: Sequence[ast.AST], scope: Scope
) -> Callable[[Env], range]:
    """The numbers of an index. inside: where it is used. Of a domain that depends on data, those
    outside of the axes that the index indexes do not count.
    """
    match node:
        case ast.Call(func=ast.Name(id="reversed"), args=[inner]):
            forwards = domain(inner, index, inside, scope)
            return lambda env: forwards(env)[::-1]
        case ast.Call(func=ast.Name(id="range"), args=bounds):
            values = [expression(b, scope).value for b in bounds]
        case _:
            values = [expression(node, scope).value]
    if not reads_data(node, scope):
        return lambda env: range(*(int(v(env)) for v in values))
    axes = indexed(index, inside)

    def within(env: Env) -> range:
        given = range(*(int(v(env)) for v in values))
        size = min(env[name].shape[axis] for name, axis in axes)
        return range(max(given.start, 0), min(given.stop, size))

    return within


def reads_data(node: ast.expr, scope: Scope) -> bool:
    return any(isinstance(n, ast.Name) and n.id in scope.arrays for n in ast.walk(node))


def indexed(index: str, inside: Sequence[ast.AST]) -> list[tuple[str, int]]:
    """The arrays and axes that an index indexes by itself."""
    return [
        (n.value.id, axis)
        for tree in inside
        for n in ast.walk(tree)
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)
        for axis, p in enumerate(positions(n))
        if isinstance(p, ast.Name) and p.id == index
    ]
