"""Launches in the interpreter: each thread runs up to a barrier, then another one does.

Input: a launch, a Machine, and what builds statements without barriers. Output: the function that
runs the launch; `ranks` uses what stops and goes on, too. Blocks run one after another; the threads
of a block from barrier to barrier, in an order that is drawn anew each time. What a thread needs to
go on, the values of its variables and its memory, is put back when its turn comes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import assert_never

from ..exchanges import has_transfer
from ..launch import axes, has_barrier
from ..nodes import (
    Allocate,
    Barrier,
    Block,
    Delinearize,
    If,
    Leave,
    Loop,
    LoopKind,
    Seq,
    Stmt,
    Transfer,
)
from .evaluate import InterpError, Value
from .machine import Cells, Launched, Machine, allocation, coordinate, expression, parts

Action = Callable[[], None]
Steps = Callable[[], Iterator[Barrier | Transfer]]
"""Starts a thread, which yields each barrier that it reaches; a rank yields its transfers."""
Build = Callable[[Stmt, Machine], Action]


@dataclass(slots=True)
class _Thread:
    """Where a thread is, and what it has."""

    steps: Iterator[Barrier | Transfer]
    values: dict[str, Value]
    places: dict[str, Cells]


def launched(loop: Loop, machine: Machine, build: Build) -> Action:
    found = axes(loop)
    launch = Launched(found, frozenset(found), {})
    steps = paused(loop, replace(machine, launch=launch), build)
    sizes = {axis: expression(extent, machine) for axis, extent in found.items()}

    def run() -> None:
        def places(kinds: list[LoopKind]) -> list[dict[str, int]]:
            ranges = (range(max(1, sizes[axis]())) for axis in kinds)
            names = [coordinate(axis) for axis in kinds]
            return [dict(zip(names, at, strict=True)) for at in product(*ranges)]

        threads = places([axis for axis in found if axis.is_thread])
        blocks = places([axis for axis in found if axis.is_block])
        for block in machine.shuffled(blocks):
            launch.memory.clear()
            start = {**machine.values, **block}
            _run([_Thread(steps(), {**start, **at}, {}) for at in threads], machine)

    return run


def _run(threads: list[_Thread], machine: Machine) -> None:
    """The threads of one block, to their end."""
    while threads:
        reached = [_go_on(thread, machine) for thread in machine.shuffled(threads)]
        waiting = [barrier for barrier in reached if barrier is not None]
        if not waiting:
            return
        if len(waiting) < len(reached) or any(barrier is not waiting[0] for barrier in waiting):
            raise InterpError("not all threads of a block reach a barrier", waiting[0].span)


def _go_on(thread: _Thread, machine: Machine) -> Barrier | Transfer | None:
    """The barrier that the thread comes to; None at its end."""
    machine.values.update(thread.values)
    machine.places.update(thread.places)
    reached = next(thread.steps, None)
    thread.values, thread.places = dict(machine.values), dict(machine.places)
    return reached


def inside(loop: Loop, machine: Machine) -> Machine:
    """The machine for the body of a loop."""
    launch = machine.launch
    if launch is None:
        return machine
    if loop.kind.is_bound:
        return replace(machine, launch=replace(launch, missing=launch.missing - {loop.kind}))
    return replace(machine, launch=replace(launch, loops=(*launch.loops, loop.var)))


def place_of(loop: Loop, machine: Machine) -> Callable[[], bool]:
    """The function that binds a loop's variable to the running thread's place on its axis, and says
    whether the loop has that iteration.
    """
    values, axis, upper = machine.values, coordinate(loop.kind), expression(loop.upper, machine)

    def bind() -> bool:
        values[loop.var] = values[axis]
        return bool(values[axis] < upper())

    return bind


def paused(stmt: Stmt, machine: Machine, build: Build) -> Steps:
    """The statement as a thread of a launch, or a rank, runs it."""
    if not (has_transfer if machine.launch is None else has_barrier)(stmt):
        return _all_at_once(build(stmt, machine))
    match stmt:
        case Loop():
            return _loop(stmt, machine, build)
        case Delinearize(body=body):
            return _where(parts(stmt, machine), paused(body, machine, build))
        case If(condition, body):
            return _where(expression(condition, machine), paused(body, machine, build))
        case Allocate(_, body):
            return _then(allocation(stmt, machine), paused(body, machine, build))
        case Seq(body_):
            return _in_order([paused(s, machine, build) for s in body_])
        case Barrier() | Transfer():
            return lambda: iter((stmt,))
        case Block() | Leave():
            raise AssertionError("they hold no barrier")
        case _:
            assert_never(stmt)


def _all_at_once(action: Action) -> Steps:
    def steps() -> Iterator[Barrier | Transfer]:
        action()
        yield from ()

    return steps


def _loop(loop: Loop, machine: Machine, build: Build) -> Steps:
    if loop.kind.is_bound:
        body = paused(loop.body, inside(loop, machine), build)
        return _where(place_of(loop, machine), body)
    lower, upper = expression(loop.lower, machine), expression(loop.upper, machine)
    body, values = paused(loop.body, inside(loop, machine), build), machine.values

    def iterate() -> Iterator[Barrier | Transfer]:
        for k in range(lower(), upper()):
            values[loop.var] = k
            yield from body()

    return iterate


def _where(holds: Callable[[], Value], body: Steps) -> Steps:
    def steps() -> Iterator[Barrier | Transfer]:
        if holds():
            yield from body()

    return steps


def _then(action: Action, body: Steps) -> Steps:
    def steps() -> Iterator[Barrier | Transfer]:
        action()
        yield from body()

    return steps


def _in_order(bodies: list[Steps]) -> Steps:
    def steps() -> Iterator[Barrier | Transfer]:
        for body in bodies:
            yield from body()

    return steps
