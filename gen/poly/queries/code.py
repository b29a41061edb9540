"""isl's code for a schedule, as a tree of ours.

Input: blocks, and when each of their iterations runs. Output: the loops that isl generates
(Grosser, Verdoolaege and Cohen 2015) around the same blocks, whose bindings are in the new loops'
variables. Each block is there once: what a bound cannot say is a guard. Loops further in than one
another are named alike where they run over the same coordinate of time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, cast, final

import islpy as isl

from ...ir import nodes as ir
from ...ir.algebra import (
    TRUE,
    add,
    ceildiv,
    conjunction,
    conjuncts,
    floordiv,
    index,
    maximum,
    minimum,
    mod,
    mul,
    simplify,
    sub,
)
from ...ir.walk import seq, substitute
from .times import IN, PARAM, Timed, includes

# Some of their members have names that the stubs of islpy leave out.
_Node: Any = isl.ast_node_type
_Kind: Any = isl.ast_expr_type
_Op: Any = isl.ast_expr_op_type


@final
@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node of isl's code stands: what is known outside, the blocks with their loops, what
    names mean, and the loops and the conditions around it.
    """

    context: isl.Set
    blocks: Mapping[str, tuple[ir.Block, tuple[str, ...]]]
    values: Mapping[str, ir.Expr]
    loops: tuple[tuple[str, ir.Expr, ir.Expr], ...] = ()
    guards: tuple[ir.Expr, ...] = ()


def generate(
    parts: Sequence[tuple[Timed, ir.Block]], context: isl.Set, names: tuple[str, ...]
) -> ir.Stmt:
    """context: what is known of the parameters, which are dims and loops further out. names: one a
    coordinate of time.
    """
    whole = isl.UnionMap.empty(context.get_space())
    for part, _ in parts:
        here = part.time.intersect_domain(part.domain)
        whole = whole.union(here.set_tuple_name(IN, part.block).to_union_map())
    coordinates = tuple(f"time {k}" for k, _ in enumerate(names))
    iterators = isl.IdList.alloc(isl.DEFAULT_CONTEXT, len(names))
    for name in coordinates:
        iterators = iterators.add(isl.Id(name))
    build = isl.AstBuild.from_context(context).set_iterators(iterators)
    node = build.set_options(_once(len(names))).node_from_schedule_map(whole)
    space = context.get_space()
    known = (str(space.get_dim_name(PARAM, k)) for k in range(space.dim(PARAM)))
    values = {
        **{p: ir.Var(p) for p in known},
        **dict(zip(coordinates, map(ir.Var, names), strict=True)),
    }
    blocks = {part.block: (block, part.loops) for part, block in parts}
    return _stmt(node, _Place(context, blocks, values))


def _once(count: int) -> isl.UnionMap:
    """The option that no block is copied, at any depth."""
    time = ", ".join(f"t{k}" for k in range(count))
    return isl.UnionMap(f"{{ [{time}] -> atomic[x] : 0 <= x < {count} }}")


# ---------------------------------------------------------------- nodes


def _stmt(node: isl.AstNode, at: _Place) -> ir.Stmt:
    match node.get_type():
        case _Node.for_:
            return _loop(node, at)
        case _Node.if_:
            holds = formula(node.if_get_cond(), at.values)
            then = _stmt(node.if_get_then_node(), replace(at, guards=(*at.guards, holds)))
            if not node.if_has_else_node():
                return then
            fails = ir.Unary(ir.UnaryOp.NOT, holds)
            other = _stmt(node.if_get_else_node(), replace(at, guards=(*at.guards, fails)))
            return seq((then, other))
        case _Node.block:
            children = node.block_get_children()
            return seq(tuple(_stmt(children.get_at(k), at) for k in range(children.n_ast_node())))
        case _Node.user:
            return _instance(node.user_get_expr(), at)
        case kind:
            raise NotImplementedError(f"isl's code has a node of kind {kind}")


