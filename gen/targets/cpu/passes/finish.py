"""A lowered kernel as statements of C are made from it.

Input: a lowered kernel, which is proved, and the target. Output: the tree that is emitted. What
the passes in `EXACT` made of the kernel is checked against it, for all sizes
(`poly.rewrites.equivalence`), so that what is emitted is what is proved. `BY_DATA` leaves out what
combines nothing with a place, where data says so, which is checked for all data
(`poly.rewrites.narrowed`). `NOTES` says how lanes are combined, and changes nothing else.
"""

from collections.abc import Callable
from dataclasses import replace

from ....ir.index.facts import of_kernel
from ....ir.nodes import Buffer, Kernel
from ....ir.rules.verify import verify_any
from ....ir.types import DType
from ....ir.walk import walk
from ....lower.contraction import contract
from ....lower.narrowing import narrow
from ....poly.rewrites.equivalence import check_unchanged
from ....poly.rewrites.narrowed import check_narrowed
from ..levels import Target
from .index_ties import mark
from .inline import inline
from .scan import scans
from .tensor import marks_that_hold
from .unroll import as_run, unroll

Pass = Callable[[Kernel, Target], Kernel]
Passes = tuple[tuple[str, Pass], ...]


def finish(kernel: Kernel, target: Target) -> Kernel:
    """The tree that is emitted.

    Raises Refused where a pass changed what the kernel does, TilesmithError where an intrinsic
    computes none of the nests that it was to.
    """
    return after(NOTES, _rewritten(kernel, target), target)


def interpretable(kernel: Kernel, target: Target) -> Kernel:
    """The tree that is emitted, for the interpreter: without notes that change what blocks mean,
    and with the statements of a vectorized loop in the order of their code. Raises as `finish`.
    """
    rewritten = _rewritten(kernel, target)
    return replace(rewritten, body=as_run(rewritten.body))


def _rewritten(kernel: Kernel, target: Target) -> Kernel:
    exact = after(EXACT, kernel, target)
    check_unchanged(kernel, exact)
    result = after(BY_DATA, exact, target)
    check_narrowed(exact, result)
    verify_any(result)
    return result


def after(passes: Passes, kernel: Kernel, target: Target) -> Kernel:
    """The kernel after some passes, one after another."""
    for _, run in passes:
        kernel = run(kernel, target)
    return kernel


def _inlined(kernel: Kernel, _: Target) -> Kernel:
    return replace(kernel, body=inline(kernel.body, of_kernel(kernel)))


def _narrowed(kernel: Kernel, _: Target) -> Kernel:
    shapes = {n.name: n.shape for n in walk(kernel) if isinstance(n, Buffer)}
    return replace(kernel, body=narrow(kernel.body, of_kernel(kernel), shapes))


def dtypes_of(kernel: Kernel) -> dict[str, DType]:
    """The element types of all buffers."""
    return {n.name: n.dtype for n in walk(kernel) if isinstance(n, Buffer)}


EXACT: Passes = (
    ("fused multiply-adds", lambda kernel, _: contract(kernel)),
    ("order of equals", lambda kernel, _: mark(kernel)),
    ("unroll", lambda kernel, _: replace(kernel, body=unroll(kernel.body))),
    ("inline", _inlined),
    ("intrinsics", marks_that_hold),
)
BY_DATA: Passes = (("narrow", _narrowed),)
NOTES: Passes = (
    ("scans", lambda kernel, _: replace(kernel, body=scans(kernel.body, dtypes_of(kernel)))),
)
