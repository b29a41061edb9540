"""How device text says things: the words of CUDA's C++, and the names that are taken in it."""

import re

from ...ir.types import DType
from ..c.expr import Dialect
from ..c.names import is_reserved

INDEX_TYPE = "index_t"
"""The template parameter that indices are counted in: int32_t or int64_t."""

CUDA = Dialect(
    INDEX_TYPE,
    "ts_{}_index<" + INDEX_TYPE + ">",
    {DType.FLOAT32: "TS_INF_F32", DType.FLOAT64: "TS_INF_F64"},
    {DType.FLOAT32: "TS_NAN_F32", DType.FLOAT64: "TS_NAN_F64"},
)

_CPP = frozenset(
    word
    for line in (
        "and and_eq bitand bitor catch class compl const_cast consteval constinit concept",
        "co_await co_return co_yield decltype delete dynamic_cast explicit export friend mutable",
        "namespace new noexcept not not_eq operator or or_eq private protected public",
        "reinterpret_cast requires static_cast template this throw try typeid typename using",
        "virtual wchar_t xor xor_eq char8_t char16_t char32_t std",
        "threadIdx blockIdx blockDim gridDim warpSize",
    )
    for word in line.split()
)
# The template parameter; places on axes, and where a launch of a part of them begins; the types of
# vectors that CUDA's headers declare; what the host side declares.
_OWN = re.compile(
    r"index_t|(blockIdx|threadIdx)_[xyz]|first_[xyz]|(dim|u?(char|short|int|long|longlong)|float|"
    r"double)[1-4]|cuda\w*|grid\d*|block\d*|parameters\d*|wide|workspace|taken",
)


def is_taken(name: str) -> bool:
    """Whether the name means something in device text, or in C."""
    return is_reserved(name) or name in _CPP or _OWN.fullmatch(name) is not None
