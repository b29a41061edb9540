"""Parts of a symbolic size through which several loops go, one after the other: as lowering leaves
what is vectorized by fours and then cut into parts of b.
"""

import pytest

from gen.ir.nodes import Kernel

from .script import accept, block, kernel, nest, refusal

SIGNATURE = "m, n, x: InOut[float32[m, n]], b: int64, c: int64"
ASSUMED = "b >= 1 and c >= 1"
DOUBLE = "x[i, j] = x[i, j] * 2.0"
LEFT = "x[i, j] = x[i, max(j - 1, 0)] + x[i, j]"
RIGHT = "x[i, j] = x[i, min(j + 1, n - 1)] + x[i, j]"
ABOVE = "x[i, j] = x[max(i - 1, 0), j] + x[i, j]"
ASIDE = "x[i, j] = x[max(i - 1, 0), min(j + 1, n - 1)] + x[i, j]"

PARTS = "for j0 in range(((n + 3) // 4 + (b - 1)) // b)"
WHOLE = "range(min(min(b, (n + 3) // 4 - j0 * b), n // 4 - j0 * b))"
REST = "range(max(min(b, n // 4 - j0 * b), 0), min(b, (n + 3) // 4 - j0 * b))"


def plain(body: str = DOUBLE) -> Kernel:
    inner = block("x", "i=i, j=j", body)
    return kernel(SIGNATURE, nest("for i in range(m)", "for j in range(n)", inner), assume=ASSUMED)


def columns(whole: str, rest: str, body: str, row: str = "i") -> str:
    """Of a part of a row: the fours that lie in the row, then the one at its end."""
    at, guard = f"i:0:m={row}, j:0:n=(j0 * b + j1) * 4 + k", "where=(j0 * b + j1) * 4 + k < n"
    parts = [
        nest(f"for j1 in {whole}", "for k in range(4)", block("x", at, body)),
        nest(f"for j1 in {rest}", "for k in range(4)", block("x", at, body, guard)),
    ]
    return "\n".join(parts)


def turns(whole: str = WHOLE, rest: str = REST, body: str = DOUBLE) -> Kernel:
    inner = columns(whole, rest, body)
    return kernel(SIGNATURE, nest("for i in range(m)", PARTS, inner), assume=ASSUMED)


def rows_in_parts(body: str) -> Kernel:
    inner = columns(WHOLE, REST, body)
    return kernel(SIGNATURE, nest(PARTS, "for i in range(m)", inner), assume=ASSUMED)


def tiles(body: str, between: str = "") -> Kernel:
    """Rows in parts of c, too, and of these two loops as well."""
    inner = columns(WHOLE, REST, body, "i0 * c + i1")
    if between:
        inner = nest(between, inner)
    both = (
        nest("for i1 in range(min(min(c, m - i0 * c), m // 2 - i0 * c))", inner),
        nest("for i1 in range(max(min(c, m // 2 - i0 * c), 0), min(c, m - i0 * c))", inner),
    )
    rows = "for i0 in range((m + (c - 1)) // c)"
    return kernel(SIGNATURE, nest(rows, PARTS, "\n".join(both)), assume=ASSUMED)


@pytest.mark.parametrize(
    "tree",
    [
        turns(),
        turns(rest="range(max(0, n // 4 - j0 * b), min(b, (n + 3) // 4 - j0 * b))"),
        turns("range(min(b, max(0, n // 4 - j0 * b)))"),
        turns("range(min(b, n // 4 - j0 * b))"),
        turns(rest="range(max(min(b, n // 4 - j0 * b), 0), b)"),
        rows_in_parts(DOUBLE),
        tiles(DOUBLE),
        tiles(DOUBLE, "if n >= 1"),
    ],
    ids=[
        "as lowered",
        "without the size",
        "at least 0",
        "shorter",
        "to the guard",
        "rows",
        "tiles",
        "if",
    ],
)
def test_several_loops_go_through_a_part(tree: Kernel) -> None:
    accept(plain(), tree)


def test_elements_that_depend_on_each_other() -> None:
    """Each takes the one before it, be that of the other loop, of another part or another row."""
    for body in (LEFT, RIGHT, ABOVE, ASIDE):
        accept(plain(body), turns(body=body))
    for body in (LEFT, RIGHT, ABOVE):
        accept(plain(body), rows_in_parts(body))
        accept(plain(body), tiles(body))
    for tree in (rows_in_parts(ASIDE), tiles(ASIDE)):
        assert "may be in a later part of loop 'j0'" in refusal(plain(ASIDE), tree).message


WRONG = {
    "under a condition": (tiles(DOUBLE, "if n >= 2"), "element [0, 0] of 'x' must end as"),
    "the rest first": (turns(REST, WHOLE), "do not go through a part one after the other"),
    "one early": (
        turns(rest="range(max(min(b, n // 4 - j0 * b - 1), 0), min(b, (n + 3) // 4 - j0 * b))"),
        "do not go through a part one after the other",
    ),
    "twice": (turns(WHOLE, WHOLE), "do not go through a part one after the other"),
    "one left out": (
        turns("range(min(b, n // 4 - 1 - j0 * b))"),
        "do not go through a part one after the other",
    ),
    "below the part": (
        turns(rest="range(min(b, n // 4 - j0 * b), min(b, (n + 3) // 4 - j0 * b))"),
        "do not run over the parts of one loop",
    ),
    "past the part": (
        turns(rest="range(max(min(b, n // 4 - j0 * b), 0), (n + 3) // 4 - j0 * b)"),
        "do not run over the parts of one loop",
    ),
    "past the row": (
        turns(
            "range(min(b, n // 4 + 1 - j0 * b))",
            "range(max(min(b, n // 4 + 1 - j0 * b), 0), min(b, (n + 3) // 4 - j0 * b))",
        ),
        "runs past the end of a loop that is cut into parts",
    ),
    "a loop around each": (
        kernel(
            SIGNATURE,
            nest(
                "for i in range(m)",
                PARTS,
                nest("for r in range(2)", columns(WHOLE, REST, DOUBLE))
                + "\n"
                + nest("for r in range(2)", columns(WHOLE, REST, DOUBLE)),
            ),
            assume=ASSUMED,
        ),
        "no loop directly inside it goes through them",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_go_through_a_part(name: str) -> None:
    tree, reason = WRONG[name]
    assert reason in refusal(plain(), tree).message
