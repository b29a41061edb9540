"""The first of equal values, and of NaNs, whatever a schedule makes of the order of terms: at each
level, by vectors, lane trees, masked lanes, tails and scalar code.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from numpy.typing import NDArray

from gen import language as specs
from gen.ir.nodes import Init, Kernel
from gen.ir.types import DType
from gen.ir.walk import blocks
from gen.pipeline import schedule
from gen.poly.prove import prove
from gen.targets.cpu.jit import compile_kernel, native_level
from gen.targets.cpu.levels import Level
from gen.targets.cpu.passes.index_ties import in_order, mark
from gen.targets.cpu.target import Cpu

Array = NDArray[np.generic]

COLUMNS = """\
tilesmith: 1
kernel: am
doc: Argmax of columns.
signature: (m,n)->(n)
dtypes: {{T: [{dtype}]}}
arguments:
  x: {{type: "T[m, n]"}}
  y: {{type: "int64[n]", intent: out}}
constraints: [m >= 1]
compute: |
  y[i] = {way}(x[j, i] for j in m)
recipes:
  - target: cpu
    variants:
      - steps: {steps}
"""
DECOMPOSED = "decompose_reduction: {block: y, loop: y.i}"
LANES = "vectorize: {loop: %s, width: $lanes}"
STEPS = {
    "descending": (
        DECOMPOSED,
        'set_schedule: {block: y, map: "{ y[i, j] -> [-(j // 4), j, i] }", as: [y.o, y.jj, y.l]}',
        LANES % "y.l",
    ),
    "ascending": (
        DECOMPOSED,
        'set_schedule: {block: y, map: "{ y[i, j] -> [j // 4, j, i] }", as: [y.o, y.jj, y.l]}',
        LANES % "y.l",
    ),
    "reversed": (
        DECOMPOSED,
        "reorder: {loops: [y.j, y.i]}",
        "reverse: {loop: y.j}",
        LANES % "y.i",
    ),
    "evens and odds": (
        DECOMPOSED,
        "split: {loop: y.j, factors: [null, 2]}",
        "reorder: {loops: [y.j_1, y.j_0, y.i]}",
        LANES % "y.i",
    ),
    "peeled": (
        DECOMPOSED,
        "reorder: {loops: [y.j, y.i]}",
        "peel: {loop: y.j, at: 3}",
        LANES % "y.i",
    ),
    "in order": (DECOMPOSED, "reorder: {loops: [y.j, y.i]}", LANES % "y.i"),
    "lane trees": ("vectorize: {loop: y.j, width: $lanes}",),
    "partials": (
        "split: {loop: y.j, factors: [null, 3]}",
        "rfactor: {block: y, loop: y.j_0}",
    ),
    "plain": (),
}


IN_ORDER = {"ascending", "in order", "peeled", "partials", "plain"}


@cache
def lowered(name: str, level: Level, way: str, dtype: str) -> Kernel:
    steps = ", ".join(f"{{{step}}}" for step in STEPS[name])
    text = COLUMNS.format(dtype=dtype, way=way, steps=f"[{steps}]")
    with TemporaryDirectory() as folder:
        path = Path(folder, "am.yaml")
        path.write_text(text)
        spec = specs.load(path)
    variant, *_ = schedule(spec, {"T": DType(dtype)}, Cpu(level), prove, each_step=False)
    return variant.lowered.kernel


def columns(dtype: str) -> Iterator[Array]:
    """Equals, NaNs, zeros of both signs and extremes come first, last and between in columns."""
    random = np.random.default_rng(5)
    special: list[float]
    if np.issubdtype(dtype, np.integer):
        least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        special = [0, 1, least, most, least + 1, most - 1]
    else:
        largest = float(np.finfo(dtype).max)
        special = [0.0, -0.0, np.nan, np.inf, -np.inf, largest, -largest, 1.0]
    for m in (1, 2, 3, 4, 5, 7, 8, 9, 13):
        for value in special:
            yield np.full((m, 9), value, dtype)
        drawn = random.choice(special, (m, 37)).astype(dtype)
        yield drawn
        yield random.choice(special[:2], (m, 37)).astype(dtype)
        for k in range(m):
            drawn = random.choice(special[:2], (m, 17)).astype(dtype)
            drawn[k] = special[2]
            yield drawn
            drawn[k:] = special[3]
            yield drawn


def check(level: Level, name: str, dtype: str, way: str) -> None:
    kernel = compile_kernel(lowered(name, level, way, dtype), level, packed=())
    numpys = np.argmax if way == "argmax" else np.argmin
    for x in columns(dtype):
        y = np.full(x.shape[1], -1)
        kernel({"x": x, "y": y})
        np.testing.assert_array_equal(y, numpys(x, 0), err_msg=str(x[:, :1].T))


@pytest.mark.parametrize("name", STEPS)
def test_the_first_of_equals(level: Level, name: str) -> None:
    check(level, name, "float32", "argmax")


@pytest.mark.parametrize(
    ("dtype", "way"), [("float64", "argmin"), ("int64", "argmax"), ("uint8", "argmin")]
)
@pytest.mark.parametrize("name", ["descending", "ascending", "lane trees"])
def test_of_other_types(name: str, dtype: str, way: str) -> None:
    check(native_level(), name, dtype, way)


@pytest.mark.parametrize("name", [name for name in STEPS if name != "lane trees"])
def test_what_comes_in_order_is_told_from_what_does_not(name: str) -> None:
    kernel = mark(lowered(name, Level.V3, "argmax", "float32"))
    terms = [b for b in blocks(kernel.body) if b.origin and not isinstance(b.body, Init)]
    assert {in_order(b) for b in terms} == {name in IN_ORDER}
