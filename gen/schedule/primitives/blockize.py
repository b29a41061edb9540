"""blockize: a nest of loops becomes one nested block."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.walk import replace_stmt
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import loop_named, names, rebuild, tree
from ..examples import SCALE
from ..nests import NESTED, TENSORIZED, mark, marked, nested_names


@final
@dataclass(frozen=True)
class Blockize(Primitive):
    """Makes a loop and all that is in it one nested block, as TensorIR has them, named by `as`.

    From then on the nest is whole: steps change what is around it, and what it reads and writes,
    but none changes the loops inside, or which blocks are there; `tensorize` takes it by its name.
    What the nested block computes is what the blocks inside do: so proofs are those of the loops.
    """

    loop: str
    as_: str

    name: ClassVar[str] = "blockize"
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Four elements as one block",
            SCALE,
            "- split: {loop: y.j, factors: [null, 4]}\n- blockize: {loop: y.j_1, as: four}",
            after="""\
def scale(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j_0 in range((n + 3) // 4):
            for y.j_1 in range(4, annotations={'blockize': 'four'}):
                with block(
                    "y",
                    i=spatial(y.i),
                    j=spatial(y.j_0 * 4 + y.j_1, n),
                    where=y.j_0 * 4 + y.j_1 < n,
                ):
                    y[i, j] = x[i, j] * 2.0
""",
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

    def check(self, state: Scheduled) -> str | None:
        loop = loop_named(state.kernel, self.loop)
        for key, what in ((NESTED, "a nested block"), (TENSORIZED, "tensorized")):
            if (name := mark(loop, key)) is not None:
                return f"loop '{self.loop}' is {what} already: '{name}'"
        if self.as_ in names(state.kernel) | nested_names(state.kernel):
            return f"there is something named '{self.as_}' already"
        return None

    def rewrite(self, state: Scheduled) -> Scheduled:
        loop = loop_named(state.kernel, self.loop)
        new = marked(loop, NESTED, self.as_)
        body = replace_stmt(tree(state.kernel), loop, new)
        return replace(state, kernel=rebuild(state.kernel, body))
