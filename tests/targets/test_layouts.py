"""Layouts of temporaries, iteration spaces and padding, compiled, beside NumPy: at sizes of nothing
and one, and around what does not divide.
"""

import numpy as np
import pytest

from gen.errors import ScheduleError, TilesmithError
from gen.ir.text.printer import to_text
from gen.schedule.examples import CHAIN, PADDED, ROW_SQUARES, ROW_SUM, TURNED
from gen.targets.cpu.jit import compile_kernel
from tests.schedule.support import schedule, start

from .scheduled import LEVEL, Array, agrees, lowered

ROWS = """\
def rows(m, n, x: float32[m + 2, n], y: Out[float32[m, n]]):
    with allocate(t=float32[m + 2, n]):
        for t.i in range(m + 2):
            for t.j in range(n):
                with block("t", i=spatial(t.i), j=spatial(t.j)):
                    t[i, j] = x[i, j] * x[i, j]
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = t[i, j] - t[i + 1, j] + t[i + 2, j]
"""
LINES = """\
- shift: {loop: y.i, by: 2}
- merge: {loops: [t.i, y.i]}
"""
VECTORS = """\
- vectorize: {loop: t.j, width: 4}
- vectorize: {loop: y.j, width: 4}
"""


def rows(x: Array) -> Array:
    t = x * x
    return t[:-2] - t[1:-1] + t[2:]


@pytest.mark.parametrize(
    "step",
    [
        "- fold_storage: {buffer: t, axis: 0, factor: 3}\n",
        '- store_in: {block: t, indices: "i % 3, j"}\n',
        '- store_in: {block: t, indices: "j // 4, i % 3, j % 4"}\n',
        '- store_in: {block: t, indices: "{ t[i, j] -> [j, i mod 5] }"}\n',
    ],
)
def test_a_line_buffer(step: str) -> None:
    agrees(ROWS, LINES + step + VECTORS, rows)


BANDS = """\
- split: {loop: y.i, factors: [null, 8]}
- compute_at: {block: t, loop: y.i_0}
- shift: {loop: y.i_1, by: 2}
- merge: {loops: [t.i, y.i_1]}
- fold_storage: {buffer: t, axis: 0, factor: 3}
"""


def test_bands_in_parallel_have_line_buffers_of_their_own() -> None:
    recipe = BANDS + VECTORS + "- parallel: {loop: y.i_0}\n"
    agrees(ROWS, recipe, rows, (0, 1, 3, 8, 9, 17), threads=2)


def test_lines_of_one_buffer_are_not_parallel() -> None:
    with pytest.raises(ScheduleError, match=r"parallel loop 't.i' has a race"):
        schedule(start(ROWS), BANDS + "- parallel: {loop: t.i}\n")


def test_a_line_too_few() -> None:
    with pytest.raises(ScheduleError, match="overwrites it in between"):
        schedule(start(ROWS), LINES + "- fold_storage: {buffer: t, axis: 0, factor: 2}")


TILES = """\
- split: {loop: t.i, factors: [null, 4]}
- split: {loop: y.i, factors: [null, 4]}
- shift: {loop: y.i_0, by: 1}
- merge: {loops: [t.i_0, y.i_0]}
- fold_storage: {buffer: t, axis: 0, factor: %d}
- vectorize: {loop: y.i_1, width: 4}
"""


@pytest.mark.parametrize("factor", [8, 9])
def test_vectors_of_a_circular_buffer(factor: int) -> None:
    """Vectors of which some reach around its end, and tiles that do not divide it."""
    agrees(CHAIN, TILES % factor, lambda x: x[:-1] * 2 + x[1:] * 2, range(40))


def test_vectors_into_a_circular_buffer() -> None:
    """Of whole tiles, so that no vector reaches around its end."""
    recipe = TILES % 8 + "- vectorize: {loop: t.i_1, width: 4}"
    agrees(CHAIN, recipe, lambda x: x[:-1] * 2 + x[1:] * 2, range(20))


def test_no_vector_is_stored_around_the_end() -> None:
    steps = TILES % 9 + "- vectorize: {loop: t.i_1, width: 4}"
    with pytest.raises(TilesmithError, match="no vector form on v2") as refusal:
        compile_kernel(lowered(CHAIN, steps), LEVEL)
    assert refusal.value.hint == "leave the loop serial"


def test_diagonals_of_an_aligned_array() -> None:
    steps = """\
- store_in: {block: t, indices: "i + j, j"}
- storage_align: {buffer: t, axis: 0, factor: 16, offset: 8}
"""
    agrees(ROW_SQUARES, steps, lambda x: (x * x).sum(1))


