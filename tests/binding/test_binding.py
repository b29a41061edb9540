"""Fragments to the binding: what is validated, what is written, and what refuses a name."""

import ast
import builtins
import contextlib
import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mypy.api
import pytest

from gen.binding import cython, descriptors, stubs
from gen.binding.manifest import (
    RESERVED,
    Entry,
    EntryArgument,
    EntryParameter,
    entry_from_json,
    entry_to_json,
    manifest_text,
)
from gen.commands import build
from gen.errors import TilesmithError
from gen.ir.nodes import Intent

ENTRY = Entry(
    kernel="scale",
    doc="x times factor.",
    signature="(n),()->(n)",
    types={"T": ("float32", "float64")},
    dims=("m", "n"),
    loop_dim="m",
    arguments=(
        EntryArgument("x", Intent.IN, "T", True, ("n",)),
        EntryArgument("count", Intent.IN, "int32", True, ()),
        EntryArgument("y", Intent.OUT, "T", True, ("n",), ("x",)),
    ),
    parameters=(
        EntryParameter("low", "T"),
        EntryParameter("high", "T", math.inf),
        EntryParameter("on", "bool", True),
    ),
    requires={"n": 1},
    levels=("v2", "v3"),
    details={"proof": "proved"},
)


def test_entries_survive_json_of_any_reader() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text = json.dumps(entry_to_json(ENTRY))
    assert entry_from_json(json.loads(text, parse_constant=refuse)) == ENTRY
    manifest = json.loads(manifest_text([ENTRY], "1.2"), parse_constant=refuse)
    assert manifest["version"] == "1.2"
    assert manifest["kernels"]["scale"]["details"] == {"proof": "proved"}


def test_descriptors() -> None:
    text = descriptors.descriptors([ENTRY])
    assert "extern const ts_variant ts_scale_float32_v2[];" in text
    assert '{"x", TS_IN, 0, TS_BOOL, true, 1, scale_axes_0, {0, 0}}' in text
    assert '{"count", TS_IN, -1, TS_INT32, true, 0, scale_axes_1, {0, 0}}' in text
    assert '{"y", TS_OUT, 0, TS_BOOL, true, 1, scale_axes_2, {1, 0}}' in text
    assert (
        "0, scale_types_1, {[TS_V2] = ts_scale_float64_v2, [TS_V3] = ts_scale_float64_v3}" in text
    )
    assert "const uint32_t ts_levels_built = 3;" in text


def test_descriptors_of_sizes() -> None:
    valid = replace(
        ENTRY,
        arguments=(
            EntryArgument("x", Intent.IN, "T", True, ("3 * n + 2",)),
            EntryArgument("y", Intent.OUT, "T", True, ("(n - s) // 2",)),
        ),
        parameters=(EntryParameter("s", "int64"),),
        constraints=("s <= n",),
    )
    assert valid.has_axis and valid.sizes == ("3 * n + 2", "(n - s) // 2")
    assert entry_from_json(entry_to_json(valid)) == valid
    text = descriptors.descriptors([valid])
    assert "scale_axes_0[] = {2};" in text and "scale_axes_1[] = {3};" in text
    assert (
        "scale_sizes_1[] = {{TS_DIM, 1}, {TS_SCALAR, 0}, {TS_SUB, 0}, {TS_NUMBER, 2}, "
        "{TS_FLOORDIV, 0}, {TS_END, 0}};"
    ) in text
    assert '    {"3 * n + 2", scale_sizes_0, 1, 3, 2},\n' in text
    assert '    {"(n - s) // 2", scale_sizes_1, -1, 1, 0},\n' in text
    assert '    {"s <= n", scale_constraints_0, -1, 1, 0},\n' in text
    lines = cython.docstring(valid).splitlines()
    assert "Sizes: n >= 1, s <= n." in lines


