"""Special functions of Python's floats that its library lacks, or has with too large errors.

Input and output: floats. Right within some units in the last place; where a function is infinite,
that is its value.
"""

import math
from functools import cache
from statistics import NormalDist

_EULER = 0.5772156649015329


def erfinv(x: float) -> float:
    """The y of erf(y) = x, by the quantiles of the normal distribution; where these lose what is
    small, by Newton's steps.
    """
    size = abs(x)
    if not 0 < size < 1:
        return x if size == 0 else math.copysign(math.inf, x) if size == 1 else math.nan
    y = -NormalDist().inv_cdf((1 - size) / 2) / math.sqrt(2)
    if size < 0.5:
        y = y if size > 0.01 else size * math.sqrt(math.pi) / 2
        for _ in range(3):
            y -= (math.erf(y) - size) * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return math.copysign(y, x)


def lgamma(x: float) -> float:
    """log(|gamma(x)|), infinity at 0 and negative integers. Python's own loses what is small beside
    the zeros at 1 and 2.
    """
    if 0.25 <= x < 1.25:
        return _lgamma_from_two(x - 1) - math.log(x)
    if 1.25 <= x < 2.5:
        return _lgamma_from_two(x - 2)
    if 2.5 <= x < 8:
        return lgamma(x - 1) + math.log(x - 1)
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def _lgamma_from_two(z: float) -> float:
    """lgamma(2 + z) for |z| <= 3/4, by its Taylor series (Abramowitz and Stegun, 6.1.33)."""
    total = 0.0
    for k in reversed(range(2, 45)):
        total = total * -z + _zeta_less_one(k) / k
    return z * (1 - _EULER + z * total)


@cache
def _zeta_less_one(k: int) -> float:
    """2^-k + 3^-k + ..., all from 400 on by Euler's and Maclaurin's formula."""
    rest = 400 / (k - 1) + 1 / 2 + k / 4800 - k * (k + 1) * (k + 2) / 720 / 400**3
    return math.fsum((*(n**-k for n in range(2, 400)), rest * 400.0**-k))
