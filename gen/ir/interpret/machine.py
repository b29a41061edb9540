"""The interpreter's memory, and its expressions as functions.

Input: expressions and targets. Output: functions of no arguments that compute, read or write in one
Machine; reads and writes are checked. A read that the kernel must not do raises InterpError.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, assert_never

import numpy as np

from .. import nodes as ir
from ..algebra import dtype_of
from ..launch import Axes, owners
from ..types import DType, Kind
from .evaluate import (
    Combine,
    InterpError,
    Value,
    function,
    numpy_dtype,
    poison,
    scalar,
)
from .source import Thunk, compiled, compiled_all

Array = np.ndarray[Any, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cells:
    """A buffer's elements, and which of them have been written.

    latest: where several entries of an Allocate have one memory, the place of the entry that wrote
    last; what the others held is gone.
    """

    values: Array
    written: Array
    latest: list["Cells"] | None = None

    def take_over(self) -> None:
        """Makes this the place that the memory holds."""
        if self.latest is not None and self.latest[0] is not self:
            self.latest[0].written[...] = False
            self.latest[0] = self


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch while it is built. missing: its axes that no loop around is bound to. loops: those
    around that are bound to none. memory: what the threads of the running block have of each
    buffer, by their places on its axes; and by its loops' variables, too.
    """

    axes: Axes
    missing: frozenset[ir.LoopKind]
    memory: dict[tuple[str, tuple[Value, ...]], Cells]
    loops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Owned:
    """A buffer that each rank has for itself: what makes a new one, and those of the ranks."""

    make: Callable[[], Cells]
    places: dict[int, Cells] = field(default_factory=dict)

    def of(self, rank: int) -> Cells:
        if rank not in self.places:
            self.places[rank] = self.make()
        return self.places[rank]


@dataclass(slots=True)
class Trace:
    """Which blocks meet at elements, in one run or several.

    met: (reader, buffer, writer, whether it writes later), of different instances; a write that
    leaves an element as it was is none. running: the block, and which instance of all. written:
    what wrote an element last. read: of each reader of an element the first instance.
    """

    met: set[tuple[str, str, str, bool]] = field(default_factory=set)
    running: tuple[str, int] = ("", 0)
    written: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)
    read: dict[tuple[str, tuple[int, ...]], dict[str, int]] = field(default_factory=dict)

    def enter(self, block: str) -> None:
        self.running = block, self.running[1] + 1

    def reads(self, buffer: str, index: tuple[int, ...]) -> None:
        reader, instance = self.running
        self.read.setdefault((buffer, index), {}).setdefault(reader, instance)
        if writer := self.written.get((buffer, index)):
            self.met.add((reader, buffer, writer, False))

    def writes(self, buffer: str, index: tuple[int, ...]) -> None:
        writer, instance = self.running
        self.written[buffer, index] = writer
        for reader, first in self.read.get((buffer, index), {}).items():
            if first != instance:
                self.met.add((reader, buffer, writer, True))


@dataclass(frozen=True, slots=True)
class Machine:
    """The state of one run.

    values: of dims, scalars, loop variables and the running block's iteration variables.
    places: of the buffers in scope. dtypes: of all buffers. random: draws the order of parallel
    iterations. check: whether reading what was never written is an error. externals: what stands
    for external functions, by name. launch: what the statement being built runs in. messages: the
    buffers that are; what a rank has received lies beside what it stores. owned: what ranks have.
    trace: where to enter who meets whom.
    """

    values: dict[str, Value]
    places: dict[str, Cells]
    dtypes: dict[str, DType]
    random: np.random.Generator | None
    check: bool
    externals: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    launch: Launched | None = None
    messages: frozenset[str] = frozenset()
    owned: dict[str, Owned] = field(default_factory=dict)
    trace: Trace | None = None

    def shuffled(self, items: Iterable[T]) -> list[T]:
        """The items in an order that is drawn, if orders are."""
        found = list(items)
        if self.random is None:
            return found
        return [found[k] for k in self.random.permutation(len(found))]


def coordinate(axis: ir.LoopKind) -> str:
    """The name in `Machine.values` of the running thread's place on an axis, or of the rank."""
    return f"@{axis.value}"


RANK = coordinate(ir.LoopKind.DISTRIBUTED)


def received(message: str) -> str:
    """The name in `Machine.places` of what a rank has received."""
    return f"@{message}"


def expression(expr: ir.Expr, machine: Machine) -> Thunk:
    """The function that computes the expression's value now."""
    return compiled(expr, machine.values, partial(_leaf, machine=machine))


def expressions(exprs: Sequence[ir.Expr], machine: Machine) -> Callable[[], tuple[Value, ...]]:
    """The function that computes the values of all now, in their order."""
    return compiled_all(exprs, machine.values, partial(_leaf, machine=machine))


def _leaf(expr: ir.Load | ir.Call, machine: Machine) -> Thunk:
    match expr:
        case ir.Load(buffer, indices):
            return reader(ir.Destination(buffer, indices, span=expr.span), machine)
        case ir.Call(called, args):
            return _call(called, expressions(args, machine), expr, machine)
        case _:
            assert_never(expr)


def _call(
    called: ir.Function | ir.External,
    args: Callable[[], tuple[Value, ...]],
    expr: ir.Call,
    machine: Machine,
) -> Thunk:
    if isinstance(called, ir.Function):
        f = function(called, dtype_of(expr.args[0]))
        return lambda: f(*args())
    if called.name not in machine.externals:
        raise InterpError(f"nothing stands for the external function '{called.name}'", expr.span)
    python, result = machine.externals[called.name], called.result
    return lambda: scalar(python(*args()), result)


