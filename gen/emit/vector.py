"""Expressions in a vectorized loop, all lanes at once, as C on the forms of `ts_simd.h`.

Input: expressions over loop variables, of which one is the lane. Output: the C text of each native
vector that holds the value, and the statements that must stand before (`before`). A part of an
expression that has no vector form (a gather by an index that is not affine, a type that is not one
of vectors) is computed lane by lane into a small array.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never, final

from ..ir.nodes import (
    COMPARISONS,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    Function,
    Load,
    Select,
    Target,
    Unary,
    UnaryOp,
    Var,
)
from ..ir.types import INDEX, DType
from ..ir.walk import ceildiv, dtype_of, floordiv, index, loads, maximum, minimum, variables
from ..lower.affine import Affine, affine, expression, inequalities
from . import masks, shifts
from .expr import FORMS, Scalars, c_type, is_index, suffix
from .masks import All, Bits, First, Mask, Shape
from .views import Registers, Steps, View, at_lane, fixed_step, last_of_vector, steps

VECTOR_TYPES = frozenset(
    {
        DType.FLOAT32,
        DType.FLOAT64,
        DType.INT32,
        DType.INT64,
        DType.UINT32,
        DType.UINT64,
    }
)
Parts = tuple[str, ...]


@final
@dataclass(slots=True)
class Before:
    """Statements that the vector expressions of one statement need before it."""

    lines: list[str] = field(default_factory=list)
    count: int = 0
    counts: dict[str, str] = field(default_factory=dict)

    def first(self, count: str) -> First:
        """The first `count` lanes, counted once; the count is of indices, which do not change."""
        if count not in self.counts:
            self.counts[count] = self.name("first")
            self.lines.append(f"const int64_t {self.counts[count]} = {count};")
        return First(self.counts[count])

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def taken(self) -> list[str]:
        """The statements so far, which are then no longer here."""
        lines, self.lines = self.lines, []
        return lines


@final
@dataclass(frozen=True, slots=True)
class Vectors:
    """What vector code knows where it stands. pushes: see `Context`. some: C for whether a lane of
    the mask is on, without which nothing may be read; empty where one is.
    """

    scalars: Scalars
    views: Mapping[str, View]
    lane: str
    shape: Shape
    mask: Mask
    before: Before
    pushes: Mapping[Target, str] = field(default_factory=dict)
    some: str = ""

    @property
    def lane_name(self) -> str:
        return self.scalars.names[self.lane]

    # ------------------------------------------------------------ values

    def parts(self, expr: Expr) -> Parts:
        """The value's native vectors, of the expression's own type."""
        dtype = dtype_of(expr)
        if not self.varies(expr):
            return (self._same(expr, dtype),) * self.shape.parts(dtype.bits)
        if by_lane(expr, self.lane):
            return self._loop_over_lanes(expr)
        match expr:
            case Load(buffer, indices, dtype):
                return self.load(buffer, indices, dtype)
            case Select(condition, then, otherwise):
                return self._select(condition, then, otherwise)
            case Cast(dtype, operand):
                return self._cast(dtype, operand)
            case Unary(UnaryOp.NEG, operand):
                return self._map("neg", dtype, operand)
            case Unary(UnaryOp.INVERT, operand):
                return self._map("not", dtype, operand)
            case Call(function, args):
                return self._map(function.value, dtype, *args)
            case _ if is_index(expr):
                return self._indices(affine(expr), dtype)
            case Binary(op, lhs, rhs):
                return self._map(FORMS[op], dtype, lhs, rhs)
            case _:
                raise AssertionError(f"no vector form of {expr}")

    def _same(self, expr: Expr, dtype: DType) -> str:
        """A value that is the same in all lanes."""
        if isinstance(expr, Load):
            native = self.shape.native(dtype.bits)
            vector = last_of_vector(self.views[expr.buffer], expr.indices, native)
            if vector:
                return f"ts_last_{suffix(dtype)}({vector})"
        return f"ts_set_{suffix(dtype)}({self._uniform(expr)})"

    def varies(self, expr: Expr) -> bool:
        """Whether the value depends on the lane."""
        return self.lane in variables(expr)

    def _uniform(self, expr: Expr) -> str:
        """A value that is the same in all lanes, if any is on."""
        value = self.scalars.value(expr)
        return f"({self.some} ? {value} : 0)" if self.some and loads(expr) else value

    def _map(self, form: str, dtype: DType, *args: Expr) -> Parts:
        operands = zip(*(self.parts(arg) for arg in args), strict=True)
        return tuple(f"ts_{form}_{suffix(dtype)}({', '.join(parts)})" for parts in operands)

    def _indices(self, value: Affine, dtype: DType) -> Parts:
        """An affine index, or what is left of it in a type of integers."""
        s, bits = suffix(dtype), dtype.bits
        step = value.coefficient(self.lane)
        base = self.scalars.index(expression(value.put(self.lane, Affine(()))))
        first = base if dtype is INDEX else f"({c_type(dtype)})({base})"
        iota = f"ts_iota_{s}()"
        if step != 1:
            iota = f"ts_mul_{s}({iota}, ts_set_{s}({step}))"
        out = []
        for part in range(self.shape.parts(bits)):
            moved = part * self.shape.native(bits) * step
            start = first if not moved else f"ts_add_{s}_s({first}, {moved})"
            out.append(f"ts_add_{s}(ts_set_{s}({start}), {iota})")
        return tuple(out)

    def _select(self, condition: Expr, then: Expr, otherwise: Expr) -> Parts:
        dtype = dtype_of(then)
        if not self.varies(condition):
            test = self.scalars.condition(condition)
            sides = zip(self.parts(then), self.parts(otherwise), strict=True)
            return tuple(f"({test} ? {a} : {b})" for a, b in sides)
        chosen = self.where(condition)
        if isinstance(chosen, First) and not loads(condition):
            chosen = self.before.first(chosen.count)
        bits = masks.as_bits(chosen, dtype.bits, self.shape)
        taken = masks.both(self.mask, chosen, self.shape)
        left = masks.both(self.mask, masks.negate(bits, self.shape), self.shape)
        on_left = masks.beyond(self.mask, chosen, self.shape) or masks.some(left)
        then_parts = replace(self, mask=taken, some=masks.some(taken)).parts(then)
        else_parts = replace(self, mask=left, some=on_left).parts(otherwise)
        s = suffix(dtype)
        chosen_parts = zip(bits.parts, then_parts, else_parts, strict=True)
        return tuple(f"ts_select_{s}({m}, {a}, {b})" for m, a, b in chosen_parts)

    def _cast(self, dtype: DType, operand: Expr) -> Parts:
        old = dtype_of(operand)
        if old is INDEX and dtype.is_integer and is_index(operand) and _plain(operand, self.lane):
            return self._indices(affine(operand), dtype)
        if old is DType.BOOL:
            bits = masks.as_bits(self.where(operand), dtype.bits, self.shape)
            s = suffix(dtype)
            return tuple(f"ts_select_{s}({m}, ts_set_{s}(1), ts_set_{s}(0))" for m in bits.parts)
        return self._converted(self.parts(operand), old, dtype)

    def _converted(self, parts: Parts, old: DType, new: DType) -> Parts:
        """C's conversion, lane by lane."""
        a, b = suffix(old), suffix(new)
        if old is new:
            return parts
        if old.bits == new.bits:
            return tuple(f"ts_convert_{b}_{a}({p})" for p in parts)
        if {old, new} == {DType.INT32, DType.UINT64}:  # the one pair without a form of its own
            return self._converted(self._converted(parts, old, DType.INT64), DType.INT64, new)
        return masks.convert(parts, (a, old.bits), (b, new.bits), self.shape)

    # ------------------------------------------------------------ masks

    def where(self, condition: Expr) -> Mask:
        """The lanes in which a condition holds."""
        if not self.varies(condition):
            return First(f"({self.scalars.condition(condition)} ? {self.shape.lanes} : 0)")
        match condition:
            case Binary(BinaryOp.AND | BinaryOp.BITAND, lhs, rhs):
                return masks.both(self.where(lhs), self.where(rhs), self.shape)
            case Binary(BinaryOp.OR | BinaryOp.BITOR, lhs, rhs):
                return masks.combine("or", self._bits(lhs), self.where(rhs), self.shape)
            case Binary(BinaryOp.BITXOR, lhs, rhs):
                return masks.combine("xor", self._bits(lhs), self.where(rhs), self.shape)
            case Unary(UnaryOp.NOT | UnaryOp.INVERT, operand):
                return masks.negate(self._bits(operand), self.shape)
            case Call(Function.ISNAN, args):
                dtype = dtype_of(args[0])
                return masks.clipped(dtype.bits, self._map("isnan", dtype, *args), self.shape)
            case Binary(op, lhs, rhs) if op in COMPARISONS:
                return self._compare(condition, lhs, rhs)
            case _:
                raise AssertionError(f"no mask form of {condition}")

    def _bits(self, condition: Expr) -> Bits:
        mask = self.where(condition)
        return mask if isinstance(mask, Bits) else masks.as_bits(mask, 32, self.shape)

    def _compare(self, condition: Expr, lhs: Expr, rhs: Expr) -> Mask:
        forms = inequalities(condition) if is_index(lhs) and is_index(rhs) else None
        if forms is not None and all(moves_alone(f, self.lane) for f in forms):
            mask: Mask = All()
            for form in forms:
                mask = masks.both(mask, self._half(form), self.shape)
            return mask
        assert isinstance(condition, Binary)
        dtype = dtype_of(lhs)
        found = self._map(FORMS[condition.op], dtype, lhs, rhs)
        return masks.clipped(dtype.bits, found, self.shape)

    def _half(self, form: Affine) -> Mask:
        """The lanes in which an affine form is >= 0: the first ones, or all but them."""
        count = _count(form, self.lane)
        clamped = minimum(maximum(count, 0), self.shape.lanes)
        first = First(self.scalars.index(clamped))
        if form.coefficient(self.lane) < 0:
            return first
        return masks.negate(masks.as_bits(first, 32, self.shape), self.shape)

    # ------------------------------------------------------------ memory

    def load(self, buffer: str, indices: tuple[Expr, ...], dtype: DType) -> Parts:
        view = self.views[buffer]
        if isinstance(view, Registers):
            count = self.shape.parts(dtype.bits)
            return shifts.read(view, indices, self.lane, suffix(dtype), count)
        step = steps(view, indices, self.lane, self.scalars)
        assert step is not None
        first = at_lane(indices, self.lane, index(0))
        place = f"&{self.scalars.element(buffer, first, self.scalars.facts)}"
        return tuple(
            self._load_part(dtype, q, place, step) for q in range(self.shape.parts(dtype.bits))
        )

    def _load_part(self, dtype: DType, part: int, place: str, step: Steps) -> str:
        """One native vector."""
        form, last = self.access(dtype.bits, part)
        p = advanced(place, part * self.shape.native(dtype.bits), step)
        given = (p, *([] if step.unit else [step.stride]), *last)
        strided = "" if step.unit else "_strided"
        return f"ts_load{strided}{form}_{suffix(dtype)}({', '.join(given)})"

    def access(self, bits: int, part: int) -> tuple[str, tuple[str, ...]]:
        """Which lanes of a part memory is accessed in: the form's name, and its last argument."""
        match self.mask:
            case All():
                count = self.shape.count(bits, part)
                return ("", ()) if count == self.shape.native(bits) else ("_first", (str(count),))
            case First(count):
                return "_first", (masks.count_in(self.shape, bits, part, count),)
            case Bits() as mask:
                return "_mask", (masks.as_bits(mask, bits, self.shape).parts[part],)
            case _:
                assert_never(self.mask)

    def _loop_over_lanes(self, expr: Expr) -> Parts:
        dtype = dtype_of(expr)
        s, n = suffix(dtype), self.shape.native(dtype.bits)
        name = self.before.name("lanes")
        value = self.scalars.value(expr)
        first, *rest = self.each_lane(f"{name}[{self.lane_name}] = {value};")
        self.before.lines += [
            f"{c_type(dtype)} {name}[{self.shape.room(dtype.bits)}] = {{0}};",
            first,
            *rest,
        ]
        return tuple(f"ts_load_{s}(&{name}[{q * n}])" for q in range(self.shape.parts(dtype.bits)))

    def each_lane(self, statement: str) -> list[str]:
        """A loop over the active lanes; what a mask needs goes to `before`."""
        lane = self.lane_name
        match self.mask:
            case All():
                end, test = str(self.shape.lanes), ""
            case First(count):
                end, test = count, ""
            case Bits(bits, parts):
                flags = self.before.name("active")
                n = self.shape.native(bits)
                self.before.lines.append(f"bool {flags}[{self.shape.room(bits)}];")
                self.before.lines += [
                    f"ts_store_bool_m{bits}(&{flags}[{q * n}], {p});" for q, p in enumerate(parts)
                ]
                end, test = str(self.shape.lanes), f"if ({flags}[{lane}]) "
        return [
            f"for (int64_t {lane} = 0; {lane} < {end}; ++{lane}) {{",
            f"    {test}{statement}",
            "}",
        ]


