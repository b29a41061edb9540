"""Running reductions: each result takes the terms up to its place, or from it on.

Looks for: a reduction whose terms end, or start, where its result lies. Processor: one pass, where
what is carried from one result to the next has the terms so far. Along memory, a vector of results
at a time, which do not wait for each other; down columns, a strip of them at a time, a row after
the other. What no operator combines goes one result at a time. Threads over what is left. GPU: a
warp a row, which takes as many results at a time as it has threads; where rows lie across lines, a
thread a row, neighbours side by side.
"""

from ...ir.nodes import Const, Init, Update, Var
from ...ir.walk import variables
from ..primitives.scan import OPERATORS
from .parts.apart import apart
from .parts.draft import Declined, Draft
from .parts.launches import in_launch, settled, threads
from .parts.nest import Nest, nest_of
from .parts.reduction import condition_on, in_registers

AHEAD = 32  # vectors that a row is asked for ahead


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    place, term = _running(nest)
    rows = [loop.var for loop in nest.own if loop.var not in (place, term)]
    line = nest.inner
    if line is None:
        raise Declined("no loop runs along the last axis of what it writes")
    if nest.loop_of[line] != place:
        return _columns(draft, nest, place, term, nest.loop_of[line])
    along = _rows(draft, nest, rows)
    (first, *_) = nest.writes[0].indices
    down = isinstance(first, Var) and nest.loop_of.get(first.name)
    if draft.loop_dim is None or len(rows) != 1 or down != rows[0]:
        return (along,)
    always = f"{draft.loop_dim} >= 0"
    return (along.under(always), *_columns(draft, nest, place, term, rows[0]))


def _running(nest: Nest) -> tuple[str, str]:
    """The loops over results and over the terms of one. Raises Declined."""
    if not isinstance(nest.block.body, Update) or len(nest.reduction) != 1:
        raise Declined("it is no reduction over one index")
    term = nest.loop_of[nest.reduction[0]]
    own = {loop.var: loop for loop in nest.own}
    if term not in own:
        raise Declined("other blocks share its loops")
    place = (variables(own[term].lower) | variables(own[term].upper)) & own.keys()
    if len(place) != 1:
        raise Declined("its terms do not end where its result lies")
    return next(iter(place)), term


def _rows(draft: Draft, nest: Nest, rows: list[str]) -> Draft:
    name, before = nest.name, draft.blocks
    place, term = _running(nest)
    terms = next(loop for loop in nest.own if loop.var == term)
    if not _combines(nest):
        return _parallel(draft.step("scan", block=name), rows)
    draft = draft.step("scan", block=name, width="$lanes")
    made = (block for name, block in draft.blocks.items() if name not in before)
    new = [block.name for block in made if not isinstance(block.body, Init)]
    for block in new:
        buffer = nest_of(draft.kernel, block).writes[0].buffer
        draft = draft.step("set_scope", buffer=buffer, scope="register")
    for block in (new[0], name, *new[1:]):
        loops = nest_of(draft.kernel, block).loops  # a chunk's is the one of constant length
        places = next(loop.var for loop in loops if isinstance(loop.upper, Const))
        draft = draft.step("vectorize", loop=places, width="$lanes")
    if place not in variables(terms.lower):  # chunks from the last to the first are no stream
        draft = draft.perhaps("stream", block=name)
    draft = _ahead(draft, nest, new[0])
    return _parallel(draft, rows)


def _combines(nest: Nest) -> bool:
    """Whether an operator, and so one of vectors, combines two partial results."""
    return isinstance(nest.block.body, Update) and nest.block.body.combiner in OPERATORS


def _parallel(draft: Draft, rows: list[str]) -> Draft:
    return draft.step("parallel", loop=rows[0]) if rows else draft


def _ahead(draft: Draft, nest: Nest, scan: str) -> Draft:
    """With what the scan reads asked for early: a chain of additions leaves no time to wait."""
    chunk = next(it.name for it in draft.blocks[scan].iters if it.name.endswith("_0"))
    for buffer in dict.fromkeys(read.buffer for read in nest.reads):
        draft = draft.perhaps("prefetch", block=scan, buffer=buffer, ahead={chunk: AHEAD})
    return draft


