"""Sizes that no recipe was tuned on: drawn by a seed.

Input: kernels, how many cases, a seed. Output: the cases, each kernel's in turn. A dim is
log-uniform from 1 up to what its kernel allows, or to where the arrays have 64 MiB; no dim is more
than 10,000 times another. A quarter of the cases have arrays that begin anywhere; a quarter,
where arguments have rows, room between these, as slices of larger arrays have.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice

import numpy as np

from .cases import Case
from .kernels.kernel import MOST, Dims, Kernel

MOST_BYTES = 64 << 20
MOST_OPERATIONS = 2e9
MOST_ASPECT = 10_000
MOST_GAP = 17  # elements


def draw(kernels: Sequence[Kernel], count: int, seed: int) -> list[Case]:
    rng = np.random.default_rng(seed)
    return [_case(kernel, rng) for kernel in islice(cycle(kernels), count)]


def _case(kernel: Kernel, rng: np.random.Generator) -> Case:
    while True:
        dims = _dims(kernel, rng)
        case = Case(kernel, dims, "drawn")
        shapes = [kernel.result(*dims), *kernel.inputs(*dims)]
        if max(dims) > MOST_ASPECT * min(dims) and kernel.rank > 1:
            continue
        if min(map(min, filter(None, shapes))) < 1 or case.operations > MOST_OPERATIONS:
            continue
        if case.bytes_read + case.bytes_written <= MOST_BYTES:
            return _placed(case, rng)


def _dims(kernel: Kernel, rng: np.random.Generator) -> Dims:
    most = [*kernel.most, *[MOST] * (kernel.rank - len(kernel.most))]
    return tuple(int(math.exp(rng.uniform(0, math.log(each + 1)))) for each in most)


def _placed(case: Case, rng: np.random.Generator) -> Case:
    """Where NumPy would have the arrays, or anywhere."""
    offset, gap = 4 * int(rng.integers(16)), int(rng.integers(1, MOST_GAP + 1))
    has_rows = any(len(shape) > 1 for shape in case.kernel.inputs(*case.dims))
    match rng.integers(4):
        case 0:
            return replace(case, kind=f"drawn, at {offset}", offset=offset)
        case 1 if has_rows:
            return replace(case, kind=f"drawn, {gap} between rows", gap=gap)
        case _:
            return case
