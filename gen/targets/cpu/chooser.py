"""What a call of a kernel chooses for itself, at its start, in a few nanoseconds.

Input: a kernel and its C names. Output: declarations of the run-time integers that
streamed stores and prefetches go by. They change when memory is written and read, never a result:
`stream`, whether results pass the caches by; `ahead`, 1 where prefetches are worth their
instructions, else 0; and the kernel's phases. The first two follow from `moved`, the bytes of all
arguments, against what the call says is too much for the caches (see `ts_call`).
"""

from collections.abc import Iterator

from ...ir.index.facts import Facts
from ...ir.nodes import Expr, Kernel
from ..c.names import CNames
from ..c.views import plain_scalars


def choices(kernel: Kernel, names: CNames) -> Iterator[tuple[str, str, str]]:
    """C type, name and declaration of each, in an order in which they can stand."""
    scalars = plain_scalars(names.variables, {}, Facts((), ()))

    def size(extent: Expr) -> str:
        return f"(double)({scalars.index(extent)})"

    arrays = (
        " * ".join([f"{p.buffer.dtype.bytes}.0", *map(size, p.buffer.shape)])
        for p in kernel.parameters
    )
    yield "double", "moved", f"const double moved = {' + '.join(arrays)};"
    yield "bool", "stream", "const bool stream = moved > call->stream_above;"
    for phase in kernel.phases:
        name, array = names.variables[phase.name], names.arrays[phase.buffer]
        value = f"(int64_t)((uintptr_t){array} / sizeof *{array} % {phase.size})"
        yield "int64_t", name, f"const int64_t {name} = {value};"
    yield "int64_t", "ahead", "const int64_t ahead = moved > call->prefetch_above;"
