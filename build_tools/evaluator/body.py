"""Statements, run in the order in which they are written.

Input: a spec, the types of its type variables, arrays, scalars and sizes. Output: what its outputs
and temporaries hold. Elements that are read before anything is written to them are errors.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from . import elements, shapes
from .document import Document
from .elements import BOOL, DType
from .expressions import (
    SYMBOLS,
    WRITTEN,
    combined,
    domain,
    expression,
    places,
    reads_data,
    reduction,
)
from .local_names import bounded
from .values import Env, Scope, Typed, binary

Run = Callable[[Env], None]
Array = NDArray[Any]


def evaluate(
    document: Document,
    chosen: Mapping[str, str],
    arrays: Mapping[str, Array],
    scalars: Mapping[str, Any],
    dims: Mapping[str, int],
) -> dict[str, Array]:
    """All arrays that the body writes, by name.

    chosen: the type of each type variable. arrays: the inputs, which are not changed. scalars:
    those that have no default, or another value. Raises Unspecified where the result is anything,
    IndexError for what a spec must not do.
    """
    program = _program(document, tuple(sorted(chosen.items())))
    scope = program.scope
    given = {n: s.default for n, s in document.scalars.items()} | dict(scalars)
    known = {
        name: elements.conversion(_type(value), scope.numbers[name])(value)
        for name, value in given.items()
    }
    env: Env = shapes.numbers(document, dims, known)
    found = shapes.found_shapes(document, env, scope)
    for name, shape in found.items():
        entry = document.arrays.get(name)
        if entry is not None and entry.intent in ("in", "inout"):
            if arrays[name].shape != shape:
                raise ValueError(f"{name} is {arrays[name].shape}, expected {shape}")
            env[name] = arrays[name].copy()
        else:
            env[name] = np.zeros(shape, scope.arrays[name])
            env[name + WRITTEN] = np.zeros(shape, np.bool_)
    with np.errstate(all="ignore"):
        program.run(env)
    for name, entry in document.arrays.items():
        if entry.intent == "out" and not env[name + WRITTEN].all():
            raise IndexError(f"{name} is not complete")
    inputs = {n for n, a in document.arrays.items() if a.intent == "in"}
    return {name: env[name] for name in found if name not in inputs}


def _type(value: Any) -> elements.Type:
    return (
        BOOL
        if isinstance(value, bool | np.bool_)
        else type(value.item() if isinstance(value, np.generic) else value)
    )


@final
@dataclass(frozen=True, slots=True)
class _Program:
    scope: Scope
    run: Run


def _program(document: Document, chosen: tuple[tuple[str, str], ...]) -> _Program:
    scope = Scope(document, dict(chosen))
    scope.numbers |= {
        n: elements.computed(scope.element(s.element)) for n, s in document.scalars.items()
    }
    scope.arrays |= {n: scope.element(a.element) for n, a in document.arrays.items()}
    bound = {*document.dims, *document.sizes, *document.scalars}
    return _Program(scope, _block(document.body, frozenset(bound), scope))


# ---------------------------------------------------------------- statements


def _block(body: Sequence[ast.stmt], bound: frozenset[str], scope: Scope) -> Run:
    """bound: the names that have a value here."""
    runs = [_statement(s, bound, scope) for s in body]

    def run(env: Env) -> None:
        for one in runs:
            one(env)

    return runs[0] if len(runs) == 1 else run


def _statement(statement: ast.stmt, bound: frozenset[str], scope: Scope) -> Run:
    match statement:
        case ast.For(target=ast.Name(id=index), iter=node, body=body):
            return _loop(index, node, None, body, bound, scope)
        case ast.While(test=test, body=body, orelse=[]):
            index, node, condition = bounded(test)
            return _loop(index, node, condition, body, bound, scope)
        case ast.If(test=test, body=body, orelse=[]):
            holds, inner = expression(test, scope).value, _block(body, bound, scope)

            def run(env: Env) -> None:
                if holds(env):
                    inner(env)

            return run
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
            return _several(targets, value, bound, scope)
        case ast.Assign(targets=[target], value=value):
            return _assign(target, value, None, bound, scope)
        case ast.AugAssign(target=target, op=op, value=value):
            return _assign(target, value, SYMBOLS[type(op)], bound, scope)
        case _:
            raise ValueError(f"no statement: {ast.unparse(statement)}")


def _loop(
    index: str,
    node: ast.expr,
    test: ast.expr | None,
    body: Sequence[ast.stmt],
    bound: frozenset[str],
    scope: Scope,
) -> Run:
    """test: under what it goes on."""
    inner = _block(body, bound | {index}, scope)  # first: it says the types of temporaries
    numbers = domain(node, index, body, scope)
    goes_on = None if test is None else expression(test, scope).value

    def run(env: Env) -> None:
        for number in numbers(env):
            env[index] = number
            if goes_on is not None and not goes_on(env):
                return
            inner(env)

    return run


def _assign(
    target: ast.expr, node: ast.expr, symbol: str | None, bound: frozenset[str], scope: Scope
) -> Run:
    name, at = shapes.target_of(target)
    value = _value(node, scope.arrays.get(name), scope, symbol is not None)
    stored = scope.arrays.setdefault(name, elements.strong(value.of))
    if symbol is not None:
        of = elements.computed(stored)
        given = Typed(of, value.as_(of))
        value = binary(symbol, expression(target, scope), given)
    new = value.as_(stored)
    place, outside = places(at, scope), any(reads_data(p, scope) for p in at)
    points, written = _points(name, at, bound, scope), name + WRITTEN

    def run(env: Env) -> None:
        array, mask = env[name], env.get(written)
        for _ in points(env):
            position = place(env)
            if any(not 0 <= p < n for p, n in zip(position, array.shape, strict=True)):
                if outside:
                    continue  # what points outside does not count
                raise IndexError(f"{name}{list(position)} of {list(array.shape)}")
            array[position] = new(env)
            if mask is not None:
                mask[position] = True

    return run


def _value(node: ast.expr, stored: DType | None, scope: Scope, update: bool) -> Typed:
    """The value of a statement; a reduction that is all of it accumulates in the array's type."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as terms]):
            if stored is not None and not update and stored.kind != "b":
                return reduction(name, terms, scope, stored)
    return expression(node, scope)


