"""A variant's way from the spec to what is emitted, each tree on it with its proof.

Input: a variant. Output: a moment for the plain schedule, for each step and for the lowered tree.
Nothing is left out where a proof is refused: the tree is there to be looked at.
"""

import time
from dataclasses import dataclass
from enum import Enum
from typing import final

from .errors import Span
from .ir.nodes import Kernel
from .pipeline import Variant
from .poly.certificate import Given, Scheduled, proved
from .poly.prove import prove
from .poly.witness import Refused
from .progress import SILENT, Progress
from .schedule.base import NOWHERE, Prover


@final
class Status(Enum):
    PROVED = "proved"
    REFUSED = "refused"
    LEFT = "not tried"  # after a refusal: what it passes on is wrong already


@final
@dataclass(frozen=True, slots=True)
class Proof:
    """How the proof of a tree went. detail: of a refusal, the reason and a case, line by line.
    laws: what it takes for granted.
    """

    status: Status
    seconds: float = 0.0
    detail: tuple[str, ...] = ()
    laws: tuple[Given, ...] = ()

    def __str__(self) -> str:
        if self.status is Status.LEFT:
            return str(self.status.value)
        words = proved(self.laws) if self.status is Status.PROVED else self.status.value
        return f"{words}, {self.seconds:.3f} s"


@final
@dataclass(frozen=True, slots=True)
class Moment:
    """A tree, what led to it, where the recipe says so (None: it does not), and its proof."""

    title: str
    span: Span | None
    kernel: Kernel
    proof: Proof


def story(variant: Variant, shown: Progress = SILENT, prove: Prover = prove) -> tuple[Moment, ...]:
    """The moments in order. shown: gets the number of proofs so far."""
    plain = variant.start.kernel
    trees: list[tuple[str, Span | None, Scheduled]] = [
        ("the plain schedule", None, variant.start),
        *((str(s.primitive), _written(s.primitive.span), s.state) for s in variant.steps),
        ("lowered, end to end", None, variant.lowered),
    ]
    moments: list[Moment] = []
    refused = False
    for title, span, state in trees:
        proof = Proof(Status.LEFT) if refused else _tried(plain, state, prove)
        refused = proof.status is not Status.PROVED
        moments.append(Moment(title, span, state.kernel, proof))
        shown.detail(f"{len(moments)} of {len(trees)} proved")
    return tuple(moments)


def _written(span: Span) -> Span | None:
    return None if span == NOWHERE else span


def _tried(plain: Kernel, state: Scheduled, prove: Prover) -> Proof:
    start = time.perf_counter()
    try:
        prove(plain, state)
    except Refused as refused:
        case = refused.witness.lines() if refused.witness else ()
        return Proof(Status.REFUSED, time.perf_counter() - start, (refused.reason, *case))
    return Proof(Status.PROVED, time.perf_counter() - start, laws=state.laws)
