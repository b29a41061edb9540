"""Tiles written by rows and read by columns are transposed in registers, or else in memory."""

from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest

from gen.ir.types import DType
from gen.targets.cpu.levels import Level, Processor

from .kernels import compiled

HEAD = """\
def transposed(m, n, x: {dtype}[m, n], y: Out[{dtype}[n, m]]):
    for y.i in range((m + {last})//{w}):
        for y.j in range((n + {last})//{w}):
            with allocate(t={dtype}[{shape}] @ register):
"""
ROWS = """\
                for t.a in unrolled({w}):
                    for t.l in vectorized({w}):
                        with block("t", a=spatial(y.i*{w} + t.a, m), l=spatial(y.j*{w} + t.l, n),
                                   where=y.i*{w} + t.a < m and y.j*{w} + t.l < n):
                            {store} = x[a, l]
"""
COLUMNS = """\
                for y.a in unrolled({w}):
                    for y.l in vectorized({w}):
                        with block("y", a=spatial(y.j*{w} + y.a, n), l=spatial(y.i*{w} + y.l, m),
                                   where=y.j*{w} + y.a < n and y.i*{w} + y.l < m):
                            y[a, l] = {load}
"""
PLAIN = {"store": "t[a % {w}, l % {w}]", "load": "t[l % {w}, a % {w}]", "shape": "{w}, {w}"}


def transposed(width: int, dtype: str, body: str = ROWS + COLUMNS, **places: str) -> str:
    """A matrix transposed by tiles of `width`."""
    given = {k: v.format(w=width) for k, v in {**PLAIN, **places}.items()}
    return (HEAD + body).format(w=width, last=width - 1, dtype=dtype, **given)


