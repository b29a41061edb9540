"""Loops are left once nothing in them has an effect.

Input: a lowered tree in which blocks are in the loops' variables. Output: the tree in which a
serial loop ends behind the block that writes its flag (`language.body.leaving`), where that is 0;
and in which what follows asks no longer, unless the lanes of vectors are left together. A loop
that a schedule took so far apart that it may not be left for one flag stays as it is. It runs after
the last proof; what comes of it is checked (`poly.rewrites.left`).
"""

from dataclasses import replace

from ..ir import nodes as ir
from ..ir.algebra import conjunction, conjuncts
from ..ir.walk import map_nested
from ..poly.rewrites.left import Around, flag_of, lightened, unjustified


def leave_early(kernel: ir.Kernel) -> ir.Kernel:
    return replace(kernel, body=_visit(kernel.body, Around()))


def _visit(stmt: ir.Stmt, place: Around) -> ir.Stmt:
    match stmt:
        case ir.Block():
            return lightened(stmt, place)
        case ir.Seq(body):
            return ir.Seq(_in_order(body, place))
        case ir.Loop(body=ir.Block() as alone):
            inside = place.inside(stmt)
            return replace(stmt, body=ir.Seq(_in_order((alone,), inside)))
        case _:
            return map_nested(stmt, lambda s: _visit(s, place.inside(stmt)))


def _in_order(body: tuple[ir.Stmt, ...], place: Around) -> tuple[ir.Stmt, ...]:
    found: list[ir.Stmt] = []
    for stmt in body:
        found.append(_visit(stmt, place))
        place = place.after(stmt)
        flag = flag_of(stmt) if isinstance(stmt, ir.Block) else None
        if flag is None or not isinstance(stmt, ir.Block):
            continue
        leave = ir.Leave(conjunction(*conjuncts(stmt.predicate), flag), span=stmt.span)
        if unjustified(leave, stmt, place) is None:
            found.append(leave)
            place = place.after(leave)
    return tuple(found)
