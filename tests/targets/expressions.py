"""Expressions of every operator in every other, and C text read back as expressions.

`nested` gives trees; `read` gives the tree that C means, by C's own grammar (pycparser) and by what
the runtime's forms compute, written down here anew; `normal` leaves of a tree what C tells apart.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from random import Random

import numpy as np
from pycparser import c_ast, c_parser

from gen.ir.algebra import dtype_of
from gen.ir.nodes import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    External,
    Function,
    Load,
    Select,
    Unary,
    UnaryOp,
    Var,
)
from gen.ir.rules.expressions import Environment, IRError, check
from gen.ir.types import INDEX, DType
from gen.ir.walk import map_children

F32, F64, I64, BOOL = DType.FLOAT32, DType.FLOAT64, DType.INT64, DType.BOOL
TYPES = (
    *(F32, F64, DType.INT8, DType.INT32, I64, DType.UINT8, DType.UINT64, BOOL, DType.COMPLEX64),
    DType.FLOAT16,
)
FUNCTIONS = (  # others are written as these are
    *(Function.ABS, Function.POW, Function.ISNAN, Function.FMA, Function.REAL, Function.IMAG),
    *(Function.CONJ, Function.COMPLEX, Function.EXP, Function.FLOOR, Function.ISINF),
    *(Function.ISFINITE, Function.ROUND, Function.TRUNC, Function.SIGN, Function.COPYSIGN),
    *(Function.FMOD, Function.ATAN2),
)
OF_TWO = (Function.POW, Function.COMPLEX, Function.COPYSIGN, Function.FMOD, Function.ATAN2)
EXTERNAL = External("own", "own_f", (F32, I64), F64, "own.h")
EXTREMES: Mapping[DType, tuple[bool | int | float | complex, ...]] = {
    F32: (-1.5, -0.0, float("inf"), -float("inf"), float("nan"), 3.4028234663852886e38, 1e-45),
    F64: (-1.5, -0.0, float("-inf"), float("nan"), 1.7976931348623157e308, 5e-324),
    DType.INT8: (-128, 127, -1),
    DType.INT32: (-(2**31), 2**31 - 1, -1),
    I64: (-(2**63), 2**63 - 1, -(2**31), 2**31, -1),
    DType.UINT8: (255, 0),
    DType.UINT64: (2**64 - 1, 2**63, 0),
    BOOL: (True, False),
    DType.COMPLEX64: (-1.5 - 0.0j, 2j),
}


def loads(dtype: DType) -> tuple[Load, Load, Load]:
    """Three elements of the type, in `a_<type>[0]`, `b_<type>[0]` and `c_<type>[0]`."""
    a, b, c = (Load(f"{letter}_{dtype.value}", (), dtype) for letter in "abc")
    return a, b, c


def operations(types: Sequence[DType] = TYPES) -> Iterator[Expr]:
    """Each operator on elements of each type that it takes."""
    for dtype in types:
        a, b, c = loads(dtype)
        yield from (Unary(op, a) for op in UnaryOp)
        yield from (Binary(op, a, b) for op in BinaryOp)
        yield Select(loads(BOOL)[0], a, b)
        yield from (Cast(to, a) for to in types if to is not dtype)
        for function in FUNCTIONS:
            arity = 3 if function is Function.FMA else 2 if function in OF_TWO else 1
            yield Call(function, (a, b, c)[:arity])
    i, n = Var("i"), Var("n")
    yield from (Binary(op, i, n) for op in BinaryOp)
    yield from (Unary(UnaryOp.NEG, i), Binary(BinaryOp.FLOORDIV, i, Const(8, INDEX)))
    yield from (Binary(BinaryOp.MOD, i, Const(8, INDEX)), Cast(F32, i), Cast(DType.INT8, i))
    yield Call(EXTERNAL, (loads(F32)[0], loads(I64)[0]))


def is_right(expr: Expr) -> bool:
    """Whether the operators take what they are given."""
    leaves = [x for dtype in TYPES for x in loads(dtype)]
    scope = Environment({"i": INDEX, "n": INDEX}, {x.buffer: _Buffer(x.dtype) for x in leaves})  # type: ignore[arg-type]
    try:
        check(expr, scope)
    except IRError:
        return False
    # There is no remainder of floats in C code.
    no_form = {BinaryOp.FLOORDIV, BinaryOp.MOD}
    return not (isinstance(expr, Binary) and expr.op in no_form and dtype_of(expr.lhs).is_float)


class _Buffer:
    shape = ()

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype


def nested(types: Sequence[DType] = TYPES) -> Iterator[Expr]:
    """Each operator, with each other, and each extreme constant, in each place of it."""
    single = [op for op in operations(types) if is_right(op)]
    inner: dict[DType, list[Expr]] = {dtype: [] for dtype in DType}
    for op in single:
        inner[dtype_of(op)].append(op)
    for dtype, values in EXTREMES.items():
        inner[dtype] += [Const(value, dtype) for value in values]
    yield from single
    for op in single:
        for k, place in enumerate(children(op)):
            yield from (put(op, k, new) for new in inner[dtype_of(place)])


def deeper(count: int, seed: int = 0) -> Iterator[Expr]:
    """Trees of three operators or more in each other, drawn; and all conditions in conditions."""
    rng = Random(seed)
    single = [op for op in operations() if is_right(op)]
    of = {dtype: [op for op in single if dtype_of(op) is dtype] for dtype in TYPES}
    for _ in range(count):
        tree = rng.choice(single)
        for _ in range(3):
            k = rng.randrange(len(children(tree)))
            tree = put(tree, k, _filled(children(tree)[k], of, rng))
        yield tree
    a, b, c = loads(BOOL)
    for op, binary in product(of[BOOL], (BinaryOp.AND, BinaryOp.OR)):
        yield Select(Unary(UnaryOp.NOT, op), a, b)
        yield Select(Binary(binary, Unary(UnaryOp.NOT, op), c), a, b)
        yield Select(Unary(UnaryOp.NOT, Binary(binary, op, c)), a, b)


def _filled(expr: Expr, of: Mapping[DType, Sequence[Expr]], rng: Random) -> Expr:
    """The expression with an operator in one of its places, or in its own."""
    places = children(expr)
    if not places or not of[dtype_of(expr)]:
        return rng.choice(of[dtype_of(expr)] or [expr])
    k = rng.randrange(len(places))
    return put(expr, k, _filled(places[k], of, rng))


def chosen(types: Sequence[DType]) -> Iterator[Expr]:
    """Selections by conditions that are made of comparisons."""
    for dtype in types:
        a, b, c = loads(dtype)
        p, q = Binary(BinaryOp.LT, a, b), Binary(BinaryOp.NE, b, c)
        joined = [e for op in BinaryOp if is_right(e := Binary(op, p, q))]
        for condition in (*joined, *(Unary(UnaryOp.NOT, e) for e in joined)):
            yield Select(condition, a, c)
            yield Select(Binary(BinaryOp.OR, condition, Unary(UnaryOp.INVERT, p)), a, c)


def in_lanes(expr: Expr) -> Expr:
    """The expression on elements that lie side by side in lanes `l`."""
    at = (Var("l"),)
    new = map_children(expr, lambda e: in_lanes(e) if isinstance(e, Expr) else e)
    return Load(new.buffer, at, new.dtype) if isinstance(new, Load) else new


def children(expr: Expr) -> tuple[Expr, ...]:
    found: list[Expr] = []
    map_children(expr, lambda child: found.append(child) or child)  # type: ignore[func-returns-value]
    return tuple(found)


def put(expr: Expr, k: int, new: Expr) -> Expr:
    """The expression with its child number k replaced."""
    places = iter(range(len(children(expr))))
    result: Expr = map_children(expr, lambda child: new if next(places) == k else child)
    return result


# ---------------------------------------------------------------- C read back

_NAMED = {
    "add": BinaryOp.ADD, "sub": BinaryOp.SUB, "mul": BinaryOp.MUL, "div": BinaryOp.DIV,
    "floordiv": BinaryOp.FLOORDIV, "mod": BinaryOp.MOD, "min": BinaryOp.MIN, "max": BinaryOp.MAX,
    "and": BinaryOp.BITAND, "or": BinaryOp.BITOR, "xor": BinaryOp.BITXOR, "shl": BinaryOp.SHL,
    "shr": BinaryOp.SHR, "eq": BinaryOp.EQ, "ne": BinaryOp.NE, "lt": BinaryOp.LT,
    "le": BinaryOp.LE, "gt": BinaryOp.GT, "ge": BinaryOp.GE,
}  # fmt: skip
_INFIX = {
    "+": BinaryOp.ADD, "-": BinaryOp.SUB, "*": BinaryOp.MUL, "/": BinaryOp.DIV,
    "==": BinaryOp.EQ, "!=": BinaryOp.NE, "<": BinaryOp.LT, "<=": BinaryOp.LE, ">": BinaryOp.GT,
    ">=": BinaryOp.GE, "&&": BinaryOp.AND, "||": BinaryOp.OR,
}  # fmt: skip
_C_TYPES = {"float": F32, "double": F64, "bool": BOOL} | {
    f"{dtype.value}_t": dtype for dtype in DType if dtype.is_integer
}
_SUFFIXES = {f"{d.value[0]}{d.bits}": d for d in DType} | {"f16": DType.FLOAT16}
_BUILTINS = {
    f"__builtin_{name}{letter}": Const(float(name), dtype)
    for name in ("inf", "nan")
    for letter, dtype in (("f", F32), ("", F64))
}
_INDICES = frozenset({BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV})


def read_all(texts: Sequence[str]) -> list[Expr]:
    """What each of the texts means in C. Raises ParseError or ValueError where it means nothing."""
    types = [*_C_TYPES.keys() - {"float", "double"}, "ts_complex64"]
    typedefs = "".join(f"typedef int {name};\n" for name in types)
    body = "".join(f"{text};\n" for text in texts)
    unit = c_parser.CParser().parse(f"{typedefs}void f(void) {{\n{body}}}\n")
    return [read(item) for item in unit.ext[-1].body.block_items]


def read(node: c_ast.Node) -> Expr:
    match node:
        case c_ast.ID(name="true" | "false" as name):
            return Const(name == "true", BOOL)
        case c_ast.ID(name="INT64_MIN"):
            return Const(-(2**63), INDEX)
        case c_ast.ID(name=name):
            return Var(name)
        case c_ast.ArrayRef(name=c_ast.ID(name=name), subscript=c_ast.Constant(value="0")):
            return Load(name, (), DType(name.partition("_")[2]))
        case c_ast.Constant(value=value):
            return _constant(value)
        case c_ast.Cast(to_type=to, expr=inner):
            dtype, operand = _C_TYPES[to.type.type.names[0]], read(inner)
            return operand if dtype is dtype_of(operand) else Cast(dtype, operand)
        case c_ast.TernaryOp(cond=cond, iftrue=then, iffalse=otherwise):
            return Select(read(cond), read(then), read(otherwise))
        case c_ast.UnaryOp(op="!", expr=inner):
            return Unary(UnaryOp.NOT, read(inner))
        case c_ast.UnaryOp(op="-", expr=inner):
            operand = read(inner)
            if isinstance(operand, Const):
                return Const(-operand.value, operand.dtype)
            if dtype_of(operand).is_float:
                return Unary(UnaryOp.NEG, operand)
        case c_ast.BinaryOp(op=op, left=left, right=right) if op in _INFIX:
            return _infix(_INFIX[op], read(left), read(right))
        case c_ast.FuncCall(name=c_ast.ID(name=name)) if name in _BUILTINS:
            return _BUILTINS[name]
        case c_ast.FuncCall(name=c_ast.ID(name=name), args=args):
            return _call(name, tuple(map(read, args.exprs if args else ())))
    raise ValueError(f"{node} is no form of an expression")


def _constant(text: str) -> Const:
    if text.startswith("0x"):
        raise ValueError("bits of a float16")
    if text.isdigit():
        return Const(int(text), INDEX)
    if text.endswith("u"):
        return Const(int(text[:-1]), INDEX)
    return Const(float(text.removesuffix("f")), F32 if text.endswith("f") else F64)


def _infix(op: BinaryOp, a: Expr, b: Expr) -> Expr:
    """Arithmetic that may not wrap, or compare, in C."""
    indices = is_index(a) and is_index(b) and op is not BinaryOp.DIV
    if op in _INDICES and not dtype_of(a).is_float and not indices:
        raise ValueError(f"'{op.value}' of {dtype_of(a).value}")
    return Binary(op, a, b)


def _call(name: str, args: tuple[Expr, ...]) -> Expr:
    if name == EXTERNAL.symbol:
        return Call(EXTERNAL, args)
    if found := _of_lanes(name, args):
        return found
    if conversion := re.fullmatch(r"ts_convert_([a-z0-9]+)_([a-z0-9]+)(_s)?", name):
        to, of = (_SUFFIXES[suffix] for suffix in conversion.groups()[:2])
        if dtype_of(args[0]) is of:
            return Cast(to, args[0])
    if form := re.fullmatch(r"ts_([a-z0-9]+)_([a-z0-9]+)(_s)?", name):
        if dtype_of(args[0]) is not _SUFFIXES[form[2]]:
            raise ValueError(f"{name} takes no {dtype_of(args[0]).value}")
        match form[1]:
            case "neg":
                return Unary(UnaryOp.NEG, *args)
            case "not":
                return Unary(UnaryOp.INVERT, *args)
            case binary if binary in _NAMED:
                return Binary(_NAMED[binary], *args)
            case function:
                return Call(Function(function), args)
    raise ValueError(f"{name} is no form")


def _of_lanes(name: str, args: tuple[Expr, ...]) -> Expr | None:
    """What a form that vectors alone have means in each lane."""
    match re.sub(r"_[a-z0-9]+$", "", name), args:
        case "ts_set", (value,):
            return value
        case "ts_select", (condition, then, otherwise):
            return Select(condition, then, otherwise)
        case "ts_mnot", (mask,):
            return Unary(UnaryOp.NOT, mask)
        case ("ts_mand" | "ts_mor" | "ts_mxor") as form, (a, b):
            ops = {"and": BinaryOp.AND, "or": BinaryOp.OR, "xor": BinaryOp.BITXOR}
            return Binary(ops[form.removeprefix("ts_m")], a, b)
        case _:
            return None


# ---------------------------------------------------------------- what C tells apart


def is_index(expr: Expr) -> bool:
    match expr:
        case Var(_, dtype) | Const(_, dtype):
            return dtype is INDEX
        case Binary(_, a, b):
            return dtype_of(expr) is INDEX and is_index(a) and is_index(b)
        case Unary(_, a):
            return dtype_of(expr) is INDEX and is_index(a)
        case _:
            return False


_AND = {BinaryOp.AND, BinaryOp.BITAND, BinaryOp.MIN, BinaryOp.MUL}
_OR = {BinaryOp.OR, BinaryOp.BITOR, BinaryOp.MAX, BinaryOp.ADD}
POINTS = [{"i": i, "n": n} for i, n in product((-9, -1, 0, 3, 17), (-5, 1, 4, 12))]


def normal(expr: Expr) -> object:
    """A value that is the same for trees that mean the same whatever operators do to numbers."""
    match expr:
        case _ if is_index(expr):
            return tuple(_at(expr, point) for point in POINTS)
        case Load(buffer):
            return buffer
        case Const(value, dtype) if dtype.is_complex:
            parts = (Const(float(p), dtype.real) for p in (value.real, value.imag))
            return normal(Call(Function.COMPLEX, tuple(parts)))  # type: ignore[arg-type]
        case Const(value, dtype):
            rounded = np.float32(value.real).item() if dtype is F32 else value
            return (dtype.value, repr(float(rounded) if dtype.is_float else value))
        case Cast(dtype) if dtype.is_integer and (value := _constant_of(expr)) is not None:
            return (dtype.value, repr(value))
        case Cast(dtype, operand) if dtype is dtype_of(operand):
            return normal(operand)
        case Cast(DType.BOOL, operand) if dtype_of(operand).is_complex:
            return normal(Binary(BinaryOp.NE, operand, Const(0, dtype_of(operand))))
        case Cast(DType.BOOL, operand) | Binary(BinaryOp.NE, operand, Const(0, DType.INT64)):
            return ("is not 0", normal(operand))
        case Cast(dtype, operand) if dtype.is_complex and not dtype_of(operand).is_complex:
            parts = (Cast(dtype.real, operand), Const(0.0, dtype.real))
            return normal(Call(Function.COMPLEX, parts))
        case Cast(dtype, operand):
            return (dtype.value, "of", normal(operand))
        case Unary(UnaryOp.NEG, Const(value, dtype)) if dtype.is_float:
            return normal(Const(-float(value.real), dtype))
        case Unary(op, operand) if dtype_of(operand) is BOOL:
            return ("not", normal(operand))
        case Unary(op, operand):
            return (op.value, normal(operand))
        case Binary(op, a, b) if dtype_of(a) is BOOL:
            sign = "and" if op in _AND else "or" if op in _OR else op.value.replace("^", "!=")
            return (sign, normal(a), normal(b))
        case Binary(op, a, b):
            return (op.value, normal(a), normal(b))
        case Select(condition, then, otherwise):
            return ("select", *map(normal, (condition, then, otherwise)))
        case Call(function, args):
            return (function.value, *map(normal, args))
        case _:
            raise ValueError(f"{expr} is of no kind")


def _constant_of(expr: Expr) -> int | None:
    """The integer that a constant is, if all types on its way hold it."""
    match expr:
        case Const(value, dtype) if dtype.is_integer:
            return int(value.real)
        case Cast(dtype, operand) if dtype.is_integer:
            value = _constant_of(operand)
            low = 0 if dtype.value[0] == "u" else -(2 ** (dtype.bits - 1))
            return value if value is not None and low <= value < low + 2**dtype.bits else None
        case _:
            return None


def _at(expr: Expr, point: Mapping[str, int]) -> int | None:
    """An index at a point; None where it divides by 0 or shifts by too much."""
    match expr:
        case Var(name):
            return point[name]
        case Const(value):
            return int(value.real)
        case Unary(op, a):
            value = _at(a, point)
            return None if value is None else -value if op is UnaryOp.NEG else ~value
        case Binary(op, a, b):
            x, y = _at(a, point), _at(b, point)
            return None if x is None or y is None else _number(op, x, y)
        case _:
            raise ValueError(f"{expr} is no index")


def _number(op: BinaryOp, x: int, y: int) -> int | None:
    if op in (BinaryOp.FLOORDIV, BinaryOp.MOD) and y == 0:
        return None
    if op in (BinaryOp.SHL, BinaryOp.SHR) and not 0 <= y < 64:
        return None
    result = {
        BinaryOp.ADD: lambda: x + y, BinaryOp.SUB: lambda: x - y, BinaryOp.MUL: lambda: x * y,
        BinaryOp.FLOORDIV: lambda: x // y, BinaryOp.MOD: lambda: x % y,
        BinaryOp.MIN: lambda: min(x, y), BinaryOp.MAX: lambda: max(x, y),
        BinaryOp.BITAND: lambda: x & y, BinaryOp.BITOR: lambda: x | y,
        BinaryOp.BITXOR: lambda: x ^ y, BinaryOp.SHL: lambda: x << y, BinaryOp.SHR: lambda: x >> y,
    }[op]()  # fmt: skip
    return (result + 2**63) % 2**64 - 2**63
