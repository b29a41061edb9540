"""Which element type the operands of an operator share: NumPy's rules (NEP 50).

Python's own numbers, dims and indices are weak: they take the other operand's type. No operand is
float16 or bfloat16: what is read from storage of these types is float32 (`DType.computed`).
"""

from enum import IntEnum
from typing import final

import numpy

from ...ir.types import DType, Kind


@final
class Weak(IntEnum):
    """The kinds of Python number that have no element type yet, each wider than the last."""

    INT = 1
    FLOAT = 2
    COMPLEX = 3


AnyType = DType | Weak

_DEFAULT = {
    Weak.INT: DType.INT64,
    Weak.FLOAT: DType.FLOAT64,
    Weak.COMPLEX: DType.COMPLEX128,
}


def concrete(type_: AnyType) -> DType:
    """The type that NumPy gives a value of this type on its own."""
    return _DEFAULT[type_] if isinstance(type_, Weak) else type_


def promote(a: AnyType, b: AnyType) -> AnyType:
    """The common type of two operands."""
    if isinstance(a, Weak) and isinstance(b, Weak):
        return max(a, b)
    if isinstance(a, Weak):
        return _promote_weak(a, concrete(b))
    if isinstance(b, Weak):
        return _promote_weak(b, a)
    return promote_strong(a, b)


def _promote_weak(weak: Weak, strong: DType) -> DType:
    if strong.kind is Kind.BOOL or (weak is not Weak.INT and strong.is_integer):
        return _DEFAULT[weak]
    return complex_of(strong) if weak is Weak.COMPLEX else strong


def promote_strong(a: DType, b: DType) -> DType:
    """The smallest type that holds both without loss of kind, as `numpy.promote_types`."""
    if a is b:
        return a
    return DType(numpy.promote_types(a.value, b.value).name)


def as_float(type_: AnyType) -> AnyType:
    """The type in which a function of floats is taken of a value of this type; complex numbers
    stay what they are.
    """
    if isinstance(type_, Weak):
        return max(Weak.FLOAT, type_)
    return DType.FLOAT64 if type_.is_integer or type_ is DType.BOOL else type_


def complex_of(type_: DType) -> DType:
    """The least complex type with parts that hold this type."""
    return type_.complex or promote_strong(type_, DType.COMPLEX64)


def is_complex(type_: AnyType) -> bool:
    return concrete(type_).is_complex


def real_of(type_: AnyType) -> AnyType:
    """The type of the real part of a value of this type."""
    if isinstance(type_, Weak):
        return min(Weak.FLOAT, type_)
    return type_.real


def holds(target: DType, value: AnyType) -> bool:
    """Whether a value may be stored without a cast that the author writes."""
    return promote(target.computed, value) is target.computed
