"""The IR as a Python-syntax script: what `tilesmith show` prints and `ir.parser` reads back.

Input: any tree, at any stage. Output: text that Python's `ast` accepts and that `from_text` turns
into an equal tree. What the parser can restore is left out: a lower bound of 0; the domain of an
iteration variable that is bound to a loop (or to a part of a fused one) with the same bounds; a
predicate that always holds; an origin that is the block's own instance; the type of a constant
where its neighbours fix it. Names are as `script_names` writes them.

    def softmax(m, n, x: float32[m, n], y: Out[float32[m, n]]):
        assume(n <= 16384)
        with allocate(peak=float32[m], e=float32[m, n] @ heap):
            for peak.i in parallel(m):
                for peak.j in range(n):
                    with block("peak", i=spatial(peak.i), j=reduction(peak.j), initialises=True):
                        peak[i] = combine.max(peak[i], x[i, j])
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from .nodes import (
    COMPARISONS,
    Allocate,
    Binary,
    BinaryOp,
    Block,
    Buffer,
    Call,
    Cast,
    Const,
    Delinearize,
    Expr,
    Function,
    If,
    Init,
    Intent,
    IterVar,
    Kernel,
    Load,
    Loop,
    LoopKind,
    Origin,
    Parameter,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    Target,
    Unary,
    UnaryOp,
    Update,
    Var,
)
from .script_names import to_script
from .types import INDEX, DType, Kind
from .walk import TRUE, index

WIDTH = 100
LOOP_KINDS = {
    LoopKind.SERIAL: "range",
    LoopKind.PARALLEL: "parallel",
    LoopKind.VECTORIZED: "vectorized",
    LoopKind.UNROLLED: "unrolled",
}
INTENTS = {Intent.OUT: "Out", Intent.INOUT: "InOut"}

# Python's own precedences; what binds tighter has the larger number.
_SELECT, _OR, _AND, _NOT, _COMPARE = 0, 1, 2, 3, 4
_UNARY, _ATOM = 11, 12
_PRECEDENCE = {
    BinaryOp.OR: _OR,
    BinaryOp.AND: _AND,
    BinaryOp.BITOR: 5,
    BinaryOp.BITXOR: 6,
    BinaryOp.BITAND: 7,
    BinaryOp.SHL: 8,
    BinaryOp.SHR: 8,
    BinaryOp.ADD: 9,
    BinaryOp.SUB: 9,
    BinaryOp.MUL: 10,
    BinaryOp.DIV: 10,
    BinaryOp.FLOORDIV: 10,
    BinaryOp.MOD: 10,
} | dict.fromkeys(COMPARISONS, _COMPARE)


@dataclass(frozen=True, slots=True)
class _Known:
    """What surrounds a statement: the buffers' types and the loops' bounds."""

    dtypes: Mapping[str, DType] = field(default_factory=dict)
    bounds: Mapping[str, tuple[Expr, Expr]] = field(default_factory=dict)


def to_text(kernel: Kernel) -> str:
    """The kernel as a script, ending in a newline."""
    dtypes = {p.buffer.name: p.buffer.dtype for p in kernel.parameters}
    arguments = [
        *map(to_script, kernel.dims),
        *(_parameter(p) for p in kernel.parameters),
        *(f"{to_script(s.name)}: {s.dtype.value}" for s in kernel.scalars),
        *(f"{to_script(p.name)}: Phase[{to_script(p.buffer)}, {p.size}]" for p in kernel.phases),
    ]
    lines = _fit(f"def {to_script(kernel.name)}(", arguments, "):", 0)
    lines += [f"    assume({_expr(a, DType.BOOL)})" for a in kernel.assumptions]
    lines += _suite(kernel.body, _Known(dtypes), 1)
    return "\n".join(lines) + "\n"


def stmt_to_text(stmt: Stmt) -> str:
    """A part of a tree, for messages: without its surroundings less can be left out."""
    return "\n".join(_stmt(stmt, _Known(), 0))


def expr_to_text(expr: Expr) -> str:
    """An expression, for messages."""
    return _expr(expr, None)


# ---------------------------------------------------------------- expressions


def own_type(expr: Expr) -> DType | None:
    """The type that the text of an expression fixes by itself: None for constants alone.

    A constant whose type is that of its neighbours, or of its context, needs no type in the text.
    """
    match expr:
        case Var(_, dtype) | Cast(dtype, _) | Load(_, _, dtype):
            return dtype
        case Const(_, dtype):
            return dtype if dtype is DType.BOOL else None
        case Unary(UnaryOp.NOT, _) | Call(Function.ISNAN, _):
            return DType.BOOL
        case Unary(_, operand):
            return own_type(operand)
        case Binary(op, lhs, rhs):
            is_bool = op in COMPARISONS or op in (BinaryOp.AND, BinaryOp.OR)
            return DType.BOOL if is_bool else first_type(lhs, rhs)
        case Select(_, then, otherwise):
            return first_type(then, otherwise)
        case Call(_, args):
            return first_type(*args)
        case _:
            assert_never(expr)


def first_type(*exprs: Expr) -> DType | None:
    return next((t for e in exprs if (t := own_type(e))), None)


def _expr(expr: Expr, context: DType | None, floor: int = _SELECT) -> str:
    """The text, in parentheses where it binds less tightly than `floor`."""
    text, precedence = _render(expr, context)
    return text if precedence >= floor else f"({text})"


def _render(expr: Expr, context: DType | None) -> tuple[str, int]:
    match expr:
        case Var(name, _):
            return to_script(name), _ATOM
        case Const():
            return _const(expr, context)
        case Unary(UnaryOp.NOT, operand):
            return f"not {_expr(operand, DType.BOOL, _NOT)}", _NOT
        case Unary(op, operand):
            return f"{op.value}{_alone(operand, context, op is UnaryOp.NEG)}", _UNARY
        case Binary():
            return _binary(expr, context)
        case Select(condition, then, otherwise):
            inner = first_type(then, otherwise) or context
            parts = (
                _expr(then, inner, _OR),
                _expr(condition, DType.BOOL, _OR),
                _expr(otherwise, inner),
            )
            return "{} if {} else {}".format(*parts), _SELECT
        case Cast(dtype, operand):
            return f"{dtype.value}({_alone(operand, None, True, _SELECT)})", _ATOM
        case Call(function, args):
            inner = first_type(*args) or (None if function is Function.ISNAN else context)
            return f"{function.value}({_list(args, inner)})", _ATOM
        case Load(buffer, indices, _):
            return _place(buffer, indices), _ATOM
        case _:
            assert_never(expr)


def _binary(expr: Binary, context: DType | None) -> tuple[str, int]:
    op, lhs, rhs = expr.op, expr.lhs, expr.rhs
    inner: DType | None
    if op in (BinaryOp.AND, BinaryOp.OR):
        inner = DType.BOOL
    else:
        inner = first_type(lhs, rhs) or (None if op in COMPARISONS else context)
    if op in (BinaryOp.MIN, BinaryOp.MAX):
        return f"{op.value}({_list((lhs, rhs), inner)})", _ATOM
    level = _PRECEDENCE[op]
    # All associate to the left, but for comparisons: Python would chain them.
    left = _expr(lhs, inner, level + 1 if level == _COMPARE else level)
    return f"{left} {op.value} {_expr(rhs, inner, level + 1)}", level


def _alone(operand: Expr, context: DType | None, typed: bool, floor: int = _UNARY) -> str:
    """The one operand of a sign or a cast: a constant there needs its type, since `-1` and
    `float32(1)` are themselves constants.
    """
    if typed and isinstance(operand, Const):
        return _typed_const(operand)
    return _expr(operand, context, floor)


def _const(const: Const, context: DType | None) -> tuple[str, int]:
    plain = _plain_const(const)
    natural = DType.FLOAT64 if const.dtype.is_float else INDEX
    if plain is None or (const.dtype is not DType.BOOL and (context or natural) is not const.dtype):
        return _typed_const(const), _ATOM
    return plain, _UNARY if plain.startswith("-") else _ATOM


def _plain_const(const: Const) -> str | None:
    """A literal of the constant's kind of number, where Python has one."""
    match const.dtype.kind, const.value:
        case Kind.BOOL, value:
            return str(bool(value))
        case Kind.SIGNED | Kind.UNSIGNED, int(value):
            return str(int(value))
        case Kind.FLOAT, int(value) | float(value) if math.isfinite(value):
            return repr(float(value))
        case _:
            return None


