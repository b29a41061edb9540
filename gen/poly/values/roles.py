"""What each executed statement is to the proof.

Input: the executed tree, the plain schedule's blocks and the certificate. Output: a role for every
statement. A block without an origin must be a copy, an init or a join: nothing else may compute.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import assert_never, final

import islpy as isl

from ...ir.nodes import (
    Binary,
    BinaryOp,
    Combiner,
    Const,
    Expr,
    Init,
    Load,
    Select,
    Store,
    Update,
)
from ..certificate import Flow, Source
from ..decisions import Decision
from ..sets.affine import NotAffine, region
from ..sets.extract import Tree
from ..sets.order import Relations
from ..sets.statement import Access, Statement
from ..witness import Refused
from .flow import Logical
from .match import Makers
from .padding import Extra

COMBINING = {
    BinaryOp.ADD: Combiner.SUM,
    BinaryOp.MUL: Combiner.PROD,
    BinaryOp.MIN: Combiner.MIN,
    BinaryOp.MAX: Combiner.MAX,
}
"""The combiner that an operator is, of two partial reductions."""


@final
class Role(Enum):
    VALUE = "value"  # computes one instance of a plain block
    TERM = "term"  # adds one term to a reduction
    COPY = "copy"  # stores what it loads, or a constant that is padding
    INIT = "init"
    JOIN = "join"  # adds a partial reduction to another
    UNION = "union"  # stores two partial reductions combined


@final
@dataclass(frozen=True, slots=True)
class Execution:
    """An executed tree with its roles and certificate. extra: the instances that the plain schedule
    does not have.
    """

    tree: Tree
    relations: Relations
    flow: Flow
    roles: Mapping[int, Role]
    extra: Extra

    def within(self, part: Decision) -> "Execution":
        """The execution of a part's statements alone."""
        chosen = tuple(s for s in self.tree.statements if s.uid in part.members)
        tree = replace(self.tree, statements=chosen)
        followed = {s.name for s in chosen if s.uid in part.followed}
        flow = {read: source for read, source in self.flow.items() if read[0] in followed}
        relations = self.relations.within(tree, part.buffers)
        return replace(self, tree=tree, relations=relations, flow=flow)

    def surplus_of(self, access: Access) -> isl.Set | None:
        """The events of an access that are surplus; None where none is."""
        found = self.extra.surplus.get(access.statement.uid)
        return None if found is None else found.add_dims(isl.dim_type.set, access.free)

    def live(self, read: Access) -> Access:
        """The read without its events that are surplus, whose values nobody takes."""
        surplus = self.surplus_of(read)
        return read if surplus is None else replace(read, place=read.place.subtract_domain(surplus))

    def role(self, access: Access) -> Role:
        return self.roles[access.statement.uid]

    def source(self, read: Access) -> Source:
        """Raises Refused where the certificate leaves a read out."""
        key = (read.statement.name, read.number)
        if key not in self.flow:
            raise Refused(
                f"the certificate does not say where read {read.number} of block"
                f" '{read.statement.name}' (of '{read.storage.name}') takes its value",
                span=read.statement.block.span,
            )
        return self.flow[key]

    def adds(self, write: Access) -> bool:
        """Whether a write combines with what is there."""
        return self.role(write) in (Role.TERM, Role.JOIN)

    def reduces(self, write: Access) -> bool:
        """Whether a write leaves a reduction, or a part of one."""
        return self.adds(write) or self.role(write) is Role.UNION

    def writers(self, read: Access, source: Source | None) -> tuple[Access, ...]:
        """The writes to a read's buffer that the source names; all of them where there is none."""
        found = self.relations.writes(read.storage)
        if source is None:
            return found
        for name in source.writers:
            if not any(s.name == name for s in self.tree.statements):
                raise Refused(
                    f"the certificate says that block '{read.statement.name}' reads what block"
                    f" '{name}' writes, but there is no such block",
                    span=read.statement.block.span,
                )
        return tuple(w for w in found if w.statement.name in source.writers)

    def makers(self, read: Access) -> Makers:
        """The plain blocks and arguments whose values a read may take by its certificate."""
        return self._makers(read, frozenset())

    def _makers(self, read: Access, seen: frozenset[Access]) -> Makers:
        source = self.source(read)
        arguments = {read.storage.name} if source.initial else set()
        result = Makers(arguments=frozenset(arguments))
        if read in seen:
            return result
        for s in self.tree.statements:
            if s.name in source.writers:
                if s.block.origin:
                    result |= Makers(frozenset({s.block.origin.block}))
                for copied in () if s.block.origin else s.reads:
                    result |= self._makers(copied, seen | {read})
        return result


def in_a_circle(copy: Access) -> Refused:
    """A copy of what it copied itself: nothing that the proof follows."""
    return Refused(
        f"block '{copy.statement.name}' copies what it copied itself, which the proof does not"
        " follow",
        span=copy.statement.block.span,
    )


def execution(tree: Tree, extra: Extra, flow: Flow, logical: Logical) -> Execution:
    """The tree's roles. Raises Refused for a block that computes something of its own, or whose
    effect depends on data in a way that the proof does not follow.
    """
    roles = {s.uid: _role(s, logical) for s in tree.statements}
    for s in tree.statements:
        if any(w.free for w in s.writes):
            raise Refused(
                f"block '{s.name}' writes at places that depend on data", span=s.block.span
            )
        if s.opaque and roles[s.uid] is not Role.TERM:
            raise Refused(
                f"block '{s.name}' runs where data says so, which only the terms of a reduction"
                " may",
                span=s.block.span,
            )
    return Execution(tree, Relations(tree), flow, roles, extra)


def _role(statement: Statement, logical: Logical) -> Role:
    block = statement.block
    if block.origin and block.origin.block not in logical.blocks:
        raise Refused(
            f"block '{block.name}' computes '{block.origin.block}', which the plain schedule"
            " does not have",
            span=block.span,
        )
    match block.body:
        case Init():
            return Role.INIT
        case Store() | Update() if block.origin:
            return Role.TERM if logical.is_reduction(block.origin.block) else Role.VALUE
        case Store(_, value) if _is_copy(value, statement):
            return Role.COPY
        case Store(_, Binary(op, Load(), Load())) if op in COMBINING and not _free(statement):
            return Role.UNION
        case Update(_, _, values) if _are_loads(values) and not _free(statement):
            return Role.JOIN
        case Store() | Update():
            raise Refused(
                f"block '{block.name}' has no origin and is neither a copy, an init nor a join",
                span=block.span,
            )
        case _ as body:
            assert_never(body)


def _are_loads(values: tuple[Expr, ...]) -> bool:
    return all(isinstance(v, Load) for v in values)


def _free(statement: Statement) -> bool:
    """Whether a read's place depends on data."""
    return any(r.free for r in statement.reads)


def _is_copy(value: Expr, statement: Statement) -> bool:
    """Whether each instance stores what one load gives, or a constant as padding."""
    match value:
        case Load():
            return not _free(statement)
        case Const():
            return True
        case Select(condition, then, otherwise):
            try:
                region(condition, statement.at)
            except NotAffine:
                return False
            return _is_copy(then, statement) and _is_copy(otherwise, statement)
        case _:
            return False
