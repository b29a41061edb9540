"""GPUs as a target: one line for each thing that a target supplies.

Input: an architecture. Output: what `targets.target.Target` asks for.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...errors import TilesmithError
from ...ir.nodes import Kernel
from ...ir.types import DType
from ...language import Dtypes
from ...lower.finish import Finished
from ...lower.index_limits import Limits
from ...lower.passes import Finishing, Passes
from ...schedule.rules.choose import Rules
from ...schedule.rules.lists import GPU
from ..target import CompiledFunction
from . import gpu
from .architectures import ARCHITECTURES, WARP, Architecture
from .emit import sources
from .emulator.emulated import Emulated, load
from .gpu import OnGpu
from .machine_code import of_launches
from .passes.lowering import FINISHING, LOWERING
from .passes.types import has_code_for


@final
@dataclass(frozen=True, slots=True)
class Cuda:
    """GPUs of one architecture. emulated: whether kernels are loaded into the emulator."""

    level: Architecture
    emulated: bool = False
    name: ClassVar[str] = "cuda"
    levels: ClassVar[tuple[str, ...]] = ARCHITECTURES
    usual: ClassVar[tuple[str, ...]] = (Architecture.SM_90,)
    shown: ClassVar[str] = Architecture.SM_90
    facts: ClassVar[frozenset[str]] = frozenset({"warp"})

    @classmethod
    def at(cls, level: str) -> "Cuda":
        return cls(Architecture(level))

    @classmethod
    def here(cls) -> tuple[str, ...]:
        return gpu.architectures()

    def parameters(self, dtypes: Dtypes) -> dict[str, int]:
        """warp: threads of a warp."""
        return {"warp": WARP}

    def width(self, dtypes: Dtypes) -> int:
        return WARP

    def has_code_for(self, dtype: DType) -> bool:
        return has_code_for(dtype)

    @property
    def rules(self) -> Rules:
        return GPU

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
    ) -> Emulated | OnGpu:
        symbol = f"ts_{kernel.name}_{dtypes}_{self.level}"
        if self.emulated:
            return load(kernel, symbol, sources, limits, scalars)
        return gpu.load(kernel, symbol, sources, limits, scalars)

    def emulating(self) -> "Cuda":
        return replace(self, emulated=True)

    def instructions(self, sources: Mapping[str, str]) -> tuple[CompiledFunction, ...]:
        raise TilesmithError("the target has no way to show instructions")

    def figures(self, sources: Mapping[str, str]) -> tuple[str, ...]:
        text = "".join(t for name, t in sources.items() if name.endswith(".cu"))
        return tuple(map(str, of_launches(text, self.level)))
