"""Does a loop that is left early do what it did before?

Input: a proved tree, and the same with statements that leave loops. Output: nothing; raises Refused
where the two may differ. What a loop is left for is a flag, an element of integers that is 0. That
changes nothing if

- each write of the flag's array in the loop keeps what is 0: `flag = flag != 0 and ...`;
- each other statement in the loop, where the flag is 0, stores what is there already, or combines
  the identity; or it writes what nothing reads once the loop is left: a temporary that lives no
  longer than an iteration, or that nothing outside of the loop uses;
- the flag is the same in all of the loop, and has just been written by the thread that reads it.

So no iteration after the first in which the flag is 0 does anything, for all sizes and all data.
What stands after the leaving may say less: there the flag is not 0. That is so of no lane of a
vectorized loop around, as those that are done go along with the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

from ...ir import nodes as ir
from ...ir.algebra import TRUE, conjunction, conjuncts, index
from ...ir.launch import launches
from ...ir.text.print_expr import expr_to_text
from ...ir.types import DType
from ...ir.walk import blocks, loads, statements, targets, variables, walk
from ..witness import Refused
from .narrowed import condition_of

_Loop = ir.Loop | ir.Delinearize


@final
@dataclass(frozen=True, slots=True)
class Left:
    """What is around a statement that may be left.

    loops: outermost first; the last is the one that may be left here. made: of each temporary, its
    Allocate, and how many loops are around that. on: flags that are known not to be 0.
    """

    loops: tuple[_Loop, ...] = ()
    made: Mapping[str, tuple[ir.Allocate, int]] = field(default_factory=dict)
    on: tuple[ir.Expr, ...] = ()

    def inside(self, stmt: ir.Stmt) -> "Left":
        match stmt:
            case ir.Loop() | ir.Delinearize():
                written = {t.buffer for b in blocks(stmt) for t in targets(b.body)}
                on = tuple(f for f in self.on if not written & {x.buffer for x in loads(f)})
                return replace(self, loops=(*self.loops, stmt), on=on)
            case ir.Allocate(buffers):
                new = {b.name: (stmt, len(self.loops)) for b in buffers}
                return replace(self, made={**self.made, **new})
            case _:
                return self

    def after(self, stmt: ir.Stmt) -> "Left":
        """Left what follows the statement in a sequence."""
        match stmt:
            case ir.Leave(condition) if self.at_once:
                return replace(self, on=(*self.on, conjuncts(condition)[-1]))
            case _:
                written = {t.buffer for b in blocks(stmt) for t in targets(b.body)}
                on = tuple(f for f in self.on if not written & {x.buffer for x in loads(f)})
                return replace(self, on=on)

    @property
    def at_once(self) -> bool:
        """Whether code leaves the loop where the flag is off, and never goes on: as it does until
        all lanes of a vectorized loop around are done, and where nobody can say what a GPU's memory
        holds.
        """
        *outer, loop = self.loops
        kinds = (around.kind for around in outer if isinstance(around, ir.Loop))
        return ir.LoopKind.VECTORIZED not in kinds and (self.launched or not [*launches(loop)])

    def scope(self, buffer: str) -> ir.Scope:
        """Where an array lives."""
        found = self.made[buffer][0].buffers if buffer in self.made else ()
        return next((b.scope for b in found if b.name == buffer), ir.Scope.GLOBAL)

    @property
    def launched(self) -> bool:
        return any(isinstance(loop, ir.Loop) and loop.kind.is_bound for loop in self.loops)


def check_left(before: ir.Kernel, after: ir.Kernel) -> None:
    """Returns if the trees do the same. Raises Refused, naming the loop or block that does not."""
    _check(before.body, after.body, Left())


def _check(old: ir.Stmt, new: ir.Stmt, place: Left) -> None:
    if old is new:
        return
    match old, new:
        case ir.Block(), ir.Block():
            if new not in (old, lightened(old, place)):
                raise Refused(f"block '{old.name}': left early, it does more", span=old.span)
        case _, ir.Seq(theirs):
            ours = list(old.body if isinstance(old, ir.Seq) else (old,))
            before: ir.Stmt | None = None
            for stmt in theirs:
                if isinstance(stmt, ir.Leave):
                    if (reason := unjustified(stmt, before, place)) is not None:
                        raise Refused(reason, span=old.span)
                elif not ours:
                    raise Refused("there is another statement where a loop is left", span=old.span)
                else:
                    before = ours.pop(0)
                    _check(before, stmt, place)
                place = place.after(stmt)
            if ours:
                raise Refused("a statement is gone where a loop is left", span=old.span)
        case (
            (ir.Loop() | ir.Delinearize() | ir.If() | ir.Allocate()) as a,
            (ir.Loop() | ir.Delinearize() | ir.If() | ir.Allocate()) as b,
        ) if replace(a, body=b.body) == b:
            _check(a.body, b.body, place.inside(a))
        case _ if old != new:
            raise Refused("leaving a loop made another statement", span=old.span)


# ---------------------------------------------------------------- why it is right


def unjustified(leave: ir.Leave, before: ir.Stmt | None, place: Left) -> str | None:
    """Why the loop around may not be left there, behind the statement `before`; None where it may:
    a guard of the block that writes the flag, and that the flag is not 0.
    """
    loop = place.loops[-1] if place.loops else None
    if not isinstance(loop, ir.Loop) or loop.kind is not ir.LoopKind.SERIAL:
        return "no serial loop is around what leaves one"
    *guards, on = conjuncts(leave.condition)
    setter = setter_in(before)
    flag = setter and flag_of(setter)
    if setter is None or flag is None or on != flag:
        return f"loop '{loop.var}': what it is left for is no flag that was just written"
    if tuple(guards) != _guards(setter) or any(map(loads, guards)):
        return f"loop '{loop.var}': its flag is not always written where it is read"
    inside = {n.var for n in statements(loop) if isinstance(n, ir.Loop)}
    inside |= {v for n in statements(loop) if isinstance(n, ir.Delinearize) for v in n.vars}
    if variables(leave.condition) & inside:
        return f"loop '{loop.var}': its flag is another one in each iteration"
    waits = (ir.Barrier, ir.Transfer) if place.launched else (ir.Transfer,)
    if any(isinstance(n, waits) for n in statements(loop.body)):
        return f"loop '{loop.var}': others wait for what is in it"
    (written,) = {x.buffer for x in loads(flag)}
    if place.launched and place.scope(written) is not ir.Scope.LOCAL:
        return f"loop '{loop.var}': its flag is not each thread's own"
    if before is not setter and (guards or place.scope(written) is not ir.Scope.DEVICE):
        return f"loop '{loop.var}': its flag is in no memory of a GPU that can be asked for it"
    for block in blocks(loop.body):
        if not _changes_nothing(block, flag, tuple(guards), loop, place):
            off = expr_to_text(ir.Unary(ir.UnaryOp.NOT, flag))
            return f"loop '{loop.var}': block '{block.name}' has an effect where {off}"
    return None


def setter_in(stmt: ir.Stmt | None) -> ir.Block | None:
    """The block that the statement is, or that is all of a launch of one thread."""
    match stmt:
        case ir.Block():
            return stmt
        case ir.Seq((one,)):
            return setter_in(one)
        case ir.Loop(_, lower, upper, kind, body) if kind.is_bound:
            return setter_in(body) if (lower, upper) == (index(0), index(1)) else None
        case _:
            return None


def flag_of(block: ir.Block) -> ir.Expr | None:
    """`flag != 0`, where the block keeps the flag 0 if it is; None where it does not. Blocks are in
    the loops' variables.
    """
    match block:
        case ir.Block(
            iters=(),
            body=ir.Store(place, ir.Cast(DType.INT32, ir.Binary(ir.BinaryOp.AND) as value)),
        ):
            match first := conjuncts(value)[0]:
                case ir.Binary(ir.BinaryOp.NE, ir.Load(indices=at) as load, ir.Const(0)) if _is_of(
                    load, place
                ) and not any(map(loads, at)):
                    return first
    return None


def _changes_nothing(
    block: ir.Block,
    flag: ir.Expr,
    guards: tuple[ir.Expr, ...],
    loop: ir.Loop,
    place: Left,
) -> bool:
    """Whether the block does nothing that is seen after the loop, where the flag is 0 or one of the
    guards does not hold.
    """
    written = {t.buffer for t in targets(block.body)}
    if written & {x.buffer for x in loads(flag)}:
        if flag_of(block) is None:
            return False
    elif all(_unseen(buffer, loop, place) for buffer in written):
        return True
    elif lightened(block, replace(place, on=(flag,))) == block:
        return False
    return set(guards) <= set(_guards(block))


def _unseen(buffer: str, loop: ir.Loop, place: Left) -> bool:
    """Whether nothing reads the array's values once the loop is left."""
    within = (n for n in statements(loop) if isinstance(n, ir.Allocate))
    if any(b.name == buffer for n in within for b in n.buffers):
        return True
    if buffer not in place.made:
        return False
    allocate, outside = place.made[buffer]
    uses = _uses(loop, buffer)
    return len(uses) == len(_uses(allocate, buffer)) and all(
        _apart(between, uses) for between in place.loops[outside:-1]
    )


