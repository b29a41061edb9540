"""CUDA C++ compiled by g++ into a shared library, and that library's functions.

Input: device text, and the host side's C where there is one. Output: a library, from the cache if
it is there. The C++ compiler is the one that `CXX` names (else `c++`): g++ 11 or later, or one that
takes what that takes.
"""

import ctypes
import hashlib
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from ....cache import cache_folder
from ....errors import KernelFault, TilesmithError
from ...c import library as host
from ...runtime import CUDA, RUNTIME
from ..compilers import HOST_FLAGS
from .counts import AccessCount

ENGINE = Path(__file__).parent / "runtime"

FLAGS = (
    "-std=gnu++20",
    "-O1",
    "-fPIC",
    "-pthread",
    "-ffp-contract=off",  # what is rounded is rounded as on a GPU
    "-fno-math-errno",
    "-fno-strict-aliasing",
    "-fno-exceptions",
    "-fno-rtti",
    "-DTS_EMULATED",
    f"-I{ENGINE}",
    f"-I{CUDA}",
    f"-I{RUNTIME}",
)

Array = NDArray[np.generic]

NOT_LAUNCHED = 4
"""The status of a launch that went wrong (TS_NOT_LAUNCHED)."""


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """seed: of the order in which threads run. watched: whether races are found, and reads of what
    nothing has written. counted: whether accesses are counted. off: the barriers, by number, that
    threads pass as if they were not there.
    """

    seed: int = 0
    watched: bool = True
    counted: bool = False
    off: frozenset[int] = frozenset()


class _Device(ctypes.Structure):
    """ts_device of ts_abi.h."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("launch", "reserve", "is_zero"))


class _Count(ctypes.Structure):
    """ts_count of ts_emulator_counts.h."""

    _fields_ = (
        ("launch", ctypes.c_char_p),
        ("array", ctypes.c_char_p),
        *((n, ctypes.c_uint64) for n in ("instructions", "idle", "asked", "needed")),
        *((n, ctypes.c_uint64) for n in ("passes", "conflicts")),
        *((n, ctypes.c_uint32) for n in ("site", "bytes", "shared", "write")),
    )


@final
@dataclass(frozen=True, slots=True)
class Emulator:
    """A library of kernels under the emulator. It runs one call at a time."""

    path: Path

    @contextmanager
    def memory(
        self, arrays: Mapping[str, Array], unwritten: Collection[str], settings: Settings
    ) -> Iterator[None]:
        """While it lasts, launches may follow pointers into these arrays, and into no others.

        unwritten: those whose elements kernels may read only where they have written them; they
        are filled with what stands out.
        """
        library, off = host.opened(self.path), sorted(settings.off)
        library.ts_emulator_set(
            ctypes.c_uint64(settings.seed), int(settings.watched), int(settings.counted)
        )
        library.ts_emulator_switch(-1, 0)
        for number in off:
            library.ts_emulator_switch(number, 1)
        library.ts_emulator_forget()
        told = pieces(arrays, unwritten)
        for name in unwritten:
            if any(piece.name == name and not piece.written for piece in told):
                poison(arrays[name])
        for piece in told:
            library.ts_emulator_memory(
                ctypes.c_void_p(piece.low),
                ctypes.c_size_t(piece.bytes),
                ctypes.c_uint(piece.item),
                int(piece.written),
                piece.name.encode(),
            )
            for offsets in piece.elements:
                library.ts_emulator_elements(
                    offsets.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(offsets.size)
                )
        try:
            yield
        finally:
            library.ts_emulator_forget()

    @property
    def device(self) -> ctypes.Structure:
        """What a call's host side starts launches through."""
        library = host.opened(self.path)
        names = ("launch", "reserve", "is_zero")
        functions = (getattr(library, f"ts_emulator_{name}") for name in names)
        return _Device(*(ctypes.cast(f, ctypes.c_void_p).value for f in functions))

    @property
    def error(self) -> str:
        """What went wrong in the last launch; empty where nothing did."""
        library = host.opened(self.path)
        library.ts_emulator_error.restype = ctypes.c_char_p
        return str(library.ts_emulator_error().decode())

    def launch(
        self,
        symbol: str,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[Array | np.generic],
    ) -> None:
        """Runs a kernel. Arrays are given by the address of element 0, scalars by their value.
        Raises KernelFault, with the place in the text, for all that the emulator finds.
        """
        values = [np.asarray(a) if isinstance(a, np.generic) else _address(a) for a in arguments]
        parameters = (ctypes.c_void_p * len(values))(*(v.ctypes.data for v in values))
        three = ctypes.c_uint32 * 3
        launch = host.opened(self.path).ts_emulator_launch
        if launch(None, symbol.encode(), three(*grid), three(*block), parameters):
            raise KernelFault(self.error)

    def counts(self) -> tuple[AccessCount, ...]:
        """What was counted since `memory` began."""
        library = host.opened(self.path)
        library.ts_emulator_counts.restype = ctypes.c_size_t
        room = library.ts_emulator_counts(None, ctypes.c_size_t(0))
        found = (_Count * room)()
        library.ts_emulator_counts(found, ctypes.c_size_t(room))
        return tuple(
            AccessCount(
                c.launch.decode(),
                c.array.decode(),
                c.site >> 12,
                c.site & 4095,
                bool(c.shared),
                bool(c.write),
                *(c.bytes, c.instructions, c.idle, c.asked, c.needed, c.passes, c.conflicts),
            )
            for c in found
        )


