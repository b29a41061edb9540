"""Finishing: the stage between the lowered tree, which is proved, and text.

Input: a lowered kernel and a target's passes. Output: the tree that is emitted. It is verified
after each stage, and what the exact passes made of the kernel is compared with it, for all sizes
(`poly.rewrites.equivalence`), so that what is proved of the lowered tree holds of what is emitted.
What leaves out iterations by data is checked for all data (`poly.rewrites.narrowed`,
`poly.rewrites.left`). Notes are written out as what they stand for, and that is compared with the
tree before them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from ..errors import Span
from ..ir.nodes import Expr, Kernel
from ..ir.rules.verify import verify_any
from ..poly.rewrites.equivalence import check_unchanged
from ..poly.rewrites.left import check_left
from ..poly.rewrites.narrowed import check_narrowed
from .passes import Finishing, Pass


@final
@dataclass(frozen=True, slots=True)
class Finished:
    """A variant as it is emitted.

    when: where it may be chosen; None: always. shared: the arguments that a call may give as one
        array with another. span: where it is written.
    """

    name: str
    kernel: Kernel
    when: Expr | None = None
    shared: frozenset[str] = frozenset()
    span: Span | None = None


def finish(kernel: Kernel, finishing: Finishing) -> Kernel:
    """The tree that is emitted. Raises IRError and Refused where a pass breaks a rule of trees or
    changed what the kernel does, and TilesmithError as the passes say.
    """
    *_, (_, last) = finished(kernel, finishing)
    return last


def interpretable(kernel: Kernel, finishing: Finishing) -> Kernel:
    """The tree that is emitted, as the interpreter runs it. Raises as `finish`."""
    return finishing.as_run(finish(kernel, finishing))


def finished(kernel: Kernel, finishing: Finishing) -> Iterator[tuple[Pass | None, Kernel]]:
    """The lowered tree, then each pass and the tree after it; after the last pass of each stage it
    is verified, and compared with the tree before the stage. Raises as `finish`.
    """
    yield None, kernel
    now = kernel
    stages = (
        (finishing.exact, check_unchanged),
        (finishing.by_data, check_narrowed),
        (finishing.early, check_left),
        (finishing.notes, lambda before, now: check_unchanged(before, finishing.as_run(now))),
    )
    for passes, check in stages:
        before = now
        for done in passes:
            now = done.run(now)
            if done is passes[-1]:
                verify_any(now)
                check(before, now)
            yield done, now
