"""Equal values: the first index wins, in whatever order the terms come."""

import numpy as np
import pytest

from gen.ir.inits import explicit_inits
from gen.ir.text.parser import from_text
from gen.ir.walk import blocks
from gen.targets.cpu.jit import compile_kernel
from gen.targets.cpu.levels import Level
from gen.targets.cpu.passes.index_ties import in_order, mark

from .kernels import lowered

ROWS = """
def k(m, n, x: float32[m, n], v: Out[float32[m]], y: Out[int64[m]]):
    with allocate(a=float32[m], b=int64[m]):
        for y.c in range((m + 3)//4):
            for y.j in range(n):
                for y.l in vectorized(4):
                    with block(
                        "y",
                        i=spatial(y.c*4 + y.l, m),
                        j=reduction({binding}, n),
                        where=y.c*4 + y.l < m,
                        initialises=True,
                    ):
                        a[i], b[i] = combine.argmax((a[i], b[i]), (x[i, {read}], {at}))
        for v.i in range(m):
            with block("v", i=spatial(v.i)):
                v[i] = a[i]
        for w.i in range(m):
            with block("w", i=spatial(w.i)):
                y[i] = b[i]
"""

CASES = [
    ("y.j", "j", "j", True),
    ("y.j", "j", "2*j + 1", True),
    ("y.j", "n - 1 - j", "n - 1 - j", False),
    ("n - 1 - y.j", "j", "j", False),
    ("y.j", "j", "j // 2", True),
]


@pytest.mark.parametrize(("binding", "read", "at", "marked"), CASES)
def test_what_comes_in_order(binding: str, read: str, at: str, marked: bool) -> None:
    text = ROWS.format(binding=binding, read=read, at=at)
    body = mark(explicit_inits(from_text(text))).body
    assert [in_order(b) for b in blocks(body) if b.name == "y"] == [marked]


def test_terms_of_a_loop_in_any_order_are_in_no_order() -> None:
    """Whatever else is said of such a loop: marks do not lean on the proof that refuses it."""
    text = ROWS.format(binding="y.j", read="j", at="j").replace("y.j in range", "y.j in parallel")
    body = mark(explicit_inits(from_text(text))).body
    assert [in_order(b) for b in blocks(body) if b.name == "y"] == [False]


def test_what_comes_a_second_time_is_in_order_if_it_starts_anew() -> None:
    text = ROWS.format(binding="y.j", read="j", at="j")
    loop = text[text.index("        for y.c") : text.index("        for v.i")]
    again = loop.replace("y.", "z.").replace('"y"', '"z"')
    for second, expected in (
        (again, [True, True]),
        (again.replace("initialises=True,", ""), [True, False]),
    ):
        kernel = mark(explicit_inits(from_text(text.replace(loop, loop + second))))
        terms = [b for b in blocks(kernel.body) if b.name in "yz"]
        assert [in_order(b) for b in terms] == expected


@pytest.mark.parametrize(("binding", "read", "at", "marked"), CASES[:4])
def test_the_first_of_equals(binding: str, read: str, at: str, marked: bool) -> None:
    kernel = compile_kernel(
        lowered(ROWS.format(binding=binding, read=read, at=at)), Level.V2, packed=()
    )
    x = np.random.default_rng(3).integers(0, 2, (7, 9)).astype("f")
    x[1], x[2, 4:], x[3, ::3] = -np.inf, np.nan, -np.inf
    v, y = np.zeros(7, "f"), np.zeros(7, np.int64)
    kernel({"x": x, "v": v, "y": y})
    first = x.argmax(1)
    np.testing.assert_array_equal(y, 2 * first + 1 if at == "2*j + 1" else first)
    np.testing.assert_array_equal(v, x.max(1))


def test_a_place_that_holds_a_later_index_before_the_first_term() -> None:
    text = """
def k(m, n, x: float32[m, n], v: InOut[float32[m]], y: InOut[int64[m]]):
    for y.c in range((m + 3)//4):
        for y.j in range(n):
            for y.l in vectorized(4):
                with block("y", i=spatial(y.c*4 + y.l, m), j=reduction(y.j, n), where=y.c*4 + y.l < m):
                    v[i], y[i] = combine.argmax((v[i], y[i]), (x[i, j], j))
"""  # noqa: E501
    kernel = compile_kernel(lowered(text), Level.V2, packed=())
    v, y = np.zeros(4, "f"), np.full(4, 2)
    kernel({"x": np.zeros((4, 3), "f"), "v": v, "y": y})
    np.testing.assert_array_equal(y, 0)
