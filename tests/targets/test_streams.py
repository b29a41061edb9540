"""Stores past the caches, and reads ahead of time: the same bits, in no other place."""

# ruff: noqa: E501 (the scripts)

import ctypes
import re

import numpy as np
import pytest
from numpy.typing import NDArray

from gen.errors import TilesmithError
from gen.ir.types import DType
from gen.language import loads
from gen.pipeline import emit, schedule
from gen.poly.prove import prove
from gen.targets.c import library
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level, Processor
from gen.targets.cpu.target import Cpu
from gen.targets.target import joined
from tests.conftest import Golden

from .kernels import compiled
from .test_golden import emitted

RNG = np.random.default_rng(11)


def scale(w: int, dtype: str = "float32", accumulators: int = 1) -> str:
    """y = 2x, `accumulators` vectors an iteration; each read of x asks for the next row."""
    c = w * accumulators
    at = f"y.j_0*{c} + y.a*{w} + y.j_1"
    return f"""
def scale(m, n, x: {dtype}[m, n], y: Out[{dtype}[m, n]]):
    for y.i in parallel(m):
        for y.j_0 in range((n + {c - 1})//{c}):
            for y.a in unrolled({accumulators}):
                for y.j_1 in vectorized({w}):
                    with block("y", i=spatial(y.i), j=spatial({at}, n), where={at} < n, annotations={{'stream': 7, 'prefetch x': '1, 0'}}):
                        y[i, j] = 2.0*x[i, j]
"""


def flat(w: int, dtype: str) -> str:
    """A stream in each part of a parallel loop."""
    return f"""
def flat(n, x: {dtype}[n], y: Out[{dtype}[n]]):
    for y.c in parallel((n + {w - 1})//{w}):
        for y.l in vectorized({w}):
            with block("y", i=spatial(y.c*{w} + y.l, n), where=y.c*{w} + y.l < n, annotations={{'stream': 7}}):
                y[i] = x[i] + 1.0
"""


def rows(w: int) -> str:
    """Four rows at a time: as many streams in one loop."""
    return f"""
def rows(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i_0 in range((m + 3)//4):
        for y.j_0 in range((n + {w - 1})//{w}):
            for y.i_1 in unrolled(4):
                for y.j_1 in vectorized({w}):
                    with block("y", i=spatial(y.i_0*4 + y.i_1, m), j=spatial(y.j_0*{w} + y.j_1, n), where=y.i_0*4 + y.i_1 < m and y.j_0*{w} + y.j_1 < n, annotations={{'stream': 7}}):
                        y[i, j] = x[i, j] - 1.0
"""


def sizes(w: int) -> list[int]:
    return [0, 1, w - 1, w, w + 1, 2 * w - 1, 2 * w + 1, 5 * w + 3]


