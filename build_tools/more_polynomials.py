"""Writes the coefficients of ts_math_more.h: `python -m build_tools.more_polynomials`.

Input: its functions in 80-digit decimal arithmetic. Output: ts_math_more_coefficients.h, with list
macros of polynomials, as `polynomials` makes them, and constants in two parts.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import comb
from statistics import NormalDist

import numpy as np

from .polynomials import (
    EIGHTH_TURN,
    HALF_LN2,
    HEADER_PATH,
    PI,
    Fit,
    atanh,
    cosine,
    define,
    erf,
    literal,
    sine,
)

MORE_PATH = HEADER_PATH.with_name("ts_math_more_coefficients.h")
HEADER = """\
/* Written by `python -m build_tools.more_polynomials`, which says what each polynomial stands for.
   The macros are as in ts_math_coefficients.h. */
"""
ONE = Decimal(1)
HALF = ONE / 2
LN2 = Decimal(2).ln()
LN10 = Decimal(10).ln()


# ---------------------------------------------------------------- functions


def sinh(x: Decimal) -> Decimal:
    return (x.exp() - (-x).exp()) / 2


def atan(x: Decimal) -> Decimal:
    """The Taylor series, of an eighth of the angle."""
    for _ in range(3):
        x = x / (1 + (1 + x * x).sqrt())
    power, total, k = x, x, 1
    while abs(power) > Decimal(10) ** -82:
        k += 2
        power *= -x * x
        total += power / k
    return 8 * total


def asin(x: Decimal) -> Decimal:
    return atan(x / (1 - x * x).sqrt())


def asinh(x: Decimal) -> Decimal:
    return (x + (x * x + 1).sqrt()).ln()


@cache
def erfcx(x: Decimal) -> Decimal:
    """exp(x^2) erfc(x): by erf, or where that cancels by the continued fraction of Laplace."""
    if x < 3:
        return (x * x).exp() * (1 - erf(x))
    below = x
    for k in reversed(range(1, 300)):
        below = x + Decimal(k) / 2 / below
    return 1 / (PI.sqrt() * below)


@cache
def tail_erfinv(s: Decimal) -> Decimal:
    """The y of erfc(y) = exp(-s^2), for s of at least 1/2: Newton's steps for logarithms."""
    y = Decimal(-NormalDist().inv_cdf(math.exp(-(float(s) ** 2)) / 2) / math.sqrt(2))
    for _ in range(3):
        y += (erfcx(y).ln() - y * y + s * s) * PI.sqrt() * erfcx(y) / 2
    return y


@cache
def small_erfinv(x: Decimal) -> Decimal:
    """The y of erf(y) = x, for x of up to 3/4."""
    y = Decimal(NormalDist().inv_cdf((1 + float(x)) / 2) / math.sqrt(2))
    for _ in range(4):
        y -= (erf(y) - x) * PI.sqrt() / 2 * (y * y).exp()
    return y


@cache
def stirling(x: Decimal) -> Decimal:
    """lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2: Stirling's series, of x + n."""
    far, product = x, ONE
    while far < 40:
        product *= far
        far += 1
    power, total = far, Decimal(0)
    for n, number in enumerate(bernoulli(40), 1):
        total += number / (2 * n * (2 * n - 1)) / power
        power *= far * far
    steps = int(far - x)
    if steps == 0:
        return total
    return total + (far - HALF) * far.ln() - (x - HALF) * x.ln() - steps - product.ln()


def lgamma(x: Decimal) -> Decimal:
    return (x - HALF) * x.ln() - x + (2 * PI).ln() / 2 + stirling(x)


@cache
def bernoulli(count: int) -> tuple[Decimal, ...]:
    """The numbers B_2, B_4, ... of that many, by their recurrence."""
    found = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        found.append(-sum((comb(m + 1, k) * b for k, b in enumerate(found)), Fraction(0)) / (m + 1))
    return tuple(Decimal(b.numerator) / b.denominator for b in found[2::2])


# ---------------------------------------------------------------- what polynomials stand for


def exp2_slope(x: Decimal) -> Decimal:
    """The p of 2^x = 1 + x p(x)."""
    return ((x * LN2).exp() - 1) / x


def exp2_weight(x: Decimal) -> Decimal:
    return abs(x) / (x * LN2).exp()


def sinh_tail(z: Decimal) -> Decimal:
    """The p of sinh(x) = x + x z p(z), where z = x^2; as those below are."""
    x = z.sqrt()
    return (sinh(x) - x) / (x * z)


def sinh_weight(z: Decimal) -> Decimal:
    x = z.sqrt()
    return x * z / sinh(x)


def cosh_tail(z: Decimal) -> Decimal:
    """The p of cosh(x) = 1 + z/2 + z^2 p(z), where z = x^2."""
    x = z.sqrt()
    return ((x.exp() + (-x).exp()) / 2 - 1 - z / 2) / (z * z)


def cosh_weight(z: Decimal) -> Decimal:
    return z * z


def tan_tail(z: Decimal) -> Decimal:
    x = z.sqrt()
    return (sine(x) / cosine(x) - x) / (x * z)


