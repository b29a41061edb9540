"""The tests that take turns are there: a name that is not would leave nothing out."""

from pathlib import Path

import pytest

from .conftest import IN_TURNS


@pytest.mark.parametrize("name", sorted(IN_TURNS))
def test_each_is_a_test(name: str) -> None:
    path, _, test = name.partition("::")
    assert f"\ndef {test}(" in (Path(__file__).parents[1] / path).read_text("utf-8")
