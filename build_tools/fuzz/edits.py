"""Trees edited at random: what a wrong primitive might make of a right one.

Input: a kernel with a certificate, and a source of random numbers. Output: the same with one thing
changed; what is then no well-formed tree is drawn again.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any, get_args

from gen.errors import TilesmithError
from gen.ir.algebra import dtype_of, index
from gen.ir.nodes import (
    Allocate,
    Binary,
    BinaryOp,
    Block,
    Buffer,
    Combiner,
    Const,
    Destination,
    Expr,
    Init,
    IterKind,
    IterVar,
    Kernel,
    Load,
    Loop,
    LoopKind,
    Node,
    Select,
    Seq,
    Stmt,
    Update,
    Var,
)
from gen.ir.rules.verify import verify_any
from gen.ir.types import INDEX
from gen.ir.walk import blocks, map_children, seq, substitute, walk
from gen.poly.certificate import Flow, Scheduled

Edit = Callable[[Kernel, Random], Kernel | None]
"""A kernel with something changed; None where there is nothing of the kind."""

_KINDS = (LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.VECTORIZED)
_ATTEMPTS = 200
_OPERATORS = (
    (BinaryOp.ADD, BinaryOp.SUB),
    (BinaryOp.MIN, BinaryOp.MAX),
    (BinaryOp.LT, BinaryOp.LE),
    (BinaryOp.GE, BinaryOp.GT),
    (BinaryOp.FLOORDIV, BinaryOp.MOD),
)


def edited(state: Scheduled, random: Random) -> Scheduled | None:
    """The state with something changed; None where nothing well-formed was drawn."""
    for _ in range(_ATTEMPTS):
        edit = random.choice(_EDITS)
        new = edit(state.kernel, random)
        flow = _other_flow(state, random) if random.random() < 0.05 else state.flow
        if new is None or (new == state.kernel and flow == state.flow):
            continue
        try:
            verify_any(new)
        except TilesmithError:
            continue
        return replace(state, kernel=new, flow=flow)
    return None


# ---------------------------------------------------------------- places


def _edit(kinds: tuple[type[Node], ...], change: Callable[[Any, Kernel, Random], Any]) -> Edit:
    """Changes one of the nodes of these kinds."""

    def edit(kernel: Kernel, random: Random) -> Kernel | None:
        found = [k for k, n in enumerate(walk(kernel.body)) if isinstance(n, kinds)]
        if not found:
            return None
        return _changed(kernel, random.choice(found), lambda n: change(n, kernel, random))

    return edit


def _changed(kernel: Kernel, number: int, change: Callable[[Node], Any]) -> Kernel | None:
    """The kernel with the node of that number changed, as the walk counts; None where it stays."""
    numbers = count()

    def go(node: Node) -> Node:
        if next(numbers) == number:
            new: Node | None = change(node)
            return new or node  # what follows has another number, and is not asked for
        return map_children(node, go)

    body: Any = go(kernel.body)
    return None if body is kernel.body else replace(kernel, body=body)


def _variable(kernel: Kernel, random: Random) -> Expr:
    names = {n.name for n in walk(kernel.body) if isinstance(n, Var) and n.dtype is INDEX}
    return Var(random.choice(sorted(names)), INDEX) if names else index(0)


# ---------------------------------------------------------------- expressions


def _expression(e: Expr, kernel: Kernel, random: Random) -> Expr | None:
    if dtype_of(e) is INDEX:
        step = index(random.choice((1, 1, 2)))
        choices: list[Expr] = [
            Binary(BinaryOp.ADD, e, step),
            Binary(BinaryOp.SUB, e, step),
            Binary(BinaryOp.MOD, e, index(2)),
            index(0),
            _variable(kernel, random),
        ]
        if isinstance(e, Const):
            choices = [index(int(e.value.real) + d) for d in (-1, 1)]
        return random.choice(choices)
    return None


def _operator(e: Binary, kernel: Kernel, random: Random) -> Node | None:
    if random.random() < 0.4:
        return random.choice((e.lhs, e.rhs))
    others = [b if a is e.op else a for a, b in _OPERATORS if e.op in (a, b)]
    return replace(e, op=random.choice(others)) if others else replace(e, lhs=e.rhs, rhs=e.lhs)


def _select(e: Select, kernel: Kernel, random: Random) -> Node | None:
    return random.choice((e.then, e.otherwise, replace(e, then=e.otherwise, otherwise=e.then)))


def _access(e: Load | Destination, kernel: Kernel, random: Random) -> Node | None:
    """Another buffer, or indices in another order."""
    if len(e.indices) > 1 and random.random() < 0.5:
        return replace(e, indices=(*e.indices[1:], e.indices[0]))
    known = [p.buffer for p in kernel.parameters]
    known += [n for n in walk(kernel.body) if isinstance(n, Buffer)]
    alike = sorted({b.name for b in known if len(b.shape) == len(e.indices)})
    return replace(e, buffer=random.choice(alike))


def _target(e: Destination, kernel: Kernel, random: Random) -> Node | None:
    """A place that is written at another index."""
    if not e.indices:
        return None
    k = random.randrange(len(e.indices))
    new = _expression(e.indices[k], kernel, random) or e.indices[k]
    return replace(e, indices=(*e.indices[:k], new, *e.indices[k + 1 :]))


# ---------------------------------------------------------------- blocks


def _block(b: Block, kernel: Kernel, random: Random) -> Node | None:
    match random.randrange(6):
        case 0:
            return replace(b, initialises=not b.initialises)
        case 1:
            return replace(b, predicate=Const(True, dtype_of(b.predicate)))
        case 2:
            return replace(b, origin=None) if b.origin else None
        case 3 if b.origin and b.origin.at:
            at = list(b.origin.at)
            random.shuffle(at)
            return replace(b, origin=replace(b.origin, at=tuple(at)))
        case 4 if len(b.bindings) > 1:
            return replace(b, bindings=(*b.bindings[1:], b.bindings[0]))
        case _:
            others = [o.body for o in blocks(kernel.body) if o.body != b.body]
            return replace(b, body=random.choice(others)) if others else None


def _iteration(v: IterVar, kernel: Kernel, random: Random) -> Node | None:
    other = IterKind.SPATIAL if v.kind is IterKind.REDUCTION else IterKind.REDUCTION
    return replace(v, kind=other)


def _body(b: Update | Init, kernel: Kernel, random: Random) -> Node | None:
    match random.randrange(4):
        case 0 if isinstance(b.combiner, Combiner):
            return replace(b, combiner=random.choice(tuple(Combiner)))
        case 1 if isinstance(b, Update):
            return Init(b.combiner, b.targets)
        case 2 if isinstance(b, Update):
            return replace(b, values=b.values[::-1])
        case _:
            return replace(b, targets=b.targets[::-1])


# ---------------------------------------------------------------- statements


def _loop(s: Loop, kernel: Kernel, random: Random) -> Node | None:
    inner = s.body
    match random.randrange(8):
        case 0 | 1:
            return replace(s, kind=random.choice(_KINDS))
        case 2 | 3 if isinstance(inner, Loop):
            return replace(inner, body=replace(s, body=inner.body))
        case 4 if isinstance(inner, Allocate):
            return replace(inner, body=replace(s, body=inner.body))
        case 5 if isinstance(inner, Seq):  # the first or the last runs outside
            first, *rest = inner.body
            *most, last = inner.body
            if random.random() < 0.5:
                return seq((first, replace(s, body=seq(tuple(rest)))))
            return seq((replace(s, body=seq(tuple(most))), last))
        case 6 if isinstance(inner, Seq):  # distributed over what it holds
            pieces = (replace(s, body=x) for x in inner.body)
            return Seq(tuple(pieces))
        case _:
            return seq((s, s)) if random.random() < 0.3 else None


def _sequence(s: Seq, kernel: Kernel, random: Random) -> Node | None:
    body = list(s.body)
    k = random.randrange(len(body))
    match random.randrange(6):
        case 0 | 1:
            random.shuffle(body)
        case 2:
            del body[k]
        case 3:
            body.insert(random.randrange(len(body) + 1), body[k])
        case _:  # into the loop that follows or precedes, at either end
            other = k + random.choice((-1, 1))
            if not 0 <= other < len(body):
                return None
            loop, moved = body[other], body[k]
            if not isinstance(loop, Loop):
                return None
            if isinstance(moved, Loop) and random.random() < 0.5:
                moved = _renamed(moved, loop)
            held = (moved, loop.body) if random.random() < 0.5 else (loop.body, moved)
            body[other] = replace(loop, body=seq(held))
            del body[k]
    return seq(tuple(body))


def _renamed(moved: Loop, loop: Loop) -> Stmt:
    """A loop's body in another loop's iterations."""
    return substitute(moved.body, {moved.var: Var(loop.var, INDEX)})


def _allocation(s: Allocate, kernel: Kernel, random: Random) -> Node | None:
    """Allocated within the loop that it was around."""
    inner = s.body
    return replace(inner, body=replace(s, body=inner.body)) if isinstance(inner, Loop) else None


def _folded(kernel: Kernel, random: Random) -> Kernel | None:
    """A temporary of few places along an axis: one iteration overwrites another's."""
    shaped = [n for n in walk(kernel.body) if isinstance(n, Buffer) and n.shape]
    if not shaped:
        return None
    buffer = random.choice(shaped)
    axis, places = random.randrange(len(buffer.shape)), index(random.choice((1, 2, 3)))

    def within(exprs: tuple[Expr, ...], new: Expr) -> tuple[Expr, ...]:
        return (*exprs[:axis], new, *exprs[axis + 1 :])

    def go(n: Node) -> Node:
        new = map_children(n, go)
        match new:
            case Buffer(name) if name == buffer.name:
                return replace(new, shape=within(new.shape, places))
            case Load(name, at) | Destination(name, at) if name == buffer.name:
                return replace(new, indices=within(at, Binary(BinaryOp.MOD, at[axis], places)))
            case _:
                return new

    body: Any = go(kernel.body)
    return replace(kernel, body=body)


