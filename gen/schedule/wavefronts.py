"""Wavefronts: skews and an order of loops after which all but the outermost are parallel.

Input: a state and a perfect nest. Output: the steps, and the loops that are parallel after them.
"""

from collections.abc import Iterator

from ..ir.walk import loops
from ..poly.certificate import Scheduled
from ..poly.queries.distances import wavefront
from .base import Primitive
from .edit.allocation import hoist
from .edit.tree import chain, loop_named, loops_around, tree
from .primitives.reorder import Reorder
from .primitives.skew import Skew


def band(state: Scheduled, loop: str) -> tuple[str, ...]:
    """The perfect nest that a loop is in, as deep as it goes."""
    kernel = hoist(state).kernel
    outermost = loop_named(kernel, loop)
    for outer in reversed(loops_around(tree(kernel), outermost)):
        if outer.body is not outermost:
            break
        outermost = outer
    return tuple(x.var for x in chain(outermost, len(loops(kernel.body))))


def wavefronts(
    state: Scheduled, nest: tuple[str, ...], loop: str
) -> Iterator[tuple[tuple[Primitive, ...], tuple[str, ...]]]:
    """Of parts of the nest that hold the loop, small ones first."""
    for size in range(2, min(len(nest), 3) + 1):
        for start in reversed(range(len(nest) - size + 1)):
            part = nest[start : start + size]
            if loop not in part:
                continue
            skews = wavefront(state.kernel, part)
            if skews is None:
                continue
            *inner, outer = part
            steps = (*(Skew((p, q), factor) for p, q, factor in skews), Reorder((outer, *inner)))
            yield steps, tuple(inner)
