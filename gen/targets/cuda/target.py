"""GPUs as a target: one line for each thing that a target supplies.

Input: an architecture. Output: what `targets.target.Target` asks for.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn, final

from ...errors import TilesmithError
from ...ir.nodes import Kernel
from ...language import Dtypes
from ...lower.finish import Finished
from ...lower.index_limits import Limits
from ...lower.passes import Finishing, Passes
from ..target import CompiledFunction
from .architectures import ARCHITECTURES, WARP, Architecture
from .emit import sources
from .passes.lowering import FINISHING, LOWERING


@final
@dataclass(frozen=True, slots=True)
class Cuda:
    """GPUs of one architecture."""

    level: Architecture
    name: ClassVar[str] = "cuda"
    levels: ClassVar[tuple[str, ...]] = ARCHITECTURES
    usual: ClassVar[tuple[str, ...]] = (Architecture.SM_90,)
    shown: ClassVar[str] = Architecture.SM_90

    @classmethod
    def at(cls, level: str) -> "Cuda":
        return cls(Architecture(level))

    @classmethod
    def here(cls) -> tuple[str, ...]:
        raise TilesmithError("kernels for cuda are not run yet: there is no way to load them")

    def parameters(self, dtypes: Dtypes) -> dict[str, int]:
        """warp: threads of a warp."""
        return {"warp": WARP}

    def width(self, dtypes: Dtypes) -> int:
        return WARP

    @property
    def lowering(self) -> Passes:
        return LOWERING

    @property
    def finishing(self) -> Finishing:
        return FINISHING

    def emit(
        self,
        kernel: str,
        variants: Mapping[str, Sequence[Finished]],
        *,
        packed: Collection[str],
        keep_marks: bool = False,
    ) -> dict[str, str]:
        return sources(kernel, variants, self.level, keep_marks=keep_marks)

    def load(
        self,
        kernel: Kernel,
        dtypes: str,
        sources: Mapping[str, str],
        limits: Limits,
        scalars: Mapping[str, complex],
    ) -> NoReturn:
        raise TilesmithError("kernels for cuda are not run yet: there is no way to load them")

    def instructions(self, sources: Mapping[str, str]) -> tuple[CompiledFunction, ...]:
        raise TilesmithError("the target has no way to show instructions")
