"""How a CPU's lowered trees are finished: the passes, in their order.

Input: a machine. Output: its `Finishing`, which the stage of that name runs (`lower.finish`).
"""

from dataclasses import replace

from ....ir.nodes import Kernel
from ....lower.passes import Advice, Finishing, Pass, Passes
from ...c.finishing import FUSED, INLINED, LEFT, NARROWED, dtypes_of
from ..advice import advice, in_registers
from ..levels import Processor
from .index_ties import mark
from .scan import scans, written_out
from .tensor import marks_that_hold
from .unroll import as_run, unroll


def finishing(machine: Processor) -> Finishing:
    """The passes for a machine. One of them raises TilesmithError where an intrinsic computes none
    of the nests that it was to.
    """
    exact: Passes = (
        FUSED,
        Pass("order of equals", mark),
        Pass("unroll", lambda kernel: replace(kernel, body=unroll(kernel.body))),
        INLINED,
        Pass("intrinsics", lambda kernel: marks_that_hold(kernel, machine)),
    )
    done = Finishing(exact, (NARROWED,), (LEFT,), (SCANS,), _as_run)
    return replace(done, advice=lambda kernel: _advised(kernel, done.passes, machine))


def _advised(kernel: Kernel, passes: Passes, machine: Processor) -> tuple[Advice, ...]:
    if not any(in_registers(kernel)):
        return ()
    for each in passes:
        kernel = each.run(kernel)
    return advice(kernel, machine)


def _scans(kernel: Kernel) -> Kernel:
    return replace(kernel, body=scans(kernel.body, dtypes_of(kernel)))


def _as_run(kernel: Kernel) -> Kernel:
    """Without the notes on scans, and vectorized loops of blocks as their code is run."""
    return replace(kernel, body=as_run(written_out(kernel.body)))


SCANS = Pass(
    "scans",
    _scans,
    "a running reduction of the lanes of a vector adds its terms in the order of log-step shifts:"
    " the same terms, rounded in another order, as in the lane tree of any vectorized sum",
)
