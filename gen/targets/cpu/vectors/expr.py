"""Expressions in a vectorized loop, all lanes at once, as C on the forms of `ts_simd.h`.

Input: expressions over loop variables, of which one is the lane. Output: the C text of each native
vector that holds the value, and the statements that must stand before (`before`). A part of an
expression that has no vector form (a gather by an index that is not affine, a type that is not one
of vectors) is computed lane by lane into a small array.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never, final

from ....ir import nodes as ir
from ....ir.algebra import dtype_of, index, maximum, minimum
from ....ir.index.inequalities import inequalities, threshold
from ....ir.index.linear import Linear, linear
from ....ir.interpret.evaluate import wrap
from ....ir.types import INDEX, DType
from ....ir.walk import loads, variables
from ...c.expr import FORMS, Scalars, c_type, is_index, literal, suffix
from ...c.names import NUMBER
from ...c.views import (
    Registers,
    Stride,
    View,
    at_lane,
    fixed_step,
    last_of_vector,
    product,
    register_number,
    steps,
    vectors,
)
from ..context import Push
from . import casts, masks, shifts
from .forms import STORED, WORDS, by_lane, moves_alone, plain
from .masks import All, Bits, First, Mask, Shape
from .prelude import Parts, Prelude

PICKED = (2, 3, 4)
"""Strides at which elements are picked from vectors, where they are known (`ts_every.h`)."""

PICKED_UNDER_MASKS = (2,)
"""The same, where some elements are left out."""

_LONG = 2000
"""Characters of a mask that is named: each load in a selection has it in its text, and so have the
masks of what is in the selection's condition.
"""


@final
@dataclass(frozen=True, slots=True)
class Vectors:
    """What vector code knows where it stands. pushes: see `Context`. some: C for whether a lane of
    the mask is on, without which nothing may be read; empty where one is. again: the targets that
    are loaded again after a store under a mask, which takes long to be seen in memory. ready: what
    has been computed before.
    """

    scalars: Scalars
    views: Mapping[str, View]
    lane: str
    shape: Shape
    mask: Mask
    before: Prelude
    pushes: Mapping[ir.Destination, Push] = field(default_factory=dict)
    some: str = ""
    again: frozenset[ir.Destination] = frozenset()
    ready: Mapping[ir.Expr, Parts] = field(default_factory=dict)

    @property
    def lane_name(self) -> str:
        return self.scalars.names[self.lane]

    # ------------------------------------------------------------ values

    def parts(self, expr: ir.Expr) -> Parts:
        """The value's native vectors, of the expression's own type."""
        dtype = dtype_of(expr)
        if expr in self.ready:
            return self.ready[expr]
        if not self.varies(expr):
            return (self._same(expr, dtype),) * self.shape.parts(dtype.lane_bits)
        if by_lane(expr, self.lane):
            return self._loop_over_lanes(expr)
        match expr:
            case ir.Load(buffer, indices, dtype):
                return self.load(buffer, indices, dtype)
            case ir.Select(condition, then, otherwise):
                return self._select(condition, then, otherwise)
            case ir.Cast(dtype, operand):
                return self._cast(dtype, operand)
            case ir.Unary(ir.UnaryOp.NEG, operand):
                return self._map("neg", dtype, operand)
            case ir.Unary(ir.UnaryOp.INVERT, operand):
                return self._map("not", dtype, operand)
            case ir.Call(ir.Function.EXP, (x,)) if staged(dtype, self.shape):
                return self.before.by_four(self.parts(x))
            case ir.Call(ir.Function() as function, args):
                return self._map(function.value, dtype_of(args[0]), *args)
            case _ if is_index(expr):
                return self._indices(linear(expr), dtype)
            case ir.Binary(ir.BinaryOp.MUL, lhs, rhs) if casts.is_short(lhs) and casts.is_short(
                rhs
            ):
                pair = (lhs, rhs) if self.varies(lhs) else (rhs, lhs)
                return self._map("mul_short", dtype, *pair)
            case ir.Binary(op, lhs, rhs):
                return self._map(FORMS[op], dtype, lhs, rhs)
            case _:
                raise AssertionError(f"no vector form of {expr}")

    def _same(self, expr: ir.Expr, dtype: DType) -> str:
        """A value that is the same in all lanes."""
        if isinstance(expr, ir.Load) and dtype in WORDS:
            native = self.shape.native(dtype.lane_bits)
            vector = last_of_vector(self.views[expr.buffer], expr.indices, native)
            if vector:
                return f"ts_last_{suffix(dtype)}({vector})"
        return f"ts_set_{suffix(dtype)}({self._uniform(expr)})"

    def varies(self, expr: ir.Expr) -> bool:
        """Whether the value depends on the lane."""
        return self.lane in variables(expr)

    def _uniform(self, expr: ir.Expr) -> str:
        """A value that is the same in all lanes, if any is on."""
        value = self.scalars.value(expr)
        if not self.some or not loads(expr):
            return value
        return f"({self.some} ? {value} : {_number(0, dtype_of(expr))})"

    def _map(self, form: str, dtype: DType, *args: ir.Expr) -> Parts:
        operands = zip(*(self.parts(arg) for arg in args), strict=True)
        return tuple(f"ts_{form}_{suffix(dtype)}({', '.join(parts)})" for parts in operands)

    def _indices(self, value: Linear, dtype: DType) -> Parts:
        """A linear index, or what is left of it in a type of integers."""
        s, bits = suffix(dtype), dtype.bits
        step = value.coefficient(self.lane)
        base = self.scalars.index(value.without(ir.Var(self.lane)).expr())
        first = base if dtype is INDEX else f"({c_type(dtype)})({base})"
        iota = f"ts_iota_{s}()"
        if step != 1:
            iota = f"ts_mul_{s}({iota}, ts_set_{s}({_wrapped(step, dtype)}))"
        out = []
        for part in range(self.shape.parts(bits)):
            moved = part * self.shape.native(bits) * step
            start = first if not moved else f"ts_add_{s}_s({first}, {_wrapped(moved, dtype)})"
            out.append(f"ts_add_{s}(ts_set_{s}({start}), {iota})")
        return tuple(out)

    def _select(self, condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> Parts:
        dtype = dtype_of(then)
        if not self.varies(condition):
            test = self.scalars.condition(condition)
            sides = zip(self.parts(then), self.parts(otherwise), strict=True)
            return tuple(f"({test} ? {a} : {b})" for a, b in sides)
        chosen = self.where(condition)
        if isinstance(chosen, First) and not loads(condition):
            chosen = self.before.first(chosen.count)
        if isinstance(chosen, Bits) and max(map(len, chosen.parts)) > _LONG:
            named = self.before.named(chosen.parts, f"ts_m{chosen.bits}", "on")
            chosen = replace(chosen, parts=named)
        bits = masks.as_bits(chosen, dtype.lane_bits, self.shape)
        taken = masks.both(self.mask, chosen, self.shape)
        left = masks.both(self.mask, masks.negate(bits, self.shape), self.shape)
        on_left = masks.beyond(self.mask, chosen, self.shape) or masks.some(left)
        then_parts = replace(self, mask=taken, some=masks.some(taken)).parts(then)
        else_parts = replace(self, mask=left, some=on_left).parts(otherwise)
        s = suffix(dtype)
        chosen_parts = zip(bits.parts, then_parts, else_parts, strict=True)
        return tuple(f"ts_select_{s}({m}, {a}, {b})" for m, a, b in chosen_parts)

    def _cast(self, dtype: DType, operand: ir.Expr) -> Parts:
        old = dtype_of(operand)
        if dtype.is_complex and not old.is_complex:
            s = suffix(dtype.real)
            return tuple(
                f"ts_complex_{s}({p}, ts_set_{s}(0))" for p in self._cast(dtype.real, operand)
            )
        if old is INDEX and dtype.is_integer and is_index(operand) and plain(operand, self.lane):
            return self._indices(linear(operand), dtype)
        if old is DType.BOOL and not isinstance(operand, ir.Load):
            return self.ones(self.where(operand), dtype)
        stored = STORED.get(old, old)
        widens = casts.as_accessed(stored, dtype)
        match operand:
            case ir.Load(buffer, indices) if widens and self._in_memory(buffer, indices):
                return self._load(operand, dtype)
            case ir.Load(buffer, indices, DType.BOOL):
                parts = self.load(buffer, indices, old)
            case ir.Select(condition, then, otherwise) if widens and not by_lane(
                operand, self.lane
            ):
                return self._select(condition, ir.Cast(dtype, then), ir.Cast(dtype, otherwise))
            case _:
                parts = self.parts(operand)
        return casts.converted(parts, stored, dtype, self.shape, self.before)

    def _in_memory(self, buffer: str, indices: tuple[ir.Expr, ...]) -> bool:
        """Whether a load can widen what it loads."""
        kept = ir.Destination(buffer, indices) in self.before.kept
        held = kept or isinstance(self.views[buffer], Registers)
        walked = fixed_step(indices, self.lane)
        return walked and not held and not isinstance(self.mask, Bits)

    # ------------------------------------------------------------ masks

    def ones(self, mask: Mask, dtype: DType) -> Parts:
        """1 in the lanes of a mask, 0 in the others."""
        s = suffix(dtype)
        bits = masks.as_bits(mask, dtype.bits, self.shape)
        return tuple(f"ts_select_{s}({m}, ts_set_{s}(1), ts_set_{s}(0))" for m in bits.parts)

    def where(self, condition: ir.Expr) -> Mask:
        """The lanes in which a condition holds."""
        if not self.varies(condition):
            return First(f"({self.scalars.condition(condition)} ? {self.shape.lanes} : 0)")
        match condition:
            case ir.Binary(ir.BinaryOp.AND | ir.BinaryOp.BITAND, lhs, rhs):
                return masks.both(self.where(lhs), self.where(rhs), self.shape)
            case ir.Binary(ir.BinaryOp.OR | ir.BinaryOp.BITOR, lhs, rhs):
                return masks.combine("or", self._bits(lhs), self.where(rhs), self.shape)
            case ir.Binary(ir.BinaryOp.BITXOR, lhs, rhs):
                return masks.combine("xor", self._bits(lhs), self.where(rhs), self.shape)
            case ir.Unary(ir.UnaryOp.NOT | ir.UnaryOp.INVERT, operand):
                return masks.negate(self._bits(operand), self.shape)
            case ir.Call(function, args) if function in ir.PREDICATES:
                dtype = dtype_of(args[0])
                found = self._map(function.value, dtype, *args)
                return masks.clipped(dtype.lane_bits, found, self.shape)
            case ir.Binary(op, lhs, rhs) if op in ir.COMPARISONS:
                return self._compare(condition, lhs, rhs)
            case ir.Load():  # of bool
                one_or_zero = ir.Cast(DType.INT32, condition)
                off = ir.Const(0, DType.INT32)
                return self.where(ir.Binary(ir.BinaryOp.NE, one_or_zero, off))
            case _:
                raise AssertionError(f"no mask form of {condition}")

    def _bits(self, condition: ir.Expr) -> Bits:
        mask = self.where(condition)
        return mask if isinstance(mask, Bits) else masks.as_bits(mask, 32, self.shape)

    def _compare(self, condition: ir.Expr, lhs: ir.Expr, rhs: ir.Expr) -> Mask:
        forms = inequalities(condition) if is_index(lhs) and is_index(rhs) else None
        if forms is not None and all(moves_alone(f, self.lane) for f in forms):
            mask: Mask = All()
            for form in forms:
                mask = masks.both(mask, self._half(form), self.shape)
            return mask
        assert isinstance(condition, ir.Binary)
        dtype = dtype_of(lhs)
        found = self._map(FORMS[condition.op], dtype, lhs, rhs)
        return masks.clipped(dtype.lane_bits, found, self.shape)

    def _half(self, form: Linear) -> Mask:
        """The lanes in which a linear form is >= 0: the first ones, or all but them."""
        count = minimum(maximum(threshold(form, self.lane), 0), self.shape.lanes)
        first = First(self.scalars.index(count))
        if form.coefficient(self.lane) < 0:
            return first
        return masks.negate(masks.as_bits(first, 32, self.shape), self.shape)

    # ------------------------------------------------------------ memory

    def load(
        self, buffer: str, indices: tuple[ir.Expr, ...], dtype: DType, *, stores: bool = False
    ) -> Parts:
        """stores: what an update finds where it stores."""
        if kept := self.before.kept.get(ir.Destination(buffer, indices)):
            return kept
        view = self.views[buffer]
        if isinstance(view, Registers):
            count = self.shape.parts(dtype.lane_bits)
            number = register_number(view, indices, self.lane, stores=stores)
            if number is not None:
                return vectors(view, number, count, self.scalars)
            return shifts.read(view, indices, self.lane, suffix(dtype), count)
        return self._load(ir.Load(buffer, indices, dtype), STORED.get(dtype, dtype))

    def _load(self, load: ir.Load, dtype: DType) -> Parts:
        """Memory as vectors of its own type, or of a wider one."""
        step = steps(self.views[load.buffer], load.indices, self.lane, self.scalars)
        assert step is not None
        first = at_lane(load.indices, self.lane, index(0))
        place = f"&{self.scalars.element(load.buffer, first, self.scalars.facts)}"
        stored = STORED.get(load.dtype, load.dtype)
        if stored is not load.dtype:
            place = f"(const {c_type(stored)} *){place}"
        s = suffix(dtype) if dtype is stored else f"{NUMBER[stored]}_as_{suffix(dtype)}"
        return tuple(
            self._load_part(s, dtype.lane_bits, q, place, step)
            for q in range(self.shape.parts(dtype.lane_bits))
        )

    def _load_part(self, suffix: str, bits: int, part: int, place: str, step: Stride) -> str:
        """One native vector."""
        form, last = self.access(bits, part)
        p = advanced(place, part * self.shape.native(bits), step)
        if step.unit:
            return f"ts_load{form}_{suffix}({', '.join((p, *last))})"

        def loaded(stride: str) -> str:
            return f"ts_load_strided{form}_{suffix}({', '.join((p, stride, *last))})"

        picked = PICKED_UNDER_MASKS if form else PICKED
        if step.dense not in picked or step.stride == str(step.dense):
            return loaded(step.stride)
        dense = str(step.dense)
        return f"({step.stride} == {dense} ? {loaded(dense)} : {loaded(step.stride)})"

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

    def _loop_over_lanes(self, expr: ir.Expr) -> Parts:
        dtype = dtype_of(expr)
        s, n = suffix(dtype), self.shape.native(dtype.lane_bits)
        name = self.before.name("lanes")
        value = self.scalars.value(expr)
        first, *rest = self.each_lane(f"{name}[{self.lane_name}] = {value};")
        self.before.lines += [
            f"{c_type(dtype)} {name}[{self.shape.room(dtype.lane_bits)}] = {{0}};",
            first,
            *rest,
        ]
        count = self.shape.parts(dtype.lane_bits)
        return tuple(f"ts_load_{s}(&{name}[{q * n}])" for q in range(count))

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


def _wrapped(value: int, dtype: DType) -> str:
    return literal(wrap(dtype)(value), dtype)


def _number(value: int, dtype: DType) -> str:
    """0 or 1, which C converts to any type but a complex one."""
    return literal(value, dtype) if dtype.is_complex else str(value)


def advanced(place: str, elements: int, step: Stride) -> str:
    if not elements:
        return place
    if step.unit:
        return f"{place} + {elements}"
    offset = product([str(elements), f"({step.stride})"])
    return f"{place} + {offset}"


def staged(dtype: DType, shape: Shape) -> bool:
    """Whether exponentials have a form that computes several vectors at once."""
    return dtype is DType.FLOAT32 and shape.parts(32) % 4 == 0
