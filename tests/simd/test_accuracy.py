"""The measured accuracy of ts_math.h, what is written about it, and where its numbers come from."""

import math
import re
from decimal import Decimal
from pathlib import Path

import pytest

from build_tools import accuracy, more_polynomials, polynomials

# Largest error in units in the last place; on v2, which rounds products, where it differs.
PROMISED = {
    ("exp", "f32"): 1.0,
    ("log", "f32"): 1.0,
    ("tanh", "f32"): 2.0,
    ("erf", "f32"): 2.0,
    ("rsqrt", "f32"): 1.0,
    ("sigmoid", "f32"): 2.0,
    ("log1p", "f32"): 2.0,
    ("expm1", "f32"): 2.0,
    ("pow", "f32"): 1.0,
    ("sin", "f32"): 2.0,
    ("cos", "f32"): 2.0,
    ("exp2", "f32"): 1.0,
    ("log2", "f32"): 1.0,
    ("log10", "f32"): 1.0,
    ("sinh", "f32"): 1.5,
    ("cosh", "f32"): 2.0,
    ("tan", "f32"): 2.5,
    ("atan", "f32"): 2.0,
    ("asin", "f32"): 1.0,
    ("acos", "f32"): 1.0,
    ("asinh", "f32"): 1.5,
    ("acosh", "f32"): 2.0,
    ("atanh", "f32"): 1.0,
    ("cbrt", "f32"): 1.0,
    ("erfc", "f32"): 2.0,
    ("erfinv", "f32"): 2.0,
    ("lgamma", "f32"): 3.0,
    ("atan2", "f32"): 2.0,
    ("hypot", "f32"): 1.0,
    ("exp", "f64"): 1.0,
    ("log", "f64"): 1.0,
    ("tanh", "f64"): 2.0,
    ("erf", "f64"): 2.0,
    ("rsqrt", "f64"): 1.0,
    ("sigmoid", "f64"): 2.0,
    ("log1p", "f64"): 1.0,
    ("expm1", "f64"): 2.0,
    ("pow", "f64"): 1.5,
    ("sin", "f64"): 2.0,
    ("cos", "f64"): 2.0,
    ("exp2", "f64"): 1.0,
    ("log2", "f64"): 1.0,
    ("log10", "f64"): 1.0,
    ("sinh", "f64"): 2.0,
    ("cosh", "f64"): 1.5,
    ("tan", "f64"): 2.0,
    ("atan", "f64"): 1.5,
    ("asin", "f64"): 1.0,
    ("acos", "f64"): 1.0,
    ("asinh", "f64"): 1.0,
    ("acosh", "f64"): 1.5,
    ("atanh", "f64"): 1.0,
    ("cbrt", "f64"): 1.0,
    ("erfc", "f64"): 1.5,
    ("erfinv", "f64"): 2.0,
    ("lgamma", "f64"): 3.0,
    ("atan2", "f64"): 2.0,
    ("hypot", "f64"): 1.0,
}
PROMISED_V2 = PROMISED | {
    ("rsqrt", "f64"): 1.5,
    ("exp2", "f64"): 1.5,
    ("erfc", "f32"): 2.5,
    ("erfc", "f64"): 2.0,
    ("erfinv", "f32"): 2.5,
    ("exp2", "f32"): 1.5,
}


def test_errors_stay_within_what_is_promised(tmp_path: Path) -> None:
    levels = accuracy.machine_levels()
    program = accuracy.build(tmp_path, levels, "gcc")
    measured = accuracy.measure(program, 5003, batches=48)
    assert len(measured) == len(levels) * len(PROMISED)
    for m in measured:
        promised = (PROMISED_V2 if m.level == "v2" else PROMISED)[m.function, m.dtype]
        assert 0.5 <= m.ulp <= promised, m
        assert m.differing == 0, m


def test_the_page_has_a_line_a_function_and_type_and_keeps_what_is_promised() -> None:
    types, found = {"float32": "f32", "float64": "f64"}, set()
    for line in accuracy.PAGE.read_text().splitlines():
        if line.startswith("| ") and "float" in line:
            name, dtype, _, *cells = map(str.strip, line.strip("|").split("|"))
            found.add((name, types[dtype]))
            errors = [float(cell.split()[0]) for cell in cells]
            promises = [p[name, types[dtype]] for p in (PROMISED_V2, PROMISED, PROMISED)]
            assert all(e <= p for e, p in zip(errors, promises, strict=True)), line
    assert found == PROMISED.keys()


