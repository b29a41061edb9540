"""Blocks of a value a point that run over the same points: computed point by point in one nest.

Input: a draft, and the innermost loop of a block. Output: the draft, in which blocks before it run
in that loop, too: those that run over the same points, walk memory along the same line, and use an
array of those that are there already. What one of them writes, the others use at that point alone,
so that points stay independent. Each array then goes past the processor once, and what is between
them needs no memory.
"""

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from ....ir.nodes import Expr, Store, Var
from ....ir.walk import substitute
from .draft import Draft
from .nest import Nest, nest_of

MOST = 16  # blocks: so many arrays may each have a page of their own

Uses = Mapping[str, frozenset[tuple[Expr, ...]]]
"""Of each array: the places, in numbers of loops, the outermost being 0."""


def together(draft: Draft, name: str, line: str) -> tuple[Draft, tuple[str, ...]]:
    """The draft, and the blocks that came into the loop, in the order in which they run."""
    around = nest_of(draft.kernel, name)
    points, group, drawn = _points(around), [around], list[str]()
    for before in reversed([*takewhile(lambda block: block != name, draft.blocks)]):
        nest = nest_of(draft.kernel, before)
        if len(group) == MOST:
            break
        if before in draft.done or nest.shared or _points(nest) != points or not _along(nest):
            continue
        if _near(nest, group) and all(_at_points(nest, other) for other in group):
            moved = draft.if_sound("simple_compute_at", block=before, loop=line)
            if moved is not draft:
                draft, group, drawn = moved, [nest, *group], [before, *drawn]
    return draft, tuple(drawn)


def _points(nest: Nest) -> tuple[tuple[Expr, Expr], ...]:
    """The bounds of its loops."""
    at = _numbers(nest)
    return tuple((substitute(p.lower, at), substitute(p.upper, at)) for p in nest.loops)


def _numbers(nest: Nest) -> dict[str, Expr]:
    return {loop.var: Var(f"{k}") for k, loop in enumerate(nest.loops)}


def _along(nest: Nest) -> bool:
    """Whether its innermost loop walks along all that it reads and writes, or stands still."""
    line = nest.inner
    if not isinstance(nest.block.body, Store) or line is None:
        return False
    if nest.loop_of[line] != nest.loops[-1].var:
        return False
    return all(read.stride(line) is not None for read in nest.reads)


def _uses(nest: Nest) -> Uses:
    numbers = _numbers(nest)
    pairs = zip(nest.block.iters, nest.block.bindings, strict=True)
    at = {it.name: substitute(bound, numbers) for it, bound in pairs}
    found: dict[str, set[Any]] = {}
    for access in (*nest.reads, *nest.writes):
        place = tuple(substitute(index, at) for index in access.indices)
        found.setdefault(access.buffer, set()).add(place)
    return {buffer: frozenset(places) for buffer, places in found.items()}


def _near(nest: Nest, group: list[Nest]) -> bool:
    """Whether it uses an array of theirs."""
    return any(_uses(nest).keys() & _uses(other).keys() for other in group)


def _at_points(one: Nest, other: Nest) -> bool:
    """Whether what either of them writes, both use at one place a point."""
    uses, others = _uses(one), _uses(other)
    written = {write.buffer for nest in (one, other) for write in nest.writes}
    both = written & uses.keys() & others.keys()
    return all(len(uses[buffer] | others[buffer]) == 1 for buffer in both)
