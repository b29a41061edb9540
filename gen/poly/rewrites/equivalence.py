"""Does a rewritten tree run the same instances in the same order, each computing the same?

Input: a proved tree, and what a rewriting made of it. Output: nothing; raises Refused where the two
differ. What is proved of the one then holds of the other: values, bounds, races, and what may share
an array. The two are gone through side by side, and each block is looked at where it stands, so
that it takes a time in proportion to the length of the tree.

What may differ:

- unrolled loops of constant extents may be written out, and lanes of a vectorized loop of blocks
  alone may run a block at a time (they carry no dependence);
- iteration variables may be replaced by their values;
- a condition around a loop over one block may be a guard of the block, if it reads nothing;
- index expressions may be others that are equal wherever the block runs, and guards may be gone
  that hold there; a selection may be the side that is taken there, and a load one of several that
  are selected between;
- products of floats that are added may be fused, unless the kernel has none: equal over the reals.
"""

import operator
from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never, cast

from ...ir import nodes as ir
from ...ir.algebra import conjunction, conjuncts, index
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import children, loads, substitute
from ..sets.extract import outline
from ..witness import Refused
from .expressions import Around, Site, Unknown, head_of

_Outer = ir.Loop | ir.Delinearize | ir.If | ir.Allocate

MOST_TRIPS = 64  # of an unrolled loop that may be written out


def check_unchanged(before: ir.Kernel, after: ir.Kernel) -> None:
    """Returns if the trees do the same. Raises Refused, naming the block or loop that does not."""
    if replace(after, body=before.body) != before:
        raise Refused("what is emitted has other arguments than what is proved")
    nothing = outline(replace(before, body=ir.Seq(()))).empty
    fuses = before.contraction is ir.Contraction.FUSED
    _check(before.body, after.body, Around(nothing.parameters, nothing.context, fuses=fuses))


# ---------------------------------------------------------------- statements


def _check(before: ir.Stmt, after: ir.Stmt, around: Around) -> None:
    for old, new in _side_by_side(before, after, around):
        if old is new:
            continue
        match old, new:
            case ir.Block(), ir.Block():
                _check_block(old, new, around)
            case ir.Loop(), ir.Loop() if _alike(old, new) and _runs_once(old, around):
                value = {old.var: old.lower}
                _check(substitute(old.body, value), substitute(new.body, value), around)
            case ir.Loop(), ir.Loop() if _run_over_the_same(old, new):
                _check_unrolled(old, new, around)
            case (
                (ir.Loop() | ir.Delinearize() | ir.If()) as ours,
                (ir.Loop() | ir.Delinearize() | ir.If()) as theirs,
            ) if _alike(ours, theirs):
                _check(ours.body, theirs.body, around.inside(ours))
            case ir.Allocate(), ir.Allocate() if _alike(old, new):
                _check(old.body, new.body, around)
            case (ir.Leave(), ir.Leave()) if old == new:
                pass
            case (ir.Barrier(), ir.Barrier()) | (ir.Transfer(), ir.Transfer()) if old == new:
                pass
            case _:
                raise Refused(
                    f"{_called(new)} is emitted where {_called(old)} is proved",
                    span=(new or old or after).span,
                )


def _check_unrolled(old: ir.Loop, new: ir.Loop, around: Around) -> None:
    """Two loops that run over the same: by what one iteration does, which is said once, whatever
    its number; and where isl cannot say that, by all of them.
    """
    try:
        _check(old.body, new.body, around.inside(old))
    except Refused:
        parts = _written_out(old, around), _written_out(new, around)
        if parts[0] is None or parts[1] is None:
            raise
        _check(ir.Seq(parts[0]), ir.Seq(parts[1]), around)


def _side_by_side(
    before: ir.Stmt, after: ir.Stmt, around: Around
) -> Iterator[tuple[ir.Stmt | None, ir.Stmt | None]]:
    """The statements of both in their order, each beside the one in its place, if there is one: two
    unrolled loops that run over the same; else what unrolled loops are, written out.
    """
    ours, theirs = [before], [after]  # what is left, the next statement last
    while ours or theirs:
        old, new = ours[-1] if ours else None, theirs[-1] if theirs else None
        stay = old is new or _run_over_the_same(old, new)
        opened = _written_out(old, around) if old and not stay else None
        if opened is not None:  # first: it may be what has the other's loop in it
            ours[-1:] = reversed(opened)
            continue
        opened = _written_out(new, around) if new and not stay else None
        if opened is not None:
            theirs[-1:] = reversed(opened)
            continue
        yield old, new
        del ours[-1:], theirs[-1:]


def _run_over_the_same(old: ir.Stmt | None, new: ir.Stmt | None) -> bool:
    """Whether both are unrolled loops, over the same iterations."""
    match old, new:
        case ir.Loop(kind=ir.LoopKind.UNROLLED), ir.Loop(kind=ir.LoopKind.UNROLLED):
            return _alike(old, new)
        case _:
            return False


