"""A scheduled tree becomes one in which nothing is implied.

Input: the tree and flow of one variant, and a target's passes. Output: an ordinary tree (it prints,
parses, interprets and proves as any) with explicit inits, temporaries of the least size in a scope
each, guards as bounds, Ifs and masks, and no loop that runs once. Blocks keep their names and the
numbers of their reads, so the flow stays true; copies of a loop keep its name.
"""

from dataclasses import replace

from ..errors import NoCode
from ..ir import nodes as ir
from ..ir.algebra import FALSE, TRUE
from ..ir.index.linear import constant, tidy
from ..ir.inits import explicit_inits
from ..ir.launch import has_barrier, launches
from ..ir.walk import blocks, loops, map_nested, nested, substitute
from ..poly.certificate import Flow, Scheduled
from .edges import edge_tiles
from .loop_bounds import hoist_guards, split_guards
from .passes import Pass, Passes
from .pragmas import auto_unroll
from .register_loops import unroll_over_registers
from .storage import align, place, shrink
from .transposed_tiles import turned_edges


def without_launches(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel without barriers, which order nothing outside of launches.

    Raises NoCode for a loop over ranks, and for a launch: to run its threads one after
    another, each from barrier to barrier, would need memory and loops that no recipe asked for.
    """
    for launch in launches(kernel.body):
        raise NoCode(
            f"loop '{launch.var}' is bound to {launch.kind.value}, and C code has no launches",
            launch.span,
            "leave `bind` and what stands for it to recipes of another target",
        )
    for loop in loops(kernel.body):
        if loop.kind is ir.LoopKind.DISTRIBUTED:
            raise NoCode(
                f"loop '{loop.var}' is distributed, and C code has no ranks",
                loop.span,
                "code for MPI comes later: leave `distribute` to recipes of another target",
            )
    return replace(kernel, body=_without_barriers(kernel.body)) if has_barrier(kernel) else kernel


_NOTHING = ir.Seq(())


def _without_barriers(stmt: ir.Stmt) -> ir.Stmt:
    return _NOTHING if isinstance(stmt, ir.Barrier) else map_nested(stmt, _without_barriers)


PASSES: Passes = (  # of targets without launches and ranks
    Pass("launches", without_launches),
    Pass("explicit inits", explicit_inits),
    Pass("shrink temporaries", shrink),
    Pass("align temporaries", align),
    Pass("place temporaries", place),
    Pass("auto unroll", auto_unroll),
    Pass("loops over registers", unroll_over_registers),
    Pass("guards", split_guards),
    Pass("edges of tiles", edge_tiles),
    Pass("edges of turned tiles", turned_edges),
    Pass("guards around loops", hoist_guards),
    Pass("unit loops", lambda kernel: replace(kernel, body=fold_unit_loops(kernel.body))),
    Pass("simplify", lambda kernel: replace(kernel, body=simplify_bounds(kernel.body))),
)


def lower(state: Scheduled, passes: Passes) -> Scheduled:
    """The tree after a target's passes, and its certificate. Raises as they say: NoCode for what
    the target has no code for.
    """
    kernel = state.kernel
    for lowering in passes:
        kernel = lowering.run(kernel)
    return replace(state, kernel=kernel, flow=_flow(state.flow, kernel))


def _flow(flow: Flow, kernel: ir.Kernel) -> Flow:
    """The flow without the loops, and the writers, that are no longer there: of blocks whose guards
    never hold, nothing is left.
    """
    names = {loop.var for loop in loops(kernel.body)}
    left = {block.name for block in blocks(kernel.body)}
    return {
        read: replace(
            source,
            writers=tuple(name for name in source.writers if name in left),
            shared=tuple(name for name in source.shared if name in names),
        )
        for read, source in flow.items()
    }


def fold_unit_loops(stmt: ir.Stmt) -> ir.Stmt:
    """Loops that run exactly once are their body, but for a launch's: without them it would be
    none. Those that never run are gone, and what then is around nothing.
    """
    if isinstance(stmt, ir.Loop):
        trips = constant(tidy(ir.Binary(ir.BinaryOp.SUB, stmt.upper, stmt.lower)))
        if trips is not None and trips <= 0:
            return _NOTHING
        if trips == 1 and not stmt.kind.is_bound:
            return substitute(fold_unit_loops(stmt.body), {stmt.var: stmt.lower})
    new = map_nested(stmt, fold_unit_loops)
    return _NOTHING if nested(new) == (_NOTHING,) else new


def simplify_bounds(stmt: ir.Stmt) -> ir.Stmt:
    """Bounds and bindings with like terms gathered; nothing under a condition that never holds."""
    new = map_nested(stmt, simplify_bounds)
    match new:
        case ir.Block():
            return replace(new, bindings=tuple(tidy(b) for b in new.bindings))
        case ir.Loop():
            return replace(new, lower=tidy(new.lower), upper=tidy(new.upper))
        case ir.Delinearize():
            return replace(new, value=tidy(new.value))
        case ir.If(condition, body) if condition in (TRUE, FALSE):
            return body if condition == TRUE else _NOTHING
        case _:
            return new
