"""One peer in a process of its own: `python -m bench.worker MODULE kept|new OFFSET`.

It makes its arrays, checks its result against float64, and times itself when it is told to. `kept`
results go into an array made once; `new` ones are allocated by each call.
"""

import importlib
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import prefer_installed
from .pipe import Reply, answer, claim_output, serve

Array = NDArray[Any]
Call = Callable[[], Any]
# From (out, *arguments), where out is None if each call is to allocate; None: not for this size.
Maker = Callable[..., Call | None]

# One sample takes at least so long: short calls are repeated.
SAMPLE_SECONDS = 200e-6


def placed(shape: tuple[int, ...], dtype: Any, offset: int, gap: int = 0) -> Array:
    """An uninitialised array whose data lie `offset` bytes past a multiple of 64, and with `gap`
    elements between its rows.
    """
    if gap and len(shape) > 1:
        whole = placed((*shape[:-1], shape[-1] + gap), dtype, offset)
        return whole[..., : shape[-1]]
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    raw = np.empty(size + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    return np.asarray(raw[start : start + size].view(dtype).reshape(shape))


def copy_of(array: Array, offset: int, gap: int) -> Array:
    copy = placed(array.shape, array.dtype, offset, gap)
    copy[...] = array
    return copy


def largest_error(result: Array, expected: Array) -> float:
    """Relative to 1 + |expected|; infinite where a result is NaN or has another shape."""
    if result.shape != expected.shape:
        return float("inf")
    if expected.size == 0:
        return 0.0
    error = np.abs(result - expected).astype(np.float64, copy=False)
    error /= 1 + np.abs(expected)
    return float(np.nan_to_num(error.max(), nan=np.inf))


def as_numpy(result: Any) -> Array:
    by_protocol = hasattr(result, "__array__") or not hasattr(result, "__dlpack__")
    return np.asarray(result) if by_protocol else np.from_dlpack(result)


class Session:
    """The kernel that was prepared last, and how often one sample calls it."""

    def __init__(
        self, kernels: Mapping[str, Maker], results: str, offset: int, how: Callable[[], str]
    ) -> None:
        self.kernels = kernels
        self.how = how
        self.results = results
        self.offset = offset
        self.call: Call | None = None
        self.batch = 0

    def prepare(
        self, kernel: str, folder: str, limit: float, offset: int | None, gap: int
    ) -> Reply:
        """Load the arguments, call once, and compare. The call's own preparations happen here.

        offset: of this case's arrays, if it has one; gap: between the rows of its arguments.
        """
        offset = self.offset if offset is None else offset
        self.call, self.batch = None, 0
        if kernel not in self.kernels:
            return {"status": "none"}
        files = sorted(Path(folder).glob("argument*.npy"))
        arguments = [copy_of(np.load(file, mmap_mode="r"), offset, gap) for file in files]
        expected = np.load(Path(folder) / "expected.npy", mmap_mode="r")
        dtype = np.float32 if expected.dtype == np.float64 else expected.dtype
        out = None if self.results == "new" else placed(expected.shape, dtype, offset)
        if out is not None:
            out[...] = -1
        call = self.kernels[kernel](out, *arguments)
        if call is None:
            return {"status": "none"}
        error = largest_error(as_numpy(call()), expected)
        if error > limit:
            return {"status": "wrong", "error": error}
        self.call = call
        return {"status": "ok", "error": error, "how": self.how()}

    def sample(self) -> Reply:
        """Seconds a call, after one that is not timed: it wakes threads and fills caches."""
        call = self.call
        assert call is not None, "sampled before it was prepared"
        call()
        if not self.batch:
            self.batch = max(1, int(SAMPLE_SECONDS / self._seconds(call, 1)))
        return {"status": "ok", "seconds": self._seconds(call, self.batch)}

    @staticmethod
    def _seconds(call: Call, times: int) -> float:
        start = time.perf_counter_ns()
        for _ in range(times):
            call()
        return (time.perf_counter_ns() - start) / times / 1e9


def main() -> None:
    module, results, offset = sys.argv[1:]
    answers = claim_output()
    prefer_installed()
    try:
        peer = importlib.import_module(module)
    except ImportError as error:
        answer(answers, {"status": "absent", "why": str(error)})
        return
    how = getattr(peer, "how", lambda: "")  # how its latest call ran
    session = Session(peer.KERNELS, results, int(offset), how)
    answer(answers, {"status": "ok", "version": peer.VERSION})
    serve({"prepare": session.prepare, "sample": session.sample}, answers)


if __name__ == "__main__":
    main()
