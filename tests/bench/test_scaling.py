"""Jumps in made-up times, the sizes that are measured, and the page and the picture of a run."""

import argparse
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from bench import __main__ as bench
from bench import run
from bench.cases import UnknownName
from bench.results import Cell, PeerFacts, Results, Row
from bench.scaling import command, jumps, measuring, page, picture, series
from bench.scaling.jumps import Point
from bench.scaling.series import SERIES

FIXED, COST = 400e-9, 0.1e-9  # seconds a call, and a byte
SIZES = [round(100 * 1.41**i) for i in range(40)]


def point(size: int, seconds: float, **more: object) -> Point:
    return replace(Point((size,), size, size, seconds), **more)


def smooth() -> list[Point]:
    return [point(size, FIXED + COST * size) for size in SIZES]


def from_here(at: int, factor: float, **more: object) -> list[Point]:
    """As smooth, but from one size on by a factor slower."""
    return [
        replace(p, seconds=p.seconds * factor, **more) if i >= at else p
        for i, p in enumerate(smooth())
    ]


# ---------------------------------------------------------------- jumps


def test_time_that_grows_with_the_work_has_no_jumps() -> None:
    assert jumps.jumps(smooth()) == []
    assert jumps.fixed(smooth()) == pytest.approx(FIXED, rel=0.01)


@pytest.mark.parametrize("at", [1, 8, 20, 39])
def test_a_cliff_is_found_where_it_is_and_nowhere_else(at: int) -> None:
    (jump,) = jumps.jumps(from_here(at, 1.5))
    assert (jump.before.size, jump.after.size) == (SIZES[at - 1], SIZES[at])
    assert jump.ratio == pytest.approx(1.5, rel=0.02) and not jump.explained


def test_a_small_cliff_is_none() -> None:
    assert jumps.jumps(from_here(20, 1.25)) == []


def test_what_is_fixed_hides_no_cliff_of_large_sizes() -> None:
    """4 KB take 410 ns of which 400 are fixed: the cost of a byte may not double there for nothing,
    but where bytes are nearly all of the time.
    """
    doubled = [point(s, FIXED + COST * s * (2 if s >= SIZES[30] else 1)) for s in SIZES]
    (jump,) = jumps.jumps(doubled)
    assert jump.after.size == SIZES[30] and jump.ratio > 1.9
    tiny = [point(s, FIXED + COST * s * (2 if s >= SIZES[3] else 1)) for s in SIZES]
    assert jumps.jumps(tiny) == []


def test_small_sizes_may_not_grow_as_the_work_does() -> None:
    """Where all time is fixed, 1.41 times the work explains nothing."""
    (jump,) = jumps.jumps(from_here(4, 1.41))
    assert jump.after.size == SIZES[4]


def test_operations_explain_where_they_grow_more_than_bytes() -> None:
    cubes = [
        replace(point(n * n, FIXED + 1e-11 * n**3), operations=n**3)
        for n in (8, 16, 32, 64, 128, 256)
    ]
    assert jumps.jumps(cubes) == []
    assert jumps.jumps([replace(p, operations=0) for p in cubes])


def test_a_spike_is_found_once() -> None:
    points = smooth()
    points[25] = replace(points[25], seconds=points[25].seconds * 2)
    assert [j.after.size for j in jumps.jumps(points)] == [SIZES[25]]


def test_what_slows_the_streams_too_is_explained() -> None:
    floors = [0.5 * COST * p.size * (1.5 if i >= 20 else 1) for i, p in enumerate(smooth())]
    points = [replace(p, floor=f) for p, f in zip(from_here(20, 1.6), floors, strict=True)]
    (jump,) = jumps.jumps(points)
    assert jump.ratio > 1.5 and jump.left == pytest.approx(jump.ratio / 1.5, rel=0.05)
    assert jump.explained
    points = [replace(p, floor=f) for p, f in zip(from_here(20, 2.5), floors, strict=True)]
    (jump,) = jumps.jumps(points)
    assert not jump.explained
    (jump,) = jumps.jumps(from_here(20, 1.6))  # where no ceilings were measured
    assert not jump.explained


def test_streams_explain_nothing_of_what_is_fixed() -> None:
    points = [
        replace(p, floor=1e-12 * p.size * (2 if i >= 2 else 1), bandwidth=1 if i >= 2 else 2)
        for i, p in enumerate(from_here(2, 1.5))
    ]
    (jump,) = jumps.jumps(points)
    assert jump.after.size == SIZES[2] and not jump.explained
    assert not any("streams" in said for said in jumps.told(jump, {}))


def test_few_points() -> None:
    assert jumps.jumps([]) == jumps.jumps(smooth()[:1]) == []
    assert jumps.fixed([]) == 0


