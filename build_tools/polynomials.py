"""Writes gen/targets/cpu/runtime/ts_math_coefficients.h: `python -m build_tools.polynomials`.

Input: functions in 80-digit decimal arithmetic. Output: a list macro a polynomial, with the largest
weighted error of the polynomial with its rounded coefficients; pi/2 in parts; many bits of 2/pi.

Each polynomial minimises the largest weighted error over an interval (Remez' exchange on a grid);
then its coefficients are rounded, so the weights stand for what the code does with the value.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, getcontext
from functools import cache
from math import cos, pi
from pathlib import Path

import numpy as np

getcontext().prec = 80
GRID = 600
HEADER_PATH = (
    Path(__file__).parents[1] / "gen" / "targets" / "cpu" / "runtime" / "ts_math_coefficients.h"
)
PI_BITS = 1400

Function = Callable[[Decimal], Decimal]


@dataclass(frozen=True, slots=True)
class Fit:
    """A polynomial of `degree` for `function` on [low, high], least in max |error * weight|."""

    name: str
    function: Function
    weight: Function
    low: Decimal
    high: Decimal
    degree: int
    single: bool  # round coefficients to float32, else to float64


def scaled_pi(bits: int) -> int:
    """The integer part of pi * 2^bits, by Machin: 16 atan(1/5) - 4 atan(1/239)."""
    guard = 64

    def atan_of_inverse(n: int) -> int:
        power = (1 << bits + guard) // n
        total, k = power, 1
        while power:
            power //= n * n
            k += 2
            total += power // k if k % 4 == 1 else -(power // k)
        return total

    return (16 * atan_of_inverse(5) - 4 * atan_of_inverse(239)) >> guard


PI: Decimal = Decimal(scaled_pi(PI_BITS)) / 2**PI_BITS


@cache
def erf(x: Decimal) -> Decimal:
    """The Taylor series; its cancellation costs 16 digits of 80 at 6."""
    term, total, k = x, x, 0
    while abs(term) > Decimal(10) ** -78:
        k += 1
        term *= -x * x / k
        total += term / (2 * k + 1)
    return 2 * total / PI.sqrt()


def atanh(s: Decimal) -> Decimal:
    return ((1 + s) / (1 - s)).ln() / 2


def exp_tail(r: Decimal) -> Decimal:
    """The q of exp(r) = 1 + r + r^2 q(r)."""
    return (r.exp() - 1 - r) / (r * r)


def exp_weight(r: Decimal) -> Decimal:
    return r * r / r.exp()


def log_tail(f: Decimal) -> Decimal:
    """The p of log(1 + f) = f - f^2/2 + f^3 p(f)."""
    return ((1 + f).ln() - f + f * f / 2) / f**3


def log_weight(f: Decimal) -> Decimal:
    return abs(f**3 / (1 + f).ln())


def atanh_tail(z: Decimal) -> Decimal:
    """The p of 2 atanh(s) = 2 s + s z p(z), where z = s^2."""
    s = z.sqrt()
    return (2 * atanh(s) - 2 * s) / (s * z)


def atanh_weight(z: Decimal) -> Decimal:
    s = z.sqrt()
    return s * z / (2 * atanh(s))


def erf_exponent(x: Decimal) -> Decimal:
    """The q of erf(x) = 1 - exp(-(x + x q(x)))."""
    return -(1 - erf(x)).ln() / x - 1


def erf_weight(x: Decimal) -> Decimal:
    return x * (1 - erf(x)) / erf(x)


def tanh(x: Decimal) -> Decimal:
    return 1 - 2 / ((2 * x).exp() + 1)


def tanh_tail(z: Decimal) -> Decimal:
    """The p of tanh(x) = x + x z p(z), where z = x^2."""
    x = z.sqrt()
    return (tanh(x) - x) / (x * z)


def tanh_weight(z: Decimal) -> Decimal:
    x = z.sqrt()
    return x * z / tanh(x)


def sine(x: Decimal) -> Decimal:
    term, total, k = x, x, 1
    while abs(term) > Decimal(10) ** -78:
        k += 2
        term *= -x * x / (k * (k - 1))
        total += term
    return total


def cosine(x: Decimal) -> Decimal:
    return 1 - 2 * sine(x / 2) ** 2


def sin_tail(z: Decimal) -> Decimal:
    """The p of sin(x) = x + x z p(z), where z = x^2."""
    x = z.sqrt()
    return (sine(x) - x) / (x * z)


def sin_weight(z: Decimal) -> Decimal:
    x = z.sqrt()
    return x * z / sine(x)


def cos_tail(z: Decimal) -> Decimal:
    """The p of cos(x) = 1 - z/2 + z^2 p(z), where z = x^2."""
    return (cosine(z.sqrt()) - 1 + z / 2) / (z * z)


def cos_weight(z: Decimal) -> Decimal:
    return z * z / cosine(z.sqrt())


def solve(matrix: list[list[Decimal]], right: list[Decimal]) -> list[Decimal]:
    """Gaussian elimination with partial pivoting."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, size):
            factor = rows[r][i] / rows[i][i]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i], strict=True)]
    solution = [Decimal(0)] * size
    for i in reversed(range(size)):
        known = sum((rows[i][k] * solution[k] for k in range(i + 1, size)), Decimal(0))
        solution[i] = (rows[i][size] - known) / rows[i][i]
    return solution


