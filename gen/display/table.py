"""The steps of a variant as a table, each with its proof and what it changed: for notebooks.

Input: a variant. Output: an object that prints as text, and that notebooks show as HTML, in which
all that a spec says is text.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import final

from ..ir.text.printer import to_text
from ..lower.variants import Variant
from ..poly.prove import prove
from ..schedule.base import Prover
from .differences import Line, Mark, differences, excerpt
from .story import Moment, story


@final
@dataclass(frozen=True, slots=True)
class StepRow:
    """number: of the step, "" where it is none. place: where a file says so. changed: lines of the
    tree, with marks; all of the first tree.
    """

    number: str
    title: str
    place: str
    proof: str
    detail: tuple[str, ...]
    changed: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, repr=False)
class StepTable:
    """What each step of a variant does, what was proved of it, and what it changed."""

    title: str
    rows: tuple[StepRow, ...]

    def __repr__(self) -> str:
        number, title = (max(len(part) for part in column) for column in self._columns())
        lines = [self.title]
        for row in self.rows:
            lines.append(f"  {row.number:>{number}}  {row.title:<{title}}  {row.proof}")
            lines += (f"  {'':>{number}}    {line}" for line in row.detail)
        return "\n".join(lines)

    def _columns(self) -> Iterator[list[str]]:
        yield [row.number for row in self.rows]
        yield [row.title for row in self.rows]

    def _repr_html_(self) -> str:
        left = "text-align: left; vertical-align: top"
        names = "".join(f'<th style="{left}">{n}</th>' for n in ("", "step", "proof", "changed"))
        lines = [f"<table><caption>{escape(self.title)}</caption><tr>{names}</tr>"]
        for row in self.rows:
            cells = "".join(f'<td style="{left}">{cell}</td>' for cell in _cells(row))
            lines.append(f"<tr>{cells}</tr>")
        return "\n".join([*lines, "</table>"])


def _cells(row: StepRow) -> tuple[str, ...]:
    place = f"<br><small>{escape(row.place)}</small>" if row.place else ""
    proof = "<br>".join(map(escape, (row.proof, *row.detail)))
    lines = escape("\n".join(row.changed))
    changed = f"<details><summary>lines</summary><pre>{lines}</pre></details>" if lines else ""
    return row.number, f"<code>{escape(row.title)}</code>{place}", proof, changed


def step_table(title: str, variant: Variant, prove: Prover = prove) -> StepTable:
    """Each step is proved. What is refused is in the table, with the reason."""
    moments = story(variant, prove=prove)
    texts = ["", *(to_text(moment.kernel) for moment in moments)]
    rows = (
        _row(number if 0 < number <= len(variant.steps) else 0, moment, *pair)
        for number, (moment, pair) in enumerate(zip(moments, pairwise(texts), strict=True))
    )
    return StepTable(title, tuple(rows))


def _row(number: int, moment: Moment, before: str, after: str) -> StepRow:
    place, span = "", moment.span
    if span is not None:
        place = f"{Path(span.path).name}:{span.line}  {' '.join(span.text.split())}"
    lines = excerpt(differences(before, after)) if before else _whole(after)
    return StepRow(
        str(number or ""),
        moment.title,
        place,
        str(moment.proof),
        moment.proof.detail,
        tuple(f"{line.mark.value} {line.text}".rstrip() for line in lines),
    )


def _whole(text: str) -> Iterator[Line]:
    return (Line(Mark.KEPT, line) for line in text.splitlines())