def test_the_coefficients_are_those_that_the_program_derives() -> None:
    assert polynomials.HEADER_PATH.read_text() == polynomials.header()
    assert more_polynomials.MORE_PATH.read_text() == more_polynomials.header()


def test_products_with_parts_of_pi_leave_nothing_out() -> None:
    """Each part but the last has the bits that are promised, and all of them are pi/2."""
    for name, bits, _ in polynomials.QUARTERS:
        parts = polynomials.parts(bits)
        rest = abs(polynomials.PI / 2 - sum(map(Decimal, parts)))
        assert rest < Decimal(2) ** -sum(bits), name
        for part, count in zip(parts, bits, strict=True):
            mantissa, _ = math.frexp(part)
            assert math.ldexp(mantissa, count).is_integer(), name


def test_the_bits_of_the_inverse_are_those_of_two_over_pi() -> None:
    words = re.findall("0x([0-9A-F]{16})", polynomials.inverse_quarter_turn())
    number = int("".join(words), 16)
    bits = 64 * len(words)
    assert bits >= 971 + 1 + 192  # up to the last bit that the largest float64 needs
    assert hex(number).startswith("0xa2f9836e4e441529fc2757d1f534ddc0db6295993c439041")
    pi = polynomials.scaled_pi(bits)
    assert number * pi < 2 << 2 * bits < (number + 1) * (pi + 1)


@pytest.mark.parametrize("pair", more_polynomials.PAIRS, ids=lambda p: p.name)
def test_pairs_are_the_number(pair: more_polynomials.Pair) -> None:
    """The first has the bits that are promised, the second all that a float of its type has."""
    first, second = pair.parts()
    mantissa, _ = math.frexp(first)
    assert math.ldexp(mantissa, pair.bits).is_integer()
    off = abs(pair.number - Decimal(first) - Decimal(second))
    assert off <= Decimal(2) ** -(24 if pair.single else 53) * abs(Decimal(second))


@pytest.mark.parametrize(
    ("function", "at", "value"),
    [
        (more_polynomials.atan, "0.5", "0.4636476090008061162142562314612144020285370542861202638"),
        (more_polynomials.asin, "0.5", "0.5235987755982988730771072305465838140328615665625176368"),
        (more_polynomials.asinh, "1", "0.8813735870195430252326093249797923090281603282616354107"),
        (more_polynomials.erfcx, "1", "0.4275835761558070044107503444905151808201595031642526637"),
        (more_polynomials.small_erfinv, "0.5", "0.4769362762044698733814183536431305598"),
        (
            more_polynomials.tail_erfinv,
            "0.8325546111576977563531646448952010476305888522644",
            "0.4769362762044698733814183536431305598",
        ),
        (more_polynomials.lgamma, "0.25", "1.288022524698077457370610440219717295925377565112860"),
        (more_polynomials.lgamma, "30.5", "72.95347118416940832383855304384388538375679675701399"),
        (more_polynomials.erfcx, "4", "0.1369994576250613898894451713998054823302492355480653627"),
    ],
)
def test_what_polynomials_are_fitted_to(
    function: polynomials.Function, at: str, value: str
) -> None:
    assert abs(function(Decimal(at)) - Decimal(value)) < Decimal(10) ** -30


@pytest.mark.parametrize("task", [*polynomials.FITS, *more_polynomials.FITS], ids=lambda t: t.name)
def test_polynomials_are_accurate_between_the_points_of_the_fit(task: polynomials.Fit) -> None:
    coefficients, worst = polynomials.fit(task)
    exact = [Decimal(c) for c in coefficients]
    for n in range(1, 40):
        x = task.low + (task.high - task.low) * n / 40
        if x != 0:
            error = abs(polynomials.evaluate(exact, x) - task.function(x)) * task.weight(x)
            assert error <= worst * Decimal("1.01")