def _address(array: Array) -> Array:
    return np.asarray(array.ctypes.data, np.uint64)


# ---------------------------------------------------------------- memory


@final
@dataclass(frozen=True, slots=True)
class Piece:
    """Memory from the lowest byte of an array to its highest, or of several that overlap. arrays:
    those, which may have gaps.
    """

    name: str
    low: int
    bytes: int
    item: int
    written: bool
    arrays: tuple[Array, ...] = field(compare=False, repr=False)

    @property
    def elements(self) -> Iterator[NDArray[np.int64]]:
        """The offsets of the arrays' elements in bytes, where these do not fill the memory."""
        if sum(a.nbytes for a in self.arrays) >= self.bytes:
            return
        for array in self.arrays:
            offsets = np.full(array.shape, array.ctypes.data - self.low, np.int64)
            for axis, (size, step) in enumerate(zip(array.shape, array.strides, strict=True)):
                along = np.arange(size, dtype=np.int64) * step
                offsets += along.reshape((-1,) + (1,) * (array.ndim - axis - 1))
            yield offsets


def pieces(arrays: Mapping[str, Array], unwritten: Collection[str]) -> list[Piece]:
    """The arrays' memory. Those that overlap are one piece, since a pointer does not say which of
    them it came from.
    """
    found: list[Piece] = []
    for name, array in arrays.items():
        if array.size:
            low, high = byte_bounds(array)
            own = Piece(name, low, high - low, array.itemsize, name not in unwritten, (array,))
            together = [p for p in found if low < p.low + p.bytes and p.low < high]
            found = [*(p for p in found if p not in together), _union([*together, own])]
    return found


def _union(parts: Sequence[Piece]) -> Piece:
    low, high = min(p.low for p in parts), max(p.low + p.bytes for p in parts)
    name, item = "/".join(p.name for p in parts), min(p.item for p in parts)
    arrays = tuple(array for p in parts for array in p.arrays)
    return Piece(name, low, high - low, item, any(p.written for p in parts), arrays)


def poison(array: Array) -> None:
    """Fills an array with NaN, or with bits that are all set."""
    if array.dtype.kind in "fcV":
        array[...] = np.nan
    else:
        array[...] = np.frombuffer(b"\xff" * array.itemsize, array.dtype)[0]


# ---------------------------------------------------------------- compiling

_ENTRY = re.compile(
    r'extern\s+"C"\s+__global__\s+(?:void\s+)?__launch_bounds__\((\d+)[^)]*\)\s+(?:void\s+)?(\w+)\s*\('
)


def with_entries(text: str) -> str:
    """Device text with the table of its entry points, which launches look symbols up in."""
    rows = [
        f'    {{"{name}", [](void **parameters) {{ ts_unpack({name}, parameters); }}, {threads}}},'
        for threads, name in _ENTRY.findall(text)
    ]
    table = ['extern "C" const ts_entry ts_emulator_entries[] = {', *rows, "    {}", "};", ""]
    return "\n".join((text, *table))


def build(sources: Mapping[str, str]) -> Path:
    """The library of a kernel's sources, by file name: `.cu` is device text, `.c` the host side.
    Raises TilesmithError with the compiler's words where it refuses.
    """
    device = with_entries("".join(t for name, t in sources.items() if name.endswith(".cu")))
    c = "".join(text for name, text in sources.items() if name.endswith(".c"))
    command, host_command = _compiler(), host.compiler_command(HOST_FLAGS)
    key = "\0".join((device, c, CHECKS, *command, *host_command, _digest()))
    library = cache_folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"
    if library.exists():
        return library
    engine = _engine()
    with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
        folder = Path(scratch)
        (folder / "kernel.cu").write_text(device, "utf-8")
        (folder / "host.c").write_text(c, "utf-8")
        _run([*command, CHECKS, "-x", "c++", "-c", "kernel.cu", "-o", "kernel.o"], folder)
        _run([*host_command, "-c", "host.c", "-o", "host.o"], folder)
        linked = ["-shared", "kernel.o", "host.o", str(engine), "-o", "kernel.so", "-lm"]
        _run([*command, *linked], folder)
        (folder / "kernel.so").replace(library)
    return library


CHECKS = "-fsanitize=bounds,signed-integer-overflow,shift,integer-divide-by-zero"
"""Of device text alone; the engine has the functions that they call."""


def _compiler() -> tuple[str, ...]:
    return (*shlex.split(os.environ.get("CXX", "c++")), *FLAGS, "-Wno-unknown-pragmas")


def _engine() -> Path:
    """The engine's object file, from the cache if it is there."""
    command = (*_compiler(), "-O2")
    key = "\0".join((*command, _digest()))
    made = cache_folder() / f"emulator-{hashlib.sha256(key.encode()).hexdigest()[:32]}.o"
    if not made.exists():
        cache_folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
            _run([*command, "-c", str(ENGINE / "ts_emulator.cpp"), "-o", "e.o"], Path(scratch))
            Path(scratch, "e.o").replace(made)
    return made


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise TilesmithError(
            f"there is no C++ compiler {command[0]!r}, which the emulator needs: install g++ 11 or"
            " later, or name another by CXX"
        ) from None
    if done.returncode:
        raise TilesmithError(f"the compiler refused what the emulator is to run:\n{done.stderr}")


def _digest() -> str:
    digest = hashlib.sha256()
    for folder in (ENGINE, CUDA, RUNTIME):
        for path in sorted(folder.glob("ts_*")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
