"""What `run` does with specs that promise nothing, whose oracle fails or gives no numbers."""

import re

import pytest

from gen import timing, trial
from gen.errors import SpecError, TilesmithError
from gen.lower.target import Level
from gen.sizes import sides
from gen.spec import choices, loads

COPY = """\
tilesmith: 1
kernel: copy
doc: The input.
signature: ()->()
dtypes: {T: [float32]}
arguments: {x: {type: "T[m]"}, y: {type: "T[m]", intent: out}}
compute: |
  y[i] = x[i]
oracle: ORACLE
"""


def run(oracle: str) -> trial.Report:
    spec = loads(COPY.replace("ORACLE", oracle), "copy.yaml")
    return trial.run(spec, choices(spec)[0], Level.V2, {})


def test_without_an_accuracy_floats_are_near_and_no_more() -> None:
    assert run("x").right
    assert run("x * (1 + 1e-5)").right
    assert not run("x * (1 + 1e-3)").right


def test_an_oracle_that_fails_is_an_error_there() -> None:
    with pytest.raises(SpecError, match=r"copy\.yaml:9:9: error: this fails: Unable to"):
        run("np.ones(10**12)")


GMEAN = """\
tilesmith: 1
kernel: gmean
doc: Geometric mean.
signature: (n)->()
dtypes: {T: [float32]}
arguments: {x: {type: "T[m, n]"}, y: {type: "T[m]", intent: out}}
compute: |
  total[i] = sum(log(x[i, j]) for j in n)
  y[i] = exp(total[i] / n)
oracle: np.exp(np.mean(np.log(x), axis=-1))
accuracy: (n + 4) * eps * y[i]
"""
NOWHERE = ("log(x[i, j])", "log(-1 - abs(x[i, j]))"), ("np.log(x)", "np.log(-1 - np.abs(x))")


def gmean(*changes: tuple[str, str], **sizes: int) -> trial.Report:
    text = GMEAN
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    spec = loads(text, "gmean.yaml")
    return trial.run(spec, choices(spec)[0], Level.V2, sizes)


def line(report: trial.Report, word: str) -> str:
    (found,) = (text for text in str(report).splitlines() if text.startswith(f"  {word} "))
    return found.removeprefix(f"  {word}").strip()


def test_what_is_nan_around_0_is_compared_on_positive_inputs() -> None:
    right = gmean()
    assert right.right and right.case.finite == 64 and right.case.compared == 128
    assert 0 < right.case.error < 1e-6
    assert re.fullmatch(
        r"\S+e-\d\d from the oracle, 0\.\d+ of what the spec allows", line(right, "error")
    )
    # at 64 all is NaN for inputs around 0, in a wrong kernel as in its oracle
    wrong = gmean(("total[i] / n", "total[i] * 1.01 / n"))
    assert not wrong.right and wrong.case.worst > 1


def test_nan_alone_is_not_right() -> None:
    report = gmean(*NOWHERE)
    assert not report.right
    assert line(report, "error") == (
        "nothing compared: all results are NaN or infinite, as the oracle's are"
    )
    assert line(report, "wrong") == (
        "all results are NaN or infinite, of positive inputs too, so a wrong kernel would not be"
        " seen: compare it on inputs for which the oracle is finite, by tilesmith.gen.compile"
    )
    assert not gmean(*NOWHERE, m=0).right, "the small sizes are NaN alone, too"


def test_nan_of_nothing_is_right() -> None:
    report = gmean(n=0)
    assert report.right and "wrong  " not in str(report)
    assert line(report, "error") == (
        "nothing compared: all results are NaN or infinite, as the oracle's are"
    )


def test_no_elements_and_no_oracle_are_said() -> None:
    report = gmean(m=0)
    assert report.right
    assert line(report, "error") == (
        "nothing compared: the outputs have no elements at these sizes"
    )
    oracle = "oracle: np.exp(np.mean(np.log(x), axis=-1))\n"
    alone = gmean((oracle, ""))
    assert alone.right and alone.case.compared == 128
    assert line(alone, "error").endswith("what is allowed: the spec has no oracle")
    assert line(alone, "edges") == f"{len(alone.edges)} small sizes, 0 wrong"


