"""transform_block_layout: a block over another iteration space."""

from dataclasses import dataclass, replace
from typing import final

from ...ir.algebra import add, conjunction, sub
from ...ir.index.bounds import LoopRange, highest, lowest, normal
from ...ir.index.linear import linear, same
from ...ir.nodes import Block, Const, Expr, IterKind, IterVar, Loop, Origin, Var
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import ancestors, substitute, variables
from ...poly.certificate import Scheduled
from ...poly.queries.inverse import NoInverse, inverse
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.new_loops import within
from ..edit.tree import CannotApply
from ..examples import ROW_SUM, SCALE, TWICE
from ..formula import formulas, sizes


class TransformBlockLayout(Primitive):
    """Gives a block other iteration variables, and loops over them in place of its own: `indices`
    says what they are in the old ones, by an affine map that can be undone.

    `"j, i"` exchanges, `"i // 4, i % 4"` splits, `"8*i + j"` joins where j is below 8, `"i, j - i"`
    skews, and leaving out a variable that has one value drops it. A map in isl's notation is taken,
    too. Unlike `split` and `reorder` the block is not told the old variables any more: this is
    TVM's transform_block_layout, which makes blocks of other kernels look alike. A new variable is
    made of spatial ones or of reduction ones, not of both. `as` names the new variables; one that
    is an old one keeps its name.
    """

    block: str
    indices: str
    as_: tuple[str, ...] = ()

    def apply(self, state: Scheduled) -> Scheduled:
        block = edit.block_named(state.kernel, self.block)
        space, own = self._space(state, block), self._loops(state, block)
        if block.initialises and all(v.kind is IterKind.SPATIAL for v in space.iters):
            raise CannotApply(
                f"no reduction variable of block '{self.block}' would be left",
                "decompose_reduction writes its init out",
            )
        loops = [edit.serial_loop(f"{block.name}.{v.name}", v.lower, v.upper) for v in space.iters]
        edit.require_free_loops(state.kernel, (x.var for x in loops), [x.var for x in own])
        outside = {v.name: Var(f"{block.name}.{v.name}") for v in space.iters}
        new = edit.nest(loops, _transformed(block, space, outside))
        kernel = edit.replaced(state, own[0] if own else block, new).kernel
        anew = edit.rename_shared(state.flow, dict.fromkeys(edit.scope_of(own), ()))
        return Scheduled(kernel, anew)

    def _loops(self, state: Scheduled, block: Block) -> tuple[Loop, ...]:
        """The block's own loops, outermost first: those that give its variables their values."""
        values = [b for b in block.bindings if not isinstance(b, Const)]
        loops: list[Loop] = []
        for stmt in reversed(ancestors(edit.tree(state.kernel), block)):
            if len(loops) == len(values) or not isinstance(stmt, Loop):
                break
            edit.require_serial(stmt)
            if stmt.annotations:
                raise CannotApply(f"loop '{stmt.var}' is annotated already")
            loops.append(stmt)
        pairs = tuple(zip(block.iters, block.bindings, strict=True))
        own = {v.name: b for v, b in pairs}
        for v, b in pairs:
            if isinstance(b, Const):
                continue
            loop = next((x for x in loops if b == Var(x.var)), None)
            if loop is None:
                raise CannotApply(
                    f"'{v.name}' of block '{self.block}' is `{expr_to_text(b)}`, which is not a "
                    "loop of the block's own",
                    "do this before the block's loops are split, fused or moved",
                )
            ends = zip((v.lower, v.upper), (loop.lower, loop.upper), strict=True)
            if not all(same(substitute(a, own), b) for a, b in ends):
                raise CannotApply(f"loop '{loop.var}' runs over a part of '{v.name}'")
        return tuple(reversed(loops))

    def _space(self, state: Scheduled, block: Block) -> "_Space":
        """The new variables, and the old ones in them."""
        old = [v.name for v in block.iters]
        places = formulas(self.indices, old, sizes(state.kernel))
        names = self._names(state, places)
        kinds = {v.name: v.kind for v in block.iters}
        ranges = [LoopRange(v.name, v.lower, sub(v.upper, 1)) for v in block.iters]
        iters = []
        for name, place in zip(names, places, strict=True):
            used = {kinds[v] for v in variables(place) if v in kinds}
            if len(used) > 1:
                raise CannotApply(
                    f"`{expr_to_text(place)}` is of spatial and of reduction variables"
                )
            low, high = lowest(place, ranges), highest(place, ranges)
            if low is None or high is None:
                raise CannotApply(f"`{expr_to_text(place)}` is not affine, or has no bounds")
            kind = used.pop() if used else IterKind.SPATIAL
            iters.append(IterVar(name, normal(low), normal(add(high, 1)), kind))
        try:
            back = inverse(state.kernel, block.iters, places, iters)
        except NoInverse as no:
            raise CannotApply(no.reason) from None
        values = dict(zip(old, (linear(e).expr() for e in back), strict=True))
        return _Space(tuple(iters), values)

    def _names(self, state: Scheduled, places: tuple[Expr, ...]) -> tuple[str, ...]:
        if self.as_:
            if len(self.as_) != len(places) or len(set(self.as_)) < len(self.as_):
                raise CannotApply(f"`as` must give {len(places)} names")
            return self.as_
        names: list[str] = []
        for k, place in enumerate(places):
            wanted = place.name if isinstance(place, Var) else f"d{k}"
            names.append(edit.local_name(state.kernel, wanted, names))
        return tuple(names)

    EXAMPLES = (
        Example(
            "In fours",
            TWICE,
            '- transform_block_layout: {block: y, indices: "i // 4, i % 4", as: [o, l]}',
        ),
        Example(
            "Columns first, by a map in isl's notation",
            SCALE,
            '- transform_block_layout: {block: y, indices: "{ [i, j] -> [j, i - j] }", as: [j, d]}',
        ),
        Example(
            "Two instances in one",
            SCALE,
            '- transform_block_layout: {block: y, indices: "i + j"}',
            refused="two instances have one place in the new space",
        ),
        Example(
            "Every other place",
            TWICE,
            '- transform_block_layout: {block: y, indices: "2*i"}',
            refused="the new space has places between those of the instances",
        ),
        Example(
            "Rows and terms in one variable",
            ROW_SUM,
            '- transform_block_layout: {block: y, indices: "i, j - i"}',
            refused="`j - i` is of spatial and of reduction variables",
        ),
    )