def _typed_const(const: Const) -> str:
    plain = _plain_const(const)
    if const.dtype is DType.BOOL and plain:
        return plain
    if plain:
        return f"{const.dtype.value}({plain})"
    value = complex(const.value)
    parts = (value.real, value.imag) if const.dtype.kind is Kind.COMPLEX else (value.real,)
    texts = (repr(part) if math.isfinite(part) else f'"{part}"' for part in parts)
    return f"{const.dtype.value}({', '.join(texts)})"


def _list(exprs: Iterable[Expr], context: DType | None) -> str:
    return ", ".join(_expr(e, context) for e in exprs)


def _place(buffer: str, indices: tuple[Expr, ...]) -> str:
    return f"{to_script(buffer)}[{_list(indices, INDEX) or '()'}]"


def _tuple(texts: list[str]) -> str:
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


# ---------------------------------------------------------------- statements


def _suite(stmt: Stmt, known: _Known, depth: int) -> list[str]:
    """The lines of a nested statement: a sequence needs no brackets there."""
    match stmt:
        case Seq(()):
            return ["    " * depth + "pass"]
        case Seq(body) if len(body) > 1:
            return [line for s in body for line in _stmt(s, known, depth)]
        case _:
            return _stmt(stmt, known, depth)


def _stmt(stmt: Stmt, known: _Known, depth: int) -> list[str]:
    pad = "    " * depth
    match stmt:
        case Block():
            return _block(stmt, known, depth)
        case Loop():
            return _loop(stmt, known, depth)
        case Delinearize(names, extents, value, body):
            arguments = _list((value, *extents), INDEX)
            head = f"{pad}with delinearize({arguments}) as {_tuple([*map(to_script, names)])}:"
            parts = {n: (index(0), e) for n, e in zip(names, extents, strict=True)}
            inner = replace(known, bounds={**known.bounds, **parts})
            return [head, *_suite(body, inner, depth + 1)]
        case If(condition, body):
            head = f"{pad}if {_expr(condition, DType.BOOL)}:"
            return [head, *_suite(body, known, depth + 1)]
        case Allocate(buffers, body):
            inner = replace(known, dtypes={**known.dtypes, **{b.name: b.dtype for b in buffers}})
            head_lines = _fit(f"{pad}with allocate(", map(_temporary, buffers), "):", depth)
            return [*head_lines, *_suite(body, inner, depth + 1)]
        case Seq(body):
            if not body:
                return [f"{pad}with seq():", f"{pad}    pass"]
            lines = [line for s in body for line in _stmt(s, known, depth + 1)]
            return [f"{pad}with seq():", *lines]
        case _:
            assert_never(stmt)


