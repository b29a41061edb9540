"""Regions of constant size: their loops, and where their buffers live."""

import pytest

from gen.ir.text.printer import to_text
from gen.lower.lower import lower
from gen.poly.prove import prove
from gen.schedule.examples import BLOCKED, STENCIL, TWICE
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

from .support import assert_same, schedule, start

MATMUL = """\
def matmul(m, k, n, a: float32[m, k], b: float32[k, n], c: Out[float32[m, n]]):
    for c.i in range(m):
        for c.j in range(n):
            for c.l in range(k):
                with block("c", i=spatial(c.i), j=spatial(c.j), l=reduction(c.l), initialises=True):
                    c[i, j] = combine.sum(c[i, j], a[i, l] * b[l, j])
"""

PACKED = """\
- split: {loop: c.i, factors: [null, 2], as: [c.i0, c.i1]}
- split: {loop: c.j, factors: [null, 2, 4], as: [c.j0, c.j1, c.j2]}
- reorder: {loops: [c.j0, c.i0, c.l, c.i1, c.j1, c.j2]}
- cache_read: {block: c, buffer: b, at: c.j0, as: packed}
- cache_write: {block: c, at: c.i0, scope: register, as: tile}
- decompose_reduction: {block: c, loop: c.l}
- vectorize: {loop: packed.d1, width: 4}
- unroll: {loop: tile.i}
- vectorize: {loop: tile.j, width: 4}
- unroll: {loop: tile.j_0}
- unroll: {loop: c.i1}
- unroll: {loop: c.j1}
- vectorize: {loop: c.j2, width: 4}
"""

NEXT = """\
def next_(n, x: float32[n + 1], y: Out[float32[n]]):
    with allocate(t=float32[n + 1]):
        for t.i in range(n + 1):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + t[i + 1]
"""


BEHIND = """\
- split: {loop: t.i, factors: [null, 4]}
- reverse_compute_at: {block: y, loop: t.i_0}
"""

BEHIND_AFTER = """\
def twice(n, x: float32[n], y: Out[float32[n]]):
    for t.i_0 in range((n + 3) // 4):
        with allocate(t=float32[n]):
            for t.i_1 in range(4):
                with block("t", i=spatial(t.i_0 * 4 + t.i_1, n), where=t.i_0 * 4 + t.i_1 < n):
                    t[i] = x[i] * 2.0
            for y.i in range(4):
                with block("y", i=spatial(t.i_0 * 4 + y.i, n), where=t.i_0 * 4 + y.i < n):
                    y[i] = t[i] + 1.0
"""


def test_a_packed_matrix_product_with_a_tile_in_registers() -> None:
    plain = start(MATMUL)
    state = schedule(plain, PACKED)[-1].state
    assert_same(plain.kernel, state.kernel, sizes=(1, 3, 9))
    lowered = lower(state, Cpu(Level.V2).lowering)
    prove(plain.kernel, lowered)
    text = to_text(lowered.kernel)
    assert "packed=float32[k, 8]" in text
    assert "tile=float32[2, 8] @ register" in text
    full = text[: text.index("for c.i0 in range(m // 2, (m + 1) // 2):")]
    assert "where" not in full and "if " not in full
    assert_same(plain.kernel, lowered.kernel, sizes=(1, 3, 9))


def test_what_one_tile_alone_uses_lives_in_its_loop() -> None:
    plain = start(TWICE)
    state = schedule(plain, BEHIND)[-1].state
    assert to_text(state.kernel) == BEHIND_AFTER


def test_what_a_later_tile_uses_lives_outside() -> None:
    """Tiles of four that are read from one element before them meet."""
    plain = start(NEXT)
    state = schedule(plain, BEHIND)[-1].state
    assert state.flow["y", 0].shared == ()
    assert state.flow["y", 1].shared == ("t.i_0",)
    assert_same(plain.kernel, state.kernel, sizes=(0, 1, 3, 4, 5, 9))


@pytest.mark.parametrize("width", [1, 4, 5])
def test_a_window_over_a_tile_has_one_element_more(width: int) -> None:
    plain = start(STENCIL)
    steps = (
        f"- split: {{loop: y.i, factors: [null, {width}]}}\n"
        "- compute_at: {block: t, loop: y.i_0}\n- unroll: {loop: t.i}"
    )
    state = schedule(plain, steps)[-1].state
    assert f"for t.i in unrolled({width + 1}):" in to_text(state.kernel)
    assert_same(plain.kernel, state.kernel, sizes=(0, 1, 4, 5, 6, 11))


def test_a_row_keeps_its_symbolic_extent() -> None:
    plain = start(MATMUL)
    state = schedule(plain, "- cache_read: {block: c, buffer: a, at: c.i}")[-1].state
    assert "for a_cache.d1 in range(k):" in to_text(state.kernel)


@pytest.mark.parametrize(
    "steps",
    [
        "- split: {loop: y.j, factors: [null, 4], as: [y.q, y.j]}\n"
        "- split: {loop: y.j, factors: [null, b]}",
        "- reverse: {loop: y.j}\n- split: {loop: y.j, factors: [null, 4], as: [y.q, y.j]}\n"
        "- split: {loop: y.j, factors: [null, b]}",
        "- split: {loop: y.j, factors: [null, 4], as: [y.q, y.j]}\n- shift: {loop: y.j, by: 2}\n"
        "- split: {loop: y.j, factors: [null, b]}\n"
        "- reorder: {loops: [y.j_0, y.i]}\n- reorder: {loops: [y.j_0, y.i, y.j_1]}",
    ],
    ids=["parts of fours", "backwards", "shifted"],
)
def test_parts_of_parts(steps: str) -> None:
    """The rest of a row ends the parts of a symbolic size of its last four."""
    plain = start(BLOCKED)
    state = schedule(plain, steps)[-1].state
    lowered = lower(state, Cpu(Level.V3).lowering)
    prove(plain.kernel, lowered)
    assert_same(plain.kernel, lowered.kernel)
