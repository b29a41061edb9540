"""Loops in parts of a size that is given at run time: what the prover takes for such."""

import pytest

from gen.ir.nodes import Kernel
from gen.poly.checks.in_place import in_place

from .script import accept, block, kernel, nest, refusal

SIGNATURE = "m, n, x: InOut[float32[m, n]], b: int64, c: int64"
BACK = "x[i, j] = x[i - 1, j] + x[i, j - 1]"
AHEAD = "x[i, j] = x[i - 1, j + 1]"
ROW, COLUMN = "i0 * b + i1", "j0 * c + j1"
ASSUMED = "b >= 1 and c >= 1"


def plain(body: str = BACK) -> Kernel:
    inner = block("x", "i:1:m - 1=r + 1, j:1:n - 1=s + 1", body)
    return kernel(SIGNATURE, nest("for r in range(m - 2)", "for s in range(n - 2)", inner))


def tiled(
    body: str = BACK,
    *,
    loops: tuple[str, ...] = ("i0", "j0", "i1", "j1"),
    at: str = f"i:1:m - 1={ROW} + 1, j:1:n - 1={COLUMN} + 1",
    where: str = f"{ROW} < m - 2 and {COLUMN} < n - 2",
    assume: str = ASSUMED,
    **ranges: str,
) -> Kernel:
    over = {
        "i0": "range((m - 2 + (b - 1)) // b)",
        "j0": "range((n - 2 + (c - 1)) // c)",
        "i1": "range(b)",
        "j1": "range(c)",
        **ranges,
    }
    headers = (f"for {name} in {over[name]}" for name in loops)
    inner = block("x", at, body, f"where={where}" if where else "")
    return kernel(SIGNATURE, nest(*headers, inner), assume=assume)


@pytest.mark.parametrize(
    "loops",
    [
        ("i0", "i1", "j0", "j1"),
        ("i0", "j0", "i1", "j1"),
        ("i0", "j0", "j1", "i1"),
        ("j0", "i0", "i1", "j1"),
    ],
    ids="-".join,
)
def test_a_permutable_nest_in_any_parts(loops: tuple[str, ...]) -> None:
    accept(plain(), tiled(loops=loops))


def test_bounds_in_place_of_guards() -> None:
    """As lowering leaves it."""
    cut = tiled(where="", i1="range(min(b, m - i0 * b - 2))", j1="range(min(c, n - j0 * c - 2))")
    accept(plain(), cut)


CUT = "x[i, j] = x[i, j] * 2.0"


def cut(upper: str = "min(min(b, n - q * 4 - j0 * b), 4 - j0 * b)", lower: str = "0") -> Kernel:
    """Fours of a row, each in parts of b, as lowering leaves them: without guards."""
    inner = block("x", "i=i, j:0:n=q * 4 + (j0 * b + j1)", CUT)
    return kernel(
        SIGNATURE,
        nest(
            "for i in range(m)",
            "for q in range((n + 3) // 4)",
            "for j0 in range((4 + (b - 1)) // b)",
            f"for j1 in range({lower}, {upper})",
            inner,
        ),
        assume="b >= 1",
    )


def whole(least: str = "0") -> Kernel:
    inner = block("x", "i=i, j:0:n=j", CUT)
    return kernel(
        SIGNATURE, nest("for i in range(m)", f"for j in range({least}, n)", inner), assume="b >= 1"
    )


def test_parts_of_loops_that_end_earlier() -> None:
    """What bounds the places in a part bounds all of the loop."""
    accept(whole(), cut())
    accept(whole(), cut("min(min(4 - j0 * b, n - q * 4 - j0 * b), b)"))
    accept(whole("1"), cut(lower="max(0, 1 - q * 4 - j0 * b)"))


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (cut("min(min(b, n - q * 4 - j0 * b - 1), 4 - j0 * b)"), "must end as x[0, 0]"),
        (cut("min(min(b, n - q * 4 - j0 * b + 1), 4 - j0 * b)"), "is outside its domain"),
        (cut("min(b, 4 - j0 * b)"), "is outside its domain"),
        (cut("min(b, n - q * 4 - j0 * b)"), "runs past the end of a loop that is cut into parts"),
        (cut("min(min(b, n - q * 4 - j0), 4 - j0 * b)"), "something other than the sum"),
        (cut(lower="max(0, 1 - q * 4 - j0 * b)"), "must end as"),
        (cut(lower="1 - q * 4 - j0 * b"), "do not run over the parts of one loop"),
    ],
    ids=["short", "long", "endless", "over", "uneven", "late", "below"],
)
def test_parts_of_loops_that_end_elsewhere(tree: Kernel, reason: str) -> None:
    assert reason in refusal(whole(), tree).message


def test_a_neighbour_ahead_in_one_loop() -> None:
    assert refusal(plain(AHEAD), tiled(AHEAD)).message == (
        "x[i=1, j=2] must run before x[i=2, j=1], since both touch 'x', but may be in a later part"
        " of loop 'j0' (for example: m=4, n=4, b=1, c=1; x[i=1, j=2] runs at i0 * b + i1=0,"
        " j0 * c + j1=1; x[i=2, j=1] runs at i0 * b + i1=1, j0 * c + j1=0; element x[1, 2])"
    )
    accept(plain(AHEAD), tiled(AHEAD, loops=("i0", "i1", "j0", "j1")))


