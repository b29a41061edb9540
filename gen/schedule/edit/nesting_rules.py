"""Which loop may be around which.

Input: a tree, its loops, and what a step makes of one. Output: nothing, or the reason why the
loops do not nest. The verifier has the same rules for every tree; here a step says them of what it
was asked for, with what to do instead.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

from ...ir.algebra import sub
from ...ir.index.bounds import normal
from ...ir.index.linear import constant
from ...ir.nodes import Expr, Kernel, Loop, LoopKind, Stmt
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import loads, loops, variables
from ...poly.certificate import Scheduled
from .tree import (
    CannotApply,
    loop_named,
    loops_around,
    replaced,
    require_serial,
    scope_of,
    tree,
)


def marked(state: Scheduled, name: str, kind: LoopKind) -> Scheduled:
    """The state with a serial loop as one of `kind`. Raises CannotApply where it is none, or does
    not nest so.
    """
    loop = loop_named(state.kernel, name)
    require_fit(tree(state.kernel), loop, kind)
    return replaced(state, loop, replace(loop, kind=kind))


def require_fit(root: Stmt, loop: Loop, kind: LoopKind) -> None:
    """Refuses a loop that is not serial any more, or that as one of `kind` does not nest."""
    require_serial(loop)
    require_nesting(root, loop, kind)


def require_nesting(root: Stmt, loop: Loop, kind: LoopKind) -> None:
    """Refuses to make the loop one of `kind` where it is: in those around it, around its own."""
    for outer in loops_around(root, loop):
        _require(outer.var, outer.kind, loop.var, kind)
    for inner in loops(loop.body):
        _require(loop.var, kind, inner.var, inner.kind)


def require_order(nest: Iterable[Loop]) -> None:
    """Refuses loops, outermost first, that do not nest in this order."""
    for outer, inner in combinations(nest, 2):
        _require(outer.var, outer.kind, inner.var, inner.kind)


def require_lanes(kernel: Kernel) -> None:
    """Refuses vectorized loops whose number of lanes is not one number."""
    for loop in loops(kernel.body):
        if loop.kind is LoopKind.VECTORIZED and constant(sub(loop.upper, loop.lower)) is None:
            extent = expr_to_text(normal(sub(loop.upper, loop.lower)))
            raise CannotApply(
                f"vectorized loop '{loop.var}' would have `{extent}` lanes, which is not a number",
                "vectorize after this step",
            )


def fixing(kernel: Kernel, extent: Expr) -> str | None:
    """A hint that says how an extent becomes a number; None where loops or data decide it."""
    names = variables(extent)
    if loads(extent) or not names <= {*kernel.dims, *(s.name for s in kernel.scalars)}:
        return None
    when = " and ".join(f"{name} == 3" for name in sorted(names))
    return f"`when: {when}` makes a variant in which it is a number"


def require_fixed(kernel: Kernel, way: Iterable[Stmt], hint: str) -> None:
    """Refuses axes whose extents are not known when a launch starts. way: statements from the root
    inwards; the loops before the first that is bound to an axis run on the host.
    """
    known = {*kernel.dims, *(s.name for s in kernel.scalars), *(p.name for p in kernel.phases)}
    started = False
    for stmt in way:
        if isinstance(stmt, Loop) and stmt.kind.is_bound:
            started = True
            extent = normal(sub(stmt.upper, stmt.lower))
            if loads(extent) or not variables(extent) <= known:
                raise CannotApply(
                    f"the extent `{expr_to_text(extent)}` of loop '{stmt.var}' would not be known"
                    " when the launch starts",
                    hint,
                )
        elif not started:
            known.update(scope_of([stmt]))


def _require(outer: str, around: LoopKind, inner: str, kind: LoopKind) -> None:
    why = _reason(around, kind)
    if why:
        reason, hint = why
        raise CannotApply(
            f"{kind.value} loop '{inner}' would be in {around.value} loop '{outer}': {reason}", hint
        )


def _reason(outer: LoopKind, inner: LoopKind) -> tuple[str, str] | None:
    """Why no loop of the one kind holds one of the other, and what to do; None where it may."""
    launched = "bind the loop to an axis, or leave it serial"
    if inner.is_bound:
        return _no_axis(outer, inner)
    match outer, inner:
        case LoopKind.VECTORIZED, LoopKind.VECTORIZED:
            return "a lane holds one value, no vector", "fuse the two, and vectorize that"
        case LoopKind.VECTORIZED, LoopKind.PARALLEL | LoopKind.DISTRIBUTED:
            return "all lanes of a vector are on one thread", "reorder the vectorized loop inside"
        case LoopKind.PARALLEL, LoopKind.DISTRIBUTED:
            return "a rank has threads, not a thread ranks", "distribute the outer loop"
        case LoopKind.DISTRIBUTED, LoopKind.DISTRIBUTED:
            return "a rank has no ranks of its own", "fuse the two, and distribute that"
        case _, LoopKind.PARALLEL if outer.is_bound:
            return "a launch has only the threads of its axes", launched
        case _, LoopKind.DISTRIBUTED if outer.is_bound:
            return "a launch runs on the GPU of one rank", launched
        case _:
            return None


def _no_axis(outer: LoopKind, axis: LoopKind) -> tuple[str, str] | None:
    """The same for an inner loop that is bound to an axis."""
    match outer:
        case LoopKind.PARALLEL | LoopKind.VECTORIZED:
            return "one thread of the host starts a launch", "bind both, or leave the outer serial"
        case _ if outer is axis:
            return "each axis has one loop in a nest", "fuse the two loops, or take another axis"
        case _ if outer.is_thread and axis.is_block:
            return "a block holds threads, not a thread blocks", "reorder, or swap the axes"
        case _:
            return None
