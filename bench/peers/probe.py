"""AVX-512 by hand (`probes.c`): a yardstick for generated kernels, and no library."""

import ctypes
import os
from functools import partial
from pathlib import Path
from typing import Any

from ..native import CannotBuild, library
from ..worker import Array, Call, Maker

SOURCE = Path(__file__).parents[1] / "probes.c"
OPTIONS = ("-std=gnu11", "-fno-math-errno", "-fno-trapping-math")
SMALLEST = 1 << 16  # bytes in all: below, one would measure the call through ctypes
CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")  # of the last level: "32768K"

if os.environ.get("TILESMITH_CPU_LEVEL", "v4") != "v4":
    raise ImportError("the probes are for x86-64-v4 alone")
try:
    _probes: Any = ctypes.CDLL(str(library(SOURCE, OPTIONS)))
except (CannotBuild, OSError) as _error:
    raise ImportError(str(_error)) from None

VERSION = SOURCE.name
_cache = int(CACHE.read_text().strip().removesuffix("K")) << 10 if CACHE.exists() else 32 << 20
_threads = int(os.environ.get("OMP_NUM_THREADS", "1"))


def _with(name: str) -> Maker:
    def make(out: Array | None, *arguments: Array) -> Call | None:
        assert out is not None, "the probes fill an array that they are given"
        moved = out.nbytes + sum(x.nbytes for x in arguments)
        if moved < SMALLEST:
            return None
        dims = _dims(name, arguments)
        run = partial(
            getattr(_probes, f"probe_{name}"),
            *(ctypes.c_void_p(array.ctypes.data) for array in (out, *arguments)),
            *(ctypes.c_long(dim) for dim in dims),
            ctypes.c_int(moved > _cache // 2),  # whether to stream
            ctypes.c_int(_threads),
        )

        def call() -> Array:
            run()
            return out

        return call

    return make


def _dims(name: str, arguments: tuple[Array, ...]) -> tuple[int, ...]:
    if name == "matmul":
        (m, k), (_, n) = (x.shape for x in arguments)
        return m, n, k
    return arguments[0].shape


_names = ("matmul", "softmax", "exp", "layer_norm", "transpose", "blur", "cumsum", "sum_first")
KERNELS = {name: _with(name) for name in _names}
