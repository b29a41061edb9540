"""Tiles of shared and local memory where positions are clamped, halved, reversed: of the least
size that holds for all sizes, proved, and right in the interpreter.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen.errors import TilesmithError
from gen.ir.index.linear import constant
from gen.ir.interpret.interp import run
from gen.ir.nodes import Allocate, Kernel
from gen.ir.text.printer import to_text
from gen.ir.walk import walk
from gen.lower.variants import Variant

from .made import lowered, written

CACHED = """\
- split: {loop: y.j, factors: [null, 8], as: [y.b, y.t]}
- bind: {loop: y.i, axis: blockIdx.y}
- gpu: {loops: [y.b, y.t]}
- cache_shared_at: {block: y, buffer: x, loop: y.b, as: s}"""
COMPUTED = """\
- split: {loop: y.j, factors: [null, 8], as: [y.b, y.t]}
- compute_at: {block: s, loop: y.b}
- set_scope: {buffer: s, scope: shared}
- sync_threads: {loop: y.t}
- bind: {loop: y.i, axis: blockIdx.y}
- bind: {loop: y.b, axis: blockIdx.x}
- bind: {loops: [s.j, y.t], axis: threadIdx.x}"""


def size(variant: Variant, buffer: str = "s") -> list[int | None]:
    """The shape of a temporary as it is emitted."""
    found = (n for n in walk(variant.lowered.kernel) if isinstance(n, Allocate))
    (shape,) = (b.shape for n in found for b in n.buffers if b.name == buffer)
    return [constant(extent) for extent in shape]


def reading(position: str, steps: str = CACHED) -> Variant:
    """A kernel whose rows of y take x at a position, which `j` and `n` say."""
    return written(f"y[i, j] = x[i, {position}]", steps)


def assert_right(kernel: Kernel, position: str) -> None:
    """Around the edges of its tiles of eight."""
    for n in (0, 1, 2, 7, 8, 9, 16, 17, 19):
        x = np.arange(1, 1 + n, dtype=np.float32)[None]
        at = [eval(position, {"j": j, "n": n, "min": min, "max": max}) for j in range(n)]
        got = run(kernel, {"x": x}, dims={"m": 1, "n": n})
        np.testing.assert_array_equal(got["y"], x[:, at])


@pytest.mark.parametrize(
    ("position", "elements"),
    [
        ("max(j - 1, 0)", 8),
        ("min(j + 1, n - 1)", 8),
        ("min(max(j - 2, 0), n - 1)", 8),
        ("j // 2", 4),
        ("min(2 * j, n - 1)", 15),
        ("min(max(3 * j - 5, 0) // 2, n - 1)", 12),
        ("n - 1 - j", 8),
        ("n - 1 - j // 2", 4),
        ("max(n - 3 - j, 0)", 8),
        ("j - j % 4", 11),  # what a remainder may be is all that is known of it
        ("min(j * 8, n - 1)", 57),
    ],
)
def test_a_tile_of_what_clamped_halved_and_reversed_positions_read(
    position: str, elements: int
) -> None:
    variant = reading(position)
    assert size(variant) == [1, elements]
    assert_right(variant.lowered.kernel, position)


STENCIL = "s[i, j] = 2 * x[i, j]\ny[i, j] = s[i, max(j - 1, 0)] + s[i, min(j + 1, n - 1)]"


def test_a_tile_and_its_neighbours_behind_repeated_borders() -> None:
    """The loop that computes it has the tile's size, so that threads can be bound to it."""
    variant = written(STENCIL, COMPUTED)
    assert size(variant) == [1, 10]
    for n in (1, 2, 8, 9, 17):
        x = np.random.default_rng(n).integers(9, size=(2, n)).astype(np.float32)
        got = run(variant.lowered.kernel, {"x": x}, dims={"m": 2, "n": n})
        borders = np.pad(2 * x, ((0, 0), (1, 1)), "edge")
        np.testing.assert_array_equal(got["y"], borders[:, :-2] + borders[:, 2:])


