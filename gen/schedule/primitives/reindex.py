"""reindex: a block's own view of a buffer."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

from ...ir.algebra import conjunction, sub
from ...ir.index.bounds import Range, highest, lowest, normal
from ...ir.nodes import (
    Block,
    Buffer,
    Expr,
    Init,
    IterVar,
    Load,
    Scope,
    Seq,
    Store,
    Target,
    Update,
    Var,
)
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import loads, map_children, seq, targets, variables, walk
from ...poly.certificate import Flow, Scheduled, Source
from ..base import Example, Layer, Primitive
from ..edit.layouts import extent
from ..edit.new_loops import place
from ..edit.tree import (
    CannotApply,
    block_named,
    buffer_named,
    containing,
    insert,
    names,
    prune_shared,
    rebuild,
    taken_buffer,
    temporaries,
    tree,
    update_blocks,
    without_loops,
    written,
)
from ..examples import BLUR, SPREAD, TURNED, TWICE


@final
@dataclass(frozen=True)
class Reindex(Primitive):
    """Lets a block read from, or write to, a copy of a buffer whose indices are the block's
    iteration variables: those that the indices have been made of, in the block's order.

    So whatever the buffer looks like, a product of matrices reads `a[i, k]`, and a convolution the
    patches of its input: the copy is where im2col, a transposed operand or a stride goes. All is
    copied before everything that stands around the block, or, where it writes, after. TVM's
    reindex.
    """

    block: str
    buffer: str
    scope: Literal["auto", "heap", "stack", "register"] = "auto"
    as_: str | None = None

    name: ClassVar[str] = "reindex"
    layer: ClassVar[Layer] = Layer.COMMUNICATION
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "A transposed operand",
            TURNED,
            "- reindex: {block: y, buffer: x}",
            after="""\
def turned(m, n, x: float32[n, m], y: Out[float32[m]]):
    with allocate(x_reindex=float32[m, n]):
        for x_reindex.i in range(m):
            for x_reindex.j in range(n):
                with block(
                    "x_reindex",
                    i=spatial(x_reindex.i),
                    j=spatial(x_reindex.j),
                    origin=None,
                ):
                    x_reindex[i, j] = x[j, i]
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    y[i] = combine.sum(y[i], x_reindex[i, j])
""",
        ),
        Example(
            "A result written to every other place",
            SPREAD,
            "- reindex: {block: y, buffer: y, as: near}",
            after="""\
def spread(n, x: float32[n], y: InOut[float32[2 * n]]):
    with allocate(near=float32[n]):
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                near[i] = x[i] * 2.0
        for near.i in range(n):
            with block("near", i=spatial(near.i), origin=None):
                y[2 * i] = near[i]
