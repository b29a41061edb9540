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
from ..c.library import Loaded, compiled
from ..target import CompiledFunction, joined
from .assembly import assembly
from .emit import source
from .jit import compiler_command, native_level
from .levels import LEVELS, LINE, Level, Processor
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
        line of the caches, of the largest type; line_bytes: bytes of such a line.
        """
        return {
            "lanes": min(self.machine.lanes(dtype.computed) for dtype in dtypes.values()),
            "line": LINE // max(dtype.bytes for dtype in dtypes.values()),
            "line_bytes": LINE,
        }

    def width(self, dtypes: Dtypes) -> int:
        first: DType = next(iter(dtypes.values()))
        return self.machine.lanes(first.computed)

    def has_code_for(self, dtype: DType) -> bool:
        return True

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
