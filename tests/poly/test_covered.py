"""A set that is reached by pieces of a relation, asked in the relation's range."""

import islpy as isl
import pytest

from gen.poly.sets.coverage import covered

EVENTS = isl.Set("[n, p] -> { [i] : 0 <= i < n and 0 <= p < 4 }")
TILE = "i + p = 8b + 4c + l and 0 <= c < 2 and 0 <= l < 4"
PIECES = {  # i = 8b + 4c + l - p, cut where i is whole tiles
    "head": "8b + 4c < p",
    "full": "8b + 4c >= p and 8b + 4c + 4 <= n + p",
    "tail": "8b + 4c >= p and 8b + 4c + 4 > n + p",
}


def pieces(*conditions: str) -> list[isl.Map]:
    within = f"{TILE} and 0 <= i < n and 0 <= p < 4"
    return [isl.Map(f"[n, p] -> {{ [i] -> s[b, c, l] : {within} and {c} }}") for c in conditions]


def test_all_pieces() -> None:
    assert covered(EVENTS, pieces(*PIECES.values()))


@pytest.mark.parametrize("missing", PIECES)
def test_a_piece_missing(missing: str) -> None:
    assert not covered(EVENTS, pieces(*(c for name, c in PIECES.items() if name != missing)))


@pytest.mark.parametrize("less", ["and l < 3", "and i != 5", "and n != 9", "and p < 3"])
def test_a_piece_too_small(less: str) -> None:
    head, full, tail = PIECES.values()
    assert not covered(EVENTS, pieces(head, f"{full} {less}", tail))


def test_events_beyond() -> None:
    beyond = isl.Set("[n, p] -> { [i] : 0 <= i <= n and 0 <= p < 4 }")
    assert not covered(beyond, pieces(*PIECES.values()))


def test_ranges_of_different_loops_say_nothing() -> None:
    head, full, tail = pieces(*PIECES.values())
    flat = tail.project_out(isl.dim_type.out, 0, 1)
    assert not covered(EVENTS, [head, full, flat])