def test_documentation_has_what_the_spec_promises() -> None:
    details = {
        "follows": "numpy.multiply",
        "accuracy": {"y": "(n + 2)\n  * eps", "z": "0"},
        "example": ">>> ts.scale(1)\n1\n",
    }
    text = cython.docstring(replace(ENTRY, details=details))
    assert text.endswith(
        "num_threads : the most threads to use\n\nFollows numpy.multiply.\n"
        "y is off by at most (n + 2) * eps\nz has no error.\n\n>>> ts.scale(1)\n1\n"
    )
    assert cython.docstring(ENTRY).endswith("num_threads : the most threads to use\n")


def test_python_function() -> None:
    text = cython.module([ENTRY], "scaling", "1.2")
    signature = "def scale(x, count, axis=-1, *, low, high=float('inf'), on=True, out=None, "
    assert signature + "num_threads=None):" in text
    assert (
        "return _call(&ts_kernels[0], (x, count,), (low, high, on,), axis, out, num_threads, None)"
        in text
    )
    no_axis = replace(
        ENTRY, arguments=(*ENTRY.arguments, EntryArgument("w", Intent.IN, "T", True, ("m",)))
    )
    assert (
        "axis"
        not in cython.module([no_axis], "scaling", "1").partition("def scale")[2].partition("'")[0]
    )


def test_stubs_are_strictly_typed(tmp_path: Path) -> None:
    (tmp_path / "kernels.pyi").write_text(stubs.stubs([ENTRY]))
    (tmp_path / "use.py").write_text(
        "from kernels import scale, show_config\n"
        "scale([1.0], 2, 0, low=0.5, on=False)\n"
        "show_config('dicts')['level']\n"
        "scale([1.0], 2, low='low')  # wrong\n"
        "scale([1.0], 2)  # wrong\n"
        "scale([1.0], 2, 0.5, low=0.5)  # wrong\n"
    )
    output, _, _ = mypy.api.run(["--strict", f"--cache-dir={tmp_path}", str(tmp_path / "use.py")])
    assert [int(line) for line in re.findall(r"use\.py:(\d+): error", output)] == [4, 5, 6], output
    assert "kernels.pyi" not in output


GPU_ARRAYS = """\
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from numpy.typing import NDArray


class Tensor:  # PyTorch's: neither it nor CuPy's says that it gives NumPy's arrays
    def __dlpack__(
        self, *, stream: int | None = -1, max_version: tuple[int, int] | None = None,
        dl_device: tuple[IntEnum, int] | None = None, copy: bool | None = None,
    ) -> object: ...
    def __dlpack_device__(self) -> tuple[IntEnum, int]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


class Ndarray:  # CuPy's
    def __dlpack__(
        self, stream: int | None = None, *, max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None, copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


class DeviceNDArray:  # Numba's
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


class Other: ...
"""


def test_arrays_on_gpus_are_typed(tmp_path: Path) -> None:
    """Those of functions that have code for GPUs; results are Any, as of NumPy's own functions."""
    gpu = replace(ENTRY, kernel="there", architectures={"float32": ("sm_75",)})
    two = (*gpu.arguments, EntryArgument("z", Intent.INOUT, "T", True, ("n",)))
    both = replace(
        gpu, kernel="both", arguments=(*two, EntryArgument("w", Intent.OUT, "T", True, ("n",)))
    )
    (tmp_path / "kernels.pyi").write_text(stubs.stubs([ENTRY, gpu, both]))
    (tmp_path / "arrays.py").write_text(GPU_ARRAYS.replace(": ...", ":\n        raise ValueError"))
    (tmp_path / "use.py").write_text(
        "import numpy as np\n"
        "from arrays import DeviceNDArray, Ndarray, Other, Tensor\n"
        "from kernels import both, scale, there, warmup\n"
        "def right(a: Ndarray, t: Tensor, d: DeviceNDArray) -> Ndarray:\n"
        "    there(a, 2, low=a, on=True, out=a, workspace=a)\n"
        "    there(t, t, low=0, out=(t,))\n"
        "    there(d, 2, low=0, high=np.float64(1), out=d)\n"
        "    there([1.0], 2, low=0, out=np.ones(1))\n"
        "    both(a, 2, a, low=0, out=(a, None))\n"
        "    warmup(there, device=a)\n"
        "    result: Ndarray = there(a, 2, low=0)\n"
        "    return result\n"
        "def wrong(a: Ndarray, o: Other) -> None:\n"
        "    there(o, 2, low=0)  # wrong\n"
        "    there(a, 2, low=0, out=o)  # wrong\n"
        "    there(a, 2, low=0, out=[1.0])  # wrong\n"
        "    there(a, 2, low='0')  # wrong\n"
        "    both(a, 2, [1.0], low=0)  # wrong\n"
        "    scale(a, 2, low=0)  # wrong\n"
        "    scale([1.0], 2, low=0, out=a)  # wrong\n"
    )
    paths = [str(tmp_path / name) for name in ("use.py", "arrays.py")]
    output, _, _ = mypy.api.run(["--strict", f"--cache-dir={tmp_path}", *paths])
    wrong = [int(line) for line in re.findall(r"use\.py:(\d+): error", output)]
    assert wrong == [14, 15, 16, 17, 18, 19, 20], output
    assert "kernels.pyi" not in output


