"""Which blocks are computed a row at a time, by the block that reads them last.

Input: a block, the sink, and its nest. Output: a `Region`: the sink's loops that make rows, and the
producers of which one row needs its own values alone, so that nothing is computed twice where they
are computed at the row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from ....ir.nodes import Update, Var
from ....ir.walk import targets
from ...edit.tree import readers
from .draft import Declined, Draft
from .nest import Nest, nest_of


@final
@dataclass(frozen=True, slots=True)
class Region:
    """rows: the sink's loops over rows, outermost first. of: for each block, the producers last
    first behind the sink, which of its variables runs over which of these.
    """

    rows: tuple[str, ...]
    of: Mapping[str, Mapping[str, str]]

    @property
    def sink(self) -> str:
        return next(iter(self.of))

    @property
    def drawn(self) -> tuple[str, ...]:
        """The producers, the last first."""
        return tuple(self.of)[1:]

    @property
    def blocks(self) -> tuple[str, ...]:
        """In the order in which they run."""
        return tuple(reversed(tuple(self.of)))

    def variable(self, block: str, loop: str) -> str:
        """The block's variable that runs over one of the loops over rows."""
        return next(var for var, row in self.of[block].items() if row == loop)


def region_of(draft: Draft, nest: Nest) -> Region:
    """Of the rows that are as short as can be and have a reduction. Raises Declined where there is
    none.
    """
    loops = {loop.var for loop in nest.own}
    spatial = [nest.loop_of[var] for var in nest.spatial if nest.loop_of[var] in loops]
    if isinstance(nest.block.body, Update):
        return _drawn(draft, nest, spatial)
    for rows in _candidates(draft, nest, spatial):
        region = _drawn(draft, nest, rows)
        if any(isinstance(draft.blocks[name].body, Update) for name in region.drawn):
            return region
    raise Declined("it reads no reduction of its row")


def _candidates(draft: Draft, nest: Nest, spatial: Sequence[str]) -> list[list[str]]:
    """Sets of the sink's loops that may make rows, the largest first: rows are shortest so."""
    variable = {loop: var for var, loop in nest.loop_of.items()}
    outer = [list(spatial[:k]) for k in range(len(spatial), 0, -1)]
    temporaries = {t.buffer for b in draft.blocks.values() for t in targets(b.body)}
    used = [
        [loop for loop in spatial if variable[loop] in read.variables]
        for read in nest.reads
        if read.buffer in temporaries
    ]
    found = outer + [loops for loops in used if loops and loops not in outer]
    return sorted(found, key=len, reverse=True)


def _drawn(draft: Draft, nest: Nest, rows: Sequence[str]) -> Region:
    known = {nest.name: {var: loop for var, loop in nest.loop_of.items() if loop in rows}}
    for name in reversed(draft.blocks) if rows else ():
        found = {reader for reader, _ in readers(draft.state.flow, name)}
        if name in draft.done or name in known or not found or not found <= known.keys():
            continue
        own = _rows_of(draft, name, found, known)
        if own is not None and set(own.values()) == set(rows):
            known[name] = own
    return Region(tuple(rows), known)


def _rows_of(
    draft: Draft, name: str, found: set[str], known: Mapping[str, Mapping[str, str]]
) -> dict[str, str] | None:
    """The loop over rows of each of a producer's variables, where all reads agree; else None."""
    nest = nest_of(draft.kernel, name)
    if nest.shared:
        return None
    (target, *_) = nest.writes
    results: list[dict[str, str]] = []
    for reader in found:
        for read in nest_of(draft.kernel, reader).reads:
            if read.buffer not in {w.buffer for w in nest.writes}:
                continue
            loops = {}
            for at, index in zip(target.indices, read.indices, strict=True):
                if isinstance(at, Var) and isinstance(index, Var) and index.name in known[reader]:
                    loops[at.name] = known[reader][index.name]
            results.append(loops)
    agree = results and all(loops == results[0] for loops in results)
    return results[0] if agree else None


def dependences(draft: Draft, name: str) -> frozenset[str]:
    """The blocks whose values a block reads."""
    flow = draft.state.flow.items()
    return frozenset(w for (reader, _), source in flow if reader == name for w in source.writers)
