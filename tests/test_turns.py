"""The tests that take turns are there: a name that is not would leave nothing out."""

from pathlib import Path

import pytest

from .conftest import IN_TURNS, PACKAGES

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", sorted(IN_TURNS))
def test_each_is_a_test(name: str) -> None:
    path, _, test = name.partition("::")
    assert f"\ndef {test}(" in (ROOT / path).read_text("utf-8")


@pytest.mark.parametrize("path", PACKAGES)
def test_each_is_a_file_of_tests(path: str) -> None:
    assert "\ndef test_" in (ROOT / path).read_text("utf-8")
