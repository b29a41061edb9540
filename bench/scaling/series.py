"""The kernels whose time is followed over sizes, and these sizes.

Input: a series' name, the most bytes. Output: its cases, in the order of their work. All dims of a
series grow together. Neighbouring round sizes differ by a factor of 1.41 in their bytes, and every
power of two is one of them. Beside each round size is the odd one that is larger by 1 in each dim.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import final

from ..cases import Case, UnknownName
from ..kernels import KERNELS
from ..kernels.kernel import Dims

LEAST_BYTES = 100
MOST_OPERATIONS = 4e9  # some tenth of a second a call
DOUBLED_IN = 2  # steps in which the bytes double
STEPS_A_SIDE = 8  # a side is a multiple of an eighth of the power of two below it, ...
COARSEST = 64  # ... or of this


@final
@dataclass(frozen=True, slots=True)
class Series:
    """A kernel over sizes. dims: from the side that grows; grows: how many dims have that side."""

    name: str
    kernel: str
    dims: Callable[[int], Dims]
    grows: int


def _square(side: int) -> Dims:
    return (side, side)


SERIES = {
    each.name: each
    for each in (
        Series("exp", "exp", lambda n: (n,), 1),
        Series("softmax", "softmax", _square, 2),
        Series("layer_norm", "layer_norm", _square, 2),
        Series("sum of columns", "sum_first", _square, 2),
        Series("sum of rows", "sum_last", _square, 2),
        Series("sum of all", "sum_last", lambda n: (1, n), 1),
        Series("argmax", "argmax_last", _square, 2),
        Series("cumsum", "cumsum", _square, 2),
        Series("transpose", "transpose", _square, 2),
        Series("matvec", "matvec", _square, 2),
        Series("matmul", "matmul", lambda n: (n, n, n), 2),
        Series("conv2d", "conv2d", lambda n: (1, 16, n + 2, n + 2, 16, 3), 2),
        Series("blur", "blur", _square, 2),
        Series("heat2d", "heat2d", _square, 2),
    )
}


def chosen(names: list[str]) -> list[Series]:
    """The series of these names, or of these kernels; all, if none is named. Raises UnknownName."""
    known = {word for s in SERIES.values() for word in (s.name, s.kernel)}
    for name in names:
        if name not in known:
            raise UnknownName(f"no series {name!r}; there are {', '.join(SERIES)}")
    return [s for s in SERIES.values() if not names or {s.name, s.kernel} & set(names)]


def rounded(side: float) -> int:
    step = COARSEST
    while step > 1 and step * STEPS_A_SIDE > side:
        step //= 2
    return step * round(side / step)


def _sides(grows: int) -> Iterator[int]:
    """Without an end."""
    for number in count():
        side = rounded(2 ** (number / DOUBLED_IN / grows))
        yield from (side, side + 1)


def cases(series: Series, most_bytes: int) -> list[Case]:
    """Of each size from LEAST_BYTES to `most_bytes`, and of no more than MOST_OPERATIONS."""
    kernel = KERNELS[series.kernel]
    found: dict[int, Case] = {}
    for side in _sides(series.grows):
        case = Case(kernel, series.dims(side), series.name)
        size = case.bytes_read + case.bytes_written
        if size > most_bytes or case.operations > MOST_OPERATIONS:
            break
        if size >= LEAST_BYTES:
            found[side] = case
    return [found[side] for side in sorted(found)]
