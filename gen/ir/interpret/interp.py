"""The interpreter: what a kernel computes, at any stage, checked as it runs.

Input: a verified kernel, NumPy arrays and scalars. Output: the arrays that it writes. The tree is
turned into functions once, then run. Every access is checked against the array's shape,
every read against what has been written; iterations of parallel, vectorized and distributed loops
run in an order drawn from a seed, and so do the threads of a launch from one barrier to the next,
so that what depends on their order shows.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, assert_never

import numpy as np

from .. import nodes as ir
from ..algebra import conjunction, index, less
from ..inits import explicit_inits
from ..rules.verify import verify_any
from ..text.print_expr import expr_to_text
from ..types import DType
from ..walk import buffers, left
from .evaluate import (
    Combine,
    InterpError,
    Value,
    combine,
    identity,
    numpy_dtype,
    scalar,
)
from .machine import (
    Array,
    Cells,
    Machine,
    Trace,
    allocation,
    coordinate,
    defined,
    expression,
    expressions,
    fresh,
    parts,
    reader,
    writer,
)
from .ranks import distributed
from .sizes import found
from .threads import inside, launched, place_of

__all__ = ["InterpError", "dims_of", "run"]

Action = Callable[[], None]


class _Left(Exception):
    """The loop around is left."""


def run(
    kernel: ir.Kernel,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, complex] | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    seed: int | None = None,
    check: bool = True,
    externals: Mapping[str, Callable[..., Any]] | None = None,
    trace: Trace | None = None,
) -> dict[str, Array]:
    """The arrays that the kernel writes, by name, after one run.

    arrays: its IN and INOUT arguments, of their exact types; they are not changed. OUT arrays are
        made here. dims: the sizes that no array's shape gives. seed: draws the order of parallel
        iterations; None keeps them in order. check: whether reading an element that was never
        written, or leaving one of an OUT array unwritten, is an error (else it holds NaN or a
        marker). externals: what computes the external functions, by name. trace: where to enter
        which blocks meet at elements.
    Raises InterpError naming the block, its instance and the buffer, for those and for accesses
    out of bounds; for arguments that do not fit; IRError where the tree is not well-formed.
    """
    verify_any(kernel)
    _check_names(kernel, arrays)
    kernel = explicit_inits(kernel)
    values: dict[str, Value] = dict(dims_of(kernel, arrays, dims or {}))
    values.update(_scalars(kernel, scalars or {}))
    random = None if seed is None else np.random.default_rng(seed)
    for phase in kernel.phases:  # any will do
        values[phase.name] = 0 if random is None else int(random.integers(phase.size))
    dtypes = {name: buffer.dtype for name, buffer in buffers(kernel).items()}
    messages = {n for n, buffer in buffers(kernel).items() if buffer.scope is ir.Scope.MESSAGE}
    machine = Machine(
        values,
        {},
        dtypes,
        random,
        check,
        externals or {},
        messages=frozenset(messages),
        trace=trace,
    )
    with np.errstate(all="ignore"):
        _check_assumptions(kernel, machine)
        for parameter in kernel.parameters:
            buffer = parameter.buffer
            given = None if parameter.intent is ir.Intent.OUT else arrays[buffer.name]
            machine.places[buffer.name] = _argument(buffer, given, machine)
        _stmt(kernel.body, machine)()
    written = [p.buffer.name for p in kernel.parameters if p.intent is not ir.Intent.IN]
    for name in written if check else ():
        _check_complete(name, machine.places[name])
    return {name: machine.places[name].values for name in written}


# ---------------------------------------------------------------- arguments


def dims_of(
    kernel: ir.Kernel, arrays: Mapping[str, Array], dims: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Every dim's size, read off the arrays' shapes; `dims` gives those that no array has.

    Raises InterpError where shapes disagree or a size is missing.
    """
    sizes = dict(dims or {})
    shapes = []
    for buffer in (p.buffer for p in kernel.parameters if p.buffer.name in arrays):
        shape = arrays[buffer.name].shape
        if len(shape) != len(buffer.shape):
            raise InterpError(
                f"'{buffer.name}' has {len(shape)} axes, expected {len(buffer.shape)}"
            )
        for axis, (size, extent) in enumerate(zip(shape, buffer.shape, strict=True)):
            if (
                isinstance(extent, ir.Var)
                and extent.name in kernel.dims
                and sizes.setdefault(extent.name, size) != size
            ):
                raise InterpError(
                    f"axis {axis} of '{buffer.name}' is {size}, "
                    f"but {extent.name} is {sizes[extent.name]}"
                )
        shapes.append((buffer.shape, shape))
    sizes = {**found(shapes, kernel.dims), **sizes}
    missing = [dim for dim in kernel.dims if dim not in sizes]
    if missing:
        raise InterpError(f"no array gives the size of '{missing[0]}'")
    return sizes


