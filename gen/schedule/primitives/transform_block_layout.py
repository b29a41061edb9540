"""transform_block_layout: a block over another iteration space."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.algebra import add, conjunction, less, sub
from ...ir.index.bounds import Range, at_most, highest, lowest, normal
from ...ir.index.linear import linear, same
from ...ir.nodes import (
    Binary,
    BinaryOp,
    Block,
    Const,
    Expr,
    IterKind,
    IterVar,
    Loop,
    Origin,
    Stmt,
    Var,
)
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import ancestors, replace_stmt, substitute, variables
from ...poly.certificate import Scheduled
from ...poly.queries.inverse import NoInverse, inverse
from ..base import Example, Layer, Primitive
from ..edit.tree import (
    CannotApply,
    block_named,
    local_name,
    nest,
    prune_shared,
    rebuild,
    rename_shared,
    scope_of,
    serial,
    serial_loop,
    taken_loops,
    tree,
)
from ..examples import ROW_SUM, SCALE, TWICE
from ..formula import formulas, sizes


@final
@dataclass(frozen=True)
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

    name: ClassVar[str] = "transform_block_layout"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "In fours",
            TWICE,
            '- transform_block_layout: {block: y, indices: "i // 4, i % 4", as: [o, l]}',
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.o in range((n + 3) // 4):
            for y.l in range(4):
                with block(
                    "y",
                    o=spatial(y.o),
                    l=spatial(y.l),
                    where=y.o * 4 + y.l < n,
                    origin=y[o * 4 + l],
                ):
                    y[o * 4 + l] = t[o * 4 + l] + 1.0
""",
        ),
        Example(
            "Columns first, by a map in isl's notation",
            SCALE,
            '- transform_block_layout: {block: y, indices: "{ [i, j] -> [j, i - j] }", as: [j, d]}',
            after="""\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.j in range(n):
        for y.d in range(0 - n + 1, m):
            with block(
                "y",
                j=spatial(y.j),
                d=spatial(y.d),
                where=0 <= y.j + y.d and y.j + y.d < m,
                origin=y[j + d, j],
            ):
                y[j + d, j] = x[j + d, j] * 2.0
""",
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

    def check(self, state: Scheduled) -> str | None:
        block = block_named(state.kernel, self.block)
        new = self._space(state, block)
        if block.initialises and all(v.kind is IterKind.SPATIAL for v in new.iters):
            raise CannotApply(
                f"no reduction variable of block '{self.block}' would be left",
                "decompose_reduction writes its init out",
            )
        own = [loop.var for loop in self._loops(state, block)]
        return taken_loops(state.kernel, (f"{block.name}.{v.name}" for v in new.iters), own)

    def _loops(self, state: Scheduled, block: Block) -> tuple[Loop, ...]:
        """The block's own loops, outermost first: those that give its variables their values."""
        values = [b for b in block.bindings if not isinstance(b, Const)]
        loops: list[Loop] = []
        for stmt in reversed(ancestors(tree(state.kernel), block)):
            if len(loops) == len(values) or not isinstance(stmt, Loop):
                break
            if reason := serial(stmt):
                raise CannotApply(reason)
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
        ranges = [Range(v.name, v.lower, sub(v.upper, 1)) for v in block.iters]
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
            names.append(local_name(state.kernel, wanted, names))
        return tuple(names)

    def rewrite(self, state: Scheduled) -> Scheduled:
        root, block = tree(state.kernel), block_named(state.kernel, self.block)
        own = self._loops(state, block)
        space = self._space(state, block)
        loops = [serial_loop(f"{block.name}.{v.name}", v.lower, v.upper) for v in space.iters]
        outside = {v.name: Var(f"{block.name}.{v.name}") for v in space.iters}
        new = _transformed(block, space, outside)
        old: Stmt = own[0] if own else block
        kernel = rebuild(state.kernel, replace_stmt(root, old, nest(loops, new)))
        anew = rename_shared(state.flow, dict.fromkeys(scope_of(own), ()))
        return Scheduled(kernel, prune_shared(kernel, anew))


@final
@dataclass(frozen=True)
class _Space:
    """A block's new iteration variables, and the old ones as expressions over them."""

    iters: tuple[IterVar, ...]
    values: dict[str, Expr]

    def guards(self, old: tuple[IterVar, ...]) -> tuple[Expr, ...]:
        """The conditions under which a point of the new box is one of the old domain."""
        ranges = tuple(Range(v.name, v.lower, sub(v.upper, 1)) for v in self.iters)
        found: list[Expr] = []
        for v in old:
            value = self.values[v.name]
            lower, upper = substitute(v.lower, self.values), substitute(v.upper, self.values)
            if not at_most(lower, value, ranges):
                found.append(Binary(BinaryOp.LE, lower, value))
            if not at_most(add(value, 1), upper, ranges):
                found.append(less(value, upper))
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
