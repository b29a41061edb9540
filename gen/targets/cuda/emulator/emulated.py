"""A kernel that the emulator runs: its host side calls, its device text is emulated.

Input: what `emit` made. Output: a `targets.target.Runnable`.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, final

from ....errors import KernelFault
from ....ir.nodes import Intent, Kernel
from ....lower.index_limits import Limits
from ...c.invocation import Number
from ...c.library import Array, Compiled, variants_of
from ...target import ArrayLayout, joined
from . import library
from .counts import AccessCount, table, weight
from .library import Emulator, Settings


@final
@dataclass(frozen=True, slots=True)
class Emulated:
    """A compiled kernel, and the defaults of its scalars."""

    compiled: Compiled
    scalars: Mapping[str, Number]
    settings: Settings = field(default_factory=Settings)
    where: ClassVar[str] = "under the emulator, which says nothing of the machine"

    @property
    def names(self) -> tuple[str, ...]:
        return self.compiled.names

    def with_scalars(self, scalars: Mapping[str, Number]) -> "Emulated":
        return replace(self, scalars=scalars)

    @property
    def machine(self) -> str:
        return "the emulator"

    def __call__(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
        self.bound(arrays, sizes)()

    def variant(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> str:
        return self.compiled.variant(arrays, self.scalars, dims=sizes)

    def bound(
        self,
        arrays: Mapping[str, Array],
        sizes: Mapping[str, int],
        scalars: Mapping[str, Number] | None = None,
        threads: int = 1,
        resident: bool = False,
    ) -> Callable[[], None]:
        return self._bound(arrays, sizes, scalars, self.settings)[0]

    def refused(
        self,
        layouts: Sequence[ArrayLayout],
        sizes: Mapping[str, int],
        scalars: Mapping[str, Number],
    ) -> dict[int, int]:
        return self.compiled.refused(layouts, scalars, sizes)

    def laid_out(
        self,
        layouts: Sequence[ArrayLayout],
        sizes: Mapping[str, int],
        scalars: Mapping[str, Number],
        threads: int,
    ) -> Callable[[Sequence[int], Mapping[str, Number]], None]:
        names = [p.buffer.name for p in self.compiled.kernel.parameters]

        def run(addresses: Sequence[int], given: Mapping[str, Number]) -> None:
            arrays = [x.at(address) for x, address in zip(layouts, addresses, strict=True)]
            self.bound(dict(zip(names, arrays, strict=True)), sizes, given, threads)()

        return run

    def counts(
        self, arrays: Mapping[str, Array], sizes: Mapping[str, int]
    ) -> tuple[AccessCount, ...]:
        """Runs the kernel, and tells what its warps asked of memory."""
        run, found = self._bound(arrays, sizes, None, replace(self.settings, counted=True))
        run()
        return tuple(found)

    def traffic(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> tuple[str, ...]:
        return tuple(table(self.counts(arrays, sizes)))

    def weight(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> float:
        return weight(self.counts(arrays, sizes))

    def _bound(
        self,
        arrays: Mapping[str, Array],
        sizes: Mapping[str, int],
        scalars: Mapping[str, Number] | None,
        settings: Settings,
    ) -> tuple[Callable[[], None], list[AccessCount]]:
        """The call, and a list that it fills."""
        kernel, emulator = self.compiled.kernel, Emulator(self.compiled.library)
        given = {**self.scalars, **(scalars or {})}
        variant, call, kept = self.compiled.prepared(arrays, given, dims=sizes, stream=False)
        outputs = [p.buffer.name for p in kernel.parameters if p.intent is Intent.OUT]
        told = " ".join(f"{name}={size}" for name, size in sizes.items())
        device, counts = emulator.device, list[AccessCount]()
        call.device = ctypes.cast(ctypes.pointer(device), ctypes.c_void_p).value

        def run(keep: object = (kept, device)) -> None:  # the call holds their addresses alone
            with emulator.memory(arrays, outputs, settings):
                match variant.run(ctypes.byref(call)):
                    case 0:
                        counts[:] = emulator.counts()
                    case library.NOT_LAUNCHED:
                        raise KernelFault(f"{kernel.name} at {told}: {emulator.error}")
                    case _:
                        raise MemoryError(f"'{kernel.name}' could not allocate its temporaries")

        return run, counts


def load(
    kernel: Kernel,
    symbol: str,
    sources: Mapping[str, str],
    limits: Limits,
    scalars: Mapping[str, Number],
) -> Emulated:
    """What `emit` made for a kernel, whose table of variants is `symbol`, compiled and loaded.
    Raises TilesmithError with the compiler's words where it refuses.
    """
    text = joined(sources)
    made = Compiled(kernel, text, library.build(sources), symbol, variants_of(text, symbol), limits)
    return Emulated(made, scalars)