def _check_names(kernel: ir.Kernel, arrays: Mapping[str, Array]) -> None:
    known = {p.buffer.name for p in kernel.parameters}
    needed = {p.buffer.name for p in kernel.parameters if p.intent is not ir.Intent.OUT}
    if missing := sorted(needed - arrays.keys()):
        raise InterpError(f"array '{missing[0]}' is missing")
    if unknown := sorted(arrays.keys() - known):
        raise InterpError(f"array '{unknown[0]}' is not a parameter of the kernel")


def _scalars(kernel: ir.Kernel, given: Mapping[str, complex]) -> dict[str, Value]:
    declared = {s.name: s.dtype for s in kernel.scalars}
    for name in sorted(declared.keys() ^ given.keys()):
        problem = "is missing" if name in declared else "is not a parameter of the kernel"
        raise InterpError(f"scalar '{name}' {problem}")
    return {name: scalar(given[name], dtype) for name, dtype in declared.items()}


def _check_assumptions(kernel: ir.Kernel, machine: Machine) -> None:
    for assumption in kernel.assumptions:
        if not expression(assumption, machine)():
            raise InterpError(f"the kernel assumes {expr_to_text(assumption)}", assumption.span)


def _argument(buffer: ir.Buffer, given: Array | None, machine: Machine) -> Cells:
    if given is None:
        return fresh(buffer, machine)
    expected = numpy_dtype(buffer.dtype)
    if given.dtype != expected:
        raise InterpError(f"'{buffer.name}' has type {given.dtype}, expected {expected}")
    place = fresh(buffer, machine)
    if place.values.shape != given.shape:
        raise InterpError(f"'{buffer.name}' has shape {given.shape}, not {place.values.shape}")
    return Cells(given.copy(), np.ones(given.shape, bool))


def _check_complete(name: str, place: Cells) -> None:
    if not place.written.all():
        element = tuple(map(int, np.argwhere(~place.written)[0]))
        raise InterpError(f"element {list(element)} of '{name}' is never written")


# ---------------------------------------------------------------- statements


def _stmt(stmt: ir.Stmt, machine: Machine) -> Action:
    match stmt:
        case ir.Block():
            return _block(stmt, machine)
        case ir.Loop():
            return _loop(stmt, machine)
        case ir.Delinearize():
            return _delinearize(stmt, machine)
        case ir.If(condition, body):
            holds, inner = expression(condition, machine), _stmt(body, machine)
            return lambda: inner() if holds() else None
        case ir.Allocate():
            return _allocate(stmt, machine)
        case ir.Leave(condition):
            goes_on = expression(condition, machine)

            def leave() -> None:
                if not goes_on():
                    raise _Left

            return leave
        case ir.Barrier():
            return lambda: None  # outside of a launch; `threads` sees to those inside
        case ir.Transfer():
            raise AssertionError("`ranks` sees to what ranks do with messages")
        case ir.Seq(body_):
            actions = [_stmt(s, machine) for s in body_]

            def all_in_order() -> None:
                for action in actions:
                    action()

            return all_in_order
        case _:
            assert_never(stmt)


