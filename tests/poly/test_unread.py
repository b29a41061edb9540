"""Values that no block reads as values: what decides, is carried on, added to or only written. Each
tree is right but for one thing.
"""

from dataclasses import dataclass, field

import pytest

from gen.ir.text.parser import from_text
from gen.poly.certificate import Source

from .script import accept, refusal

INPUT = Source(initial=True)


@dataclass(frozen=True)
class Case:
    """plain, and how it becomes a right tree, and wrong ones, each with a part of the reason."""

    plain: str
    right: tuple[tuple[str, str], ...]
    wrong: dict[tuple[str, str], str]
    flow: dict[str, Source] = field(default_factory=dict)


GATHER = """\
def gather(m, n, x: float32[n], k: int64[m], y: Out[float32[m]]):
    assume(n >= 1)
    with allocate(c=int64[m]):
        for y.i in range(m):
            with block("y", i=spatial(y.i)):
                y[i] = x[min(max(k[i], 0), n - 1)]
"""
CACHED = """\
        for c.i in range(m):
            with block("c", i=spatial(c.i), origin=None):
                c[i] = k[i]
        for y.i"""

CHOSEN = """\
def chosen(m, n, x: float32[m, n], k: int64[n], l: int64[n], y: Out[float32[m]]):
    with allocate(c=int64[n]):
        for y.i in range(m):
            for y.j in range(n):
                with block(
                    "y", i=spatial(y.i), j=reduction(y.j), where=k[y.j] < 3, initialises=True
                ):
                    y[i] = combine.sum(y[i], x[i, j])
"""

ROWS = """\
def rows(m, n, v: float32[n], p: int64[m + 1], y: Out[float32[m]]):
    for y.i in range(m):
        for y.e in range(n):
            with block(
                "y",
                i=spatial(y.i),
                e=reduction(y.e),
                where=p[y.i] <= y.e and y.e < p[y.i + 1],
                initialises=True,
            ):
                y[i] = combine.sum(y[i], v[e])
"""

RUNNING = """\
def running(n, x: float32[n], y: Out[float32[n]]):
    for y.i in range(n):
        for y.j in range(y.i + 1):
            with block("y", i=spatial(y.i), j=reduction(y.j, i + 1), initialises=True):
                y[i] = combine.sum(y[i], x[j])
"""
CARRIED = """\
    with allocate(c=float32[2], d=float32[2]):
        with block("c.init", origin=None):
            c[0] = identity.sum
        for y.i in range(n):
            with block("c", i=reduction(y.i), origin=y[i, i]):
                c[0] = combine.sum(c[0], x[i])
            with block("y", i=spatial(y.i), origin=None):
                y[i] = c[0]
"""

STEPS = """\
def steps(n, t, u: InOut[float32[n]]):
    with allocate(w=float32[n]):
        for w.t in range(t):
            for w.i in range(n):
                with block("w", s=spatial(w.t), i=spatial(w.i)):
                    w[i] = u[max(i - 1, 0)] + u[i]
            for u.i in range(n):
                with block("u", s=spatial(w.t), i=spatial(u.i)):
                    u[i] = w[i]
"""

PLUS = """\
def plus(m, n, x: float32[m, n], y: InOut[float32[m]]):
    with allocate(c=float32[m]):
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j)):
                    y[i] = combine.sum(y[i], x[i, j])
"""
LOOP = "            for y.j in range(n):\n"
BEFORE = """\
            with block("b", i=spatial(y.i), origin=None):
                BODY
"""

CASES = {
    "a table that is read by": Case(
        GATHER,
        (("        for y.i", CACHED), ("max(k[i]", "max(c[i]")),
        {
            ("c[i] = k[i]", "c[i] = k[m - 1 - i]"): "y[i=0] needs k[0] as it was at the call",
            (
                'range(m):\n            with block("c"',
                'range(m - 1):\n            with block("c"',
            ): "needs k[0]",
            ("max(c[i]", "max(c[0]"): "needs k[1]",
        },
        {"c_0": INPUT, "y_1": Source(("c",))},
    ),
    "a condition": Case(
        CHOSEN,
        (),
        {
            ("k[y.j] <", "l[y.j] <"): "computes `l[y.j]` where",
            ("k[y.j] <", "k[n - 1 - y.j] <"): "computes",
            ("k[y.j] <", "c[y.j] <"): "neither affine nor a condition on inputs",
            ("where=k[y.j] < 3,", ""): "other conditions on inputs",
        },
    ),
    "bounds of a loop": Case(
        ROWS,
        (),
        {
            ("p[y.i + 1]", "p[y.i]"): "computes",
            ("p[y.i] <= y.e and ", ""): "other conditions on inputs",
            ("<= y.e", "<= y.e + 1"): "computes",
        },
    ),
    "a carry": Case(
        RUNNING,
        ((RUNNING.split("\n", 1)[1], CARRIED),),
        {
            ("c[0] = identity", "c[1] = identity"): "reads 'c' before it is written",
            ("c[0] = identity", "d[0] = identity"): "reads 'c' before it is written",
            ("for y.i in range(n)", "for y.i in range(1, n)"): "holds the term y[1, 1] as well",
            ("y[i] = c[0]", "y[n - 1 - i] = c[0]"): "element [0] of 'y' must end as y[0]",
        },
        {"y_0": Source(("c",)), "c_0": INPUT},
    ),
    "what a step leaves to the next": Case(
        STEPS,
        (),
        {
            ("u[i] = w[i]", "u[i] = w[i // 2]"): "u[s=0, i=1] needs w[0, 1] from 'w'",
            ("for u.i in range(n)", "for u.i in range(n - 1)"): "needs u[",
            ("w[i]", "w[0]"): "overwrites it in between",
            ("w=float32[n]", "w=float32[n - 1]"): "outside",
        },
    ),
    "what is added to": Case(
        PLUS,
        (),
        {
            (LOOP, BEFORE.replace("BODY", "y[i] = float32(0)") + LOOP): "starts from",
            (
                LOOP,
                BEFORE.replace("BODY", "y[i] = identity.sum") + LOOP,
            ): "starts from the identity",
            (LOOP, BEFORE.replace("BODY", "y[0] = c[0]") + LOOP): "does not say where read 0",
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_not_read(name: str) -> None:
    case = CASES[name]
    plain, right = from_text(case.plain), _changed(case.plain, *case.right)
    accept(plain, from_text(right), **case.flow)
    for edit, reason in case.wrong.items():
        assert reason in refusal(plain, from_text(_changed(right, edit)), **case.flow).message


def _changed(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text