@final
@dataclass(frozen=True)
class _Space:
    """A block's new iteration variables, and the old ones as expressions over them."""

    iters: tuple[IterVar, ...]
    values: dict[str, Expr]

    def guards(self, old: tuple[IterVar, ...]) -> tuple[Expr, ...]:
        """The conditions under which a point of the new box is one of the old domain."""
        ranges = tuple(LoopRange(v.name, v.lower, sub(v.upper, 1)) for v in self.iters)
        found: list[Expr] = []
        for v in old:
            value = self.values[v.name]
            lower, upper = substitute(v.lower, self.values), substitute(v.upper, self.values)
            found += within(value, (lower,), (upper,), ranges)
        return tuple(found)


def _transformed(block: Block, space: _Space, outside: dict[str, Var]) -> Block:
    """The block over the new variables. outside: its loops' names for them."""
    at = zip(block.iters, block.bindings, strict=True)
    loops = {b.name: substitute(space.values[v.name], outside) for v, b in at if isinstance(b, Var)}
    origin = block.origin
    guards = (substitute(guard, outside) for guard in space.guards(block.iters))
    return replace(
        block,
        iters=space.iters,
        bindings=tuple(outside[v.name] for v in space.iters),
        predicate=conjunction(substitute(block.predicate, loops), *guards),
        body=substitute(block.body, space.values),
        origin=origin
        and Origin(origin.block, tuple(substitute(e, space.values) for e in origin.at)),
    )
