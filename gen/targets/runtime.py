"""What a Python extension is made of beside its kernels: for the binding and for builds.

RUNTIME: the folder of the C and Cython that every extension compiles in. LEVELS: in the order of
its `ts_level`, which tables of kernels have, too. ARCHITECTURES: the levels behind those, which are
of GPUs. CUDA: the folder of what their sources include besides.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from .cpu.levels import LEVELS
from .cuda.architectures import ARCHITECTURES

RUNTIME = Path(__file__).parent / "cpu" / "runtime"
CUDA = Path(__file__).parent / "cuda" / "runtime"

DEVICE_HEADERS = (
    CUDA / "ts_cuda.h",
    *(
        RUNTIME / name
        for name in (
            "ts_integers.h",
            "ts_math.h",
            "ts_math_angles.h",
            "ts_math_coefficients.h",
            "ts_math_exponents.h",
            "ts_math_f32.h",
            "ts_math_f64.h",
            "ts_math_gamma.h",
            "ts_math_hyperbolic.h",
            "ts_math_more.h",
            "ts_math_more_coefficients.h",
            "ts_math_rounding.h",
            "ts_math_turns.h",
            "ts_scalar.h",
            "ts_types.h",
        )
    ),
)
"""What a GPU's source includes, for where it is compiled after it was installed."""

__all__ = ["ARCHITECTURES", "CUDA", "DEVICE_HEADERS", "LEVELS", "RUNTIME", "digest"]


def digest(files: Iterable[Path]) -> str:
    """A hash of the names and texts of files, in whatever order."""
    whole = hashlib.sha256()
    for path in sorted(files, key=lambda path: path.name):
        whole.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()
