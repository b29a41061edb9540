"""What a primitive states and the prover checks: where every read's value comes from.

A *flow* names, for each numbered read of each block of a tree, the blocks whose instances write the
value that it takes. Together with the instances' names, that fixes one writer instance a read:
the one of those blocks that writes the place, that agrees with the reader on the loops in `shared`,
and whose logical instance is the one that the spec's flow asks for.
"""

from collections.abc import Mapping
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


Read = tuple[str, int]
"""A read by its block and its number there."""

Flow = Mapping[Read, Source]


@final
@dataclass(frozen=True, slots=True)
class Given:
    """A law that a schedule takes for granted, of reductions of the plain schedule: their blocks,
    in the order of the law's parts. From there on they are one block, of the first one's name.
    """

    law: str
    blocks: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Tested:
    """A step after which the sources of some reads are tested: data hides them from the proof."""

    step: str
    reads: frozenset[Read]


@final
@dataclass(frozen=True, slots=True)
class Standing:
    """What vouches for a tree: the proof alone where nothing is named here. It is the same for the
    trees that follow.

    laws: in the order in which they were applied.
    """

    laws: tuple[Given, ...] = ()
    tested: tuple[Tested, ...] = ()

    @property
    def reads(self) -> frozenset[Read]:
        """The reads whose sources may be tested."""
        return frozenset(read for t in self.tested for read in t.reads)

    def __or__(self, other: "Standing") -> "Standing":
        """What vouches for two trees."""
        known: dict[str, frozenset[Read]] = {}
        for t in (*self.tested, *other.tested):
            known[t.step] = known.get(t.step, frozenset()) | t.reads
        laws = tuple(dict.fromkeys((*self.laws, *other.laws)))
        return Standing(laws, tuple(Tested(*pair) for pair in known.items()))

    def __str__(self) -> str:
        """In words: "proved", "proved given LAW", "tested", "tested given LAW"."""
        word = "tested" if self.tested else "proved"
        laws = ", ".join(dict.fromkeys(given.law for given in self.laws))
        return f"{word} given {laws}" if laws else word


PROVED = Standing()


@final
@dataclass(frozen=True, slots=True)
class Scheduled:
    """A tree and its certificate: what each step of a schedule takes and returns.

    standing: only the base class of primitives adds to it.
    """

    kernel: Kernel
    flow: Flow
    standing: Standing = PROVED

    @property
    def laws(self) -> tuple[Given, ...]:
        return self.standing.laws