NAME_PROBLEM = "the name cannot be that of a function in the generated module"


def _and(name: str, intent: Intent, looped: bool, *core: str | int) -> dict[str, object]:
    return {"arguments": (*ENTRY.arguments, EntryArgument(name, intent, "T", looped, core))}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": "len"}, NAME_PROBLEM),
        ({"kernel": "kernels"}, NAME_PROBLEM),
        ({"kernel": "_call"}, NAME_PROBLEM),
        ({"kernel": "cdef"}, NAME_PROBLEM),
        ({"kernel": "Any"}, NAME_PROBLEM),
        ({"kernel": "Protocol"}, NAME_PROBLEM),
        ({"kernel": "Sequence"}, NAME_PROBLEM),
        ({"kernel": "ts_kernels"}, NAME_PROBLEM),
        ({"kernel": "int64_t"}, NAME_PROBLEM),
        (
            {"parameters": (EntryParameter("axis", "T"),)},
            "'axis' cannot be the name of an argument",
        ),
        (
            {"parameters": (EntryParameter("bint", "T"),)},
            "'bint' cannot be the name of an argument",
        ),
        ({"parameters": (EntryParameter("DEF", "T"),)}, "'DEF' cannot be the name of an argument"),
        (
            {"parameters": (EntryParameter("ts_kernels", "T"),)},
            "'ts_kernels' cannot be the name of an argument",
        ),
        (
            {"dims": ("m", "n", "k")},
            "no input has dim k, so that a call could not tell its extent",
        ),
        ({"levels": ("v5",)}, "unknown ISA level 'v5'"),
        ({"loop_dim": None, "dims": ("n",)}, "argument x is looped but the kernel has no loop dim"),
        (
            {"parameters": tuple(EntryParameter(f"p{k}", "T") for k in range(17))},
            "has 17 parameters; the runtime takes at most 16",
        ),
        (_and("z", Intent.OUT, False), "argument z is written but lacks the loop dim m"),
        (
            _and("z", Intent.IN, False, "k"),
            "'k' is over more than core dims, int64 scalars and numbers",
        ),
        (
            {"constraints": ("n < 9", "m < n")},
            "'m < n' is over more than core dims, int64 scalars and numbers",
        ),
        (
            {"constraints": ("low > 0",)},
            "'low > 0' is over more than core dims, int64 scalars and numbers",
        ),
        ({"constraints": (" + ".join("n" * 40),)}, f"{'n + ' * 16}... has more than 64 parts"),
        (
            {
                "arguments": (
                    *ENTRY.arguments,
                    EntryArgument(
                        "z", Intent.IN, "T", True, tuple(f"n + {k}" for k in range(1, 8))
                    ),
                    EntryArgument(
                        "u", Intent.IN, "T", True, tuple(f"2 * n + {k}" for k in range(8))
                    ),
                    EntryArgument("v", Intent.IN, "T", True, ("n // 2", "n // 3")),
                )
            },
            "has 17 sizes; the runtime takes at most 16",
        ),
        (_and("z", Intent.IN, False, *[3] * 9), "argument z has more than 8 core axes"),
        (
            {
                "arguments": tuple(
                    EntryArgument(f"x{k}", Intent.IN, "T", True, ("n",) * 8) for k in range(8)
                )
            },
            "its arrays have more than 64 axes together",
        ),
    ],
)
def test_what_cannot_be_bound(change: dict[str, object], message: str) -> None:
    data = entry_to_json(replace(ENTRY, **change))
    with pytest.raises(TilesmithError) as caught:
        entry_from_json(data)
    assert caught.value.message == f"kernel {change.get('kernel', 'scale')}: {message}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dims": "mn"}, "malformed fragment of kernel 'scale': expected a list, got 'mn'"),
        ({"types": []}, "malformed fragment of kernel 'scale': expected an object, got []"),
        (
            {"requires": {"n": "1"}},
            "malformed fragment of kernel 'scale': expected an integer, got '1'",
        ),
        ({"constraints": ["n <"]}, "'n <' is not an expression"),
        ({"constraints": ["n and n"]}, "kernel scale: 'n and n' has 'and'"),
    ],
)
def test_malformed_fragments(change: dict[str, object], message: str) -> None:
    with pytest.raises(TilesmithError) as caught:
        entry_from_json(entry_to_json(ENTRY) | change)
    assert caught.value.message == message