def placed(shape: tuple[int, ...], dtype: str, offset: int) -> tuple[NDArray, NDArray]:
    """An array that starts `offset` bytes after a line of memory, and all bytes around it."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    around = np.full(size + 256, 0xA5, np.uint8)
    start = 64 - around.ctypes.data % 64 + offset
    return around[start : start + size].view(dtype).reshape(shape), around


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["one", "four", "flat"])
def test_a_stream_stores_what_a_store_would(level: Level, dtype: str, form: str) -> None:
    w = Processor(level).lanes(DType(dtype))
    text = {"one": scale(w, dtype), "four": scale(w, dtype, 4), "flat": flat(w, dtype)}[form]
    kernel = compiled(text, level)
    assert ("ts_row_push" in kernel.source) == (level in (Level.V3, Level.V4))
    for n in sizes(w):
        shape = (n,) if form == "flat" else (3, n)
        x = RNG.standard_normal(shape).astype(dtype)
        expected = x + 1 if form == "flat" else 2 * x
        for offset in range(0, 64, np.dtype(dtype).itemsize):
            for stream in (False, True):
                y, around = placed(shape, dtype, offset)
                kernel({"x": x, "y": y}, dims={"n": n}, threads=2, stream=stream)
                np.testing.assert_array_equal(y, expected)
                y[...] = np.frombuffer(b"\xa5" * 8, dtype)[0]
                assert (around == 0xA5).all()


def test_rows_apart_and_in_groups(level: Level) -> None:
    w = Processor(level).lanes(DType.FLOAT32)
    kernel = compiled(rows(w), level)
    if level in (Level.V3, Level.V4):
        assert "ts_row_push_f32(&line3" in kernel.source
    for n in sizes(w):
        for m in (0, 1, 4, 5, 11):
            x = RNG.standard_normal((m, n)).astype("f")
            y, around = placed((m, n + 5), "float32", 20)
            kernel({"x": x, "y": y[:, :n]}, stream=True)
            np.testing.assert_array_equal(y[:, :n], x - 1)
            y[:, :n] = np.frombuffer(b"\xa5" * 4, "f")[0]
            assert (around == 0xA5).all()


def test_in_place(level: Level) -> None:
    """Places are read before they are written; a store that waits changes nothing in that."""
    w = Processor(level).lanes(DType.FLOAT32)
    kernel = compiled(scale(w, accumulators=4), level)
    x = RNG.standard_normal((3, 9 * w + 5)).astype("f")
    y = x.copy()
    kernel({"x": y, "y": y}, stream=True, threads=2)
    np.testing.assert_array_equal(y, 2 * x)


def test_arrays_of_any_stride(level: Level) -> None:
    """The copy of the code for strides other than 1 does not stream."""
    w = Processor(level).lanes(DType.FLOAT32)
    kernel = compiled(rows(w), level, packed=())
    if level in (Level.V3, Level.V4):
        assert "if (unit && stream" in kernel.source
    x = RNG.standard_normal((6, 3 * w + 1)).astype("f")
    for y in (np.zeros_like(x), np.zeros_like(x, order="F"), np.zeros((6, 6 * w + 2), "f")[:, ::2]):
        kernel({"x": x, "y": y}, stream=True)
        np.testing.assert_array_equal(y, x - 1)


HITS = """
#include "ts_stream.h"
int hits(uintptr_t row, uintptr_t read);
int hits(uintptr_t row, uintptr_t read) { return ts_row_hits((void *)row, (void *)read); }
"""


def test_rows_whose_loads_come_upon_their_stores() -> None:
    """Addresses count modulo 4096, from the line in which the row begins."""
    command = jit.compiler_command(Level.V4, ())
    hits = ctypes.CDLL(str(library.build(HITS, command))).hits
    hits.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    x = (1 << 40) + 16
    found = {d: hits(x + d, x) for d in range(-8192, 8192, 16)}
    assert [d for d in range(0, 4096, 16) if found[d] == 1] == list(range(48, 368, 16))
    assert [d for d in range(0, 4096, 16) if found[d] == 2] == list(range(368, 688, 16))
    assert all(found[d] == found[d % 4096] for d in found)


def add(w: int) -> str:
    """y = x + b, where b is one row, and what it reads of c is not in step with it."""
    return f"""