def tan_weight(z: Decimal) -> Decimal:
    x = z.sqrt()
    return x * z * cosine(x) / sine(x)


def atan_tail(z: Decimal) -> Decimal:
    x = z.sqrt()
    return (atan(x) - x) / (x * z)


def atan_weight(z: Decimal) -> Decimal:
    x = z.sqrt()
    return x * z / atan(x)


def asin_tail(z: Decimal) -> Decimal:
    x = z.sqrt()
    return (asin(x) - x) / (x * z)


def asin_weight(z: Decimal) -> Decimal:
    x = z.sqrt()
    return x * z / asin(x)


def asinh_tail(z: Decimal) -> Decimal:
    x = z.sqrt()
    return (asinh(x) - x) / (x * z)


def asinh_weight(z: Decimal) -> Decimal:
    x = z.sqrt()
    return x * z / asinh(x)


def atanh_tail(z: Decimal) -> Decimal:
    x = z.sqrt()
    return (atanh(x) - x) / (x * z)


def atanh_weight(z: Decimal) -> Decimal:
    x = z.sqrt()
    return x * z / atanh(x)


def root(m: Decimal) -> Decimal:
    """m^(-1/3), roughly: steps mend it."""
    return (-m.ln() / 3).exp()


def root_weight(m: Decimal) -> Decimal:
    return 1 / root(m)


@dataclass(frozen=True, slots=True)
class Bent:
    """The p of (1 + 2 y) exp(y^2) erfc(y) = 1 + (1 + t) p(t) for t = (y - middle) / (y + middle).

    By M. Shepherd and J. Laframboise (Chebyshev approximation of (1 + 2x) exp(x^2) erfc(x) in
    0 <= x < infinity, Mathematics of Computation 36, 1981).
    """

    middle: int

    def __call__(self, t: Decimal) -> Decimal:
        y = self.middle * (1 + t) / (1 - t)
        return ((1 + 2 * y) * erfcx(y) - 1) / (1 + t)

    def end(self, y: Decimal) -> Decimal:
        return (y - self.middle) / (y + self.middle)


def bent_weight(t: Decimal) -> Decimal:
    return 1 + t


def erfinv_tail(z: Decimal) -> Decimal:
    """The p of erfinv(x) = x + x p(z), where z = x^2."""
    x = z.sqrt()
    return small_erfinv(x) / x - 1


def erfinv_weight(z: Decimal) -> Decimal:
    return 1 / (1 + erfinv_tail(z))


@dataclass(frozen=True, slots=True)
class Tail:
    """The p of erfinv(x) = s + s p(s - middle), where s^2 = -log(1 - x)."""

    middle: Decimal

    def __call__(self, t: Decimal) -> Decimal:
        s = self.middle + t
        return tail_erfinv(s) / s - 1

    def weight(self, t: Decimal) -> Decimal:
        return 1 / (1 + self(t))


def tail_fit(name: str, low: str, high: str, middle: str, degree: int) -> Fit:
    tail, first, last = Tail(Decimal(middle)), Decimal(low), Decimal(high)
    ends = (first - tail.middle, last - tail.middle)
    return Fit(name, tail, tail.weight, *ends, degree, name.endswith("f32"))


def lgamma_factor(z: Decimal) -> Decimal:
    """The p of lgamma(2 + z) = z (1 + z) p(z): without the zero at -1 it hardly varies."""
    return lgamma(2 + z) / (z * (1 + z))


def lgamma_weight(z: Decimal) -> Decimal:
    return 1 / lgamma_factor(z)


def stirling_tail(w: Decimal) -> Decimal:
    """The p of Stirling's series, p(w) / x, where w = 1 / x^2."""
    x = 1 / w.sqrt()
    return stirling(x) * x


def stirling_weight(w: Decimal) -> Decimal:
    x = 1 / w.sqrt()
    return 1 / (x * lgamma(x))


def sinpi_tail(w: Decimal) -> Decimal:
    """The p of sin(pi d) / pi = d + d w p(w), where w = d^2."""
    angle = PI * w.sqrt()
    return (sine(angle) / angle - 1) / w


def sinpi_weight(w: Decimal) -> Decimal:
    angle = PI * w.sqrt()
    return w * angle / sine(angle)


QUARTER = Decimal("0.25")
ERFINV_SMALL = Decimal("0.53") ** 2
HALF_LN2_SQUARE = HALF_LN2**2
STIRLING_END = 1 / Decimal("3.25") ** 2
BENT_F32, BENT_F64 = Bent(2), Bent(4)

