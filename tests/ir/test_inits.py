"""Inits written out: where they go, what they copy, and what they refuse."""

import numpy as np
import pytest

from gen.errors import ScheduleError
from gen.ir.inits import explicit_init, explicit_inits
from gen.ir.interpret.interp import run
from gen.ir.rules.verify import verify, verify_any
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text

MATMUL = """\
def matmul(m, n, p, a: float32[m, p], b: float32[p, n], c: Out[float32[m, n]]):
    for c.i in parallel(m):
        for c.k_0 in range((p + 3) // 4):
            for c.j in vectorized(n):
                for c.k_1 in range(4):
                    with block(
                        "c",
                        i=spatial(c.i),
                        j=spatial(c.j),
                        k=reduction(c.k_0 * 4 + c.k_1, p),
                        where=c.j > 0 and c.k_0 * 4 + c.k_1 < p,
                        initialises=True,
                    ):
                        c[i, j] = combine.sum(c[i, j], a[i, k] * b[k, j])
"""


def test_the_init_goes_before_the_outermost_reduction_loop() -> None:
    """It takes copies of the spatial loops inside, their kinds, and the spatial conjuncts."""
    after = to_text(explicit_inits(from_text(MATMUL)))
    init = """\
    for c.i in parallel(m):
        for c.init.j in vectorized(n):
            with block(
                "c.init",
                i=spatial(c.i),
                j=spatial(c.init.j),
                where=c.init.j > 0,
                origin=None,
            ):
                c[i, j] = identity.sum
        for c.k_0 in range((p + 3) // 4):
"""
    assert init in after
    assert "initialises" not in after
    verify(from_text(after))


def test_the_init_goes_where_it_is_asked_to() -> None:
    after = to_text(explicit_init(from_text(MATMUL), "c", "c.i", "zero"))
    init = """\
    for zero.i in parallel(m):
        for zero.j in vectorized(n):
            with block("zero", i=spatial(zero.i), j=spatial(zero.j), where=zero.j > 0, origin=None):
                c[i, j] = identity.sum
    for c.i in parallel(m):
"""
    assert init in after
    verify(from_text(after))


def test_an_init_without_reduction_loops_goes_before_its_block() -> None:
    text = """\
def f(n, x: float32[1, n], y: Out[float32[n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i), k=reduction(0, 1), initialises=True):
            y[i] = combine.sum(y[i], x[k, i])
"""
    after = explicit_inits(from_text(text))
    x = np.arange(3, dtype=np.float32)
    assert 'with block("y.init", i=spatial(y.i), origin=None)' in to_text(after)
    np.testing.assert_array_equal(run(after, {"x": x[None]})["y"], x)


FUSED = """\
def f(m, n, p, x: float32[m, n, p], y: Out[float32[m, n]]):
    for y.f in range(p):
        for y.g in range(m * n):
            with delinearize(y.g, m, n) as (y.i, y.j):
                with block(
                    "y", i=spatial(y.i), j=spatial(y.j), k=reduction(y.f), initialises=True
                ):
                    y[i, j] = combine.sum(y[i, j], x[i, j, k])
"""


def test_a_fused_spatial_loop_is_copied_with_its_parts() -> None:
    after = explicit_inits(from_text(FUSED))
    expected = """\
    for y.init.g in range(m * n):
        with delinearize(y.init.g, m, n) as (y.init.i, y.init.j):
            with block("y.init", i=spatial(y.init.i), j=spatial(y.init.j), origin=None):
"""
    assert expected in to_text(after)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(run(after, {"x": x})["y"], x.sum(-1))


def test_a_fused_reduction_counts_as_one_reduction_loop() -> None:
    text = """\
def f(m, n, p, x: float32[m, n, p], y: Out[float32[m]]):
    for y.i in range(m):
        for y.f in range(n * p):
            with delinearize(y.f, n, p) as (y.j, y.k):
                with block(
                    "y", i=spatial(y.i), j=reduction(y.j), k=reduction(y.k), initialises=True
                ):
                    y[i] = combine.sum(y[i], x[i, j, k])
"""
    x = np.ones((2, 3, 4), np.float32)
    after = explicit_inits(from_text(text))
    assert to_text(after).index("y.init") < to_text(after).index("for y.f")
    np.testing.assert_array_equal(run(after, {"x": x})["y"], [12, 12])


def test_copied_loops_of_one_last_part_stay_apart() -> None:
    text = """\
def f(n, x: float32[n, n], y: Out[float32[n, n]]):
    for y.k in range(1):
        for a.i in range(n):
            for b.i in range(n):
                with block(
                    "y", i=spatial(a.i), j=spatial(b.i), k=reduction(y.k), initialises=True
                ):
                    y[i, j] = combine.max(y[i, j], x[i, j])
"""
    after = explicit_inits(from_text(text))
    assert "for y.init.i_1 in range(n)" in to_text(after)
    verify(after)


def test_guards_of_lowered_trees_are_kept() -> None:
    """An `if` around a reduction loop guards the init where it uses spatial loops alone."""
    text = """\
def f(n, p, x: float32[n, p], y: InOut[float32[n]]):
    for y.k in range(p):
        for y.i in range(n + 1):
            if y.i < n and y.k < p:
                with block("y", i=spatial(y.i, n), k=reduction(y.k), initialises=True):
                    y[i] = combine.sum(y[i], x[i, k])
"""
    after = explicit_inits(from_text(text))
    verify_any(after)
    assert "i=spatial(y.init.i, n), where=y.init.i < n, origin=None" in to_text(after)


def test_empty_reductions_store_the_identity() -> None:
    kernel = from_text(MATMUL.replace("c.j > 0 and ", ""))
    a, b = np.ones((2, 0), np.float32), np.ones((0, 3), np.float32)
    np.testing.assert_array_equal(run(kernel, {"a": a, "b": b})["c"], np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("text", "loop", "message"),
    [
        (MATMUL, "c.j", "would run again at each iteration of the reduction loop 'c.k_0'"),
        (MATMUL, "d.j", "loop 'd.j' is not around block 'c'"),
        (
            MATMUL.replace("initialises=True", "initialises=False"),
            None,
            "block 'c' has no init of its own",
        ),
        (MATMUL.replace('"c"', '"d"'), None, "there is no block 'c'"),
        (
            MATMUL.replace("vectorized(n)", "vectorized(c.k_0, n)").replace("(c.j)", "(c.j, n)"),
            None,
            "the bounds of the spatial loop 'c.j' depend on 'c.k_0'",
        ),
        (
            FUSED.replace("range(m * n)", "range(m * p)")
            .replace("(y.g, m, n) as (y.i, y.j)", "(y.g, m, p) as (y.i, y.k)")
            .replace("spatial(y.j)", "spatial(y.f, n)")
            .replace("reduction(y.f)", "reduction(y.k)")
            .replace('"y",', '"c",'),
            None,
            "'y.g' carries both spatial and reduction variables of block 'c': decompose the "
            "reduction first",
        ),
        (
            """\
def f(n, x: float32[n]):
    for c.k in range(n):
        with allocate(c=float32[()]):
            with block("c", k=reduction(c.k), initialises=True):
                c[()] = combine.sum(c[()], x[k])
""",
            None,
            "the init of block 'c' would run before 'c' is allocated",
        ),
    ],
)
def test_an_init_that_cannot_go_there_is_refused(text: str, loop: str | None, message: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        explicit_init(from_text(text), "c", loop)
    assert message in refusal.value.message
