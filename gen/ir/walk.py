"""Walking and rebuilding trees, and the small algebra of index expressions.

Everything here is a pure function on nodes; a tree in which nothing changed is returned as the
same object.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache, wraps
from typing import Any, TypeVar, assert_never, cast

from .nodes import (
    COMPARISONS,
    Allocate,
    Binary,
    BinaryOp,
    Block,
    Call,
    Cast,
    Const,
    Delinearize,
    Expr,
    External,
    Function,
    If,
    Init,
    Load,
    Loop,
    Node,
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
from .types import INDEX, DType

N = TypeVar("N", bound=Node)
A = TypeVar("A")

_NONE: frozenset[str] = frozenset()
_STATEMENTS = (Allocate, Block, Delinearize, If, Loop, Seq)

TRUE = Const(True, DType.BOOL)
FALSE = Const(False, DType.BOOL)


_HOLDERS: dict[type[Node], tuple[str, ...]] = {}


def _holders(kind: type[Node]) -> tuple[str, ...]:
    """The fields that may hold nodes; found once, since trees are walked all the time."""
    if kind not in _HOLDERS:
        mine = (f for f in fields(kind) if f.name != "span" and not _holds_none(f.type))
        _HOLDERS[kind] = tuple(f.name for f in mine)
    return _HOLDERS[kind]


def _holds_none(declared: object) -> bool:
    return isinstance(declared, type) and not issubclass(declared, Node | tuple)


def remembered(f: Callable[[N], A]) -> Callable[[N], A]:
    """A pure function of a node, asked once of each: trees share what a step leaves alone, so what
    is known of their parts carries over.
    """

    def ask(node: N) -> A:
        try:
            answers = node._answers
        except AttributeError:
            answers = {}
            object.__setattr__(node, "_answers", answers)
        if f not in answers:
            answers[f] = f(node)
        return cast(A, answers[f])

    return wraps(f)(ask)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below, in field order."""
    try:
        return node._children
    except AttributeError:
        found = _children(node)
        object.__setattr__(node, "_children", found)
        return found


