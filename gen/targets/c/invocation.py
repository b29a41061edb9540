"""A call as C has it (`ts_call` of ts_abi.h), and calls of which all but the addresses is known.

Input: arrays, or how they lie in memory, and numbers. Output: structures of ctypes, which hold
addresses alone: whoever makes a call keeps alive what it points to.
"""

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ...errors import TilesmithError
from ...ir.nodes import Kernel, Var
from ..target import ArrayLayout

Number = complex  # and so int and float


class CCall(ctypes.Structure):
    """ts_call."""

    _fields_ = (
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("scalars", ctypes.c_void_p),
        ("threads", ctypes.c_int),
        ("stream_above", ctypes.c_double),
        ("prefetch_above", ctypes.c_double),
        ("device", ctypes.c_void_p),
    )


class TableEntry(ctypes.Structure):
    """ts_variant."""

    _fields_ = (
        ("run", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(CCall))),
        ("when", ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(CCall))),
        ("unit", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
    )


def words(scalars: Sequence[Var], given: Mapping[str, Number]) -> "ctypes.Array[ctypes.c_char]":
    """As an array of ts_scalar: two words each."""
    packed = b"".join(_packed(scalar, given[scalar.name]) for scalar in scalars)
    return (ctypes.c_char * len(packed)).from_buffer_copy(packed)


def _packed(scalar: Var, given: Number) -> bytes:
    if scalar.dtype.is_complex:
        return _TWO_REALS.pack(given.real, given.imag)
    if scalar.dtype.is_float:
        return _TWO_REALS.pack(given, 0)
    number = int(given.real)
    return _TWO_INTEGERS.pack(number - 2**64 if number >= 2**63 else number, 0)


_TWO_REALS = struct.Struct("=dd")
_TWO_INTEGERS = struct.Struct("=qq")


def layouts_of(
    kernel: Kernel, arrays: Mapping[str, NDArray[np.generic]]
) -> tuple[ArrayLayout, ...]:
    """Those of the kernel's arguments, in their order."""
    given = (arrays[p.buffer.name] for p in kernel.parameters)
    return tuple(ArrayLayout(a.dtype, a.shape, a.strides) for a in given)


def check_layouts(kernel: Kernel, layouts: Sequence[ArrayLayout]) -> None:
    """Raises TilesmithError for another dtype, and strides that are no whole elements."""
    for p, layout in zip(kernel.parameters, layouts, strict=True):
        name, dtype = p.buffer.name, p.buffer.dtype.value
        if layout.dtype.name != dtype:
            raise TilesmithError(f"'{name}' has dtype {layout.dtype.name}, expected {dtype}")
        if not layout.is_whole:
            raise TilesmithError(f"a stride of '{name}' is not a whole number of elements")


def strides(layouts: Sequence[ArrayLayout]) -> list[int]:
    """Of all axes, in elements."""
    return [s // layout.dtype.itemsize for layout in layouts for s in layout.strides]


def strided(layouts: Sequence[ArrayLayout]) -> int:
    """The axes, as bits, that have neither stride 1 nor extent at most 1."""
    sizes = (n if layout.size else 0 for layout in layouts for n in layout.shape)
    axes = enumerate(zip(strides(layouts), sizes, strict=True))
    return sum(1 << k for k, (stride, size) in axes if stride != 1 and size > 1)


def axes_of(layouts: Sequence[ArrayLayout], bits: int) -> dict[int, int]:
    """The first axis of each array that the bits have, by the array's number."""
    places = [(k, axis) for k, layout in enumerate(layouts) for axis in range(len(layout.shape))]
    asked = [place for bit, place in enumerate(places) if bits >> bit & 1]
    return dict(reversed(asked))


@final
@dataclass(frozen=True, slots=True)
class CallFrame:
    """All of a call but addresses and scalars. blank: the call without them."""

    kernel: Kernel
    blank: CCall
    pointers: "type[ctypes.Array[ctypes.c_void_p]]"

    def call(self, addresses: Sequence[int], scalars: Mapping[str, Number]) -> tuple[CCall, object]:
        """The call, and what must live as long as that, beside the frame."""
        call = CCall.from_buffer_copy(self.blank)
        call.data = data = self.pointers(*addresses)
        if not self.kernel.scalars:
            return call, data
        numbers = words(self.kernel.scalars, scalars)
        call.scalars = ctypes.addressof(numbers)
        return call, (data, numbers)


@final
@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call of a variant for arrays of known layouts, wherever they are."""

    frame: CallFrame
    run: Callable[..., int]

    def __call__(self, addresses: Sequence[int], scalars: Mapping[str, Number]) -> None:
        call, keep = self.frame.call(addresses, scalars)
        if self.run(ctypes.byref(call)):
            raise MemoryError(f"'{self.frame.kernel.name}' could not allocate its temporaries")
        del keep  # the call holds addresses alone


def frame(
    kernel: Kernel,
    layouts: Sequence[ArrayLayout],
    sizes: Mapping[str, int],
    threads: int,
    limits: tuple[float, float],
) -> CallFrame:
    """sizes: of all of the kernel's dims. limits: the bytes above which the call stores past the
    caches, and reads ahead.
    """
    steps, extents = strides(layouts), [sizes[dim] for dim in kernel.dims]
    blank = CCall(
        None,
        (ctypes.c_int64 * len(steps))(*steps),
        (ctypes.c_int64 * len(extents))(*extents),
        None,
        threads,
        *limits,
    )
    return CallFrame(kernel, blank, ctypes.c_void_p * len(layouts))
