"""Reads of which data hides where their value comes from.

Input: a read of an execution, whose source the proof has refused. Output: whether that may be for
want of the data, which decides what element it is, whether its value counts, or which writes count,
so that the proof has to take all of them. Only then may a test stand in for the proof of its
source; and not where an element may be read before anything is written there.
"""

from collections.abc import Iterator

import islpy as isl

from ...ir.nodes import Intent, Load, Node, Select, Store
from ...ir.walk import children, loads
from ..sets.affine import Frame, NotAffine, region
from ..sets.statement import Access
from ..values.flow import Logical
from ..values.roles import Execution
from ..witness import Refused, sample

OFFER = (
    "data hides where the value comes from; with `tested: true` the step is compared with the spec"
    " by the interpreter, and the kernel is called tested, not proved"
)


def testable(read: Access, run: Execution, refused: Refused) -> bool:
    """Whether a test may tell what the proof, which refused the read, does not. The refusal then
    gets `hidden`, and a hint.
    """
    if not (_counts_by_data(read) or any(map(_keeps_by_data, _writes(read, run)))):
        return False
    early = _unwritten(read, run)
    if not early.is_empty():
        instance = read.statement.describe(sample(early))
        refused.hint = (
            f"data decides what is read, but no test can stand in for the proof: {instance} may"
            f" read '{read.storage.name}' before it is written"
        )
        return False
    refused.hidden = (read.statement.name, read.number)
    refused.hint = refused.hint or OFFER
    return True


Meeting = tuple[str, str, str, bool]
"""A reader, a buffer, a block that writes it, and whether that writes an element later than it is
read, or makes what is read.
"""


def meetings(logical: Logical) -> frozenset[Meeting]:
    """What data decides of the plain schedule: which blocks may meet by reads that it hides. A test
    in which they do not meet says nothing of their order.
    """
    result: set[Meeting] = set()
    relations = logical.relations
    for (name, number), last in logical.writers.items():
        read = logical.blocks[name].reads[number]
        writes = [w for w in relations.writes(read.storage) if w.statement.block.origin]
        if not (_counts_by_data(read) or any(map(_keeps_by_data, writes))):
            continue
        for w in writes:
            meeting = name, read.storage.name, w.statement.name
            if w in last:
                result.add((*meeting, False))
            if not relations.earlier(w, read).is_empty():
                result.add((*meeting, True))
    return frozenset(result)


def _writes(read: Access, run: Execution) -> tuple[Access, ...]:
    return run.relations.writes(read.storage)


def _counts_by_data(read: Access) -> bool:
    """Whether data decides of which element the read is, or whether its value is used."""
    statement = read.statement
    if read.free or statement.opaque:
        return True
    return read.number in set(_in_sides(statement.block.body, statement.at, False, 0))


def _in_sides(node: Node, at: Frame, inside: bool, first: int) -> Iterator[int]:
    """The numbers of the loads in sides of a Select whose condition data decides."""
    if isinstance(node, Load):
        if inside:
            yield first
        first += 1
    decided = isinstance(node, Select) and _by_data(node, at)
    for position, child in enumerate(children(node)):
        yield from _in_sides(child, at, inside or (decided and position > 0), first)
        first += len(loads(child))


def _by_data(select: Select, at: Frame) -> bool:
    try:
        region(select.condition, at)
    except NotAffine:
        return bool(loads(select.condition))
    return False


def _keeps_by_data(write: Access) -> bool:
    """Whether data decides that the write leaves the element as it was."""
    match write.statement.block.body:
        case Store(target, Select() as value) if _by_data(value, write.statement.at):
            sides = (value.then, value.otherwise)
            return any(
                isinstance(s, Load) and (s.buffer, s.indices) == (target.buffer, target.indices)
                for s in sides
            )
        case _:
            return bool(write.statement.opaque)


def _unwritten(read: Access, run: Execution) -> isl.Set:
    """The events of the read before which nothing has surely been written to the place."""
    parameter = read.storage.parameter
    rest = read.domain
    if parameter is not None and parameter.intent is not Intent.OUT:
        return isl.Set.empty(rest.get_space())
    for w in _writes(read, run):
        if not (w.free or w.statement.opaque):
            rest = rest.subtract(run.relations.earlier(read, w).domain())
    return rest
