"""The tests of which half of the cases run are there: a name that is not would halve nothing."""

from pathlib import Path

import pytest

from .conftest import HALVED


@pytest.mark.parametrize("name", sorted(HALVED))
def test_each_is_a_test(name: str) -> None:
    path, _, test = name.partition("::")
    assert f"\ndef {test}(" in (Path(__file__).parents[1] / path).read_text("utf-8")