def check(
    source: str, level: Level, dtype: str, *, turned: bool, whole: bool = False, vectors: int = 1
) -> None:
    """Right at all edges, in vectors that are turned or not. whole: only whole tiles are right.
    vectors: of a row of a tile.
    """
    kernel = compiled(source, level)
    assert ("ts_transpose_" in kernel.source.split("ts_math.h")[1]) is turned
    assert ("_Alignas(64)" in kernel.source) is not turned
    rng = np.random.default_rng(0)
    lanes = vectors * Processor(level).lanes(DType(dtype))
    for m in (0, 1, lanes - 1, lanes, 2 * lanes, 2 * lanes + 1):
        for n in (1, lanes - 1, lanes, lanes + 1, 3 * lanes):
            if whole and (m % lanes or n % lanes):
                continue
            x = rng.integers(-99, 99, (m, n)).astype(dtype)
            y = np.full((n + 1, m), 7, dtype)
            kernel({"x": x, "y": y[:n]})
            np.testing.assert_array_equal(y, np.concatenate([x.T, np.full((1, m), 7, dtype)]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint32", "uint64"])
def test_rows_become_columns_in_registers(level: Level, dtype: str) -> None:
    lanes = Processor(level).lanes(DType(dtype))
    check(transposed(lanes, dtype), level, dtype, turned=True)


def test_columns_become_rows_in_registers(level: Level) -> None:
    lanes = Processor(level).lanes(DType.FLOAT32)
    places = {"store": PLAIN["load"], "load": PLAIN["store"]}
    check(transposed(lanes, "float32", **places), level, "float32", turned=True)


@pytest.mark.parametrize("other_way", [False, True])
def test_axes_of_one_element(level: Level, other_way: bool) -> None:
    """Such as those of the images that a tile is of."""
    lanes = Processor(level).lanes(DType.FLOAT32)
    store, load = "t[0, a % {w}, 0, l % {w}]", "t[0, l % {w}, 0, a % {w}]"
    store, load = (load, store) if other_way else (store, load)
    source = transposed(lanes, "float32", store=store, load=load, shape="1, {w}, 1, {w}")
    check(source, level, "float32", turned=True)


@pytest.mark.parametrize("vectors", [2, 3, pytest.param(4, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_several_vectors(level: Level, dtype: str, vectors: int) -> None:
    width = vectors * Processor(level).lanes(DType(dtype))
    check(transposed(width, dtype), level, dtype, turned=True, vectors=vectors)


@pytest.mark.parametrize("vectors", [1, 2])
def test_rows_stored_in_a_loop(level: Level, vectors: int) -> None:
    """The tile is in memory, and its vectors are transposed there."""
    width = vectors * Processor(level).lanes(DType.FLOAT32)
    body = (ROWS + COLUMNS).replace("unrolled", "range")
    check(transposed(width, "float32", body), level, "float32", turned=True, vectors=vectors)


AGAIN = ROWS.replace("t.", "s.").replace('"t"', '"s"')
FEWER = AGAIN.replace("where=", "where=s.l < 2 and ")
TWICE = indent("for t.b in range(2):\n" + indent(dedent(ROWS), "    "), 16 * " ")
STORED_AGAIN = {
    "twice": ROWS + FEWER,
    "in two loops": (ROWS + FEWER).replace("unrolled", "range"),
    "again and again": TWICE,
}


@pytest.mark.parametrize("how", STORED_AGAIN)
def test_lanes_that_a_store_leaves_out_keep_what_an_earlier_one_stored(
    level: Level, how: str
) -> None:
    width = Processor(level).lanes(DType.FLOAT32)
    body = STORED_AGAIN[how] + COLUMNS
    check(transposed(width, "float32", body), level, "float32", turned=True)


SUMS = """\
def sums(m, n, x: {dtype}[m, n], y: Out[{dtype}[m]]):
    for y.i in range((m + {last})//{w}):
        with allocate(t={dtype}[{w}, {w}] @ register):
            for t.j in range((n + {last})//{w}):
                for t.a in {rows}({w}):
                    for t.l in vectorized({w}):
                        with block("t", a=spatial(y.i*{w} + t.a, m), j=reduction(t.j),
                                   l=spatial(t.l), where=y.i*{w} + t.a < m
                                   and t.j*{w} + t.l < n, initialises=True):
                            t[a % {w}, l] = combine.{combiner}(t[a % {w}, l], x[a, j*{w} + l])
            for y.r in unrolled({w}):
                for y.l in vectorized({w}):
                    with block("y", i=spatial(y.i*{w} + y.l, m), r=reduction(y.r),
                               where=y.i*{w} + y.l < m, initialises=True):
                        y[i] = combine.{combiner}(y[i], t[i % {w}, r])
"""


@pytest.mark.parametrize("rows", ["unrolled", "range"])
@pytest.mark.parametrize("combiner", ["sum", "max"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_rows_are_added_to_before_columns_are_wanted(
    level: Level, dtype: str, combiner: str, rows: str
) -> None:
    """Partial results of as many rows as a vector has lanes are joined for all of these at once."""
    lanes = Processor(level).lanes(DType(dtype))
    given = {"dtype": dtype, "w": lanes, "last": lanes - 1, "rows": rows, "combiner": combiner}
    kernel = compiled(SUMS.format(**given), level)
    assert "ts_transpose_" in kernel.source.split("ts_math.h")[1]
    rng = np.random.default_rng(0)
    for m in (0, 1, lanes - 1, lanes, 2 * lanes + 1):
        for n in (1, lanes - 1, lanes, lanes + 1, 3 * lanes):
            x = rng.integers(-99, 99, (m, n)).astype(dtype)
            y = np.full(m + 1, 7, dtype)
            kernel({"x": x, "y": y[:m]})
            expected = {"sum": np.sum, "max": np.max}[combiner](x, axis=1)
            np.testing.assert_array_equal(y, [*expected, 7])


ROW, COLUMN = PLAIN["store"], PLAIN["load"]
REFUSED = {
    "not square": {"shape": "{w}, 2*{w}"},
    "rows stored after columns were loaded": {"body": ROWS + COLUMNS + AGAIN},
    "rows loaded too": {"load": f"{COLUMN} + ({ROW} - {ROW})"},
    "elements loaded too": {"load": f"{COLUMN} + (t[0, 0] - t[0, 0])"},
}


@pytest.mark.parametrize("why", REFUSED)
def test_other_tiles_are_in_memory(level: Level, why: str) -> None:
    changes: dict[str, Any] = {"body": ROWS + COLUMNS, **REFUSED[why]}
    width = Processor(level).lanes(DType.FLOAT32)
    body = changes.pop("body")
    source = transposed(width, "float32", body, **changes)
    check(source, level, "float32", turned=False, whole="rows loaded" in why)
