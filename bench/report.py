"""Results as a table in Markdown."""

import statistics
from collections.abc import Iterator, Sequence

from .results import Cell, Results, Row

IDLE = 0.5  # the load at the start, below which nothing else seems to run


def markdown(results: Results) -> str:
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
            ours, others = results.group(kept)
            if ours or others:
                yield ""
                yield f"## {threads} thread{'s' if threads > 1 else ''}, {title}"
                yield ""
                yield from table(rows, ours, others)
                yield from _summary(rows, ours, others)
        yield from _ceilings(threads, results)
    yield from _troubles(results.rows)


def table(rows: Sequence[Row], ours: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    """Milliseconds; the best peer in bold; how many times faster than it the first of ours is."""
    ratios = ["best peer", "faster", "of floor"] if ours else ["best peer"]
    head = ["case", "size", *ours, *others, "floor", "bound by", *ratios]
    yield join(head)
    yield join(
        ["---", "---", *["--:"] * (len(ours) + len(others) + 1), "---", *["--:"] * len(ratios)]
    )
    for row in rows:
        best = row.best(others)
        cells = [_cell(row.cells.get(name), bold=False) for name in ours]
        cells += [_cell(row.cells.get(n), bold=best is not None and n == best[0]) for n in others]
        floor = [milliseconds(row.floor), row.bound] if row.floor else ["", ""]
        mine = row.seconds(ours[0]) if ours else None
        against = [best[0] if best else ""]
        if ours:
            against.append(f"{best[1] / mine:.2f}x" if best and mine else "")
            against.append(f"{row.floor / mine:.0%}" if mine and row.floor else "")
        yield join([row.label, row.kind, *cells, *floor, *against])


def _summary(rows: Sequence[Row], ours: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    """Against the best peer, over all the cases that have one."""
    ratios = [
        best[1] / mine
        for row in rows
        for best in [row.best(others)]
        for mine in [row.seconds(ours[0]) if ours else None]
        if best and mine
    ]
    if ratios:
        ahead = sum(ratio >= 1 for ratio in ratios)
        yield ""
        yield (
            f"{ours[0]}: {statistics.geometric_mean(ratios):.2f} times as fast as the best peer"
            f" (geometric mean of {len(ratios)} cases); as fast or faster in {ahead}."
        )


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
