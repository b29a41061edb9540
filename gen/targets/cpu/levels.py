"""ISA levels: what lowering and emission know of the machine.

Output: for a level, its lanes per element type, its registers and its compiler flags.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never, final

from ...ir.types import DType


@final
class Level(StrEnum):
    """An instruction set that a kernel is compiled for; the value is its name in symbols."""

    V2 = "v2"
    V3 = "v3"
    V4 = "v4"
    NEON = "neon"


LEVELS = tuple(level.value for level in Level)
"""All of them, in the order of `ts_level` in ts_engine.h. On x86-64 each has those before."""

LINE = 64
"""The bytes of a line of the caches."""

SHORT_ROW = 256
"""The bytes of a row of which several at once are reduced sooner: measured on v3 and v4."""

FEWEST_ROWS, MOST_ROWS = 8, 16
"""The rows that are reduced at once, written out, with a vector of registers each."""

CACHE = 8 << 20
"""The bytes of an array that is computed in bands of steps, as no cache holds it from one to the
next: measured where 32 MiB are shared by all cores."""

STRIP = 8192
"""The bytes of what is kept in the first-level cache beside what streams by."""


@final
@dataclass(frozen=True, slots=True)
class Processor:
    """A CPU at one ISA level. features: what it has beyond that, as C compilers name it."""

    level: Level
    features: frozenset[str] = frozenset()

    @property
    def vector_bytes(self) -> int:
        match self.level:
            case Level.V2 | Level.NEON:
                return 16
            case Level.V3:
                return 32
            case Level.V4:
                return 64
            case _:
                assert_never(self.level)

    @property
    def registers(self) -> int:
        """Vector registers."""
        return 32 if self.level in (Level.V4, Level.NEON) else 16

    @property
    def tile(self) -> tuple[int, int]:
        """The rows and vectors of a tile of sums that stays in registers."""
        return (8, 2) if self.registers == 32 else (6, 2)

    @property
    def wide_tile(self) -> tuple[int, int]:
        """The same, of large matrices."""
        match self.level:
            case Level.V2 | Level.V3:
                return 6, 2
            case Level.V4:
                return 6, 4
            case Level.NEON:
                return 8, 2
            case _:
                assert_never(self.level)

    @property
    def inner(self) -> tuple[int, int]:
        """The rows and columns of a tile of inner products, each a vector of partial sums."""
        match self.level:
            case Level.V2 | Level.V3:
                return 3, 4
            case Level.V4:
                return 4, 6
            case Level.NEON:
                return 4, 4
            case _:
                assert_never(self.level)

    @property
    def flags(self) -> tuple[str, ...]:
        """What a compiler needs to be told to generate code for the level."""
        match self.level:
            case Level.V2 | Level.V3 | Level.V4:
                return (f"-march=x86-64-{self.level.value}",)
            case Level.NEON:
                return ("-march=armv8-a",)
            case _:
                assert_never(self.level)

    def lanes(self, dtype: DType) -> int:
        """Elements of `dtype` in one native vector; of a complex type in two, one a part."""
        return self.vector_bytes // dtype.real.bytes
