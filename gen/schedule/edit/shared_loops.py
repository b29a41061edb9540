"""Which loops a read shares with its writer, read off their places.

Input: a tree and a flow. Output: the flow with a loop added to `shared` wherever reader and writer
name the same place only in the same iteration of it. A stronger claim, and so one that the
prover checks; it lets the temporary live inside the loop.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import final

from ...ir.index.bounds import highest, lowest
from ...ir.index.linear import Linear, constant, linear
from ...ir.nodes import Block, Expr, Kernel, Stmt, Var
from ...ir.walk import ancestors, blocks, loads, nests, substitute, targets
from ...poly.certificate import Flow, Source
from .tree import ranges_of, tree


def reads_of(flow: Flow, block: str) -> frozenset[tuple[str, int]]:
    """The reads that a block makes, or that take its values: what changes where it moves."""
    return frozenset(read for read, source in flow.items() if block in (read[0], *source.writers))


def share_loop(kernel: Kernel, flow: Flow, var: str, reads: Collection[tuple[str, int]]) -> Flow:
    """The flow with `var` shared by those of the reads that can take their value in its iteration
    alone. The others keep what they have: their temporaries may live longer on purpose.
    """
    root = tree(kernel)
    by_name = {b.name: b for b in blocks(root)}
    around = {b.name: tuple(x.var for x in loops) for b, loops in nests(root)}

    def with_loop(reader: str, number: int, source: Source) -> Source:
        everyone = (reader, *source.writers)
        inside = all(var in around[name] for name in everyone)
        if source.initial or not source.writers or not inside or var in source.shared:
            return source
        load = loads(by_name[reader].body)[number]
        read = _spans(root, by_name[reader], load.indices, var, source.shared)
        writers = (by_name[name] for name in source.writers)
        if all(
            _fixes(read, _written(root, w, load.buffer, var, source.shared), var) for w in writers
        ):
            return replace(source, shared=(*source.shared, var))
        return source

    return {r: with_loop(*r, source) if r in reads else source for r, source in flow.items()}


def in_loops(block: Block, indices: Iterable[Expr]) -> tuple[Expr, ...]:
    """Indices in a block's iteration variables, in the variables of its loops."""
    values = {v.name: b for v, b in zip(block.iters, block.bindings, strict=True)}
    return tuple(substitute(i, values) for i in indices)


@final
@dataclass(frozen=True, slots=True)
class _Span:
    """An index `base + r` with `first <= r <= last`; `base` has shared loops and `var` alone."""

    base: Linear
    first: int
    last: int


def _spans(
    root: Stmt, block: Block, indices: tuple[Expr, ...], var: str, shared: tuple[str, ...]
) -> tuple[_Span | None, ...]:
    """The indices' spans; None for one that no loops of constant size make up."""
    ranges = ranges_of(ancestors(root, block))
    fixed = {Var(name) for name in (var, *shared)}

    def span(form: Linear) -> _Span | None:
        base = Linear({a: c for a, c in form.terms.items() if a in fixed})
        rest = (form - base).expr()
        low, high = lowest(rest, ranges), highest(rest, ranges)
        first, last = (None if end is None else constant(end) for end in (low, high))
        return None if first is None or last is None else _Span(base, first, last)

    return tuple(span(linear(i)) for i in in_loops(block, indices))


def _written(
    root: Stmt, writer: Block, buffer: str, var: str, shared: tuple[str, ...]
) -> tuple[_Span | None, ...]:
    places = (t.indices for t in targets(writer.body) if t.buffer == buffer)
    return _spans(root, writer, next(places, ()), var, shared)


def _fixes(read: tuple[_Span | None, ...], written: tuple[_Span | None, ...], var: str) -> bool:
    """Whether some axis has one tile an iteration of `var`, the same in both, and the tiles of two
    iterations do not meet.
    """

    def apart(a: _Span | None, b: _Span | None) -> bool:
        if a is None or b is None or a.base != b.base:
            return False
        step = abs(a.base.terms.get(Var(var), 0))
        return max(a.last - b.first, b.last - a.first) < step

    return any(apart(a, b) for a, b in zip(read, written, strict=False))
