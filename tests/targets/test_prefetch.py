"""Reads ahead: where to, and once for each line that several statements read."""

from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text

from .test_golden import emitted

TILE = """
def tile(m, n, x: float32[n, 8], y: Out[float32[m, n, 8]]):
    for y.i in range((m + 3)//4):
        for y.j in range(n):
            for y.r in unrolled(4):
                for y.l in vectorized(8):
                    with block("y", i=spatial(y.i*4 + y.r, m), j=spatial(y.j), l=spatial(y.l), where=y.i*4 + y.r < m, annotations={'prefetch x': '8, 0%s'}):
                        y[i, j, l] = x[j, l]
"""  # noqa: E501


def test_statements_that_read_the_same_line_ask_once() -> None:
    code = emitted(TILE % "", packable=False)
    full = code[code.index("y_i_end = m / 4") :]
    assert full[: full.index("for (int64_t y_i = m / 4")].count("__builtin_prefetch") == 1


def test_a_read_ahead_into_the_second_level() -> None:
    assert "0, 2);" in emitted(TILE % ", l2", packable=False)
    assert "0, 2);" not in emitted(TILE % "", packable=False)


def test_the_mark_round_trips() -> None:
    kernel = from_text(TILE % ", l2")
    assert from_text(to_text(kernel)) == kernel
