"""unannotate: a note on a loop or a block removed."""

from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.notes import noted, one_of, with_notes
from ..edit.tree import CannotApply, nearest
from ..examples import TWICE


class Unannotate(Primitive):
    """Removes what `annotate`, or a primitive that marks blocks, has noted under a key."""

    key: str
    loop: str | None = None
    block: str | None = None

    def apply(self, state: Scheduled) -> Scheduled:
        node, what = one_of(state, self.loop, self.block)
        if self.key not in noted(node):
            reason = f"{what} is not annotated with '{self.key}'"
            raise CannotApply(reason, nearest(self.key, noted(node)))
        node, _ = one_of(state, self.loop, self.block)
        left = tuple(note for note in node.annotations if note[0] != self.key)
        return with_notes(state, node, left)

    EXAMPLES = (
        Example(
            "One key of two",
            TWICE,
            "- annotate: {block: y, key: owner, value: 1}\n"
            "- annotate: {block: y, key: why, value: speed}\n"
            "- unannotate: {block: y, key: owner}",
        ),
        Example(
            "A key that is not there",
            TWICE,
            "- annotate: {loop: y.i, key: owner, value: 1}\n- unannotate: {loop: y.i, key: why}",
            refused="loop 'y.i' is not annotated with 'why'",
        ),
    )