def defined(combiner: ir.DefinedCombiner, machine: Machine) -> Combine:
    """The function that joins two tuples by a combiner that a spec defines."""
    values = machine.values
    operands = [v.name for owner in "ab" for v in combiner.variables(owner)]
    results = [v.name for v in combiner.variables("c")]
    combined = [expression(e, machine) for e in combiner.combined]

    def join(old: tuple[Value, ...], new: tuple[Value, ...]) -> tuple[Value, ...]:
        values.update(zip(operands, (*old, *new), strict=True))
        for name, part in zip(results, combined, strict=True):
            values[name] = part()
        return tuple(values[name] for name in results)

    return join


# ---------------------------------------------------------------- reads and writes


def reader(place: ir.Destination, machine: Machine) -> Thunk:
    """The function that reads an element: in bounds, and written before."""
    name, places, check, trace = place.buffer, machine.places, machine.check, machine.trace
    if name in machine.messages:
        name = received(name)
    at = _position(place, name, machine)
    is_number = machine.dtypes[place.buffer].kind in (Kind.FLOAT, Kind.COMPLEX)

    def read() -> Value:
        memory, index = places[name], at()
        if check and not memory.written[index]:
            raise InterpError(
                f"reads {_text(place.buffer, index)}, {_unwritten(name, machine)}", place.span
            )
        if trace:
            trace.reads(name, index)
        value = memory.values[index]
        return value if is_number else value.item()

    return read


def writer(place: ir.Destination, machine: Machine) -> Callable[[Value], None]:
    """The function that writes an element, in bounds."""
    name, places, trace = place.buffer, machine.places, machine.trace
    at = _position(place, name, machine)

    def write(value: Value) -> None:
        memory, index = places[name], at()
        if trace and not (memory.written[index] and memory.values[index] == value):
            trace.writes(name, index)
        memory.take_over()
        memory.values[index] = value
        memory.written[index] = True

    return write


def _unwritten(name: str, machine: Machine) -> str:
    if RANK not in machine.values or name not in machine.owned:
        return "which was never written"
    return f"which rank {machine.values[RANK]} has neither computed nor received"


def _position(place: ir.Destination, name: str, machine: Machine) -> Callable[[], tuple[int, ...]]:
    """The function that computes an element's indices, each within its axis of what has a name."""
    indices, places = expressions(place.indices, machine), machine.places

    def position() -> tuple[int, ...]:
        at = indices()
        shape = places[name].values.shape
        if not (all(map(operator.lt, at, shape)) and (not at or min(at) >= 0)):
            what = _text(place.buffer, at)
            message = f"accesses {what}, out of bounds: its shape is {list(shape)}"
            raise InterpError(message, place.span)
        return at

    return position


def _text(name: str, at: tuple[int, ...]) -> str:
    return f"{name}{list(at)}"


# ---------------------------------------------------------------- statements


def fresh(buffer: ir.Buffer, machine: Machine) -> Cells:
    """New places, none written yet. A temporary's size below 0 is none, as in generated code."""
    shape = expressions(buffer.shape, machine)()
    if any(extent < 0 for extent in shape):
        if buffer.scope is ir.Scope.GLOBAL:
            raise InterpError(f"the shape of '{buffer.name}' is {shape}", buffer.span)
        shape = tuple(max(extent, 0) for extent in shape)
    values = np.full(shape, poison(buffer.dtype), numpy_dtype(buffer.dtype))
    return Cells(values, np.zeros(shape, bool))


def allocation(stmt: ir.Allocate, machine: Machine) -> Callable[[], None]:
    """The function that enters an Allocate: buffers are new, or those that the running thread of a
    launch shares with others, or had before.
    """
    launch, values = machine.launch, machine.values
    shared: dict[str, list[str]] = {}
    for buffer in stmt.buffers if launch else ():
        assert launch is not None
        axes = owners(buffer, launch.axes, launch.missing)
        if axes is not None:
            shared[buffer.name] = [coordinate(a) for a in launch.axes if a in axes]

    def enter() -> None:
        for buffer in stmt.buffers:
            if buffer.scope in (ir.Scope.RANK, ir.Scope.MESSAGE) and RANK not in values:
                for name in (buffer.name, received(buffer.name)):
                    machine.owned[name] = Owned(partial(fresh, buffer, machine))
                continue
            if launch is None or buffer.name not in shared:
                machine.places[buffer.name] = fresh(buffer, machine)
                continue
            owner = buffer.name, tuple(values[axis] for axis in shared[buffer.name])
            entry = buffer.name, (*owner[1], *(values[var] for var in launch.loops))
            if entry not in launch.memory:
                new = fresh(buffer, machine)
                first = launch.memory.setdefault(owner, replace(new, latest=[new]))
                launch.memory[entry] = replace(new, latest=first.latest)
            machine.places[buffer.name] = launch.memory[entry]

    return enter


def parts(stmt: ir.Delinearize, machine: Machine) -> Callable[[], bool]:
    """The function that binds the parts, and says whether there are any."""
    value = expression(stmt.value, machine)
    extents = expressions(stmt.extents, machine)
    values = machine.values

    def split() -> bool:
        rest, sizes = value(), extents()
        if rest < 0:
            raise InterpError(f"{rest} has no parts {', '.join(stmt.vars)}", stmt.span)
        if rest >= math.prod(sizes):
            return False
        for var, size in zip(reversed(stmt.vars), reversed(sizes), strict=True):
            rest, values[var] = divmod(rest, size)
        return True

    return split
