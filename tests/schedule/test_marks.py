"""What stream and prefetch have marked stays with the block that stores or reads the argument."""

import pytest

from gen.ir.walk import blocks
from gen.schedule.examples import BLUR, ROW_SUM, RUNNING_SUM, SCALE

from .support import schedule, start

MOVED = "- split: {loop: y.i, factors: [null, 4]}\n- compute_at: {block: t, loop: y.i_0}\n"
ASKED = "- prefetch: {{block: {}, buffer: x, ahead: {{{}: 16}}}}\n"


@pytest.mark.parametrize(
    ("text", "recipe", "marked"),
    [
        (ROW_SUM, ASKED.format("y", "j") + "- rfactor: {block: y, loop: y.j}", {"y_rf"}),
        (RUNNING_SUM, ASKED.format("y", "k") + "- scan: {block: y}", {"y_carry"}),
        (RUNNING_SUM, ASKED.format("y", "k") + "- scan: {block: y, width: 4}", {"y_scan"}),
        (
            BLUR,
            ASKED.format("t", "i") + MOVED + "- reuse_at: {buffer: t, loop: y.i_0}",
            {"t", "t_first"},
        ),
        (SCALE, "- stream: {block: y}\n- cache_write: {block: y, buffer: y}", {"y_cache"}),
    ],
)
def test_marks(text: str, recipe: str, marked: set[str]) -> None:
    done = schedule(start(text), recipe)[-1].state.kernel
    assert {b.name for b in blocks(done.body) if b.annotations} == marked
