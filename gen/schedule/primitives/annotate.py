"""annotate: a note on a loop or a block."""

from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.notes import EXPLICIT, MAX_STEP, OF_EMISSION, OF_PRIMITIVES, noted, one_of, with_notes
from ..edit.tree import CannotApply
from ..examples import SCALE, TWICE


class Annotate(Primitive):
    """Notes a key and a value on a loop or a block.

    Two keys are read, of loops: `pragma_auto_unroll_max_step` unrolls the serial loops of constant
    extent in the loop, and the loop itself, that come to at most so many statements;
    `pragma_unroll_explicit`, 0 or 1, says whether they are written out, as they are by default, or
    left to the C compiler. Any other key is kept and printed, and changes nothing. A key that is
    there already is an error, and so is a step after which the loop would be gone.
    """

    key: str
    value: int | str
    loop: str | None = None
    block: str | None = None

    aliases = ("pragma",)

    def apply(self, state: Scheduled) -> Scheduled:
        node, what = one_of(state, self.loop, self.block)
        word = self.key.split(" ")[0]
        if word in OF_PRIMITIVES:
            raise CannotApply(f"'{word}' is a mark of the primitive of that name")
        if word in OF_EMISSION:
            raise CannotApply(f"'{word}' is a mark of the emitted code's own")
        if (old := noted(node).get(self.key)) is not None:
            raise CannotApply(f"{what} is annotated with '{self.key}' already, as {old}")
        if self.key in (MAX_STEP, EXPLICIT):
            if self.loop is None:
                raise CannotApply(f"'{self.key}' is read of loops alone")
            if not isinstance(self.value, int) or self.value < 0:
                raise CannotApply(f"'{self.key}' takes a number that is not negative")
            if self.key == EXPLICIT and self.value > 1:
                raise CannotApply(f"'{self.key}' takes 0 or 1")
        node, _ = one_of(state, self.loop, self.block)
        return with_notes(state, node, (*node.annotations, (self.key, self.value)))

    EXAMPLES = (
        Example(
            "Short loops are to be unrolled",
            SCALE,
            "- split: {loop: y.j, factors: [null, 4]}\n"
            "- annotate: {loop: y.j_0, key: pragma_auto_unroll_max_step, value: 16}",
        ),
        Example(
            "A key that nothing reads", TWICE, "- annotate: {block: y, key: owner, value: team a}"
        ),
        Example(
            "A second value",
            TWICE,
            "- annotate: {block: y, key: owner, value: 1}\n"
            "- annotate: {block: y, key: owner, value: 2}",
            refused="block 'y' is annotated with 'owner' already, as 1",
        ),
        Example(
            "What another primitive marks",
            TWICE,
            "- annotate: {block: y, key: stream, value: 1}",
            refused="'stream' is a mark of the primitive of that name",
        ),
        Example(
            "A key that is read of loops",
            TWICE,
            "- annotate: {block: y, key: pragma_auto_unroll_max_step, value: 16}",
            refused="'pragma_auto_unroll_max_step' is read of loops alone",
        ),
    )