def evaluate(coefficients: Sequence[Decimal], x: Decimal) -> Decimal:
    total = Decimal(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def extrema(errors: Sequence[Decimal], count: int) -> list[int]:
    """`count` grid points at which the error is largest in size, its sign alternating."""
    peaks: list[int] = []
    for i, e in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > count:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks


def remez(
    points: list[Decimal], values: list[Decimal], weights: list[Decimal], count: int
) -> list[Decimal]:
    """`count` coefficients, the constant first, fitted to `values` at `points`."""
    size = len(points)
    chosen = [round((size - 1) * (1 - cos(pi * j / count)) / 2) for j in range(count + 1)]
    while True:
        matrix = [
            [*(points[j] ** power for power in range(count)), (-1) ** n / weights[j]]
            for n, j in enumerate(chosen)
        ]
        coefficients = solve(matrix, [values[j] for j in chosen])[:-1]
        errors = [
            (evaluate(coefficients, x) - v) * w
            for x, v, w in zip(points, values, weights, strict=True)
        ]
        peaks = extrema(errors, count + 1)
        if peaks == chosen:
            return coefficients
        chosen = peaks


@cache
def fit(task: Fit) -> tuple[tuple[float, ...], Decimal]:
    """Rounded coefficients and the largest weighted error with them."""
    middle, half = (task.low + task.high) / 2, (task.high - task.low) / 2
    angles = (pi * (j + 0.5) / GRID for j in range(GRID))
    points = [middle - half * Decimal(cos(a)) for a in angles]
    values = [task.function(x) for x in points]
    weights = [task.weight(x) for x in points]
    exact = remez(points, values, weights, task.degree + 1)
    rounded = tuple(float(np.float32(c)) if task.single else c for c in map(float, exact))
    final = [Decimal(c) for c in rounded]
    worst = max(
        abs(evaluate(final, x) - v) * w for x, v, w in zip(points, values, weights, strict=True)
    )
    return rounded, worst


HALF_LN2 = Decimal(2).ln() / 2 * Decimal("1.0001")
ROOT = Decimal(2).sqrt()
TANH_MAX = Decimal("0.34375") ** 2
EIGHTH_TURN = (PI / 4 * Decimal("1.01")) ** 2  # as quotients by pi/2 are rounded
Z_MAX = ((ROOT - 1) / (ROOT + 1)) ** 2

FITS = (
    Fit("exp f32", exp_tail, exp_weight, -HALF_LN2, HALF_LN2, 4, True),
    Fit("log f32", log_tail, log_weight, 1 / ROOT - 1, ROOT - 1, 8, True),
    Fit("erf f32", erf_exponent, erf_weight, Decimal(0), Decimal(4), 8, True),
    Fit("tanh f32", tanh_tail, tanh_weight, Decimal(0), TANH_MAX, 3, True),
    Fit("sin f32", sin_tail, sin_weight, Decimal(0), EIGHTH_TURN, 3, True),
    Fit("cos f32", cos_tail, cos_weight, Decimal(0), EIGHTH_TURN, 2, True),
    Fit("exp f64", exp_tail, exp_weight, -HALF_LN2, HALF_LN2, 10, False),
    Fit("log f64", atanh_tail, atanh_weight, Decimal(0), Z_MAX, 6, False),
    Fit("erf f64", erf_exponent, erf_weight, Decimal(0), Decimal(6), 23, False),
    Fit("tanh f64", tanh_tail, tanh_weight, Decimal(0), TANH_MAX, 7, False),
    Fit("sin f64", sin_tail, sin_weight, Decimal(0), EIGHTH_TURN, 6, False),
    Fit("cos f64", cos_tail, cos_weight, Decimal(0), EIGHTH_TURN, 6, False),
)

# Without fma the products of all parts but the last are exact for quotients of up to 2^18 (float32,
# reduced in float64) and 2^16 (float64).
QUARTERS = (
    ("F32", (24, 24, 24), True),
    ("F64", (53, 53, 53), False),
    ("F32_V2", (33, 53), False),
    ("F64_V2", (37, 37, 53), False),
)


HEADER = """\
/* Written by `python -m build_tools.polynomials`, which says what each polynomial stands for.
   TS_NAME_TOP is the coefficient of the highest power; TS_NAME(X) is X(c) for the others, falling.
   Errors are largest ones, weighted so that they are relative to the function's value.
   Below them are the forms of pi/2 and 2/pi with which angles are reduced. */
"""


def literal(value: float, single: bool) -> str:
    """The number in hexadecimal C, shortest form."""
    digits, exponent = value.hex().split("p")
    digits = digits.rstrip("0") if "." in digits else digits
    return f"{digits.rstrip('.')}p{exponent}{'f' if single else ''}"


def define(task: Fit) -> str:
    """The two macros of one polynomial."""
    coefficients, worst = fit(task)
    macro = "TS_" + task.name.upper().replace(" ", "_")
    top, *rest = (literal(c, task.single) for c in reversed(coefficients))
    body = " \\\n".join(f"    X({c})" for c in rest)
    comment = f"/* {task.name}: error {float(worst):.1e} */"
    return f"\n{comment}\n#define {macro}_TOP {top}\n#define {macro}(X) \\\n{body}\n"


def parts(bits: tuple[int, ...]) -> list[float]:
    """Parts of pi / 2, a sum of numbers of so many bits each, rounded to nearest."""
    rest, found = PI / 2, []
    for count in bits:
        unit = Decimal(2) ** (math.frexp(float(rest))[1] - count)
        found.append(float((rest / unit).to_integral_value() * unit))
        rest -= Decimal(found[-1])
    return found


def quarter_turn(name: str, bits: tuple[int, ...], single: bool) -> str:
    """The macros of pi / 2 in parts, TS_QUARTER_NAME_1, _2, ..."""
    texts = (literal(part, single) for part in parts(bits))
    lines = (f"#define TS_QUARTER_{name}_{n} {text}\n" for n, text in enumerate(texts, 1))
    return f"\n/* pi / 2 in parts of {', '.join(map(str, bits))} bits */\n" + "".join(lines)


def inverse_quarter_turn() -> str:
    """The macro of the first bits of 2 / pi, in words of 64, after a word of zeros."""
    words = 19
    number = (2 << PI_BITS + 64 * words) // scaled_pi(PI_BITS)
    texts = [f"0x{number >> 64 * n & 2**64 - 1:016X}" for n in reversed(range(words))]
    body = ", \\\n    ".join(["0", *texts])
    return f"""
#define TS_TWO_OVER_PI {literal(float(2 / PI), False)}

/* 2 / pi, bits after the point; a word of zeros before */
#define TS_INVERSE_QUARTER \\
    {body}
"""


def header() -> str:
    """The text of the whole file."""
    quarters = (quarter_turn(*parts) for parts in QUARTERS)
    return HEADER + "".join([*map(define, FITS), *quarters, inverse_quarter_turn()])


def main() -> None:
    HEADER_PATH.write_text(header())


if __name__ == "__main__":
    main()
