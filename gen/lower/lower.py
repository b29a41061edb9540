"""A scheduled tree becomes one in which nothing is implied.

Input: the tree and flow of one variant, and the target. Output: an ordinary tree (it prints,
parses, interprets and proves as any) with explicit inits, temporaries of the least size in a scope
each, guards as bounds, Ifs and masks, and no loop that runs once. Blocks keep their names and the
numbers of their reads, so the flow stays true; copies of a loop keep its name.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from ..ir.algebra import FALSE, TRUE
from ..ir.inits import explicit_inits
from ..ir.nodes import (
    Allocate,
    Binary,
    BinaryOp,
    Block,
    Delinearize,
    If,
    Kernel,
    Loop,
    Seq,
    Stmt,
)
from ..ir.walk import blocks, loops, seq, substitute
from ..poly.certificate import Flow, Scheduled
from .affine import constant, tidy
from .bounds import hoist_guards, split_guards
from .edges import edge_tiles
from .storage import contract, place
from .target import Target
from .turns import turned_edges

PASSES: tuple[tuple[str, Callable[[Kernel], Kernel]], ...] = (
    ("explicit inits", explicit_inits),
    ("contract temporaries", contract),
    ("place temporaries", place),
    ("guards", split_guards),
    ("edges of tiles", edge_tiles),
    ("edges of turned tiles", turned_edges),
    ("guards around loops", hoist_guards),
    ("unit loops", lambda kernel: replace(kernel, body=fold_unit_loops(kernel.body))),
    ("simplify", lambda kernel: replace(kernel, body=simplify_bounds(kernel.body))),
)


def lower(state: Scheduled, target: Target) -> Scheduled:
    """The lowered tree and its certificate. What is lowered is alike on all levels: the number of
    lanes has been fixed by the recipe, for `target`.
    """
    del target
    kernel = state.kernel
    for _, run in PASSES:
        kernel = run(kernel)
    return Scheduled(kernel, _flow(state.flow, kernel))


def _flow(flow: Flow, kernel: Kernel) -> Flow:
    """The flow without the loops and blocks that are no longer there: those that never run."""
    names = {loop.var for loop in loops(kernel.body)}
    left = {block.name for block in blocks(kernel.body)}
    return {
        read: replace(
            source,
            shared=tuple(name for name in source.shared if name in names),
            writers=tuple(name for name in source.writers if name in left),
        )
        for read, source in flow.items()
    }


def fold_unit_loops(stmt: Stmt) -> Stmt:
    """Loops that run exactly once are their body; those that never run are gone."""
    match stmt:
        case Block():
            return stmt
        case Loop(var, lower, upper):
            trips = constant(tidy(Binary(BinaryOp.SUB, upper, lower)))
            if trips is not None and trips <= 0:
                return Seq(())
            body = fold_unit_loops(stmt.body)
            if trips == 1:
                return substitute(body, {var: lower})
            return replace(stmt, body=body)
        case Delinearize() | If() | Allocate():
            return replace(stmt, body=fold_unit_loops(stmt.body))
        case Seq(body_):
            return seq(tuple(fold_unit_loops(s) for s in body_))
        case _:
            assert_never(stmt)


def simplify_bounds(stmt: Stmt) -> Stmt:
    """Bounds and bindings with like terms gathered; nothing under a condition that never holds."""
    match stmt:
        case Block():
            return replace(stmt, bindings=tuple(tidy(b) for b in stmt.bindings))
        case Loop():
            return replace(
                stmt,
                lower=tidy(stmt.lower),
                upper=tidy(stmt.upper),
                body=simplify_bounds(stmt.body),
            )
        case Delinearize():
            return replace(stmt, value=tidy(stmt.value), body=simplify_bounds(stmt.body))
        case If(condition, body):
            if condition == FALSE:
                return Seq(())
            inner = simplify_bounds(body)
            return inner if condition == TRUE else replace(stmt, body=inner)
        case Allocate():
            return replace(stmt, body=simplify_bounds(stmt.body))
        case Seq(body_):
            return seq(tuple(simplify_bounds(s) for s in body_))
        case _:
            assert_never(stmt)
