"""Arrays that a kernel is tried on, what comes of them, and how that is compared.

Input: a draft. Output: cases: sizes, arrays of small integers and what `reference` makes of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gen import jit
from gen.ir.nodes import Kernel

from . import reference
from .draft import Draft
from .failure import Sizes

Array = NDArray[Any]

SIZES = (0, 1, 2, 3, 5, 8, 17)
MOST_ELEMENTS = 160  # of all sizes' product: the interpreter is slow
_GUARD = 64  # elements before and after each array that a compiled kernel gets


@final
@dataclass(frozen=True, slots=True)
class Case:
    sizes: Sizes
    arrays: Mapping[str, Array]
    expected: Mapping[str, Array]


def sizes_of(draft: Draft, count: int, random: Random) -> list[Sizes]:
    """Sizes that the constraints allow, not too large together."""
    every = [dict(zip(draft.dims, s, strict=True)) for s in product(SIZES, repeat=len(draft.dims))]
    fit = [s for s in every if draft.allows(s) and np.prod(list(s.values())) <= MOST_ELEMENTS]
    return random.sample(fit, min(count, len(fit)))


def case_of(draft: Draft, sizes: Sizes, seed: int) -> Case:
    random = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for name, role in draft.arrays.items():
        if role == "temporary":
            continue
        shape, dtype = reference.shape(draft, name, sizes), reference.element(draft, name)
        low, high = (-2, 9) if draft.types.get(name, "T") == "int64" else (-3, 4)
        arrays[name] = random.integers(low, high, shape).astype(dtype)
    return Case(sizes, arrays, reference.evaluate(draft, arrays, sizes))


def scalars_of(draft: Draft, kernel: Kernel) -> dict[str, int]:
    return {s.name: draft.scalars[s.name] for s in kernel.scalars}


def difference(got: Mapping[str, Array], expected: Mapping[str, Array]) -> str | None:
    for name, wanted in expected.items():
        value = got[name]
        if value.dtype.kind == "f":
            finite = np.abs(wanted[np.isfinite(wanted)])
            size = 64 * float(np.finfo(value.dtype).eps) * float(finite.max(initial=1))
            right = np.isclose(value, wanted, rtol=0, atol=size, equal_nan=True)
        else:
            right = value == wanted
        if not right.all():
            at = tuple(int(k) for k in np.argwhere(~right)[0]) if wanted.ndim else ()
            place = f"{name}[{', '.join(map(str, at))}]"
            return f"{place} is {value[at]}, expected {wanted[at]}"
    return None


def run_guarded(
    compiled: jit.Compiled, case: Case, scalars: Mapping[str, int], threads: int
) -> str | None:
    """What is wrong with a run on arrays that stand between guards."""
    held = {name: _held(array) for name, array in case.arrays.items()}
    arrays = {name: inner for name, (_, inner) in held.items()}
    for name, array in case.arrays.items():
        arrays[name][...] = array
    compiled(arrays, scalars, dims=case.sizes, threads=threads)
    for name, (whole, inner) in held.items():
        marks = np.concatenate((whole[:_GUARD], whole[_GUARD + inner.size :]))
        if not np.array_equal(marks, np.full_like(marks, _mark(inner.dtype)), equal_nan=True):
            return f"{name} is written outside of its bounds"
    return difference(arrays, case.expected)


def _held(array: Array) -> tuple[Array, Array]:
    """A stretch of memory full of marks, and the array within it."""
    whole = np.full(array.size + 2 * _GUARD, _mark(array.dtype), array.dtype)
    return whole, whole[_GUARD : _GUARD + array.size].reshape(array.shape)


def _mark(dtype: np.dtype[Any]) -> float:
    return float("nan") if dtype.kind == "f" else int(np.iinfo(dtype).max) - 7
