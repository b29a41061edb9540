"""Threads: the loops of which they share out the iterations.

Those are the outermost loops around a block whose iterations are independent, whoever else runs in
them. Loops directly in each other become one, since a single image has many rows. A loop of few
iterations, or one of vectors along a line, is taken where there is no other: in a recurrence, each
thread takes strips of the line through all steps in time.
"""

from ....ir.algebra import sub
from ....ir.index.linear import constant
from ....ir.nodes import Allocate, Loop, LoopKind
from ....ir.walk import blocks
from ...edit.tree import reduction_loops
from .draft import Declined, Draft
from .nest import nest_of

FEW = 8  # iterations: fewer than there may be threads
STRIP = 16  # vectors of a line: what is fetched with them is near


def threaded(draft: Draft, name: str) -> Draft:
    """The draft with a loop around a block on threads; as it is where none is independent."""
    nest = nest_of(draft.kernel, name)
    around = nest.loops
    if any(loop.kind is LoopKind.PARALLEL for loop in around):
        return draft
    serial = [loop for loop in around if loop.kind is LoopKind.SERIAL]
    data = {nest.loop_of.get(var) for var in nest.compared}
    for loop in sorted((x for x in serial if x.var not in data), key=_is_last):
        after = draft.if_sound("parallel", loop=loop.var)
        if after is not draft:
            outside, inside = serial[: serial.index(loop)], serial[serial.index(loop) + 1 :]
            if _is_of_vectors(loop):
                return _strips(draft, outside, loop) or after
            return after if _is_last(loop) else _wider(draft, name, loop, inside) or after
    return draft


def _is_last(loop: Loop) -> bool:
    """Whether any other loop is better."""
    extent = constant(sub(loop.upper, loop.lower))
    return _is_of_vectors(loop) or (extent is not None and extent < FEW)


def _is_of_vectors(loop: Loop) -> bool:
    body = loop.body.body if isinstance(loop.body, Allocate) else loop.body
    return isinstance(body, Loop) and body.kind is LoopKind.VECTORIZED


def _strips(draft: Draft, outside: list[Loop], loop: Loop) -> Draft | None:
    """Each thread takes strips of the line through all steps of the loops around it, such as those
    in time, so that threads need not meet at each; None where that cannot be.
    """
    if not outside:
        return None
    strip, rest = f"{loop.var}_strip", f"{loop.var}_rest"
    try:
        draft = draft.step("split", loop=loop.var, factors=[None, STRIP], as_=[strip, rest])
        draft = draft.step("reorder", loops=[strip, *(each.var for each in outside), rest])
        return draft.step("parallel", loop=strip).proved()
    except Declined:
        return None


def _summed(loop: Loop) -> frozenset[str]:
    return frozenset[str]().union(*map(reduction_loops, blocks(loop)))


def _wider(draft: Draft, name: str, outer: Loop, inside: list[Loop]) -> Draft | None:
    """The loop and those directly in it as one, as many as are independent; None: it is alone."""
    loops, found, rest = [outer.var], None, outer.body
    for loop in inside:
        if rest is not loop or _is_of_vectors(loop) or loop.var in _summed(loop):
            break
        loops, rest = [*loops, loop.var], loop.body
        rows = f"{name}.rows"
        try:
            found = draft.step("fuse", loops=loops, as_=rows).step("parallel", loop=rows).proved()
        except Declined:
            break
    return found
