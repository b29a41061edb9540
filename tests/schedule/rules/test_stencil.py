"""The rules for what has no reductions to place: stencils in stages, elementwise, the fallback."""

import pytest

from tests.conftest import Golden

from .support import assert_right, recipe, spec

WIDE = 'temporaries: {t: "T[m, n + 2]"}\n'
SPECS = {
    # stencils: in registers, in bands, and none
    "along": spec(
        "x: T[m, n]; y: T[m, n] out",
        "for i in range(m):\n    for j in range(n + 2):\n"
        "        t[i, j] = x[i, min(max(j - 1, 0), n - 1)] * x[max(i - 1, 0), min(j, n - 1)] + 1\n"
        "for i in range(m):\n    for j in range(n):\n"
        "        y[i, j] = t[i, j] + 2 * t[i, j + 1] + t[i, j + 2]",
        WIDE + "constraints: [n >= 1]\n",
    ),
    "across": spec(
        "x: T[m, n]; y: T[m, n] out",
        "t[i, j] = exp(x[i, j])\n"
        "y[i, j] = t[max(i - 1, 0), j] + t[i, j] + t[min(i + 1, m - 1), j]",
    ),
    "one_place": spec("x: T[m, n]; y: T[m, n] out", "t[i, j] = exp(x[i, j])\ny[i, j] = t[i, j]"),
    # elementwise
    "images": spec("x: T[l, m, n]; y: T[l, m, n] out", "y[i, j, k] = x[i, j, k] * 2"),
    "columns_first": spec(
        "x: T[m, n]; y: T[m, n] out",
        "for j in range(n):\n    for i in range(m):\n        y[i, j] = x[i, j] + 1",
    ),
    "long": spec("x: T[n]; y: T[n] out", "y[i] = tanh(x[i])"),
    "complex": spec("x: T[n]; y: T[n] out", "y[i] = x[i] + 1", dtypes="complex64"),
    "together": spec(
        "x: T[m, n]; y: T[m, n] inout; z: T[m, n] out; v: T[m]; w: T[m] out",
        "t[i, j] = exp(x[i, j])\nw[i] = v[i] * 2\n"
        "y[i, j] = y[i, j] * t[i, j] + x[i, 0]\nz[i, j] = t[i, j] / y[i, j] + t[i, j]",
    ),
    "moved": spec(
        "x: T[n]; y: T[n] inout; z: T[n] out",
        "y[i] = y[i] * 2 + x[i]\nz[i] = y[max(i - 1, 0)] / x[i]",
        "constraints: [n >= 1]\n",
    ),
    # the fallback
    "shared": spec(
        "x: T[m, n]; y: T[m, n] out",
        "for i in range(m):\n    if n > 0:\n        y[i, 0] = x[i, 0]\n"
        "    for j in range(1, n):\n        y[i, j] = y[i, j - 1] * 0.5 + x[i, j]",
    ),
    "counted": spec(
        "x: int32[n]; c: int32[8] out", "for v in range(8):\n    c[v] = 0\n"
        "for i in range(n):\n    c[x[i]] += 1",
    ),
    "counted_inside": spec(
        "p: int32[m]; x: T[m]; y: T[m] out", "for v in range(m):\n    t[v] = 0\n"
        "for i in range(m):\n    t[p[i]] += 1\ny[i] = x[i] if t[i] > 1 else 0",
        'temporaries: {t: "int32[m]"}\n',
    ),
    "in_time": spec(
        "x: T[m, n]; y: T[m, n] inout",
        "for s in range(1, m):\n    for j in range(n):\n"
        "        y[s, j] = y[s - 1, n - 1 - j] * 0.5 + x[s, j]",
    ),
    "columns_in_time": spec(
        "x: T[m, n]; y: T[m, n] inout",
        "for s in range(1, m):\n    for j in range(n):\n"
        "        y[s, j] = y[s - 1, j] * 0.5 + x[s, j]",
    ),
}  # fmt: skip
RULES = {"stencil", "elementwise"}
SIZES = {"images": (1, 3, 5), "counted": (0, 5, 9)}


@pytest.mark.parametrize("name", SPECS)
def test_recipe(name: str, golden: Golden) -> None:
    golden(f"rules/{name}.yaml", recipe(SPECS[name], RULES))


@pytest.mark.parametrize("name", SPECS)
def test_results(name: str) -> None:
    assert_right(SPECS[name], SIZES.get(name, (1, 4, 9, 33) if name == "across" else (1, 4, 9)))


def test_loops_over_what_data_says_stay_as_they_are() -> None:
    """Such a loop runs once where an array says so: lanes and threads would run it for all."""
    loops = {"c_1.v", "c_1.at", "c_1.i"}
    assert not any(loop in line for line in recipe(SPECS["counted"], ()).splitlines()
                   for loop in loops if not line.startswith("#"))  # fmt: skip


def test_sums_take_no_more_memory_than_what_is_written_from_them() -> None:
    band = spec(
        "x: T[n, m]; y: T[m, 5] inout",
        "for i in range(m):\n    for j in range(max(i - 2, 0), min(i + 3, m)):\n"
        "        y[i, j - i + 2] = sum(x[k, i] * x[k, j] for k in n) + 1",
    )
    assert "expand" not in recipe(band, ())
    same = spec(
        "x: T[n, m]; y: T[m, m] inout",
        "for i in range(m):\n    for j in range(i, m):\n"
        "        y[i, j] = sum(x[k, i] for k in n) + 1",
    )
    assert "expand: {buffer: y_sum, loops: [y_sum.j]}" not in recipe(same, ())


def test_several_sums_of_a_triangle_are_no_tiles() -> None:
    two = spec(
        "x: T[n, m]; v: T[n, m]; y: T[m, m] inout",
        "for i in range(m):\n    for j in range(i, m):\n        y[i, j] ="
        " sum(x[k, i] * v[k, j] for k in n) * sum(v[k, i] * x[k, j] for k in n)",
    )
    assert "much code" in recipe(two, {"product"})


def test_blocks_that_use_arrays_at_the_same_points_share_a_loop() -> None:
    text = recipe(SPECS["together"], ())
    assert "simple_compute_at: {block: t, loop: z.j}" in text
    assert "simple_compute_at: {block: y, loop: z.j}" in text
    assert "{block: w, loop: z" not in text  # over other points
    assert "simple_compute_at" not in recipe(SPECS["moved"], ())  # its points wait for others


def test_complex_numbers_and_long_computations_do_not_stream() -> None:
    assert "stream" not in recipe(SPECS["complex"], ()) + recipe(SPECS["long"], ())
    assert "stream" in recipe(SPECS["images"], ())