""",
        ),
        Example(
            "Reads at several places",
            BLUR,
            "- reindex: {block: y, buffer: t}",
            refused="block 'y' reads 't' at several places: `i`, `i + 1`, ...",
        ),
        Example(
            "A buffer that the block does not use",
            TWICE,
            "- reindex: {block: y, buffer: x}",
            refused="block 'y' neither reads nor writes 'x'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        block = block_named(state.kernel, self.block)
        buffer_named(state.kernel, self.buffer)
        places = self._places(block)
        if not places:
            return f"block '{block.name}' neither reads nor writes '{self.buffer}'"
        if len(places) > 1:
            shown = ", ".join(f"`{', '.join(map(expr_to_text, p))}`" for p in places[:2])
            return f"block '{block.name}' reads '{self.buffer}' at several places: {shown}, ..."
        if any(isinstance(n, Load) for i in places[0] for n in walk(i)):
            return f"where block '{block.name}' reads '{self.buffer}' depends on data"
        if self.buffer in written(block):
            if any(x.buffer == self.buffer for x in loads(block.body)):
                return f"block '{block.name}' reads '{self.buffer}', too"
            if isinstance(block.body, Init):
                return f"block '{block.name}' is the init of a reduction"
            if isinstance(block.body, Update) and not block.initialises:
                return f"block '{block.name}' adds to what is in '{self.buffer}'"
        self._axes(block)
        return taken_buffer(state.kernel, self._copy())

    def _copy(self) -> str:
        return self.as_ or f"{self.buffer}_reindex"

    def _places(self, block: Block) -> tuple[tuple[Expr, ...], ...]:
        """Where the block accesses the buffer, each place once."""
        accesses: tuple[Load | Target, ...] = (*loads(block.body), *targets(block.body))
        return tuple(dict.fromkeys(a.indices for a in accesses if a.buffer == self.buffer))

    def _axes(self, block: Block) -> tuple[IterVar, ...]:
        """The iteration variables that the place is made of, over boxes."""
        used = variables(Target("", self._places(block)[0]))
        ranges = tuple(Range(v.name, v.lower, sub(v.upper, 1)) for v in block.iters)
        axes: list[IterVar] = []
        for k, v in enumerate(block.iters):
            if v.name not in used:
                continue
            low, high = lowest(v.lower, ranges[:k]), highest(v.upper, ranges[:k])
            if low is None or high is None:
                raise CannotApply(f"nothing bounds '{v.name}' of block '{block.name}'")
            axes.append(IterVar(v.name, normal(low), normal(high)))
        return tuple(axes)

    def rewrite(self, state: Scheduled) -> Scheduled:
        root, block = tree(state.kernel), block_named(state.kernel, self.block)
        old = buffer_named(state.kernel, self.buffer)
        axes = self._axes(block)
        shape, scope = tuple(extent(v.upper) for v in axes), Scope(self.scope)
        copy = Buffer(self._copy(), old.dtype, shape, scope, span=old.span)
        writes = self.buffer in written(block)
        here, there = tuple(Var(v.name) for v in axes), self._places(block)[0]
        at = {v.name: b for v, b in zip(block.iters, block.bindings, strict=True)}
        own = frozenset(name for v in axes for name in variables(at[v.name]))
        others = frozenset(name for b in block.bindings for name in variables(b)) - own
        to, from_ = ((old, there), (copy, here))[:: 1 if writes else -1]
        moving = Block(
            copy.name,
            axes,
            tuple(at[v.name] for v in axes),
            conjunction(*without_loops(block.predicate, others)),
            Store(Target(to[0].name, to[1]), Load(from_[0].name, from_[1], old.dtype)),
            span=block.span,
        )
        new = place(moving, (), frozenset(), {}, names(state.kernel) | {copy.name})
        items = root.body if isinstance(root, Seq) else (root,)
        position = containing(items, lambda b: b is block)[0] + writes
        body = update_blocks(
            seq(insert(items, position, new)),
            lambda b: self._using(b, here) if b is block else b,
        )
        kernel = rebuild(state.kernel, body, (*temporaries(state.kernel), copy))
        flow = self._writing(state, block) if writes else self._reading(state.flow, block)
        return Scheduled(kernel, prune_shared(kernel, flow))

    def _using(self, block: Block, here: tuple[Expr, ...]) -> Block:
        """The block with the copy in place of the buffer."""

        def go(n: Any) -> Any:
            new = map_children(n, go)
            if isinstance(new, Load | Target) and new.buffer == self.buffer:
                return replace(new, buffer=self._copy(), indices=here)
            return new

        return replace(block, body=go(block.body))

    def _reading(self, flow: Flow, block: Block) -> Flow:
        result = dict(flow)
        sources = []
        for k, load in enumerate(loads(block.body)):
            if load.buffer == self.buffer:
                sources.append(flow[block.name, k])
                result[block.name, k] = Source((self._copy(),))
        writers = dict.fromkeys(w for s in sources for w in s.writers)
        result[self._copy(), 0] = Source(tuple(writers), any(s.initial for s in sources))
        return result

    def _writing(self, state: Scheduled, block: Block) -> Flow:
        copy = self._copy()
        result: dict[tuple[str, int], Source] = {(copy, 0): Source((block.name,))}
        for (reader, number), source in state.flow.items():
            load = loads(block_named(state.kernel, reader).body)[number]
            if load.buffer == self.buffer:
                writers = tuple(copy if w == block.name else w for w in source.writers)
                source = replace(source, writers=writers)
            result[reader, number] = source
        return result
