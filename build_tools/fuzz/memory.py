"""Compiled kernels run on arrays among marks, which show what is written outside.

Input: a call of a compiled kernel, and a case. Output: what is wrong with the run. Arrays whose
strides the code leaves free lie spaced, backwards or with their axes exchanged. Under the address
sanitizer the marks around an array are poisoned, so that reading them is a fault, too.
"""

import ctypes
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from .cases import Case, difference

Array = NDArray[Any]

_GUARD = 64  # elements before and after each array
_POISON = "__asan_poison_memory_region", "__asan_unpoison_memory_region"


@final
@dataclass(frozen=True, slots=True)
class _Held:
    """A stretch of memory full of marks, and the array within it. outside: where marks are."""

    whole: Array
    inner: Array
    outside: Array

    @property
    def is_kept(self) -> bool:
        raw = self.whole.view(np.uint8).reshape(self.whole.size, -1)
        return bool((raw[self.outside] == _MARK).all())


_MARK = 0xA5  # every byte: no NaN, and no small number of any type


def run_guarded(
    call: Callable[[Mapping[str, Array]], None],
    case: Case,
    random: Random,
    packed: Collection[str],
    pairs: Collection[tuple[str, str]] = (),
) -> str | None:
    """What is wrong with a run. packed: the arrays that are given as one piece. pairs: the inputs
    and outputs that are given as one array, each in one pair at most.
    """
    held = {
        name: _packed(array) if name in packed else _spread(array, random)
        for name, array in case.arrays.items()
    }
    for name, output in pairs:
        one = held[output] if output in packed else held[name]  # as either may have to lie
        held |= {name: one, output: one}
    overwritten = {output: name for name, output in pairs}
    for name in case.arrays:
        held[name].inner[...] = case.arrays[overwritten.get(name, name)]
    arrays = {name: h.inner for name, h in held.items()}
    with poisoned(list(held.values())):
        call(arrays)
    for name, h in held.items():
        if not h.is_kept:
            return f"{name} is written outside of its bounds"
        if name in overwritten.values():
            continue
        if name not in case.expected and h.inner.tobytes() != case.arrays[name].tobytes():
            return f"{name} is an input, and written"
    return difference(arrays, case)


def drawn_pairs(pairs: Collection[tuple[str, str]], random: Random) -> tuple[tuple[str, str], ...]:
    """Some of the pairs, each array in one of them at most."""
    result: dict[str, str] = {}
    for name, output in random.sample(sorted(pairs), len(pairs)):
        if not {name, output} & {*result, *result.values()}:
            result[name] = output
    return tuple(result.items())


def _marked(size: int, dtype: np.dtype[Any]) -> Array:
    return np.full(size * dtype.itemsize, _MARK, np.uint8).view(dtype)


def _packed(array: Array) -> _Held:
    whole = _marked(array.size + 2 * _GUARD, array.dtype)
    outside = np.ones(whole.size, np.bool_)
    outside[_GUARD : _GUARD + array.size] = False
    return _Held(whole, whole[_GUARD : _GUARD + array.size].reshape(array.shape), outside)


def _spread(array: Array, random: Random) -> _Held:
    """Each axis with a step of its own, forwards or backwards, and in any order of axes."""
    steps = [random.choice((1, 1, 2, 3)) * random.choice((1, 1, -1)) for _ in array.shape]
    pads = [random.choice((0, 1, 5)) for _ in array.shape]
    extents = [n * abs(s) + p for n, s, p in zip(array.shape, steps, pads, strict=True)]
    order = random.sample(range(array.ndim), array.ndim)
    size = int(np.prod(extents, dtype=np.int64))
    whole = _marked(size + 2 * _GUARD, array.dtype)
    outside = np.ones(whole.size, np.bool_)

    def view(of: Array) -> Array:
        block = of[_GUARD : _GUARD + size].reshape([extents[k] for k in order])
        block = block.transpose([order.index(k) for k in range(array.ndim)])
        cuts = tuple(
            slice(0, n * s, s) if s > 0 else slice(n * -s - 1, None, s) if n else slice(0, 0)
            for n, s in zip(array.shape, steps, strict=True)
        )
        return block[(*cuts, ...)]  # an array even where it has no axes

    inner = view(whole)
    view(outside)[...] = False
    assert inner.shape == array.shape
    return _Held(whole, inner, outside)


@contextmanager
def poisoned(held: list[_Held]) -> Iterator[None]:
    """The marks before and after each array, under the address sanitizer."""
    poison, free = (_function(name) for name in _POISON)
    if poison is None or free is None:
        yield
        return
    ends = [end for h in held for end in _ends(h)]
    for address, size in ends:
        poison(ctypes.c_void_p(address), ctypes.c_size_t(size))
    try:
        yield
    finally:
        for address, size in ends:
            free(ctypes.c_void_p(address), ctypes.c_size_t(size))


def _ends(held: _Held) -> list[tuple[int, int]]:
    inside = np.flatnonzero(~held.outside)
    first, last = (int(inside[0]), int(inside[-1])) if inside.size else (held.whole.size, 0)
    start, item = held.whole.ctypes.data, held.whole.itemsize
    if not inside.size:
        return [(start, held.whole.nbytes)]
    return [(start, first * item), (start + (last + 1) * item, (held.whole.size - last - 1) * item)]


def _function(name: str) -> Callable[..., Any] | None:
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), name, None)
