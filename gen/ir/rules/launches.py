"""The rules of launches: loops bound to axes, barriers, and who may touch which memory.

Input: a kernel whose other rules have been checked. Output: nothing, or an IRError naming the node.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import assert_never

from .. import nodes as ir
from ..algebra import index
from ..launch import OUTSIDE, Axes, axes
from ..text.print_expr import expr_to_text
from ..walk import accessed, loads, loops, targets, variables
from .expressions import refuse

MOST_THREADS = 1024  # of a block, on every GPU that there is a compiler for
MOST = {
    ir.LoopKind.BLOCK_X: 2**31 - 1,
    ir.LoopKind.BLOCK_Y: 65535,
    ir.LoopKind.BLOCK_Z: 65535,
    ir.LoopKind.THREAD_X: 1024,
    ir.LoopKind.THREAD_Y: 1024,
    ir.LoopKind.THREAD_Z: 64,
}
_PRIVATE = (ir.Scope.STACK, ir.Scope.REGISTER)
_DEVICE = (ir.Scope.SHARED, ir.Scope.LOCAL)


@dataclass(frozen=True, slots=True)
class _Around:
    """What is around a statement.

    fixed: the names that are numbers at a launch: sizes, and the variables of the host's loops
    around it. inputs: the arguments that nothing writes. launch: its axes, of a statement in one.
    loops: outermost first. uneven: the variables that differ from thread to thread. divergent: why
    not all threads run the statement together, if so. buffers: temporaries, each with whether it is
    a launch's own and the thread axes around it.
    """

    fixed: frozenset[str]
    inputs: frozenset[str]
    launch: Axes | None = None
    loops: tuple[ir.Loop, ...] = ()
    uneven: frozenset[str] = frozenset()
    divergent: str | None = None
    buffers: tuple[tuple[ir.Buffer, bool, frozenset[ir.LoopKind]], ...] = ()

    def bound(self) -> frozenset[ir.LoopKind]:
        return frozenset(loop.kind for loop in self.loops if loop.kind.is_bound)

    def varies(self, *exprs: ir.Expr) -> bool:
        """Whether the expressions may differ from thread to thread."""
        return any(
            variables(e) & self.uneven or any(x.buffer not in self.inputs for x in loads(e))
            for e in exprs
        )


def check_launches(kernel: ir.Kernel) -> None:
    """Raises IRError for a launch that no GPU runs as the IR means it."""
    scalars = {s.name for s in kernel.scalars} | {p.name for p in kernel.phases}
    inputs = frozenset(p.buffer.name for p in kernel.parameters if p.intent.value == "in")
    _check(kernel.body, _Around(frozenset(kernel.dims) | scalars, inputs))


def _check(stmt: ir.Stmt, around: _Around) -> None:
    match stmt:
        case ir.Block():
            _check_memory(stmt, around)
        case ir.Barrier():
            if around.launch is not None and around.divergent:
                refuse(stmt, f"not all threads of a block reach a barrier: {around.divergent}")
        case ir.Leave():
            pass  # finishing makes it in loops without barriers
        case ir.Transfer():
            if around.launch is not None:
                refuse(stmt, f"'{stmt.message}' is sent or received in a launch, by no rank")
        case ir.Loop():
            _check_loop(stmt, around)
        case ir.Delinearize(vars_, extents, value, body):
            if around.launch is None:
                around = replace(around, fixed=around.fixed | {*vars_})
            if around.varies(value, *extents):
                reason = f"which parts '{vars_[0]}' has differs from thread to thread"
                around = replace(_diverging(around, reason), uneven=around.uneven | {*vars_})
            _check(body, around)
        case ir.If(condition, body):
            if around.varies(condition):
                around = _diverging(around, f"`{expr_to_text(condition)}` differs between them")
            _check(body, around)
        case ir.Allocate(buffers, body):
            for buffer in buffers:
                around = _allocate(buffer, around)
            _check(body, around)
        case ir.Seq(body_):
            for inner in body_:
                _check(inner, around)
        case _:
            assert_never(stmt)


def _diverging(around: _Around, reason: str) -> _Around:
    return replace(around, divergent=around.divergent or reason)


# ---------------------------------------------------------------- loops


def _check_loop(loop: ir.Loop, around: _Around) -> None:
    if loop.kind.is_bound:
        _check_bound(loop, around)
        if around.launch is None:
            around = replace(around, launch=_launch(loop))
        if loop.kind.is_thread:
            around = replace(around, uneven=around.uneven | {loop.var})
    elif around.launch is not None:
        around = _inside(loop, around)
    else:
        around = replace(around, fixed=around.fixed | {loop.var})
    _check(loop.body, replace(around, loops=(*around.loops, loop)))


def _check_bound(loop: ir.Loop, around: _Around) -> None:
    axis = loop.kind.value
    for outer in around.loops:
        if outer.kind in (
            ir.LoopKind.PARALLEL,
            ir.LoopKind.VECTORIZED,
        ):  # a rank has a GPU of its own
            refuse(loop, f"{axis} loop '{loop.var}' is in {outer.kind.value} loop '{outer.var}'")
        if outer.kind is loop.kind:
            refuse(loop, f"loop '{loop.var}' and loop '{outer.var}' around it are both {axis}")
        if loop.kind.is_block and outer.kind.is_thread:
            refuse(loop, f"{axis} loop '{loop.var}' is in {outer.kind.value} loop '{outer.var}'")
    if loop.lower != index(0):
        refuse(loop, f"{axis} loop '{loop.var}' does not start at 0")
    if loads(loop.upper) or not variables(loop.upper) <= around.fixed:
        extent = expr_to_text(loop.upper)
        refuse(loop, f"the extent `{extent}` of {axis} loop '{loop.var}' is not fixed at a launch")


def _launch(launch: ir.Loop) -> Axes:
    """Its axes. Refuses loops that disagree, and sizes that no GPU has."""
    found = axes(launch)
    for loop in loops(launch):
        if loop.kind.is_bound and loop.upper != found[loop.kind]:
            first = next(x for x in loops(launch) if x.kind is loop.kind)
            refuse(
                loop,
                f"{loop.kind.value} has extent `{expr_to_text(first.upper)}` in loop '{first.var}'"
                f" and `{expr_to_text(loop.upper)}` in loop '{loop.var}' of one launch",
            )
    known = {k: int(e.value.real) for k, e in found.items() if isinstance(e, ir.Const)}
    for kind, extent in known.items():
        if extent > MOST[kind]:
            refuse(launch, f"{extent} along {kind.value} is more than {MOST[kind]}")
    threads = prod(extent for kind, extent in known.items() if kind.is_thread)
    if threads > MOST_THREADS:
        refuse(launch, f"{threads} threads of a block are more than {MOST_THREADS}")
    return found


def _inside(loop: ir.Loop, around: _Around) -> _Around:
    """What is around the body of a loop of a launch that is bound to no axis."""
    name = f"loop '{loop.var}'"
    if loop.kind in (ir.LoopKind.PARALLEL, ir.LoopKind.DISTRIBUTED):
        outer = around.loops[-1].var
        refuse(loop, f"{loop.kind.value} {name} is in the launch around loop '{outer}'")
    if loop.kind is ir.LoopKind.VECTORIZED:
        around = _diverging(around, f"it is in vectorized {name}")
    if around.varies(loop.lower, loop.upper):
        around = _diverging(around, f"the bounds of {name} differ from thread to thread")
        around = replace(around, uneven=around.uneven | {loop.var})
    return around


# ---------------------------------------------------------------- memory


def _allocate(buffer: ir.Buffer, around: _Around) -> _Around:
    own = around.launch is not None
    if own and buffer.scope in OUTSIDE:
        refuse(buffer, f"'{buffer.name}' is allocated in a launch, and {buffer.scope.value}")
    threads = frozenset(kind for kind in around.bound() if kind.is_thread)
    return replace(around, buffers=(*around.buffers, (buffer, own, threads)))


def _check_memory(block: ir.Block, around: _Around) -> None:
    if around.launch is None:
        _check_host(block, around)
        return
    used, stored = accessed(block), {t.buffer for t in targets(block.body)}
    threads = frozenset(kind for kind in around.bound() if kind.is_thread)
    for buffer, own, outer in around.buffers:
        if buffer.name not in used:
            continue
        who = f"block '{block.name}' accesses '{buffer.name}'"
        if buffer.scope in (*_DEVICE, *_PRIVATE) and not own:
            refuse(block, f"{who}, {buffer.scope.value} memory from outside of its launch")
        if buffer.scope in _PRIVATE and threads - outer:
            axis = min(kind.value for kind in threads - outer)
            refuse(block, f"{who}, {buffer.scope.value} memory from outside of its {axis} loop")
        if buffer.scope is ir.Scope.CONSTANT and buffer.name in stored:
            refuse(block, f"block '{block.name}' writes '{buffer.name}', constant memory")


def _check_host(block: ir.Block, around: _Around) -> None:
    """Outside of launches a GPU's memory is only copied."""
    for buffer, _, _ in around.buffers:
        copies = isinstance(block.body, ir.Store) and isinstance(block.body.value, ir.Load)
        if buffer.scope is ir.Scope.DEVICE and buffer.name in accessed(block) and not copies:
            refuse(
                block,
                f"block '{block.name}' computes with '{buffer.name}', device memory, outside of a"
                " launch",
            )
