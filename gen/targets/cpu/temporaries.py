"""Temporaries as C.

Input: a buffer whose place is decided, and what runs while it lives. Output: its declaration, and
the context in which it is there.
"""

from dataclasses import replace
from math import prod
from typing import assert_never

from ...ir.index.linear import constant
from ...ir.nodes import Buffer, Scope, Stmt
from ..c.expr import c_type, suffix
from ..c.views import Dense, operand, product, register_count
from .context import Context
from .vectors.registers import register_view

SCALARS = 128  # bytes; what is larger is an array in memory, mostly, that would have to be filled


def temporary(buffer: Buffer, body: Stmt, context: Context) -> tuple[list[str], Context]:
    """The declaration, and the context in which the buffer is there, for `body`."""
    name = context.names.arrays[buffer.name]
    match buffer.scope:
        case Scope.REGISTER:
            view = register_view(name, buffer, body, context.target, context.dtypes)
            if view is None:
                return _local(name, buffer, context)
            zero = "{{{0}}}" if buffer.dtype.is_complex else "{{0}}"
            declared = f"ts_{suffix(buffer.dtype)} {name}[{register_count(view)}] = {zero};"
            return [declared], replace(context, views={**context.views, buffer.name: view})
        case Scope.STACK:
            return _local(name, buffer, context)
        case Scope.HEAP:
            return _workspace(name, buffer, context)
        case Scope.AUTO | Scope.GLOBAL:
            raise AssertionError(f"lowering decides where {buffer.name} is")
        case Scope.SHARED | Scope.LOCAL | Scope.CONSTANT | Scope.DEVICE:
            raise AssertionError(f"lowering refuses launches, and so {buffer.name}")
        case Scope.RANK | Scope.MESSAGE:
            raise AssertionError(f"lowering refuses ranks, and so {buffer.name}")
        case _:
            assert_never(buffer.scope)


def _local(name: str, buffer: Buffer, context: Context) -> tuple[list[str], Context]:
    size = product([operand(context.scalars.index(e)) for e in buffer.shape])
    value = " = {0}" if _may_be_scalars(buffer) else ""
    declared = f"_Alignas(64) {c_type(buffer.dtype)} {name}[{size}]{value};"
    return [declared], _in_memory(name, buffer, context)


def _may_be_scalars(buffer: Buffer) -> bool:
    """Whether a C compiler may keep the elements in registers: it then does not always see that
    they are set before they are used, under guards that imply each other, and warns.
    """
    elements = prod(constant(extent) or 0 for extent in buffer.shape)
    return buffer.scope is Scope.REGISTER and elements * buffer.dtype.bytes < SCALARS


def _workspace(name: str, buffer: Buffer, context: Context) -> tuple[list[str], Context]:
    ctype = c_type(buffer.dtype)
    size = f"sizeof({ctype})"
    for extent in reversed(buffer.shape):
        size = f"ts_bytes({context.scalars.index(extent)}, {size})"
    inside = _in_memory(name, buffer, context)
    return [
        f"{ctype} *const restrict {name} =",
        f"    ts_workspace_acquire({size});",
        f"if (!{name}) {{",
        *(f"    {line}" for line in (*context.releases, "return TS_NO_MEMORY;")),
        "}",
    ], replace(inside, held=(*context.held, name))


def _in_memory(name: str, buffer: Buffer, context: Context) -> Context:
    return replace(
        context,
        views={**context.views, buffer.name: Dense(name, buffer)},
        scope=(*context.scope, (f"{c_type(buffer.dtype)} *restrict", name)),
    )
