"""Launches as steps need them: the launch around a loop, and barriers that nothing needs.

Input: a hoisted state. Output: nodes of its tree, and states. Which barriers are needed, the prover
is asked (`poly.checks.races`); what this leaves is proved as any step is.
"""

from dataclasses import replace

from ...ir.launch import Axes, axes, launches
from ...ir.nodes import Barrier, Block, Const, Kernel, Loop, Stmt
from ...ir.rules.launches import check_launches
from ...ir.rules.verify import IRError
from ...ir.walk import blocks, loops, seq, statements
from ...poly.certificate import Scheduled
from ...poly.checks.races import spare_barriers
from .allocation import sink
from .tree import CannotApply, loop_named, rebuild, remove, replaced, tree, under, with_body


def launch_of(kernel: Kernel, loop: Loop) -> Loop | None:
    """The launch that a loop is in, or is."""
    found = launches(kernel.body)
    return next((x for x in found if any(y is loop for y in loops(x))), None)


def launched(kernel: Kernel) -> tuple[Block, ...]:
    """The blocks that run in launches."""
    return tuple(b for launch in launches(kernel.body) for b in blocks(launch))


def axes_around(kernel: Kernel, loop: Loop) -> Axes:
    launch = launch_of(kernel, loop)
    return axes(launch) if launch else {}


def constant_extents(found: Axes) -> dict[str, int]:
    """The axes of constant extent."""
    return {k.value: int(e.value.real) for k, e in found.items() if isinstance(e, Const)}


def require_met(state: Scheduled) -> None:
    """Refuses barriers that not all threads of a block would reach."""
    try:
        check_launches(replace(state.kernel, body=tree(state.kernel)))
    except IRError as divergent:
        hint = "put the barrier where every thread comes by"
        raise CannotApply(divergent.message, hint) from None


def with_barriers(state: Scheduled, var: str, beside: Stmt) -> Scheduled:
    """The state with a barrier on each side of a statement in a loop's body, as far as they are
    needed; others in that body that these make superfluous are gone.
    """
    loop = loop_named(state.kernel, var)
    k = next(k for k, s in enumerate(under(loop)) if s is beside)
    body = (*under(loop)[:k], Barrier(), beside, Barrier(), *under(loop)[k + 1 :])
    return without_needless(_with(state, loop, body), var)


def without_needless(state: Scheduled, var: str) -> Scheduled:
    """The state without those barriers in a loop's body that order nothing, earlier ones first.

    Where threads race whatever barriers there are, all stay.
    """
    kernel = sink(state).kernel
    all_ = [n for n in statements(kernel.body) if isinstance(n, Barrier)]
    mine = [s for s in under(loop_named(state.kernel, var)) if isinstance(s, Barrier)]
    tried = frozenset(k for k, n in enumerate(all_) if any(n is m for m in mine))
    for k in spare_barriers(kernel, tried):
        kernel = rebuild(state.kernel, remove(tree(state.kernel), all_[k]))
        state = replace(state, kernel=kernel)
    return state


def _with(state: Scheduled, loop: Loop, body: tuple[Stmt, ...]) -> Scheduled:
    return replaced(state, loop, with_body(loop, (seq(body),)))
