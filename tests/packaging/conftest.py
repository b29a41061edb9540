"""The author's machine of these tests."""

import pytest

from .author import Author, machine


@pytest.fixture(scope="session")
def author(tmp_path_factory: pytest.TempPathFactory) -> Author:
    return machine(tmp_path_factory.mktemp("author") / "environment")
