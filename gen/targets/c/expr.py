"""Scalar expressions as C.

Input: expressions over loop variables, dims and scalars (iteration variables already replaced), and
how loads are addressed. Output: C text whose value is exactly the expression's, in the
expression's own type, without undefined behaviour: integer data wraps, as in NumPy.
"""

import math
from collections.abc import Callable, Mapping
from ctypes import c_float
from dataclasses import dataclass
from typing import assert_never, final

from ...errors import TilesmithError
from ...ir import nodes as ir
from ...ir.algebra import dtype_of
from ...ir.index.facts import Facts
from ...ir.index.linear import constant, linear
from ...ir.index.simplify import resolve
from ...ir.storage import bits
from ...ir.types import INDEX, DType
from ...ir.walk import walk
from ...ir.wrapping import wraps
from .names import C_TYPE, NUMBER, SUFFIX

FORMS = {
    ir.BinaryOp.ADD: "add",
    ir.BinaryOp.SUB: "sub",
    ir.BinaryOp.MUL: "mul",
    ir.BinaryOp.DIV: "div",
    ir.BinaryOp.FLOORDIV: "floordiv",
    ir.BinaryOp.MOD: "mod",
    ir.BinaryOp.MIN: "min",
    ir.BinaryOp.MAX: "max",
    ir.BinaryOp.BITAND: "and",
    ir.BinaryOp.BITOR: "or",
    ir.BinaryOp.BITXOR: "xor",
    ir.BinaryOp.SHL: "shl",
    ir.BinaryOp.SHR: "shr",
    ir.BinaryOp.EQ: "eq",
    ir.BinaryOp.NE: "ne",
    ir.BinaryOp.LT: "lt",
    ir.BinaryOp.LE: "le",
    ir.BinaryOp.GT: "gt",
    ir.BinaryOp.GE: "ge",
}


@final
@dataclass(frozen=True, slots=True)
class Dialect:
    """How a C-like language writes what not all of them write alike.

    index: the type that indices are counted in. form: a function of two of them, by its name.
    infinity, not_a_number: of a type of floats.
    """

    index: str
    form: str
    infinity: Mapping[DType, str]
    not_a_number: Mapping[DType, str]


C11 = Dialect(
    "int64_t",
    "ts_{}_i64_s",
    {DType.FLOAT32: "__builtin_inff()", DType.FLOAT64: "__builtin_inf()"},
    {DType.FLOAT32: '__builtin_nanf("")', DType.FLOAT64: '__builtin_nan("")'},
)

INFIX = (
    frozenset({ir.BinaryOp.ADD, ir.BinaryOp.SUB, ir.BinaryOp.MUL, ir.BinaryOp.DIV}) | ir.COMPARISONS
)


