"""Does a block compute what the plain block it stands for computes?

Input: an executed statement with an origin, and the plain schedule's values. Output: for each of
its loads, the reads of the plain schedule whose values it must take. The bodies must be the same
expression up to: names of iteration variables and equal index arithmetic; loads of other buffers in
place of the plain ones (the flow is checked afterwards); producers inlined, that is a load replaced
by the expression that computes it in the plain schedule; sides of a Select that cannot be taken;
and `fma(a, b, c)` for `a*b + c`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import assert_never, final

import islpy as isl

from ...ir import nodes as ir
from ...ir.algebra import dtype_of
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import children, loads
from ..sets.affine import MOST_QUOTIENT, Frame, NotAffine, affine, region
from ..sets.statement import Statement
from ..sets.unknown_places import unknown
from ..witness import Refused
from .flow import Computed, Contents, Logical, Values
from .substitution import substituted


@final
@dataclass(frozen=True, slots=True)
class Makers:
    """Who may have made a value: plain blocks, and arguments whose contents it may be."""

    blocks: frozenset[str] = frozenset()
    arguments: frozenset[str] = frozenset()

    def __or__(self, other: "Makers") -> "Makers":
        return Makers(self.blocks | other.blocks, self.arguments | other.arguments)

    def __and__(self, other: "Makers") -> bool:
        return bool(self.blocks & other.blocks or self.arguments & other.arguments)


def makers(values: Values) -> Makers:
    return Makers(
        frozenset(v.block for v in values if isinstance(v, Computed)),
        frozenset(v.argument for v in values if isinstance(v, Contents)),
    )


@final
@dataclass(frozen=True, slots=True)
class LogicalRead:
    """Executed read `number` stands for one of the plain schedule that takes `values`; `instances`
    maps the points of the executed statement where it does to those of the plain block.
    """

    number: int
    values: Values
    instances: isl.Map


@final
@dataclass(frozen=True, slots=True)
class _Side:
    """An expression where it stands: its statement, and the number of its first load."""

    statement: Statement
    expr: ir.Expr
    first: int

    @property
    def at(self) -> Frame:
        return self.statement.at

    def parts(self) -> "tuple[_Side, ...]":
        first = self.first + isinstance(self.expr, ir.Load)
        return _sides(self.statement, tuple(children(self.expr)), first)


def _sides(statement: Statement, exprs: tuple[ir.Node, ...], first: int) -> tuple[_Side, ...]:
    """Expressions that follow each other in textual order."""
    firsts = accumulate((len(loads(e)) for e in exprs), initial=first)
    return tuple(
        _Side(statement, e, n)
        for e, n in zip(exprs, firsts, strict=False)
        if isinstance(e, ir.Expr)
    )


@final
@dataclass(frozen=True, slots=True)
class _Matcher:
    """Matches one statement. makers: of what each of its reads takes, by its source. in_condition:
    the expressions are conditions on inputs, whose loads stay as they are.
    """

    logical: Logical
    makers: Mapping[int, Makers]
    in_condition: bool = False

    def match(self, plain: _Side, executed: _Side, points: isl.Map) -> Iterator[LogicalRead]:
        """The reads, where `points` (executed to plain) says that the one computes the other."""
        if points.is_empty():
            return
        p, x = plain.expr, executed.expr
        if same := _equal_numbers(plain, executed, points):
            if same == "no":
                raise _mismatch(plain, executed)
            return
        if isinstance(p, ir.Select) and (holds := _where(p.condition, plain.at)) is not None:
            _, then, otherwise = plain.parts()
            yield from self.match(then, executed, points.intersect_range(holds))
            yield from self.match(otherwise, executed, points.subtract_range(holds))
        elif isinstance(x, ir.Select) and (holds := _where(x.condition, executed.at)) is not None:
            _, then, otherwise = executed.parts()
            yield from self.match(plain, then, points.intersect_domain(holds))
            yield from self.match(plain, otherwise, points.subtract_domain(holds))
        elif isinstance(p, ir.Load):
            yield from self._load(plain, p, executed, points)
        elif _is_fma(p, x):
            yield from self._fma(plain, executed, points)
        elif head(p) == head(x):
            for a, b in zip(plain.parts(), executed.parts(), strict=True):
                yield from self.match(a, b, points)
        else:
            raise _mismatch(plain, executed)

    def _load(
        self, plain: _Side, load: ir.Load, executed: _Side, points: isl.Map
    ) -> Iterator[LogicalRead]:
        x, block = executed.expr, plain.statement.name
        if self.in_condition:
            if not (isinstance(x, ir.Load) and x.buffer == load.buffer):
                raise _mismatch(plain, executed)
            for a, b in zip(plain.parts(), executed.parts(), strict=True):
                yield from self.match(a, b, points)
            return
        values = self.logical.reads[block, plain.first]
        direct = isinstance(x, ir.Load) and self.makers[executed.first] & makers(values)
        if not direct and (inlined := self._producer(plain, points)):
            yield from self.match(inlined[0], executed, inlined[1])
        elif not direct and (new := substituted(plain.statement, load, plain.first, self.logical)):
            reads = {(new.statement.name, k): v for k, v in new.reads.items()}
            inside = replace(
                self, logical=replace(self.logical, reads={**self.logical.reads, **reads})
            )
            yield from inside.match(_Side(new.statement, new.expr, 0), executed, points)
        elif isinstance(x, ir.Load):
            instances = points.apply_range(plain.statement.instance)
            yield LogicalRead(executed.first, values, instances)
            yield from self._free_indices(plain, executed, points)
        else:
            raise _mismatch(plain, executed)

    def _producer(self, plain: _Side, points: isl.Map) -> tuple[_Side, isl.Map] | None:
        """The one expression whose values the plain load takes, and where, if there is one."""
        read = plain.statement.reads[plain.first]
        instances = points.apply_range(plain.statement.instance)
        if read.free:
            return None
        for value, flow in self.logical.reads[plain.statement.name, plain.first].items():
            if not isinstance(value, Computed):
                continue
            producer = self.logical.blocks[value.block]
            body = producer.block.body
            found = instances.apply_range(flow)
            if not isinstance(body, ir.Store) or producer.opaque:
                continue
            if points.domain().is_subset(found.domain()):
                first = len(loads(body.target))
                there = producer.instance.intersect_domain(producer.domain).reverse()
                return _Side(producer, body.value, first), found.apply_range(there)
        return None

    def _free_indices(
        self, plain: _Side, executed: _Side, points: isl.Map
    ) -> Iterator[LogicalRead]:
        """Indices that are not affine become free coordinates: they must be equal as they stand."""
        ours, theirs = dict(reversed(_unknown(plain))), _unknown(executed)
        if ours.keys() != {coordinate for coordinate, _ in theirs}:
            raise _of_unequal_places(plain, executed)
        for coordinate, number in theirs:
            yield from self.match(ours[coordinate], number, points)

    def _fma(self, plain: _Side, executed: _Side, points: isl.Map) -> Iterator[LogicalRead]:
        """Matches a product and a term, in either order, with the arguments of an fma."""
        a, b, c = executed.parts()
        lhs, rhs = plain.parts()
        product, term = (lhs, rhs) if _is_product(lhs.expr) else (rhs, lhs)
        for p, x in zip((*product.parts(), term), (a, b, c), strict=True):
            yield from self.match(p, x, points)


def _is_product(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Binary) and expr.op is ir.BinaryOp.MUL


def _is_fma(plain: ir.Expr, executed: ir.Expr) -> bool:
    match plain, executed:
        case ir.Binary(ir.BinaryOp.ADD, lhs, rhs), ir.Call(ir.Function.FMA, _):
            return _is_product(lhs) or _is_product(rhs)
        case _:
            return False


def _unknown(load: _Side) -> list[tuple[int, _Side]]:
    """What the free coordinates of the load stand for, with the number of each, as often as it is
    there.
    """
    parts = load.parts()
    stand = unknown(tuple(part.expr for part in parts), load.at)
    coordinates = list(dict.fromkeys(stand.values()))
    found = ((part, stand[part.expr]) for part in parts if part.expr in stand)
    return [(coordinates.index(n), replace(part, expr=n)) for part, n in found]


def _number(side: _Side) -> isl.PwAff | None:
    try:
        return affine(side.expr, side.at)
    except NotAffine:
        return None


def _where(condition: ir.Expr, at: Frame) -> isl.Set | None:
    try:
        return region(condition, at)
    except NotAffine:
        return None


def _equal_numbers(plain: _Side, executed: _Side, points: isl.Map) -> str | None:
    """Whether two affine integers are equal, "yes" or "no"; None if they are not both affine."""
    ours = _number(plain)
    theirs = None if ours is None else _number(executed)
    if ours is None or theirs is None:
        return None
    if dtype_of(plain.expr) is not dtype_of(executed.expr):
        return "no"
    wanted = points.apply_range(isl.Map.from_pw_aff(ours))
    return "yes" if wanted.is_subset(isl.Map.from_pw_aff(theirs)) else "no"


def head(expr: ir.Expr) -> tuple[object, ...]:
    """What of a node is not below it. Constants by their text, since a NaN is not itself."""
    match expr:
        case ir.Var(name, dtype):
            return (ir.Var, name, dtype)
        case ir.Const(value, dtype):
            return (ir.Const, repr(value), dtype)
        case ir.Unary(op, _):
            return (ir.Unary, op)
        case ir.Binary(op, _, _):
            return (ir.Binary, op)
        case ir.Select():
            return (ir.Select,)
        case ir.Cast(dtype, _):
            return (ir.Cast, dtype)
        case ir.Call(function, args):
            return (ir.Call, function, len(args))
        case ir.Load(_, indices, dtype):
            return (ir.Load, len(indices), dtype)
        case _:
            assert_never(expr)


def _mismatch(plain: _Side, executed: _Side) -> Refused:
    return Refused(
        f"block '{executed.statement.name}' computes `{expr_to_text(executed.expr)}` where block"
        f" '{plain.statement.name}' of the plain schedule computes `{expr_to_text(plain.expr)}`",
        span=executed.statement.block.span,
    )


def _of_unequal_places(plain: _Side, executed: _Side) -> Refused:
    """Of a place that is known exactly in one of the two alone."""
    if plain.expr != executed.expr:
        return _mismatch(plain, executed)
    return Refused(
        f"block '{executed.statement.name}' reads `{expr_to_text(executed.expr)}`, a place that is"
        " known exactly there, or in the plain schedule, and not in both",
        span=executed.statement.block.span,
        hint=f"remainders by a size are known where it goes into the number at most {MOST_QUOTIENT}"
        " times: say in `constraints` how large it is",
    )


def match(
    statement: Statement, logical: Logical, sources: Mapping[int, Makers]
) -> tuple[LogicalRead, ...]:
    """The plain reads that the reads of a statement with an origin stand for.

    sources: who makes what each read takes, by its certificate. Raises Refused where the bodies
    differ.
    """
    assert statement.block.origin and statement.origin
    plain = logical.blocks[statement.block.origin.block]
    points = plain.instance.intersect_domain(plain.domain).reverse()
    points = statement.origin.apply_range(points)
    conditions = _Matcher(logical, sources, in_condition=True)
    if len(plain.opaque) != len(statement.opaque):
        raise Refused(
            f"block '{statement.name}' runs under other conditions on inputs than the plain one",
            span=statement.block.span,
        )
    for a, b in zip(plain.opaque, statement.opaque, strict=True):
        list(conditions.match(_Side(plain, a, 0), _Side(statement, b, 0), points))
    _require_same_kind(plain, statement)
    matcher = _Matcher(logical, sources)
    pairs = zip(_values(plain), _values(statement), strict=True)
    return tuple(read for a, b in pairs for read in matcher.match(a, b, points))


def _require_same_kind(plain: Statement, statement: Statement) -> None:
    ours, theirs = _kind(plain), _kind(statement)
    if ours != theirs:
        raise Refused(
            f"block '{statement.name}' is a {theirs}, where block '{plain.name}' of the plain"
            f" schedule is a {ours}",
            span=statement.block.span,
        )


def _kind(statement: Statement) -> str:
    """What a block does to what types."""
    into = ", ".join(w.storage.buffer.dtype.value for w in statement.writes)
    match statement.block.body:
        case ir.Store():
            return f"store of {into}"
        case ir.Init(combiner, _):
            return f"{combiner.value} init of {into}"
        case ir.Update(combiner, _, _):
            return f"{combiner.value} update of {into}"
        case _ as body:
            assert_never(body)


def _values(statement: Statement) -> tuple[_Side, ...]:
    """The values that a block computes."""
    match statement.block.body:
        case ir.Store(target, value):
            return _sides(statement, (value,), len(loads(target)))
        case ir.Init():
            return ()
        case ir.Update(_, targets, values):
            return _sides(statement, values, sum(len(loads(t)) for t in targets))
        case _ as body:
            assert_never(body)
