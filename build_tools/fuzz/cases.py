"""Arrays that a kernel is tried on, what comes of them, and how that is compared.

Input: a draft. Output: cases: sizes, arrays of small integers and what `reference` makes of them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gen import jit

from . import reference
from .draft import Draft
from .failure import Sizes

Array = NDArray[Any]

SIZES = (0, 1, 2, 3, 5, 8, 17)
NUMBERS = (0, 1, 3, 5)  # what scalars are
MOST_ELEMENTS = 160  # of all sizes' product: the interpreter is slow
_GUARD = 64  # elements before and after each array that a compiled kernel gets


@final
@dataclass(frozen=True, slots=True)
class Case:
    """sizes: of dims, and the values of scalars; arrays: all of them, outputs too."""

    sizes: Sizes
    dims: Sizes
    arrays: Mapping[str, Array]
    expected: Mapping[str, Array]

    @property
    def scalars(self) -> Sizes:
        return {name: value for name, value in self.sizes.items() if name not in self.dims}


def sizes_of(draft: Draft, count: int, random: Random) -> list[Sizes]:
    """Sizes that the constraints allow, not too large together, and values of the scalars."""
    names = (*draft.dims, *draft.numbers)
    choices = (SIZES if name in draft.dims else NUMBERS for name in names)
    every = [dict(zip(names, chosen, strict=True)) for chosen in product(*choices)]
    fit = [sizes for sizes in every if draft.allows(sizes) and is_small(sizes)]
    return random.sample(fit, min(count, len(fit)))


def is_small(sizes: Sizes) -> bool:
    return math.prod(sizes.values()) <= MOST_ELEMENTS


def case_of(draft: Draft, sizes: Sizes, seed: int) -> Case:
    random = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for name, role in draft.arrays.items():
        if role == "temporary":
            continue
        shape, dtype = reference.shape(draft, name, sizes), reference.element(draft, name)
        low, high = (-2, 9) if draft.types.get(name, "T") == "int64" else (-3, 4)
        arrays[name] = random.integers(low, high, shape).astype(dtype)
    dims = {name: sizes[name] for name in draft.dims}
    return Case(sizes, dims, arrays, reference.evaluate(draft, arrays, sizes))


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


def run_guarded(compiled: jit.Compiled, case: Case, threads: int) -> str | None:
    """What is wrong with a run on arrays that stand between guards."""
    held = {name: _held(array) for name, array in case.arrays.items()}
    arrays = {name: inner for name, (_, inner) in held.items()}
    for name, array in case.arrays.items():
        arrays[name][...] = array
    compiled(arrays, case.scalars, dims=case.dims, threads=threads)
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
