"""What a run of the fuzzer saw, counted."""

import textwrap
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import final

from .checks import Outcome
from .draft import Draft
from .features import features

_WAYS = ("proved", "check", "verify", "proof", "time")
_MOST_REASONS = 12


@final
@dataclass
class Tally:
    """Counts of sequences and steps. steps: by primitive and what became of them; judged: by
    primitive, of those that the prover refused; reasons: by primitive, way and reason; needless: by
    primitive and reason; drawn: kernels that have a feature; compared: results with the evaluator.
    """

    sequences: int = 0
    proved: int = 0
    longest: int = 0
    failures: int = 0
    steps: Counter[tuple[str, str]] = field(default_factory=Counter)
    judged: Counter[tuple[str, str]] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    needless: Counter[tuple[str, str]] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    began: float = field(default_factory=time.monotonic)

    def add(self, outcome: Outcome, draft: Draft | None = None) -> None:
        self.sequences += 1
        self.compared += outcome.compared
        if draft is not None:
            self.drawn.update(features(draft))
        self.proved += outcome.proved
        self.failures += outcome.failure is not None
        if outcome.proved:
            self.longest = max(self.longest, len(outcome.taken))
        self.steps.update((step.name, "proved") for step in outcome.taken)
        for refusal in outcome.refusals:
            name = refusal.primitive
            self.steps[name, refusal.by] += 1
            self.reasons[name, refusal.by, refusal.reason] += 1
            if refusal.needless:
                self.judged[name, "needless"] += 1
                self.needless[name, refusal.reason] += 1
            elif refusal.by == "proof" and refusal.needless is None:
                self.judged[name, "races"] += 1

    def __str__(self) -> str:
        total = {way: sum(n for (_, w), n in self.steps.items() if w == way) for way in _WAYS}
        lines = [
            f"{self.sequences} sequences: {self.proved} proved end to end, the longest of"
            f" {self.longest} steps; {self.failures} failures",
            f"{sum(total.values())} steps: {total['proved']} proved; refused {total['check']} by"
            f" their check, {total['verify']} as trees that break a rule, {total['proof']} by the"
            f" prover, {total['time']} at its limit of time",
            f"{sum(self.needless.values())} refusals by the prover look needless: the interpreter"
            f" finds the tree right; {self._races()} are of races, which it cannot judge",
            f"{self.compared} comparisons in {time.monotonic() - self.began:.0f} seconds",
            "",
            *_listed("kernels with", self.drawn),
            "",
            f"{'':24}{'proved':>8}{'check':>8}{'rule':>8}{'prover':>8}{'time':>8}{'needless':>10}",
        ]
        for name in sorted({name for name, _ in self.steps}):
            counts = "".join(f"{self.steps[name, way]:8}" for way in _WAYS)
            lines.append(f"{name:24}{counts}{self.judged[name, 'needless']:10}")
        lines += self._most("needless refusals", self.needless)
        for way in _WAYS[1:]:
            of = {(n, r): c for (n, w, r), c in self.reasons.items() if w == way}
            lines += self._most(f"reasons, {way}", Counter(of))
        return "\n".join(lines)

    def _races(self) -> int:
        return sum(n for (_, what), n in self.judged.items() if what == "races")

    @staticmethod
    def _most(title: str, counted: Counter[tuple[str, str]]) -> list[str]:
        rows = [
            f"{count:8}  {name}: {reason}"
            for (name, reason), count in counted.most_common(_MOST_REASONS)
        ]
        return ["", f"{title}:", *rows] if rows else []


def _listed(title: str, counted: Counter[str]) -> list[str]:
    words = (f"{name} {count}" for name, count in sorted(counted.items()))
    return textwrap.wrap(f"{title}: {', '.join(words)}", 100, subsequent_indent="  ")
