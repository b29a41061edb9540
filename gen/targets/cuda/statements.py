"""Statements of a launch as device text.

Input: a finished tree in launch form, and what stands around it. Output: lines of CUDA C++ that
every thread runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from math import prod
from typing import assert_never, final

from ...ir.algebra import TRUE, mul
from ...ir.index.facts import Facts
from ...ir.index.linear import constant, linear
from ...ir.nodes import (
    Allocate,
    Barrier,
    Block,
    Buffer,
    Delinearize,
    If,
    Leave,
    Loop,
    LoopKind,
    Scope,
    Seq,
    Stmt,
    Transfer,
)
from ...ir.rules.launches import MOST
from ...ir.types import DType
from ...ir.walk import targets
from ...schedule.edit.notes import UNROLL, noted
from ..c.expr import Scalars, c_type
from ..c.lines import indented
from ..c.marks import Owner, marked
from ..c.names import CNames
from ..c.statements import counted, delinearized, leaving, under
from ..c.updates import scalar
from ..c.views import Dense, View, plain_scalars
from .words import CUDA, INDEX_TYPE


@final
@dataclass(slots=True)
class LaunchNeeds:
    """What the statements of a launch ask of what is around them.

    barriers: how many there are in the file so far, which numbers them. shared: declarations.
    """

    barriers: int = 0
    shared: list[str] = field(default_factory=list)


@final
@dataclass(frozen=True, slots=True)
class DeviceCode:
    """What stands around a statement. dtypes: of all buffers. launched: what is asked for.
    fuses: sums take products by fused multiply-adds.
    """

    names: CNames
    dtypes: Mapping[str, DType]
    views: Mapping[str, View]
    facts: Facts
    launched: LaunchNeeds
    fuses: bool

    @property
    def scalars(self) -> Scalars:
        return plain_scalars(self.names.variables, self.views, self.facts, CUDA, self.fuses)

    def inside(self, stmt: Stmt) -> "DeviceCode":
        return replace(self, facts=self.facts.inside(stmt))


def statement(stmt: Stmt, code: DeviceCode) -> list[str]:
    match stmt:
        case Block():
            return marked(Owner.BLOCK, stmt.name, _block(stmt, code))
        case Loop():
            return marked(Owner.LOOP, stmt.var, _loop(stmt, code))
        case Delinearize():
            lines, size = statement(stmt.body, code.inside(stmt)), linear(reduce(mul, stmt.extents))
            inside = code.facts.holds(size - linear(stmt.value) - 1)
            return delinearized(stmt, code.scalars, code.names, lines, inside=inside)
        case If(condition, body):
            return under(code.scalars.condition(condition), statement(body, code.inside(stmt)))
        case Allocate():
            return _allocate(stmt, code)
        case Barrier():
            code.launched.barriers += 1
            return [f"ts_barrier({code.launched.barriers - 1});"]
        case Leave(condition):
            return leaving(code.scalars.condition(condition))
        case Seq(body):
            return [line for part in body for line in statement(part, code)]
        case Transfer():
            raise AssertionError("lowering refuses ranks")
        case _:
            assert_never(stmt)


def _block(block: Block, code: DeviceCode) -> list[str]:
    inner = replace(code, facts=code.facts.where(block.predicate))
    dtypes = tuple(code.dtypes[t.buffer] for t in targets(block.body))
    lines = scalar(block.body, dtypes, inner.scalars)
    if block.predicate == TRUE:
        return lines
    return under(code.scalars.condition(block.predicate), lines)


def _loop(loop: Loop, code: DeviceCode) -> list[str]:
    inner = code.inside(loop)
    body = statement(loop.body, inner)
    if loop.kind.is_bound:
        return [_place(loop, code.names), *body]
    lines = counted(loop, inner.scalars, code.names, body)
    match loop.kind:
        case LoopKind.UNROLLED | LoopKind.VECTORIZED:
            return ["#pragma unroll", *lines]
        case _:
            times = noted(loop).get(UNROLL)
            return lines if times is None else [f"#pragma unroll {times}", *lines]


def _place(loop: Loop, names: CNames) -> str:
    """The variable of an axis: the thread's own place on it."""
    axis = loop.kind.value
    value = f"({INDEX_TYPE}){axis}"
    if in_parts(loop):
        value = f"{first(loop.kind)} + {value}"
    name = names.variables[loop.var]
    return f"const {INDEX_TYPE} {name} = {value}; /* {loop.var} */"


def in_parts(loop: Loop) -> bool:
    """Whether the places on a launch's axis may be more than one launch of a GPU has."""
    extent = constant(loop.upper)
    return loop.kind.is_block and (extent is None or extent > MOST[loop.kind])


def first(kind: LoopKind) -> str:
    """The name of the first place on an axis that a launch of a part runs."""
    return f"first_{kind.value[-1]}"


def _allocate(allocate: Allocate, code: DeviceCode) -> list[str]:
    lines: list[str] = []
    views = dict(code.views)
    for buffer in allocate.buffers:
        name = code.names.arrays[buffer.name]
        views[buffer.name] = Dense(name, buffer)
        count = elements(buffer)
        if buffer.scope is Scope.SHARED:
            declared = f"TS_SHARED({c_type(buffer.dtype)}, {name}, {count});"
            code.launched.shared.append(declared)
        else:
            lines.append(f"{c_type(buffer.dtype)} {name}[{count}];")
    body = statement(allocate.body, replace(code, views=views))
    return ["{", *indented([*lines, *body]), "}"] if lines else body


def elements(buffer: Buffer) -> str:
    """How many there are in a buffer of constant size."""
    return str(prod(constant(extent) or 0 for extent in buffer.shape))