def advanced(place: str, elements: int, step: Steps) -> str:
    if not elements:
        return place
    if step.unit:
        return f"{place} + {elements}"
    return f"{place} + {elements} * ({step.stride})"


def _count(form: Affine, lane: str) -> Expr:
    """For how many first lanes `form` is >= 0 (or not yet >= 0, where it grows with the lane)."""
    c = form.coefficient(lane)
    rest = form.put(lane, Affine(()))
    if c < 0:
        return expression(affine(floordiv(expression(rest), -c)) + 1)
    return expression(affine(ceildiv(expression(rest * -1), c)))


def moves_alone(form: Affine, lane: str) -> bool:
    return form.coefficient(lane) != 0 and all(
        lane not in variables(atom) for atom, _ in form.terms if atom != Var(lane)
    )


def _plain(expr: Expr, lane: str) -> bool:
    """Whether the lane is in the index expression only by an integer multiple."""
    return moves_alone(affine(expr), lane)


# ---------------------------------------------------------------- what has a vector form


def by_lane(expr: Expr, lane: str) -> bool:
    """Whether the root of the expression has to be computed lane by lane."""
    dtype = dtype_of(expr)
    if dtype not in VECTOR_TYPES:
        return True
    match expr:
        case Load(_, indices, _):
            return not fixed_step(indices, lane)
        case Select(condition, _, _):
            return not maskable(condition, lane)
        case Cast(to, operand):
            return not _castable(dtype_of(operand), to, operand, lane)
        case Unary(op, _):
            return op is UnaryOp.INVERT and not dtype.is_integer
        case Call():
            return False
        case _ if is_index(expr):
            return not _plain(expr, lane)
        case Binary(op, _, _):
            return op in _SCALAR_ONLY or (op is BinaryOp.DIV and not dtype.is_float)
        case Const() | Var():
            return False


_SCALAR_ONLY = frozenset({BinaryOp.FLOORDIV, BinaryOp.MOD})


def maskable(condition: Expr, lane: str) -> bool:
    """Whether a condition has a mask form."""
    if lane not in variables(condition):
        return True
    match condition:
        case Binary(BinaryOp.AND | BinaryOp.OR, a, b):
            return maskable(a, lane) and maskable(b, lane)
        case Binary(BinaryOp.BITAND | BinaryOp.BITOR | BinaryOp.BITXOR, a, b):
            return maskable(a, lane) and maskable(b, lane)
        case Unary(UnaryOp.NOT | UnaryOp.INVERT, a):
            return maskable(a, lane)
        case Call(Function.ISNAN, (a,)):
            return dtype_of(a) in VECTOR_TYPES
        case Binary(op, a, _) if op in COMPARISONS:
            return dtype_of(a) in VECTOR_TYPES
        case _:
            return False


def _castable(old: DType, new: DType, operand: Expr, lane: str) -> bool:
    if old is DType.BOOL:
        return maskable(operand, lane)
    if old not in VECTOR_TYPES:
        return False
    return {old, new} <= VECTOR_TYPES
