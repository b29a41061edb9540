"""pad: a block over a multiple of a size."""

from dataclasses import replace
from typing import assert_never

from ...ir import nodes as ir
from ...ir.algebra import add, ceildiv, dtype_of, index, less, mul, sub
from ...ir.index.linear import same
from ...ir.interpret.evaluate import identity_constants
from ...ir.walk import blocks, loads, replace_stmt, substitute, targets, variables
from ...poly.certificate import Scheduled
from ...poly.values.padding import keeps_what_it_pads
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.layouts import declared, require_free_layout
from ..edit.tree import CannotApply
from ..examples import ROW_SUM


class Pad(Primitive):
    """Runs a block on to a multiple of a number, for each variable in `multiples`. A loop over it
    then splits without a guard, and every tile of it is whole.

    Of a reduction variable, the terms that there are not are the combiner's identity. Refused where
    the identity changes what it is combined with: of complex products, in which infinity becomes
    NaN, and of reductions that a spec defines. TVM's pad_einsum, which pads the operands with
    zeros, whatever is computed of them.

    Of a spatial variable, the temporary that the block writes gets the elements beyond the end, and
    nothing reads them but what is padded, too. A block that stores puts 0 there. One that combines
    does so with the identity; or, if what it reads is padded as far, with whatever that gives,
    without asking where the end is.
    """

    block: str
    multiples: dict[str, int]

    aliases = ("pad_einsum",)

    def apply(self, state: Scheduled) -> Scheduled:
        block = edit.block_named(state.kernel, self.block)
        if not self.multiples:
            raise CannotApply("`multiples` names no iteration variable")
        if isinstance(block.body, ir.Init):
            raise CannotApply(f"block '{self.block}' is the init of a reduction: pad that before")
        kinds = {v.name: v.kind for v in block.iters}
        for name, multiple in self.multiples.items():
            if name not in kinds:
                reason = f"block '{self.block}' has no iteration variable '{name}'"
                raise CannotApply(reason, edit.nearest(name, kinds))
            if multiple < 1:
                raise CannotApply(f"{multiple}, which '{name}' is padded to, is not positive")
            if kinds[name] is ir.IterKind.REDUCTION:
                _require_neutral(block)
            self._require_loop(state, block, name)
        for name, multiple in self.multiples.items():
            state = self._along(state, name, multiple)
        return state

    def _along(self, state: Scheduled, name: str, multiple: int) -> Scheduled:
        """The state padded along one variable."""
        block = edit.block_named(state.kernel, self.block)
        k, v = next((k, v) for k, v in enumerate(block.iters) if v.name == name)
        longer = replace(v, upper=_up(v.lower, v.upper, multiple))
        iters = (*block.iters[:k], longer, *block.iters[k + 1 :])
        if v.kind is ir.IterKind.SPATIAL:
            state = self._grown(state, block, v, longer.upper)
        whole = v.kind is ir.IterKind.SPATIAL and _is_whole(state.kernel, block, v, longer.upper)
        new = replace(block, iters=iters, body=block.body if whole else _nothing_beyond(block, v))
        body = replace_stmt(edit.tree(state.kernel), block, new)
        at = block.bindings[k]
        assert isinstance(at, ir.Var)
        loop = edit.loop_named(replace(state.kernel, body=body), at.name)
        body = replace_stmt(body, loop, replace(loop, upper=_up(loop.lower, loop.upper, multiple)))
        return replace(state, kernel=edit.rebuild(state.kernel, body))

    def _grown(self, state: Scheduled, block: ir.Block, v: ir.IterVar, upper: ir.Expr) -> Scheduled:
        """The state with temporaries that have places for all that the block writes."""
        for target in targets(block.body):
            buffer = edit.buffer_named(state.kernel, target.buffer)
            if buffer.scope is ir.Scope.GLOBAL:
                raise CannotApply(
                    f"'{v.name}' of block '{block.name}' is spatial, and there is nowhere in"
                    f" '{buffer.name}', an argument, to store what is beyond it",
                    f"let it write to a temporary before: `cache_write: {{block: {block.name}}}`",
                )
            require_free_layout(state, buffer.name)
            axis = _axis(target.indices, v, buffer.shape)
            if axis is None:
                raise CannotApply(
                    f"'{v.name}' does not run along all of an axis of '{buffer.name}'; pad before"
                    " its layout changes"
                )
            shape = (*buffer.shape[:axis], upper, *buffer.shape[axis + 1 :])
            state = declared(state, buffer.name, shape=shape)
        return state

    def _require_loop(self, state: Scheduled, block: ir.Block, name: str) -> None:
        """Refuses a variable whose loop does not run over all of it alone."""
        own = {v.name: b for v, b in zip(block.iters, block.bindings, strict=True)}
        binding = own[name]
        if not isinstance(binding, ir.Var):
            raise CannotApply(
                f"'{name}' of block '{self.block}' has no loop of its own any more; pad before"
            )
        loop = edit.loop_named(state.kernel, binding.name)
        if len(blocks(loop)) > 1:
            raise CannotApply(f"loop '{loop.var}' runs other blocks, too")
        v = next(v for v in block.iters if v.name == name)
        ends = ((loop.lower, v.lower), (loop.upper, v.upper))
        if not all(same(a, substitute(b, own)) for a, b in ends):
            raise CannotApply(f"loop '{loop.var}' runs over a part of '{name}'")
        edit.require_unfused(loop)

    EXAMPLES = (
        Example(
            "Whole fours",
            ROW_SUM,
            "- pad: {block: y, multiples: {j: 4}}\n- split: {loop: y.j, factors: [null, 4]}",
        ),
        Example(
            "A product of complex numbers",
            ROW_SUM.replace("float32", "complex64").replace("combine.sum", "combine.prod"),
            "- pad: {block: y, multiples: {j: 4}}",
            refused="the identity of prod of complex64 changes what it is combined with",
        ),
        Example(
            "Elements that there are not",
            ROW_SUM,
            "- pad: {block: y, multiples: {i: 4}}",
            refused="'i' of block 'y' is spatial, and there is nowhere in 'y', an argument, to"
            " store what is beyond it",
        ),
        Example(
            "Rows of whole fours: zeros to read, sums that nothing takes",
            ROW_SUM,
            "- cache_read: {block: y, buffer: x, as: rows}\n"
            "- cache_write: {block: y, as: sums}\n"
            "- pad: {block: rows, multiples: {d0: 4}}\n"
            "- pad: {block: y, multiples: {i: 4}}\n"
            "- split: {loop: y.i, factors: [null, 4]}",
        ),
    )


