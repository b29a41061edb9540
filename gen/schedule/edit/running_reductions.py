"""Running reductions: `y[j] = sum(x[k] for k in range(j + 1))` as a block in its loops.

Each result has one term more than the one before it: that is next to it on the left, or on the
right where the sums are over `range(j, n)`. The first result has one term or, as with `range(j)`,
none.

Input: a tree whose temporaries are at the root, and a reduction block. Output: its parts, by name,
or a refusal where it is not a running reduction that can be taken apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from ...ir.algebra import add, conjunction, index, less, sub
from ...ir.index.bounds import normal
from ...ir.index.linear import constant, linear
from ...ir.nodes import (
    Block,
    Buffer,
    Destination,
    Expr,
    Init,
    IterVar,
    Kernel,
    Loop,
    Stmt,
    Store,
    Update,
    Var,
)
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import blocks, substitute, variables
from .tree import (
    CannotApply,
    block_named,
    buffer_named,
    local_name,
    loops_around,
    nest,
    reduction_loops,
    require_serial,
    serial_loop,
    tree,
)

Bound = tuple[tuple[IterVar, Expr], ...]  # iteration variables and their values


@final
@dataclass(frozen=True, slots=True)
class Running:
    """A running reduction.

    outer: the loop over results; between: those inside it and around `inner`, the loop over the
    terms of one. position, term: the iteration variables that they bind. axis: that of the
    target that the results lie along. down: whether the results are taken from the last to the
    first. results, terms: where the results with a term and the terms start, so that the p-th of
    the results has the terms up to the p-th. count: how many of both there are. empty: the place
    of the result without terms, if there is one.
    """

    block: Block
    body: Update
    buffer: Buffer
    around: tuple[str, ...]
    outer: Loop
    between: tuple[Loop, ...]
    inner: Loop
    position: IterVar
    term: IterVar
    axis: int
    down: bool
    results: Expr
    terms: Expr
    count: Expr
    empty: Expr | None

    @property
    def own(self) -> Bound:
        """The iteration variables that tell the running reductions apart."""
        pairs = zip(self.block.iters, self.block.bindings, strict=True)
        return tuple(p for p in pairs if p[0] not in (self.position, self.term))

    @property
    def elsewhere(self) -> tuple[Expr, ...]:
        """The target's indices but for the one that moves along the results."""
        indices = self.body.targets[0].indices
        return (*indices[: self.axis], *indices[self.axis + 1 :])

    def result(self, ordinal: Expr) -> Expr:
        """The place of the result that is the so-many-th to have a term."""
        return self._from(self.results, ordinal)

    def term_at(self, ordinal: Expr) -> Expr:
        return self._from(self.terms, ordinal)

    def _from(self, start: Expr, ordinal: Expr) -> Expr:
        if self.down:
            return normal(sub(start, ordinal))
        return ordinal if start == index(0) else normal(add(start, ordinal))

    def temporary(self, name: str, *extents: int) -> Buffer:
        """One place for each running reduction, or as many as `extents` say."""
        shape = (*self.buffer.shape[: self.axis], *self.buffer.shape[self.axis + 1 :])
        whole = (*shape, *map(index, extents))
        return Buffer(name, self.buffer.dtype, whole, span=self.buffer.span)

    def locals(self, kernel: Kernel) -> tuple[str, str]:
        """Names for the two iteration variables that replace `position`."""
        used = [v.name for v in self.block.iters]
        first = local_name(kernel, f"{self.position.name}_0", used)
        return first, local_name(kernel, f"{self.position.name}_1", (*used, first))

    def adding(self, name: str, at: tuple[Expr, ...], result: Expr, term: Expr, to: Bound) -> Block:
        """The block that adds the `term`-th term of the `result`-th result to the buffer `name`."""
        values = {self.position.name: result, self.term.name: term}
        new = (substitute(v, {self.term.name: term}) for v in self.body.values)
        origin = self.block.origin
        return replace(
            self.block,
            name=name,
            iters=tuple(v for v, _ in to),
            bindings=tuple(b for _, b in to),
            body=replace(self.body, targets=(Destination(name, at),), values=tuple(new)),
            origin=origin and substitute(origin, values),
        )

    def first(self, place: Expr, name: str, loops: Mapping[str, str]) -> Stmt:
        """The block that stores the identity as the result at a place, in copies of the loops
        `between`, which get the names `loops`.
        """
        renamed = {old: Var(new) for old, new in loops.items()}
        target = substitute(self.body.targets[0], {self.position.name: place})
        some = less(self.outer.lower, self.outer.upper)
        block = Block(
            name,
            tuple(v for v, _ in self.own),
            tuple(substitute(b, renamed) for _, b in self.own),
            substitute(conjunction(self.block.predicate, some), renamed),
            Init(self.body.combiner, (target,), span=self.body.span),
            span=self.block.span,
        )
        copies = (
            serial_loop(loops[x.var], substitute(x.lower, renamed), substitute(x.upper, renamed))
            for x in self.between
        )
        return nest(copies, block)

    def passing(self, name: str, at: tuple[Expr, ...], value: Expr, to: Bound) -> Block:
        """The block that adds another partial result to the buffer `name`."""
        return replace(
            self.block,
            name=name,
            iters=tuple(v for v, _ in to),
            bindings=tuple(b for _, b in to),
            body=replace(self.body, targets=(Destination(name, at),), values=(value,)),
            origin=None,
            annotations=(),
        )

    def storing(self, value: Expr, result: Expr, to: Bound) -> Block:
        """The block that stores the `result`-th result."""
        target = substitute(self.body.targets[0], {self.position.name: result})
        return replace(
            self.block,
            iters=tuple(v for v, _ in to),
            bindings=tuple(b for _, b in to),
            body=Store(target, value, span=self.body.span),
            initialises=False,
            origin=None,
            annotations=(),
        )


