"""A variant's way from the spec to what is emitted, each tree on it with its proof.

Input: a variant. Output: a moment for the plain schedule, for each step and for the lowered tree,
if there is code for it.
Nothing is left out where a proof is refused: the tree is there to be looked at.
"""

import time
from dataclasses import dataclass, replace
from enum import Enum
from typing import final

from ..errors import Span
from ..ir.nodes import Kernel
from ..lower.variants import Variant
from ..poly.certificate import PROVED, Scheduled, Standing
from ..poly.prove import prove
from ..poly.witness import Refused
from ..progress import SILENT, Progress
from ..schedule.base import NOWHERE, Primitive, Prover, StepContext, proved


@final
class Status(Enum):
    PROVED = "proved"
    REFUSED = "refused"
    LEFT = "not tried"  # after a refusal: what it passes on is wrong already


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """How the proof of a tree went. detail: of a refusal, the reason and a case, line by line.
    standing: what else vouches for the tree, where it was not refused.
    """

    status: Status
    seconds: float = 0.0
    detail: tuple[str, ...] = ()
    standing: Standing = PROVED

    def __str__(self) -> str:
        if self.status is Status.LEFT:
            return str(self.status.value)
        words = str(self.standing) if self.status is Status.PROVED else self.status.value
        return f"{words}, {self.seconds:.3f} s"


@final
@dataclass(frozen=True, slots=True)
class Moment:
    """A tree, what led to it, where the recipe says so (None: it does not), and its proof."""

    title: str
    span: Span | None
    kernel: Kernel
    proof: Verdict


def story(variant: Variant, shown: Progress = SILENT, prove: Prover = prove) -> tuple[Moment, ...]:
    """The moments in order. shown: gets the number of proofs so far."""
    context = StepContext(variant.start.kernel, prove)
    trees: list[tuple[str, Primitive | None, Scheduled]] = [
        ("the plain schedule", None, variant.start),
        *((str(s.primitive), s.primitive, s.state) for s in variant.steps),
    ]
    if isinstance(variant.emitted, Scheduled):
        trees.append(("lowered, end to end", None, variant.emitted))
    moments: list[Moment] = []
    refused, standing = False, PROVED
    for title, step, state in trees:
        # The trees may have been made without a proof, and so without a test.
        state = replace(state, standing=replace(state.standing, tested=standing.tested))
        proof = Verdict(Status.LEFT)
        if not refused:
            proof, standing = _tried(context, state, title if step and step.tested else None)
        refused = proof.status is not Status.PROVED
        moments.append(Moment(title, _written(step), state.kernel, proof))
        shown.detail(f"{len(moments)} of {len(trees)} proved")
    return tuple(moments)


def _written(step: Primitive | None) -> Span | None:
    return None if step is None or step.span == NOWHERE else step.span


def _tried(context: StepContext, state: Scheduled, tested: str | None) -> tuple[Verdict, Standing]:
    start = time.perf_counter()
    try:
        standing = proved(context, state, tested).standing
    except Refused as refused:
        case = refused.witness.lines() if refused.witness else ()
        proof = Verdict(Status.REFUSED, time.perf_counter() - start, (refused.reason, *case))
        return proof, state.standing
    return Verdict(Status.PROVED, time.perf_counter() - start, standing=standing), standing