def _children(node: Node) -> tuple[Node, ...]:
    found: list[Node] = []
    for name in _holders(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            found += [item for item in value if isinstance(item, Node)]
    return tuple(found)


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, parents first, in textual order."""
    left = [node]
    while left:
        first = left.pop()
        yield first
        left += children(first)[::-1]


def map_children(node: N, f: Callable[[Any], Any]) -> N:
    """The node with `f` applied to each child; the same object where nothing changed."""
    changes: dict[str, Any] = {}
    for name in _holders(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            new: Any = f(value)
            if new is not value:
                changes[name] = new
        elif isinstance(value, tuple) and any(isinstance(item, Node) for item in value):
            new = tuple(f(item) if isinstance(item, Node) else item for item in value)
            if any(a is not b for a, b in zip(new, value, strict=True)):
                changes[name] = new
    return replace(node, **changes) if changes else node


def substitute(node: N, values: Mapping[str, Expr]) -> N:
    """`values` in place of the variables that they name, simplified on the way up.

    Iteration variables are local to their block: replacing loop variables in a tree touches the
    blocks' bindings and predicates, never a body's own names, since those hold no dot.
    """

    def go(n: Node) -> Node:
        if isinstance(n, Var):
            return values.get(n.name, n)
        new = map_children(n, go)
        return simplify(new) if isinstance(new, Binary) and new is not n else new

    return cast(N, go(node))


@remembered
def variables(node: Node) -> frozenset[str]:
    """Names of all variables that occur."""
    if isinstance(node, Var):
        return frozenset((node.name,))
    return _NONE.union(*map(variables, children(node)))


@remembered
def accessed(node: Node) -> frozenset[str]:
    """The buffers that are read or written, in a statement or below."""
    here = (node.buffer,) if isinstance(node, Load | Target) else ()
    return _NONE.union(here, *map(accessed, children(node)))


@remembered
def blocks(node: Node) -> tuple[Block, ...]:
    """The blocks, in textual order."""
    if isinstance(node, Block):
        return (node,)
    return tuple(b for s in children(node) if isinstance(s, _STATEMENTS) for b in blocks(s))


@remembered
def loops(node: Node) -> tuple[Loop, ...]:
    """The loops, outer ones first, in textual order."""
    here = (node,) if isinstance(node, Loop) else ()
    below = (s for s in children(node) if isinstance(s, _STATEMENTS))
    return (*here, *(loop for s in below for loop in loops(s)))


@remembered
def loads(body: Node) -> tuple[Load, ...]:
    """The loads below, in textual order: a block's reads are numbered so, from 0.

    An Update's reads of its own targets are implied and have no number.
    """
    return tuple(n for n in walk(body) if isinstance(n, Load))


def externals(node: Node) -> tuple[External, ...]:
    """The external functions that are called, each once."""
    called = (n.function for n in walk(node) if isinstance(n, Call))
    return tuple(dict.fromkeys(f for f in called if isinstance(f, External)))


def targets(body: Store | Init | Update) -> tuple[Target, ...]:
    match body:
        case Store(target, _):
            return (target,)
        case Init(_, targets_) | Update(_, targets_, _):
            return targets_
        case _:
            assert_never(body)


def seq(statements: tuple[Stmt, ...]) -> Stmt:
    """The statements in order, nested sequences flattened, one alone as itself."""
    flat = tuple(inner for s in statements for inner in (s.body if isinstance(s, Seq) else (s,)))
    return flat[0] if len(flat) == 1 else Seq(flat)


def dtype_of(expr: Expr) -> DType:
    match expr:
        case Var() | Const() | Cast() | Load():
            return expr.dtype
        case Unary(UnaryOp.NOT, _) | Call(Function.ISNAN, _):
            return DType.BOOL
        case Unary(_, operand):
            return dtype_of(operand)
        case Binary(op, lhs, _):
            return DType.BOOL if op in COMPARISONS else dtype_of(lhs)
        case Select(_, then, _):
            return dtype_of(then)
        case Call(function, args):
            if isinstance(function, External):
                return function.result
            return result_of(function, dtype_of(args[0]))
        case _:
            assert_never(expr)


def result_of(function: Function, dtype: DType) -> DType:
    """The type of a function's value, for arguments of type `dtype`."""
    match function:
        case Function.ISNAN:
            return DType.BOOL
        case Function.ABS | Function.REAL | Function.IMAG:
            return dtype.real
        case Function.COMPLEX:
            return dtype.complex or dtype
        case _:
            return dtype


def bare_type(function: Function, context: DType | None) -> DType | None:
    """The type of constants that a function is called with, where the text of a script does not say
    it and the function's value is of type `context`.
    """
    match function:
        case Function.ISNAN:
            return None
        case Function.COMPLEX:
            return context and context.real
        case _:
            return context


# ---------------------------------------------------------------- index algebra


@cache
def index(value: int) -> Const:
    return Const(value, INDEX)


def _binary(op: BinaryOp, lhs: Expr | int, rhs: Expr | int) -> Expr:
    a = index(lhs) if isinstance(lhs, int) else lhs
    b = index(rhs) if isinstance(rhs, int) else rhs
    return simplify(Binary(op, a, b))


def add(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.ADD, lhs, rhs)


def sub(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.SUB, lhs, rhs)


def mul(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.MUL, lhs, rhs)


def floordiv(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.FLOORDIV, lhs, rhs)


def mod(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.MOD, lhs, rhs)


def ceildiv(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return floordiv(add(lhs, sub(rhs, 1)), rhs)


def minimum(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.MIN, lhs, rhs)


def maximum(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.MAX, lhs, rhs)


def less(lhs: Expr | int, rhs: Expr | int) -> Expr:
    return _binary(BinaryOp.LT, lhs, rhs)


def conjunction(*conditions: Expr) -> Expr:
    """All of the conditions, duplicates and truths dropped."""
    parts: list[Expr] = []
    for condition in conditions:
        for part in conjuncts(condition):
            if part not in parts:
                parts.append(part)
    if not parts:
        return TRUE
    result = parts[0]
    for part in parts[1:]:
        result = Binary(BinaryOp.AND, result, part)
    return result


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The parts that all must hold; none for a truth."""
    match condition:
        case Binary(BinaryOp.AND, lhs, rhs):
            return conjuncts(lhs) + conjuncts(rhs)
        case Const(True):
            return ()
        case _:
            return (condition,)


_FOLD: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
}
_COMPARE: dict[BinaryOp, Callable[[int, int], bool]] = {
    BinaryOp.EQ: lambda a, b: a == b,
    BinaryOp.NE: lambda a, b: a != b,
    BinaryOp.LT: lambda a, b: a < b,
    BinaryOp.LE: lambda a, b: a <= b,
    BinaryOp.GT: lambda a, b: a > b,
    BinaryOp.GE: lambda a, b: a >= b,
}


def simplify(e: Binary) -> Expr:
    """One step of folding at the root, for INDEX arithmetic and booleans only: floats are never
    touched, since every rule here would change some float result.
    """
    op, a, b = e.op, e.lhs, e.rhs
    if op in (BinaryOp.AND, BinaryOp.OR):
        absorbing = op is BinaryOp.OR
        for side, other in ((a, b), (b, a)):
            if isinstance(side, Const):
                return side if bool(side.value) is absorbing else other
        return e
    if dtype_of(a) is not INDEX:
        return e
    if isinstance(a, Const) and isinstance(b, Const):
        x, y = int(cast(int, a.value)), int(cast(int, b.value))
        if op in _FOLD:
            return index(_FOLD[op](x, y))
        if op in _COMPARE:
            return Const(_COMPARE[op](x, y), DType.BOOL)
        if op is BinaryOp.FLOORDIV and y:
            return index(x // y)
        if op is BinaryOp.MOD and y:
            return index(x % y)
        return e
    return _neutral(op, a, b) or e


def _neutral(op: BinaryOp, a: Expr, b: Expr) -> Expr | None:
    """The simpler form of `a op b`, index arithmetic, where a rule gives one."""
    x = a.value if isinstance(a, Const) else None
    y = b.value if isinstance(b, Const) else None
    match op:
        case BinaryOp.ADD if y == 0:
            return a
        case BinaryOp.ADD if x == 0:
            return b
        case BinaryOp.SUB if y == 0:
            return a
        case BinaryOp.SUB if a == b:
            return index(0)
        case BinaryOp.MUL if 0 in (x, y):
            return index(0)
        case BinaryOp.MUL | BinaryOp.FLOORDIV if y == 1:
            return a
        case BinaryOp.MUL if x == 1:
            return b
        case BinaryOp.MOD if y == 1:
            return index(0)
        case BinaryOp.MIN | BinaryOp.MAX if a == b:
            return a
        case BinaryOp.MIN | BinaryOp.MAX if isinstance(b, Const):
            return b if _beyond(op, a, int(b.value.real)) else None
        case BinaryOp.ADD | BinaryOp.SUB:
            return _gather_constants(op, a, b)
        case _:
            return None


def _beyond(op: BinaryOp, a: Expr, bound: int) -> bool:
    """Whether a is never on the near side of the bound, as max(x, 0) is never below 0."""
    match op, a:
        case (BinaryOp.MIN, Binary(BinaryOp.MAX, _, Const(int(c)))):
            return int(c) >= bound
        case (BinaryOp.MAX, Binary(BinaryOp.MIN, _, Const(int(c)))):
            return int(c) <= bound
        case _:
            return False


def _gather_constants(op: BinaryOp, a: Expr, b: Expr) -> Expr | None:
    """(x + c1) + c2, (x - c1) + c2 and so on: constants gather on the right."""
    match a, b:
        case Binary(BinaryOp.ADD | BinaryOp.SUB as inner, x, Const(c1)), Const(c2):
            first = int(cast(int, c1)) * (1 if inner is BinaryOp.ADD else -1)
            total = first + int(cast(int, c2)) * (1 if op is BinaryOp.ADD else -1)
            return add(x, total) if total >= 0 else sub(x, -total)
        case _:
            return None


# ---------------------------------------------------------------- editing trees


def replace_stmt(stmt: Stmt, old: Stmt, new: Stmt) -> Stmt:
    """The tree with the node `old` (by identity) replaced."""

    def go(s: Stmt) -> Stmt:
        if s is old:
            return new
        match s:
            case Block():
                return s
            case Loop() | Delinearize() | If() | Allocate():
                body = go(s.body)
                return s if body is s.body else replace(s, body=body)
            case Seq(body_):
                new_body = tuple(go(x) for x in body_)
                same = all(x is y for x, y in zip(new_body, body_, strict=True))
                return s if same else seq(new_body)
            case _:
                assert_never(s)

    return go(stmt)


def ancestors(stmt: Stmt, node: Stmt) -> tuple[Stmt, ...]:
    """The statements from the root down to just above `node` (by identity)."""

    def go(s: Stmt) -> tuple[Stmt, ...] | None:
        if s is node:
            return ()
        for child in children(s):
            if isinstance(child, Block | Loop | Delinearize | If | Allocate | Seq):
                below = go(child)
                if below is not None:
                    return (s, *below)
        return None

    found = go(stmt)
    if found is None:
        raise ValueError("the node is not in the tree")
    return found
