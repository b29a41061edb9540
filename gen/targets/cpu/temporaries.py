"""Temporaries as C.

Input: a buffer whose place is decided, and what runs while it lives. Output: its declaration, and
the context in which it is there.
"""

from dataclasses import replace
from typing import assert_never

from ...ir.nodes import Buffer, Scope, Stmt
from ..c.expr import c_type, suffix
from ..c.temporaries import local, workspace
from ..c.views import Dense, register_count
from .context import Context
from .vectors.registers import register_view


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
    return [local(name, buffer, context.scalars)], _in_memory(name, buffer, context)


def _workspace(name: str, buffer: Buffer, context: Context) -> tuple[list[str], Context]:
    inside = _in_memory(name, buffer, context)
    lines = workspace(name, buffer, context.scalars, context.releases)
    return lines, replace(inside, held=(*context.held, name))


def _in_memory(name: str, buffer: Buffer, context: Context) -> Context:
    return replace(
        context,
        views={**context.views, buffer.name: Dense(name, buffer)},
        scope=(*context.scope, (f"{c_type(buffer.dtype)} *restrict", name)),
    )