def _loop(loop: Loop, known: _Known, depth: int) -> list[str]:
    arguments = _range(loop.lower, loop.upper)
    if loop.annotations:
        arguments.append(f"annotations={_annotations(loop.annotations)}")
    head = f"for {to_script(loop.var)} in {LOOP_KINDS[loop.kind]}({', '.join(arguments)}):"
    inner = replace(known, bounds={**known.bounds, loop.var: (loop.lower, loop.upper)})
    return ["    " * depth + head, *_suite(loop.body, inner, depth + 1)]


def _block(block: Block, known: _Known, depth: int) -> list[str]:
    arguments = [f'"{block.name}"']
    for var, binding in zip(block.iters, block.bindings, strict=True):
        arguments.append(f"{to_script(var.name)}={_iter(var, binding, known)}")
    if block.predicate != TRUE:
        arguments.append(f"where={_expr(block.predicate, DType.BOOL)}")
    if block.initialises:
        arguments.append("initialises=True")
    if block.origin != own_origin(block.name, block.iters):
        origin = block.origin
        arguments.append(f"origin={_place(origin.block, origin.at) if origin else None}")
    if block.annotations:
        arguments.append(f"annotations={_annotations(block.annotations)}")
    pad = "    " * depth
    return [*_fit(f"{pad}with block(", arguments, "):", depth), f"{pad}    {_body(block, known)}"]


