"""Device text through nvcc and NVRTC, where they are: without a warning, and without spills."""

import ctypes
import ctypes.util
import sysconfig
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from gen.errors import TilesmithError
from gen.targets.cuda import compilers
from gen.targets.cuda.architectures import ARCHITECTURES, Architecture
from gen.targets.cuda.compilers import FLAGS, HEADERS, Resources, compiled, nvcc, resources

from .made import NAMES, sources

needs_nvcc = pytest.mark.skipif(nvcc() is None, reason="there is no nvcc")


@needs_nvcc
@pytest.mark.parametrize("name", NAMES)
def test_device_text_compiles_without_warnings_and_spills(name: str, tmp_path: Path) -> None:
    source = tmp_path / f"{name}.cu"
    source.write_text(sources(name)[0])
    found = compiled(source, Architecture.SM_90, tmp_path / "out.cubin")
    assert len(found) == 2 * sources(name)[0].count("template <typename index_t>")
    for entry in found:
        assert entry.registers > 0
        assert entry.spilled == 0, entry


@needs_nvcc
@pytest.mark.parametrize("architecture", [a for a in ARCHITECTURES if a != "sm_90"])
def test_every_architecture(architecture: str, tmp_path: Path) -> None:
    source = tmp_path / "softmax.cu"
    source.write_text(sources("softmax_online")[0])
    assert compiled(source, Architecture(architecture), tmp_path / "out.cubin")


def test_without_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "nvcc", lambda: None)
    with pytest.raises(TilesmithError, match="there is no nvcc"):
        compiled(tmp_path / "k.cu", Architecture.SM_90, tmp_path / "k.cubin")


def test_what_the_compiler_tells_of_entry_points() -> None:
    listing = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a_i64' for 'sm_90'
ptxas info    : Function properties for a_i64
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 2196 bytes smem
ptxas info    : Compiling entry function 'a_i32' for 'sm_90'
ptxas info    : Function properties for a_i32
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
"""
    assert list(resources(listing)) == [
        Resources("a_i64", "sm_90", 40, 20, 16, 2196),
        Resources("a_i32", "sm_90", 12, 0, 0, 0),
    ]


class Nvrtc:
    """The library that compiles without nvcc: of the Python package, or of the system."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)

    def log(self, source: str, options: Sequence[str]) -> tuple[int, str]:
        """The status and the words of compiling."""
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        text = source.encode()
        self.library.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None)
        given = [option.encode() for option in options]
        array = (ctypes.c_char_p * len(given))(*given)
        status = self.library.nvrtcCompileProgram(program, len(given), array)
        self.library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self.library.nvrtcGetProgramLog(program, log)
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return status, log.value.decode()


@cache
def nvrtc() -> Nvrtc | None:
    folder = Path(sysconfig.get_path("platlib")) / "nvidia" / "cu13" / "lib"
    for path in folder.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(path))  # which the library looks for by its name alone
    found = (*map(str, folder.glob("libnvrtc.so.*")), ctypes.util.find_library("nvrtc"))
    return next((Nvrtc(path) for path in found if path), None)


@pytest.mark.parametrize("name", NAMES)
def test_nvrtc_takes_it_too(name: str) -> None:
    library = nvrtc()
    if library is None:
        pytest.skip("there is no NVRTC")
    options = ["--gpu-architecture=sm_90", *FLAGS, *(f"-I{folder}" for folder in HEADERS)]
    assert library.log(sources(name)[0], options) == (0, "")
