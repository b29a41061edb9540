"""Instances that the plain schedule does not have: those of padding, and those of surplus.

Input: a tree, and the plain schedule's values. Output: the tree in which such an instance computes
nothing of the plain schedule: it still runs, reads what was written, and writes, inside its buffers
and without races. *Padding* combines the combiner's identity, which changes nothing. *Surplus*
combines or stores anything, into temporaries: no read may take what it leaves, so that what it
reads matters to nobody. Other instances stay, and are refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never, final

import islpy as isl

from ...ir.algebra import dtype_of
from ...ir.interpret.evaluate import identity_constants
from ...ir.nodes import (
    AnyCombiner,
    Binary,
    BinaryOp,
    Combiner,
    Const,
    DefinedCombiner,
    Expr,
    Init,
    Intent,
    Select,
    Store,
    Update,
)
from ...ir.types import DType
from ...ir.walk import walk
from ..sets.affine import Frame, NotAffine, region
from ..sets.extract import Tree
from ..sets.order import Relations
from ..sets.statement import Access, Statement
from ..witness import Refused, Witness, partner, sample
from .flow import Logical, element

_PARTIAL = frozenset({BinaryOp.FLOORDIV, BinaryOp.MOD, BinaryOp.SHL, BinaryOp.SHR})


def keeps_what_it_pads(combiner: AnyCombiner, dtype: DType) -> bool:
    """Whether combining with the identity leaves every value as it is. A product of complex numbers
    does not: infinity times 1 + 0i has the part infinity times 0, a NaN. What a spec defines is not
    known to.
    """
    match combiner:
        case DefinedCombiner():
            return False
        case Combiner.PROD:
            return not dtype.is_complex
        case Combiner():
            return True
        case _:
            assert_never(combiner)


@final
@dataclass(frozen=True, slots=True)
class Extra:
    """The instances that the plain schedule does not have, of statements by their number. padding:
    those that combine identities; surplus: those that may combine or store anything.
    """

    padding: Mapping[int, isl.Set]
    surplus: Mapping[int, isl.Set]


def without_padding(tree: Tree, logical: Logical) -> tuple[Tree, Extra]:
    """The tree in which these compute nothing of the plain schedule."""
    padding: dict[int, isl.Set] = {}
    surplus: dict[int, isl.Set] = {}
    statements = tuple(_without(s, logical, padding, surplus) for s in tree.statements)
    return replace(tree, statements=statements), Extra(padding, surplus)


def check_written(statement: Statement, extra: Extra, relations: Relations) -> None:
    """Raises Refused for an extra instance that reads what nothing has written, to combine with it
    or to add to it: no other check asks where it takes its values from.
    """
    adds = statement.writes if isinstance(statement.block.body, Update) else ()
    for found in (extra.padding, extra.surplus):
        if instances := found.get(statement.uid):
            for access in (*statement.reads, *adds):
                _require_written(access, instances, relations)


def _require_written(access: Access, instances: isl.Set, relations: Relations) -> None:
    parameter = access.storage.parameter
    if parameter and parameter.intent is not Intent.OUT:
        return
    rest = access.domain.intersect(instances.add_dims(isl.dim_type.set, access.free))
    for w in relations.near(access):
        rest = rest.subtract(relations.earlier(access, w).domain())
    if rest.is_empty():
        return
    case = sample(rest)
    reader, name = access.statement.describe(case), access.storage.name
    raise Refused(
        f"{reader} reads '{name}', which nothing has written, in an instance that the plain"
        " schedule does not have",
        Witness(case.sizes, (reader,), name, element(access, case)),
        access.statement.block.span,
    )


def require_live(read: Access, writer: Access, found: isl.Map, surplus: isl.Set | None) -> None:
    """Refuses a read that takes what surplus instances add. found: from the read's events to those
    of the writer, of which `surplus` are surplus.
    """
    if surplus is None or (taken := found.intersect_range(surplus)).is_empty():
        return
    case = sample(taken.domain())
    reader = read.statement.describe(case)
    adder = writer.statement.describe(case, partner(taken, case))
    raise Refused(
        f"{reader} reads '{read.storage.name}', to which {adder} adds, an instance that the plain"
        " schedule does not have",
        Witness(case.sizes, (reader, adder), read.storage.name, element(read, case)),
        read.statement.block.span,
    )


def _without(
    statement: Statement,
    logical: Logical,
    padding: dict[int, isl.Set],
    surplus: dict[int, isl.Set],
) -> Statement:
    origin = statement.block.origin
    if origin is None or origin.block not in logical.keys:
        return statement
    assert statement.origin
    alien = statement.origin.subtract_range(logical.keys[origin.block].domain()).domain()
    if alien.is_empty():
        return statement
    dropped = alien.intersect(_identities(statement))
    rest = alien.subtract(dropped)
    if not dropped.is_empty():
        padding[statement.uid] = dropped.coalesce()
    if not rest.is_empty() and _may_be_surplus(statement, logical.is_reduction(origin.block)):
        surplus[statement.uid] = rest.coalesce()
        dropped = alien
    return _with_origin(statement, statement.origin.subtract_domain(dropped).coalesce())


def _with_origin(statement: Statement, origin: isl.Map) -> Statement:
    new = replace(statement, origin=origin, guards=[], reads=[], writes=[])
    new.guards.extend(replace(a, statement=new) for a in statement.guards)
    new.reads.extend(replace(a, statement=new) for a in statement.reads)
    new.writes.extend(replace(a, statement=new) for a in statement.writes)
    return new


def _may_be_surplus(statement: Statement, reduces: bool) -> bool:
    """Whether an instance that the plain schedule does not have is seen by its writes alone, which
    are to temporaries: who reads what they leave is refused (`reads`, `reduction`).
    """
    if statement.opaque or any(w.storage.parameter or w.storage.way for w in statement.writes):
        return False
    match statement.block.body:
        case Store(_, value):
            return not _may_trap(value)
        case Update(_, _, values):
            return reduces and not any(map(_may_trap, values))
        case Init():
            return False
        case body:
            assert_never(body)


def _may_trap(value: Expr) -> bool:
    """Whether a value may be a division of integers by 0, of which no machine says the result."""
    return any(
        isinstance(n, Binary)
        and n.op in _PARTIAL
        and not dtype_of(n).is_float
        and not isinstance(n.rhs, Const)
        for n in walk(value)
    )


def _identities(statement: Statement) -> isl.Set:
    """Where all that an update combines is the identity."""
    nothing = isl.Set.empty(statement.at.space)
    match statement.block.body:
        case Update(combiner, _, values) if all(isinstance(v, Select) for v in values):
            dtypes = tuple(dtype_of(v) for v in values)
            if not all(keeps_what_it_pads(combiner, dtype) for dtype in dtypes):
                return nothing
            found = isl.Set.universe(statement.at.space)
            for value, none in zip(values, identity_constants(combiner, dtypes), strict=True):
                found = found.intersect(_where(value, none, statement.at))
            return found
        case _:
            return nothing


def _where(value: Expr, wanted: Const, at: Frame) -> isl.Set:
    """Where a value is a constant."""
    match value:
        case Const(number) if number == wanted.value:
            return isl.Set.universe(at.space)
        case Select(condition, then, otherwise):
            try:
                holds = region(condition, at)
            except NotAffine:
                return isl.Set.empty(at.space)
            taken = _where(then, wanted, at).intersect(holds)
            return taken.union(_where(otherwise, wanted, at).subtract(holds))
        case _:
            return isl.Set.empty(at.space)
