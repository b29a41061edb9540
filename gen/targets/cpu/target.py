"""CPUs as a target: one line for each thing that a target supplies.

Input: a level. Output: what `targets.target.Target` asks for.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn, final

from ...errors import TilesmithError
from ...ir.nodes import Kernel
from ...ir.types import DType
from ...language import Dtypes
from ...lower.finish import Finished
from ...lower.index_limits import Limits
from ...lower.lower import PASSES
from ...lower.passes import Finishing, Passes
from ...schedule.rules.choose import Rules
from ...schedule.rules.lists import PROCESSOR
from ..c.library import Loaded, compiled
from ..target import CompiledFunction, joined
from .assembly import assembly
from .emit import source
from .jit import compiler_command, native_level
from .levels import (
    CACHE,
    FEWEST_ROWS,
    LEVELS,
    LINE,
    MOST_ROWS,
    SHORT_ROW,
    STRIP,
    Level,
    Processor,
)
from .passes.finishing import finishing


@final
@dataclass(frozen=True, slots=True)
class Cpu:
    """A CPU at one level of its instruction set."""

    level: Level
    name: ClassVar[str] = "cpu"
    levels: ClassVar[tuple[str, ...]] = LEVELS
    usual: ClassVar[tuple[str, ...]] = (Level.V2, Level.V3, Level.V4)
    shown: ClassVar[str] = Level.V3
    facts: ClassVar[frozenset[str]] = frozenset({"lanes", "line", "line_bytes"})

    @classmethod
    def at(cls, level: str) -> "Cpu":
        return cls(Level(level))

    @classmethod
    def here(cls) -> tuple[str, ...]:
        best = native_level()
        if best is Level.NEON:
            return (best,)
        return LEVELS[: LEVELS.index(best) + 1]

    @property
    def machine(self) -> Processor:
        return Processor(self.level)

    def parameters(self, dtypes: Dtypes) -> dict[str, int]:
        """lanes: elements of a native vector, of the type that has the fewest; line: elements of a
        line of the caches, of the largest type; line_bytes: bytes of such a line. The others are
        of what rules write: see docs/language.md.
        """
        lanes = min(self.machine.lanes(dtype.computed) for dtype in dtypes.values())
        line = LINE // max(dtype.bytes for dtype in dtypes.values())
        parts = 2 if any(dtype.is_complex for dtype in dtypes.values()) else 1  # registers a vector
        wide = self.machine.wide_tile[1] // parts
        return {
            "lanes": lanes,
            "line": line,
            "line_bytes": LINE,
            "short_row": self._short_row(lanes, dtypes),
            "accumulators": 2 if self.level is Level.V2 else 4,
            "compared": 4 * lanes,
            "square": line if line <= 2 * lanes else 0,
            "tile_rows": self.machine.tile[0],
            "tile_vectors": self.machine.tile[1] // parts,
            "wide_rows": self.machine.wide_tile[0],
            "wide_vectors": wide,
            "line_vectors": self.machine.registers // 4 // parts,
            "cache": CACHE // max(dtype.bytes for dtype in dtypes.values()),
            "strip_vectors": STRIP // self.machine.vector_bytes,
            "wide_strips": STRIP // self.machine.vector_bytes // wide,
            "inner_rows": self.machine.inner[0],
            "inner_line": self.machine.inner[1] // parts,
        }

    def _short_row(self, lanes: int, dtypes: Dtypes) -> int:
        """0: rows as many as lanes are too many to be written out, or too few to be worth their
        code, or types are converted, which is much code for rarer calls.
        """
        sizes = {each for d in dtypes.values() for each in (d.bytes, d.computed.bytes)}
        taken = FEWEST_ROWS <= lanes <= MOST_ROWS and len(sizes) == 1
        return SHORT_ROW // max(sizes) if taken else 0

    def width(self, dtypes: Dtypes) -> int:
        first: DType = next(iter(dtypes.values()))
        return self.machine.lanes(first.computed)

    def has_code_for(self, dtype: DType) -> bool:
        return True

    @property
    def rules(self) -> Rules:
        return PROCESSOR

    @property
    def lowering(self) -> Passes:
        return PASSES

    @property
    def finishing(self) -> Finishing:
        return finishing(self.machine)

    def emit(
        self,
        kernel: str,
        variants: Mapping[str, Sequence[Finished]],
        *,
        packed: Collection[str],
        keep_marks: bool = False,
    ) -> dict[str, str]:
        text = source(kernel, variants, self.level, packed=packed, keep_marks=keep_marks)
        return {f"{kernel}.{self.level}.c": text}

    def load(
        self,
        kernel: Kernel,
        dtypes: str,
        sources: Mapping[str, str],
        limits: Limits,
        scalars: Mapping[str, complex],
    ) -> Loaded:
        symbol, command = (
            f"ts_{kernel.name}_{dtypes}_{self.level}",
            compiler_command(self.level, ()),
        )
        made = compiled(kernel, symbol, joined(sources), command, limits)
        return Loaded(made, scalars)

    def emulating(self) -> NoReturn:
        hint = "name another target, as in `--target cuda`"
        what = "kernels for cpu run as they are: there is nothing to emulate"
        raise TilesmithError(what, hint=hint)

    def instructions(self, sources: Mapping[str, str]) -> tuple[CompiledFunction, ...]:
        return assembly(joined(sources), self.level)

    def figures(self, sources: Mapping[str, str]) -> tuple[str, ...]:
        return ()
