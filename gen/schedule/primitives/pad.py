"""pad: a reduction over a multiple of a size."""

from dataclasses import replace

from ...ir.algebra import add, ceildiv, dtype_of, less, mul, sub
from ...ir.index.linear import same
from ...ir.interpret.evaluate import identity_constants
from ...ir.nodes import Block, Expr, IterKind, Select, Update, Var
from ...ir.walk import blocks, replace_stmt, substitute
from ...poly.certificate import Scheduled
from ...poly.values.padding import keeps_what_it_pads
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.tree import CannotApply
from ..examples import ROW_SUM, TWICE


class Pad(Primitive):
    """Runs a reduction on to a multiple of a number, for each variable in `multiples`: the terms
    that there are not are the combiner's identity.

    A loop over it then splits without a guard, and every vector of it is whole. Refused where the
    identity changes what it is combined with: of complex products, in which infinity becomes NaN,
    and of reductions that a spec defines. TVM's pad_einsum, which pads the operands with zeros,
    whatever is computed of them.
    """

    block: str
    multiples: dict[str, int]

    aliases = ("pad_einsum",)

    def apply(self, state: Scheduled) -> Scheduled:
        block = edit.block_named(state.kernel, self.block)
        if not isinstance(block.body, Update):
            raise CannotApply(
                f"block '{self.block}' is not a reduction: there is nothing to pad it with"
            )
        if not self.multiples:
            raise CannotApply("`multiples` names no iteration variable")
        combiner = block.body.combiner
        for value in block.body.values:
            if not keeps_what_it_pads(combiner, dtype_of(value)):
                raise CannotApply(
                    f"the identity of {combiner.value} of {dtype_of(value).value} changes what"
                    " it is combined with"
                )
        kinds = {v.name: v.kind for v in block.iters}
        for name, multiple in self.multiples.items():
            if name not in kinds:
                reason = f"block '{self.block}' has no iteration variable '{name}'"
                raise CannotApply(reason, edit.nearest(name, kinds))
            if kinds[name] is IterKind.SPATIAL:
                raise CannotApply(
                    f"'{name}' of block '{self.block}' is spatial: there is nowhere to store what"
                    " is beyond it"
                )
            if multiple < 1:
                raise CannotApply(f"{multiple}, which '{name}' is padded to, is not positive")
            self._require_loop(state, block, name)
        body = edit.tree(state.kernel)
        for name, multiple in self.multiples.items():
            block = next(b for b in blocks(body) if b.name == self.block)
            body = replace_stmt(body, block, _padded(block, name, multiple))
            at = {v.name: b for v, b in zip(block.iters, block.bindings, strict=True)}[name]
            assert isinstance(at, Var)
            loop = edit.loop_named(replace(state.kernel, body=body), at.name)
            longer = replace(loop, upper=_up(loop.lower, loop.upper, multiple))
            body = replace_stmt(body, loop, longer)
        return replace(state, kernel=edit.rebuild(state.kernel, body))

    def _require_loop(self, state: Scheduled, block: Block, name: str) -> None:
        """Refuses a variable whose loop does not run over all of it alone."""
        own = {v.name: b for v, b in zip(block.iters, block.bindings, strict=True)}
        binding = own[name]
        if not isinstance(binding, Var):
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
            refused="'i' of block 'y' is spatial: there is nowhere to store what is beyond it",
        ),
        Example(
            "A block that reduces nothing",
            TWICE,
            "- pad: {block: y, multiples: {i: 4}}",
            refused="block 'y' is not a reduction",
        ),
    )


def _up(lower: Expr, upper: Expr, multiple: int) -> Expr:
    return add(lower, mul(ceildiv(sub(upper, lower), multiple), multiple))


def _padded(block: Block, name: str, multiple: int) -> Block:
    """The block over more of one variable, where it combines the identity."""
    body = block.body
    assert isinstance(body, Update)
    v = next(v for v in block.iters if v.name == name)
    longer = replace(v, upper=_up(v.lower, v.upper, multiple))
    nothing = identity_constants(body.combiner, tuple(map(dtype_of, body.values)))
    values = tuple(
        Select(less(Var(name), v.upper), value, none)
        for value, none in zip(body.values, nothing, strict=True)
    )
    return replace(
        block,
        iters=tuple(longer if other is v else other for other in block.iters),
        body=replace(body, values=values),
    )
