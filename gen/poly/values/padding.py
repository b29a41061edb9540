"""Instances that a reduction is padded with: they add what changes nothing.

Input: a tree, and the plain schedule's values. Output: the tree in which an instance that the plain
schedule does not have, and that combines the combiner's identity, is no instance of a term: it
still runs, reads and writes. An instance that combines anything else stays, and is refused.
"""

from dataclasses import replace
from typing import assert_never

import islpy as isl

from ...ir.algebra import dtype_of
from ...ir.interpret.evaluate import identity_constants
from ...ir.nodes import AnyCombiner, Combiner, Const, DefinedCombiner, Expr, Select, Update
from ...ir.types import DType
from ..sets.affine import Frame, NotAffine, region
from ..sets.extract import Tree
from ..sets.statement import Statement
from .flow import Logical


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


def without_padding(tree: Tree, logical: Logical) -> Tree:
    statements = tuple(_without(s, logical) for s in tree.statements)
    return replace(tree, statements=statements)


def _without(statement: Statement, logical: Logical) -> Statement:
    padded = _identities(statement)
    origin = statement.block.origin
    if padded is None or origin is None or origin.block not in logical.keys:
        return statement
    assert statement.origin
    alien = statement.origin.subtract_range(logical.keys[origin.block].domain()).domain()
    added = statement.origin.subtract_domain(alien.intersect(padded)).coalesce()
    new = replace(statement, origin=added, guards=[], reads=[], writes=[])
    new.guards.extend(replace(a, statement=new) for a in statement.guards)
    new.reads.extend(replace(a, statement=new) for a in statement.reads)
    new.writes.extend(replace(a, statement=new) for a in statement.writes)
    return new


def _identities(statement: Statement) -> isl.Set | None:
    """Where all that an update combines is the identity; None where nothing says so."""
    match statement.block.body:
        case Update(combiner, _, values) if all(isinstance(v, Select) for v in values):
            dtypes = tuple(dtype_of(v) for v in values)
            if not all(keeps_what_it_pads(combiner, dtype) for dtype in dtypes):
                return None
            found = isl.Set.universe(statement.at.space)
            for value, none in zip(values, identity_constants(combiner, dtypes), strict=True):
                found = found.intersect(_where(value, none, statement.at))
            return found
        case _:
            return None


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
