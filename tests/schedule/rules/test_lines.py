"""The rule for lines: what statements that share a loop hand each other does not keep it from
vectors.
"""

from tests.schedule.rules.support import assert_right, recipe, spec

SHARED = spec(
    "x: T[m, n]; y: T[m, n] out; z: T[m, n] out; s: T[m, n] out",
    """\
for i in range(m):
    for j in range(n):
        w[i, j] = 1 / (x[i, j] ** 2 + 2 - (y[i - 1, j] if i > 0 else 0))
        y[i, j] = x[i, j] * w[i, j]
        z[i, j] = (1 + (z[i - 1, j] if i > 0 else 0)) * w[i, j]
s[i, j] = y[i, j] + z[i, j]""",
)


def test_a_temporary_of_one_iteration_is_lanes() -> None:
    """The steps for `s` have moved it into the loop."""
    assert "vectorize: {loop: w.j, width: $lanes}" in recipe(SHARED, ())
    assert_right(SHARED, (0, 1, 5))


INTERLEAVED = spec(
    "x: T[m, n]; y: T[m, 2 * n] out",
    """\
for i in range(m):
    for j in range(n):
        for p in range(2):
            y[i, 2 * j + p] = x[i, min(j + p, n - 1)] + 2 * x[i, j]""",
)


def test_lanes_are_not_two_values_of_which_another_goes_on_where_they_end() -> None:
    written = recipe(INTERLEAVED, ())
    assert "vectorize: {loop: y.j, width: $lanes}" in written
    assert "stream" not in written  # which takes lanes that are neighbours alone
    assert_right(INTERLEAVED, (0, 1, 5, 9))


COLOURS = spec(
    "x: T[m, n, 3]; y: T[m, n, 3] out",
    """\
for i in range(m):
    for j in range(n):
        y[i, j, 0] = x[i, j, 0] + 2 * x[i, j, 1]
        y[i, j, 2] = x[i, j, 1] - x[i, j, 2]
        y[i, j, 1] = 3 * y[i, j, 0] + x[i, j, 2]""",
)


def test_lanes_are_points_whose_values_lie_side_by_side() -> None:
    """No loop runs along the last axis; the points lie three elements apart."""
    assert "vectorize: {loop: y.j, width: $lanes}" in recipe(COLOURS, ())
    assert_right(COLOURS, (0, 1, 5, 9))