@final
@dataclass(frozen=True, slots=True)
class Scalars:
    """How scalar code names things.

    names: C names of variables. element: the C lvalue of an element. facts: what holds there.
    words: of the language. fuses: a product that a sum takes is added by a fused multiply-add.
    """

    names: Mapping[str, str]
    element: Callable[[str, tuple[ir.Expr, ...], Facts], str]
    facts: Facts
    words: Dialect = C11
    fuses: bool = False

    def index(self, expr: ir.Expr) -> str:
        """An index expression, terms gathered and minima that the facts decide resolved."""
        return self._index(resolve(expr, self.facts))

    def _index(self, expr: ir.Expr) -> str:
        match expr:
            case ir.Const(value):
                return _integer(int(value.real))
            case ir.Binary(_, ir.Const(), ir.Const()) if (known := constant(expr)) is not None:
                return _integer(known)  # C would compute it as an int
            case ir.Binary(ir.BinaryOp.ADD | ir.BinaryOp.SUB | ir.BinaryOp.MUL as op, lhs, rhs):
                if wraps(expr):
                    return f"ts_{op.name.lower()}_i64_s({self._index(lhs)}, {self._index(rhs)})"
                right = self._index(rhs)
                if isinstance(rhs, ir.Binary) and op is not ir.BinaryOp.ADD:
                    right = f"({right})"
                left = self._index(lhs)
                if isinstance(lhs, ir.Binary) and op is ir.BinaryOp.MUL:
                    left = f"({left})"
                return f"{left} {op.value} {right}"
            case ir.Binary(
                ir.BinaryOp.FLOORDIV | ir.BinaryOp.MOD as op, lhs, ir.Const(divisor)
            ) if int(divisor.real) > 0 and self.facts.holds(linear(lhs)):
                sign = "/" if op is ir.BinaryOp.FLOORDIV else "%"
                left = self._index(lhs)
                if isinstance(lhs, ir.Binary):
                    left = f"({left})"
                return f"{left} {sign} {int(divisor.real)}"
            case ir.Binary(op, lhs, rhs) if op in FORMS and op not in ir.COMPARISONS:
                form = self.words.form.format(FORMS[op])
                return f"{form}({self._index(lhs)}, {self._index(rhs)})"
            case _:
                return self.value(expr)

    def condition(self, expr: ir.Expr) -> str:
        """A guard, over index expressions mostly."""
        match expr:
            case ir.Binary(ir.BinaryOp.AND | ir.BinaryOp.OR as op, lhs, rhs):
                sign = "&&" if op is ir.BinaryOp.AND else "||"
                return f"({self.condition(lhs)} {sign} {self.condition(rhs)})"
            case ir.Unary(ir.UnaryOp.NOT, operand):
                return f"!{self.condition(operand)}"
            case ir.Binary(op, lhs, rhs) if (
                op in ir.COMPARISONS and is_index(lhs) and is_index(rhs)
            ):
                return f"({self.index(lhs)} {op.value} {self.index(rhs)})"
            case _:
                return self.value(expr)

    def value(self, expr: ir.Expr) -> str:
        """A value, as an operand: an atom, a call, in parentheses, or one of these after a prefix:
        a cast, `!` or a minus.
        """
        match expr:
            case ir.Var(name):
                return self.names[name]
            case ir.Const(value, dtype):
                return literal(value, dtype, self.words)
            case ir.Load(buffer, indices, _):
                return self.element(buffer, indices, self.facts)
            case ir.Select(condition, then, otherwise):
                test = self.condition(condition)
                return f"({test} ? {self.value(then)} : {self.value(otherwise)})"
            case ir.Cast(dtype, operand):
                return self._cast(dtype, operand)
            case ir.Unary(op, operand):
                return self._unary(op, operand)
            case ir.Call(function, args):
                return self._call(function, args)
            case ir.Binary():
                return self._binary(expr)
            case _:
                assert_never(expr)

    def _unary(self, op: ir.UnaryOp, operand: ir.Expr) -> str:
        dtype = dtype_of(operand)
        text = self.value(operand)
        match op:
            case ir.UnaryOp.NEG:
                if not dtype.is_float:
                    return f"ts_neg_{suffix(dtype)}_s({text})"
                return f"-({text})" if text.startswith("-") else f"-{text}"  # `--` is one word of C
            case ir.UnaryOp.NOT:
                return f"!{text}"
            case ir.UnaryOp.INVERT:
                return f"!{text}" if dtype is DType.BOOL else f"ts_not_{suffix(dtype)}_s({text})"
            case _:
                assert_never(op)

    def _call(self, function: ir.Function | ir.External, args: tuple[ir.Expr, ...]) -> str:
        given = ", ".join(map(self.value, args))
        if isinstance(function, ir.External):
            return f"{function.symbol}({given})"
        return f"ts_{function.value}_{suffix(dtype_of(args[0]))}_s({given})"

    def _binary(self, expr: ir.Binary) -> str:
        op, dtype = expr.op, dtype_of(expr.lhs)
        if op in (ir.BinaryOp.AND, ir.BinaryOp.OR):
            return self.condition(expr)
        if dtype is DType.BOOL:
            return self._bools(expr)
        if is_index(expr):
            return f"({self.index(expr)})"
        a, b = self.value(expr.lhs), self.value(expr.rhs)
        if op in INFIX and not dtype.is_complex and (dtype.is_float or op in ir.COMPARISONS):
            return f"({a} {op.value} {b})"
        return f"ts_{FORMS[op]}_{suffix(dtype)}_s({a}, {b})"

    def _bools(self, expr: ir.Binary) -> str:
        a, b = self.value(expr.lhs), self.value(expr.rhs)
        match expr.op:
            case ir.BinaryOp.BITAND | ir.BinaryOp.MIN | ir.BinaryOp.MUL:
                return f"({a} && {b})"
            case ir.BinaryOp.BITOR | ir.BinaryOp.MAX | ir.BinaryOp.ADD:
                return f"({a} || {b})"
            case ir.BinaryOp.BITXOR:
                return f"({a} != {b})"
            case op if op in ir.COMPARISONS:
                return f"({a} {op.value} {b})"
            case op:
                raise TilesmithError(f"'{op.value}' of bools has no C form", expr.span)

    def _cast(self, dtype: DType, operand: ir.Expr) -> str:
        old = dtype_of(operand)
        if dtype is DType.BOOL and old.is_complex:
            return f"ts_ne_{suffix(old)}_s({self.value(operand)}, {literal(0, old)})"
        if dtype is DType.BOOL:
            return f"({self.value(operand)} != 0)"
        if dtype.only_stores or old.only_stores:
            return f"ts_convert_{NUMBER[dtype]}_{NUMBER[old]}_s({unwrapped(self.value(operand))})"
        if old.is_complex:
            text = self.value(operand)
            return text if old is dtype else f"ts_convert_{suffix(dtype)}_{suffix(old)}_s({text})"
        if dtype.is_complex:
            re = f"({c_type(dtype.real)}){self.value(operand)}"
            return f"ts_complex_{suffix(dtype.real)}_s({re}, {literal(0, dtype.real)})"
        if old.is_float and dtype.is_integer:
            text = unwrapped(self.value(operand))
            return f"ts_convert_{suffix(dtype)}_{suffix(old)}_s({text})"
        return f"({c_type(dtype)}){self.value(operand)}"


