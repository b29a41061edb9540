"""What is done before any rule looks: temporaries that cost nothing to compute again are inlined.

A value is inlined into what reads it where that is one place that asks for each value once, or
where it is cheap: a few additions and multiplications of what it reads; on GPUs, a choice of what
is read, too, as what pads an image is, and sums of neighbours, as those of separable filters. A
call, a division or a reduction is kept: rules place it.
On processors a product that shares loops with other blocks gets loops of its own, where that is
right: what they hand each other is little beside its operations.
"""

from types import UnionType

from ....ir.nodes import Binary, BinaryOp, Call, Select, Store, Update, Var
from ....ir.walk import loads, walk
from ...edit.tree import readers
from .apart import apart
from .draft import Draft
from .nest import ArrayAccess, Nest, nest_of
from .sums import reuses

FEW_READS = 2
MOST_READS = 16  # of a block, with values computed again: of near elements, as caches have them


def inlined(draft: Draft) -> Draft:
    """Where arithmetic costs less than memory: all that is cheap."""
    for name in draft.blocks:
        if name in draft.blocks and (_asked_once(draft, name) or _again(draft, name)):
            draft = draft.perhaps("compute_inline", block=name)
    return draft


def _again(draft: Draft, name: str) -> bool:
    """Whether its values are computed again where they are read."""
    own = len(loads(draft.blocks[name].body))
    after = (len(nest.reads) + len(places) * (own - 1) for nest, places in _reads(draft, name))
    few = FEW_READS if max(after, default=0) > MOST_READS else MOST_READS
    return _cheap(draft, name, dear=Call, few=few)


def unrepeated(draft: Draft) -> Draft:
    """Where it does not: what is cheap if no reader asks for a value again, along a loop that it
    does not have, or at several places.
    """
    for name in draft.blocks:
        if name in draft.blocks and _worth(draft, name):
            draft = draft.perhaps("compute_inline", block=name)
    for name in draft.blocks:
        nest = nest_of(draft.kernel, name)
        if nest.shared and isinstance(nest.block.body, Update) and reuses(nest):
            draft = apart(draft, name)
    return draft


def _worth(draft: Draft, name: str) -> bool:
    if _asked_once(draft, name):
        return True
    rank = len(draft.blocks[name].iters)
    alone = all(len(r.block.iters) <= rank and len(p) == 1 for r, p in _reads(draft, name))
    return _cheap(draft, name) and (alone or not rank)


def _asked_once(draft: Draft, name: str) -> bool:
    """Whether it is read at one place, once for each of its values."""
    block, found = draft.blocks[name], _reads(draft, name)
    if not isinstance(block.body, Store) or len(found) != 1:
        return False
    ((reader, places),) = found
    at = {index.name for place in places for index in place.indices if isinstance(index, Var)}
    return len(places) == 1 and at == {it.name for it in reader.block.iters}


def _reads(draft: Draft, name: str) -> list[tuple[Nest, list[ArrayAccess]]]:
    """Who reads what the block stores, and at which places."""
    by = dict.fromkeys(reader for reader, _ in readers(draft.state.flow, name))
    stored = {write.buffer for write in nest_of(draft.kernel, name).writes}
    nests = [nest_of(draft.kernel, reader) for reader in by]
    return [(n, [read for read in n.reads if read.buffer in stored]) for n in nests]


def _cheap(
    draft: Draft, name: str, dear: type | UnionType = Call | Select, few: int = FEW_READS
) -> bool:
    body = draft.blocks[name].body
    if not isinstance(body, Store) or not readers(draft.state.flow, name):
        return False
    kept = any(isinstance(n, dear) or _divides(n) for n in walk(body.value))
    return not kept and len(loads(body.value)) <= few


def _divides(node: object) -> bool:
    return isinstance(node, Binary) and node.op in (BinaryOp.DIV, BinaryOp.FLOORDIV, BinaryOp.MOD)
