"""Turned: values of an array that is read along another axis than they are written along.

Looks for: a block that reduces nothing, where what lies side by side in an array that it reads lies
far apart in what it writes, as in transposes and other permutations of axes. GPU: squares pass
through shared memory, so that neighbouring threads read neighbours and write neighbours; their rows
are an odd number of elements apart, since a column would lie in one bank.
"""

from ...ir.nodes import Store
from .parts.apart import apart
from .parts.draft import Declined, Draft
from .parts.launches import in_launch, settled
from .parts.nest import ArrayAccess, Nest, nest_of

SIDE = 32  # of a square
TALL = 8  # rows of a square that its threads take at once


def gpu(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    if in_launch(nest) or not isinstance(nest.block.body, Store):
        raise Declined("it is a reduction, or in a launch")
    draft = apart(draft, nest.name)
    nest = nest_of(draft.kernel, nest.name)
    line = nest.inner
    own = [loop.var for loop in nest.own]
    if line is None or nest.loop_of[line] not in own:
        raise Declined("no loop of its own runs along the last axis of what it writes")
    turned = [read for read in nest.reads if _across(nest, read, line) is not None]
    if not turned:
        raise Declined("it reads nothing across the lines that it writes")
    across = _across(nest, turned[0], line)
    assert across is not None
    return (_squares(draft, nest, line, across, [r.buffer for r in turned]),)


def _across(nest: Nest, read: ArrayAccess, line: str) -> str | None:
    """The variable along which the read's elements lie side by side, if that is another one."""
    if line not in read.variables or read.stride(line) == 1:
        return None
    own = {loop.var for loop in nest.own}
    return next((v for v in nest.spatial if read.stride(v) == 1 and nest.loop_of[v] in own), None)


def _squares(draft: Draft, nest: Nest, line: str, across: str, buffers: list[str]) -> Draft:
    name = nest.name
    row, column = nest.loop_of[across], nest.loop_of[line]
    at = {part: f"{name}.{part}" for part in ("rows", "columns", "turn", "y", "x", "row")}
    draft = draft.step("split", loop=row, factors=[None, SIDE], as_=[at["rows"], at["row"]])
    draft = draft.step("split", loop=column, factors=[None, SIDE], as_=[at["columns"], at["x"]])
    outer = [loop.var for loop in nest.own if loop.var not in (row, column)]
    squares = [*outer, at["rows"], at["columns"]]
    draft = draft.step("reorder", loops=[*squares, at["row"], at["x"]])
    parts = [at["turn"], at["y"]]
    draft = draft.step("split", loop=at["row"], factors=[SIDE // TALL, TALL], as_=parts)
    for loop, axis in zip(reversed(squares), "xyz", strict=False):
        draft = draft.step("bind", loop=loop, axis=f"blockIdx.{axis}")
    draft = draft.step("bind", loop=at["y"], axis="threadIdx.y")
    draft = draft.step("bind", loop=at["x"], axis="threadIdx.x")
    for buffer in dict.fromkeys(buffers):
        tile = f"{name}_{buffer}"
        draft = draft.step(
            "cache_shared_at", block=name, buffer=buffer, loop=at["columns"], as_=tile
        )
        draft = draft.step("storage_align", buffer=tile, axis=-2, factor=SIDE, offset=1)
    return settled(draft).proved()