def is_index(expr: ir.Expr) -> bool:
    """Whether the expression is of indices alone, which do not overflow."""
    plain = (ir.Var, ir.Const, ir.Binary, ir.Unary)
    return dtype_of(expr) is INDEX and all(isinstance(n, plain) for n in walk(expr))


def unwrapped(text: str) -> str:
    """Without the parentheses around the whole."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if not depth:
            return text[1:-1] if k == len(text) - 1 else text
    return text


def suffix(dtype: DType) -> str:
    """As in `ts_add_f32`."""
    if dtype not in SUFFIX:
        raise TilesmithError(f"{dtype.value} is not a type that C code computes in")
    return SUFFIX[dtype]


def c_type(dtype: DType) -> str:
    if dtype not in C_TYPE:
        raise TilesmithError(f"{dtype.value} is not a type that C code stores")
    return C_TYPE[dtype]


def join(ctype: str, name: str) -> str:
    return f"{ctype}{name}" if ctype.endswith("*") else f"{ctype} {name}"


def const(ctype: str) -> str:
    """The type of a constant of it; what `restrict` pointers point at is named by nothing else."""
    target, star, qualifier = ctype.partition("*")
    return f"{target}*const {qualifier}".rstrip() if star else f"const {ctype}"


def literal(value: bool | int | float | complex, dtype: DType, words: Dialect = C11) -> str:
    """A constant of exactly that value and type."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if dtype.only_stores:
        return f"(uint16_t)0x{bits(float(value.real), dtype):04X}"
    if dtype.is_float:
        return _float_literal(float(value.real), dtype, words)
    if dtype.is_complex:
        parts = (
            _float_literal(float(part), dtype.real, words) for part in (value.real, value.imag)
        )
        return f"ts_complex_{suffix(dtype.real)}_s({', '.join(parts)})"
    number = int(value.real)
    if dtype is INDEX and abs(number) < 2**31:
        return str(number)
    if number == -(2**63):
        return "INT64_MIN"
    text = f"{number}u" if number >= 2**63 else str(number)
    return f"({c_type(dtype)}){text}" if number >= 0 else f"({c_type(dtype)})({text})"


