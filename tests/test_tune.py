"""The parts of `tilesmith tune`: what is searched, how kernels are compared, what is written.

Time is a clock of these tests, and kernels are stand-ins that take so long as their test says.
"""

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gen.errors import TilesmithError
from gen.language import loads
from gen.lower.variants import Plain
from gen.targets.cpu.target import Cpu
from gen.targets.cuda.target import Cuda
from gen.trial.tune import subjects
from gen.trial.tune.contest import ByTime, Gain, TimedCall, gain, least, ratio
from gen.trial.tune.edit import with_comment, with_recipe, with_values
from gen.trial.tune.space import Assignment, Knob, asked, knobs, neighbours
from gen.trial.tune.study import Fate, library, search

SPEC = """\
tilesmith: 1
kernel: k
doc: Twice each number.
signature: ()->()
dtypes: {T: [float32, float64]}
arguments:
  x: {type: "T[m]"}
  y: {type: "T[m]", intent: out}
compute: |
  y[i] = 2 * x[i]
oracle: 2 * x
accuracy: 8 * ulp(y[i])
"""
RECIPE = """\
recipes:
  - target: cpu
    # of one's own
    params:
      rows: {v2: 2,   v3: 4, v4: 6, neon: 8}  # in registers
      width: 8   # lanes
    variants:
      - steps:
          - split: {loop: y.i, factors: [null, $rows, $width], as: [y.i0, y.i1, y.i2]}
          - vectorize: {loop: y.i2, width: $width}
# the end
"""


# ---------------------------------------------------------------- what is searched


def test_neighbours() -> None:
    assert neighbours(6) == (1, 3, 4, 5, 6, 7, 8, 12, 24)
    assert neighbours(256) == (64, 128, 256, 512, 1024)
    assert neighbours(1) == (1, 2, 3, 4) and neighbours(0) == (0, 1, 2)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("rows=4,6,8", (4, 6, 8)),
        ("rows=4..7,12", (4, 5, 6, 7, 12)),
        ("strip=64..600*2", (64, 128, 256, 512)),
        ("at=register,heap,heap", ("register", "heap")),
    ],
)
def test_what_is_asked(text: str, values: tuple[int | str, ...]) -> None:
    assert asked(text) == (text.partition("=")[0], values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rows", "a parameter to search is NAME=VALUE,... or NAME=FIRST..LAST, not 'rows'"),
        ("rows=", "a parameter to search is NAME=VALUE,... or NAME=FIRST..LAST, not 'rows='"),
        ("=4", "a parameter to search is NAME=VALUE,... or NAME=FIRST..LAST, not '=4'"),
        ("rows=-4", "a parameter to search is NAME=VALUE,... or NAME=FIRST..LAST, not 'rows=-4'"),
        ("rows=8..4", "no values are in 'rows=8..4'"),
        ("rows=1..8*1", "no values are in 'rows=1..8*1'"),
        ("rows=0..8*2", "no values are in 'rows=0..8*2'"),
        ("rows=1..999999999", "'rows' has 65 values to try: at most 64"),
    ],
)
def test_what_cannot_be_asked(text: str, message: str) -> None:
    with pytest.raises(TilesmithError) as error:
        asked(text)
    assert error.value.message == message


def test_knobs() -> None:
    values = {"rows": 6, "strip": 64, "at": "heap"}
    found = knobs(values, {"rows", "at"}, ())
    assert found == (Knob("rows", (1, 3, 4, 5, 6, 7, 8, 12, 24), 6),)
    assert str(knobs(values, {"at"}, [("at", ("register",))])[0]) == "at heap, register (now heap)"
    with pytest.raises(TilesmithError) as error:
        knobs(values, {"rows"}, [("rwos", (1,))])
    assert error.value.message == "there is no parameter 'rwos': there are rows, strip, at"
    assert error.value.hint == "did you mean 'rows'?"
    with pytest.raises(TilesmithError) as error:
        knobs(values, {"rows"}, [("strip", (1,))])
    expected = "'strip' makes no difference: no variant that runs at these sizes uses it"
    assert error.value.message == expected


