"""Element types: their names in specs, NumPy and C, and what kind of number they hold."""

from enum import Enum
from typing import final


@final
class Kind(Enum):
    BOOL = "bool"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"


@final
class DType(Enum):
    """An element type; the value is its name in specs and in NumPy."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"

    @property
    def kind(self) -> Kind:
        return _KIND[self]

    @property
    def bits(self) -> int:
        return _BITS[self]

    @property
    def bytes(self) -> int:
        return max(1, self.bits // 8)

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT


def _kind(dtype: DType) -> Kind:
    match dtype.value.rstrip("0123456789"):
        case "bool":
            return Kind.BOOL
        case "int":
            return Kind.SIGNED
        case "uint":
            return Kind.UNSIGNED
        case "complex":
            return Kind.COMPLEX
        case _:
            return Kind.FLOAT


_KIND = {dtype: _kind(dtype) for dtype in DType}
_BITS = {
    dtype: 1 if dtype is DType.BOOL else int(dtype.value.lstrip("abcdefghijklmnopqrstuvwxyz"))
    for dtype in DType
}

# Loop variables, iteration variables, dims and array indices are all of this type.
INDEX = DType.INT64
