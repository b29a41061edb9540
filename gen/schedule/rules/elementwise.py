"""Elementwise: one value a point, of values that lie where it lies, or are the same along a line.

Looks for: a block that reduces nothing and whose innermost line of what it writes is read along the
line, or not at all. Those before it that are such, too, over the same points, come into its loop.
Processor: vectors along the line, threads over the outermost loops. GPU: a thread a point,
neighbours side by side.
"""

from ...ir.nodes import Block, Call, External, Function, Store
from ...ir.walk import walk
from .parts.apart import apart
from .parts.draft import Declined, Draft
from .parts.launches import settled, threads
from .parts.nest import Nest, nest_of
from .parts.patches import innermost, patches, reads_around
from .parts.sums import sums_read
from .parts.threads import threaded
from .parts.together import together

EACH = 2  # points of a GPU's thread, so that more is read at once


def _line(nest: Nest) -> str:
    """The loop along which the values lie. Raises Declined."""
    if not isinstance(nest.block.body, Store):
        raise Declined("it is a reduction")
    return walked_line(nest)


def walked_line(nest: Nest) -> str:
    """The loop along which what it writes lies, and what it reads. Raises Declined."""
    if nest.inner is None:
        raise Declined("no loop runs along the last axis of what it writes")
    for read in nest.reads:
        if read.stride(nest.inner) is None:
            raise Declined(f"it walks '{read.buffer}' along another axis than its last")
    return nest.loop_of[nest.inner]


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    line = _line(nest)
    own = [loop.var for loop in nest.own]
    if line not in own:
        raise Declined(f"other blocks share the loop '{line}'")
    if own[-1] != line:
        own = [*(var for var in own if var != line), line]
        draft = draft.step("reorder", loops=own)
    draft, drawn = together(draft, nest.name, line)
    names = {"as_": [f"{nest.name}.chunk", f"{nest.name}.lane"]} if len(own) == 1 else {}
    draft = draft.step("vectorize", loop=line, width="$lanes", **names)
    beside = nest.inner is not None and nest.writes[0].stride(nest.inner) == 1
    if beside and not any(_is_long(draft.blocks[name]) for name in drawn):
        for name in (*drawn, nest.name):
            draft = streamed(draft, nest_of(draft.kernel, name))
    return (threaded(draft.settled(*drawn), nest.name),)


def streamed(draft: Draft, nest: Nest) -> Draft:
    """Its stores pass the caches by, where they can and that pays: of complex numbers none do, and
    what takes longer to compute than to store is no faster for it.
    """
    written = nest.writes[0].buffer
    dtypes = {p.buffer.name: p.buffer.dtype for p in draft.kernel.parameters}
    if written not in dtypes or dtypes[written].is_complex or _is_long(nest.block):
        return draft
    return draft.perhaps("stream", block=nest.name)


def _is_long(block: Block) -> bool:
    """Whether it computes more than one exponential."""
    called = [n.function for n in walk(block.body) if isinstance(n, Call)]
    short = sum(f in _SHORT for f in called)
    return any(f in _LONG or isinstance(f, External) for f in called) or short > 1


_SHORT = {Function.EXP, Function.EXP2}
_LONG = {
    Function.EXPM1, Function.SIGMOID, Function.LOG, Function.LOG1P, Function.POW, Function.TANH,
    Function.ERF, Function.SIN, Function.COS, Function.LOG2, Function.LOG10, Function.SINH,
    Function.COSH, Function.TAN, Function.ATAN, Function.ATAN2, Function.ASIN, Function.ACOS,
    Function.ASINH, Function.ACOSH, Function.ATANH, Function.HYPOT, Function.CBRT, Function.FMOD,
    Function.ERFC, Function.ERFINV, Function.LGAMMA,
}  # fmt: skip


def gpu(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    draft = apart(draft, nest.name)
    nest = nest_of(draft.kernel, nest.name)
    line = _line(nest)
    own = [loop.var for loop in nest.own]
    if line not in own:
        raise Declined(f"other blocks share the loop '{line}'")
    if own[-1] != line:
        own = [*(var for var in own if var != line), line]
        draft = draft.step("reorder", loops=own)
    draft, _ = together(draft, nest.name, line)
    sums = sums_read(draft, nest)
    draft = _launched(draft, own, nest, around=any(reads_around(each.nest) for each in sums))
    for each in sums:
        draft = draft.if_sound("compute_at", block=each.name, loop=innermost(draft, nest.name))
    return (settled(draft),)


def _launched(draft: Draft, own: list[str], nest: Nest, *, around: bool) -> Draft:
    if around := around or reads_around(nest):
        try:
            return patches(draft, own, nest.name).proved()
        except Declined:
            pass
    return threads(draft, own, nest.name, each=1 if around else EACH)
