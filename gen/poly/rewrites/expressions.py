"""Are two expressions equal where a block runs?

Input: what is around a block, and two expressions there. Output: True only where they are equal for
all sizes, or where the second rounds products that are added once less. Equal are index expressions
whose sums are, or that isl finds equal. To isl, what is not affine, such as a product of sizes or
what is read from memory, is an unknown number: a coordinate of its own. So is a sum of data that
may wrap around (`ir.wrapping`).
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import assert_never, cast, final

import islpy as isl

from ...ir import nodes as ir
from ...ir.algebra import conjuncts, dtype_of, index
from ...ir.types import INDEX
from ...ir.walk import blocks, children, loads, map_children, targets, variables, walk
from ...ir.wrapping import wraps
from ..sets.affine import Frame, NotAffine, affine, frame, region
from ..values.match import head


@final
@dataclass(frozen=True)
class Around:
    """What is around a statement: variables, and conditions on them that hold.

    outer: what is around that, if anything is; its own variables and conditions come first.
    fuses: a product and what it is added to may be one operation.
    """

    parameters: isl.Space
    context: isl.Set
    variables: tuple[str, ...] = ()
    conditions: tuple[ir.Expr, ...] = ()
    outer: "Around | None" = None
    fuses: bool = False

    def enter(self, variables: Sequence[str], *conditions: ir.Expr) -> "Around":
        """What is around a body in it: one for all bodies that it is equal for, as for the vectors
        of a tile, which ask the same.
        """
        key = (tuple(variables), conditions)
        if key not in self._entered:
            self._entered[key] = Around(self.parameters, self.context, *key, self, self.fuses)
        return self._entered[key]

    def inside(self, stmt: ir.Loop | ir.Delinearize | ir.If) -> "Around":
        """What is around its body. A condition on an array that is written there was true as the
        statement began, and is left out.
        """
        match stmt:
            case ir.Loop(var, lower, upper):
                v = ir.Var(var)
                bounds = ir.Binary(ir.BinaryOp.GE, v, lower), ir.Binary(ir.BinaryOp.LT, v, upper)
                return self.enter((var,), *_lasting(bounds, stmt.body))
            case ir.Delinearize(names, extents):
                pairs = [(ir.Var(v), e) for v, e in zip(names, extents, strict=True)]
                above = [ir.Binary(ir.BinaryOp.GE, v, index(0)) for v, _ in pairs]
                below = [ir.Binary(ir.BinaryOp.LT, v, e) for v, e in pairs]
                return self.enter(names, *_lasting((*above, *below), stmt.body))
            case ir.If(condition):
                return self.enter((), *_lasting(conjuncts(condition), stmt.body))
            case _:
                assert_never(stmt)

    @property
    def all_variables(self) -> tuple[str, ...]:
        return (*(self.outer.all_variables if self.outer else ()), *self.variables)

    @property
    def all_conditions(self) -> tuple[ir.Expr, ...]:
        return (*(self.outer.all_conditions if self.outer else ()), *self.conditions)

    @property
    def outermost(self) -> "Around":
        """What is around all, with no variable of its own."""
        return self.outer.outermost if self.outer else self

    def constant(self, expr: ir.Expr) -> int | None:
        """The value of an index expression that is one number, whatever variables are."""
        if isinstance(expr, ir.Const) and expr.dtype is INDEX:
            return int(cast(int, expr.value))
        try:
            value = affine(expr, self.at)
        except NotAffine:
            return None
        return int(value.max_val().to_python()) if value.is_cst() else None

    def equal(self, a: ir.Expr, b: ir.Expr) -> bool:
        """Whether index expressions are equal wherever the outermost of the statements around is
        that their variables need: nearly all that are equal are so there.
        """
        if self.outer and (variables(a) | variables(b)).isdisjoint(self.variables):
            return self.outer.equal(a, b)
        if (a, b) not in self.answers:
            self.answers[a, b] = self._equal(a, b)
        return self.answers[a, b]

    def _equal(self, a: ir.Expr, b: ir.Expr) -> bool:
        try:
            return bool(self.domain.is_subset(affine(a, self.at).eq_set(affine(b, self.at))))
        except NotAffine:
            return False

    @cached_property
    def _entered(self) -> dict[tuple[tuple[str, ...], tuple[ir.Expr, ...]], "Around"]:
        return {}

    @cached_property
    def answers(self) -> dict[object, bool]:
        """Which two are equal: blocks ask it of `(8*i + 3) % 8` in each place of a tile."""
        return {}

    @cached_property
    def at(self) -> Frame:
        return frame(self.parameters, self.all_variables)

    @cached_property
    def domain(self) -> isl.Set:
        """Where the conditions hold, of which isl can say all."""
        if self.outer is None:
            start = frame(self.parameters, ()).space
            return isl.Set.universe(start).intersect_params(self.context)
        wider = self.outer.domain.add_dims(isl.dim_type.set, len(self.variables))
        return Site(self, (), ()).within(wider, self.conditions)


def _lasting(conditions: Iterable[ir.Expr], body: ir.Stmt) -> Iterator[ir.Expr]:
    """The conditions that hold as long as the body runs."""
    for condition in conditions:
        read = {load.buffer for load in loads(condition)}
        if not (read and read & {t.buffer for b in blocks(body) for t in targets(b.body)}):
            yield condition


class Unknown(Exception):
    """An expression that isl cannot say is to be taken for an unknown number."""

    def __init__(self, expr: ir.Expr) -> None:
        super().__init__()
        self.expr = expr


def head_of(node: ir.Node) -> tuple[object, ...]:
    """What of a node is not below it, but for a combiner's own expressions."""
    match node:
        case ir.Load(buffer):
            return (*head(node), buffer)
        case ir.Destination(buffer, indices):
            return (ir.Destination, buffer, len(indices))
        case ir.Store():
            return (ir.Store,)
        case ir.Init(combiner, places):
            return (ir.Init, combiner.value, len(places))
        case ir.Update(combiner, places, values):
            return (ir.Update, combiner.value, len(places), len(values))
        case _:
            return head(cast(ir.Expr, node))