FITS = (
    Fit("exp2 f32", exp2_slope, exp2_weight, -ONE / 2, ONE / 2, 6, True),
    Fit("sinh f32", sinh_tail, sinh_weight, Decimal(0), HALF_LN2_SQUARE, 2, True),
    Fit("cosh f32", cosh_tail, cosh_weight, Decimal(0), HALF_LN2_SQUARE, 1, True),
    Fit("tan f32", tan_tail, tan_weight, Decimal(0), EIGHTH_TURN, 5, True),
    Fit("atan f32", atan_tail, atan_weight, Decimal(0), ONE, 9, True),
    Fit("asin f32", asin_tail, asin_weight, Decimal(0), QUARTER, 5, True),
    Fit("asinh f32", asinh_tail, asinh_weight, Decimal(0), QUARTER, 5, True),
    Fit("atanh f32", atanh_tail, atanh_weight, Decimal(0), QUARTER, 6, True),
    Fit("cbrt f32", root, root_weight, ONE / 2, Decimal(4), 5, True),
    Fit("erfc f32", BENT_F32, bent_weight, -ONE, BENT_F32.end(Decimal("10.2")), 10, True),
    Fit("erfinv f32", erfinv_tail, erfinv_weight, Decimal(0), ERFINV_SMALL, 6, True),
    tail_fit("erfinv1 f32", "0.868", "2.125", "1.5", 10),
    tail_fit("erfinv2 f32", "2.125", "4.1", "3", 10),
    Fit("lgamma f32", lgamma_factor, lgamma_weight, -HALF - QUARTER, QUARTER, 8, True),
    Fit("stirling f32", stirling_tail, stirling_weight, Decimal(0), STIRLING_END, 2, True),
    Fit("sinpi f32", sinpi_tail, sinpi_weight, Decimal(0), QUARTER, 4, True),
    Fit("exp2 f64", exp2_slope, exp2_weight, -ONE / 2, ONE / 2, 11, False),
    Fit("sinh f64", sinh_tail, sinh_weight, Decimal(0), HALF_LN2_SQUARE, 5, False),
    Fit("cosh f64", cosh_tail, cosh_weight, Decimal(0), HALF_LN2_SQUARE, 4, False),
    Fit("tan f64", tan_tail, tan_weight, Decimal(0), EIGHTH_TURN, 14, False),
    Fit("atan f64", atan_tail, atan_weight, Decimal(0), ONE, 21, False),
    Fit("asin f64", asin_tail, asin_weight, Decimal(0), QUARTER, 13, False),
    Fit("asinh f64", asinh_tail, asinh_weight, Decimal(0), QUARTER, 13, False),
    Fit("atanh f64", atanh_tail, atanh_weight, Decimal(0), QUARTER, 14, False),
    Fit("cbrt f64", root, root_weight, ONE / 2, Decimal(4), 6, False),
    Fit("erfc f64", BENT_F64, bent_weight, -ONE, BENT_F64.end(Decimal("27.5")), 22, False),
    Fit("erfinv f64", erfinv_tail, erfinv_weight, Decimal(0), ERFINV_SMALL, 15, False),
    tail_fit("erfinv1 f64", "0.868", "1.875", "1.375", 21),
    tail_fit("erfinv2 f64", "1.875", "3.25", "2.5", 22),
    tail_fit("erfinv3 f64", "3.25", "6.1", "4.5", 24),
    Fit("lgamma f64", lgamma_factor, lgamma_weight, -HALF - QUARTER, QUARTER, 19, False),
    Fit("stirling f64", stirling_tail, stirling_weight, Decimal(0), STIRLING_END, 8, False),
    Fit("sinpi f64", sinpi_tail, sinpi_weight, Decimal(0), QUARTER, 8, False),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A number as a sum of two: the first of so many bits, the second rounded to the type."""

    name: str
    number: Decimal
    bits: int
    single: bool

    def parts(self) -> tuple[float, float]:
        unit = Decimal(2) ** (self._exponent() - self.bits)
        first = (self.number / unit).to_integral_value() * unit
        rest = float(self.number - first)
        return float(first), float(np.float32(rest)) if self.single else rest

    def _exponent(self) -> int:
        """The e of 2^(e - 1) <= number < 2^e."""
        return int(self.number).bit_length() if self.number >= 1 else _below(self.number)


def _below(number: Decimal) -> int:
    exponent = 0
    while number < Decimal(2) ** (exponent - 1):
        exponent -= 1
    return exponent


# Products of the upper parts are exact: of the first two with the upper half of a logarithm, of the
# others with an exponent.
PAIRS = (
    Pair("INVLN2_F32", 1 / LN2, 12, True),
    Pair("INVLN10_F32", 1 / LN10, 12, True),
    Pair("LOG10_2_F32", LN2 / LN10, 12, True),
    Pair("LN2_F32", LN2, 12, True),
    Pair("INVLN2_F64", 1 / LN2, 24, False),
    Pair("INVLN10_F64", 1 / LN10, 24, False),
    Pair("LOG10_2_F64", LN2 / LN10, 40, False),
    Pair("LN2_F64", LN2, 40, False),
)


def define_pair(pair: Pair) -> str:
    first, second = (literal(part, pair.single) for part in pair.parts())
    return f"#define TS_{pair.name}_1 {first}\n#define TS_{pair.name}_2 {second}\n"


def header() -> str:
    """The text of the whole file."""
    return HEADER + "".join(map(define, FITS)) + "\n" + "".join(map(define_pair, PAIRS))


def main() -> None:
    MORE_PATH.write_text(header())


if __name__ == "__main__":
    main()
