"""What a primitive states and the prover checks: where every read's value comes from.

A *flow* names, for each numbered read of each block of a tree, the blocks whose instances write the
value that it takes. Together with the instances' names, that fixes one writer instance a read:
the one of those blocks that writes the place, that agrees with the reader on the loops in `shared`,
and whose logical instance is the one that the spec's flow asks for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

from ..ir.nodes import Kernel


@final
@dataclass(frozen=True, slots=True)
class Source:
    """Where the value of one read comes from.

    writers: blocks that store the value; of a reduction, the block of its updates: the read takes
        the complete reduction (or, in a join, the complete partial).
    initial: some instances read what an argument held at the call.
    shared: loops around both that reader and writer run in the same iteration of. Needed where a
        value is computed redundantly; naming more is a stronger claim, and is checked.
    """

    writers: tuple[str, ...] = ()
    initial: bool = False
    shared: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Given:
    """A law that a schedule takes for granted, of reductions of the plain schedule: their blocks,
    in the order of the law's parts. From there on they are one block, of the first one's name.
    """

    law: str
    blocks: tuple[str, ...]


Flow = Mapping[tuple[str, int], Source]


@final
@dataclass(frozen=True, slots=True)
class Scheduled:
    """A tree and its certificate: what each step of a schedule takes and returns.

    laws: in the order in which they were applied. Only the base class of primitives adds to them.
    """

    kernel: Kernel
    flow: Flow
    laws: tuple[Given, ...] = ()


def proved(laws: Iterable[Given]) -> str:
    """What a proof that takes laws for granted shows, in words."""
    names = ", ".join(dict.fromkeys(given.law for given in laws))
    return f"proved given {names}" if names else "proved"
