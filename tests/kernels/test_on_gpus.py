"""Every kernel for GPUs, from the sources that this machine has built: right under the emulator at
small sizes, for its first types.

All are one library, since the headers take longer to compile than a kernel does.
`tests/targets/cuda` tries many sizes, types and inputs.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from build_tools.check_kernel_list import for_gpus
from gen.language import build, choices
from gen.language.formulas import oracle
from gen.lower.index_limits import NO_LIMITS
from gen.lower.variants import suffix
from gen.targets.c.library import Compiled, variants_of
from gen.targets.cuda.emulator import library
from gen.targets.cuda.emulator.emulated import Emulated
from gen.trial.comparison import compare
from gen.trial.inputs import near, random_arrays
from gen.trial.plain import Reference
from gen.trial.sizes import kernel_dims

from ..conftest import Digests
from ..targets.cuda.made import LEVEL, built
from .support import ROOT, SPECS

NAMES = for_gpus(ROOT / "kernels_spec")


def test_digests(digests: Digests) -> None:
    """Of the device text and the host side."""
    digests(LEVEL, {name: "".join(built(name)) for name in NAMES})


def symbol(name: str) -> str:
    """How the names of all functions for a kernel's first types begin."""
    return f"ts_{name}_{suffix(choices(SPECS[name])[0])}_"


_ENTRY = re.compile(r'extern "C" __global__ void __launch_bounds__\(\d+\)\n(\w+)[^}]*\}\n')


def device_text(name: str) -> str:
    """Without the entry points of other types: what they launch is then not compiled."""
    own = symbol(name)
    return _ENTRY.sub(lambda entry: entry[0] * entry[1].startswith(own), built(name)[0])


@cache
def library_of_all() -> tuple[Path, str]:
    host = "".join(built(name)[1] for name in NAMES)
    return library.build({"k.cu": "".join(map(device_text, NAMES)), "k.c": host}), host


def sizes(name: str) -> Iterator[dict[str, int]]:
    """None, one, some, and more than a tile has."""
    spec = SPECS[name]
    plain = build(spec, choices(spec)[0])
    for wanted in ((0,), (1,), (5,), (70, 37, 19, 7, 4)):
        if found := near(spec, plain, {}, wanted, 2**16):
            yield found


def loaded(name: str) -> tuple[Emulated, Reference]:
    spec = SPECS[name]
    dtypes = choices(spec)[0]
    path, host = library_of_all()
    table = f"{symbol(name)}{LEVEL}"
    count = variants_of(host, table)
    compiled = Compiled(build(spec, dtypes), host, path, table, count, NO_LIMITS)
    return Emulated(compiled, oracle.defaults(spec)), Reference(spec, dtypes)


@pytest.mark.parametrize("name", NAMES)
def test_right_at_small_sizes(name: str) -> None:
    kernel, reference = loaded(name)
    rng = np.random.default_rng(0)
    for found in sizes(name):
        arrays = random_arrays(reference.spec, reference.dtypes, found, rng)
        assert compare(reference, kernel, arrays, found).worst <= 1, found


BESIDE = (
    "blur conv2d depthwise_conv2d gaussian grey heat2d resize sobel triangular_solve trmm unsharp"
    " unsharp_mask"
)
"""Neighbours' values are read beside tiles, with a stride, or along a diagonal."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BESIDE.split()])
def test_asks_for_what_it_needs(name: str) -> None:
    """Where rows are whole sectors long."""
    kernel, reference = loaded(name)
    spec = reference.spec
    found = near(spec, build(spec, reference.dtypes), {}, (64, 16), 2**20)
    assert found is not None
    arrays = random_arrays(spec, reference.dtypes, found, np.random.default_rng(0))
    for count in kernel.counts(arrays, kernel_dims(spec, found)):
        assert count.array not in arrays or count.asked <= 1.1 * count.needed, count