def plain(text: str = SPEC) -> Plain:
    spec = loads(text, "k.yaml")
    return Plain(spec, {"T": next(iter(spec.dtypes[0].choices))})


def test_a_recipe_of_ones_own() -> None:
    spec = loads(SPEC + RECIPE, "k.yaml")
    subject = subjects.of_recipe(spec.recipes[0], Cpu.at("v4"))
    assert subject.values == {"rows": 6, "width": 8} and subject.text is None
    params = {p.name: dict(p.values) for p in subject.recipe({"rows": 4}).params}
    assert params == {"rows": {"v4": 4}, "width": {"": 8}}
    bare = loads(SPEC + "recipes:\n  - target: cpu\n    variants: [{steps: []}]\n", "k.yaml")
    with pytest.raises(TilesmithError, match="the recipe for cpu has no parameters to search"):
        subjects.of_recipe(bare.recipes[0], Cpu.at("v4"))


def test_numbers_in_what_rules_write() -> None:
    subject = subjects.of_rules(plain(), Cuda.at("sm_90"))
    assert subject.values == {"turn": 2, "thread": 256} and subject.text is not None
    fewer = {"turn": 4, "thread": 64}
    assert "params: {turn: 4, thread: 64}" in subject.text(fewer)
    assert "factors: [null, $turn, $thread]" in subject.text(fewer)
    assert [dict(p.values) for p in subject.recipe(fewer).params] == [{"": 4}, {"": 64}]


def test_one_name_a_number() -> None:
    """What is for the same and has the same value is one; the target's own names are not taken."""
    text = """\
- target: cpu
  variants:
  - steps:
    - split: {loop: y.i, factors: [null, 8, $lanes], as: [y.i0, y.rows, y.i1]}
    - split: {loop: z.i, factors: [null, 8, 4], as: [z.i0, z.rows, z.line]}
    - split: {loop: w.i, factors: [null, 16], as: [w.i0, w.rows]}
    - vectorize: {loop: y.k, width: $lanes, accumulators: 4}
"""
    found = subjects._general(text, plain(), Cpu.at("v3"))
    assert "  params: {rows: 8, line_2: 4, rows_2: 16, acc: 4}\n" in found
    assert "[null, $rows, $lanes]" in found and "accumulators: $acc" in found
    assert "[null, $rows, $line_2]" in found and "[null, $rows_2]" in found


def test_rules_of_each_block() -> None:
    subject = subjects.of_structure(plain(), Cpu.at("v3"))
    rules = ("elementwise", "lines", "fallback")
    assert subject.rules == (Knob("rule of y", rules, "elementwise"),)
    assert subject.text is not None
    first, other = (subject.text({"rule of y": rule}) for rule in rules[::2])
    assert "stream" in first and "stream" not in other


# ---------------------------------------------------------------- the contest


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Kernel:
    """Takes so many seconds a call, each in turn."""

    clock: Clock
    seconds: Iterator[float]
    calls: list[int] = field(default_factory=list)

    def bound(self, *_: Any, threads: int, resident: bool) -> Callable[[], None]:
        assert threads == 2 and resident

        def call() -> None:
            self.calls.append(1)
            self.clock.now += next(self.seconds)

        return call


def always(clock: Clock, seconds: float) -> Any:
    return Kernel(clock, itertools.repeat(seconds))


CASE = TimedCall({"m": 1}, {"x": np.zeros(1)}, {"m": 1})


def test_rounds_have_all_kernels_at_all_sizes() -> None:
    clock = Clock()
    contest = ByTime(2, clock=clock)
    kernels = [always(clock, 0.002), always(clock, 0.001), always(clock, 0.004)]
    rounds = [*itertools.islice(contest(kernels, [CASE, CASE]), 3)]
    assert len(rounds) == 3 and all(len(r) == 3 and len(r[0]) == 2 for r in rounds)
    assert least(rounds, 1) == pytest.approx((0.001, 0.001))
    assert ratio(rounds, 1) == pytest.approx(0.5) and ratio(rounds, 2) == pytest.approx(2)