def test_no_kernel_takes_the_place_of_what_the_binding_calls() -> None:
    """Kernels are functions of the module that the binding is in: `len` would be the kernel."""
    words: set[str] = set()
    for path in build.RUNTIME.glob("*.pxi"):
        code = re.sub(r'""".*?"""|#[^\n]*', "", path.read_text(), flags=re.DOTALL)
        words |= set(re.findall(r"(?<![.\w])[A-Za-z]\w*", code))
    # Words of Cython's own that no kernel changes, and words inside messages.
    harmless = {"ascii", "bytes", "object", "sizeof", "all", "any", "sum", "max", "min", "abs"}
    used = {word for word in words if hasattr(builtins, word)} - harmless
    assert used <= RESERVED, used - RESERVED
    for path in build.RUNTIME.glob("*.pxi"):
        assert not re.search(r"(?<![.\w])(all|any|sum|max|min|abs)\(", path.read_text()), path


# ---------------------------------------------------------------- the build's commands


def _write_fragment(folder: Path, entry: Entry) -> Path:
    path = folder / f"{entry.kernel}.json"
    path.write_text(json.dumps(entry_to_json(entry)))
    return path


def test_merge_writes_only_what_changed(tmp_path: Path) -> None:
    fragment = _write_fragment(tmp_path, ENTRY)
    command = ["merge", str(fragment), "--package", "scaling", "--version", "1"]
    command += ["--output-dir", str(tmp_path)]
    command += ["--depfile", str(tmp_path / "binding.d")]
    assert build.main(command) == 0
    assert str(build.RUNTIME / "ts_outputs.pxi") in (tmp_path / "binding.d").read_text()
    assert '\ninclude "' not in (tmp_path / "_kernels.pyx").read_text()  # it would hold a path
    outputs = ("_kernels.pyx", "ts_kernels.c", "_kernels.pyi", "manifest.json")
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in outputs}
    _write_fragment(tmp_path, replace(ENTRY, details={"proof": "tested"}))
    assert build.main(command) == 0
    changed = {name for name in outputs if (tmp_path / name).stat().st_mtime_ns != before[name]}
    assert changed == {"manifest.json"}  # and so the binding is not compiled again


def test_merge_refuses_two_kernels_of_one_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fragment = str(_write_fragment(tmp_path, ENTRY))
    assert (
        build.main(
            ["merge", fragment, fragment, "--package", "p", "--version", "1", "--output-dir", "."]
        )
        == 1
    )
    assert capsys.readouterr().err == "error: two kernels are named scale\n"