SUMS = """\
tilesmith: 1
kernel: sums
doc: Running sums, which no recipe may break.
signature: (n)->(n)
dtypes: {T: [float32]}
arguments: {y: {type: "T[n]", intent: inout}}
compute: |
  for i in range(1, n):
      y[i] = y[i] + y[i - 1]
recipes:
  - target: cpu
    variants:
      - when: n >= 300 and not n >= 400
        steps: [split: {loop: y.i, factors: [null, 4]}]
      - when: n < 0
        steps: [split: {loop: y.i, factors: [null, 8]}]
      - steps: []
"""


def test_without_an_oracle_it_is_the_plain_schedule_that_says_what_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = loads(SUMS, "sums.yaml")
    report = trial.run(spec, choices(spec)[0], Level.V2, {"n": 50})
    assert report.right
    assert line(report, "error") == (
        "0.00e+00 from the plain schedule, 0 of what is allowed: the spec has no oracle"
    )
    other = loads(SUMS.replace("+ y[i - 1]", "+ y[i - 1] * 1.01"), "sums.yaml")
    wrong = trial.compiled(other, choices(other)[0], Level.V2)
    monkeypatch.setattr(trial, "compiled", lambda *_: wrong)
    report = trial.run(spec, choices(spec)[0], Level.V2, {"n": 50})
    assert not report.right and report.case.worst > 1


def test_sizes_on_either_side_of_each_when_and_which_variants_ran() -> None:
    spec = loads(SUMS, "sums.yaml")
    drawn = [sizes["n"] for sizes in sides(spec, Level.V2)]
    assert sorted(drawn) == [1, 2, 300, 301, 399, 401]
    report = trial.run(spec, choices(spec)[0], Level.V2, {"n": 50})
    sizes = len(report.edges) + 1
    assert line(report, "ran") == (
        f"of {sizes} sizes variant 0 at 3, variant 1 at none, variant plain at {sizes - 3}"
    )
    assert {c.sizes["n"] for c in report.edges if c.variant == "0"} == {300, 301, 399}


def test_bench_does_not_call_right_what_was_not_compared() -> None:
    def bench(text: str) -> timing.Report:
        spec = loads(text, "gmean.yaml")
        return timing.bench(spec, choices(spec)[0], [Level.V2], [1], [{"m": 2, "n": 3}], 1)

    nowhere = GMEAN
    for old, new in NOWHERE:
        nowhere = nowhere.replace(old, new)
    with pytest.raises(TilesmithError, match="gmean v2: all results are NaN or infinite, of pos"):
        bench(nowhere)
    title = str(bench(re.sub("oracle: .*\n", "", GMEAN))).splitlines()[0]
    assert title == "gmean float32: no oracle to compare with; milliseconds a call"


def test_an_error_where_none_is_allowed_is_a_short_number() -> None:
    case = trial.Case({"n": 1}, 1.5e307, 0.5, "y[0]", 1, 1)
    text = str(trial.Report("k", "float32", "v3", case, 1.0, (), oracle=True))
    assert "error  5.00e-01 from the oracle, 1.5e+307 of what the spec allows" in text


def test_without_an_oracle_the_plain_schedule_has_the_externals_of_the_spec() -> None:
    text = re.sub("oracle: .*\n", "", COPY).replace("x[i]\n", "more(x[i])\n")
    externals = """\
externals:
  more:
    arguments: {v: T}
    result: T
    source: "static float more(float v) { return v + 1; }"
    oracle: v + 1
"""
    spec = loads(text + externals, "copy.yaml")
    report = trial.run(spec, choices(spec)[0], Level.V2, {})
    assert report.right and not report.oracle and report.case.compared == 64
