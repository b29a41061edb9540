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
- products of floats that are added may be fused: equal over the reals.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import assert_never, cast

from ...ir import nodes as ir
from ...ir.algebra import conjunction, conjuncts, index
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import children, loads, substitute
from ..sets.extract import outline
from ..witness import Refused
from .expressions import Around, Site, Unknown, head_of

MOST_TRIPS = 64  # of an unrolled loop that may be written out


def check_unchanged(before: ir.Kernel, after: ir.Kernel) -> None:
    """Returns if the trees do the same. Raises Refused, naming the block or loop that does not."""
    if replace(after, body=before.body) != before:
        raise Refused("what is emitted has other arguments than what is proved")
    nothing = outline(replace(before, body=ir.Seq(()))).empty
    _check(before.body, after.body, Around(nothing.parameters, nothing.context))


# ---------------------------------------------------------------- statements


def _check(before: ir.Stmt, after: ir.Stmt, around: Around) -> None:
    for old, new in zip_longest(_parts(before, around), _parts(after, around)):
        match old, new:
            case ir.Block(), ir.Block():
                _check_block(old, new, around)
            case ir.Loop(), ir.Loop() if _header(old) == _header(new) and _runs_once(old, around):
                value = {old.var: old.lower}
                _check(substitute(old.body, value), substitute(new.body, value), around)
            case (
                (ir.Loop() | ir.Delinearize() | ir.If()) as ours,
                (ir.Loop() | ir.Delinearize() | ir.If()) as theirs,
            ) if _header(ours) == _header(theirs):
                _check(ours.body, theirs.body, around.inside(ours))
            case ir.Allocate(), ir.Allocate() if _header(old) == _header(new):
                _check(old.body, new.body, around)
            case (ir.Barrier(), ir.Barrier()) | (ir.Transfer(), ir.Transfer()) if old == new:
                pass
            case _:
                raise Refused(
                    f"{_called(new)} is emitted where {_called(old)} is proved",
                    span=(new or old or after).span,
                )


def _parts(stmt: ir.Stmt, around: Around) -> Iterator[ir.Stmt]:
    """The statements one after another, unrolled loops written out, and vectorized loops of blocks
    a block at a time.
    """
    match stmt:
        case ir.Seq(body):
            for s in body:
                yield from _parts(s, around)
        case ir.Loop(var, lower, upper, ir.LoopKind.UNROLLED, body):
            first, last = around.constant(lower), around.constant(upper)
            if first is None or last is None or last - first > MOST_TRIPS:
                yield stmt
                return
            for k in range(first, last):
                yield from _parts(substitute(body, {var: index(k)}), around)
        case ir.Loop(kind=ir.LoopKind.VECTORIZED):
            parts = tuple(_parts(stmt.body, around))
            alone = all(isinstance(s, ir.Block) for s in parts)
            yield from (replace(stmt, body=s) for s in parts) if alone else (stmt,)
        case ir.If(
            condition,
            ir.Loop(kind=ir.LoopKind.SERIAL, body=ir.Block(initialises=False) as block) as loop,
        ):
            if any(map(loads, (condition, loop.lower, loop.upper))):
                yield stmt
                return
            guard = conjunction(condition, block.predicate)
            yield replace(loop, body=replace(block, predicate=guard))
        case _:
            yield stmt


def _runs_once(loop: ir.Loop, around: Around) -> bool:
    first, last = around.constant(loop.lower), around.constant(loop.upper)
    return first is not None and last == first + 1


def _header(stmt: ir.Loop | ir.Delinearize | ir.If | ir.Allocate) -> str:
    """What of a statement is not below it, nor a note."""
    match stmt:
        case ir.Loop(var, lower, upper, kind):
            return repr((var, lower, upper, kind))
        case ir.Delinearize(vars_, extents, value):
            return repr((vars_, extents, value))
        case ir.If(condition):
            return repr(condition)
        case ir.Allocate(buffers):
            return repr(buffers)
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
    guards, left = conjuncts(old.predicate), conjuncts(new.predicate)
    texts = {repr(p) for p in left}
    kept = Site(around, tuple(p for p in guards if repr(p) in texts), unknown)
    for p in left:
        if not any(repr(p) == repr(guard) for guard in guards):
            return f"is emitted under `{expr_to_text(p)}`, which is not proved to hold"
    for p in guards:
        if repr(p) not in texts and not kept.implies(p):
            return f"is emitted without the guard `{expr_to_text(p)}`"
    place = Site(around, guards, unknown)
    ours, theirs = _bound(old), _bound(new)
    if head_of(ours) != head_of(theirs) or not place.same_combiner(ours, theirs):
        return "is emitted as a statement of another kind"
    for a, b in zip(children(ours), children(theirs), strict=True):
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