def test_terms_of_a_sum_come_in_any_order() -> None:
    """Sums of diagonals: each takes its terms from rows down and columns to the left."""
    signature = "m, n, b: int64, x: float32[m, n], y: InOut[float32[m + n]]"
    body = "y[k] = combine.sum(y[k], x[k - j, j])"
    terms = block("y", "k:0:m + n - 1=r + s, j+=s", body)
    whole = kernel(signature, nest("for r in range(m)", "for s in range(n)", terms))
    cut = nest(
        "for i0 in range((m + (b - 1)) // b)",
        "for s in range(n)",
        "for i1 in range(b)",
        block("y", f"k:0:m + n - 1={ROW} + s, j+=s", body, f"where={ROW} < m"),
    )
    accept(whole, kernel(signature, cut, assume="b >= 1"))


WRONG = {
    "a size of 0": (
        {"assume": "b >= 0 and c >= 1"},
        "the size `b` of parts around block 'x' may be",
    ),
    "nothing known of a size": (
        {"assume": "b >= 1"},
        "the size `c` of parts around block 'x' may be",
    ),
    "no guard": ({"where": f"{ROW} < m - 2"}, "block 'x' runs past the end of a loop that is cut"),
    "a part too few": ({"i0": "range((m - 2) // b)"}, "block 'x' runs past the end of a loop"),
    "parts from the second": (
        {"i0": "range(1, (m - 2 + (b - 1)) // b)"},
        "do not run over the parts",
    ),
    "parts without their first": ({"i1": "range(1, b)"}, "do not run over the parts of one loop"),
    "parts that are too short": ({"i1": "range(b - 1)"}, "do not run over the parts of one loop"),
    "parts of another size": ({"i1": "range(c)"}, "no loop directly inside it goes through them"),
    "a bound of another loop": (
        {"i1": "range(min(b, n - i0 * b - 2))"},
        "element [2, 1] of 'x' must end as x[2, 1], and does not",
    ),
    "another distance": (
        {"at": f"i:1:m - 1=i0 * c + i1 + 1, j:1:n - 1={COLUMN} + 1"},
        "something other than the sum of a part's first iteration and the place in it is used",
    ),
    "the number of a part": (
        {"at": f"i:1:m - 1={ROW} + 1 + i0, j:1:n - 1={COLUMN} + 1"},
        "something other than the sum of a part's first iteration and the place in it is used",
    ),
    "no sum at all": (
        {"at": f"i:1:m - 1=i1 + 1, j:1:n - 1={COLUMN} + 1", "where": f"{COLUMN} < n - 2"},
        "something other than the sum of a part's first iteration and the place in it is used",
    ),
    "rows that race": (
        {"i0": "parallel((m - 2 + (b - 1)) // b)"},
        "parallel loop 'i0' has a race",
    ),
    "parts that run at once in parts": (
        {"j0": "parallel((n - 2 + (c - 1)) // c)"},
        "loop 'j0' counts parts of a symbolic size and is parallel around parts of another loop",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_such_nest(name: str) -> None:
    changes, reason = WRONG[name]
    assert reason in refusal(plain(), tiled(**changes)).message  # type: ignore[arg-type]


def test_names_in_a_block_are_its_own() -> None:
    """Its i0 * b + i1 is of its iteration variables, whatever the loops are called."""
    body = "y[r, i1] = x[r, i0 * b + i1]"
    signature = "m, n, b: int64, x: float32[m, n], y: Out[float32[m, n]]"
    own = "i0:0:1=0, i1=j, r=i"
    inner = block("y", own, body)
    whole = kernel(signature, nest("for i in range(m)", "for j in range(n)", inner))
    cut = nest(
        "for i0 in range((m + (b - 1)) // b)",
        "for i1 in range(b)",
        "for j in range(n)",
        block("y", f"i0:0:1=0, i1=j, r:0:m={ROW}", body, f"where={ROW} < m"),
    )
    accept(whole, kernel(signature, cut, assume="b >= 1"))


def test_an_input_that_is_read_ahead_is_no_output() -> None:
    """In parts, a column ahead is written before it is read: never in one array."""
    signature = "m, n, b: int64, x: float32[m, n], y: Out[float32[m, n]]"
    body = "y[i, j] = x[i, min(j + 1, n - 1)]"
    whole = nest("for i in range(m)", "for j in range(n)", block("y", "i=i, j=j", body))
    cut = nest(
        "for i0 in range((m + (b - 1)) // b)",
        "for j in range(n)",
        "for i1 in range(b)",
        block("y", f"i:0:m={ROW}, j=j", body, f"where={ROW} < m"),
    )
    tiles = kernel(signature, cut, assume="b >= 1")
    accept(kernel(signature, whole), tiles)
    assert in_place(kernel(signature, whole)) == {("x", "y")}
    assert in_place(tiles) == frozenset()
