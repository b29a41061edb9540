"""Whether the parts of a tuple stay together, whoever reads them.

Input: an update or a join of a tuple. Output: nothing; a Refused with a witness where, before one
of its instances, the parts do not hold the same terms. An update reads every part of what it adds
to: which index argmax keeps depends on the value that it has kept. No other block need read that
value, so that what readers take (`reduction.py`) says nothing of it. Where the parts hold the same
terms before each update, they do after it, and each is what the combiner makes of these terms.
"""

import islpy as isl

from ...ir.nodes import Update
from ..sets.order import Relations
from ..sets.statement import Access, Statement
from ..witness import Refused, Witness, partner, sample
from .flow import Computed, Identity, Values, element, through
from .reduction import Reductions, named, wrong_base


def check_tuple(update: Statement, reductions: Reductions) -> None:
    """Raises Refused where an update of a tuple finds other terms in one part than in another."""
    first, *others = update.writes
    if not others:
        return
    if _from_identity(update, reductions) and _in_step(update, reductions.run.relations):
        return
    ours = _held(first, reductions)
    for other in others:
        theirs = _held(other, reductions)
        _require_all(first, ours, other, theirs)
        _require_all(other, theirs, first, ours)


def _from_identity(update: Statement, reductions: Reductions) -> bool:
    """Whether an init starts what it adds to: that of one part, which whoever reads the part is
    sure of, is that of all parts.
    """
    origin = update.block.origin
    return origin is None or origin.block in reductions.logical.initialised


def _in_step(update: Statement, relations: Relations) -> bool:
    """Whether the same instances write the places of all parts, so that none can hold what another
    does not. Most trees are so, and this is cheaper to see than what the terms are.
    """
    first, *others = update.writes
    if any(x.free for w in update.writes for x in relations.writes(w.storage)):
        return False  # an event may be at any of several places: the pairs only may meet
    writers = dict.fromkeys(x.statement for w in update.writes for x in relations.writes(w.storage))
    for statement in writers:
        met = _meeting(first, statement, relations)
        for other in others:
            also = _meeting(other, statement, relations)
            if met is None or also is None or not met.is_equal(also):
                return False
    return True


def _meeting(write: Access, other: Statement, relations: Relations) -> isl.Map | None:
    """From the events of a part's write to those of a statement that writes its place as that part;
    None where one writes it as another part.
    """
    result = isl.Map.from_domain_and_range(write.domain, other.domain)
    result = isl.Map.empty(result.get_space())
    for w in other.writes:
        if w.storage is write.storage and w.number != write.number:
            return None
        if w.storage is write.storage:
            result = relations.meet(write, w)
    return result


Parts = dict[str, isl.Map]
"""From the events of an update to the instances of a plain block whose terms a part holds."""


def _held(write: Access, reductions: Reductions) -> Parts:
    """What a part holds before each instance of its update. Raises Refused where that is another
    part of a tuple, or does not start as the plain schedule's does.
    """
    held = reductions.holds(write, write.domain, None)
    start = _start(write, reductions)
    for value, m in held.base.items():
        wrong = m.subtract(start[value]) if value in start else m
        if not wrong.is_empty():
            raise wrong_base(write, value, wrong)
    for value, m in held.terms.items():
        if value.target != write.number:
            raise _apart(write, value.block, m, "as another part of its tuple")
    return {value.block: m for value, m in held.terms.items()}


def _start(write: Access, reductions: Reductions) -> Values:
    """What the plain reduction starts from, at each instance of an update of it."""
    body, origin = write.statement.block.body, write.statement.block.origin
    assert isinstance(body, Update)
    if origin is None or _from_identity(write.statement, reductions):
        return {Identity(body.combiner, write.number): isl.Map.from_domain(write.domain)}
    assert write.statement.origin
    keys = write.statement.origin.apply_range(reductions.logical.keys[origin.block])
    return through(keys, reductions.logical.bases[Computed(origin.block, write.number)])


def _require_all(part: Access, held: Parts, other: Access, also: Parts) -> None:
    """Refuses a term that a part holds and another does not."""
    for block, m in held.items():
        lost = m.subtract(also[block]) if block in also else m
        if not lost.is_empty():
            raise _apart(part, block, lost, f"and '{other.storage.name}' does not")


def _apart(part: Access, block: str, found: isl.Map, how: str) -> Refused:
    case = sample(found.domain())
    statement, name = part.statement, part.storage.name
    updating = statement.describe(case)
    term = f"the term {named(Computed(block, part.number), partner(found, case))}"
    return Refused(
        f"{updating} combines parts that hold different terms: '{name}' holds {term}, {how}",
        Witness(case.sizes, (updating,), name, element(part, case)),
        statement.block.span,
    )
