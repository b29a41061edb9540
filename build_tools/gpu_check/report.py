"""The rows as a table in Markdown, and as JSON."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite

from .rows import Row, Status


def as_json(rows: Sequence[Row], date: str) -> str:
    told = [asdict(row) for row in rows]
    for one in told:  # JSON has no infinities
        one["numbers"] = {n: v if isfinite(v) else None for n, v in one["numbers"].items()}
    return json.dumps({"date": date, "rows": told}, indent=1, allow_nan=False) + "\n"


def as_markdown(rows: Sequence[Row], date: str) -> str:
    """First a count and what is not good, then a table for each part."""
    counts = Counter(row.status for row in rows)
    told = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
    lines = [f"# On a GPU, {date}", "", f"{told or 'nothing was tried'}.", ""]
    lines += _listed("Wrong", rows, Status.WRONG)
    lines += _listed("Failed", rows, Status.FAILED)
    lines += _listed("Could not be run", rows, Status.SKIPPED)
    for part in dict.fromkeys(row.part for row in rows):
        lines += [f"## {part}", "", *_table([row for row in rows if row.part == part]), ""]
    return "\n".join(lines)


def _listed(title: str, rows: Sequence[Row], status: Status) -> list[str]:
    found = [row for row in rows if row.status is status]
    if not found:
        return []
    items = [f"- {r.part}, {r.subject}, {r.what}: {r.text}".replace(", :", ":") for r in found]
    return [f"## {title}", "", *items, ""]


def _table(rows: Sequence[Row]) -> list[str]:
    columns = list(dict.fromkeys(name for row in rows for name in row.numbers))
    notes = any(row.text for row in rows)
    head = ["", "what", "", *columns, *(["note"] if notes else [])]
    lines = [_line(head), "|---|---|---|" + "---:|" * len(columns) + "---|" * notes]
    for row in rows:
        numbers = [_number(row.numbers[c]) if c in row.numbers else "" for c in columns]
        note = [row.text[:160].replace("|", "\\|")] if notes else []
        lines.append(_line([row.subject, row.what, row.status, *numbers, *note]))
    return lines


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _number(value: float) -> str:
    if isfinite(value) and value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.1f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"


def good(rows: Sequence[Row]) -> bool:
    """Whether something was tried, and nothing is wrong or failed."""
    return any(row.status is Status.RIGHT for row in rows) and all(r.status.good for r in rows)
