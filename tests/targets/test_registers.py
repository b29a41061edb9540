"""Register buffers become vectors at constant places, or local arrays."""

import numpy as np
import pytest

from gen.ir.text.printer import to_text
from gen.ir.types import DType
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

from .kernels import Compiled, compiled, lowered


def copied(
    tile: str,
    store: str,
    load: str,
    outer: str = "unrolled",
    dtype: str = "float32",
    rows: int = 2,
) -> str:
    return f"""
def copied(n, x: {dtype}[n, {rows}, 8], y: Out[{dtype}[n, {rows}, 8]]):
    for y.i in range(n):
        with allocate({tile} @ register):
            for t.a in {outer}({rows}):
                for t.l in vectorized(8):
                    with block("t", i=spatial(y.i), a=spatial(t.a), l=spatial(t.l)):
                        {store} = x[i, a, l]
            for y.a in {outer}({rows}):
                for y.l in vectorized(8):
                    with block("y", i=spatial(y.i), a=spatial(y.a), l=spatial(y.l)):
                        y[i, a, l] = {load}
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vectors_longer_and_shorter_than_native_ones(level: Level, dtype: str) -> None:
    text = copied(f"t={dtype}[2, 8]", "t[a, l]", "t[a, l]", dtype=dtype)
    kernel = compiled(text, level)
    assert f"ts_f{dtype[-2:]} t[" in kernel.source
    x = np.arange(48, dtype=dtype).reshape(3, 2, 8)
    y = np.zeros_like(x)
    kernel({"x": x, "y": y})
    np.testing.assert_array_equal(x, y)


def advised(text: str, level: Level) -> list[str]:
    found = Cpu(level).finishing.advice(lowered(text, level))
    assert {a.about for a in found} <= {"t"}
    starts = "'t' is to be in registers, and is in memory: "
    assert all(a.message.startswith(starts) for a in found)
    return [f"{a.message.removeprefix(starts)}; {a.hint}" for a in found]


def check_copies(kernel: Compiled, rows: int = 2) -> None:
    x = np.arange(3 * rows * 8, dtype="f").reshape(3, rows, 8)
    y = np.zeros_like(x)
    kernel({"x": x, "y": y})
    np.testing.assert_array_equal(x, y)


LONG = copied("t=float32[70, 8]", "t[a, l]", "t[a, l]", "range", rows=70)
STRIDED = copied("t=float32[2, 16]", "t[a, 2*l]", "t[a, 2*l]")
GATHERED = copied("t=float32[2, 8]", "t[a, l]", "t[a, l] + (t[a, min(n, 7)] - t[a, min(n, 7)])")
ONE = copied("t=float32[2, 8]", "t[a, l]", "t[a, l]").replace("t.l in vectorized", "t.l in range")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LONG, "block 't' writes it where the index of 't.a' says; unroll or vectorize t.a: a loop"
         " whose extent is a number, as `split` makes it"),
        (STRIDED, "the 8 lanes of block 't' are no whole vectors of it; vectorize by $lanes a loop"
         " that walks its last axis, whose length is a multiple of it (transform_layout), or give"
         " 't' another scope"),
        (GATHERED, "block 'y' reads it where the index of 'n' says; compute it at a loop around"
         " which its indices are constant, or give it another scope"),
        (ONE, "block 't' writes one element of it, where block 'y' takes vectors; vectorize both"
         " along the same axis, or neither"),
    ],
)  # fmt: skip
def test_other_places_are_in_a_local_array_and_advice_says_why(
    level: Level, text: str, said: str
) -> None:
    kernel = compiled(text, level)
    assert "_Alignas(64) float t[" in kernel.source
    check_copies(kernel, 70 if text is LONG else 2)
    assert advised(text, level) == [said]


def test_short_loops_over_registers_are_unrolled(level: Level) -> None:
    text = copied("t=float32[2, 8]", "t[a, l]", "t[a, l]", "range")
    kernel = compiled(text, level)
    assert "ts_f32 t[" in kernel.source
    assert not advised(text, level)
    check_copies(kernel)


def test_a_loop_around_that_runs_once_is_no_index(level: Level) -> None:
    """As of strips as wide as a vector, of which a row is one."""
    text = """
def once(n, x: float32[n, 2, 8], y: Out[float32[n, 2, 8]]):
    for y.i in range(n):
        for y.h in range(1):
            with allocate(t=float32[2, 8] @ register):
                for t.a in range(2):
                    for t.l in vectorized(8):
                        with block("t", i=spatial(y.i), a=spatial(t.a), l=spatial(y.h*8 + t.l, 8)):
                            t[a, l] = x[i, a, l]
                for y.a in range(2):
                    for y.l in vectorized(8):
                        with block("y", i=spatial(y.i), a=spatial(y.a), l=spatial(y.h*8 + y.l, 8)):
                            y[i, a, l] = t[a, l]