def running(kernel: Kernel, name: str) -> Running:
    """The running reduction of a block. Raises CannotApply where it is none."""
    block = block_named(kernel, name)
    body = block.body
    if not isinstance(body, Update) or not block.initialises:
        raise CannotApply(f"block '{name}' is not a reduction with an init of its own")
    around = loops_around(tree(kernel), block)
    inner = around[-1]
    if reduction_loops(block) != {inner.var}:
        raise CannotApply(f"block '{name}' does not reduce over the one loop directly around it")
    outer = next((x for x in around[:-1] if _step(x, inner)), None)
    if outer is None:
        raise CannotApply(
            f"block '{name}' is not a running reduction: loop '{inner.var}' is over "
            f"range({expr_to_text(inner.lower)}, {expr_to_text(inner.upper)}), of which no loop"
            " around it moves one end, by 1"
        )
    bound = {
        b.name: v for v, b in zip(block.iters, block.bindings, strict=True) if isinstance(b, Var)
    }
    if outer.var not in bound or inner.var not in bound:
        raise CannotApply(
            f"'{outer.var}' and '{inner.var}' are not both iteration variables of block '{name}':"
            " scan before splitting them"
        )
    where = around.index(outer)
    found = Running(
        block,
        body,
        buffer_named(kernel, body.targets[0].buffer),
        tuple(x.var for x in around[:where]),
        outer,
        around[where + 1 : -1],
        inner,
        bound[outer.var],
        bound[inner.var],
        _axis(body, bound[outer.var].name),
        *_ordinals(name, outer, inner, down=_step(outer, inner) < 0),
    )
    _require_parts(found)
    return found


def _step(outer: Loop, inner: Loop) -> int:
    """1 where the next iteration of the outer loop has one term more, -1 where the one before has;
    0 where neither does.
    """
    match _slope(inner.lower, outer.var), _slope(inner.upper, outer.var):
        case 0, 1:
            return 1
        case 1, 0:
            return -1
        case _:
            return 0


def _slope(e: Expr, var: str) -> int | None:
    """How much a sum grows with a variable; None where it is no sum of multiples of it."""
    form = linear(e)
    return None if var in form.without(Var(var)).variables() else form.coefficient(var)


def _ordinals(
    name: str, outer: Loop, inner: Loop, *, down: bool
) -> tuple[bool, Expr, Expr, Expr, Expr | None]:
    """`down`, `results`, `terms`, `count` and `empty` of a running reduction."""
    begin = sub(outer.upper, 1) if down else outer.lower
    at_first = {outer.var: begin}
    extent = constant(substitute(sub(inner.upper, inner.lower), at_first))
    if extent not in (0, 1):
        raise CannotApply(
            f"the {'last' if down else 'first'} result of block '{name}' does not have one term,"
            " or none"
        )
    terms = sub(inner.upper, 1) if down else inner.lower
    step = -1 if down else 1
    results = normal(begin if extent else add(begin, step))
    ends = (outer.lower, results) if down else (results, sub(outer.upper, 1))
    count = normal(add(sub(ends[1], ends[0]), 1))
    return down, results, normal(terms), count, None if extent else normal(begin)


def _axis(body: Update, position: str) -> int:
    """The axis of the target whose index moves with the position, by 1 or -1, as no other's does;
    -1 where there is none.
    """
    indices = body.targets[0].indices
    return next((k for k, i in enumerate(indices) if _slope(i, position) in (1, -1)), -1)


def _require_parts(found: Running) -> None:
    """Refuses what cannot be taken apart."""
    name, j, k = found.block.name, found.position.name, found.term.name
    for loop in (found.outer, *found.between, found.inner):
        require_serial(loop)
    if len(blocks(found.outer)) > 1:
        raise CannotApply(f"loop '{found.outer.var}' is not around block '{name}' alone")
    if len(found.body.targets) > 1:
        raise CannotApply(f"block '{name}' reduces to several values")
    if found.axis < 0 or any(j in variables(i) for i in found.elsewhere):
        raise CannotApply(f"the place of block '{name}' does not move with '{j}' along one axis")
    if any(j in variables(v) for v in found.body.values):
        raise CannotApply(
            f"the terms of block '{name}' depend on '{j}', so that no two results share them"
        )
    moving = {found.outer.var, found.inner.var}
    if variables(found.block.predicate) & moving:
        raise CannotApply(
            f"block '{name}' has a guard on loop '{found.outer.var}': scan before splitting it"
        )
    bounds = (e for loop in found.between for e in (loop.lower, loop.upper))
    domains = (e for v, _ in found.own for e in (v.lower, v.upper))
    values = (b for _, b in found.own)
    if any(variables(e) & {*moving, j, k} for e in (*bounds, *domains, *values)):
        raise CannotApply(f"what else block '{name}' runs over depends on loop '{found.outer.var}'")