def test_short_calls_are_repeated() -> None:
    clock = Clock()
    short = always(clock, 1e-5)
    next(ByTime(2, clock=clock)([short], [CASE]))
    assert len(short.calls) >= 3 * 99


def test_what_takes_the_processor_away_is_no_part_of_the_time() -> None:
    clock = Clock()
    rough = Kernel(clock, itertools.cycle([0.002, 0.002, 0.002, 0.002, 5.0]))
    rounds = [*itertools.islice(ByTime(2, clock=clock)([always(clock, 0.002), rough], [CASE]), 20)]
    assert gain(rounds, 1).median == pytest.approx(1)


def test_a_gain_is_sure_or_is_none() -> None:
    def of(*ratios: float) -> Gain:
        return gain([((1.0,), (r,)) for r in ratios], 1)

    assert of(0.9, 0.91, 0.92, 0.93, 0.94).sure
    assert str(of(0.9, 0.91, 0.92, 0.93, 0.94)) == (
        "0.920 of before, 0.910 to 0.930 in half of 5 rounds"
    )
    assert not of(0.5, 0.5, 0.9, 1.2, 1.3).sure, "in three of four rounds"
    assert not of(0.995, 0.995, 0.995, 0.995).sure, "by a share that counts"
    assert of(0.9).sure and str(of(0.9)) == "0.900 of before"


# ---------------------------------------------------------------- the study

needs_optuna = pytest.mark.skipif(find_spec("optuna") is None, reason="needs Optuna")
ROWS = (Knob("rows", (1, 2, 3, 4, 5), 3),)
MANY = tuple(Knob(name, tuple(range(10)), 5) for name in "abc")


def bowl(chosen: Assignment) -> Iterator[float]:
    """The best is rows=4."""
    if chosen["rows"] == 2:
        raise TilesmithError("the proof was refused")
    while True:
        yield 1 + abs(int(chosen["rows"]) - 4)


@needs_optuna
def test_all_are_tried_where_there_are_few() -> None:
    trials = search(ROWS, bowl, trials=9, rounds=8)
    assert [t.chosen["rows"] for t in trials] == [3, 2, 4, 1, 5]
    assert {t.chosen["rows"]: t.fate for t in trials} == {
        3: Fate.MEASURED,
        2: Fate.REFUSED,
        4: Fate.MEASURED,
        1: Fate.STOPPED,
        5: Fate.STOPPED,
    }
    assert trials[1].reason == "the proof was refused"
    assert min(trials, key=lambda t: t.value).chosen == {"rows": 4}


def sum_of(chosen: Assignment) -> Iterator[float]:
    yield from itertools.repeat(1.0 + sum(int(v) for v in chosen.values()))


@needs_optuna
def test_many_are_sampled_the_same_each_time() -> None:
    first, again = (search(MANY, sum_of, trials=25, rounds=3, seed=5) for _ in range(2))
    assert first == again and 15 <= len(first) <= 25
    assert first[0].chosen == {"a": 5, "b": 5, "c": 5}, "what is there comes first"
    assert min(t.value for t in first) < 8, "the sampler learns"
    other = search(MANY, sum_of, trials=25, rounds=3, seed=6)
    assert [t.chosen for t in other] != [t.chosen for t in first]


@needs_optuna
@pytest.mark.parametrize("knobs_", [ROWS, MANY], ids=["few", "many"])
def test_a_search_goes_on_where_it_was(knobs_: tuple[Knob, ...], tmp_path: Path) -> None:
    tried: list[Assignment] = []

    def outcome(chosen: Assignment) -> Iterator[float]:
        tried.append(chosen)
        if len(tried) == 4:
            raise KeyboardInterrupt
        yield from itertools.repeat(1.0 + sum(int(v) for v in chosen.values()))

    journal = tmp_path / "of" / "k.journal"
    with pytest.raises(KeyboardInterrupt):
        search(knobs_, outcome, trials=12, rounds=3, journal=journal)
    trials = search(knobs_, outcome, trials=12, rounds=3, journal=journal)
    assert tried.count(tried[3]) == 2, "what was interrupted is tried again"
    assert len({tuple(t.chosen.items()) for t in trials}) == len(trials) == len(tried) - 1
    done = len(tried)
    assert search(knobs_, outcome, trials=12, rounds=3, journal=journal) == trials
    assert len(tried) == done, "a search that is done tries nothing more"


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(TilesmithError) as error:
        library()
    assert error.value.message == "tilesmith tune searches with Optuna, which is not installed"
    assert error.value.hint == "pip install 'tilesmith[tune]', or pip install optuna"