def _identical(a: ir.Node, b: ir.Node) -> bool:
    """Whether the two are one expression. Of statements, whose combiners have expressions of their
    own, only the same one is.
    """
    if a is b:
        return True
    if not isinstance(a, ir.Expr) or not isinstance(b, ir.Expr):
        return False
    below, others = children(a), children(b)
    alike = head_of(a) == head_of(b) and len(below) == len(others)
    return alike and all(map(_identical, below, others))


@final
@dataclass(frozen=True)
class Site:
    """Where a block runs. guards: it runs where they hold, too. unknown: what is a coordinate of
    its own to isl. asked: those of them that something is being compared with.
    """

    around: Around
    guards: tuple[ir.Expr, ...]
    unknown: tuple[ir.Expr, ...]
    asked: tuple[ir.Expr, ...] = ()

    @cached_property
    def at(self) -> Frame:
        if not self.unknown:
            return self.around.at
        names = (f"unknown {k}" for k in range(len(self.unknown)))
        return frame(self.around.parameters, (*self.around.all_variables, *names))

    @cached_property
    def domain(self) -> isl.Set:
        """Where the block runs, at most."""
        if not self.unknown:
            return self.within(self.around.domain, self.guards)
        everywhere = isl.Set.universe(self.at.space).intersect_params(self.around.context)
        return self.within(everywhere, (*self.around.all_conditions, *self.guards))

    def within(self, points: isl.Set, conditions: Iterable[ir.Expr]) -> isl.Set:
        """Those of the points where the conditions hold, as far as isl can say."""
        for part in (p for condition in conditions for p in conjuncts(condition)):
            try:
                holds = self.region(part)
            except Unknown:
                continue
            points = points if holds is None else points.intersect(holds)
        return points

    def require_known(self) -> None:
        """Raises Unknown for what isl cannot say of where the block runs."""
        for condition in (*self.around.all_conditions, *self.guards):
            for part in conjuncts(condition):
                self.region(part)

    def implies(self, condition: ir.Expr) -> bool:
        holds = self.region(condition)
        return holds is not None and self.domain.is_subset(holds)

    def region(self, condition: ir.Expr) -> isl.Set | None:
        """Where a condition holds; None for one on other things than indices."""
        named = self._named(condition)
        try:
            return region(named, self.at)
        except NotAffine as e:
            _require_known(named, e.expr)
            return None

    def affine(self, expr: ir.Expr, where: isl.Set | None) -> isl.PwAff | None:
        """The index expression at the points of `where`, and maybe elsewhere. Around a ring of
        symbolic length it is known only by where the points are.
        """
        named = self._named(expr, lambda known, e: self._is(known, e, where))
        try:
            return affine(named, self.at)
        except NotAffine:
            pass
        try:
            here = self.domain if where is None else where
            return affine(named, replace(self.at, known=here))
        except NotAffine as e:
            _require_known(named, e.expr)
            return None

    def _named(
        self, expr: ir.Expr, is_it: Callable[[ir.Expr, ir.Expr], bool] = operator.eq
    ) -> ir.Expr:
        """The expression with names for the unknown numbers in it. Raises Unknown for a sum that
        may wrap around and has no name: named, its parts would seem to add up as numbers do.
        """
        if not self.unknown:
            return expr
        new = map_children(expr, lambda e: self._named(e, is_it))
        said = self._is_said(new)
        if said and not wraps(expr):
            return new
        names = (
            ir.Var(f"unknown {k}")
            for k, known in enumerate(self.unknown)
            if known not in self.asked and is_it(known, new)
        )
        found = next(names, None)
        if said and found is None:
            raise Unknown(new)
        return found or new

    def _is(self, known: ir.Expr, expr: ir.Expr, where: isl.Set | None) -> bool:
        """Whether an expression is the unknown number. To tell, its name is of no use: parts of it,
        as in `~~x`, may look like it.
        """
        if head_of(known) != head_of(expr):
            return False
        here = self.domain if where is None else where
        try:
            return replace(self, asked=(*self.asked, known))._alike(known, expr, here)
        except Unknown as unknown:
            if unknown.expr in self.unknown:
                return False  # it is in itself
            raise

    def _is_said(self, expr: ir.Expr) -> bool:
        """Whether isl can say it without a name for the whole."""
        try:
            affine(expr, self.at)
        except NotAffine:
            return False
        return True

    # ------------------------------------------------------------ expressions

    def same(self, a: ir.Node, b: ir.Node, where: isl.Set | None = None) -> bool:
        """Whether the second is equal to the first, or rounds it once less, in `where`: by default,
        everywhere that the block runs.
        """
        if _identical(a, b):
            return True
        if isinstance(a, ir.Expr) and isinstance(b, ir.Expr):
            if dtype_of(a) is not dtype_of(b):
                return False
            if dtype_of(a) is INDEX and (self.around.equal(a, b) or self._equal(a, b, where)):
                return True
            if self._alike(a, b, where) or self._fused(a, b, where):
                return True
            for select in (a, b):
                if isinstance(select, ir.Select):
                    holds = self.region(select.condition)
                    if holds is not None:
                        return self._same_sides(a, b, select, holds, where)
            return self._same_selections(a, b, where)
        return self._alike(a, b, where)

    def _alike(self, a: ir.Node, b: ir.Node, where: isl.Set | None) -> bool:
        """Whether the two are one node of parts that are the same."""
        below, others = children(a), children(b)
        alone = head_of(a) == head_of(b) and len(below) == len(others)
        return alone and all(self.same(x, y, where) for x, y in zip(below, others, strict=True))

    def same_combiner(
        self, a: ir.Store | ir.Init | ir.Update, b: ir.Store | ir.Init | ir.Update
    ) -> bool:
        """Whether what a spec defines combines the same; names of others are in their heads."""
        match a, b:
            case (
                ir.Init(ir.DefinedCombiner() as ours),
                ir.Init(ir.DefinedCombiner() as theirs),
            ) | (
                ir.Update(ir.DefinedCombiner() as ours),
                ir.Update(ir.DefinedCombiner() as theirs),
            ):
                alone = Site(self.around.outermost, (), self.unknown)
                pairs = zip(ours.combined, theirs.combined, strict=True)
                alike = repr(replace(ours, combined=())) == repr(replace(theirs, combined=()))
                return alike and all(alone.same(x, y) for x, y in pairs)
            case _:
                return True

    def _equal(self, a: ir.Expr, b: ir.Expr, where: isl.Set | None) -> bool:
        """The blocks of an unrolled loop ask the same of everywhere that they run."""
        answers, question = self.around.answers, (a, b, self.guards, self.unknown, self.asked)
        if where is None and question in answers:
            return answers[question]
        ours, theirs = self.affine(a, where), self.affine(b, where)
        here = self.domain if where is None else where
        if ours is None or theirs is None:
            return False
        found = bool(here.is_subset(ours.eq_set(theirs)))
        if where is None:
            answers[question] = found
        return found

    def _same_sides(
        self, a: ir.Expr, b: ir.Expr, select: ir.Select, holds: isl.Set, where: isl.Set | None
    ) -> bool:
        """Where one of the two is a selection whose side is known."""
        here = self.domain if where is None else where
        for side, part in (
            (select.then, here.intersect(holds)),
            (select.otherwise, here.subtract(holds)),
        ):
            ours, theirs = (side if e is select else e for e in (a, b))
            if not part.is_empty() and not self.same(ours, theirs, part):
                return False
        return True

    def _same_selections(self, a: ir.Expr, b: ir.Expr, where: isl.Set | None) -> bool:
        """Whether two selections by the same condition, of which isl can say a part, have the same
        sides: the first counts where that part holds.
        """
        match a, b:
            case ir.Select(one, then, otherwise), ir.Select(other, then_, otherwise_):
                inside = self.within(self.domain if where is None else where, (one,))
                return (
                    self.same(one, other, where)
                    and self.same(then, then_, inside)
                    and self.same(otherwise, otherwise_, where)
                )
            case _:
                return False

    def _fused(self, a: ir.Expr, b: ir.Expr, where: isl.Set | None) -> bool:
        """Whether the second is `a*b + c`, `a*b - c` or `c - a*b` of the first as one operation."""
        if not (self.around.fuses and (dtype_of(a).is_float or dtype_of(a).is_complex)):
            return False
        match a, b:
            case ir.Binary(ir.BinaryOp.ADD, lhs, rhs), ir.Call(ir.Function.FMA, (x, y, z)):
                ways = [(lhs, rhs, x, y, z), (rhs, lhs, x, y, z)]
            case ir.Binary(ir.BinaryOp.SUB, lhs, rhs), ir.Call(ir.Function.FMA, (x, y, z)):
                ways = []
                if isinstance(z, ir.Unary) and z.op is ir.UnaryOp.NEG:
                    ways.append((lhs, rhs, x, y, z.operand))
                if isinstance(x, ir.Unary) and x.op is ir.UnaryOp.NEG:
                    ways.append((rhs, lhs, x.operand, y, z))
            case _:
                return False
        return any(
            isinstance(product, ir.Binary)
            and product.op is ir.BinaryOp.MUL
            and self.same(term, z, where)
            and self.same(product.lhs, x, where)
            and self.same(product.rhs, y, where)
            for product, term, x, y, z in ways
        )


def _require_known(whole: ir.Expr, part: ir.Expr) -> None:
    """Raises Unknown for the least index expression around what isl cannot say, if there is any."""
    around = [
        n
        for n in walk(whole)
        if isinstance(n, ir.Expr) and dtype_of(n) is INDEX and any(m is part for m in walk(n))
    ]
    if around:
        raise Unknown(around[-1])