def add(m, n, x: float32[m, n], b: float32[n], c: float32[n], y: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j_0 in range((n + {w - 1})//{w}):
            for y.j_1 in vectorized({w}):
                with block("y", i=spatial(y.i), j=spatial(y.j_0*{w} + y.j_1, n), where=y.j_0*{w} + y.j_1 < n, annotations={{'stream': 7}}):
                    y[i, j] = x[i, j] + b[j] + c[n - 1 - j]
"""


def test_stores_are_late_where_loads_would_come_upon_them() -> None:
    """All that is read in step counts; where one is late's own way, the row is not streamed."""
    source = " ".join(compiled(add(16), Level.V4).source.split())
    assert "const int hits = ts_row_hits(&y[y_s0 * y_i], &x[x_s0 * y_i])" in source
    assert "| ts_row_hits(&y[y_s0 * y_i], &b[0]);" in source
    assert "&c[" not in source.split("const int hits")[1].split(";")[0]
    assert "ts_row_begin_f32(&y[y_s0 * y_i], hits == 1)" in source
    assert "if (stream && hits != 3) {" in source


def test_levels_of_few_registers_store_such_rows_into_the_caches() -> None:
    source = compiled(add(8), Level.V3).source
    assert "if (stream && ts_row_hits(&y[y_s0 * y_i], &x[x_s0 * y_i]) != 1) {" in source


@pytest.mark.parametrize("behind", [0, 48, 64, 300, 320, 400, 700, 4000])
@pytest.mark.parametrize("beside", [0, 128, 500])
def test_late_rows_store_what_others_do(level: Level, behind: int, beside: int) -> None:
    w = Processor(level).lanes(DType.FLOAT32)
    kernel = compiled(add(w), level)
    for n in [*(k * w for k in range(13)), w + 3, 5 * w + 1, 7 * w - 1, 20 * w + 5]:
        memory = np.full(1 << 17, 0xA5, np.uint8)
        start = 4096 - memory.ctypes.data % 4096 + 16

        def at(place: int, shape: tuple[int, ...], memory: NDArray = memory) -> NDArray:
            size = 4 * int(np.prod(shape))
            return memory[place : place + size].view("f").reshape(shape)

        x = at(start, (3, n))
        y = at(start + (1 << 15) + behind, (3, n))
        b = at(start + (1 << 16) + behind - beside, (n,))
        c = np.zeros(n, "f")
        x[...], b[...] = RNG.standard_normal((3, n)), RNG.standard_normal(n)
        around = memory.copy()
        kernel({"x": x, "b": b, "c": c, "y": y}, dims={"n": n}, stream=True)
        np.testing.assert_array_equal(y, x + b)
        y[...] = np.frombuffer(b"\xa5" * 4, "f")[0]
        np.testing.assert_array_equal(memory, around)


def test_golden_of_a_stream(golden: Golden) -> None:
    golden("targets/stream.v3.c", emitted(scale(8, accumulators=2), packable=True))


def test_a_prefetch_a_line_of_memory() -> None:
    """In the copy that streams and in the other, not in the tail: of each vector, since two that
    are one line on v3 are statements of their own; of a wider one, of each line.
    """
    asked = "__builtin_prefetch((const"
    assert emitted(scale(8, accumulators=2), packable=False).count(asked) == 2 * 2
    wide = emitted(scale(32), packable=False)
    assert wide.count(asked) == 2 * 2
    assert re.search(r"y_j_0 \* 32\) \+ 16 \* x_s1\s+\+ ahead \* x_s0", wide)
    assert "ahead" not in emitted(flat(8, "float32"), packable=False)


def test_the_line_that_a_row_ends_in_is_asked_for() -> None:
    """Once a row where it is streamed; in one row, whose end is far away, it is not."""
    end = "__builtin_prefetch(&y[y_s0 * y_i + (n / 8) * 8], 1);"
    assert emitted(scale(8), packable=True).count(end) == 2  # of two variants
    assert "prefetch" not in emitted(flat(8, "float32"), packable=True)


GAP = """
def k(n, x: float32[n], y: Out[float32[2*n]]):
    for y.c in range(n//{w}):
        for y.l in vectorized({w}):
            with block("y", i=spatial(y.c*{w} + y.l, 2*n), annotations={{'stream': 7}}):
                y[{at}] = x[i]
"""


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        ("2*i", "in loop 'y.c' its lanes are not neighbours along the last axis of 'y'"),
        ("n - i", "in loop 'y.c' its lanes are not neighbours along the last axis of 'y'"),
    ],
)
def test_stores_with_gaps_are_refused(at: str, reason: str) -> None:
    _refused(GAP.format(w=8, at=at), reason)


def test_iterations_with_gaps_are_refused() -> None:
    apart = GAP.format(w=8, at="i").replace("y.c*8 + y.l", "y.c*16 + y.l")
    _refused(apart, "in loop 'y.c' an iteration stores 8 elements of a row and moves on by 16")


