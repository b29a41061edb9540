from pathlib import Path

import pytest

from bench import compare, plot, report, results
from bench.results import Cell, PeerFacts, Results, Row


def row(**cells: Cell) -> Row:
    return Row(
        "exp", (1000,), "main", 1, bytes_read=4000, bytes_written=4000, operations=6000,
        bandwidths={"copy": 1e9, "copy_nt": 2e9}, peak=1e9, cells=cells,
    )  # fmt: skip


def ok(*seconds: float) -> Cell:
    return Cell("ok", seconds, error=1e-7)


ROW = row(
    tilesmith=ok(8e-6, 9e-6, 7e-6),
    numpy=ok(16e-6, 90e-6, 12e-6),
    jax=ok(20e-6),
    hasty=Cell("wrong", error=0.5),
    fallen=Cell("failed", why="killed by SIGSEGV"),
    idle=Cell("none"),
    byhand=ok(6e-6),
)
FACTS = {
    "tilesmith": PeerFacts("0.1.0, v4", True, "kept", True),
    **{
        n: PeerFacts("1.0", True, "kept", False)
        for n in ("numpy", "jax", "hasty", "fallen", "idle")
    },
    "byhand": PeerFacts("1.0", True, "kept", False, yardstick=True),
    "tvm": PeerFacts("absent: No module named 'tvm'", False, "kept", False),
}
LEVELS = {"1": {"L1": {"read": 2e11}, "memory": {"read": 3e10}, "peak": {"float32": 1e11}}}
MACHINE = {
    "processor": "a processor",
    "processors": "2",
    "system": "a system",
    "python": "3.11",
    "load": "0.2",
}
RUN = Results(MACHINE, {"rounds": 3}, FACTS, LEVELS, [ROW])


def test_the_floor_is_the_larger_of_the_two() -> None:
    assert ROW.floors == {"memory": pytest.approx(4e-6), "arithmetic": pytest.approx(6e-6)}
    assert (ROW.floor, ROW.bound) == (pytest.approx(6e-6), "arithmetic")


def test_the_best_peer_is_one_whose_results_are_right() -> None:
    assert ROW.best(["numpy", "jax", "hasty", "fallen", "idle", "tvm"]) == ("numpy", 16e-6)
    assert ROW.best(["hasty", "idle"]) is None


def test_json_and_back(tmp_path: Path) -> None:
    RUN.write(tmp_path / "new" / "run.json")
    assert results.read(tmp_path / "new" / "run.json") == RUN


def test_the_table(tmp_path: Path) -> None:
    RUN.write(tmp_path / "run.json")
    text = report.markdown(results.read(tmp_path / "run.json"))
    assert "- tvm: absent: No module named 'tvm'\n" in text
    assert (
        "| exp 1000 | main | 0.008 | **0.016** | 0.02 | wrong: max error 0.5 | failed |  | 0.006"
        " | 0.006 | arithmetic | numpy | 2.00x ~ | 75% | 1.33 |\n"
    ) in text
    assert "tilesmith: 2.00 times as fast as the best peer (geometric mean of 1 cases)" in text
    assert "| memory | 30.0 |\n" in text and "float32 100.0 GFLOP/s" in text
    assert "- exp 1000, 1 thread(s), hasty: wrong, max error 0.5\n" in text
    assert "- exp 1000, 1 thread(s), fallen: failed: killed by SIGSEGV\n" in text
    assert "result allocated by each call" not in text and "not idle" not in text


def test_a_busy_machine_is_reported() -> None:
    busy = Results(MACHINE | {"load": "3.7"}, {}, FACTS, LEVELS, [ROW])
    assert "**The machine was not idle (load 3.7): take" in report.markdown(busy)


def test_a_run_without_ceilings_has_a_table() -> None:
    bare = Row(**(vars(ROW) | {"bandwidths": {}, "peak": 0.0}))
    text = report.markdown(Results(MACHINE, {}, FACTS, {"1": {}}, [bare]))
    assert "| failed |  | 0.006 |  |  | numpy | 2.00x ~ |  | 1.33 |\n" in text


def test_a_yardstick_has_its_columns_and_is_no_best_peer() -> None:
    ours, others, yardsticks = RUN.group("kept")
    assert (ours, yardsticks) == (["tilesmith"], ["byhand"]) and "byhand" not in others
    text = report.markdown(RUN)
    assert (
        "| case | size | tilesmith | numpy | jax | hasty | fallen | idle | byhand | floor"
        " | bound by | best peer | faster | of floor | tilesmith/byhand |\n"
    ) in text
    assert (
        "tilesmith takes 1.33 times the time of byhand (geometric mean of 1 cases); at most 1.33."
    ) in text
    alone = Results(MACHINE, {}, {"byhand": FACTS["byhand"]}, {}, [ROW])
    assert "| exp 1000 | main | 0.006 | 0.006 | arithmetic |  |\n" in report.markdown(alone)


def test_results_kept_before_there_were_yardsticks_are_read(tmp_path: Path) -> None:
    RUN.write(tmp_path / "run.json")
    text = (tmp_path / "run.json").read_text("utf-8")
    (tmp_path / "old.json").write_text(text.replace(',\n   "yardstick": false', ""), "utf-8")
    assert results.read(tmp_path / "old.json") == RUN


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((10, 11, 12, 10, 11), (8, 7, 8, 9, 8), "faster"),
        ((8, 7, 8, 9, 8), (10, 11, 12, 10, 11), "slower"),
        ((8, 12, 8, 12, 10), (9, 11, 9, 11, 9), ""),  # within the spread
        ((100, 100, 100), (101, 101, 101), ""),  # too little
    ],
)
def test_verdicts(before: tuple[float, ...], after: tuple[float, ...], said: str) -> None:
    assert compare.verdict(row(one=ok(*before), two=ok(*after)), "one", "two") == said


def test_a_comparison() -> None:
    rows = [
        row(**{"tilesmith A": ok(8e-6), "tilesmith .": ok(4e-6)}),
        row(**{"tilesmith A": ok(8e-6), "tilesmith .": Cell("wrong", error=1.0)}),
    ]
    text = compare.markdown(Results(MACHINE, {}, {}, {}, rows), "A", ".")
    assert "| case | threads | tilesmith A | tilesmith . | faster |  |\n" in text
    assert "| exp 1000 | 1 | 0.008 | 0.004 | 2.00x | faster |\n" in text
    assert "| exp 1000 | 1 | 0.008 | wrong |  |  |\n" in text
    assert "tilesmith . is 2.000 times as fast (geometric mean)." in text


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot.draw(RUN, tmp_path / "run.svg")
    text = (tmp_path / "run.svg").read_text("utf-8")
    assert "<svg" in text and text.count("tilesmith") and text.count("exp 1000")
    bare = Row(**(vars(ROW) | {"bandwidths": {}, "peak": 0.0}))
    with pytest.raises(ValueError, match="no ceilings were measured"):
        plot.draw(Results(MACHINE, {}, FACTS, {}, [bare]), tmp_path / "none.svg")
