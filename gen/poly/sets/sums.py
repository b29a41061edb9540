"""Index expressions as integer multiples of expressions that are no sums.

Input: expressions, statements. Output: the sums in them, one by one, added, or with a variable for
what adds up to it. Products by what is no number are taken as one thing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import cast

from ...ir.algebra import add, dtype_of, index, mul
from ...ir.nodes import Binary, BinaryOp, Block, Const, Expr, Node, Stmt, Var
from ...ir.types import INDEX
from ...ir.walk import children, map_children

Sum = dict[Expr | None, int]
"""Integer multiples of expressions that are no sums; of None, the constant."""


def is_sum(node: Node) -> bool:
    sums = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL)
    match node:
        case Binary(op, _, _) if op in sums:
            return dtype_of(node) is INDEX
        case _:
            return False


def outside(stmt: Stmt) -> Iterator[Expr]:
    """The expressions in loops' variables: what is in a block's body has names of its own."""
    if isinstance(stmt, Block):
        yield from (*stmt.bindings, stmt.predicate)
        return
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from outside(child)
        elif isinstance(child, Expr):
            yield child


def sums_in(node: Node) -> Iterator[Expr]:
    """The sums below that are no parts of others."""
    if isinstance(node, Binary) and is_sum(node):
        yield node
        return
    for child in children(node):
        yield from sums_in(child)


def sum_of(e: Expr) -> Sum:
    match e:
        case Const(int() as value, _):
            return {None: int(value)} if value else {}
        case Binary(BinaryOp.ADD, a, b):
            return plus(sum_of(a), sum_of(b), 1)
        case Binary(BinaryOp.SUB, a, b):
            return plus(sum_of(a), sum_of(b), -1)
        case Binary(BinaryOp.MUL, a, Const(int() as factor)) | Binary(
            BinaryOp.MUL, Const(int() as factor), a
        ):
            return plus({}, sum_of(a), int(factor))
        case _:
            return {e: 1}


def operands(op: BinaryOp, e: Expr) -> Iterator[Expr]:
    """What a minimum, or a maximum, is of."""
    if isinstance(e, Binary) and e.op is op:
        yield from operands(op, e.lhs)
        yield from operands(op, e.rhs)
    else:
        yield e


def extreme(op: BinaryOp, sums: Sequence[Sum]) -> Expr:
    """The least, or the greatest, of the sums."""
    return reduce(lambda a, b: Binary(op, a, b), map(as_expr, sums))


def plus(a: Sum, b: Sum, factor: int = 1) -> Sum:
    result = dict(a)
    for atom, c in b.items():
        result[atom] = result.get(atom, 0) + c * factor
    return {atom: c for atom, c in result.items() if c}


def as_expr(terms: Sum) -> Expr:
    result: Expr = index(0)
    for atom, c in terms.items():
        result = add(result, index(c) if atom is None else mul(atom, c))
    return result


def joined(below: Node, sums: Sequence[tuple[Expr, str, str]]) -> Node:
    """With one variable for each sum of a part's first iteration and a place."""

    def go(node: Node) -> Node:
        if isinstance(node, Block):
            bindings = tuple(cast(Expr, go(b)) for b in node.bindings)
            return replace(node, bindings=bindings, predicate=cast(Expr, go(node.predicate)))
        if not isinstance(node, Binary) or not is_sum(node):
            return map_children(node, go)
        terms = sum_of(node)
        for first, place, whole in sums:
            c = terms.get(first, 0)
            if c and terms.get(Var(place)) == c:
                terms = plus(plus(terms, {first: 1, Var(place): 1}, -c), {Var(whole): c})
        return as_expr({map_children(a, go) if a else a: c for a, c in terms.items()})

    return go(below)
