"""How trees for a GPU are lowered and finished: the passes, in their order."""

from dataclasses import replace

from ....errors import NoCode, TilesmithError
from ....ir.index.linear import constant
from ....ir.inits import explicit_inits
from ....ir.launch import axes, launches
from ....ir.nodes import Block, Kernel, Loop, LoopKind, Stmt
from ....ir.rules.launches import MOST_THREADS
from ....ir.text.print_expr import expr_to_text
from ....ir.walk import loops, nested
from ....lower.loop_bounds import hoist_guards
from ....lower.lower import fold_unit_loops, simplify_bounds
from ....lower.passes import Finishing, Pass, Passes
from ....lower.pragmas import auto_unroll
from ....lower.storage import align, shrink
from ...c.finishing import FUSED, INLINED, LEFT
from .copies import launched_copies
from .guards import guards_as_bounds
from .launch_form import launch_form
from .own import own
from .scopes import place, require_memory
from .types import within_types


def without_ranks(kernel: Kernel) -> Kernel:
    """The kernel. Raises NoCode for a loop over ranks."""
    for loop in loops(kernel.body):
        if loop.kind is LoopKind.DISTRIBUTED:
            raise NoCode(
                f"loop '{loop.var}' is distributed, and there is no code for ranks with GPUs",
                loop.span,
                "leave `distribute` to recipes of another target",
            )
    return kernel


def within_launches(kernel: Kernel) -> Kernel:
    """The kernel. Raises NoCode for a block in no launch."""
    if (block := _outside(kernel.body)) is not None:
        raise NoCode(
            f"block '{block.name}' is in no launch, and a GPU runs nothing else",
            block.span,
            "bind the loops around it in a recipe for cuda: `gpu`, `tile_gpu`, `bind`",
        )
    return kernel


def _outside(stmt: Stmt) -> Block | None:
    if isinstance(stmt, Block):
        return stmt
    if isinstance(stmt, Loop) and stmt.kind.is_bound:
        return None
    return next((found for s in nested(stmt) if (found := _outside(s))), None)


def within_limits(kernel: Kernel) -> Kernel:
    """The kernel. Raises TilesmithError where a launch is more than a GPU runs. As many threads as
    are a number, and as many places along an axis, the verifier looks at (`ir.rules.launches`).
    """
    for launch in launches(kernel.body):
        for kind, extent in axes(launch).items():
            if kind.is_thread and constant(extent) is None:
                raise TilesmithError(
                    f"`{expr_to_text(extent)}`, the threads along {kind.value}, is no number: a"
                    f" block has at most {MOST_THREADS} threads, whatever the sizes are",
                    launch.span,
                    "split the loop by a number, and bind the inner one",
                )
    require_memory(kernel)
    return kernel


LOWERING: Passes = (
    Pass("ranks", without_ranks),
    Pass("types", within_types),
    Pass("explicit inits", explicit_inits),
    Pass("copies", launched_copies),
    Pass("launches", within_launches),
    Pass("launch form", launch_form),
    Pass("threads' own", own),
    Pass("shrink temporaries", shrink),
    Pass("align temporaries", align),
    Pass("place temporaries", place),
    Pass("auto unroll", auto_unroll),
    Pass("guards", guards_as_bounds),
    Pass("guards around loops", hoist_guards),
    Pass("unit loops", lambda kernel: replace(kernel, body=fold_unit_loops(kernel.body))),
    Pass("simplify", lambda kernel: replace(kernel, body=simplify_bounds(kernel.body))),
    Pass("limits", within_limits),
)

FINISHING = Finishing((FUSED, INLINED), early=(LEFT,))
