"""unannotate: a note on a loop or a block removed."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.notes import noted, one_of, with_notes
from ..edit.tree import CannotApply, nearest
from ..examples import TWICE


@final
@dataclass(frozen=True)
class Unannotate(Primitive):
    """Removes what `annotate`, or a primitive that marks blocks, has noted under a key."""

    key: str
    loop: str | None = None
    block: str | None = None

    name: ClassVar[str] = "unannotate"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "One key of two",
            TWICE,
            "- annotate: {block: y, key: owner, value: 1}\n"
            "- annotate: {block: y, key: why, value: speed}\n"
            "- unannotate: {block: y, key: owner}",
            after="""\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i), annotations={'why': 'speed'}):
                y[i] = t[i] + 1.0
""",
        ),
        Example(
            "A key that is not there",
            TWICE,
            "- annotate: {loop: y.i, key: owner, value: 1}\n- unannotate: {loop: y.i, key: why}",
            refused="loop 'y.i' is not annotated with 'why'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        node, what = one_of(state, self.loop, self.block)
        if self.key not in noted(node):
            reason = f"{what} is not annotated with '{self.key}'"
            raise CannotApply(reason, nearest(self.key, noted(node)))
        return None

    def rewrite(self, state: Scheduled) -> Scheduled:
        node, _ = one_of(state, self.loop, self.block)
        left = tuple(note for note in node.annotations if note[0] != self.key)
        return with_notes(state, node, left)