PLACED = "- compute_at: {block: t, loop: y.i}\n"
ALIGNED = "- storage_align: {buffer: t, axis: 0, factor: 16, offset: 8}"


@pytest.mark.parametrize(
    ("steps", "declared"),
    [
        (PLACED, "t=float32[1, n] @ heap"),  # what one iteration uses
        (PLACED + ALIGNED, "t=float32[1, n + (8 - n) % 16] @ heap"),
        (ALIGNED, "t=float32[m, n + (8 - n) % 16] @ heap"),
        (PLACED + "- set_size: {buffer: t, sizes: [m, n + 3]}", "[m, n + 3] @ heap @ fixed"),
    ],
)
def test_extents_in_memory(steps: str, declared: str) -> None:
    assert declared in to_text(lowered(ROW_SQUARES, steps))


CUBE = """\
def cube(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n, 3, 10]):
        for t.i in range(n):
            for t.j in range(3):
                for t.k in range(10):
                    with block("t", i=spatial(t.i), j=spatial(t.j), k=spatial(t.k)):
                        t[i, j, k] = x[i]
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i, 2, 9]
"""


def test_strides_of_several_axes() -> None:
    """Rows of 12 elements, so that planes of 4 rows are whole sixteens."""
    steps = """\
- storage_align: {buffer: t, axis: 0, factor: 16}
- storage_align: {buffer: t, axis: -2, factor: 4}
"""
    assert "t=float32[n, 4, 12]" in to_text(lowered(CUBE, steps))


SPACES = ['"i // 4, i % 4, j"', '"j, m - 1 - i"', '"{ [i, j] -> [i + j, j] }"']
SCALED = """\
def scaled(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=spatial(y.j)):
                y[i, j] = x[i, j] * 2.0
"""


@pytest.mark.parametrize("indices", SPACES)
def test_other_iteration_spaces(indices: str) -> None:
    agrees(SCALED, f"- transform_block_layout: {{block: y, indices: {indices}}}", lambda x: x * 2)


def test_a_padded_sum_in_whole_vectors() -> None:
    steps = """\
- pad: {block: y, multiples: {j: 8}}
- vectorize: {loop: y.j, width: 4, accumulators: 2}
"""
    agrees(ROW_SUM, steps, lambda x: x.sum(1))


def test_tiles_that_reach_past_the_end_of_what_is_summed() -> None:
    """Sums that nothing reads, in lanes without a mask."""
    steps = """\
- cache_read: {block: y, buffer: x, as: rows}
- cache_write: {block: y, as: sums}
- pad: {block: rows, multiples: {d0: 8}}
- pad: {block: y, multiples: {i: 8}}
- transform_layout: {buffer: rows, order: [1, 0]}
- split: {loop: y.i, factors: [null, 2, 4]}
- reorder: {loops: [y.i_0, y.j, y.i_1, y.i_2]}
- decompose_reduction: {block: y, loop: y.j}
- unroll: {loop: y.i_1}
- vectorize: {loop: y.i_2, width: 4}
"""
    agrees(ROW_SUM, steps, lambda x: x.sum(1))
    text = to_text(lowered(ROW_SUM, steps))
    inner = text.partition("for y.j in range(n):")[2].partition("for sums.i")[0]
    assert "vectorized(4)" in inner and "where" not in inner


def test_a_border_without_branches() -> None:
    agrees(PADDED, "- decompose_padding: {block: t}", lambda x: np.pad(x, 1) * 2)
    text = to_text(lowered(PADDED, "- decompose_padding: {block: t}"))
    assert " if " not in text and "where" not in text


def test_a_packed_operand_by_threads() -> None:
    steps = """\
- pack: {block: y, buffer: x, axis: 1, factors: [null, 4], order: [1, 0, 2], parallel: 0}
- split: {loop: y.i, factors: [null, 4]}
- reorder: {loops: [y.i_0, y.j, y.i_1]}
- vectorize: {loop: y.i_1, width: 4}
"""
    agrees(TURNED, steps, lambda x: x.sum(0), threads=2)


PATCHES = """\
def patches(m, n, w: float32[n], x: float32[m + n], y: Out[float32[m]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                y[i] = combine.sum(y[i], x[i + j] * w[j])
"""


def test_patches_of_a_convolution() -> None:
    def convolved(w: Array, x: Array) -> Array:
        m = len(x) - len(w)
        return np.array([x[i : i + len(w)] @ w for i in range(m)], np.float32)

    agrees(PATCHES, "- reindex: {block: y, buffer: x}", convolved)
