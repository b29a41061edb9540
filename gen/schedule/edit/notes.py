"""The notes on a loop or a block that `annotate` writes and `unannotate` removes."""

from collections.abc import Mapping
from dataclasses import replace

from ...ir.nodes import Block, Loop
from ...poly.certificate import Scheduled
from .tree import CannotApply, block_named, loop_named, replaced

MAX_STEP = "pragma_auto_unroll_max_step"
EXPLICIT = "pragma_unroll_explicit"

OF_PRIMITIVES = ("prefetch", "stream")
"""First words of keys that primitives of their own put on blocks."""

UNROLL = "unroll"
"""How often the C compiler is to unroll a loop."""

OF_EMISSION = ("scan", "ties", UNROLL)
"""Those that are put on a lowered tree."""

Notes = tuple[tuple[str, int | str], ...]


def one_of(state: Scheduled, loop: str | None, block: str | None) -> tuple[Loop | Block, str]:
    """The loop or the block that a step names, and how errors call it."""
    if (loop is None) is (block is None):
        raise CannotApply("give `loop` or `block`, one of them")
    if loop is not None:
        return loop_named(state.kernel, loop), f"loop '{loop}'"
    assert block is not None
    return block_named(state.kernel, block), f"block '{block}'"


def noted(node: Loop | Block) -> Mapping[str, int | str]:
    return dict(node.annotations)


def with_notes(state: Scheduled, node: Loop | Block, notes: Notes) -> Scheduled:
    """The state with other notes on a node."""
    return replaced(state, node, replace(node, annotations=notes))
