"""Which law joins reductions of a tree?

Input: the tree's blocks and what makes the values that they read, and names of reductions. Output:
how a form of a law fits them, or NoFit with the reason. What a reduction adds is compared with what
the form says as an expression over the reals, with the blocks put in place of their results, so
that `e[i, j] = exp(x[i, j] - peak[i])` and `total[i] = sum(e[i, j])` are `sum(exp(x - peak))`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count
from math import isfinite
from typing import assert_never, final

from ...ir import nodes as ir
from ...ir.algebra import TRUE, dtype_of, mul, sub
from ...ir.text.print_expr import expr_to_text
from ...ir.types import INDEX, DType, Kind
from ...ir.walk import children, loads, map_children, substitute, targets
from ..values.flow import Computed, Contents, Value
from . import lookup, names
from .law import TERM, Form, Law
from .real import Opaque, Real, atom, number, reciprocal


class NoFit(Exception):
    """Why a law does not join reductions."""


@final
@dataclass(frozen=True, slots=True)
class Blocks:
    """A tree's blocks by name. maker: by a block and the number of a read, the one value that it
    takes; None where some instances take another than others.
    """

    named: Mapping[str, ir.Block]
    maker: Callable[[str, int], Value | None]


@final
@dataclass(frozen=True, slots=True)
class Fit:
    """blocks: the reduction that is each part; parts that only count have none."""

    law: Law
    form: Form
    blocks: Mapping[str, str]


def fitting(known: Blocks, reductions: Sequence[str], law: str | None = None) -> Fit:
    """How a law joins the reductions; that of the name, or the first that does. Raises NoFit."""
    dtype = _dtype(known, reductions)
    if law is not None and law not in names():
        raise NoFit(f"there is no law '{law}'; there are {', '.join(names())}")
    reasons = []
    for name in (law,) if law else names():
        found = lookup(name, dtype)
        for form in found.forms:
            try:
                return _fit(found, form, known, reductions)
            except NoFit as no:
                reasons.append(f"{name}: {no}")
    raise NoFit(f"no law joins them ({'; '.join(dict.fromkeys(reasons))})")


def _dtype(known: Blocks, reductions: Sequence[str]) -> DType:
    """The one element type of the reductions, which must be ones that a law can join at all."""
    if len(set(reductions)) < max(2, len(reductions)):
        raise NoFit("it takes two reductions or more, each once")
    dtypes = []
    for name in reductions:
        block = known.named[name]
        body = block.body
        if not isinstance(body, ir.Update) or isinstance(body.combiner, ir.DefinedCombiner):
            raise NoFit(f"block '{name}' is not a reduction of the spec by sum, max or the like")
        if len(body.targets) > 1 or not block.initialises:
            raise NoFit(f"block '{name}' does not start from the identity by itself")
        if block.predicate != TRUE:
            raise NoFit(f"block '{name}' has a condition: {expr_to_text(block.predicate)}")
        dtypes.append(dtype_of(body.values[0]))
    if len(set(dtypes)) > 1 or dtypes[0].kind is not Kind.FLOAT:
        types = ", ".join(d.value for d in dtypes)
        raise NoFit(f"the reductions must be of one type of floats, not {types}")
    return dtypes[0]


def _fit(law: Law, form: Form, known: Blocks, reductions: Sequence[str]) -> Fit:
    if len(reductions) != len(form.reductions):
        raise NoFit(f"it joins {len(form.reductions)} reductions")
    first = known.named[reductions[0]]
    fit = Fit(law, form, dict(zip(form.reductions, reductions, strict=True)))
    meanings: dict[str, ir.Expr] = {}
    for part, meaning in form.meanings.items():
        if meaning.counts:
            meanings[part] = _number_of_terms(first, dtype_of(meaning.value))
            continue
        block = known.named[fit.blocks[part]]
        assert isinstance(block.body, ir.Update)
        if block.body.combiner != meaning.combiner:
            raise NoFit(
                f"block '{block.name}' is a {block.body.combiner.value}, and '{part}' a"
                f" {meaning.combiner.value}"
            )
        renamed = _renamed(block, first)
        value = substitute(_resolved(known, block, block.body.values[0]), renamed)
        meanings.setdefault(TERM, value)
        wanted = substitute(meaning.value, meanings)
        if normal(value) != normal(wanted):
            raise NoFit(
                f"block '{block.name}' reduces `{expr_to_text(value)}`, and '{part}'"
                f" `{expr_to_text(wanted)}`"
            )
        own = tuple(ir.Var(v.name) for v in first.iters if v.kind is ir.IterKind.SPATIAL)
        _places(block, block.body.targets[0])
        meanings[part] = ir.Load(_result(block, 0), own, dtype_of(value))
    return fit


def _number_of_terms(block: ir.Block, dtype: DType) -> ir.Expr:
    reduced = (v for v in block.iters if v.kind is ir.IterKind.REDUCTION)
    return ir.Cast(dtype, reduce(mul, (sub(v.upper, v.lower) for v in reduced)))


def _renamed(block: ir.Block, first: ir.Block) -> dict[str, ir.Expr]:
    """The block's iteration variables as those of the first one. Raises NoFit where they run over
    other values.
    """
    names = {v.name: ir.Var(w.name) for v, w in zip(block.iters, first.iters, strict=False)}
    own = [(substitute(v.lower, names), substitute(v.upper, names), v.kind) for v in block.iters]
    if own != [(w.lower, w.upper, w.kind) for w in first.iters]:
        raise NoFit(f"blocks '{first.name}' and '{block.name}' run over other iterations")
    return dict(names)


# ---------------------------------------------------------------- what is read


def _resolved(known: Blocks, block: ir.Block, value: ir.Expr) -> ir.Expr:
    """A value of the block, with what computes them in place of loads, and names for what is left:
    the results of reductions, and arguments.
    """
    numbers = count(sum(len(loads(t)) for t in targets(block.body)))

    def go(e: ir.Expr) -> ir.Expr:
        if not isinstance(e, ir.Load):
            return map_children(e, go)
        maker = known.maker(block.name, next(numbers))
        return _made(known, maker, map_children(e, go))

    return go(value)


def _made(known: Blocks, maker: Value | None, load: ir.Load) -> ir.Expr:
    match maker:
        case Contents(argument):
            return ir.Load(argument, load.indices, load.dtype)
        case Computed(name, k):
            block = known.named[name]
            at = _places(block, targets(block.body)[k])
            own = {v: load.indices[axis] for v, axis in at.items()}
            if isinstance(block.body, ir.Store) and not loads(block.predicate):
                return substitute(_resolved(known, block, block.body.value), own)
            return ir.Load(_result(block, k), tuple(own.values()), load.dtype)
        case _:
            raise NoFit(f"what is read of '{load.buffer}' comes from several places")


def _result(block: ir.Block, target: int) -> str:
    """A name for what a reduction computes, which no buffer has."""
    return f"{block.name}.{target}"


def _places(block: ir.Block, target: ir.Destination) -> dict[str, int]:
    """The axis of the target that is each of the block's iteration variables, which so tells which
    instance wrote a place.
    """
    needed = [
        v.name
        for v in block.iters
        if v.kind is ir.IterKind.SPATIAL or isinstance(block.body, ir.Store)
    ]
    at = {e.name: k for k, e in enumerate(target.indices) if isinstance(e, ir.Var)}
    if len(at) < len(target.indices) or set(at) != set(needed):
        raise NoFit(f"block '{block.name}' does not write elements named by its iterations")
    return {name: at[name] for name in needed}


# ---------------------------------------------------------------- over the reals


def normal(expr: ir.Expr) -> Real:
    """The expression over the reals. Sums and products are those of the reals, sizes among them;
    everything else is a function of what it is applied to, which is not looked into.
    """
    match expr:
        case ir.Var(name):
            return atom(name)
        case ir.Const(int() | float() as value) if not isinstance(value, bool) and isfinite(value):
            return number(value)
        case ir.Unary(ir.UnaryOp.NEG, operand):
            return number(-1) * normal(operand)
        case ir.Binary(ir.BinaryOp.ADD, lhs, rhs):
            return normal(lhs) + normal(rhs)
        case ir.Binary(ir.BinaryOp.SUB, lhs, rhs):
            return normal(lhs) - normal(rhs)
        case ir.Binary(ir.BinaryOp.MUL, lhs, rhs) if _is_short(a := normal(lhs), b := normal(rhs)):
            return a * b
        case ir.Call(ir.Function.FMA, (x, y, z)):
            return normal(ir.Binary(ir.BinaryOp.ADD, ir.Binary(ir.BinaryOp.MUL, x, y), z))
        case ir.Binary(ir.BinaryOp.DIV, lhs, rhs) if normal(rhs).products:
            return normal(lhs) * reciprocal(normal(rhs))
        case ir.Cast(dtype, operand) if dtype.kind is Kind.FLOAT and _is_size(operand):
            return normal(operand)
        case _:
            parts = tuple(normal(e) for e in children(expr) if isinstance(e, ir.Expr))
            return atom(Opaque(_function(expr), parts))


MOST_PRODUCTS = 1000


def _is_short(a: Real, b: Real) -> bool:
    """Whether the product of two sums is worth to be written out."""
    return len(a.products) * len(b.products) <= MOST_PRODUCTS


def _is_size(expr: ir.Expr) -> bool:
    return dtype_of(expr) is INDEX and not loads(expr)


def _function(expr: ir.Expr) -> tuple[object, ...]:
    """What of a node is not below it."""
    match expr:
        case ir.Const(value):
            return (ir.Const, repr(value))
        case ir.Unary(op, _):
            return (ir.Unary, op)
        case ir.Binary(op, _, _):
            return (ir.Binary, op)
        case ir.Select():
            return (ir.Select,)
        case ir.Cast(dtype, _):
            return (ir.Cast, dtype)
        case ir.Call(function, _):
            return (ir.Call, function)
        case ir.Load(buffer, _, _):
            return (ir.Load, buffer)
        case ir.Var():
            raise AssertionError("a variable is an atom")
        case _:
            assert_never(expr)
