"""Running reductions: `y[j] = sum(x[k] for k in range(j + 1))` as a block in its loops.

Input: a tree whose temporaries are at the root, and a reduction block. Output: its parts, by name,
or a refusal where it is not a running reduction that can be taken apart.
"""

from dataclasses import dataclass, replace
from typing import final

from ...ir.algebra import add, index
from ...ir.index.linear import same
from ...ir.nodes import Block, Buffer, Destination, Expr, IterVar, Kernel, Loop, Store, Update, Var
from ...ir.text.print_expr import expr_to_text
from ...ir.walk import blocks, substitute, variables
from .tree import (
    CannotApply,
    block_named,
    buffer_named,
    local_name,
    loops_around,
    reduction_loops,
    require_serial,
    tree,
)

Bound = tuple[tuple[IterVar, Expr], ...]  # iteration variables and their values


@final
@dataclass(frozen=True, slots=True)
class Running:
    """A running reduction.

    outer: the loop over results; between: those inside it and around `inner`, the loop over the
    terms of one. position, term: the iteration variables that they bind. axis: that of the
    target that the results lie along.
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
    outer = next((x for x in around if same(inner.upper, add(Var(x.var), 1))), None)
    if outer is None or inner.lower != index(0):
        raise CannotApply(
            f"block '{name}' is not a running reduction: loop '{inner.var}' is over "
            f"range({expr_to_text(inner.lower)}, {expr_to_text(inner.upper)}), not over range(0,"
            " the variable of a loop around it + 1)"
        )
    bound = {
        b.name: v for v, b in zip(block.iters, block.bindings, strict=True) if isinstance(b, Var)
    }
    if outer.var not in bound or inner.var not in bound:
        raise CannotApply(
            f"'{outer.var}' and '{inner.var}' are not iteration variables of block '{name}'"
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
    )
    _require_parts(found)
    return found


def _axis(body: Update, position: str) -> int:
    """The axis of the target whose index is the position; -1 where there is none."""
    indices = body.targets[0].indices
    return next((k for k, i in enumerate(indices) if i == Var(position)), -1)


def _require_parts(found: Running) -> None:
    """Refuses what cannot be taken apart."""
    name, j, k = found.block.name, found.position.name, found.term.name
    if found.outer.lower != index(0):
        raise CannotApply(f"loop '{found.outer.var}' does not start at 0")
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
