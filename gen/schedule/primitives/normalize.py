"""normalize: a block in one loop for each of its iteration variables."""

from dataclasses import replace

from ...ir.algebra import add, conjunction, index, sub
from ...ir.index.bounds import at_most, highest, lowest
from ...ir.nodes import Block, Delinearize, Expr, Loop, Var
from ...ir.walk import ancestors, blocks, substitute
from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit import tree as edit
from ..edit.new_loops import predicate_at
from ..edit.tree import CannotApply
from ..examples import TWICE

ONE_COLUMN = """\
def one_column(m, x: float32[m, 1], y: Out[float32[m]]):
    for y.i in range(2, m + 2):
        with block("y", i=spatial(y.i - 2, m), j=reduction(0, 1), initialises=True):
            y[i] = combine.sum(y[i], x[i, j])
"""


class Normalize(Primitive):
    """Gives a block one serial loop for each of its iteration variables, from 0, in their order;
    without `block`, every block that has it otherwise.

    An iteration variable of one value gets a loop of one iteration, a reduction over one term, too;
    so does a block without iteration variables. What splits, fusions and reorders made of the loops
    is undone; a loop that holds other blocks, too, stays, and has to be one variable's from 0.
    """

    block: str | None = None

    aliases = ("normalize_prim_func",)

    def apply(self, state: Scheduled) -> Scheduled | Steps:
        if self.block is None:
            found = (b.name for b in blocks(edit.tree(state.kernel)) if not _is_normal(state, b))
            if steps := tuple(map(Normalize, found)):
                return steps
            raise CannotApply("every block has one loop for each iteration variable already")
        block = edit.block_named(state.kernel, self.block)
        if _is_normal(state, block):
            name = self.block
            raise CannotApply(f"block '{name}' has one loop for each iteration variable already")
        own = _own(state, block)
        new = edit.nest(*_normal(state, block))
        kernel = edit.replaced(state, own[0] if own else block, new).kernel
        anew = edit.rename_shared(state.flow, dict.fromkeys(edit.scope_of(own), ()))
        return Scheduled(kernel, anew)

    EXAMPLES = (
        Example(
            "From 0, and with a loop for the one term of the reduction",
            ONE_COLUMN,
            "- normalize: {}",
        ),
        Example(
            "A split undone",
            TWICE,
            "- split: {loop: y.i, factors: [null, 4]}\n- normalize: {block: y}",
        ),
        Example(
            "Nothing to do",
            TWICE,
            "- normalize: {}",
            refused="every block has one loop for each iteration variable already",
        ),
        Example(
            "A loop of two blocks that does not start at 0",
            TWICE,
            "- merge: {loops: [t.i, y.i]}\n- shift: {loop: t.i, by: 2}\n- normalize: {block: y}",
            refused="loop 't.i' holds other blocks, too, and is not one iteration variable of "
            "block 'y' from 0",
        ),
    )


def _own(state: Scheduled, block: Block) -> tuple[Loop | Delinearize, ...]:
    """The loops that hold nothing but the block, outermost first."""
    around = ancestors(edit.tree(state.kernel), block)
    return tuple(s for s in around if isinstance(s, Loop | Delinearize) and len(blocks(s)) == 1)


def _is_normal(state: Scheduled, block: Block) -> bool:
    """Whether the block has the loops that it would get."""
    own, kept = _own(state, block), _kept(state, block)
    if not block.iters:
        return [(x.lower, x.upper) for x in own if isinstance(x, Loop)] == [(index(0), index(1))]
    pairs = zip(block.iters, block.bindings, strict=True)
    wanted = [b for v, b in pairs if v.name not in kept]
    return len(own) == len(wanted) and all(
        isinstance(x, Loop) and x.lower == index(0) and b == Var(x.var)
        for x, b in zip(own, wanted, strict=True)
    )


def _kept(state: Scheduled, block: Block) -> dict[str, Expr]:
    """The iteration variables that loops of other blocks, too, bind."""
    around = ancestors(edit.tree(state.kernel), block)
    others = {v for s in around if len(blocks(s)) > 1 for v in edit.scope_of((s,))}
    pairs = zip(block.iters, block.bindings, strict=True)
    return {v.name: b for v, b in pairs if isinstance(b, Var) and b.name in others}


def _normal(state: Scheduled, block: Block) -> tuple[tuple[Loop, ...], Block]:
    """The loops that the block gets, and the block in them. Raises CannotApply."""
    around, kept = ancestors(edit.tree(state.kernel), block), _kept(state, block)
    for s in around:
        if isinstance(s, Loop) and len(blocks(s)) > 1 and not _is_one(s, block):
            raise CannotApply(
                f"loop '{s.var}' holds other blocks, too, and is not one iteration variable of "
                f"block '{block.name}' from 0",
                "fission or shift it first",
            )
        if isinstance(s, Loop) and len(blocks(s)) == 1:
            edit.require_serial(s)
    _require_whole(state, block, kept)
    values, loops = dict(kept), []
    used = set(edit.names(state.kernel)) - {
        v for s in _own(state, block) for v in edit.scope_of((s,))
    }
    for v in block.iters:
        if v.name in kept:
            continue
        lower, upper = substitute(v.lower, values), substitute(v.upper, values)
        loop = edit.serial_loop(
            edit.fresh(f"{block.name}.{v.name}", used), index(0), sub(upper, lower)
        )
        used.add(loop.var)
        loops.append(loop)
        values[v.name] = add(Var(loop.var), lower)
    if not block.iters:
        loops.append(edit.serial_loop(edit.fresh(f"{block.name}.unit", used), index(0), index(1)))
    others = {v for s in around if len(blocks(s)) > 1 for v in edit.scope_of((s,))}
    in_scope = frozenset({*others, *(x.var for x in loops)})
    predicate = conjunction(*predicate_at(block, values, in_scope))
    bindings = tuple(values[v.name] for v in block.iters)
    return tuple(loops), replace(block, bindings=bindings, predicate=predicate)


def _is_one(loop: Loop, block: Block) -> bool:
    """Whether the loop is one iteration variable's, from 0."""
    return loop.lower == index(0) and Var(loop.var) in block.bindings


def _require_whole(state: Scheduled, block: Block, kept: dict[str, Expr]) -> None:
    """Raises CannotApply where the loops may not run over all of the block's domain."""
    own = edit.ranges_of(_own(state, block))
    around = edit.ranges_of(ancestors(edit.tree(state.kernel), block))
    pairs = tuple(zip(block.iters, block.bindings, strict=True))
    values = {v.name: b for v, b in pairs}
    for v, b in pairs:
        if v.name in kept:
            continue
        first, last = lowest(b, own), highest(b, own)
        lower, upper = substitute(v.lower, values), substitute(v.upper, values)
        if first is None or last is None:
            raise _in_part(block, v.name)
        if not (at_most(first, lower, around) and at_most(upper, add(last, 1), around)):
            raise _in_part(block, v.name)


def _in_part(block: Block, name: str) -> CannotApply:
    return CannotApply(
        f"the loops of block '{block.name}' may not run over all values of '{name}'",
        "normalize before taking the loops apart",
    )