def _integer(value: int) -> str:
    """An index; C has no literal of the least one."""
    return "INT64_MIN" if value == -(2**63) else str(value)


def _float_literal(value: float, dtype: DType, words: Dialect) -> str:
    single = dtype is DType.FLOAT32
    if math.isnan(value):
        return words.not_a_number[dtype]
    magnitude = c_float(abs(value)).value if single else abs(value)
    if math.isinf(magnitude):
        text = words.infinity[dtype]
    else:
        text = (_short(magnitude) + "f") if single else repr(magnitude)
    return f"(-{text})" if math.copysign(1.0, value) < 0 else text


def _short(value: float) -> str:
    """A float32 value in the fewest digits that give it back."""
    texts = (repr(float(f"{value:.{digits}g}")) for digits in range(1, 10))
    return next(text for text in texts if c_float(float(text)).value == value)


# ---------------------------------------------------------------- reductions


def identity(combiner: ir.AnyCombiner, dtype: DType, position: int, words: Dialect = C11) -> str:
    """The combiner's identity for the target at `position`, of type `dtype`."""
    match combiner:
        case ir.Combiner.SUM:
            return literal(0, dtype, words)
        case ir.Combiner.PROD:
            return literal(1, dtype, words)
        case ir.Combiner.ANY:
            return "false"
        case ir.Combiner.ALL:
            return "true"
        case ir.Combiner.MIN | ir.Combiner.ARGMIN:
            return _greatest(dtype, words)
        case ir.Combiner.MAX | ir.Combiner.ARGMAX:
            return _greatest(dtype, words) if position else _smallest(dtype, words)
        case ir.DefinedCombiner(identity=values):
            return literal(values[position].value, dtype, words)
        case _:
            assert_never(combiner)


def _greatest(dtype: DType, words: Dialect) -> str:
    if dtype.is_float:
        return literal(math.inf, dtype, words)
    return f"({c_type(dtype)}){dtype.value.upper()}_MAX" if dtype.is_integer else "true"


def _smallest(dtype: DType, words: Dialect) -> str:
    if dtype.is_float:
        return literal(-math.inf, dtype, words)
    if dtype.is_integer:
        signed = not dtype.value.startswith("u")
        return f"({c_type(dtype)}){dtype.value.upper()}_MIN" if signed else literal(0, dtype)
    return "false"


COMBINE = {
    ir.Combiner.SUM: "add",
    ir.Combiner.PROD: "mul",
    ir.Combiner.MIN: "min",
    ir.Combiner.MAX: "max",
}


def combined(combiner: ir.Combiner, dtype: DType, old: str, new: str) -> str:
    """One target combined with one value; `combiner` is not of tuples."""
    match combiner:
        case ir.Combiner.ANY:
            return f"{old} || {new}"
        case ir.Combiner.ALL:
            return f"{old} && {new}"
        case ir.Combiner.SUM if dtype.is_float:
            return f"{old} + {new}"
        case ir.Combiner.PROD if dtype.is_float:
            return f"{old} * {new}"
        case ir.Combiner.SUM | ir.Combiner.PROD | ir.Combiner.MIN | ir.Combiner.MAX:
            if dtype is DType.BOOL:
                sign = "||" if combiner in (ir.Combiner.SUM, ir.Combiner.MAX) else "&&"
                return f"{old} {sign} {new}"
            return f"ts_{COMBINE[combiner]}_{suffix(dtype)}_s({old}, {new})"
        case ir.Combiner.ARGMIN | ir.Combiner.ARGMAX:
            raise AssertionError("combined() is of one value")
        case _:
            assert_never(combiner)


def beats(combiner: ir.Combiner, old: tuple[str, str], new: tuple[str, str]) -> str:
    """Whether the (value, index) `new` replaces `old`; names, each used more than once."""
    (v, i), (bv, bi) = new, old
    sign = "<=" if combiner is ir.Combiner.ARGMAX else ">="
    tie = f"({v} == {bv} || ({v} != {v} && {bv} != {bv})) && {i} < {bi}"
    return f"(!({v} {sign} {bv}) && {bv} == {bv}) || ({tie})"
