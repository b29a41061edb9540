"""The header and the .pxd of a package: names, declarations, comments."""

import subprocess
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from gen.binding import header
from gen.binding.descriptors import declaration
from gen.binding.manifest import EntryArgument, EntryParameter
from gen.commands import build
from gen.ir.nodes import Intent

from .test_binding import ENTRY

SCALE = "scale(in float32 (n), in int32 (), out float32 (n), float32, float32, bool)"


def test_a_declaration_is_all_that_callers_depend_on() -> None:
    types = {"T": "float32"}
    assert declaration(ENTRY, types) == SCALE
    assert declaration(replace(ENTRY, doc="Another.", requires={}), types) == SCALE
    longer = replace(ENTRY, parameters=(*ENTRY.parameters, EntryParameter("k", "int64")))
    assert declaration(longer, types) == SCALE.replace(", bool)", ", bool, int64)")


def test_functions_of_a_header() -> None:
    text = header.header([ENTRY], "some.pack")
    assert f'    {{"{SCALE}", 0}},\n' in text
    assert (
        "/* x times factor.\n\n"
        "   x: float32 (..., n)\n"
        "   count: int32 (...)\n"
        "   y: float32 (..., n), out; may be x\n"
        "   low: a scalar\n"
        "   high: inf by default in Python\n"
        "   on: True by default in Python\n"
        "   Sizes: n >= 1 */\n"
        "static inline int some_pack_scale_float32(const ts_array *x, const ts_array *count, "
        "const ts_array *y, float low, float high, bool on, int num_threads)\n{\n"
        "    const ts_array *const _arrays[] = {x, count, y};\n"
        "    const void *const _scalars[] = {&low, &high, &on};\n"
        "    return some_pack_call(0, _arrays, _scalars, num_threads);\n}\n"
    ) in text
    assert 'PyImport_ImportModule("some.pack._kernels")' in text
    assert "int some_pack_scale_float64(" in header.pxd([ENTRY], "some.pack")


def test_names_that_c_has_taken() -> None:
    entry = replace(
        ENTRY, parameters=(EntryParameter("double", "T"), EntryParameter("register", "uint8"))
    )
    text = header.header([entry], "p")
    assert "double double_, uint8_t register_, int num_threads)" in text
    assert "{&double_, &register_}" in text and "   register_: a scalar" in text


HOSTILE = (
    *("double", "int64_t", "uint8_t", "bool", "ts_array", "NULL", "INT64_MAX", "M_PI", "linux"),
    *("st_atime", "Py_None", "template", "this", "cdef", "nogil", "p_call", "p_functions", "main"),
    *("linux_", "x", "y0", "v_x"),
)


@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_whatever_arguments_are_named(compiler: str, tmp_path: Path) -> None:
    """A header with hostile names compiles, and each argument has a name of its own."""
    arrays = tuple(EntryArgument(name, Intent.IN, "T", True, ("n",)) for name in HOSTILE)
    scalars = tuple(EntryParameter(f"{name}0", "bool") for name in HOSTILE)
    first, second = (
        replace(ENTRY, kernel="k", arguments=(*arrays, ENTRY.arguments[2]), parameters=scalars),
        replace(ENTRY, kernel="l", parameters=tuple(EntryParameter(n, "uint8") for n in HOSTILE)),
    )
    source = tmp_path / ("use.c" if compiler == "cc" else "use.cpp")
    source.write_text(header.header([first, replace(second, arguments=ENTRY.arguments[2:])], "p"))
    flags = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
    include = f"-I{sysconfig.get_path('include')}"
    done = subprocess.run(
        [compiler, *flags, include, str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:2000]


def test_complex_scalars() -> None:
    entry = replace(ENTRY, types={"T": ("complex64", "complex128")})
    assert "ts_complex64 low" in header.header([entry], "p")
    assert "ts_complex128 low" in header.pxd([entry], "p")


def test_a_comment_does_not_end_early() -> None:
    assert "/* x */" not in header.header([replace(ENTRY, doc="x */ int y;")], "p")
    assert "\n/* / * x\n" in header.header([replace(ENTRY, doc="/* x")], "p")


def test_a_package_needs_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a-b", "", "a..b", "é"):
        command = ["merge", "none.json", "--package", name, "--version", "1", "--output-dir", "."]
        assert build.main(command) == 1
        assert capsys.readouterr().err == f"error: {name!r} cannot be the name of a package\n"