# ---------------------------------------------------------------- what is written


def changed(old: str, new: str) -> dict[int, str]:
    """By number, the lines that differ in texts of as many lines."""
    pairs = zip(old.split("\n"), new.split("\n"), strict=True)
    return {k: n for k, (o, n) in enumerate(pairs) if o != n}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_values_alone_change(newline: str) -> None:
    text = (SPEC + RECIPE).replace("\n", newline)
    new = with_values(text, "k.yaml", "cpu", Cpu.at("v3"), {"rows": 12, "width": 16})
    end = newline[:-1]
    assert changed(text, new) == {
        16: f"      rows: {{v2: 2,   v3: 12, v4: 6, neon: 8}}  # in registers{end}",
        17: f"      width: {{v2: 8, v3: 16, v4: 8, neon: 8}}   # lanes{end}",
    }
    assert with_values(text, "k.yaml", "cpu", Cpu.at("v3"), {"rows": 4, "width": 8}) == text


def test_a_recipe_for_one_level_has_one_value() -> None:
    text = (SPEC + RECIPE).replace("target: cpu", "target: cpu.v3")
    new = with_values(text, "k.yaml", "cpu.v3", Cpu.at("v3"), {"width": 16})
    assert changed(text, new) == {17: "      width: 16   # lanes"}


def test_a_comment_takes_the_place_of_an_older_one() -> None:
    text = SPEC + RECIPE
    one = with_comment(text, "k.yaml", "cpu", "# tuned on A (v3, float32): 1 ms", " (v3, ")
    two = with_comment(one, "k.yaml", "cpu", "# tuned on A (v4, float32): 2 ms", " (v4, ")
    three = with_comment(two, "k.yaml", "cpu", "# tuned on B (v3, float32): 3 ms", " (v3, ")
    own = [line for line in three.split("\n") if line not in text.split("\n")]
    assert own == ["    # tuned on A (v4, float32): 2 ms", "    # tuned on B (v3, float32): 3 ms"]
    lines = three.split("\n")
    assert lines[lines.index("    params:") - 3] == "    # of one's own"


ADDED = "- target: cuda\n  variants:\n  - steps: []\n"


def test_a_recipe_is_added_at_the_end() -> None:
    assert with_recipe(SPEC, "k.yaml", ADDED) == (
        SPEC + "recipes:\n  - target: cuda\n    variants:\n    - steps: []\n"
    )
    assert with_recipe(SPEC.rstrip("\n"), "k.yaml", ADDED) == with_recipe(SPEC, "k.yaml", ADDED)
    text = with_recipe(SPEC.replace("\n", "\r\n"), "k.yaml", ADDED)
    assert text.count("\r\n") == text.count("\n") and loads(text, "k.yaml").recipes


def test_a_recipe_is_added_to_others() -> None:
    after = "\n# of the example\nexample: |\n  >>> 1\n"
    text = with_recipe(SPEC + RECIPE + after, "k.yaml", ADDED)
    own = "  - target: cuda\n    variants:\n    - steps: []\n"
    assert text == SPEC + RECIPE.removesuffix("# the end\n") + own + "# the end\n" + after
    assert [r.target for r in loads(text, "k.yaml").recipes] == ["cpu", "cuda"]


def test_a_list_in_brackets_is_left_alone() -> None:
    text = SPEC + "recipes: [{target: cpu, variants: [{steps: []}]}]\n"
    with pytest.raises(TilesmithError) as error:
        with_recipe(text, "k.yaml", ADDED)
    assert error.value.message == "a recipe cannot be added to this list"
    assert error.value.hint == f"paste it there:\n{ADDED}"