def _up(lower: ir.Expr, upper: ir.Expr, multiple: int) -> ir.Expr:
    return add(lower, mul(ceildiv(sub(upper, lower), multiple), multiple))


def _require_neutral(block: ir.Block) -> None:
    """Refuses a reduction whose terms may not be joined by the identity."""
    assert isinstance(block.body, ir.Update)
    combiner = block.body.combiner
    for value in block.body.values:
        if not keeps_what_it_pads(combiner, dtype_of(value)):
            raise CannotApply(
                f"the identity of {combiner.value} of {dtype_of(value).value} changes what"
                " it is combined with"
            )


def _axis(indices: tuple[ir.Expr, ...], v: ir.IterVar, shape: tuple[ir.Expr, ...]) -> int | None:
    """The one axis that a variable runs along, all of it; None where there is no such axis."""
    found = [k for k, i in enumerate(indices) if v.name in variables(i)]
    whole = len(found) == 1 and indices[found[0]] == ir.Var(v.name) and v.lower == index(0)
    return found[0] if whole and same(shape[found[0]], v.upper) else None


def _is_whole(kernel: ir.Kernel, block: ir.Block, v: ir.IterVar, upper: ir.Expr) -> bool:
    """Whether all that a reduction reads along a variable is there as far as an end."""
    longer = replace(v, upper=upper)
    return isinstance(block.body, ir.Update) and all(
        v.name not in frozenset[str]().union(*map(variables, x.indices))
        or _axis(x.indices, longer, edit.buffer_named(kernel, x.buffer).shape) is not None
        for value in block.body.values
        for x in loads(value)
    )


def _nothing_beyond(block: ir.Block, v: ir.IterVar) -> ir.Store | ir.Update:
    """The block's body, that stores 0 or combines the identity beyond the variable's end."""
    inside = less(ir.Var(v.name), v.upper)
    match block.body:
        case ir.Store(_, value):
            (zero,) = identity_constants(ir.Combiner.SUM, (dtype_of(value),))
            return replace(block.body, value=ir.Select(inside, value, zero))
        case ir.Update(combiner, _, values):
            none = identity_constants(combiner, tuple(map(dtype_of, values)))
            pairs = zip(values, none, strict=True)
            return replace(block.body, values=tuple(ir.Select(inside, *pair) for pair in pairs))
        case ir.Init():
            raise AssertionError
        case body:
            assert_never(body)
