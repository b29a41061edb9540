"""Where temporaries live on a GPU, and whether they fit.

Input: a tree in launch form, temporaries shrunk. Output: those of launches shared or local, of
constant sizes that a GPU has; those outside of launches in the GPU's memory.
"""

from dataclasses import replace
from math import prod

from ....errors import Span, TilesmithError
from ....ir.index.linear import constant
from ....ir.launch import launches
from ....ir.nodes import Allocate, Buffer, Kernel, Loop, Node, Scope
from ....ir.text.print_expr import expr_to_text
from ....ir.walk import map_children, statements
from ....poly.queries.extents import Temporaries
from ..architectures import LOCAL_BYTES, SHARED_BYTES

_SIZES = (64, 128)


def place(kernel: Kernel) -> Kernel:
    """Raises TilesmithError for a temporary of a launch whose size is no constant."""

    def visit(node: Node) -> Node:
        if isinstance(node, Loop) and node.kind.is_bound:
            for buffer in temporaries(node):
                _require_constant(buffer, kernel)
            return node
        new = map_children(node, visit)
        if isinstance(new, Allocate):
            buffers = (replace(b, scope=Scope.DEVICE) for b in new.buffers)
            return replace(new, buffers=tuple(buffers))
        return new

    return map_children(kernel, visit)


def require_memory(kernel: Kernel) -> None:
    """Raises TilesmithError for a launch that takes more memory than a block or a thread has."""
    for launch in launches(kernel.body):
        for scope, most, whose in (
            (Scope.SHARED, SHARED_BYTES, "a block has without asking for more"),
            (Scope.LOCAL, LOCAL_BYTES, "a thread should have of its own"),
        ):
            taken = {b.name: size_of(b) for b in temporaries(launch) if b.scope is scope}
            if sum(taken.values()) > most:
                parts = ", ".join(f"'{name}' {size}" for name, size in taken.items())
                raise TilesmithError(
                    f"the launch of loop '{launch.var}' takes {sum(taken.values())} bytes of"
                    f" {scope.value} memory, more than the {most} that {whose}: {parts}",
                    _span(launch),
                    "make the tiles smaller, or compute them at a loop further in",
                )


def temporaries(launch: Loop) -> tuple[Buffer, ...]:
    """Those that are allocated in a launch."""
    return tuple(b for n in statements(launch) if isinstance(n, Allocate) for b in n.buffers)


def size_of(buffer: Buffer) -> int:
    """In bytes, of a buffer of constant size."""
    return buffer.dtype.bytes * prod(constant(extent) or 0 for extent in buffer.shape)


def _span(launch: Loop) -> Span | None:
    spans = (launch.span, *(b.span for b in temporaries(launch)))
    return next((span for span in spans if span), None)


def _require_constant(buffer: Buffer, kernel: Kernel) -> None:
    open_ = [axis for axis, extent in enumerate(buffer.shape) if constant(extent) is None]
    if open_:
        shape = ", ".join(map(expr_to_text, buffer.shape))
        raise TilesmithError(
            f"'{buffer.name}' cannot be {buffer.scope.value} memory: what is used of it has the"
            f" shape [{shape}], and its size must be a number{_growth(buffer, open_[0], kernel)}",
            buffer.span,
            "compute it at a loop further in, or split the loops that it is used in",
        )


def _growth(buffer: Buffer, axis: int, kernel: Kernel) -> str:
    """How what is used along an axis grows with the sizes, where isl can say that it does."""
    found = Temporaries(kernel).footprint(buffer.name)
    few, many = (found and found.longest(axis, size) for size in _SIZES)
    if few is None or many is None or few == many:
        return ""
    whose = "a block" if buffer.scope is Scope.SHARED else "a thread"
    return (
        f": {whose} uses {few} elements along axis {axis} where all sizes are {_SIZES[0]}, and"
        f" {many} where they are {_SIZES[1]}"
    )
