"""Device text through nvcc and NVRTC, where they are: without a warning, without spills, and with
the arithmetic that the emulator has.
"""

import ctypes
import ctypes.util
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from gen.errors import TilesmithError
from gen.targets.cuda import compilers
from gen.targets.cuda.architectures import ARCHITECTURES, Architecture
from gen.targets.cuda.compilers import FLAGS, HEADERS, Resources, compiled, nvcc, resources, run
from gen.targets.cuda.machine_code import machine_code, with_registers
from gen.targets.runtime import RUNTIME

from .emulated_kernels import EMULATED
from .made import AS_BUILT, ELEMENTWISE, SHIPPED, built, sources

BRINGS = ": pip install --group cuda brings it"
needs_nvcc = pytest.mark.skipif(nvcc() is None, reason=f"there is no nvcc{BRINGS}")

TOGETHER = {name: (name,) for name in EMULATED if name not in ELEMENTWISE}
TOGETHER["elementwise"] = ELEMENTWISE  # what they include takes most of the time
COMPILED = [
    *TOGETHER,
    *(pytest.param(n, marks=pytest.mark.thorough) for n in AS_BUILT if n not in ELEMENTWISE),
]

CALLS = re.compile("ts_(sin|cos)_float(32|64)_")
"""Large angles are a function that is called, and a call has a frame."""


def device_text(*names: str) -> str:
    """For all dtypes; of shipped kernels as they are built."""
    return "".join((built if name in SHIPPED else sources)(name)[0] for name in names)


@needs_nvcc
@pytest.mark.parametrize("name", COMPILED)
def test_device_text_compiles_without_warnings_and_spills(name: str, tmp_path: Path) -> None:
    """For all dtypes: machine code of sm_90, and PTX."""
    source, text = tmp_path / f"{name}.cu", device_text(*TOGETHER.get(name, (name,)))
    source.write_text(text)
    code = ("-gencode", "arch=compute_90,code=[sm_90,compute_90]", "-fatbin")
    to = ("-o", str(tmp_path / "out.fatbin"))
    found = with_registers(source, ("-Werror", "all-warnings", *code, *to), HEADERS)
    assert len(found) == 2 * text.count("template <typename index_t>")
    for entry in found:
        assert entry.registers > 0
        assert entry.spilled == 0, entry
        assert entry.stack == 0 or CALLS.match(entry.name), entry


@needs_nvcc
@pytest.mark.parametrize("name", ["gelu", "transpose", "matmul"])
def test_every_architecture(name: str, tmp_path: Path) -> None:
    """As packages are made: nothing is kept that spills."""
    source = tmp_path / f"{name}.cu"
    source.write_text(device_text(name))
    functions = machine_code(source, ARCHITECTURES[0], tmp_path / "out.fatbin", tmp_path)
    assert len(functions) == source.read_text().count('extern "C" __global__') > 1
    assert all(found.keys() == {*ARCHITECTURES} for found in functions.values())


@needs_nvcc
def test_what_nvcc_warns_of_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text('extern "C" __global__ void k(int n) { int unused = n; }')
    with pytest.raises(TilesmithError, match=r"nvcc refuses k\.cu: (?s:.*)unused"):
        compiled(source, Architecture.SM_90, tmp_path / "k.cubin")


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

    def compiled(self, source: str, options: Sequence[str]) -> tuple[str, str]:
        """The words of compiling, and PTX."""
        program, text = ctypes.c_void_p(), source.encode()
        self.library.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None)
        given = [option.encode() for option in options]
        array = (ctypes.c_char_p * len(given))(*given)
        status = self.library.nvrtcCompileProgram(program, len(given), array)
        words = self._told(program, "ProgramLog")
        assert status == 0, words
        ptx = self._told(program, "PTX")
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return words, ptx

    def _told(self, program: ctypes.c_void_p, what: str) -> str:
        size = ctypes.c_size_t()
        self.library[f"nvrtcGet{what}Size"](program, ctypes.byref(size))
        found = ctypes.create_string_buffer(size.value)
        self.library[f"nvrtcGet{what}"](program, found)
        return found.value.decode()


