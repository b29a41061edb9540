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
from ..poly.rewrites.left import Left, flag_of, lightened, setter_in, unjustified


def leave_early(kernel: ir.Kernel) -> ir.Kernel:
    return replace(kernel, body=_visit(kernel.body, Left()))


def _visit(stmt: ir.Stmt, place: Left) -> ir.Stmt:
    match stmt:
        case ir.Block():
            return lightened(stmt, place)
        case ir.Seq(body):
            return _in_order(stmt, body, place)
        case ir.Loop(body=ir.Block() as alone):
            made = _in_order(alone, (alone,), place.inside(stmt))
            return stmt if made is alone else replace(stmt, body=made)
        case _:
            return map_nested(stmt, lambda s: _visit(s, place.inside(stmt)))


def _in_order(stmt: ir.Stmt, body: tuple[ir.Stmt, ...], place: Left) -> ir.Stmt:
    """The statement, which runs those of `body`; as it is where nothing changes."""
    found: list[ir.Stmt] = []
    for part in body:
        found.append(_visit(part, place))
        place = place.after(part)
        setter = setter_in(part)
        flag = setter and flag_of(setter)
        if setter is None or flag is None:
            continue
        leave = ir.Leave(conjunction(*conjuncts(setter.predicate), flag), span=setter.span)
        if unjustified(leave, part, place) is None:
            found.append(leave)
            place = place.after(leave)
    same = len(found) == len(body) and all(a is b for a, b in zip(found, body, strict=True))
    return stmt if same else ir.Seq(tuple(found))