def _loop(node: isl.AstNode, at: _Place) -> ir.Stmt:
    iterator = node.for_get_iterator().get_id().get_name()
    first = formula(node.for_get_init(), at.values)
    if node.for_is_degenerate():
        return _stmt(node.for_get_body(), replace(at, values={**at.values, iterator: first}))
    own = cast(ir.Var, at.values[iterator])
    stride = int(node.for_get_inc().get_val().to_python())
    end = _end(node.for_get_cond(), iterator, at)
    if stride != 1:
        at = replace(at, values={**at.values, iterator: add(first, mul(own, stride))})
        first, end = index(0), ceildiv(sub(end, first), stride)
    inside = replace(at, loops=(*at.loops, (own.name, first, end)))
    body = _stmt(node.for_get_body(), inside)
    return ir.Loop(own.name, first, end, ir.LoopKind.SERIAL, body)


def _end(condition: isl.AstExpr, iterator: str, at: _Place) -> ir.Expr:
    """The first value past a loop, from its condition, `iterator < end` or `iterator <= last`."""
    left, right = condition.get_op_arg(0), condition.get_op_arg(1)
    assert left.get_type() == _Kind.id and left.get_id().get_name() == iterator
    match condition.get_op_type():
        case _Op.lt:
            return formula(right, at.values)
        case _Op.le:
            return add(formula(right, at.values), 1)
        case kind:
            raise NotImplementedError(f"isl's code has a loop with the condition {kind}")


def _instance(call: isl.AstExpr, at: _Place) -> ir.Block:
    block, loops = at.blocks[call.get_op_arg(0).get_id().get_name()]
    given = (formula(call.get_op_arg(k), at.values) for k in range(1, call.get_op_n_arg()))
    new = substitute(block, dict(zip(loops, given, strict=True)))
    return replace(new, predicate=conjunction(*_needed(at), new.predicate))


def _needed(at: _Place) -> tuple[ir.Expr, ...]:
    """The conditions around a node that its loops and the others do not imply."""
    names = tuple(name for name, _, _ in at.loops)
    bounds = [ir.Binary(ir.BinaryOp.GE, ir.Var(name), lower) for name, lower, _ in at.loops]
    bounds += [ir.Binary(ir.BinaryOp.LT, ir.Var(name), upper) for name, _, upper in at.loops]
    kept = conjuncts(conjunction(*at.guards))
    for condition in kept:
        others = tuple(c for c in kept if c is not condition)
        if includes(at.context, names, (condition,), (*bounds, *others), TRUE):
            kept = others
    return kept


# ---------------------------------------------------------------- expressions

_ARITHMETIC = {
    _Op.add: add,
    _Op.sub: sub,
    _Op.mul: mul,
    _Op.div: floordiv,  # isl has it only where nothing is left over
    _Op.fdiv_q: floordiv,
    _Op.pdiv_q: floordiv,
    _Op.pdiv_r: mod,
    _Op.zdiv_r: mod,  # only compared with 0
    _Op.min: minimum,
    _Op.max: maximum,
}

_LOGIC = {
    _Op.and_: ir.BinaryOp.AND,
    _Op.and_then: ir.BinaryOp.AND,
    _Op.or_: ir.BinaryOp.OR,
    _Op.or_else: ir.BinaryOp.OR,
    _Op.eq: ir.BinaryOp.EQ,
    _Op.le: ir.BinaryOp.LE,
    _Op.lt: ir.BinaryOp.LT,
    _Op.ge: ir.BinaryOp.GE,
    _Op.gt: ir.BinaryOp.GT,
}


def formula(e: isl.AstExpr, values: Mapping[str, ir.Expr]) -> ir.Expr:
    """An expression of isl's as ours. values: what its names mean."""
    match e.get_type():
        case _Kind.id:
            return values[e.get_id().get_name()]
        case _Kind.int:
            return index(int(e.get_val().to_python()))
        case _:
            kind = e.get_op_type()
            args = tuple(formula(e.get_op_arg(k), values) for k in range(e.get_op_n_arg()))
            return _operation(kind, args)


def _operation(kind: Any, args: tuple[ir.Expr, ...]) -> ir.Expr:
    if kind in _ARITHMETIC:
        return reduce(_ARITHMETIC[kind], args)
    if kind in _LOGIC:
        return reduce(lambda a, b: simplify(ir.Binary(_LOGIC[kind], a, b)), args)
    match kind, args:
        case _Op.minus, (operand,):
            return sub(0, operand)
        case ((_Op.select | _Op.cond), (condition, then, otherwise)):
            return ir.Select(condition, then, otherwise)
        case _:
            raise NotImplementedError(f"isl's code has the operation {kind}")
