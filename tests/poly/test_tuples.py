"""Tuples: every part of what an update adds to holds the same terms, whoever reads the parts."""

import pytest

from gen.ir.nodes import Kernel
from gen.ir.text.parser import from_text
from gen.poly.certificate import Source

from .script import accept, refusal

INPUT = Source(initial=True)

PLAIN = """\
def k(m, n, x: float32[m, n], y: Out[int64[m]]):
    with allocate(v=float32[m]):
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    v[i], y[i] = combine.argmax((v[i], y[i]), (x[i, j], j))
"""

TREE = """\
def k(m, n, x: float32[m, n], y: Out[int64[m]]):
    with allocate(v=float32[m], w=float32[m], q=int64[m]):
        for s.i in range(m):
            with block("s", i=spatial(s.i), origin=None):
                v[i], y[i] = identity.argmax
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j)):
                    v[i], y[i] = combine.argmax((v[i], y[i]), (x[i, j], j))
"""


def changed(*pairs: tuple[str, str], text: str = TREE) -> Kernel:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return from_text(text)


def test_each_part_at_a_place_of_its_own() -> None:
    plain = from_text(PLAIN)
    accept(plain, changed())
    accept(plain, changed(("v=float32[m]", "v=float32[m, 2]"), ("v[i]", "v[m - 1 - i, 1]")))
    accept(plain, changed(("v=float32[m]", "v=float32[2 * m]"), ("v[i]", "v[2 * i]")))


def test_rows_that_are_computed_twice() -> None:
    """The value lives in the tile, the index outside: their places are not one to one."""
    tree = """\
def k(m, n, x: float32[m, n], y: Out[int64[m]]):
    for o in range(m):
        with allocate(v=float32[m]):
            for s.i in range(o, min(o + 2, m)):
                with block("s", i=spatial(s.i), origin=None):
                    v[i], y[i] = identity.argmax
            for y.i in range(o, min(o + 2, m)):
                for y.j in range(n):
                    with block("y", i=spatial(y.i), j=reduction(y.j)):
                        v[i], y[i] = combine.argmax((v[i], y[i]), (x[i, j], j))
"""
    accept(from_text(PLAIN), from_text(tree))
    accept(from_text(PLAIN), changed(("v[i]", "v[i % 2]"), text=tree))  # two rows at a time
    wrong = changed(("v[i]", "v[0]"), text=tree)
    assert refusal(from_text(PLAIN), wrong).message == (
        "y[i=1, j=0] combines parts that hold different terms: 'v' holds the term y[0, 0], and 'y'"
        " does not (for example: m=2, n=1; y[i=1, j=0] runs at o=0, y.i=1, y.j=0; element v[0])"
    )


BLOCK = '                with block("y",'
AGAIN = """\
                with block("t", i=spatial(y.i), origin=None):
                    v[i], q[i] = identity.argmax
"""
COPY = """\
                with block("t", i=spatial(y.i), origin=None):
                    v[i] = x[i, 0]
"""
TWICE = """\
                with block("t", i=spatial(y.i), j=reduction(y.j), origin=y[i, j]):
                    v[i], q[i] = combine.argmax((v[i], q[i]), (x[i, j], j))
"""
STEP = "v[i], y[i] = combine.argmax((v[i],"

