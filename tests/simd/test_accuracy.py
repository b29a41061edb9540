"""The measured accuracy of ts_math.h, what is written about it, and where its numbers come from."""

from decimal import Decimal
from pathlib import Path

import pytest

from build_tools import accuracy, polynomials

# Largest error in units in the last place; on v2, which rounds products, where it differs.
PROMISED = {
    ("exp", "f32"): 1.0,
    ("log", "f32"): 1.0,
    ("tanh", "f32"): 2.0,
    ("erf", "f32"): 2.0,
    ("rsqrt", "f32"): 1.0,
    ("exp", "f64"): 1.0,
    ("log", "f64"): 1.0,
    ("tanh", "f64"): 2.0,
    ("erf", "f64"): 2.0,
    ("rsqrt", "f64"): 1.0,
}
PROMISED_V2 = PROMISED | {("rsqrt", "f64"): 1.5}


def test_errors_stay_within_what_is_promised(tmp_path: Path) -> None:
    levels = accuracy.machine_levels()
    program = accuracy.build(tmp_path, levels, "gcc")
    measured = accuracy.measure(program, 5003)
    assert len(measured) == len(levels) * len(PROMISED)
    for m in measured:
        promised = (PROMISED_V2 if m.level == "v2" else PROMISED)[m.function, m.dtype]
        assert 0.5 <= m.ulp <= promised, m
        assert m.differing == 0, m


def test_the_page_has_a_line_a_function_and_type() -> None:
    rows = [
        line.split("|")[1:3]
        for line in accuracy.PAGE.read_text().splitlines()
        if line.startswith("| ") and "float" in line
    ]
    found = {(name.strip(), {"float32": "f32", "float64": "f64"}[t.strip()]) for name, t in rows}
    assert found == PROMISED.keys()


def test_the_coefficients_are_those_that_the_program_derives() -> None:
    assert polynomials.HEADER_PATH.read_text() == polynomials.header()


@pytest.mark.parametrize("task", polynomials.FITS, ids=lambda t: t.name)
def test_polynomials_are_accurate_between_the_points_of_the_fit(task: polynomials.Fit) -> None:
    coefficients, worst = polynomials.fit(task)
    exact = [Decimal(c) for c in coefficients]
    for n in range(1, 40):
        x = task.low + (task.high - task.low) * n / 40
        if x != 0:
            error = abs(polynomials.evaluate(exact, x) - task.function(x)) * task.weight(x)
            assert error <= worst * Decimal("1.01")
