"""The machine's ceilings, measured in a process of its own beside the kernels that they bound.

`prepare` takes a kernel's bytes and says which streams bound it; `sample` measures one of them over
a working set of that very size. `level` does the same for a size of the table of ceilings.
"""

import ctypes
import os
from pathlib import Path
from typing import Any

from .native import CannotBuild, library
from .pipe import Reply, answer, claim_output, serve
from .worker import placed

SOURCE = Path(__file__).with_name("ceilings.c")
STREAMS = ("read", "read_four", "copy", "copy_nt", "fill", "fill_nt")
SAMPLE_SECONDS = 2e-3
SECOND_GUESS = 20e9  # bytes a second: how often a stream repeats before its speed is known


def streams_for(read: int, written: int) -> tuple[str, ...]:
    """What moves bytes in such a mix: plain reading where next to nothing is written."""
    return ("read", "read_four") if written * 16 < read else ("copy", "copy_nt")


class Ceilings:
    """The streams over one working set, and the peak of multiply-adds."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        loaded: Any = ctypes.CDLL(str(library(SOURCE)))
        self._stream, self._operations = loaded.ceiling_stream, loaded.ceiling_operations
        self._stream.restype = self._operations.restype = ctypes.c_double
        self._stream.argtypes = [
            ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long, ctypes.c_int,
        ]  # fmt: skip
        self._operations.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_int]
        self.memory = placed((0,), "uint8", 0)
        self.size = 0

    def prepare(self, read: int, written: int) -> Reply:
        self._reserve(read + written)
        return {"status": "ok", "streams": streams_for(read, written)}

    def _reserve(self, size: int) -> None:
        self.size = max(size, 4096)
        self.memory = placed((self.size,), "uint8", 0)
        self._run("fill", 1)

    def sample(self, stream: str) -> Reply:
        """Bytes a second."""
        seconds = self._run(stream, max(1, int(SAMPLE_SECONDS * SECOND_GUESS / self.size)))
        return {"status": "ok", "bandwidth": self.size / seconds}

    def level(self, size: int) -> Reply:
        """The best of a few samples of each stream over `size` bytes."""
        self._reserve(size)
        best = {s: max(self.sample(s)["bandwidth"] for _ in range(3)) for s in STREAMS}
        return {"status": "ok", "bandwidths": best}

    def peak(self, size: int) -> Reply:
        """Operations a second on elements of `size` bytes."""
        return {"status": "ok", "operations": self._operations(size, 200_000, self.threads)}

    def _run(self, stream: str, repeats: int) -> float:
        place = self.memory.ctypes.data
        kind = STREAMS.index(stream)
        seconds: float = self._stream(kind, place, self.size, repeats, self.threads)
        return seconds


def main() -> None:
    answers = claim_output()
    try:
        ceilings = Ceilings(int(os.environ["OMP_NUM_THREADS"]))
    except (OSError, CannotBuild) as error:
        answer(answers, {"status": "absent", "why": str(error)})
        return
    answer(answers, {"status": "ok", "version": "ceilings.c"})
    handlers = {n: getattr(ceilings, n) for n in ("prepare", "sample", "level", "peak")}
    serve(handlers, answers)


if __name__ == "__main__":
    main()
