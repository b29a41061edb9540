"""Arrays that a kernel is tried on, and what comes of them.

Input: a draft. Output: cases: sizes, arrays of the draft's kind of numbers and what
`build_tools.evaluator` makes of them.
"""

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from random import Random
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from build_tools import evaluator

from .draft import Draft
from .failure import Sizes

Array = NDArray[Any]
Dtype = np.dtype[Any]

SIZES = (0, 1, 2, 3, 5, 8, 17, 35)
NUMBERS = (0, 1, 3, 5)  # what scalars are
MOST_ELEMENTS = 160  # of all sizes' product: the interpreter is slow
_LARGEST, _FINEST = 2.0**14, 2.0**8  # of numbers whose sums are exact in float32, in any order


@final
@dataclass(frozen=True, slots=True)
class Case:
    """sizes: of dims, and the values of scalars; arrays: all of them, outputs too. exact: whether
    floats have to be the same; signed: and their zeros.
    """

    sizes: Sizes
    dims: Sizes
    arrays: Mapping[str, Array]
    expected: Mapping[str, Array]
    exact: bool = True
    signed: bool = False

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


def case_of(draft: Draft, sizes: Sizes, seed: int) -> Case | None:
    """None where the page does not say what comes of the arrays, or where sums would be rounded."""
    random = np.random.default_rng(seed)
    document = _document(draft.text())
    arrays: dict[str, Array] = {}
    for name, role in draft.arrays.items():
        if role == "temporary":
            continue
        array = document.arrays[name]
        dtype = evaluator.dtype(document.element(array.element, {"T": draft.element}))
        shape = evaluator.shape_of(document, name, sizes)
        position = draft.types.get(name, "T") != "T"
        arrays[name] = _numbers(shape, dtype, draft.data, position, random)
    dims = {name: sizes[name] for name in draft.dims}
    scalars = {name: sizes[name] for name in draft.numbers}
    try:
        found = evaluator.evaluate(document, {"T": draft.element}, arrays, scalars, dims)
    except evaluator.Unspecified:
        return None
    rounded, plain = _rounded(draft.compute), draft.data == "extreme"
    if not rounded and not plain and not all(map(_is_exact, found.values())):
        return None
    kept = {name: found[name] for name, role in draft.arrays.items() if role in ("out", "inout")}
    signed = not any(word in draft.compute for word in ("min(", "max("))
    return Case(sizes, dims, arrays, kept, not rounded, signed and not _updates(draft.compute))


@lru_cache(16)
def _document(text: str) -> evaluator.Document:
    return evaluator.read(text)


def _numbers(
    shape: tuple[int, ...], dtype: Dtype, data: str, position: bool, random: np.random.Generator
) -> Array:
    """position: whether the array says where, so that most of it lies around small sizes."""
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "c":
        real = np.empty(0, dtype).real.dtype
        parts = [_numbers(shape, real, data, position, random) for _ in range(2)]
        return np.asarray(parts[0] + 1j * parts[1]).astype(dtype)
    whole = dtype.kind in "iu"
    low, high = (0, 7) if dtype.kind == "u" else (-2, 9) if position else (-3, 4)
    small = random.integers(low, high, shape).astype(dtype)
    if data == "ties":
        two = random.integers(low, high, 2).astype(dtype)
        return two[random.integers(0, 2, shape)] if not position else small
    if data == "small" or (data == "special" and whole):
        return small
    known = _extremes(dtype) if data == "extreme" else _specials(dtype)
    some = random.permutation(known)[: random.integers(1, len(known) + 1)]
    share = random.choice((0.1, 0.3, 0.8)) if not position else 0.2
    mixed = np.where(random.random(shape) < share, random.choice(some, shape), small)
    return mixed.astype(dtype)


def _specials(dtype: Dtype) -> Array:
    return np.array([np.nan, np.inf, -np.inf, -0.0, 0.0]).astype(dtype)


def _extremes(dtype: Dtype) -> Array:
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.array([low, low + 1, high, high - 1, high // 2 + 1], dtype)
    largest, least = _ranges(dtype)
    numbers = [largest, -largest, least, -least, np.nan, np.inf, -np.inf, -0.0]
    return np.array(numbers).astype(dtype)


def _ranges(dtype: Dtype) -> tuple[float, float]:
    """The largest number, and the least above 0."""
    known = {"float64": (np.finfo(np.float64).max, 5e-324), "float16": (65504.0, 2.0**-24)}
    single = (float(np.finfo(np.float32).max), 2.0**-149)
    return known.get(dtype.name, single if dtype.name == "float32" else (2.0**127, 2.0**-133))


def _is_exact(array: Array) -> bool:
    """Whether sums of such numbers are exact."""
    if array.dtype.kind in "iub":
        return True
    wide = _parts(array)
    wide = wide[np.isfinite(wide)]
    return bool(np.all(np.abs(wide) <= _LARGEST) and np.all(wide * _FINEST % 1 == 0))


@lru_cache(64)
def _rounded(compute: str) -> bool:
    """Whether there is what is rounded: a quotient by anything but 2, or an exponential."""
    for node in ast.walk(ast.parse(compute)):
        match node:
            case ast.BinOp(op=ast.Div(), right=ast.Constant(value=2)):
                continue
            case ast.BinOp(op=ast.Div()) | ast.Call(func=ast.Name(id="exp")):
                return True
    return False


@lru_cache(64)
def _updates(compute: str) -> bool:
    """Whether something is combined, in an order that is free."""
    return any(
        isinstance(n, ast.For | ast.AugAssign | ast.GeneratorExp)
        for n in ast.walk(ast.parse(compute))
    )


def difference(got: Mapping[str, Array], case: Case) -> str | None:
    """The first element that is not what it should be."""
    for name, wanted in case.expected.items():
        value = got[name]
        if value.dtype.kind in "iub":
            right = np.asarray(value == wanted)
        else:
            right = _alike(value, wanted, case)
        if not right.all():
            at = tuple(int(k) for k in np.argwhere(~right)[0]) if wanted.ndim else ()
            place = f"{name}[{', '.join(map(str, at))}]"
            return f"{place} is {value[at]}, expected {wanted[at]}"
    return None


def _alike(value: Array, wanted: Array, case: Case) -> Array:
    wide, other = _parts(value), _parts(wanted)
    size = 0.0
    if not case.exact:
        eps = 2.0**-52 if value.dtype.name in ("float64", "complex128") else 2.0**-23
        size = 64 * eps * float(np.abs(other[np.isfinite(other)]).max(initial=1))
    right = np.isclose(wide, other, rtol=0, atol=size, equal_nan=True)
    if case.signed:
        right &= (np.signbit(wide) == np.signbit(other)) | np.isnan(other)
    return np.asarray(right.all(axis=0))


def _parts(array: Array) -> Array:
    """As float64: real and imaginary parts, or the numbers alone."""
    parts = (array.real, array.imag) if array.dtype.kind == "c" else (array,)
    return np.stack([part.astype(np.float64) for part in parts])