def test_columns_are_refused() -> None:
    text = """
def k(m, x: float32[m, 8], y: Out[float32[m, 8]]):
    for y.i in range(m):
        for y.l in vectorized(8):
            with block("y", i=spatial(y.i), j=spatial(y.l), annotations={'stream': 7}):
                y[i, j] = x[i, j]
"""
    _refused(text, "in loop 'y.i' each iteration stores into another row of 'y'")


def test_half_vectors_are_refused() -> None:
    _refused(flat(4, "float32"), "in loop 'y.c' its 4 lanes are not a whole number of vectors of 8")


def test_scalars_are_refused() -> None:
    text = """
def k(n, x: float32[n], y: Out[float32[n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i), annotations={'stream': 7}):
            y[i] = x[i]
"""
    _refused(text, "no loop stores whole vectors of it one after another")


def test_another_block_of_the_array_is_refused() -> None:
    text = (
        flat(8, "float32").replace("parallel", "range")
        + """
        for z.l in vectorized(8):
            with block("z", i=spatial(y.c*8 + z.l, n), where=y.c*8 + z.l < n):
                y[i] = x[i]
"""
    )
    _refused(text, "block 'z' stores into the same array")


def _refused(text: str, reason: str) -> None:
    with pytest.raises(TilesmithError, match=re.escape(f"stream (block y): {reason}")) as refusal:
        compiled(text, Level.V3)
    assert refusal.value.span is not None and refusal.value.span.line == 7


def test_a_prefetch_of_what_is_not_read_is_refused() -> None:
    text = scale(8).replace("prefetch x", "prefetch y").replace("'stream': 7, ", "")
    with pytest.raises(
        TilesmithError, match=re.escape("(block y, buffer y): the block does not read it")
    ):
        compiled(text, Level.V3)


# ---------------------------------------------------------------- loads in step with a row

ROWS_OF_Z = """\
tilesmith: 1
kernel: k
doc: d
signature: {signature}
dtypes: {{T: [float64]}}
arguments: {{{arguments}, y: {{type: "T[m, n]", intent: out}}}}
constraints: [q >= 1]
recipes:
  - target: cpu
    variants:
      - steps:
          - vectorize: {{loop: y.j, width: 8, as: [y.chunk, y.lane]}}
{steps}          - stream: {{block: y}}
compute: |
{compute}
"""
FUSED = {  # where a row of z begins is known inside alone
    "signature": "(p,q),(q,n),(m)->(m,n)",
    "arguments": 'x: {type: "T[p, q]"}, z: {type: "T[q, n]"}, u: {type: "T[m]"}',
    "steps": """\
          - compute_at: {block: s, loop: y.chunk}
          - fuse: {loops: [s.k, s.l], as: s.kl}
""",
    "compute": """\
  for i in m:
      for j in n:
          s[i, j] = sum(x[k, l] * z[l, j] for k in p for l in q)
  y[i, j] = s[i, j] + u[i]
""",
}
GATHERED = {  # a row of no elements has no r[0] that says which row of z it reads
    "signature": "(n),(q,n),(m)->(m,n)",
    "arguments": 'r: {type: "int32[n]"}, z: {type: "T[q, n]"}, u: {type: "T[m]"}',
    "steps": "",
    "compute": "  y[i, j] = u[i] + z[min(max(r[j], 0), q - 1), j]",
}


@pytest.mark.parametrize("case", [FUSED, GATHERED], ids=["fused", "gathered"])
def test_where_loads_begin_is_asked_of_what_is_known(case: dict[str, str]) -> None:
    kernel = loads(ROWS_OF_Z.format(**case), "k.yaml")
    dtypes, level = {"T": DType.FLOAT64}, Level.V4
    text = joined(
        emit(kernel, {"float64": schedule(kernel, dtypes, Cpu(level), prove)}, Cpu(level))
    )
    hits = text.split("const int hits =")[1].split(";")[0]
    assert "z[" not in hits and "r[r" not in hits
    assert jit.load(kernel, dtypes, text, level).compiled.source == text
