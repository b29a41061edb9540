"""Producers inlined through positions that are read from arrays: proved, and wrong ones refused."""

from dataclasses import replace
from functools import cache

import pytest

from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.poly.certificate import Scheduled, Source
from gen.poly.prove import prove
from gen.poly.values.flow import plain_flow
from gen.poly.witness import Refused
from tests.schedule.support import assert_same, schedule, start

# Rows of a table that is stored as bytes and scales: row p[i], and its neighbour's mirror image.
TABLE = """
def k(m, n, p: int64[m], s: float64[n], q: int8[n], y: Out[float64[m]]):
    assume(n >= 1)
    with allocate(w=float64[n]):
        for w.v in range(n):
            with block("w", v=spatial(w.v)):
                w[v] = s[v] * float64(q[n - 1 - v])
        for y.i in range(m):
            with block("y", i=spatial(y.i)):
                y[i] = w[min(max(p[i], 0), n - 1)]
"""
INLINED = "s[min(max(p[i], 0), n - 1)] * float64(q[n - 1 - min(max(p[i], 0), n - 1)])"


@cache
def inlined() -> Scheduled:
    return schedule(start(TABLE), "- compute_inline: {block: w}")[-1].state


def test_a_table_that_is_made_where_it_is_read() -> None:
    state = inlined()
    assert f"y[i] = {INLINED}" in to_text(state.kernel) and "w" not in to_text(state.kernel).split()
    assert str(state.standing) == "proved"
    assert_same(start(TABLE).kernel, state.kernel, sizes=(1, 2, 5))


WRONG = [
    ("* float64", "+ float64"),
    ("s[min(max(p[i], 0), n - 1)]", "s[min(max(p[m - 1 - i], 0), n - 1)]"),
    ("s[min(max(p[i], 0), n - 1)]", "s[n - 1 - min(max(p[i], 0), n - 1)]"),
    ("s[min(max(p[i], 0), n - 1)]", "s[0]"),
    ("q[n - 1 - min(max(p[i], 0), n - 1)]", "q[min(max(p[i], 0), n - 1)]"),
    ("q[n - 1 - min(max(p[i], 0), n - 1)]", "q[n - 1 - min(max(p[i], 1), n - 1)]"),
]


@pytest.mark.parametrize(("right", "wrong"), WRONG)
def test_another_expression_or_place(right: str, wrong: str) -> None:
    state = inlined()
    text = to_text(state.kernel)
    assert right in text
    kernel = from_text(text.replace(right, wrong, 1))
    with pytest.raises(
        Refused, match=r"computes `.*` where block 'y with w in it' of|needs p\[0\] as it was"
    ):
        prove(start(TABLE).kernel, replace(state, kernel=kernel))


def test_what_is_overwritten_in_between() -> None:
    """The producer has read s before; the consumer finds 0 there."""
    zeros = """\
        for z.i in range(n):
            with block("z", i=spatial(z.i)):
                s[i] = 0.0
"""
    text = TABLE.replace("s: float64[n]", "s: InOut[float64[n]]")
    text = text.replace("        for y.i", f"{zeros}        for y.i")
    plain = from_text(text)
    tree = text.replace("y[i] = w[min(max(p[i], 0), n - 1)]", f"y[i] = {INLINED}")
    initial = Source((), initial=True)
    flow = {**plain_flow(plain), **{("y", k): initial for k in range(4)}}
    with pytest.raises(Refused, match=r"reads what 's' held at the call, but z\[i=0\] writes it"):
        prove(plain, Scheduled(from_text(tree), flow))


def test_what_an_element_does_not_tell() -> None:
    """A running sum, of which each w has another value: the last one is not for all."""
    text = """
def k(m, n, p: int64[m], x: float64[n], y: Out[float64[m]]):
    assume(n >= 1)
    with allocate(w=float64[n], z=float64[1]):
        for a.i in range(1):
            with block("a", i=spatial(a.i)):
                z[0] = 0.0
        for w.v in range(n):
            with block("b", v=spatial(w.v)):
                z[0] = z[0] + x[v]
            with block("w", v=spatial(w.v)):
                w[v] = z[0]
        for y.i in range(m):
            with block("y", i=spatial(y.i)):
                y[i] = w[min(max(p[i], 0), n - 1)]
"""
    plain = from_text(text)
    tree = from_text(text.replace("y[i] = w[min(max(p[i], 0), n - 1)]", "y[i] = z[0]"))
    flow = {**plain_flow(plain), ("y", 0): Source(("b",))}
    with pytest.raises(Refused, match=r"computes `z\[0\]` where block 'y' of the plain schedule"):
        prove(plain, Scheduled(tree, flow))


def test_an_element_of_several_producers() -> None:
    """The first element is made by another block: the expression of the others is not its."""
    first = """\
        for f.v in range(1):
            with block("f", v=spatial(f.v)):
                w[v] = 0.0
"""
    text = TABLE.replace("w.v in range(n)", "w.v in range(1, n)").replace(
        "v=spatial(w.v)", "v=spatial(w.v, 1, n)"
    )
    text = text.replace("        for y.i", f"{first}        for y.i")
    plain = from_text(text)
    tree = from_text(text.replace("y[i] = w[min(max(p[i], 0), n - 1)]", f"y[i] = {INLINED}"))
    flow = {**plain_flow(plain), **{("y", k): Source((), initial=True) for k in range(4)}}
    with pytest.raises(Refused, match=r"block 'y' computes `s.*` where block 'y' of the plain"):
        prove(plain, Scheduled(tree, flow))


SUMS = [
    ("n - 1 - min(max(p[i], 0), n - 1)", None),
    ("min(max(p[i], 0), n - 1) - min(max(p[i], 0), 0)", None),
    ("n - min(max(p[i], 0), n - 1)", "at [1]"),
    ("min(max(p[i], 0), n - 1) + 1", "at [1]"),
    ("min(max(p[i], 0) + 1, n - 1)", "at [-1]"),  # the sum wraps around where p[i] is the largest
]


@pytest.mark.parametrize(("index", "refusal"), SUMS)
def test_sums_of_positions_that_are_held_inside(index: str, refusal: str | None) -> None:
    kernel = from_text(f"""
def k(n, p: int64[n], x: float64[n], y: Out[float64[n]]):
    assume(n >= 1)
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = x[{index}]
""")
    state = Scheduled(kernel, plain_flow(kernel))
    if refusal is None:
        prove(kernel, state)
        return
    with pytest.raises(Refused) as caught:
        prove(kernel, state)
    assert caught.value.reason.endswith(f"outside its bounds, {refusal}")