"""
    kernel = compiled(text, level)
    assert "ts_f32 t[" in kernel.source
    check_copies(kernel)


def test_loops_stay_where_unrolling_is_not_enough(level: Level) -> None:
    """A place that depends on a size is none, whatever is unrolled."""
    text = GATHERED.replace("y.a in unrolled", "y.a in range")
    assert "for y.a in range(2)" in to_text(lowered(text, level))


@pytest.mark.parametrize("element", [0, 3, 7])
def test_one_element_is_taken_from_its_vector(level: Level, element: int) -> None:
    kernel = compiled(copied("t=float32[2, 8]", "t[a, l]", f"t[a, l] + t[a, {element}]"), level)
    assert "ts_f32 t[" in kernel.source
    x = np.arange(48, dtype="f").reshape(3, 2, 8)
    y = np.zeros_like(x)
    kernel({"x": x, "y": y})
    np.testing.assert_array_equal(y, x + x[..., element : element + 1])


def test_vectors_of_several_lengths_are_in_a_local_array(level: Level) -> None:
    """Two of half a native vector (on v4) do not make a whole one."""
    text = copied("t=float32[2, 8]", "t[a, l]", "t[a, l]").replace(
        """                for y.l in vectorized(8):
                    with block("y", i=spatial(y.i), a=spatial(y.a), l=spatial(y.l)):""",
        """              for y.h in unrolled(2):
                for y.l in vectorized(4):
                    with block("y", i=spatial(y.i), a=spatial(y.a), l=spatial(y.h*4 + y.l, 8)):""",
    )
    kernel = compiled(text, level)
    assert ("ts_f32 t[" in kernel.source) is (level is Level.V2)
    assert advised(text, level) == (level is not Level.V2) * [
        "it is accessed by vectors of 4 and of 8 elements; give the vectorized loops over it one"
        " width, as $lanes"
    ]
    x = np.arange(48, dtype="f").reshape(3, 2, 8)
    y = np.zeros_like(x)
    kernel({"x": x, "y": y})
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("width", [1, 4])
def test_scalars_in_registers_are_a_local_array(level: Level, width: int) -> None:
    """Serial loops over narrow elements, and vectors of one lane."""
    dtype, loop = ("int32", "vectorized") if width == 1 else ("int8", "range")
    text = f"""
def k(n, x: {dtype}[n, {width}], y: Out[{dtype}[n]]):
    for y.i in range(n):
        with allocate(t={dtype}[{width}] @ register):
            for t.l in {loop}({width}):
                with block("t", i=spatial(y.i), l=spatial(t.l)):
                    t[l] = x[i, l]
            for y.l in {loop}({width}):
                with block("y", i=spatial(y.i), l=reduction(y.l), initialises=True):
                    y[i] = combine.max(y[i], t[l])
"""
    kernel = compiled(text, level)
    assert not advised(text, level)
    x = np.arange(3 * width, dtype=dtype).reshape(3, width)[::-1].copy() - 5
    x = x.astype(dtype)
    y = np.zeros(3, dtype)
    kernel({"x": x, "y": y})
    np.testing.assert_array_equal(y, x.max(axis=1))


def test_lanes_that_a_mask_leaves_out_keep_their_value_where_it_is_read(level: Level) -> None:
    text = """
def k(m, n, x: float32[m, 8], y: Out[float32[8]]):
    with allocate(t=float32[8] @ register):
        for z.l in vectorized(8):
            with block("z", l=spatial(z.l)):
                t[l] = 0.0
        for t.i in range(m):
            for t.l in vectorized(8):
                with block("t", l=spatial(t.l), i=reduction(t.i), where=t.l < n - t.i):
                    t[l] = combine.sum(t[l], x[i, l])
        for y.l in vectorized(8):
            with block("y", l=spatial(y.l)):
                y[l] = t[l]
"""
    kernel = compiled(text, level)
    x, y = np.ones((4, 8), "f"), np.zeros(8, "f")
    kernel({"x": x, "y": y}, dims={"n": 6})
    np.testing.assert_array_equal(y, [4, 4, 4, 3, 2, 1, 0, 0])


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64, DType.COMPLEX64])
def test_tiles_of_rules_fit_the_registers(level: Level, dtype: DType) -> None:
    """A vector of complex numbers is two registers: twice the tile would be in memory."""
    target = Cpu(level)
    found, each = target.parameters({"T": dtype}), 2 if dtype.is_complex else 1
    tiles = [(found[f"{kind}_rows"], found[f"{kind}_vectors"]) for kind in ("tile", "wide")]
    tiles += [(1, found["line_vectors"]), (found["inner_rows"], found["inner_line"])]
    assert all(1 <= rows * vectors * each < target.machine.registers for rows, vectors in tiles)