def _several(
    targets: Sequence[ast.expr], node: ast.expr, bound: frozenset[str], scope: Scope
) -> Run:
    """The parts of a reduction that the spec defines."""
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    (terms,) = node.args
    assert isinstance(terms, ast.GeneratorExp)
    types, values = combined(node.func.id, terms, scope)
    stores = []
    for target, of in zip(targets, types, strict=True):
        name, at = shapes.target_of(target)
        stored = scope.arrays.setdefault(name, of)
        stores.append((name, places(at, scope), elements.conversion(of, stored)))
    name, at = shapes.target_of(targets[0])
    points = _points(name, at, bound, scope)

    def run(env: Env) -> None:
        for _ in points(env):
            for value, (name, place, turned) in zip(values(env), stores, strict=True):
                env[name][place(env)] = turned(value)
                if name + WRITTEN in env:
                    env[name + WRITTEN][place(env)] = True

    return run


def _points(
    name: str, at: Sequence[ast.expr], bound: frozenset[str], scope: Scope
) -> Callable[[Env], Iterator[None]]:
    """Sets the indices that only the left side introduces: each runs over the axis it indexes."""
    free = {
        p.id: axis
        for axis, p in reversed(list(enumerate(at)))
        if isinstance(p, ast.Name) and p.id not in bound and p.id not in scope.arrays
    }
    if not free:
        return lambda env: iter((None,))
    indices = tuple(reversed(free))

    def go(env: Env) -> Iterator[None]:
        sizes = env[name].shape
        for point in product(*(range(sizes[free[index]]) for index in indices)):
            env.update(zip(indices, point, strict=True))
            yield None

    return go