def test_what_guards_leave_out_takes_no_room() -> None:
    """Two turns of eight threads for ten elements."""
    split = "- split: {loop: s.j, factors: [null, 8], as: [s.a, s.t]}\n- sync_threads"
    steps = COMPUTED.replace("- sync_threads", split).replace("[s.j, y.t]", "[s.t, y.t]")
    assert size(written(STENCIL, steps)) == [1, 10]


def test_a_loop_of_a_few_turns_keeps_its_guards() -> None:
    text = lowered("y[i, j] = x[i, max(j - 9, 0)] + x[i, j]", CACHED)
    assert "for s.turn in range(3):" in text
    assert "s.turn" not in lowered("y[i, j] = x[i, max(j - 1, 0)]", CACHED)


def test_what_grows_with_the_sizes_is_refused_with_the_numbers() -> None:
    with pytest.raises(TilesmithError) as refused:
        reading("(j + 1) % n")
    assert refused.value.message == (
        "'s' cannot be shared memory: what is used of it has the shape [1, n], and its size must"
        " be a number: a block uses 64 elements along axis 1 where all sizes are 64, and 128 where"
        " they are 128"
    )


# ---------------------------------------------------------------- one thread's own

LEAST = "k[i] = argmin(x[i, j] for j in range(n))\ny[i, j] = x[i, j] - T(k[i])"
A_ROW_A_THREAD = """\
- split: {loop: y.i, factors: [null, 32], as: [y.b, y.t]}
- compute_at: {block: k, loop: y.t}
- gpu: {loops: [y.b, y.t]}"""
TURNED = """\
- split: {loop: k.i, factors: [null, 8], as: [k.b, k.t]}
- decompose_reduction: {block: k, loop: k.t}
- reverse: {loop: k.t}
- sync_threads: {loop: k.t}
- bind: {loop: k.b, axis: blockIdx.x}
- bind: {loops: [k.init.t, k.t], axis: threadIdx.x}
- bind: {loop: y.i, axis: blockIdx.x}"""
ROWS_IN_TURN = """\
- split: {loop: k.i, factors: [null, 8, 32], as: [k.b, k.t, k.turn]}
- gpu: {loops: [k.b, k.t]}
- bind: {loop: y.i, axis: blockIdx.x}"""


@pytest.mark.parametrize(
    ("steps", "scope"),
    [(A_ROW_A_THREAD, "local"), (TURNED, "device"), (ROWS_IN_TURN, "device")],
    ids=["one thread's", "of two threads", "too many"],
)
def test_values_that_nothing_reads_are_a_threads_own(steps: str, scope: str) -> None:
    """Those that an argmin compares; in memory of the GPU they would be workspace."""
    variant = written(LEAST, steps)
    assert f"k_value={'float32[1] @ local' if scope == 'local' else 'float32[m] @ device'}" in (
        to_text(variant.lowered.kernel)
    )
    x = np.random.default_rng(0).integers(9, size=(37, 5)).astype(np.float32)
    got = run(variant.lowered.kernel, {"x": x}, dims={"m": 37, "n": 5})
    np.testing.assert_array_equal(got["y"], x - np.argmin(x, 1)[:, None])


# ---------------------------------------------------------------- random positions

_NUMBERS = st.integers(0, 5)
_POSITIONS = st.recursive(
    st.just("j"),
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, _NUMBERS),
        st.builds("({} - {})".format, inner, _NUMBERS),
        st.builds("(n - 1 - {})".format, inner),
        st.builds("({} * 2)".format, inner),
        st.builds("({} // {})".format, inner, st.integers(2, 3)),
        st.builds("max({}, {})".format, inner, _NUMBERS),
        st.builds("min({}, n - {})".format, inner, _NUMBERS),
        st.builds("min({}, {})".format, inner, inner),
        st.builds("max({}, {})".format, inner, inner),
    ),
    max_leaves=3,
)


@settings(max_examples=6, deadline=None, derandomize=True, database=None)
@given(_POSITIONS, st.booleans())
def test_random_positions_are_never_refused_and_right(inside: str, computed: bool) -> None:
    position = f"min(max({inside}, 0), n - 1)"
    if computed:
        body, steps = f"s[i, j] = x[i, j]\ny[i, j] = s[i, {position}]", COMPUTED
        variant = written(body, steps)
    else:
        variant = reading(position)
    assert_right(variant.lowered.kernel, position)
