"""A block put elsewhere in loops of its own, of which others stand for the outer ones.

Input: a hoisted state, a block, the loop that it goes into, and where in that loop's body. Output:
the state in which the loops around that place stand for as many of the block's own; a CannotApply
where they run over other iterations. No instance is added or lost; what the new order does to
values, the prover decides.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never, final

from ...ir.index.bounds import LoopRange, at_most
from ...ir.index.linear import same
from ...ir.nodes import Block, Delinearize, Expr, Loop, LoopKind, Seq, Stmt, Var
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import ancestors, replace_stmt, seq, statements, substitute
from ...poly.certificate import Scheduled
from .moving import inside_of, require_around
from .shared_loops import reads_of, share_loop
from .tree import (
    CannotApply,
    block_named,
    containing,
    fresh,
    index_of,
    insert,
    loop_named,
    loops_around,
    names,
    prune_shared,
    ranges_of,
    rebuild,
    remove,
    scope_of,
    tree,
    under,
    with_body,
)

Place = Callable[[tuple[Stmt, ...]], int]
"""Where a block goes among the statements of a loop's body."""

_Nest = tuple[Loop | Delinearize, ...]


@final
@dataclass(frozen=True, slots=True)
class Alike:
    """How a block's loops match those around its new place.

    values: for each variable of the block's loops that another stands for, that one. rest: the
    loops that stay the block's own, inside those.
    """

    values: dict[str, Expr]
    rest: _Nest


def alike(state: Scheduled, block: Block, loop: str | None) -> Alike:
    """The match with the loops down to `loop`, none for None. Raises CannotApply where one of them
    runs over other iterations than the block's own.
    """
    root = tree(state.kernel)
    theirs = _nest(inside_of(root, loop_named(state.kernel, loop))) if loop else ()
    own = _nest(ancestors(root, block))
    if len(own) < len(theirs):
        raise CannotApply(
            f"block '{block.name}' has fewer loops than there are down to loop '{loop}'",
            "compute_at makes the loops that a block needs",
        )
    values: dict[str, Expr] = {}
    for k, (their, mine) in enumerate(zip(theirs, own, strict=False)):
        if their is mine:
            continue
        if not _equal(their, mine, values, ranges_of(theirs[:k])):
            raise CannotApply(
                f"{_described(mine)} runs over other iterations than {_described(their)}",
                "compute_at makes the loops that a block needs",
            )
        if isinstance(mine, Loop) and mine.kind is not LoopKind.SERIAL:
            raise CannotApply(f"loop '{mine.var}' is {mine.kind.value} already; move it first")
        pairs = zip(scope_of((mine,)), scope_of((their,)), strict=True)
        values.update({old: Var(new) for old, new in pairs})
    return Alike(values, own[len(theirs) :])


def _nest(around: Sequence[Stmt]) -> _Nest:
    return tuple(s for s in around if isinstance(s, Loop | Delinearize))


def _equal(
    their: Loop | Delinearize,
    mine: Loop | Delinearize,
    values: dict[str, Expr],
    ranges: tuple[LoopRange, ...],
) -> bool:
    """Whether one runs over the same iterations as the other, for all sizes."""

    def equal(a: Expr, b: Expr) -> bool:
        b = substitute(b, values)
        return same(a, b) or (at_most(a, b, ranges) and at_most(b, a, ranges))

    match their, mine:
        case Loop(), Loop():
            return equal(their.lower, mine.lower) and equal(their.upper, mine.upper)
        case Delinearize(), Delinearize():
            return (
                len(their.vars) == len(mine.vars)
                and all(map(equal, their.extents, mine.extents))
                and equal(their.value, mine.value)
            )
        case _:
            return False


def _described(s: Loop | Delinearize) -> str:
    match s:
        case Loop(var, lower, upper):
            return f"loop '{var}' of range({expr_to_text(lower)}, {expr_to_text(upper)})"
        case Delinearize(vars_, extents):
            return f"the fused loop {_listed(vars_)} of {_listed(map(expr_to_text, extents))}"
        case _:
            assert_never(s)


def _listed(parts: Iterable[str]) -> str:
    return " by ".join(parts)


def beside(state: Scheduled, block: str, other: str, loop: str | None, *, after: bool) -> Scheduled:
    """The block right after the other one, or right before it, in the loop's body or beside all
    loops. Raises CannotApply where no such place can be said.
    """
    mover, there = block_named(state.kernel, block), block_named(state.kernel, other)
    if block == other:
        raise CannotApply(f"block '{block}' cannot stand beside itself")
    if loop is not None:
        require_around(state.kernel, loop_named(state.kernel, loop), there)

    def place(statements: tuple[Stmt, ...]) -> int:
        return containing(statements, lambda b: b.name == other)[0] + after

    return moved(state, mover, loop, place)


def moved(state: Scheduled, block: Block, loop: str | None, place: Place) -> Scheduled:
    """The block in the loop's body, or beside all loops, at the place that `place` says among the
    statements there; those of its own loops that none stands for go with it.
    """
    root = tree(state.kernel)
    rest = remove(root, block)
    nest = _nested(state, block, alike(state, block, loop), rest)
    if loop is None:
        items = rest.body if isinstance(rest, Seq) else (rest,)
        kernel = rebuild(state.kernel, seq(insert(items, place(items), nest)))
        return replace(state, kernel=kernel, flow=prune_shared(kernel, state.flow))
    target = loop_named(rebuild(state.kernel, rest), loop)
    items = under(target)
    new = with_body(target, insert(items, place(items), nest))
    kernel = rebuild(state.kernel, replace_stmt(rest, target, new))
    flow = prune_shared(kernel, state.flow)
    for x in (*loops_around(rest, target), target):
        flow = share_loop(kernel, flow, x.var, reads_of(flow, block.name))
    return Scheduled(kernel, flow)


def _nested(state: Scheduled, block: Block, match_: Alike, left: Stmt) -> Stmt:
    """The block in the loops that stay its own; of one that the tree without the block has still,
    around other blocks or a barrier, in a copy.
    """
    values, used, nest = dict(match_.values), set(names(state.kernel)), []
    staying = set(scope_of(s for s in statements(left) if isinstance(s, Loop | Delinearize)))
    for s in match_.rest:
        s = _with_bounds(s, values)
        if staying.intersection(scope_of((s,))):
            new = {v: fresh(f"{block.name}.{index_of(v)}", used) for v in scope_of((s,))}
            used.update(new.values())
            values.update({old: Var(name) for old, name in new.items()})
            s = _with_names(s, tuple(new.values()))
        nest.append(s)
    result: Stmt = substitute(block, values)
    for s in reversed(nest):
        result = replace(s, body=result)
    return result


def _with_bounds(s: Loop | Delinearize, values: dict[str, Expr]) -> Loop | Delinearize:
    match s:
        case Loop(_, lower, upper):
            return replace(s, lower=substitute(lower, values), upper=substitute(upper, values))
        case Delinearize(_, extents, value):
            new = tuple(substitute(e, values) for e in extents)
            return replace(s, extents=new, value=substitute(value, values))
        case _:
            assert_never(s)


def _with_names(s: Loop | Delinearize, new: tuple[str, ...]) -> Loop | Delinearize:
    return replace(s, var=new[0]) if isinstance(s, Loop) else replace(s, vars=new)
