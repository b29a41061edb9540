"""Loops over all that a condition on data may let through run over what it does.

Input: a lowered tree in which blocks are in the loops' variables. Output: the tree in which a
serial loop that only combines `value if condition else identity` into places, or stores `value if
condition else` what the place holds, runs from where the condition can begin to hold to where it
ceases to, as far as it compares the loop's variable. So `sum(... for k in range(start[i], start[i +
1]))`, which is a sum over all k, reads one row, `count[x[i]] += 1`, which is an update for all
places, makes one, and `if i == p[k]: a[i, j] = 0` writes a row. It runs after the last proof: what
it leaves out would have combined the identity or changed nothing, and what the bounds do not say of
the condition stays where it is. A bound is read even where the loop then runs nothing, so where its
place may lie outside the array it is looked at first: by the proof no iteration reads there, so
there is none. All of that is checked of what comes of it (`poly/rewrites/narrowed.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

from ..ir import nodes as ir
from ..ir.algebra import (
    TRUE,
    ceildiv,
    conjunction,
    conjuncts,
    floordiv,
    maximum,
    minimum,
)
from ..ir.index.facts import Facts, map_inside
from ..ir.index.inequalities import inequalities, least
from ..ir.index.linear import Linear, linear
from ..ir.types import INDEX
from ..ir.walk import blocks, loads, loops, map_children, statements, targets, walk
from ..ir.wrapping import is_small
from ..poly.rewrites.narrowed import FAR, effective_where

Shapes = Mapping[str, tuple[ir.Expr, ...]]


def narrow(stmt: ir.Stmt, facts: Facts, shapes: Shapes) -> ir.Stmt:
    """The tree. Inner loops come first: what their bounds say needs no condition further out.

    facts: what holds around it; shapes: of all arrays.
    """
    new = map_inside(stmt, facts, lambda s, inside: narrow(s, inside, shapes))
    if isinstance(new, ir.Loop) and new.kind is ir.LoopKind.SERIAL:
        return _narrowed(new, facts, shapes)
    return new


def _narrowed(loop: ir.Loop, facts: Facts, shapes: Shapes) -> ir.Stmt:
    body = blocks(loop.body)
    if not body or any(isinstance(n, ir.Barrier | ir.Transfer) for n in statements(loop.body)):
        return loop  # all threads and ranks come to these
    condition = effective_where(body[0])
    if condition is None or any(effective_where(block) != condition for block in body):
        return loop
    written = {t.buffer for block in body for t in targets(block.body)}
    left: list[ir.Expr] = []
    read: list[ir.Expr] = []
    for part in conjuncts(condition):
        forms = inequalities(part) if loads(part) else None
        if forms is None or written & {read.buffer for read in loads(part)}:
            left.append(part)
            continue
        bounds = [_bound(form, loop) for form in forms]
        for bound in bounds:
            if bound is not None:
                loop = bound.on(loop)
                read.append(bound.rest.expr())
        if not all(bound is not None and bound.exact for bound in bounds):
            left.append(part)
    new = replace(loop, body=_with_condition(loop.body, conjunction(*left)))
    inside = [c for rest in read for c in _inside(rest, facts, shapes)]
    return ir.If(conjunction(*dict.fromkeys(inside)), new) if inside else new


def _inside(expr: ir.Expr, facts: Facts, shapes: Shapes) -> Iterator[ir.Expr]:
    """That what it reads is in the arrays, as far as that is not known; what has to hold for the
    next comparison to be made comes first.
    """
    for load in reversed(loads(expr)):
        for i, extent in zip(load.indices, shapes[load.buffer], strict=True):
            if not facts.holds(linear(i)):
                yield ir.Binary(ir.BinaryOp.GE, i, ir.Const(0, INDEX))
            if not facts.holds(linear(extent) - linear(i) - 1):
                yield ir.Binary(ir.BinaryOp.LT, i, extent)


def _with_condition(stmt: ir.Stmt, condition: ir.Expr) -> ir.Stmt:
    """The statement with another condition in its blocks."""
    if not isinstance(stmt, ir.Block):
        return map_children(stmt, lambda s: _with_condition(s, condition))

    def chosen(value: ir.Expr) -> ir.Expr:
        if condition == TRUE and isinstance(value, ir.Select):
            return value.then
        return replace(value, condition=condition) if isinstance(value, ir.Select) else value

    match stmt.body:
        case ir.Store(_, value) as body:
            return replace(stmt, body=replace(body, value=chosen(value)))
        case ir.Update(values=values) as body:
            return replace(stmt, body=replace(body, values=tuple(map(chosen, values))))
        case _:
            return stmt


@final
@dataclass(frozen=True, slots=True)
class _Bound:
    """by * variable + rest is at least 0 wherever the condition holds; exact: and nowhere else."""

    by: int
    rest: Linear
    exact: bool

    def on(self, loop: ir.Loop) -> ir.Loop:
        if self.by > 0:  # variable >= -rest / by, rounded up
            least_ = ceildiv((self.rest * -1).expr(), self.by)
            return replace(loop, lower=maximum(loop.lower, least_))
        quotient = linear(floordiv(self.rest.expr(), -self.by))
        return replace(loop, upper=minimum(loop.upper, (quotient + 1).expr()))


def _bound(form: Linear, loop: ir.Loop) -> _Bound | None:
    """What `form` being at least 0 says of the loop's variable, whatever those of inner loops are;
    None where that is not known before the loop starts.
    """
    by = form.coefficient(loop.var)
    inner = tuple((i.var, linear(i.lower), linear(i.upper) - 1) for i in loops(loop.body))
    smallest = least(form.without(ir.Var(loop.var)) * -1, inner)
    if not by or smallest is None:
        return None
    rest = _held(smallest * -1)
    if rest is None or rest.variables() & {loop.var, *_bound_in(loop.body)}:
        return None
    return _Bound(by, rest, abs(by) == 1 and not form.variables() & {i[0] for i in inner})


def _bound_in(stmt: ir.Stmt) -> frozenset[str]:
    """The variables that are bound inside."""
    of_loops = (i.var for i in loops(stmt))
    of_parts = (v for n in statements(stmt) if isinstance(n, ir.Delinearize) for v in n.vars)
    return frozenset((*of_loops, *of_parts))


def _held(form: Linear) -> Linear | None:
    """The form, what is read from memory held between -FAR and FAR so that nothing overflows; None
    where that could change it: one large number can be held, several cannot.
    """
    read = {atom: by for atom, by in form.terms.items() if loads(atom)}
    if any(isinstance(n, ir.Select) for atom in read for n in walk(atom)):
        return None
    large = {atom: by for atom, by in read.items() if not is_small(atom)}
    if any(abs(by) > 4 for by in read.values()) or [*large.values()] not in ([], [1], [-1]):
        return None
    held = {maximum(minimum(atom, FAR), -FAR): by for atom, by in large.items()}
    return form - Linear(large) + Linear(held)