def _written_out(stmt: ir.Stmt, around: Around) -> tuple[ir.Stmt, ...] | None:
    """What the statement is, one after another: iterations of an unrolled loop, blocks of a
    vectorized one; None where it is itself.
    """
    match stmt:
        case ir.Seq(body):
            return body
        case ir.Loop(var, lower, upper, ir.LoopKind.UNROLLED, body):
            first, last = around.constant(lower), around.constant(upper)
            if first is None or last is None or last - first > MOST_TRIPS:
                return None
            return tuple(substitute(body, {var: index(k)}) for k in range(first, last))
        case ir.Loop(kind=ir.LoopKind.VECTORIZED, body=ir.Block()):
            return None
        case ir.Loop(kind=ir.LoopKind.VECTORIZED):
            parts = tuple(_parts(stmt.body, around))
            alone = all(isinstance(s, ir.Block) for s in parts)
            return tuple(replace(stmt, body=s) for s in parts) if alone else None
        case ir.If(
            condition,
            ir.Loop(kind=ir.LoopKind.SERIAL, body=ir.Block(initialises=False) as block) as loop,
        ):
            if any(map(loads, (condition, loop.lower, loop.upper))):
                return None
            guard = conjunction(condition, block.predicate)
            return (replace(loop, body=replace(block, predicate=guard)),)
        case _:
            return None


def _parts(stmt: ir.Stmt, around: Around) -> Iterator[ir.Stmt]:
    """The statements one after another, all of them written out."""
    parts = _written_out(stmt, around)
    if parts is None:
        yield stmt
    else:
        for s in parts:
            yield from _parts(s, around)


def _runs_once(loop: ir.Loop, around: Around) -> bool:
    first, last = around.constant(loop.lower), around.constant(loop.upper)
    return first is not None and last == first + 1


def _alike(old: _Outer, new: _Outer) -> bool:
    """Whether two statements are the same but for what is below them, and for notes."""
    ours, theirs = _header(old), _header(new)
    same = type(old) is type(new) and all(map(operator.is_, ours, theirs))
    return same or repr(ours) == repr(theirs)


def _header(stmt: _Outer) -> tuple[object, ...]:
    """What of a statement is not below it, nor a note."""
    match stmt:
        case ir.Loop(var, lower, upper, kind):
            return (var, lower, upper, kind)
        case ir.Delinearize(vars_, extents, value):
            return (vars_, extents, value)
        case ir.If(condition):
            return (condition,)
        case ir.Allocate(buffers):
            return (buffers,)
        case _:
            assert_never(stmt)


def _called(stmt: ir.Stmt | None) -> str:
    match stmt:
        case None:
            return "nothing"
        case ir.Block(name):
            return f"block '{name}'"
        case ir.Loop(var, lower, upper, kind):
            ends = f"{expr_to_text(lower)}, {expr_to_text(upper)}"
            return f"{kind.value} loop '{var}' over ({ends})"
        case ir.If(condition):
            return f"a condition `{expr_to_text(condition)}`"
        case _:
            return f"a statement {type(stmt).__name__}"


# ---------------------------------------------------------------- blocks


def _check_block(old: ir.Block, new: ir.Block, around: Around) -> None:
    unknown: tuple[ir.Expr, ...] = ()
    while True:
        try:
            wrong = _difference(old, new, around, unknown)
            if wrong is None:
                return
            Site(around, conjuncts(old.predicate), unknown).require_known()
            raise Refused(f"block '{old.name}' {wrong}", span=old.span)
        except Unknown as found:
            unknown = (*unknown, found.expr)


def _difference(
    old: ir.Block, new: ir.Block, around: Around, unknown: tuple[ir.Expr, ...]
) -> str | None:
    """What a block does that it is not to do."""
    if (old.name, old.initialises) != (new.name, new.initialises):
        return f"is emitted as '{new.name}'"
    guards = conjuncts(old.predicate)
    ours = {repr(p): p for p in guards}
    theirs = {repr(p): p for p in conjuncts(new.predicate)}
    for text, p in theirs.items():
        if text not in ours:
            return f"is emitted under `{expr_to_text(p)}`, which is not proved to hold"
    kept = Site(around, tuple(p for text, p in ours.items() if text in theirs), unknown)
    for text, p in ours.items():
        if text not in theirs and not kept.implies(p):
            return f"is emitted without the guard `{expr_to_text(p)}`"
    place = Site(around, guards, unknown)
    proved, emitted = _bound(old), _bound(new)
    if head_of(proved) != head_of(emitted) or not place.same_combiner(proved, emitted):
        return "is emitted as a statement of another kind"
    for a, b in zip(children(proved), children(emitted), strict=True):
        if not place.same(a, b):
            return f"is emitted with `{_text(b)}` where `{_text(a)}` is proved"
    return None


def _bound(block: ir.Block) -> ir.Store | ir.Init | ir.Update:
    """The body in the loops' variables."""
    values = {v.name: b for v, b in zip(block.iters, block.bindings, strict=True)}
    return substitute(block.body, values)


def _text(node: ir.Node) -> str:
    if isinstance(node, ir.Destination):
        return f"{node.buffer}[{', '.join(map(expr_to_text, node.indices))}]"
    return expr_to_text(cast(ir.Expr, node))
