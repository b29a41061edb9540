"""isl has been seen to crash on the lowered tree of this recipe, in coalesce."""

from gen.ir.text.parser import from_text
from gen.lower.lower import lower
from gen.poly.prove import prove
from gen.schedule.examples import SCALE
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from tests.schedule.support import schedule, start

RECIPE = """\
- align: {loop: y.j, buffer: y}
- split: {loop: y.j, factors: [null, 8, 2, 16]}
- unroll: {loop: y.j_2}
- vectorize: {loop: y.j_3, width: 16}
"""


def test_an_aligned_loop_in_four() -> None:
    state = schedule(start(SCALE), RECIPE)[-1].state
    prove(from_text(SCALE), lower(state, Cpu(Level.V4).lowering))
