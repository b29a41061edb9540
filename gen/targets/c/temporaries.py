"""Temporaries in memory, as C.

Input: a buffer whose scope is decided, and its C name. Output: declarations.
"""

from collections.abc import Sequence
from math import prod

from ...ir.index.linear import constant
from ...ir.nodes import Buffer, Scope
from .expr import Scalars, c_type
from .views import operand, product

SCALARS = 128  # bytes; what is larger is an array in memory, mostly, that would have to be filled


def local(name: str, buffer: Buffer, scalars: Scalars) -> str:
    """An array on the stack, of constant size."""
    size = product([operand(scalars.index(e)) for e in buffer.shape])
    value = " = {0}" if _may_be_scalars(buffer) else ""
    return f"_Alignas(64) {c_type(buffer.dtype)} {name}[{size}]{value};"


def _may_be_scalars(buffer: Buffer) -> bool:
    """Whether a C compiler may keep the elements in registers: it then does not always see that
    they are set before they are used, under guards that imply each other, and warns.
    """
    elements = prod(constant(extent) or 0 for extent in buffer.shape)
    return buffer.scope is Scope.REGISTER and elements * buffer.dtype.bytes < SCALARS


def workspace(name: str, buffer: Buffer, scalars: Scalars, releases: Sequence[str]) -> list[str]:
    """Memory that the calling thread keeps between calls. releases: of what is held already, where
    there is none left.
    """
    ctype = c_type(buffer.dtype)
    size = f"sizeof({ctype})"
    for extent in reversed(buffer.shape):
        size = f"ts_bytes({scalars.index(extent)}, {size})"
    return [
        f"{ctype} *const restrict {name} =",
        f"    ts_workspace_acquire({size});",
        f"if (!{name}) {{",
        *(f"    {line}" for line in (*releases, "return TS_NO_MEMORY;")),
        "}",
    ]