@cache
def nvrtc() -> Nvrtc | None:
    folders = [Path(folder, "nvidia", "cu13", "lib") for folder in sys.path]
    folder = next(filter(Path.exists, folders), Path())
    for path in folder.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(path))  # which the library looks for by its name alone
    found = (*map(str, folder.glob("libnvrtc.so.*")), ctypes.util.find_library("nvrtc"))
    return next((Nvrtc(path) for path in found if path), None)


def through_nvrtc(text: str) -> tuple[str, str]:
    """The words and PTX, with the options that a package has for it (ts_gpu.pxi)."""
    if (library := nvrtc()) is None:
        pytest.skip(f"there is no NVRTC{BRINGS}")
    own = (RUNTIME / "ts_gpu.pxi").read_text("utf-8").partition("cdef tuple _options(")[2]
    options = re.findall(r'"(--[^"]+)"', own.partition("\n\n\n")[0])
    assert "--fmad=false" in options
    folders = (f"-I{folder}" for folder in HEADERS)
    return library.compiled(text, ["--gpu-architecture=sm_90", *options, *folders])


INEXACT = re.compile(r"\.(ftz|approx|full)\b")
"""Of PTX's instructions: the smallest numbers taken for 0; divisions, roots and more that are not
rounded as they should be."""


@pytest.mark.thorough  # nvcc, which has the same front end, compiles them above
@pytest.mark.parametrize("name", COMPILED)
def test_nvrtc_takes_it_too(name: str) -> None:
    """Without a warning; and what comes of it is exact arithmetic."""
    words, ptx = through_nvrtc(device_text(*TOGETHER.get(name, (name,))))
    assert words == ""
    assert ptx.count(".entry") > 1
    assert not INEXACT.search(ptx)


# ---------------------------------------------------------------- arithmetic

PROBE = """\
#include "ts_cuda.h"
extern "C" __global__ void __launch_bounds__(1) probe(ELEMENT *x)
{
    x[0] = x[1] / x[2];
    x[3] = ROOT(x[4]);
    x[5] = x[6] * x[7] + x[8];
}
"""


def assert_exact(ptx: str, dtype: str) -> None:
    """Divisions and roots are rounded to nearest, products by themselves; no number is flushed."""
    assert re.search(rf"\bdiv\.rn\.{dtype}\b", ptx)
    assert re.search(rf"\bsqrt\.rn\.{dtype}\b", ptx)
    assert re.search(rf"\bmul(\.rn)?\.{dtype}\b", ptx)
    assert not re.search(rf"\bfma\b.*\.{dtype}\b", ptx)
    assert not INEXACT.search(ptx)


TYPES = pytest.mark.parametrize(
    ("ctype", "root", "dtype"), [("float", "sqrtf", "f32"), ("double", "sqrt", "f64")]
)


@TYPES
def test_nvrtc_s_arithmetic(ctype: str, root: str, dtype: str) -> None:
    _, ptx = through_nvrtc(f"#define ELEMENT {ctype}\n#define ROOT {root}\n{PROBE}")
    assert_exact(ptx, dtype)


@needs_nvcc
@TYPES
def test_nvcc_s_arithmetic(ctype: str, root: str, dtype: str, tmp_path: Path) -> None:
    source, ptx = tmp_path / "probe.cu", tmp_path / "probe.ptx"
    source.write_text(PROBE)
    options = ("-arch=compute_90", f"-DELEMENT={ctype}", f"-DROOT={root}", "-ptx", "-o", str(ptx))
    run(source, options, HEADERS)
    assert_exact(ptx.read_text(), dtype)
    run(source, ("--use_fast_math", *options), HEADERS)
    if dtype == "f32":  # and it would be seen
        with pytest.raises(AssertionError):
            assert_exact(ptx.read_text(), dtype)


def test_no_flag_makes_arithmetic_fast() -> None:
    assert "--fmad=false" in FLAGS
    assert not re.search("fast|ftz|prec-", " ".join(FLAGS))  # whose defaults are exact
