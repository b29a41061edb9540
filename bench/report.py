"""Results as a table in Markdown."""

import math
import statistics
from collections.abc import Iterator, Sequence

from .results import Cell, Group, Results, Row

IDLE = 0.5  # the load at the start, below which nothing else seems to run


def markdown(results: Results) -> str:
    """The table; drawn sizes have those first at which ours are the furthest behind."""
    return "\n".join(_lines(results)) + "\n"


def _lines(results: Results) -> Iterator[str]:
    facts = results.machine
    yield f"{facts['processor']}, {facts['processors']} processors; Python {facts['python']}"
    yield ""
    if float(facts["load"]) > IDLE:
        yield f"**The machine was not idle (load {facts['load']}): take these figures for noise.**"
        yield ""
    yield from (f"- {name}: {peer.version}" for name, peer in results.peers.items())
    for threads in dict.fromkeys(row.threads for row in results.rows):
        rows = [row for row in results.rows if row.threads == threads]
        for kept, title in (
            ("kept", "result in a kept array"),
            ("new", "result allocated by each call"),
        ):
            group = results.group(kept)
            if any(group):
                yield ""
                yield f"## {threads} thread{'s' if threads > 1 else ''}, {title}"
                yield ""
                yield from table(worst_first(rows, group), group)
                yield from _summary(rows, group)
        yield from _ceilings(threads, results)
    yield from _troubles(results.rows)


def worst_first(rows: Sequence[Row], group: Group) -> Sequence[Row]:
    """The drawn rows in the order of how much faster than the best peer ours are; the others, in
    their own order, behind them.
    """

    def key(row: Row) -> float:
        drawn = row.kind.startswith("drawn") and group.ours
        ratios = _ratios([row], group.ours[0], group.others) if drawn else []
        return ratios[0] if ratios else math.inf

    return sorted(rows, key=key)


def table(rows: Sequence[Row], group: Group) -> Iterator[str]:
    """Milliseconds; the best peer in bold; how many times faster than it the first of ours is, with
    a ~ where the rounds of either disagree.
    """
    ours, others, yardsticks = group
    compared = ["faster", "of floor", *(f"{ours[0]}/{name}" for name in yardsticks)] if ours else []
    times = [*ours, *others, *yardsticks, "floor"]
    yield join(["case", "size", *times, "bound by", "best peer", *compared])
    yield join(["---", "---", *["--:"] * len(times), "---", "---", *["--:"] * len(compared)])
    for row in rows:
        best = row.best(others)
        cells = [_cell(row.cells.get(n), bold=False) for n in ours]
        cells += [_cell(row.cells.get(n), bold=best is not None and n == best[0]) for n in others]
        cells += [_cell(row.cells.get(n), bold=False) for n in yardsticks]
        floor = [milliseconds(row.floor), row.bound] if row.floor else ["", ""]
        cells += [*floor, best[0] if best else ""]
        yield join([row.label, row.kind, *cells, *(_compared(row, group) if ours else ())])


def _compared(row: Row, group: Group) -> Iterator[str]:
    """The first of ours: how many times as fast as the best peer, of the floor, over yardsticks."""
    mine, best = row.seconds(group.ours[0]), row.best(group.others)
    noisy = any(row.cells[n].noisy for n in (group.ours[0], *(best or ())[:1]) if n in row.cells)
    yield f"{best[1] / mine:.2f}x{' ~' * noisy}" if best and mine else ""
    yield f"{row.floor / mine:.0%}" if mine and row.floor else ""
    for name in group.yardsticks:
        theirs = row.seconds(name)
        yield f"{mine / theirs:.2f}" if mine and theirs else ""


def _summary(rows: Sequence[Row], group: Group) -> Iterator[str]:
    """The first of ours over all the cases: against the best peer, and against yardsticks."""
    for mine in group.ours[:1]:
        ratios = _ratios(rows, mine, group.others)
        if ratios:
            ahead = sum(ratio >= 1 for ratio in ratios)
            yield ""
            yield (
                f"{mine}: {statistics.geometric_mean(ratios):.2f} times as fast as the best peer"
                f" (geometric mean of {len(ratios)} cases); as fast or faster in {ahead}."
            )
        for name in group.yardsticks:
            over = [1 / ratio for ratio in _ratios(rows, mine, [name])]
            if over:
                yield ""
                yield (
                    f"{mine} takes {statistics.geometric_mean(over):.2f} times the time of {name}"
                    f" (geometric mean of {len(over)} cases); at most {max(over):.2f}."
                )


def _ratios(rows: Sequence[Row], mine: str, others: Sequence[str]) -> list[float]:
    """The time of the best of the others over mine, for the cases that have both."""
    pairs = [(row.best(others), row.seconds(mine)) for row in rows]
    return [best[1] / time for best, time in pairs if best and time]


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}" if seconds >= 1e-4 else f"{seconds * 1e3:.2g}"


def join(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell | None, bold: bool) -> str:
    match cell:
        case None | Cell("none"):
            return ""
        case Cell("ok"):
            text = milliseconds(cell.median)
            return f"**{text}**" if bold else text
        case Cell("wrong"):
            return f"wrong: max error {cell.error:.2g}"
        case _:
            return cell.status


def _ceilings(threads: int, results: Results) -> Iterator[str]:
    levels = dict(results.ceilings.get(str(threads), {}))
    peaks = levels.pop("peak", None)
    if peaks is None:
        return
    streams = list(next(iter(levels.values())))
    yield ""
    yield f"### Ceilings, {threads} thread{'s' if threads > 1 else ''}: GB/s"
    yield ""
    yield join(["working set", *streams])
    yield join(["---", *["--:"] * len(streams)])
    for level, figures in levels.items():
        yield join([level, *(f"{figures[s] / 1e9:.1f}" for s in streams)])
    yield ""
    yield "; ".join(f"{name} {rate / 1e9:.1f} GFLOP/s" for name, rate in peaks.items())


def _troubles(rows: Sequence[Row]) -> Iterator[str]:
    """By name: whoever was wrong or failed."""
    bad = [
        f"- {row.label}, {row.threads} thread(s), {name}: "
        + (
            f"wrong, max error {cell.error:.3g}"
            if cell.status == "wrong"
            else f"failed: {cell.why}"
        )
        for row in rows
        for name, cell in row.cells.items()
        if cell.status in {"wrong", "failed"}
    ]
    if bad:
        yield from ("", "## Wrong or failed", "", *bad)