def _uses(stmt: ir.Stmt, buffer: str) -> list[ir.Load | ir.Destination]:
    accesses = (n for n in walk(stmt) if isinstance(n, ir.Load | ir.Destination))
    return [n for n in accesses if n.buffer == buffer]


def _apart(loop: _Loop, uses: Sequence[ir.Load | ir.Destination]) -> bool:
    """Whether no iteration of the loop uses what another one left: none depends on another, or each
    has elements of its own.
    """
    if isinstance(loop, ir.Loop) and (loop.kind.is_unordered or loop.kind.is_bound):
        return True
    names = (loop.var,) if isinstance(loop, ir.Loop) else loop.vars
    axes = range(min(len(use.indices) for use in uses))
    return all(
        any(all(use.indices[axis] == ir.Var(name) for use in uses) for axis in axes)
        for name in names
    )


def lightened(block: ir.Block, place: Left) -> ir.Block:
    """The block where flags are on: without the question for them."""
    for flag in place.on:
        block = _lightened(block, flag)
    return block


def _lightened(block: ir.Block, flag: ir.Expr) -> ir.Block:
    match block:
        case ir.Block(iters=(_, *_)):
            return block
        case ir.Block(body=ir.Store(target, value) as body):
            taken = _taken(value, flag, target)
            return block if taken is value else replace(block, body=replace(body, value=taken))
        case ir.Block(body=ir.Update(values=values) as body):
            condition = condition_of(block)
            if condition is None or flag not in conjuncts(condition):
                return block
            rest = conjunction(*(c for c in conjuncts(condition) if c != flag))
            left = (
                v.then if rest == TRUE else replace(v, condition=rest)
                for v in values
                if isinstance(v, ir.Select)
            )
            return replace(block, body=replace(body, values=tuple(left)))
        case _:
            return block


def _taken(value: ir.Expr, flag: ir.Expr, target: ir.Destination) -> ir.Expr:
    """What is stored where the flag is on; the value itself, where that is not the only place."""
    match value:
        case ir.Select(condition, then, ir.Load() as kept) if condition == flag and _is_of(
            kept, target
        ):
            return then
        case ir.Cast(dtype, ir.Select(condition, then, ir.Cast(_, ir.Load() as kept))) if (
            dtype.only_stores and condition == flag and _is_of(kept, target)
        ):
            return replace(value, operand=then)
        case _:
            return value


def _is_of(load: ir.Load, place: ir.Destination) -> bool:
    """Whether a load is of the place that is written."""
    return (load.buffer, load.indices) == (place.buffer, place.indices)


def _guards(block: ir.Block) -> tuple[ir.Expr, ...]:
    return conjuncts(block.predicate)
