"""Do loops that data bounds run all that they did before that combines or stores anything?

Input: a tree that is proved, and what narrowing its loops made of it. Output: nothing; raises
Refused where the two differ. Gone through side by side, they have the same statements in the same
loops, but for the bounds of serial loops, conditions around these, and what stands in a block as
`value if condition else identity`, or `else` what the place holds already. So at each block is
asked, for all sizes and all data: does it combine or store a value in the same iterations? What
data says is an unknown number to isl, one and the same in both trees, since a loop whose bounds
read an array may not write it. What is read for a bound, where no iteration read it before, has to
be inside its array.

Data is compared with numbers up to FAR (`lower.index_limits`), of which sizes and scalars are so
small a part that a sum of them is below it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import islpy as isl

from ...ir import nodes as ir
from ...ir.algebra import TRUE, conjuncts, dtype_of, index
from ...ir.interpret.evaluate import identity
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import (
    blocks,
    buffers,
    loads,
    map_children,
    substitute,
    targets,
    variables,
    walk,
)
from ..sets.extract import outline
from ..witness import Refused
from .expressions import Around, Site, Unknown

FAR = 2**62
"""Beyond all that data is compared with: the limits of sizes and scalars see to that, and that
sums of it and what it is compared with do not overflow (`lower.index_limits`)."""

PART = FAR // 256
"""What sizes and scalars are taken to be at most."""


def check_narrowed(before: ir.Kernel, after: ir.Kernel) -> None:
    """Returns if the trees do the same. Raises Refused, naming the block or loop that does not."""
    if before.body == after.body:
        return
    nothing = outline(replace(before, body=ir.Seq(()))).empty
    context = nothing.context
    for k in range(nothing.parameters.dim(isl.dim_type.param)):
        context = context.upper_bound_val(isl.dim_type.param, k, PART)
        context = context.lower_bound_val(isl.dim_type.param, k, -PART)
    around = Around(nothing.parameters, context)
    shapes = {name: buffer.shape for name, buffer in buffers(before).items()}
    _check(before.body, after.body, _Both(around, around, shapes))


@final
@dataclass(frozen=True)
class _Both:
    """What is around a statement in both trees. shapes: of all arrays."""

    ours: Around
    theirs: Around
    shapes: Mapping[str, tuple[ir.Expr, ...]]

    def enter(
        self, old: ir.Loop | ir.Delinearize | ir.If, new: ir.Loop | ir.Delinearize | ir.If
    ) -> "_Both":
        return replace(self, ours=self.ours.inside(old), theirs=self.theirs.inside(new))

    @property
    def is_alike(self) -> bool:
        return _texts(self.ours.all_conditions) == _texts(self.theirs.all_conditions)


def _check(old: ir.Stmt, new: ir.Stmt, both: _Both) -> None:
    match old, new:
        case ir.Block(), ir.Block():
            _check_blocks([(old, new)], both)
        case ir.Seq(ours), ir.Seq(theirs) if len(ours) == len(theirs):
            pairs = tuple(zip(ours, theirs, strict=True))
            _check_blocks([(a, b) for a, b in pairs if _are_blocks(a, b)], both)
            for a, b in pairs:
                if not _are_blocks(a, b):
                    _check(a, b, both)
        case (
            (ir.Loop() | ir.Delinearize() | ir.If()) as a,
            (ir.Loop() | ir.Delinearize() | ir.If()) as b,
        ) if replace(a, body=b.body) == b:
            _check(a.body, b.body, both.enter(a, b))
        case ir.Loop(), ir.Loop() if (
            replace(old, lower=new.lower, upper=new.upper, body=new.body) == new
        ):
            _require(new.kind is ir.LoopKind.SERIAL, new, "runs in no order of its own")
            _check_reads(new, (new.lower, new.upper), both)
            _check(old.body, new.body, both.enter(old, new))
        case _, ir.If(condition, body):
            _check_reads(new, tuple(conjuncts(condition)), both)
            _check(old, body, replace(both, theirs=both.theirs.inside(new)))
        case ir.Allocate(), ir.Allocate() if replace(old, body=new.body) == new:
            _check(old.body, new.body, both)
        case (ir.Barrier(), ir.Barrier()) | (ir.Transfer(), ir.Transfer()) if old == new:
            _require(both.is_alike, old, "would not come to a barrier or a message")
        case _:
            raise Refused("narrowing made another statement", span=old.span)


def _require(holds: bool, stmt: ir.Stmt, wrong: str) -> None:
    if not holds:
        called = f"loop '{stmt.var}'" if isinstance(stmt, ir.Loop) else "what data bounds"
        raise Refused(f"{called}: narrowed, it {wrong}", span=stmt.span)


def _check_reads(stmt: ir.Loop | ir.If, parts: Sequence[ir.Expr], both: _Both) -> None:
    """That what the bounds or conditions read is inside its array, each after those before it, and
    is not written below.
    """
    written = {t.buffer for block in blocks(stmt.body) for t in targets(block.body)}
    around = both.theirs
    for part in parts:
        for load in reversed(loads(part)):
            _require(load.buffer not in written, stmt, f"is bounded by '{load.buffer}', its own")
            for bound in _bounds(load.indices, both.shapes[load.buffer]):
                _require(_implied(around, (), bound), stmt, f"may read outside '{load.buffer}'")
        if isinstance(stmt, ir.If):
            around = around.enter((), part)


def _bounds(indices: Sequence[ir.Expr], shape: Sequence[ir.Expr]) -> Iterator[ir.Expr]:
    for i, extent in zip(indices, shape, strict=True):
        yield ir.Binary(ir.BinaryOp.GE, i, index(0))
        yield ir.Binary(ir.BinaryOp.LT, i, extent)


# ---------------------------------------------------------------- blocks


def _are_blocks(old: ir.Stmt, new: ir.Stmt) -> bool:
    return isinstance(old, ir.Block) and isinstance(new, ir.Block)


def _check_blocks(pairs: Sequence[tuple[ir.Stmt, ir.Stmt]], both: _Both) -> None:
    """Blocks of one place. Of a loop that was unrolled they ask one question, which is answered
    once.
    """
    answered = set[tuple[tuple[ir.Expr, ...], tuple[ir.Expr, ...]]]()
    for old, new in pairs:
        assert isinstance(old, ir.Block) and isinstance(new, ir.Block)
        if both.is_alike and old == new:
            continue
        question = _question(old, new)
        if question is None:
            wrong = f"block '{old.name}': narrowed, it computes something else"
            raise Refused(wrong, span=old.span)
        if question not in answered:
            _check_question(new, question, both)
            answered.add(question)


def _question(
    old: ir.Block, new: ir.Block
) -> tuple[tuple[ir.Expr, ...], tuple[ir.Expr, ...]] | None:
    """Where each of the two combines a value, if that is all that they differ in."""
    for ours, theirs in _conditions(old, new):
        return (*_guards(old), *ours), (*_guards(new), *theirs)
    return None


def _check_question(
    new: ir.Block, question: tuple[tuple[ir.Expr, ...], tuple[ir.Expr, ...]], both: _Both
) -> None:
    ours, theirs = question
    # What each iteration read is inside its array, as is proved.
    asked = [b for p in ours for load in _always(p) for b in _read_within(load, both)]
    _check_follows(new, both.ours, (*ours, *asked), both.theirs, theirs, "fewer")
    _check_follows(new, both.theirs, theirs, both.ours, ours, "more")


def _read_within(load: ir.Expr, both: _Both) -> Iterator[ir.Expr]:
    for each in loads(load):
        yield from _bounds(each.indices, both.shapes[each.buffer])


def _conditions(
    old: ir.Block, new: ir.Block
) -> Iterator[tuple[tuple[ir.Expr, ...], tuple[ir.Expr, ...]]]:
    """Under what each combines a value, if apart from that the two are the same."""
    condition = effective_where(old)
    if condition is None:
        if old == new:
            yield (), ()
        return
    values = {v.name: b for v, b in zip(old.iters, old.bindings, strict=True)}
    ours = tuple(conjuncts(substitute(condition, values)))
    if old == new:
        yield ours, ours
    elif _only_where(old, None) == new:
        yield ours, ()
    elif (left := effective_where(new)) is not None and _only_where(old, left) == new:
        yield ours, tuple(conjuncts(substitute(left, values)))


def _only_where(block: ir.Block, condition: ir.Expr | None) -> ir.Block:
    """The block with another condition, or without one."""

    def chosen(value: ir.Expr) -> ir.Expr:
        assert isinstance(value, ir.Select)
        return value.then if condition is None else replace(value, condition=condition)

    match block.body:
        case ir.Store(_, value) as body:
            return replace(block, body=replace(body, value=chosen(value)))
        case ir.Update(values=values) as body:
            return replace(block, body=replace(body, values=tuple(map(chosen, values))))
        case _:
            raise TypeError("neither a store nor an update")


def effective_where(block: ir.Block) -> ir.Expr | None:
    """Under what the block changes what it writes; None where that is not all that it does."""
    match block.body:
        case ir.Store(target, ir.Select(condition, _, ir.Load(buffer, indices))) if (
            buffer == target.buffer and indices == target.indices
        ):
            return condition
        case _:
            return condition_of(block)


def condition_of(block: ir.Block) -> ir.Expr | None:
    """What the block combines anything under; None where that is not all that it does."""
    match block.body:
        case ir.Update(combiner, _, (ir.Select(condition, _, _), *_) as values):
            dtypes = tuple(dtype_of(v) for v in values)
            for value, none in zip(values, identity(combiner, dtypes), strict=True):
                match value:
                    case ir.Select(c, _, ir.Const(otherwise)) if (
                        c == condition and otherwise == none
                    ):
                        continue
                return None
            return condition
        case _:
            return None


def _guards(block: ir.Block) -> tuple[ir.Expr, ...]:
    return tuple(conjuncts(block.predicate))


def _always(condition: ir.Expr) -> Iterator[ir.Expr]:
    """The parts of a condition that are computed whatever data says."""
    match condition:
        case ir.Select() | ir.Binary(ir.BinaryOp.AND | ir.BinaryOp.OR):
            return
        case ir.Binary(_, lhs, rhs):
            yield from (*_always(lhs), *_always(rhs))
        case ir.Unary(_, operand):
            yield from _always(operand)
        case _:
            if not any(isinstance(n, ir.Select) for n in walk(condition)):
                yield condition


def _check_follows(
    block: ir.Block,
    around: Around,
    guards: tuple[ir.Expr, ...],
    other: Around,
    asked: tuple[ir.Expr, ...],
    how: str,
) -> None:
    """Raises Refused where one runs and the other does not."""
    given = (*around.all_conditions, *guards)
    known = _texts(given)
    parts = [p for c in (*other.all_conditions, *asked) for p in conjuncts(c)]
    parts = [p for p in dict.fromkeys(parts) if repr(p) not in known and p != TRUE]
    part = _not_implied(around, given, parts)
    if part is not None:
        raise Refused(
            f"block '{block.name}': narrowed, it would combine values in {how} iterations:"
            f" `{expr_to_text(part)}` is not known",
            span=block.span,
        )


def _texts(conditions: Sequence[ir.Expr]) -> set[str]:
    return {repr(part) for c in conditions for part in conjuncts(c)}


def _implied(around: Around, guards: tuple[ir.Expr, ...], condition: ir.Expr) -> bool:
    return _not_implied(around, (*around.all_conditions, *guards), (condition,)) is None


def _not_implied(
    around: Around, given: tuple[ir.Expr, ...], asked: Sequence[ir.Expr]
) -> ir.Expr | None:
    """The first of what is asked that what is given does not imply. It is asked of the few that
    have to do with it first: isl takes the longer, the more it is told.
    """
    related = _related(given, asked)
    left = _first_unknown(around, related, asked)
    return left if left is None or related == given else _first_unknown(around, given, asked)


def _first_unknown(
    around: Around, given: tuple[ir.Expr, ...], asked: Sequence[ir.Expr]
) -> ir.Expr | None:
    held, named = _held(around, given, asked)
    place = Site(held, (), ())
    for part, condition in zip(asked, named, strict=True):
        place, holds = _implied_at(place, condition)
        if not holds:
            return part
    return None


def _related(given: tuple[ir.Expr, ...], asked: Sequence[ir.Expr]) -> tuple[ir.Expr, ...]:
    """What is given of the variables that are asked about, and of all that are in that."""
    names = frozenset[str]().union(*map(variables, asked))
    while True:
        kept = tuple(e for e in given if not names.isdisjoint(variables(e)))
        wider = names.union(*map(variables, kept))
        if wider == names:
            return kept
        names = wider


def _implied_at(place: Site, condition: ir.Expr) -> tuple[Site, bool]:
    """With the place in which all is an unknown number that isl cannot say of what was asked."""
    while True:
        try:
            if place.implies(condition):
                return place, True
            place.require_known()
            return place, False
        except Unknown as found:
            place = replace(place, unknown=(*place.unknown, found.expr))


def _held(
    around: Around, given: tuple[ir.Expr, ...], asked: Sequence[ir.Expr]
) -> tuple[Around, tuple[ir.Expr, ...]]:
    """The same with a name for each value that is held between -FAR and FAR: a sum of it does not
    wrap around, as other sums of data may.
    """
    found = (n for e in (*given, *asked) for n in walk(e) if isinstance(n, ir.Expr) and _is_held(n))
    values = dict.fromkeys(found)
    names = {value: f"held {k}" for k, value in enumerate(values)}

    def named(expr: ir.Expr) -> ir.Expr:
        return ir.Var(names[expr]) if expr in names else map_children(expr, named)

    known = [named(e) for e in given]
    known += [ir.Binary(ir.BinaryOp.EQ, ir.Var(name), value) for value, name in names.items()]
    held = around.outermost.enter((*around.all_variables, *names.values()), *known)
    return held, tuple(map(named, asked))


def _is_held(expr: ir.Expr) -> bool:
    match expr:
        case ir.Binary(
            ir.BinaryOp.MAX, ir.Binary(ir.BinaryOp.MIN, _, ir.Const(most)), ir.Const(least)
        ):
            return (most, least) == (FAR, -FAR)
        case _:
            return False
