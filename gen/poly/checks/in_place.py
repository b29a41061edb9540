"""Which inputs may be the very array that a call gives for an output.

Input: a proved tree. Output: the pairs of an input and an output for which the result stays right
where both are one array. Only pairs of one shape and element type count, so that each element of
the one is the same element of the other. Invariant: no instance writes an element that another one
reads from the input afterwards, or in another iteration of a parallel or vectorized loop, or in
another thread of a launch with no barrier between; within one instance the reads come before the
write.
"""

from collections.abc import Iterator

from ...ir.inits import explicit_inits
from ...ir.nodes import Buffer, Intent, Kernel
from ..sets.extract import Tree, extract
from ..sets.order import Relations, unordered
from ..sets.places import Places
from ..sets.statement import Access
from ..witness import Refused
from .races import in_two_threads


def in_place(kernel: Kernel) -> frozenset[tuple[str, str]]:
    """The pairs (input, output) that may be one array; none where isl cannot say what runs."""
    alike = [
        (x.name, y.name) for x, y in _pairs(kernel) if (x.shape, x.dtype) == (y.shape, y.dtype)
    ]
    if not alike:
        return frozenset()
    try:
        tree = extract(explicit_inits(kernel))
    except Refused:
        return frozenset()
    if any(level.turned is not None for s in tree.statements for level in s.levels):
        return frozenset()  # in another order than the relations say, right for one array alone
    relations = Relations(tree)
    return frozenset(pair for pair in alike if _may_share(tree, relations, *pair))


def of_other_sizes(kernel: Kernel) -> frozenset[tuple[str, str]]:
    """The pairs (input, output) whose elements differ in size, which no call gives as one array."""
    return frozenset((x.name, y.name) for x, y in _pairs(kernel) if x.dtype.bits != y.dtype.bits)


def _pairs(kernel: Kernel) -> Iterator[tuple[Buffer, Buffer]]:
    """Every input with every output."""
    for p in kernel.parameters:
        for q in kernel.parameters:
            if p.intent is Intent.IN and q.intent is Intent.OUT:
                yield p.buffer, q.buffer


def _may_share(tree: Tree, relations: Relations, input_: str, output: str) -> bool:
    conditions = (guard for s in tree.statements for guard in s.guards)
    if any(guard.storage.name == input_ for guard in conditions):
        return False  # emitted loops ask their conditions again after their bodies have written
    reads = [r for s in tree.statements for r in s.reads if r.storage.name == input_]
    writes = Places(w for s in tree.statements for w in s.writes if w.storage.name == output)
    return not any(
        _spoils(relations, read, write)
        or _races(relations, read, write)
        or in_two_threads(tree, relations, read, write)
        for read in reads
        for write in writes.near(read)
    )


def _spoils(relations: Relations, read: Access, write: Access) -> bool:
    """Whether some element is written before it is read."""
    return not relations.earlier(read, write).is_empty()


def _races(relations: Relations, read: Access, write: Access) -> bool:
    """Whether some element is read in one iteration, and written in a later one, of a loop whose
    iterations have no order; in an earlier one, `_spoils` finds it.
    """
    meet = relations.meet(read, write)
    return any(
        not meet.intersect(later).is_empty()
        for later in unordered(relations.tree.parameters, read, write)
    )
