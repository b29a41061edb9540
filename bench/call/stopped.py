"""The installed package's binding, compiled once more so that a call can stop after each step.

Input: the package. Output: a module with the functions of KERNELS. `stop_at(n)` lets their calls
return after step n of STEPS; 0: they run to the end. `use(WHOLE)` has them run the package's own
machine code; `use(NOTHING)` kernels that return at once, chosen as usual; `use(ONE)` such kernels
of which there is but one variant. The binding is Cython and C from `gen/targets/cpu/runtime`, with
the package's own manifest; only the lines of STOPS are added. It is compiled into `.cache/bench`
by the options of meson.build, once for each text.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gen.binding import cython, descriptors
from gen.binding.manifest import Entry, entry_from_json
from gen.targets.runtime import RUNTIME

from .. import CACHE
from ..native import CannotBuild

KERNELS = ("exp", "clamp", "sum", "matmul", "softmax")
STEPS = ("call", "types", "sizes", "result", "overlap")
WHOLE, NOTHING, ONE = range(3)
PACKAGE = "bench_call"

# A line before which a call stops: the text of it and of those behind it that tell which it is, and
# what is added. Each stands once in the binding.
STOPS = (
    (
        "    v.kernel = kernel\n    cdef const ts_overload *overload = _exact",
        "    if _stop == 1:\n        return None\n",
    ),
    (
        "    if inputs is given:\n        result = _flat",
        "    if _stop == 2:\n        return None\n",
    ),
    (
        "    type_number = _number_of(ts_dtype_of(\n        v.overload, kernel.arguments[output]",
        "    if _stop == 3:\n        return ()\n",
    ),
    (
        "    for k in range(kernel.arguments_count):\n        if k == output:\n",
        "    if 4 <= _stop <= 5:\n        return result\n",
    ),
    (
        "    cdef list outputs = _outputs(&v, overload, inputs, axis_number, out, False)\n",
        "    if _stop == 3:\n        return None\n",
    ),
    (
        "    cdef tuple apart = inputs\n    cdef list used = outputs\n    _give_outputs(kernel",
        "    if _stop == 4:\n        return _result(outputs, out)\n",
    ),
    (
        "    if _extents_suffice(&v, outputs):\n        _run(&v, arrays",
        "    if _stop == 5:\n        return _result(outputs, out)\n",
    ),
)

FUNCTIONS = """
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer

cdef extern from *:
    int bench_use(const ts_caller_api *package, int how) nogil

cdef int _stop = 0


def stop_at(int step):
    global _stop
    _stop = step


def use(object package, int how):
    return bench_use(<const ts_caller_api *> PyCapsule_GetPointer(
        package, PyCapsule_GetName(package)), how)
"""

TABLES = """
#include "ts_engine.h"

/* The tables of variants of the descriptors, filled in by the package's. */
enum { MOST_VARIANTS = 64 };

%s

static int nothing(const ts_call *call)
{
    (void)call;
    return TS_OK;
}

/* Fills one table from the package's: how, as in stopped.py. False: it has no room. */
static bool fill(ts_variant *table, const ts_variant *from, int how)
{
    for (int i = 0; i < MOST_VARIANTS; i++) {
        table[i] = from[i];
        if (how != 0)
            table[i].run = nothing;
        if (how == 2)
            table[i].when = NULL, table[i].unit = 0;
        if (!table[i].when)
            return true;
    }
    return false;
}

__attribute__((visibility("default"))) int bench_use(const ts_caller_api *package, int how);

/* True, unless the package lacks a kernel. */
int bench_use(const ts_caller_api *package, int how)
{
    for (int k = 0; k < ts_kernels_count; k++)
        for (int i = 0; i < ts_kernels[k].overloads_count; i++) {
            const ts_overload *ours = &ts_kernels[k].overloads[i];
            const ts_overload *theirs = package->find(ours->declaration);
            for (int level = 0; theirs && level < TS_ARCHITECTURES; level++)
                if (ours->variants[level] && theirs->variants[level] &&
                    !fill((ts_variant *)ours->variants[level], theirs->variants[level], how))
                    return 0;
            if (!theirs)
                return 0;
        }
    return 1;
}
"""


def load(package: Any) -> ModuleType:
    """The module for this package, with its kernels. Raises CannotBuild."""
    entries = [entry_from_json(package.kernels()[name]) for name in KERNELS]
    texts = sources(entries)
    path = _built(texts)
    spec = importlib.util.spec_from_file_location(f"{PACKAGE}._kernels", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    use(module, package, WHOLE)
    return module


def use(module: ModuleType, package: Any, how: int) -> None:
    if not module.use(package._kernels._C_API, how):
        raise CannotBuild("the installed package is not of this checkout")


def sources(entries: Sequence[Entry]) -> dict[str, str]:
    """The texts by file name."""
    tables = descriptors.descriptors(entries)
    names = re.findall(r"extern const ts_variant (\w+)\[\]", tables)
    rooms = "\n".join(f"ts_variant {name}[MOST_VARIANTS];" for name in names)
    return {
        "_kernels.pyx": with_stops(cython.module(entries, PACKAGE, "0")),
        "ts_kernels.c": tables,
        "tables.c": TABLES % rooms,
    }


def with_stops(text: str) -> str:
    """The binding's text, where calls may stop. Raises CannotBuild where it has changed."""
    for before, added in STOPS:
        if text.count(before) != 1:
            line = before.strip().partition("\n")[0]
            raise CannotBuild(f"the binding no longer has this line once: {line}")
        text = text.replace(before, added + before)
    first, _, rest = text.partition("\n_PACKAGE = ")
    return f"{first}\n{FUNCTIONS}\n_PACKAGE = {rest}"


# ---------------------------------------------------------------- compiling


def _built(texts: dict[str, str]) -> Path:
    runtime = sorted(path for path in RUNTIME.iterdir() if path.suffix in {".c", ".h", ".pxi"})
    whole = hashlib.sha256(repr(sorted(texts.items())).encode())
    for path in runtime:
        whole.update(path.read_bytes())
    whole.update(f"{np.__version__} {sysconfig.get_config_var('EXT_SUFFIX')}".encode())
    folder = CACHE / f"call-{whole.hexdigest()[:16]}"
    built = folder / f"_kernels{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not built.exists():
        unfinished = folder.with_suffix(f".{os.getpid()}")
        unfinished.mkdir(parents=True)
        try:
            for name, text in texts.items():
                (unfinished / name).write_text(text, "utf-8")
            _compile(unfinished, built.name, [p for p in runtime if p.suffix == ".c"])
            unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return built


def _compile(folder: Path, name: str, runtime: Sequence[Path]) -> None:
    _run([sys.executable, "-m", "cython", "-3", str(folder / "_kernels.pyx")])
    compiler = os.environ.get("CC", "cc").split()
    shared = ["-fPIC", "-DNDEBUG", "-std=gnu11", "-fvisibility=hidden", f"-I{RUNTIME}", "-pthread"]
    included = [
        f"-I{np.get_include()}",
        f"-I{sysconfig.get_path('include')}",
        "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION",
    ]
    binding = str(folder / "binding.o")
    _run([*compiler, *shared, *included, "-O1", "-c", str(folder / "_kernels.c"), "-o", binding])
    ours = [str(folder / "ts_kernels.c"), str(folder / "tables.c")]
    linked = ["-shared", "-o", str(folder / name), "-lm"]
    _run([*compiler, *shared, "-O2", binding, *ours, *map(str, runtime), *linked])


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.splitlines()
        raise CannotBuild(next((line for line in lines if "error:" in line), "".join(lines[-1:])))