UNREAD = {
    "folded": (
        (("v[i]", "v[i % 2]"),),
        "y[i=2, j=0] combines parts that hold different terms: 'v' holds the term y[0, 0], and 'y'"
        " does not (for example: m=3, n=1; y[i=2, j=0] runs at y.i=2, y.j=0; element v[0])",
    ),
    "one place": ((("v[i]", "v[0]"),), "'v' holds the term y[0, 0], and 'y' does not"),
    "another row's": (
        (("v[i]", "v[max(i - 1, 0)]"),),
        "'v' holds the term y[0, 0], and 'y' does not",
    ),
    "a place for each term": (
        (
            ("v=float32[m]", "v=float32[m, n + 1]"),
            ("v[i], y[i] = id", "v[i, 0], y[i] = id"),
            (STEP, "v[i, j], y[i] = combine.argmax((v[i, j],"),
        ),
        "y[i=0, j=1] reads 'v' before it is written",
    ),
    "no init": ((("v[i], y[i] = id", "w[i], y[i] = id"),), "reads 'v' before it is written"),
    "an init that covers too little": (
        (("v[i], y[i] = id", "v[0], y[i] = id"),),
        "reads 'v' before it is written",
    ),
    "an init of one part alone": (
        ((BLOCK, AGAIN + BLOCK),),
        "y[i=0, j=1] combines parts that hold different terms: 'y' holds the term y[0, 0], and 'v'"
        " does not",
    ),
    "overwritten": (
        ((BLOCK, COPY + BLOCK),),
        "the reduction that y[i=0, j=0] reads from 'v' starts from x[0, 0] as it was at the call",
    ),
    "a term twice, in one part": (
        ((BLOCK, TWICE + BLOCK),),
        "'v' holds the term y[0, 0] twice",
    ),
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_part_that_nothing_reads(name: str) -> None:
    pairs, reason = UNREAD[name]
    assert reason in refusal(from_text(PLAIN), changed(*pairs), t_0=INPUT).message


# ---------------------------------------------------------------- joins

JOINED = """\
def k(m, n, x: float32[m, n], y: Out[int64[m]]):
    with allocate(v=float32[m], p=float32[m, 2], q=int64[m, 2]):
        for s.i in range(m):
            with block("s", i=spatial(s.i), origin=None):
                v[i], y[i] = identity.argmax
        for t.i in range(m):
            for t.r in range(2):
                with block("t", i=spatial(t.i), r=spatial(t.r), origin=None):
                    p[i, r], q[i, r] = identity.argmax
        for z.i in range(m):
            for z.j in range(n):
                with block("z", i=spatial(z.i), j=reduction(z.j), origin=y[i, j]):
                    p[i, j % 2], q[i, j % 2] = combine.argmax(
                        (p[i, j % 2], q[i, j % 2]), (x[i, j], j)
                    )
        for y.i in range(m):
            for y.r in range(2):
                with block("y", i=spatial(y.i), r=reduction(y.r), origin=None):
                    v[i], y[i] = combine.argmax((v[i], y[i]), (p[i, r], q[i, r]))
"""
PARTIAL = Source(("z",))
JOINS = {"y_0": PARTIAL, "y_1": PARTIAL, "z_0": INPUT}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "v[i]",
            "v[i % 2]",
            "y[i=2, r=1] combines parts that hold different terms: 'v' holds the term y[0, 0]",
        ),
        ("p[i, j % 2]", "p[i, 0]", "z[i=0, j=1] combines parts that hold different terms"),
        ("p[i,", "p[0,", "combines parts that hold different terms"),
        ("(p[i, r], q[i, r]))", "(p[i, r], q[i, 1 - r]))", "joins parts of different partials"),
    ],
)
def test_joins_of_tuples(old: str, new: str, reason: str) -> None:
    accept(from_text(PLAIN), from_text(JOINED), **JOINS)
    wrong = changed((old, new), text=JOINED)
    assert reason in refusal(from_text(PLAIN), wrong, **JOINS).message


# ---------------------------------------------------------------- parts of one type

COUNTED = """\
def k(m, n, x: int64[m, n], y: Out[int64[m]]):
    @combiner(most=int64(-9223372036854775808), times=int64(0))
    def counted(a, b, c):
        c.most = max(a.most, b.most)
        c.times = (a.times if a.most == c.most else 0) + (b.times if b.most == c.most else 0)
    with allocate(v=int64[m, 2]):
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    v[i, 0], y[i] = combine.counted((v[i, 0], y[i]), (x[i, j], 1))
"""


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("v[i, 0]", "v[i % 2, 0]", None),  # the init is right before each row
        ("v[i, 0]", "y[i]", "starts from the identity of counted"),
        (
            "v[i, 0], y[i] = combine.counted((v[i, 0], y[i])",
            "y[i], v[i, 0] = combine.counted((y[i], v[i, 0])",
            "lacks the term y[0, 0]",
        ),
    ],
)
def test_parts_of_one_type(old: str, new: str, reason: str | None) -> None:
    plain, tree = from_text(COUNTED), changed((old, new), text=COUNTED)
    if reason is None:
        accept(plain, tree)
    else:
        assert reason in refusal(plain, tree).message
