"""tensorize: an instruction takes the place of a nest of loops."""

from collections.abc import Sequence
from dataclasses import replace

from ...ir.nodes import Contraction, Loop, LoopKind
from ...ir.walk import buffers
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.nesting_rules import require_nesting
from ..edit.tree import CannotApply, replaced, tree
from ..examples import BYTES
from ..intrinsics import lookup
from ..nests import TENSORIZED, mark, marked, match, nest_named


class Tensorize(Primitive):
    """Has a nest of loops computed by an intrinsic: an instruction that does what the nest does, or
    what stands for it on a level that has none.

    The nest, or nested block, must be the intrinsic's pattern: the same loops, with its constant
    extents and any number of lanes, around one block with the same combiner, value and types, whose
    operands lie in memory as the pattern's do. Its lanes become a vector, and it stays in the tree
    as it was: what proves and interprets a schedule sees the loops. Steps after it may change what
    is around it, and may not take it apart. In a last iteration that guards leave part of a group
    out of, the loops themselves run.

    Intrinsics are data: `gen/schedule/intrinsics` has a file each, with the pattern in the language
    of specs, the C form, and what is promised of its results. An instruction that not every
    processor of a level has is looked for at each call.
    """

    loop: str
    intrinsic: str

    aliases = ("replace",)

    def apply(self, state: Scheduled) -> Scheduled:
        loop = nest_named(state.kernel, self.loop)
        if (name := mark(loop, TENSORIZED)) is not None:
            raise CannotApply(f"loop '{loop.var}' is tensorized already: '{name}'")
        intrinsic = lookup(self.intrinsic)
        if state.kernel.contraction is Contraction.NONE and intrinsic.of_floats:
            message = f"'{self.intrinsic}' adds products fused, and the spec says contraction: none"
            raise CannotApply(message, "leave the loops, or the spec's contraction, out")
        found = match(loop, intrinsic, buffers(state.kernel))
        for own, kind in zip(found.nest, _kinds(found.nest), strict=True):
            if own.kind not in (LoopKind.SERIAL, kind):
                raise CannotApply(f"loop '{own.var}' is {own.kind.value} already")
        require_nesting(tree(state.kernel), loop, LoopKind.VECTORIZED)
        nest = match(loop, intrinsic, buffers(state.kernel)).nest
        body = nest[-1].body
        for own, kind in reversed([*zip(nest, _kinds(nest), strict=True)]):
            body = replace(own, kind=kind, body=body)
        assert isinstance(body, Loop)
        new = marked(body, TENSORIZED, self.intrinsic)
        return replaced(state, loop, new)

    EXAMPLES = (
        Example(
            "Products of bytes, four at a time",
            BYTES,
            "- tensorize: {loop: c.i, intrinsic: dot_4x_u8s8}",
        ),
        Example(
            "Factors of other types than the pattern has",
            BYTES,
            "- tensorize: {loop: c.i, intrinsic: dot_4x_s8s8}",
            refused="'a', which is 'a' of 'dot_4x_s8s8', is of uint8, not of int8",
        ),
        Example(
            "Loops of another extent",
            BYTES,
            "- split: {loop: c.j, factors: [2, 2]}\n"
            "- tensorize: {loop: c.i, intrinsic: dot_4x_u8s8}",
            refused="around one block: what is in loop 'c.i' is not that",
        ),
        Example(
            "In the lanes of another vector",
            BYTES,
            "- split: {loop: c.i, factors: [1, 8]}\n"
            "- vectorize: {loop: c.i_0, width: 1}\n"
            "- tensorize: {loop: c.i_1, intrinsic: dot_4x_u8s8}",
            refused="vectorized loop 'c.i_1' would be in vectorized loop 'c.i_0'",
        ),
    )


def _kinds(nest: Sequence[Loop]) -> tuple[LoopKind, ...]:
    """What the loops of a nest become: the lanes of a vector, and what is done in each."""
    return (LoopKind.VECTORIZED, *(LoopKind.UNROLLED for _ in nest[1:]))
