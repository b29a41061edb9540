"""Which dims the shapes of arrays tell."""

import pytest

from gen.ir.interpret.sizes import Told, found, from_text, told


@pytest.mark.parametrize(
    ("extent", "tells"),
    [
        ("n", Told("n")),
        ("n + 2", Told("n", 1, 2)),
        ("n - 1", Told("n", 1, -1)),
        ("4 * n", Told("n", 4)),
        ("n * 4", Told("n", 4)),
        ("2 * n + 1", Told("n", 2, 1)),
        ("3 * n - 5", Told("n", 3, -5)),
        ("0 - 2 * n", None),
        ("n + m", None),
        ("2 * n + m", None),
        ("n // 2", None),
        ("7", None),
    ],
)
def test_an_axis_tells_a_dim(extent: str, tells: Told | None) -> None:
    assert told(from_text(extent)) == tells


def test_an_axis_that_is_the_dim_tells_before_others() -> None:
    shape = tuple(map(from_text, ("2 * n", "m - 1", "n", "3 * k + 1", "k + 1")))
    assert found([(shape, (7, 4, 5, 13, 9))], ("n", "m", "k")) == {"n": 5, "m": 5, "k": 4}
    assert found([(shape[:2], (7, 4))], ("n", "m")) == {"n": 3, "m": 5}
    assert found([(shape[:2], (8, 4))], ("n", "m")) == {"n": 4, "m": 5}