def _other_flow(state: Scheduled, random: Random) -> Flow:
    """The certificate with one thing said otherwise."""
    key = random.choice(sorted(state.flow)) if state.flow else None
    if key is None:
        return state.flow
    source = state.flow[key]
    names = sorted({b.name for b in blocks(state.kernel.body)})
    loops = sorted({n.var for n in walk(state.kernel.body) if isinstance(n, Loop)})
    match random.randrange(3):
        case 0:
            source = replace(source, initial=not source.initial)
        case 1:
            source = replace(source, writers=tuple(random.sample(names, 1)))
        case _:
            some = random.sample(loops, random.randint(0, len(loops))) if loops else []
            source = replace(source, shared=tuple(some))
    return {**state.flow, key: source}


_EXPRESSIONS: tuple[type[Node], ...] = get_args(Expr)
_EDITS: tuple[Edit, ...] = (
    *[_edit(_EXPRESSIONS, _expression)] * 3,
    _edit((Binary,), _operator),
    _edit((Select,), _select),
    _edit((Load, Destination), _access),
    *[_edit((Destination,), _target)] * 2,
    _edit((Block,), _block),
    _edit((IterVar,), _iteration),
    _edit((Update, Init), _body),
    *[_edit((Loop,), _loop)] * 2,
    *[_edit((Seq,), _sequence)] * 2,
    _edit((Allocate,), _allocation),
    *[_folded] * 2,
)
"""As often as they are to be drawn."""
