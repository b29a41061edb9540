"""Element types: their names in specs, NumPy and C, and what kind of number they hold; and the
other words that a spec says of its arguments and of its arithmetic.
"""

from enum import Enum
from typing import final


class Word(Enum):
    """An Enum whose members hash as plain objects do, in C: trees are hashed all the time."""

    __hash__ = object.__hash__


@final
class Kind(Word):
    BOOL = "bool"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"


@final
class DType(Word):
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

    @property
    def computed(self) -> "DType":
        """The type that values are computed in: float32 for narrower floats, which only store."""
        return DType.FLOAT32 if self.is_float and self.bits < 32 else self

    @property
    def only_stores(self) -> bool:
        """Whether there is no arithmetic in the type: values are cast as they come and go."""
        return self.computed is not self

    @property
    def is_complex(self) -> bool:
        return self.kind is Kind.COMPLEX

    @property
    def real(self) -> "DType":
        """The type of the real part; of a type that is not complex, itself."""
        return _REAL.get(self, self)

    @property
    def complex(self) -> "DType | None":
        """The complex type whose parts are of this type, if there is one."""
        return next((c for c, part in _REAL.items() if self in (c, part)), None)

    @property
    def lane_bits(self) -> int:
        """Bits of a lane of native vectors: a complex value has one in each of two vectors."""
        return self.real.bits


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

_REAL = {DType.COMPLEX64: DType.FLOAT32, DType.COMPLEX128: DType.FLOAT64}

# Loop variables, iteration variables, dims and array indices are all of this type.
INDEX = DType.INT64


@final
class Intent(Enum):
    IN = "in"
    OUT = "out"
    INOUT = "inout"


@final
class Contraction(Enum):
    """What becomes of a product of floats that is added to something, beyond what `fma` says."""

    FUSED = "fused"  # lowering fuses the two, alike in every element
    NONE = "none"  # each is rounded by itself
