"""Casts of vectors: from one element type to another in steps that `ts_simd.h` has forms for.

Input: the native vectors of a value, and two element types that vectors have. Output: the native
vectors of the value in the other type, as C; which casts can be made as memory is accessed.
"""

from itertools import pairwise

from ....ir.algebra import dtype_of
from ....ir.nodes import Cast, Expr
from ....ir.types import DType
from ...c.names import NUMBER, SUFFIX
from . import masks
from .masks import Shape
from .prelude import Parts, Prelude


def converted(parts: Parts, old: DType, new: DType, shape: Shape, before: Prelude) -> Parts:
    """C's conversion, lane by lane; to float16 and bfloat16 rounded once."""
    for a, b in pairwise(_path(old, new)):
        if shape.parts(b.bits) > shape.parts(a.bits):  # halves of a vector are asked for
            parts = before.named(parts, f"ts_{SUFFIX[a]}")
        if a.bits == b.bits:
            parts = tuple(f"ts_convert_{NUMBER[b]}_{NUMBER[a]}({p})" for p in parts)
        else:
            to = "odd" if new.only_stores and a is DType.FLOAT64 else NUMBER[b]
            parts = masks.convert(parts, (NUMBER[a], a.bits), (to, b.bits), shape)
    return parts


def as_accessed(narrow: DType, wide: DType) -> bool:
    """Whether memory of one type can be loaded as, or stored from, vectors of the other."""
    if narrow.is_complex:  # memory has both parts of a number side by side
        return False
    return narrow.bits < wide.bits and (not narrow.only_stores or wide is DType.FLOAT32)


def is_short(expr: Expr) -> bool:
    """Whether the value is an int32 that int16 holds."""
    match expr:
        case Cast(DType.INT32, operand):
            return dtype_of(operand) in (DType.INT8, DType.UINT8, DType.INT16)
        case _:
            return False


def _path(old: DType, new: DType) -> tuple[DType, ...]:
    """The types from one to the other, both included."""
    via = _between(old, new)
    if via is None:
        return (old,) if old is new else (old, new)
    return (*_path(old, via), *_path(via, new)[1:])


def _between(old: DType, new: DType) -> DType | None:
    """A type on the way, where there is no form for the whole of it. Integers are widened by way of
    signed ones, which hold them; floats become short integers by way of int32, which then wrap.
    """
    if new.only_stores:
        return DType.FLOAT32 if old is DType.FLOAT64 else None
    if new.bits > 2 * old.bits:
        return DType(f"int{2 * old.bits}")
    if old.is_float and new.is_integer and new.bits < 32:
        return DType.INT32
    if 2 * new.bits < old.bits:
        return DType(f"int{old.bits // 2}")
    return None
