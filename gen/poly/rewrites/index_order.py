"""Which (value, index) updates come in the order of their indices.

Input: a kernel whose inits are explicit. Output: those of its blocks that combine an index into a
place only after lesser or equal ones, for all sizes, and none before an init. It takes the tree to
be proved, and the order of execution from the sets that the prover works on. Where isl cannot say,
a block is none of them.
"""

import islpy as isl

from ...ir.nodes import Block, Cast, Combiner, Expr, Init, Kernel, Update
from ...ir.types import DType
from ...ir.walk import blocks, targets
from ..sets.affine import NotAffine, affine
from ..sets.extract import Outline, Tree, outline
from ..sets.order import Relations, unordered
from ..sets.statement import Access, Statement
from ..witness import Refused


def ascending(kernel: Kernel) -> frozenset[int]:
    """The blocks, by their number in textual order."""
    if not any(map(_combines_pairs, blocks(kernel.body))):
        return frozenset()
    try:
        whole = outline(kernel)
        relations = Relations(_of_pairs(whole))
    except Refused:
        return frozenset()
    numbers = {placed.uid: k for k, placed in enumerate(whole.blocks)}
    return frozenset(
        numbers[s.uid]
        for s in relations.tree.statements
        if _combines_pairs(s.block) and _ascends(s, relations)
    )


def _combines_pairs(block: Block) -> bool:
    match block.body:
        case Update(Combiner.ARGMIN | Combiner.ARGMAX, _, _):
            return True
        case _:
            return False


def _of_pairs(whole: Outline) -> Tree:
    """All that writes the buffers of pairs. Raises Refused for what isl cannot say."""
    written = {s.uid: {t.buffer for t in targets(s.block.body)} for s in whole.blocks}
    pairs = (written[s.uid] for s in whole.blocks if _combines_pairs(s.block))
    held = frozenset[str]().union(*pairs)
    return whole.tree({uid for uid, buffers in written.items() if held & buffers})


def _ascends(statement: Statement, relations: Relations) -> bool:
    """Whether each place has taken lesser indices alone before the statement's, since an init."""
    index = _index(statement)
    return index is not None and all(
        _comes_last(write, index, relations) for write in statement.writes
    )


def _comes_last(write: Access, index: isl.Map, relations: Relations) -> bool:
    writers = relations.writes(write.storage)
    if any(not _is_known(w) or _in_any_order(write, w, relations) for w in writers):
        return False
    inits = [w for w in writers if isinstance(w.statement.block.body, Init)]
    unbegun = write.domain
    for init in inits:
        unbegun = unbegun.subtract(relations.earlier(write, init).domain())
    if not unbegun.is_empty():
        return False
    for w in writers:
        if w in inits:
            continue
        theirs = _index(w.statement)
        if theirs is None:
            return False
        greater = index.lex_lt_map(theirs).intersect(relations.earlier(write, w))
        for init in inits:
            anew = relations.earlier(write, init).apply_range(relations.earlier(init, w))
            greater = greater.subtract(anew)
        if not greater.is_empty():
            return False
    return True


def _is_known(write: Access) -> bool:
    """Whether a write is a term, or an init that is made wherever its loops say, at one place, and
    whether its loops run in the order that is written.
    """
    statement = write.statement
    if write.free or any(level.turned is not None for level in statement.levels):
        return False
    match statement.block.body:
        case Init():
            return not statement.opaque
        case _:
            return _combines_pairs(statement.block)


def _in_any_order(a: Access, b: Access, relations: Relations) -> bool:
    """Whether the two meet in different iterations of a loop that runs them in any order."""
    return any(
        not relations.meet(x, y).intersect(later).is_empty()
        for x, y in ((a, b), (b, a))
        for later in unordered(relations.tree.parameters, x, y)
    )


def _index(statement: Statement) -> isl.Map | None:
    """From instances to the index that each combines."""
    match statement.block.body:
        case Update(_, _, (_, at)):
            try:
                value = affine(_plain(at), statement.at)
            except NotAffine:
                return None
            return isl.Map.from_pw_aff(value).intersect_domain(statement.domain)
        case _:
            return None


def _plain(expr: Expr) -> Expr:
    """The expression without the casts that keep every index."""
    match expr:
        case Cast(DType.INT64, operand):
            return _plain(operand)
        case _:
            return expr
