"""Names and types as C has them.

Input: names and types of the IR. Output: C identifiers, one a name, distinct, never a C keyword and
never one that the runtime's headers define (those begin with `ts_` or `TS_`).
"""

import re
from collections.abc import Iterable, Mapping

from ..ir.types import DType

# What C computes in, or moves: float16 and bfloat16 as their bits.
SUFFIX = {
    DType.FLOAT16: "u16",
    DType.BFLOAT16: "u16",
    DType.INT8: "i8",
    DType.INT16: "i16",
    DType.INT32: "i32",
    DType.INT64: "i64",
    DType.UINT8: "u8",
    DType.UINT16: "u16",
    DType.UINT32: "u32",
    DType.UINT64: "u64",
    DType.FLOAT32: "f32",
    DType.FLOAT64: "f64",
    DType.COMPLEX64: "c64",
    DType.COMPLEX128: "c128",
}

C_TYPE = {
    DType.BOOL: "bool",
    DType.FLOAT32: "float",
    DType.FLOAT64: "double",
    DType.FLOAT16: "uint16_t",
    DType.BFLOAT16: "uint16_t",
    DType.COMPLEX64: "ts_complex64",
    DType.COMPLEX128: "ts_complex128",
} | {d: f"{d.value}_t" for d in SUFFIX if d.is_integer}

# As conversions name types.
NUMBER = SUFFIX | {DType.FLOAT16: "f16", DType.BFLOAT16: "bf16"}

_KEYWORDS = frozenset(
    word
    for line in (
        "auto break case char const continue default do double else enum extern float for goto if",
        "inline int long register restrict return short signed sizeof static struct switch typedef",
        "union unsigned void volatile while bool true false asm typeof main NULL INFINITY NAN",
    )
    for word in line.split()
)
# what the emitted functions use themselves
_OWN = re.compile(
    r"call|env|lower|upper|status|unit|self|l|top|first|moved|stream|ahead"
    r"|(lanes|widened|active|value|held|ats?|best|best_at|wins|on|line|kept|scan|exps|first)\d*"
    r"|half|(old|new|both)\d+(_\d+)?|(ts_|__).*",
    re.IGNORECASE,
)


def c_names(names: Iterable[str]) -> Mapping[str, str]:
    """A C identifier for each name, distinct."""
    given: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        if name in given:
            continue
        text = name.replace(".", "_")
        while text in taken or text in _KEYWORDS or _OWN.fullmatch(text):
            text = f"v_{text}"
        given[name] = text
        taken.add(text)
    return given
