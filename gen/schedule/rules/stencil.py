"""Stencils in stages: a block that reads values of another at several places beside its own.

Looks for: a block with rows and a line, and temporaries that it alone reads, at several places. So
each of their values serves several results. Processor:

- Where the places lie along the line: tiles of some rows and one vector. The values are computed a
  vector at a time, and stay in registers for the next one (`reuse_at`).
- Where they lie in other rows, too, or do not move evenly along the line: bands of rows. The values
  of a band are computed a row at a time, in vectors, and stay in the caches; those between two
  bands are computed twice.

Threads over tiles or bands.
"""

from contextlib import suppress

from ...ir.nodes import Store
from ..edit.tree import readers
from .elementwise import streamed
from .parts.draft import Declined, Draft
from .parts.nest import Nest, nest_of
from .parts.threads import threaded

ROWS = 4  # of a tile: vectors of each temporary that are in registers, and as many more move
BAND = 32  # rows, beside which two that are computed twice are little


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    rows, line = _rows_and_line(nest)
    stages = _stages(draft, nest)
    if not stages:
        raise Declined("it reads no temporary of its own at several places")
    made = _made(draft, nest, stages, rows, line)
    return (threaded(made.settled(*stages), nest.name),)


def _made(draft: Draft, nest: Nest, stages: dict[str, str], rows: str, line: str) -> Draft:
    if all(_beside(nest, buffer) for buffer in stages.values()):
        with suppress(Declined):  # places held inside the array do not move evenly
            return _tiles(draft, nest, tuple(stages), rows, line)
    return _bands(draft, nest, tuple(stages), rows, line)


def _rows_and_line(nest: Nest) -> tuple[str, str]:
    if not isinstance(nest.block.body, Store):
        raise Declined("it is a reduction")
    own = [loop.var for loop in nest.own]
    line = nest.loop_of.get(nest.inner or "")
    if len(own) < 2 or line != own[-1]:
        raise Declined("it has no rows and lines of its own")
    return own[-2], own[-1]


def _stages(draft: Draft, nest: Nest) -> dict[str, str]:
    """The blocks of values that serve several results, and where these are kept."""
    found: dict[str, str] = {}
    arguments = {p.buffer.name for p in draft.kernel.parameters}
    for name, block in draft.blocks.items():
        body = block.body
        if not isinstance(body, Store) or body.target.buffer in arguments:
            continue
        by = {reader for reader, _ in readers(draft.state.flow, name)}
        if by == {nest.name} and len(_places(nest, body.target.buffer)) > 1:
            found[name] = body.target.buffer
    return found


def _places(nest: Nest, buffer: str) -> list[tuple[object, ...]]:
    return [read.indices for read in nest.reads if read.buffer == buffer]


def _beside(nest: Nest, buffer: str) -> bool:
    """Whether all places of a temporary are in one row."""
    return len({places[:-1] for places in _places(nest, buffer)}) == 1


def _tiles(draft: Draft, nest: Nest, stages: tuple[str, ...], rows: str, line: str) -> Draft:
    tile, row, strip, lane = (f"{loop}{k}" for loop in (rows, line) for k in range(2))
    draft = draft.step("split", loop=rows, factors=[None, ROWS], as_=[tile, row])
    draft = draft.step("split", loop=line, factors=[None, "$lanes"], as_=[strip, lane])
    draft = draft.step("reorder", loops=[tile, strip, row, lane])
    before = set(draft.blocks) - {*stages}
    for name in stages:
        buffer = nest_of(draft.kernel, name).writes[0].buffer
        draft = draft.step("compute_at", block=name, loop=strip)
        draft = draft.step("reuse_at", buffer=buffer, loop=strip)
        draft = draft.step("set_scope", buffer=buffer, scope="register")
    for name in [name for name in draft.blocks if name not in before]:
        *outer, last = (loop.var for loop in nest_of(draft.kernel, name).own)
        for loop in outer:
            draft = draft.step("unroll", loop=loop)
        draft = draft.step("vectorize", loop=last, width="$lanes")
    draft = draft.step("unroll", loop=row).step("vectorize", loop=lane, width="$lanes")
    return streamed(draft, nest)


def _bands(draft: Draft, nest: Nest, stages: tuple[str, ...], rows: str, line: str) -> Draft:
    band, row = (f"{rows}{k}" for k in range(2))
    draft = draft.step("split", loop=rows, factors=[None, BAND], as_=[band, row])
    for name in stages:
        draft = draft.step("compute_at", block=name, loop=band)
        draft = draft.step(
            "vectorize", loop=nest_of(draft.kernel, name).own[-1].var, width="$lanes"
        )
    return streamed(draft.step("vectorize", loop=line, width="$lanes"), nest)