@pytest.mark.parametrize(
    ("shares", "hows", "dims", "said"),
    [
        ((1, 1.5), ("0", "0"), ((64,), (91,)), ["more threads take 1.5 times as long as one"]),
        ((0.5, 1), ("0", "0"), ((64,), (91,)), ["more threads no longer help"]),
        ((0.5, 0.5), ("a", "b"), ((64,), (91,)), ["a gives way to b"]),
        ((0.5, 0.5), ("0", "0"), ((1, 64), (1, 65)), ["the odd size beside a round one"]),
        ((0.5, 0.5), ("0", "0"), ((64,), (91,)), []),
    ],
)
def test_what_goes_with_a_jump(
    shares: tuple[float, float], hows: tuple[str, str], dims: tuple[tuple[int, ...], ...],
    said: list[str],
) -> None:  # fmt: skip
    ends = [replace(point(9, s), how=h, dims=d) for s, h, d in zip(shares, hows, dims, strict=True)]
    jump = jumps.Jump(*ends, 2.0, 2.0)
    assert jumps.told(jump, dict.fromkeys(dims, 1.0)) == said


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize("name", SERIES)
def test_sizes_are_within_limits_close_and_in_order(name: str) -> None:
    most = 1 << 24
    cases = series.cases(SERIES[name], most)
    bytes_of = [case.bytes_read + case.bytes_written for case in cases]
    assert bytes_of == sorted(set(bytes_of))
    assert 100 <= bytes_of[0] < 10_000 and most / 2 < bytes_of[-1] <= most
    large = [pair for pair in pairwise(bytes_of) if pair[0] > 4000]
    assert all(after < 1.65 * before for before, after in large)
    sides = {case.dims[-1] for case in cases} | {case.dims[0] for case in cases}
    assert name == "conv2d" or {64, 65, 128, 129, 256, 257, 512, 513} <= sides


def test_operations_are_limited_too() -> None:
    assert max(c.operations for c in series.cases(SERIES["matmul"], 1 << 30)) <= 4e9


def test_names_of_series() -> None:
    assert [s.name for s in series.chosen(["sum_last", "exp"])] == [
        "exp", "sum of rows", "sum of all",
    ]  # fmt: skip
    assert len(series.chosen([])) == len(SERIES)
    with pytest.raises(UnknownName, match="no series 'sums'; there are exp, softmax, "):
        series.chosen(["sums"])


def test_sizes_on_the_command_line() -> None:
    assert [command.size(text) for text in ("4096", "64K", "256M", "1G")] == [
        4096, 1 << 16, 1 << 28, 1 << 30,
    ]  # fmt: skip
    for wrong in ("", "G", "1.5G", "0", "-1", "4MB"):
        with pytest.raises(argparse.ArgumentTypeError, match="is no size such as 4096, 64K"):
            command.size(wrong)


def test_writing_the_page_needs_all_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["scaling", "exp", "--write"])
    assert "--write keeps all kernels: name none" in capsys.readouterr().err
    assert bench.main(["scaling", "sums"]) == 2


# ---------------------------------------------------------------- measured twice; the page


def row(size: int, seconds: float, threads: int = 1, how: str = "variant 0") -> Row:
    cells = {
        "tilesmith": Cell("ok", (seconds, seconds * 1.01), how=how),
        "numpy": Cell("ok", (2 * seconds,)),
    }
    return Row("exp", (size,), "exp", threads, size, size, size, {"copy": 1e10}, 0.0, cells)


def cliff(threads: int = 1) -> list[Row]:
    return [
        row(s, (FIXED + COST * s) * (2 if i >= 20 else 1), threads, f"variant {i // 20}")
        for i, s in enumerate(SIZES)
    ]


def test_the_ends_of_jumps_are_measured_again() -> None:
    rows, asked = cliff(), []
    chosen = [replace(c, dims=(s,)) for c, s in zip(_cases(), SIZES, strict=True)]

    def measure(case: series.Case) -> Row:
        asked.append(case.dims[0])
        return row(case.dims[0], FIXED + COST * case.dims[0])

    found = measuring.again(rows, chosen, measure)
    # What was slow was noise: so is the next size, which makes the jump that is left each time.
    assert asked == [size for at in (20, 21, 22) for size in SIZES[at - 1 : at + 1]]
    assert len(found[20].cells["tilesmith"].seconds) == 2 * 3
    assert jumps.jumps(measuring.points(found))[0].after.dims == (SIZES[23],)
    asked.clear()
    smooth_rows = [row(s, FIXED + COST * s) for s in SIZES]
    assert measuring.again(smooth_rows, chosen, measure) == smooth_rows and not asked


def _cases() -> list[series.Case]:
    return [series.cases(SERIES["exp"], 1 << 10)[0]] * len(SIZES)


FACTS = {
    "tilesmith": PeerFacts("0.1.0, v4", True, "kept", True),
    "numpy": PeerFacts("2.4", True, "kept", False),
}
RUN = Results({"processor": "a processor", "processors": "2"}, {}, FACTS, {}, cliff() + cliff(2))


def test_the_page() -> None:
    text = "\n".join(page.lines(RUN))
    size = SIZES[20]
    assert f"| exp | 1 | {SIZES[19]} | {size} | {page.size_of(2 * size)} | " in text
    assert " | 2.00 | variant 0 gives way to variant 1 |\n" in text
    assert "### Jumps that the machine's own streams have\n\nThere are none.\n" in text
    assert "### Microseconds a call, 2 threads (NumPy's)\n" in text
    assert "| exp | 40 | 0.399 | 0.414 (0.828) |" in text


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture.draw(RUN, tmp_path / "run.svg")
    text = (tmp_path / "run.svg").read_text("utf-8")
    assert "<svg" in text and ">exp<" in text and "bytes a second" in text
    assert picture.shorter('<path d="M 12.3456 7.89 0.5 10"/>') == '<path d="M 12.3 7.8 0.5 10"/>'


def test_a_tiny_run() -> None:
    found = measuring.measured([SERIES["exp"]], 300, run.Settings((1,), 1))
    assert [row.dims for row in found.rows] == [(16,), (17,), (22,), (23,), (32,), (33,)]
    for each in found.rows:
        assert each.kind == "exp" and each.cells["numpy"].status == "ok"
        assert each.cells["tilesmith"].how.startswith("variant ")
