"""The rows as a table in Markdown, and as JSON."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite

from .rows import Row, Status
from .sanitizer import CONTROL


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


PAGE = """\
# On a GPU

{GPU}, driver for CUDA {driver}, CuPy {CuPy}, PyTorch {PyTorch}, on {date}, by
`python -m build_tools.gpu_check run` ([how](platforms.md)). Small calls are compared with what is
right, and those with ordinary arrays with the emulator's bits, too; sizes are 0, 1, and around
warps and tiles.

| tried | |
|---|--:|
| kernels | {kernels} |
| small calls, in {ways} | {tried} |
| large calls | {large} |
| rows wrong, failed | {wrong}, {failed} |
| kernels clean under compute-sanitizer: {tools} | {clean} |
| a call with `out=`, microseconds of the processor above a raw launch | {least:.1f} to {most:.1f} |
| a copy on the device, GB/s read and written | {copied:.0f} |

Medians of device events in microseconds, inputs in turn beyond the cache; float32 where it is not
said. *Of a copy*: the time that a copy of the bytes takes that must be read and written, over ours.
Peers are CuPy, PyTorch and torch.compile, without TF32; *its time over ours* is above 1 where we
are ahead.

| kernel | sizes | us | of a copy | TFLOP/s | best peer | its us | its time over ours |
|---|---|--:|--:|--:|---|--:|--:|
"""


def page(rows: Sequence[Row], date: str) -> str:
    """A page of documentation: what was tried, and times beside the best peer's."""
    told = {row.subject: row.what for row in rows if row.part == "machine"}
    counts = Counter(row.status for row in rows)
    right = [row for row in rows if row.part == "right"]
    clean = [r for r in rows if r.part == "sanitizer" and r.subject != CONTROL]
    clean = [row for row in clean if row.status is Status.RIGHT]
    calls = [n for row in rows if (n := row.numbers.get("above a raw launch us")) is not None]
    ways = dict.fromkeys(re.sub(r"^\S+ |, variant.*", "", row.what) for row in right)
    head = PAGE.format(
        **told,
        date=date,
        kernels=len({row.subject for row in right}),
        ways=", ".join(ways),
        tried=sum(int(row.numbers.get("tried", 0)) for row in right),
        large=sum(row.part == "large" for row in rows),
        wrong=counts[Status.WRONG],
        failed=counts[Status.FAILED],
        tools=", ".join(dict.fromkeys(row.what for row in clean)),
        clean=len({row.subject for row in clean}),
        least=min(calls),
        most=max(calls),
        copied=next(row.numbers["GB/s"] for row in rows if row.subject == "copy"),
    )
    return head + "".join(f"{line}\n" for line in _times(rows))


COPY = "of the copy's rate %"


def _times(rows: Sequence[Row]) -> list[str]:
    """A line a kernel and size, with the best peer of all parts that timed it."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        if row.status is Status.MEASURED and "tilesmith us" in row.numbers:
            key = row.subject, row.what.removesuffix(", torch.compile")
            found.setdefault(key, {}).update({**row.numbers, **found.get(key, {})})
    lines = []
    for (kernel, what), n in sorted(found.items()):
        peers = {k: v for k, v in n.items() if k.endswith(" us") and k != "tilesmith us"}
        name, ours = min(peers, key=lambda k: peers[k], default=""), n["tilesmith us"]
        theirs = [_number(peers[name]), f"{peers[name] / ours:.2f}"] if name else ["", ""]
        copied = f"{n[COPY]:.0f} %"
        rate = _number(n["TFLOP/s"]) if n.get("TFLOP/s", 0) >= 1 else ""
        cells = [kernel, what, _number(ours), copied, rate, name.removesuffix(" us"), *theirs]
        lines.append(_line(cells))
    return lines


def good(rows: Sequence[Row]) -> bool:
    """Whether something was tried, and nothing is wrong or failed."""
    return any(row.status is Status.RIGHT for row in rows) and all(r.status.good for r in rows)