def own_origin(name: str, iters: tuple[IterVar, ...]) -> Origin:
    """The origin of a block of the plain schedule: its own instance."""
    return Origin(name, tuple(Var(v.name) for v in iters))


def _iter(var: IterVar, binding: Expr, known: _Known) -> str:
    derived = isinstance(binding, Var) and known.bounds.get(binding.name)
    domain = [] if derived == (var.lower, var.upper) else _range(var.lower, var.upper)
    return f"{var.kind.value}({', '.join([_expr(binding, INDEX), *domain])})"


def _range(lower: Expr, upper: Expr) -> list[str]:
    bounds = (upper,) if lower == index(0) else (lower, upper)
    return [_expr(e, INDEX) for e in bounds]


def _annotations(annotations: tuple[tuple[str, int | str], ...]) -> str:
    return "{" + ", ".join(f"{key!r}: {value!r}" for key, value in annotations) + "}"


def _body(block: Block, known: _Known) -> str:
    match block.body:
        case Store(target, value):
            return f"{_target(target)} = {_expr(value, known.dtypes.get(target.buffer))}"
        case Init(combiner, targets):
            return f"{', '.join(map(_target, targets))} = identity.{combiner.value}"
        case Update(combiner, targets, values):
            places = list(map(_target, targets))
            contexts = [known.dtypes.get(t.buffer) for t in targets]
            texts = [_expr(v, c) for v, c in zip(values, contexts, strict=True)]
            if len(places) == 1:
                return f"{places[0]} = combine.{combiner.value}({places[0]}, {texts[0]})"
            arguments = f"{_tuple(places)}, {_tuple(texts)}"
            return f"{', '.join(places)} = combine.{combiner.value}({arguments})"
        case _:
            assert_never(block.body)


def _target(target: Target) -> str:
    return _place(target.buffer, target.indices)


# ---------------------------------------------------------------- declarations


def _parameter(parameter: Parameter) -> str:
    buffer = parameter.buffer
    array = _place(buffer.dtype.value, buffer.shape)
    wrapper = INTENTS.get(parameter.intent)
    return f"{to_script(buffer.name)}: {f'{wrapper}[{array}]' if wrapper else array}"


def _temporary(buffer: Buffer) -> str:
    array = _place(buffer.dtype.value, buffer.shape)
    scope = "" if buffer.scope is Scope.AUTO else f" @ {buffer.scope.value}"
    return f"{to_script(buffer.name)}={array}{scope}"


def _fit(head: str, parts: Iterable[str], tail: str, depth: int) -> list[str]:
    """`head`, the parts and `tail` in one line if it is short enough, else a part a line."""
    items = list(parts)
    line = head + ", ".join(items) + tail
    if len(line) <= WIDTH:
        return [line]
    pad = "    " * (depth + 1)
    return [head, *(f"{pad}{item}," for item in items), "    " * depth + tail]
