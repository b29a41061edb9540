"""What a recipe asks of a CPU and does not get: temporaries in registers that are in memory.

Input: a finished tree. Output: advice on each temporary of register scope that some part of the
tree has in a local array, which a C compiler has to store and load again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...ir.nodes import Allocate, Buffer, Kernel, Loop, LoopKind, Scope, Stmt
from ...ir.types import DType
from ...ir.walk import loops, statements, variables
from ...lower.passes import Advice
from ..c.finishing import dtypes_of
from ..c.views import flat
from .levels import Processor
from .vectors.registers import RegisterAccess, accesses_of, register_view


def advice(kernel: Kernel, machine: Processor) -> tuple[Advice, ...]:
    """One a temporary."""
    found: dict[str, Advice] = {}
    dtypes = dtypes_of(kernel)
    for buffer, body in in_registers(kernel):
        if buffer.name not in found:
            reason = _reason(buffer, body, machine, dtypes)
            found |= {buffer.name: reason} if reason else {}
    return tuple(found.values())


def in_registers(kernel: Kernel) -> Iterator[tuple[Buffer, Stmt]]:
    """The temporaries of register scope, each with what runs while it lives."""
    for stmt in statements(kernel.body):
        if isinstance(stmt, Allocate):
            yield from ((b, stmt.body) for b in stmt.buffers if b.scope is Scope.REGISTER)


def _reason(
    buffer: Buffer, body: Stmt, machine: Processor, dtypes: Mapping[str, DType]
) -> Advice | None:
    """Why the buffer is in memory; None where it is not, and where a C compiler can keep it in
    registers, as it is accessed an element at a time at constant places alone.
    """
    if register_view(buffer.name, buffer, body, machine, dtypes) is not None:
        return None
    accesses = accesses_of(body, buffer.name, dtypes)
    told = Advice(buffer.name, f"'{buffer.name}' is to be in registers, and is in memory: ", "")
    around = {loop.var: loop for loop in loops(body)}
    for access in accesses:
        lane = {access.lane} - {""}
        moving = [v for i in access.indices for v in variables(i) - lane]
        if moving and flat(buffer, access.indices).variables() - lane:
            return _moving(told, access, list(dict.fromkeys(moving)), around)
    vectors = [a for a in accesses if a.lane]
    if not vectors:
        return None
    single = next((a for a in accesses if not a.lane and a.writes), None)
    if single is not None:
        why = f"block '{single.block}' writes one element of it, where block"
        hint = "vectorize both along the same axis, or neither"
        return _with(told, f"{why} '{vectors[0].block}' takes vectors", hint)
    widths = sorted({a.lanes for a in vectors})
    if len(widths) > 1:
        why = f"it is accessed by vectors of {' and of '.join(map(str, widths))} elements"
        return _with(told, why, "give the vectorized loops over it one width, as $lanes")
    first = vectors[0]
    why = f"the {first.lanes} lanes of block '{first.block}' are no whole vectors of it"
    hint = (
        f"vectorize by $lanes a loop that walks its last axis, whose length is a multiple of it"
        f" (transform_layout), or give '{buffer.name}' another scope"
    )
    return _with(told, why, hint)


def _moving(
    told: Advice, access: RegisterAccess, moving: list[str], around: Mapping[str, Loop]
) -> Advice:
    """Of an access whose place changes as loops run."""
    names = " and ".join(f"'{v}'" for v in moving)
    does = "writes" if access.writes else "reads"
    why = f"block '{access.block}' {does} it where the index of {names} says"
    inside = [around[v] for v in moving if v in around]
    if len(inside) < len(moving):
        hint = (
            "compute it at a loop around which its indices are constant, or give it another scope"
        )
    elif any(loop.kind is LoopKind.VECTORIZED for loop in inside):
        hint = (
            "what that block does has no form of vectors: unroll the loop in place of `vectorize`"
        )
    else:
        first, last = ", ".join(_names(inside[:-1])), inside[-1].var
        both = f"unroll {first}, and unroll or vectorize" if first else "unroll or vectorize"
        hint = f"{both} {last}: a loop whose extent is a number, as `split` makes it"
    return _with(told, why, hint)


def _names(loops: Sequence[Loop]) -> tuple[str, ...]:
    return tuple(loop.var for loop in loops)


def _with(told: Advice, why: str, hint: str) -> Advice:
    return replace(told, message=told.message + why, hint=hint)
