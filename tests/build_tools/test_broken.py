"""Trees edited at random: what the prover accepts is right, and it would be seen if it were not."""

from collections.abc import Iterator
from random import Random

import pytest

from build_tools.fuzz import broken
from build_tools.fuzz.edits import edited
from gen.poly.values import reads as taken


def wrong(text: str, number: int) -> Iterator[str]:
    for start in broken.starts(text):
        found = broken.tried(start, seed=0, number=number)
        assert found.answers["accepted"] < found.answers.total()
        yield from found.wrong


@pytest.mark.parametrize("text", ["argm", "softmax", "defined", "chosen", "heat", "rescale: "])
def test_what_is_accepted_is_right(text: str) -> None:
    assert list(wrong(text, number=6)) == []


def test_a_check_that_is_missing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taken, "check_tuple", lambda update, reductions: None)
    first = next(wrong("argmax, decomposed", number=200))
    assert "expected" in first
    assert "combine.argmax" in first


def test_a_prover_that_fails_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise LookupError("nothing there")

    (start, *_) = broken.starts("heat")
    monkeypatch.setattr(broken, "prove", failing)
    found = broken.tried(start, seed=0, number=1)
    assert found.answers == {"failed": 1}
    assert "LookupError at test_broken.py:failing: nothing there" in found.wrong[0]


def test_edits_of_one_seed_are_the_same() -> None:
    (start, *_) = broken.starts("whole")
    trees = [edited(start.state, Random(7)) for _ in range(2)]
    assert trees[0] == trees[1] != start.state