def _loop(loop: ir.Loop, machine: Machine) -> Action:
    if loop.kind.is_bound:
        return _bound(loop, machine)
    if loop.kind is ir.LoopKind.DISTRIBUTED:
        return distributed(loop, machine, _stmt)
    lower, upper = expression(loop.lower, machine), expression(loop.upper, machine)
    body, values = _stmt(loop.body, inside(loop, machine)), machine.values
    any_order = loop.kind.is_unordered

    def iterate() -> None:
        iterations: Sequence[int] = range(lower(), upper())
        for values[loop.var] in machine.shuffled(iterations) if any_order else iterations:
            body()

    def iterate_until_left() -> None:
        with suppress(_Left):
            iterate()

    return iterate_until_left if left(loop) else iterate


def _bound(loop: ir.Loop, machine: Machine) -> Action:
    """The one iteration that the running thread has; of the outermost, the launch."""
    if machine.launch is None:
        return launched(loop, machine, _stmt)
    body = _stmt(loop.body, inside(loop, machine))
    mine = place_of(loop, machine)
    return lambda: body() if mine() else None


def _delinearize(stmt: ir.Delinearize, machine: Machine) -> Action:
    split, body = parts(stmt, machine), _stmt(stmt.body, machine)
    return lambda: body() if split() else None


def _allocate(stmt: ir.Allocate, machine: Machine) -> Action:
    enter, body = allocation(stmt, machine), _stmt(stmt.body, machine)

    def live() -> None:
        enter()
        body()

    return live


def _block(block: ir.Block, machine: Machine) -> Action:
    missing = machine.launch.missing if machine.launch else frozenset()
    first = [ir.Binary(ir.BinaryOp.EQ, ir.Var(coordinate(a)), index(0)) for a in missing]
    runs = expression(conjunction(*first, block.predicate), machine)
    names = [v.name for v in block.iters]
    bindings = expressions(block.bindings, machine)
    domain = [_within(v) for v in block.iters]
    in_domain = expression(conjunction(*domain), machine)
    body, values, trace = _body(block.body, machine), machine.values, machine.trace

    def instance() -> None:
        try:
            if not runs():
                return
            values.update(zip(names, bindings(), strict=True))
            if not in_domain():
                holds = [expression(within, machine)() for within in domain]
                raise InterpError(f"'{names[holds.index(False)]}' is outside its domain")
            if trace:
                trace.enter(block.name)
            body()
        except InterpError as e:
            at = ", ".join(f"{v.name}={values.get(v.name)}" for v in block.iters)
            message = f"block '{block.name}' at ({at}): {e.message}"
            raise InterpError(message, e.span or block.span) from e

    return instance


def _within(v: ir.IterVar) -> ir.Expr:
    here = ir.Var(v.name)
    return conjunction(ir.Binary(ir.BinaryOp.LE, v.lower, here), less(here, v.upper))


def _body(body: ir.Store | ir.Init | ir.Update, machine: Machine) -> Action:
    match body:
        case ir.Store(target, value):
            store, stored = writer(target, machine), expression(value, machine)
            return lambda: store(stored())
        case ir.Init(combiner, targets):
            writers = [writer(t, machine) for t in targets]
            initial = identity(combiner, tuple(machine.dtypes[t.buffer] for t in targets))
            return lambda: _store_all(writers, initial)
        case ir.Update(combiner, targets, values):
            writers = [writer(t, machine) for t in targets]
            old = [reader(t, replace(machine, trace=None)) for t in targets]
            new = expressions(values, machine)
            join = _joined(combiner, tuple(machine.dtypes[t.buffer] for t in targets), machine)
            return lambda: _store_all(writers, join(tuple([f() for f in old]), new()))
        case _:
            assert_never(body)


def _joined(combiner: ir.AnyCombiner, dtypes: tuple[DType, ...], machine: Machine) -> Combine:
    if not isinstance(combiner, ir.DefinedCombiner):
        return combine(combiner, dtypes)
    return defined(combiner, machine)


def _store_all(writers: Sequence[Callable[[Value], None]], values: tuple[Value, ...]) -> None:
    for store, value in zip(writers, values, strict=True):
        store(value)
