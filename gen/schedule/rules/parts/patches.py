"""Patches: a launch over the points of a plane, of which a thread takes a few of a column.

For what reads around each point, as stencils, windows and filters do: what neighbours read is near,
and a thread reads once what two of its own points ask for. Points of other axes are patches of
their own.
"""

from collections.abc import Sequence

from ....ir.algebra import sub
from ....ir.index.linear import constant
from ....ir.nodes import Var
from ....ir.walk import loops, variables
from ...edit.tree import loop_named
from .draft import Declined, Draft
from .launches import at_home
from .nest import Nest

ALONG = 32  # threads along a line, and so the places of a patch
DOWN = 8  # threads across lines
EACH = 4  # points of a thread, one below the other


def reads_around(nest: Nest) -> bool:
    """Whether a block reads an array at several places for a point, between its own and others'."""
    points, terms = {*nest.spatial}, {*nest.reduction}
    for read in nest.reads:
        beside = [i for i in read.indices if not isinstance(i, Var) and variables(i) & points]
        places = {other.indices for other in nest.reads if other.buffer == read.buffer}
        if beside and (len(places) > 1 or any(variables(i) & terms for i in beside)):
            return True
    return False


def patches(draft: Draft, chosen: Sequence[str], label: str) -> Draft:
    """A launch of a thread for each few points of loops directly inside one another, the last two
    of them a plane's. Raises Declined where there is no plane, or more than one axis of planes: the
    loop over these is a block's, and of several it would be the product.
    """
    if len(chosen) not in (2, 3) or any(_is_short(draft, loop) for loop in chosen[-2:]):
        raise Declined("its points are in no plane, or in planes along several axes")
    *outer, row, line = chosen
    at = {part: f"{label}.{part}" for part in ("down", "along", "y", "thread", "point")}
    draft = draft.step(
        "split", loop=row, factors=[None, DOWN, EACH], as_=[at["down"], at["y"], at["point"]]
    )
    draft = draft.step("split", loop=line, factors=[None, ALONG], as_=[at["along"], at["thread"]])
    order = [at[part] for part in ("down", "along", "y", "thread", "point")]
    draft = draft.step("reorder", loops=order)
    for loop, axis in zip((at["along"], at["down"], *outer), "xyz", strict=False):
        draft = draft.step("bind", loop=loop, axis=f"blockIdx.{axis}")
    draft = draft.step("bind", loop=at["y"], axis="threadIdx.y")
    draft = draft.step("bind", loop=at["thread"], axis="threadIdx.x")
    return at_home(draft.step("unroll", loop=at["point"]), at["thread"])


def innermost(draft: Draft, label: str) -> str:
    """The loop of a launch's points that is inside all others."""
    point = f"{label}.point"
    return (
        point if any(loop.var == point for loop in loops(draft.kernel.body)) else f"{label}.thread"
    )


def _is_short(draft: Draft, name: str) -> bool:
    loop = loop_named(draft.kernel, name)
    extent = constant(sub(loop.upper, loop.lower))
    return extent is not None and extent < DOWN
