"""What a kernel has to do at given sizes, and what a schedule of it does.

Input: a tree and sizes. Output: operations and bytes. *Needed* are the operations of the plain
schedule, and each element of an input that is read and of an output that is written, once. *Done*
are those of the lowered tree: bytes of all buffers in memory, for each iteration of loops that are
neither unrolled nor vectorized; caches are not thought of. What a GPU's threads keep for themselves
or share is not memory here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

from ..ir.inits import explicit_inits
from ..ir.nodes import Intent, Kernel, Scope
from ..poly.queries.work import Amount, Moves, amount
from ..poly.witness import Refused
from .count import counts

_NEAR = (Scope.REGISTER, Scope.LOCAL, Scope.SHARED)


@final
@dataclass(frozen=True, slots=True)
class Work:
    """Operations as `count` has them, and bytes."""

    operations: int
    read: int
    written: int


def needed(plain: Kernel, sizes: Mapping[str, int]) -> Work | None:
    """None where it cannot be counted."""
    if (found := _amount(plain, sizes)) is None:
        return None
    intents = {p.buffer.name: p.intent for p in plain.parameters}

    def distinct(these: Iterable[Moves], left: Intent) -> int:
        own = (m for m in these if intents.get(m.buffer.name, left) is not left)
        return sum(m.distinct * m.buffer.dtype.bytes for m in own)

    operations = _operations(plain, found)
    return Work(operations, distinct(found.read, Intent.OUT), distinct(found.written, Intent.IN))


def done(lowered: Kernel, sizes: Mapping[str, int]) -> Work | None:
    """None where it cannot be counted."""
    if (found := _amount(lowered, sizes)) is None:
        return None

    def each(these: Iterable[Moves]) -> int:
        far = (m for m in these if m.buffer.scope not in _NEAR)
        return sum(m.each * m.buffer.dtype.bytes for m in far)

    return Work(_operations(lowered, found), each(found.read), each(found.written))


def _amount(kernel: Kernel, sizes: Mapping[str, int]) -> Amount | None:
    try:
        return amount(kernel, sizes)
    except (Refused, KeyError):
        return None


def _operations(kernel: Kernel, found: Amount) -> int:
    pairs = zip(counts(explicit_inits(kernel)), found.instances, strict=True)
    return sum(count.operations * ran for count, (_, ran) in pairs)
