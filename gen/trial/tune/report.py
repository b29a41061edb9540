"""What `tilesmith tune` prints, and the line that it writes beside a winner."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from .contest import Gain, Unit
from .edit import TUNED
from .space import Assignment, Knob, Value
from .study import Fate, Trial
from .subjects import Subject

REASONS = 3  # that are printed, of those for which candidates were refused


@final
@dataclass(frozen=True, slots=True)
class Finalist:
    """A choice of values in the last contest. numbers: its least at each size."""

    chosen: Assignment
    gain: Gain
    numbers: tuple[float, ...]

    def __str__(self) -> str:
        return _told(self.chosen)


@final
@dataclass(frozen=True, slots=True)
class TuneReport:
    """conditions: level, types and threads. left: what was not searched. finalists: the best first.
    before: the numbers of what is there, beside theirs. journal: where the search is kept.
    subject: what makes recipes of choices.
    """

    kernel: str
    conditions: str
    machine: str
    unit: Unit
    cases: tuple[str, ...]
    knobs: tuple[Knob, ...]
    left: tuple[str, ...]
    trials: tuple[Trial, ...]
    finalists: tuple[Finalist, ...]
    before: tuple[float, ...]
    journal: Path
    subject: Subject = field(repr=False)

    @property
    def winner(self) -> Finalist | None:
        """The best finalist, where it is better for sure."""
        best = next(iter(self.finalists), None)
        return best if best is not None and best.gain.sure else None

    def __str__(self) -> str:
        lines = [f"{self.kernel} ({self.conditions}) on {self.machine}"]
        lines += [f"  {line}" for line in self.unit.remark]
        lines += [f"  searched  {knob}" for knob in self.knobs]
        if self.left:
            lines.append(f"  left      {', '.join(self.left)}")
        lines += [f"  trials    {self._counts()}", f"            kept in {self.journal}"]
        reasons = {t.reason.splitlines()[0]: t for t in self.trials if t.reason}
        told = [f"  refused   {_told(t.chosen)}: {why}" for why, t in reasons.items()]
        lines += [*told[:REASONS], *(f"  best      {f}: {f.gain}" for f in self.finalists)]
        best = self.winner
        if best is None:
            lines.append("  winner    none: nothing is better, for sure, than what is there")
            return "\n".join(lines)
        rows = zip(self.cases, best.numbers, self.before, strict=True)
        lines += [f"  winner    {best}", *(f"            {self._row(*row)}" for row in rows)]
        ends = [k.name for k in self.knobs if best.chosen[k.name] in _ends(k)]
        if ends:
            lines.append(f"            tune again: {', '.join(ends)} may go further")
        return "\n".join(lines)

    def _counts(self) -> str:
        counts = Counter(t.fate for t in self.trials)
        return ", ".join(f"{counts[fate]} {fate.value}" for fate in Fate if counts[fate])

    def _row(self, case: str, now: float, before: float) -> str:
        return f"{self.unit(now)}, before {self.unit(before)} at {case}"

    def comment(self, date: str) -> str:
        """What was measured, on what and when: a line for beside the winner."""
        best = self.winner
        assert best is not None
        what = f"{best.gain.median:.3f} of before at {len(self.cases)} sizes"
        if len(self.cases) == 1:
            what = self._row(self.cases[0], best.numbers[0], self.before[0])
        machine = "".join(c if c.isascii() and c.isprintable() else "?" for c in self.machine)
        return f"{TUNED}{machine} ({self.conditions}), {date}: {what}"


def _ends(knob: Knob) -> tuple[Value, ...]:
    """The least and the largest of the numbers that were tried, but for what was there and 1."""
    numbers = [v for v in knob.values if isinstance(v, int)]
    return tuple(v for v in (*numbers[:1], *numbers[-1:]) if v not in (knob.start, 1))


def _told(chosen: Assignment) -> str:
    return ", ".join(f"{name}={value}" for name, value in chosen.items())
