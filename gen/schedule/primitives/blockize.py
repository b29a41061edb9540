"""blockize: a nest of loops becomes one nested block."""

from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.tree import CannotApply, loop_named, names, replaced
from ..examples import SCALE
from ..nests import NESTED, TENSORIZED, mark, marked, nested_names


class Blockize(Primitive):
    """Makes a loop and all that is in it one nested block, as TensorIR has them, named by `as`.

    From then on the nest is whole: steps change what is around it, and what it reads and writes,
    but none changes the loops inside, or which blocks are there; `tensorize` takes it by its name.
    What the nested block computes is what the blocks inside do: so proofs are those of the loops.
    """

    loop: str
    as_: str

    def apply(self, state: Scheduled) -> Scheduled:
        loop = loop_named(state.kernel, self.loop)
        for key, what in ((NESTED, "a nested block"), (TENSORIZED, "tensorized")):
            if (name := mark(loop, key)) is not None:
                raise CannotApply(f"loop '{self.loop}' is {what} already: '{name}'")
        if self.as_ in names(state.kernel) | nested_names(state.kernel):
            raise CannotApply(f"there is something named '{self.as_}' already")
        new = marked(loop, NESTED, self.as_)
        return replaced(state, loop, new)

    EXAMPLES = (
        Example(
            "Four elements as one block",
            SCALE,
            "- split: {loop: y.j, factors: [null, 4]}\n- blockize: {loop: y.j_1, as: four}",
        ),
        Example(
            "A loop that is one already",
            SCALE,
            "- blockize: {loop: y.i, as: rows}\n- blockize: {loop: y.i, as: all}",
            refused="loop 'y.i' is a nested block already: 'rows'",
        ),
        Example(
            "A name that something has",
            SCALE,
            "- blockize: {loop: y.j, as: x}",
            refused="there is something named 'x' already",
        ),
    )
