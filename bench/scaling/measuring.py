"""Measure series of sizes, and each jump again.

Input: series, the most bytes, settings. Output: Results whose rows have the series' names as their
kinds. The peers' processes, their pauses and the ceilings are those of `run`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from .. import peers, run
from ..cases import Case
from ..results import Cell, Results, Row
from .jumps import Jump, Point, jumps
from .series import Series, cases

OURS = "tilesmith"
NUMPY = "numpy"
MORE_ROUNDS = 3  # times as many, where a jump is measured again
PASSES = 3
NONE = Cell("none")


def points(rows: Iterable[Row]) -> list[Point]:
    """Ours, where they are right, by the least time of their rounds."""
    return [_point(row, row.cells[OURS]) for row in rows if row.seconds(OURS) is not None]


def _point(row: Row, cell: Cell) -> Point:
    return Point(
        row.dims,
        row.bytes_read + row.bytes_written,
        row.operations,
        min(cell.seconds),
        cell.noisy,
        row.floor,
        max(row.bandwidths.values(), default=0.0),
        cell.how,
    )


def of(found: Results, name: str, threads: int) -> list[Row]:
    return [row for row in found.rows if (row.kind, row.threads) == (name, threads)]


def found_jumps(found: Results) -> list[tuple[str, int, Jump]]:
    """Series, threads and jump, the worst first; those that the machine explains come last."""
    keys = dict.fromkeys((row.kind, row.threads) for row in found.rows)
    every = [(*key, jump) for key in keys for jump in jumps(points(of(found, *key)))]
    return sorted(every, key=lambda each: (each[2].explained, -each[2].ratio))


def measured(
    series: Sequence[Series],
    most_bytes: int,
    settings: run.Settings,
    keep: Callable[[Results], None] = lambda results: None,
) -> Results:
    results = Results(run.machine(), vars(settings) | {"threads": list(settings.threads)})
    for threads in settings.threads:
        with run.Crew(peers.choose([OURS, NUMPY]), threads, settings) as crew:
            results.peers |= crew.facts
            for each in series:
                results.rows += _series(each, most_bytes, crew)
                keep(results)
    run.progress("")
    return results


def _series(series: Series, most_bytes: int, crew: run.Crew) -> list[Row]:
    chosen, settings = cases(series, most_bytes), crew.settings
    rows = []
    for number, case in enumerate(chosen, 1):
        run.progress(f"{series.name} {number}/{len(chosen)}, {crew.threads} thread(s)")
        rows.append(run.measure(case, crew))
    crew.settings = replace(settings, rounds=MORE_ROUNDS * settings.rounds)
    try:
        return again(rows, chosen, lambda case: run.measure(case, crew))
    finally:
        crew.settings = settings


def again(rows: Sequence[Row], chosen: Sequence[Case], measure: Callable[[Case], Row]) -> list[Row]:
    """The rows, those at both ends of a jump measured again: each jump that is still there, and
    each that is new, in passes over all of them. What else runs on the machine comes and goes.
    """
    rows = list(rows)
    for _ in range(PASSES):
        ends = {p.dims for j in jumps(points(rows)) for p in (j.before, j.after)}
        rows = [
            merged(row, measure(case)) if row.dims in ends else row
            for row, case in zip(rows, chosen, strict=True)
        ]
    return rows


def merged(first: Row, second: Row) -> Row:
    """The rounds of both; of the ceilings, the better."""
    cells = {
        name: replace(cell, seconds=cell.seconds + second.cells.get(name, NONE).seconds)
        for name, cell in first.cells.items()
    }
    streams = {
        name: max(rate, second.bandwidths.get(name, 0.0)) for name, rate in first.bandwidths.items()
    }
    return replace(first, cells=cells, bandwidths=streams, peak=max(first.peak, second.peak))
