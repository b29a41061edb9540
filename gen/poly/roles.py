"""What each executed statement is to the proof.

Input: the executed tree, the plain schedule's blocks and the certificate. Output: a role for every
statement. A block without an origin must be a copy, an init or a join: nothing else may compute.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import assert_never, final

from ..ir.nodes import Block, Const, Expr, Init, Load, Select, Store, Update
from ..ir.walk import loads
from .certificate import Flow, Source
from .extract import Access, Statement, Tree
from .flow import Logical
from .match import Makers
from .order import Relations
from .witness import Refused


@final
class Role(Enum):
    VALUE = "value"  # computes one instance of a plain block
    TERM = "term"  # adds one term to a reduction
    COPY = "copy"  # stores what it loads, or a constant that is padding
    INIT = "init"
    JOIN = "join"  # combines partial reductions


@final
@dataclass(frozen=True, slots=True)
class Execution:
    """An executed tree with its roles and certificate."""

    tree: Tree
    relations: Relations
    flow: Flow
    roles: Mapping[int, Role]

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


def execution(tree: Tree, flow: Flow, logical: Logical) -> Execution:
    """The tree's roles. Raises Refused for a block that computes something of its own."""
    roles = {s.uid: _role(s.block, logical) for s in tree.statements}
    return Execution(tree, Relations(tree), flow, roles)


def _role(block: Block, logical: Logical) -> Role:
    if block.origin and block.origin.block not in logical.blocks:
        raise Refused(
            f"block '{block.name}' computes '{block.origin.block}', which the plain schedule has"
            " not",
            span=block.span,
        )
    match block.body:
        case Init():
            return Role.INIT
        case Store() | Update() if block.origin:
            return Role.TERM if logical.is_reduction(block.origin.block) else Role.VALUE
        case Store(_, value) if _is_copy(value):
            return Role.COPY
        case Update(_, _, values) if all(isinstance(v, Load) for v in values):
            return Role.JOIN
        case Store() | Update():
            raise Refused(
                f"block '{block.name}' has no origin and is neither a copy, an init nor a join",
                span=block.span,
            )
        case _ as body:
            assert_never(body)


def _is_copy(value: Expr) -> bool:
    match value:
        case Load(_, indices, _):
            return not any(loads(i) for i in indices)
        case Const():
            return True
        case Select(condition, then, otherwise):
            return not loads(condition) and _is_copy(then) and _is_copy(otherwise)
        case _:
            return False


__all__ = ["Execution", "Role", "Statement", "execution"]
