"""What one thread alone uses becomes its own.

Input: a tree in launch form. Output: the same instances. A temporary that nothing reads is
allocated around all launches, since no read tells where its values are needed: the values of an
argmax whose indices alone are. Where one thread alone touches each element, and few of them, it is
allocated in the launch, and lives in registers: it would be a pass over the GPU's memory, and
workspace that the call has to find.
"""

from dataclasses import replace
from math import prod

from ....ir.launch import launches
from ....ir.nodes import Allocate, Buffer, Kernel, Loop, Scope, Stmt
from ....ir.walk import accessed, loads, map_nested, nested, replace_stmt
from ....poly.queries.extents import Temporaries

_MOST = 16


def own(kernel: Kernel) -> Kernel:
    for buffer in _outside(kernel.body):
        users = [launch for launch in launches(kernel.body) if buffer.name in accessed(launch)]
        unread = not any(x.buffer == buffer.name for x in loads(kernel.body))
        if buffer.scope is Scope.AUTO and unread and len(users) == 1:
            kernel = _in_launch(kernel, buffer, users[0])
    return kernel


def _outside(stmt: Stmt) -> tuple[Buffer, ...]:
    """What is allocated outside of launches."""
    if isinstance(stmt, Loop) and stmt.kind.is_bound:
        return ()
    here = stmt.buffers if isinstance(stmt, Allocate) else ()
    return (*here, *(b for s in nested(stmt) for b in _outside(s)))


def _in_launch(kernel: Kernel, buffer: Buffer, launch: Loop) -> Kernel:
    """With the buffer as each thread's own; as it was where threads share it, or use much of it."""
    if not Temporaries(kernel).of_one_thread(buffer.name):
        return kernel
    local = replace(buffer, scope=Scope.LOCAL)
    body = replace_stmt(kernel.body, launch, _innermost(launch, local))
    new = replace(kernel, body=_without(body, buffer))
    found = Temporaries(new).footprint(buffer.name)
    sizes = [found and found.extent(axis) for axis, _ in enumerate(buffer.shape)]
    few = all(sizes) and prod(size.size for size in sizes if size) <= _MOST
    return new if few else kernel


def _innermost(stmt: Stmt, buffer: Buffer) -> Stmt:
    """The launch with the buffer allocated inside the loops of its axes."""
    if isinstance(stmt, Loop) and stmt.kind.is_bound:
        return replace(stmt, body=_innermost(stmt.body, buffer))
    return Allocate((buffer,), stmt)


def _without(stmt: Stmt, buffer: Buffer) -> Stmt:
    if isinstance(stmt, Loop) and stmt.kind.is_bound:
        return stmt
    new = map_nested(stmt, lambda s: _without(s, buffer))
    if not isinstance(new, Allocate):
        return new
    left = tuple(b for b in new.buffers if b is not buffer)
    return replace(new, buffers=left) if left else new.body
