"""Device text of `kernels/`, launched under the emulator."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gen.targets.cuda.emulator.counts import AccessCount
from gen.targets.cuda.emulator.library import Array, Emulator, Settings, build

KERNELS = Path(__file__).parent / "kernels"
USUAL = Settings()


def emulator(name: str, **defines: object) -> Emulator:
    """The library of a file of `kernels/`. defines: macros that it takes."""
    head = "".join(f"#define {macro} {value}\n" for macro, value in defines.items())
    return Emulator(build({f"{name}.cu": head + (KERNELS / f"{name}.cu").read_text("utf-8")}))


def launched(
    emulator: Emulator,
    symbol: str,
    grid: Sequence[int],
    block: Sequence[int],
    arguments: Mapping[str, Array | np.generic],
    outputs: Sequence[str] = ("y",),
    settings: Settings = USUAL,
) -> tuple[AccessCount, ...]:
    """Runs a kernel on named arguments, and tells what was counted."""
    arrays = {n: a for n, a in arguments.items() if isinstance(a, np.ndarray)}
    with emulator.memory(arrays, outputs, settings):
        emulator.launch(symbol, grid, block, [*arguments.values()])
        return emulator.counts()