def _columns(draft: Draft, nest: Nest, place: str, term: str, line: str) -> tuple[Draft, ...]:
    """For few columns, which are carried in a register, and for all."""
    strips = _strips(draft, nest, place, term, line, "$strip_vectors")
    (count,) = (loop.upper for loop in nest.own if loop.var == line)
    few = condition_on([count], "<= $lanes")
    if not few or not _combines(nest):
        return (strips,)
    narrow = in_registers(_strips(draft, nest, place, term, line, 1), f"{line}0")
    return (narrow.under(few), strips) if narrow else (strips,)


def _strips(
    draft: Draft, nest: Nest, place: str, term: str, line: str, vectors: int | str
) -> Draft:
    strip, *parts = (f"{line}{k}" for k in range(3))
    outer = [loop.var for loop in nest.own if loop.var not in (place, term, line)]
    factors = [None, vectors, "$lanes"]
    draft = draft.step("split", loop=line, factors=factors, as_=[strip, *parts])
    draft = draft.step("reorder", loops=[*outer, strip, place, *parts, term])
    draft = draft.step("scan", block=nest.name)
    if _combines(nest):
        draft = draft.step("vectorize", loop=parts[1], width="$lanes")
    rows = strip
    if outer:
        rows = f"{nest.name}.strips"
        draft = draft.step("fuse", loops=[*outer, strip], as_=rows)
    return draft.step("parallel", loop=rows)


# ---------------------------------------------------------------- GPUs


def gpu(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    if in_launch(nest):
        raise Declined("it is in a launch")
    draft = apart(draft, nest.name)
    nest = nest_of(draft.kernel, nest.name)
    place, term = _running(nest)
    rows = [loop.var for loop in nest.own if loop.var not in (place, term)]
    if nest.shared or nest.inner is None or not rows:
        raise Declined("no loop of its own runs over rows")
    line = nest.loop_of[nest.inner]
    if line != place:
        return (_each_alone(draft, nest, [*(loop for loop in rows if loop != line), line]),)
    dims = draft.kernel.dims
    alone = (_each_alone(draft, nest, rows),) if dims else ()
    warps = _warps(draft, nest, rows, place)
    return (warps.under(f"{dims[0]} >= 0") if dims else warps, *alone)


def _each_alone(draft: Draft, nest: Nest, rows: list[str]) -> Draft:
    """A thread a row, one result after the other."""
    place, term = _running(nest)
    wanted = [*rows, place, term]
    if wanted != [loop.var for loop in nest.own]:
        draft = draft.step("reorder", loops=wanted)
    return settled(threads(draft.step("scan", block=nest.name), rows, nest.name)).proved()


def _warps(draft: Draft, nest: Nest, rows: list[str], place: str) -> Draft:
    """A warp a row: running reductions of what it has in shared memory, then what came before."""
    name, scan, carry = nest.name, f"{nest.name}_scan", f"{nest.name}_carry"
    draft = draft.step("scan", block=name, width="$warp", as_=[scan, carry])
    for buffer in (scan, carry):
        draft = draft.step("set_scope", buffer=buffer, scope="shared")
    for loop, axis in zip(reversed(rows), "xyz", strict=False):
        draft = draft.step("bind", loop=loop, axis=f"blockIdx.{axis}")
    lanes = [_of_warp(draft, block) for block in (scan, name, carry)]
    for where in ("before", "after"):
        draft = draft.step("sync_threads", loop=lanes[-1], where=where)
    draft = draft.step("bind", loops=lanes, axis="threadIdx.x")
    chunk = {"block": scan, "loop": f"{place}_0"}
    for buffer in dict.fromkeys(read.buffer for read in nest.reads):
        draft = draft.step("cache_shared_at", **chunk, buffer=buffer, as_=f"{name}_{buffer}")
    own = {"block": scan, "buffer": scan, "at": lanes[0], "scope": "local"}
    return settled(draft.if_sound("cache_write", **own, as_=f"{scan}_own")).proved()


def _of_warp(draft: Draft, block: str) -> str:
    """The loop over the places of a chunk: the one of constant length."""
    loops = nest_of(draft.kernel, block).loops
    return next(loop.var for loop in loops if isinstance(loop.upper, Const))