def test_merge_refuses_two_kernels_of_one_name_in_c(tmp_path: Path) -> None:
    """`scale` for two types is `scale_float32` for one."""
    two = replace(ENTRY, types={"T": ("float32",), "U": ("int8",)})
    one = replace(ENTRY, kernel="scale_float32", types={"T": ("int8",)})
    fragments = [_write_fragment(tmp_path, entry) for entry in (two, one)]
    with pytest.raises(TilesmithError) as refused:
        build.merge(fragments, "scaling", "1", tmp_path, None)
    words = "kernels scale and scale_float32 have one name in C: scale_float32_int8"
    assert refused.value.message == words


HOSTILE = (
    *("linux", "NULL_", "object", "list", "type", "by", "gil", "nogil", "fused", "packed", "api"),
    *("self", "np_", "print_", "unicode", "len", "range", "call", "int64_t", "y0", "Any", "main"),
    *("template", "this", "register_", "M_PI", "INT64_MAX", "ts_call", "_", "size_t", "include"),
)


def test_cython_takes_every_name_that_is_not_refused(tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [{"kernel": name} for name in HOSTILE]
    for k, name in enumerate(HOSTILE):
        renamed = (replace(ENTRY.arguments[0], name=name), *ENTRY.arguments[1:])
        changes += [
            {"kernel": f"argument{k}", "arguments": renamed},
            {"kernel": f"scalar{k}", "parameters": (EntryParameter(name, "T"),)},
        ]
    entries = []
    for change in changes:
        with contextlib.suppress(TilesmithError):
            entries.append(entry_from_json(entry_to_json(replace(ENTRY, **change))))
    assert len(entries) > len(changes) // 2
    (tmp_path / "_kernels.pyx").write_text(cython.module(entries, "p", "1"))
    (tmp_path / "kernels.pyi").write_text(stubs.stubs(entries))
    command = [sys.executable, "-m", "cython", "-3", str(tmp_path / "_kernels.pyx")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    ast.parse((tmp_path / "kernels.pyi").read_text())


def test_the_order_of_fragments_does_not_matter(tmp_path: Path) -> None:
    fragments = [_write_fragment(tmp_path, replace(ENTRY, kernel=name)) for name in ("b", "a")]
    texts = []
    for order in (fragments, fragments[::-1]):
        build.merge(order, "scaling", "1", tmp_path, None)
        texts.append([(tmp_path / name).read_text() for name in ("_kernels.pyx", "ts_kernels.c")])
    assert texts[0] == texts[1]


def test_each_level_has_its_file(tmp_path: Path) -> None:
    with pytest.raises(TilesmithError) as caught:
        build.write_kernel(ENTRY, {"scale.v2.c": ""}, tmp_path)
    assert caught.value.message == (
        "kernel scale: generated ['scale.v2.c'], not ['scale.v2.c', 'scale.v3.c']"
    )
    build.write_kernel(ENTRY, {"scale.v2.c": "2", "scale.v3.c": "3"}, tmp_path)
    assert (tmp_path / "scale.v3.c").read_text() == "3"
    assert entry_from_json(json.loads((tmp_path / "scale.json").read_text())) == ENTRY


def test_the_depfile_names_spec_and_generator() -> None:
    text = build.dependencies(Path("out dir/scale.json"), [Path("my spec.yaml")])
    target, _, files = text.partition(": ")
    assert target == "out\\ dir/scale.json"
    assert files.startswith("my\\ spec.yaml ")
    assert str(Path(build.__file__)) in files and str(Path(cython.__file__)) in files


def test_runtime_sources_are_listed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["sources"]) == 0
    listed = {Path(line) for line in capsys.readouterr().out.split()}
    assert listed == set(build.RUNTIME.glob("*.c"))
    assert build.main(["includedir"]) == 0
    assert Path(capsys.readouterr().out.strip()) == build.RUNTIME


def test_generated_python_is_python() -> None:
    """The wrapper's text, but for the C address, parses: docstrings of any content included."""
    entry = replace(ENTRY, doc='Quotes """ and \\ and é.')
    wrapper = cython.module([entry], "scaling", "1").partition("def scale")
    tree = ast.parse("def scale" + wrapper[2].replace("&ts_kernels[0]", "0"))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    assert (ast.get_docstring(function) or "").startswith('Quotes """ and \\ and é.')
