"""What `run` does with specs that promise nothing, whose oracle fails or gives no numbers."""

import re
import warnings
from collections.abc import Mapping

import numpy as np
import pytest

from gen.errors import SpecError, TilesmithError
from gen.ir.nodes import Expr
from gen.language import build, choices, loads
from gen.language.formulas import oracle
from gen.language.model import KernelSpec
from gen.lower.variants import plans_of, whens_of
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.cuda.target import Cuda
from gen.trial import comparison, inputs, timing
from gen.trial import run as trial
from gen.trial.kinds import InputKind
from gen.trial.plain import Reference
from gen.trial.sizes import other_scalars, sides

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


def run(oracle: str) -> trial.RunReport:
    spec = loads(COPY.replace("ORACLE", oracle), "copy.yaml")
    return trial.run(spec, choices(spec)[0], Cpu(Level.V2), {})


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
accuracy: (n + 4) * (1 + abs(log(y[i]))) * eps * y[i]
recipes: [{target: cpu, variants: [{steps: []}]}]
"""
NOWHERE = ("log(x[i, j])", "log(-1 - abs(x[i, j]))"), ("np.log(x)", "np.log(-1 - np.abs(x))")


def gmean(*changes: tuple[str, str], **sizes: int) -> trial.RunReport:
    text = GMEAN
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    spec = loads(text, "gmean.yaml")
    return trial.run(spec, choices(spec)[0], Cpu(Level.V2), sizes)


def whens(spec: KernelSpec) -> tuple[Expr, ...]:
    """Of the recipe for CPUs."""
    target = Cpu(Level.V2)
    return whens_of(plans_of(spec.recipes[0], "v2", target.parameters(choices(spec)[0])))


def line(report: trial.RunReport, word: str, which: int | None = None) -> str:
    found, *more = (text for text in str(report).splitlines() if text.startswith(f"  {word} "))
    assert which == 0 or not more
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
        " seen: say by `drawn` of an argument for which inputs the oracle is finite"
    )
    assert not gmean(*NOWHERE, m=0).right, "the small sizes are NaN alone, too"


def test_nan_of_nothing_is_right() -> None:
    report = gmean(n=0)
    assert report.right and "wrong  " not in str(report)
    assert line(report, "error") == (
        "nothing compared: all results are NaN or infinite, as the oracle's are"
    )


def test_warnings_of_numpy_do_not_hide_what_is_said() -> None:
    """The mean of nothing, which NumPy warns of."""
    text = GMEAN.replace("np.exp(np.mean(np.log(x), axis=-1))", "np.mean(x, axis=-1)")
    text = text.replace("log(x[i, j])", "x[i, j]").replace("exp(total[i] / n)", "total[i] / n")
    text = text.replace("accuracy: (n + 4) * (1 + abs(log(y[i]))) * eps * y[i]\n", "")
    spec = loads(text, "mean.yaml")
    with warnings.catch_warnings(action="error"):
        assert trial.run(spec, choices(spec)[0], Cpu(Level.V2), {"n": 0}).right
        report = timing.bench(spec, choices(spec)[0], [Cpu(Level.V2)], [1], [{"n": 0}], rounds=1)
    assert len(report.rows) == 1


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


def test_small_sizes_without_results_are_said() -> None:
    text = """\
tilesmith: 1
kernel: far
doc: d
signature: (n)->(n - 200)
dtypes: {T: [float32]}
arguments: {x: {type: "T[n]"}, y: {type: "T[n - 200]", intent: out}}
constraints: [n >= 200, n % 100 == 0]
compute: |
  y[i] = x[i + 200]
"""
    spec = loads(text, "far.yaml")
    report = trial.run(spec, choices(spec)[0], Cpu(Level.V2), {"n": 300})
    assert report.right and line(report, "edges").endswith(
        "nothing compared, no output has elements"
    )


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
    report = trial.run(spec, choices(spec)[0], Cpu(Level.V2), {"n": 50})
    assert report.right
    assert line(report, "error") == (
        "0.00e+00 from the plain schedule, 0 of what is allowed: the spec has no oracle"
    )
    other = loads(SUMS.replace("+ y[i - 1]", "+ y[i - 1] * 1.01"), "sums.yaml")
    wrong = trial.compiled(other, choices(other)[0], Cpu(Level.V2))
    monkeypatch.setattr(trial, "load", lambda *_: wrong)
    report = trial.run(spec, choices(spec)[0], Cpu(Level.V2), {"n": 50})
    assert not report.right and report.case.worst > 1


def test_sizes_on_either_side_of_each_when_and_which_variants_ran() -> None:
    spec = loads(SUMS, "sums.yaml")
    drawn = [sizes["n"] for sizes in sides(spec, whens(spec))]
    assert sorted(drawn) == [1, 2, 300, 301, 399, 401]
    report = trial.run(spec, choices(spec)[0], Cpu(Level.V2), {"n": 50})
    calls = 1 + len(report.edges) + len(report.others)
    assert line(report, "ran") == (
        f"of {calls} calls variant 0 at 6, variant 1 at none, variant plain at {calls - 6}"
    )
    assert {c.sizes["n"] for c in report.edges if c.variant == "0"} == {300, 301, 399}


CAUSAL = """\
tilesmith: 1
kernel: causal
doc: Sums up to an element, or of all.
signature: (n)->(n)
dtypes: {T: [float32]}
arguments: {x: {type: "T[m, n]"}, y: {type: "T[m, n]", intent: out}}
scalars: {causal: {type: int64, default: 0}}
compute: |
  y[i, j] = sum(x[i, k] if k <= j or causal == 0 else T(0) for k in n)
oracle: np.where(causal == 0, np.sum(x, axis=-1, keepdims=True), np.cumsum(x, axis=-1))
accuracy: (n + 4) * eps * np.sum(np.abs(x), axis=-1, keepdims=True)
recipes:
  - target: cpu
    variants:
      - when: causal == 1
        steps: []
      - when: causal < 0 and m < 0
        steps: []
      - steps: []
  - target: cuda
    variants:
      - when: causal == 1
        steps: [STEPS]
      - steps: [STEPS]
""".replace(
    "STEPS",
    "{split: {loop: y.j, factors: [null, 32]}}, {bind: {loop: y.i, axis: blockIdx.x}},"
    " {bind: {loop: y.j_1, axis: threadIdx.x}}",
)


def test_scalars_are_such_that_each_variant_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = loads(CAUSAL, "causal.yaml")
    report = trial.run(spec, choices(spec)[0], Cpu(Level.V2), {})
    assert report.right
    told = re.fullmatch(
        r"of (\d+) calls variant 0 at (\d+) \(with causal=1\), variant 1 at none,"
        r" variant plain at (\d+)",
        line(report, "ran"),
    )
    assert told is not None
    total, taken, usual = map(int, told.groups())
    assert total == taken + usual and taken >= 2 * 49
    wrong = loads(CAUSAL.replace("k <= j", "k < j"), "causal.yaml")
    planted = trial.compiled(wrong, choices(wrong)[0], Cpu(Level.V2))
    monkeypatch.setattr(trial, "load", lambda *_: planted)
    report = trial.run(spec, choices(spec)[0], Cpu(Level.V2), {})
    assert not report.right and report.case.worst <= 1
    assert " causal=1: error" in line(report, "wrong", 0)


def test_scalars_of_named_sizes_and_several_scalars() -> None:
    text = CAUSAL.replace("default: 0}", "default: 0}, step: {type: int64, default: 1}")
    text = text.replace("compute:", "sizes: {far: 2 * step}\nconstraints: [step >= 1]\ncompute:")
    text = text.replace("T(0) for", "T(0 * far) for").replace("causal < 0 and m < 0", "far >= 100")
    text = text.replace("when: causal == 1", "when: causal == 1 and far == 6", 1)
    spec = loads(text, "causal.yaml")
    drawn = [(oracle.defaults(s), sizes) for s, sizes in other_scalars(spec, whens(spec))]
    assert [scalars for scalars, _ in drawn] == [
        {"causal": 0, "step": 99},
        {"causal": 1, "step": 3},
    ]
    assert all(sizes for _, sizes in drawn)
    none = loads(CAUSAL.replace("causal == 1", "m >= 1"), "causal.yaml")
    sums = loads(SUMS, "sums.yaml")
    assert [*other_scalars(sums, whens(sums))] == [*other_scalars(none, whens(none))] == []


def test_scalars_are_such_that_each_variant_is_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "edges", lambda *_: [{"m": 2, "n": 33}])
    monkeypatch.setattr(trial, "long_sizes", lambda *_: [])
    spec = loads(CAUSAL, "causal.yaml")
    report = trial.run(spec, choices(spec)[0], Cuda.at("sm_90").emulating(), {"m": 3})
    assert report.right
    told = line(report, "ran")
    assert "variant 0 at" in told and "(with causal=1), variant 1 at" in told


def test_bench_does_not_call_right_what_was_not_compared() -> None:
    def bench(text: str) -> timing.BenchReport:
        spec = loads(text, "gmean.yaml")
        return timing.bench(spec, choices(spec)[0], [Cpu(Level.V2)], [1], [{"m": 2, "n": 3}], 1)

    nowhere = GMEAN
    for old, new in NOWHERE:
        nowhere = nowhere.replace(old, new)
    with pytest.raises(TilesmithError, match="gmean v2: all results are NaN or infinite, of pos"):
        bench(nowhere)
    title = str(bench(re.sub("oracle: .*\n", "", GMEAN))).splitlines()[0]
    assert title == "gmean float32: no oracle to compare with; milliseconds a call"


def test_an_error_where_none_is_allowed_is_a_short_number() -> None:
    case = comparison.Comparison({"n": 1}, 1.5e307, 0.5, "y[0]", 1, 1)
    text = str(trial.RunReport("k", "float32", "v3", case, 1.0, (), oracle=True))
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
    report = trial.run(spec, choices(spec)[0], Cpu(Level.V2), {})
    assert report.right and not report.oracle and report.case.compared == 64


# ---------------------------------------------------------------- other inputs


def rows(value: str, result: str = "T", types: str = "[float32]") -> str:
    """A spec of one value for each row of x, computed as it is written."""
    return f"""\
tilesmith: 1
kernel: rows
doc: Of rows.
signature: (n)->()
dtypes: {{T: {types}}}
arguments: {{x: {{type: "T[m, n]"}}, y: {{type: "{result}[m]", intent: out}}}}
constraints: [n >= 1]
compute: |
  y[i] = {value}
recipes: [{{target: cpu, variants: [{{steps: []}}]}}]
"""


LAST = "n - 1 - argmax(x[i, n - 1 - j] for j in n)"
PLANTED = [
    (rows("argmax(x[i, j] for j in n)", "int64"), (LAST,),
     {InputKind.TIES, InputKind.SMALL, InputKind.SPECIAL}),
    (rows("max(x[i, j] for j in n)"), ("sum(T(0) if isnan(x[i, j]) else T(0) for j in n)",), None),
    (rows("max(x[i, j] for j in n)"), ("max(-1e9 if isnan(x[i, j]) else x[i, j] for j in n)",),
     {InputKind.SPECIAL}),
    (rows("min(x[i, j] for j in n)"), ("min(max(x[i, j], -9999) for j in n)",),
     {InputKind.EXTREME, InputKind.SPECIAL}),
    (rows("min(x[i, j] for j in n)", types="[int32]"), ("min(max(x[i, j], -9999) for j in n)",),
     {InputKind.EXTREME}),
    (rows("1 / x[i, 0]"), ("1 / (x[i, 0] + 0)",), {InputKind.SMALL, InputKind.SPECIAL}),
    (rows("x[i, n - 1]"), ("x[i, min(n - 1, 65535)]",), {InputKind.LONG}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wrong", "found"), PLANTED, ids=range(len(PLANTED)))
def test_inputs_of_each_kind_find_what_random_ones_do_not(
    text: str, wrong: tuple[str], found: set[InputKind] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = loads(text, "rows.yaml")
    assert trial.run(right, choices(right)[0], Cpu(Level.V2), {}).right
    other = loads(re.sub(r"y\[i\] = .*", f"y[i] = {wrong[0]}", text), "rows.yaml")
    planted = trial.compiled(other, choices(other)[0], Cpu(Level.V2))
    monkeypatch.setattr(trial, "load", lambda *_: planted)
    report = trial.run(right, choices(right)[0], Cpu(Level.V2), {})
    assert not report.right
    if found is not None:
        assert all(c.worst <= 1 for c in (report.case, *report.edges))
        assert {c.kind for c in report.others if c.worst > 1} == found
        assert f", {min(k.value for k in found)}: error" in str(report)


def test_the_report_counts_the_kinds() -> None:
    spec = loads(rows("max(x[i, j] for j in n)"), "rows.yaml")
    report = trial.run(spec, choices(spec)[0], Cpu(Level.V2), {})
    assert line(report, "inputs") == (
        "10 ties, 10 zeros and the smallest, 9 the largest, 9 NaN and infinities, 9 strided,"
        " 2 long; 0 wrong"
    )
    sizes = [c.sizes for c in report.others if c.kind is InputKind.LONG]
    assert sizes == [{"m": 65539, "n": 3}, {"m": 3, "n": 65539}]
    assert {c.kind for c in report.others if c.sizes == {"m": 37, "n": 37}} == {
        InputKind.TIES, InputKind.SMALL, InputKind.EXTREME, InputKind.SPECIAL, InputKind.STRIDED
    }  # fmt: skip


def test_a_cast_of_what_no_integer_holds_is_not_compared() -> None:
    spec = loads(rows("sum(int32(x[i, j]) for j in n)", "int32"), "rows.yaml")
    report = trial.run(spec, choices(spec)[0], Cpu(Level.V2), {})
    assert {c.kind for c in report.others} == {InputKind.TIES, InputKind.STRIDED, InputKind.LONG}


def test_large_numbers_in_products_are_not_compared() -> None:
    value = "prod(x[i, j] for j in n)"
    for types, kind in (("[float32]", False), ("[int32]", True)):
        spec = loads(rows(value, types=types), "rows.yaml")
        assert (InputKind.EXTREME in inputs.kinds(build(spec, choices(spec)[0]))) is kind


def test_where_values_overflow_on_the_way_the_plain_schedule_says_what_is_right() -> None:
    oracle = "oracle: np.sqrt(np.sum(x * x, axis=-1))\naccuracy: (n + 4) * eps * y[i]\n"
    spec = loads(rows("sqrt(sum(x[i, j] ** 2 for j in n))") + oracle, "rows.yaml")
    assert trial.run(spec, choices(spec)[0], Cpu(Level.V2), {}).right
    x, y = np.full((1, 2), 1e30, np.float32), np.zeros(1, np.float32)
    reference = Reference(spec, choices(spec)[0])
    for kind, right in ((InputKind.EXTREME, True), (InputKind.TIES, False)):
        kernel = trial.compiled(spec, choices(spec)[0], Cpu(Level.V2))
        arrays, sizes = {"x": x, "y": y}, {"m": 1, "n": 2}
        case = comparison.compare(reference, kernel, arrays, sizes, kind)
        assert (case.worst <= 1) is right and y[0] == np.inf


def test_what_overflows_in_the_plain_schedule_alone_is_not_compared() -> None:
    """A processor that fuses products into differences finds what the other does not."""
    spec = loads(rows("x[i, 0] * 2 - x[i, 0]"), "rows.yaml")
    reference = Reference(spec, choices(spec)[0])
    for kind, right in ((InputKind.EXTREME, True), (InputKind.TIES, False)):
        arrays = {"x": np.full((1, 1), 3e38, np.float32), "y": np.zeros(1, np.float32)}

        def fused(arrays: inputs.Arrays, sizes: Mapping[str, int]) -> None:
            arrays["y"][:] = arrays["x"][:, 0]

        case = comparison.compare(reference, fused, arrays, {"m": 1, "n": 1}, kind)
        assert (case.worst <= 1) is right


def test_an_oracle_that_fails_on_other_inputs_leaves_them_to_the_plain_schedule() -> None:
    oracle = "oracle: np.take(np.arange(100.0), np.max(np.int64(x), axis=-1))\naccuracy: eps\n"
    text = rows("T(min(max(max(x[i, j] for j in n), 0), 99))", "float32", "[int32]")
    spec = loads(text.replace("T(", "float32(") + oracle, "rows.yaml")
    report = trial.run(spec, choices(spec)[0], Cpu(Level.V2), {})
    assert report.right and any(c.kind is InputKind.EXTREME for c in report.others)


def test_arrays_of_all_strides_and_what_is_around_them() -> None:
    spec = loads(re.sub("oracle: .*\n", "", COPY), "copy.yaml")
    rng = np.random.default_rng(0)
    seen: set[tuple[int, ...]] = set()

    def copying(arrays: inputs.Arrays, sizes: Mapping[str, int]) -> None:
        seen.add((*arrays["x"].strides, *arrays["y"].strides))
        arrays["y"][...] = arrays["x"]

    def beyond(arrays: inputs.Arrays, sizes: Mapping[str, int]) -> None:
        y = arrays["y"]
        np.lib.stride_tricks.as_strided(y, (len(y) + 1,))[-1] = 1

    def back(arrays: inputs.Arrays, sizes: Mapping[str, int]) -> None:
        arrays["x"][0] = 9

    for _ in range(30):
        x, y = np.arange(5, dtype=np.float32), np.empty(5, np.float32)
        inputs.strided(spec, copying, rng)({"x": x, "y": y}, {"m": 5})
        assert (x == y).all()
        for wrong, name in ((beyond, "y"), (back, "x")):
            with pytest.raises(inputs.Outside, match=name):
                inputs.strided(spec, wrong, rng)({"x": x, "y": y}, {"m": 5})
    assert {s for pair in seen for s in pair} == {4, 8, -4, -8}
    reference, wrong = Reference(spec, choices(spec)[0]), inputs.strided(spec, beyond, rng)
    case = comparison.compare(reference, wrong, {"x": x, "y": y}, {"m": 5})
    assert case.worst == np.inf and case.place == "y, around it"


def test_what_is_alike_along_an_axis_comes_with_a_stride_of_0() -> None:
    spec = loads(rows("max(x[i, j] for j in n)"), "rows.yaml")
    strides = []

    def looking(arrays: inputs.Arrays, sizes: Mapping[str, int]) -> None:
        strides.append(arrays["x"].strides)
        if len(strides) % 2:
            raise TilesmithError("axis 1 of 'rows' does not have stride 1")

    x, y = np.ones((3, 4), np.float32), np.empty(3, np.float32)
    inputs.strided(spec, looking, np.random.default_rng(0))({"x": x, "y": y}, {"m": 3, "n": 4})
    assert strides == [(0, 0), (0, 4)]


def test_sizes_that_nobody_gives_are_less_where_there_are_many() -> None:
    names = "abcdefg"
    text = rows("sum(x[i, j] for j in n)").replace("(n)->()", f"({','.join(names)})->()")
    text = text.replace('"T[m, n]"', f'"T[m, {", ".join(names)}]"').replace("[n >= 1]", "[]")
    index = ", ".join(f"{n}{n}" for n in names)
    over = " ".join(f"for {n}{n} in {n}" for n in names)
    text = text.replace("x[i, j] for j in n", f"x[i, {index}] {over}")
    spec = loads(text, "rows.yaml")
    assert set(trial.chosen(spec, {}).values()) == {4}
    assert trial.chosen(spec, {"a": 1, "b": 1, "c": 1, "d": 1}) == {
        "m": 32, "a": 1, "b": 1, "c": 1, "d": 1, "e": 32, "f": 32, "g": 32
    }  # fmt: skip
    with pytest.raises(TilesmithError) as refused:
        trial.run(spec, choices(spec)[0], Cpu(Level.V2), dict.fromkeys(names, 64))
    assert re.fullmatch(
        r"rows: a run of these sizes would take about 1\.13e\+06 GB, and this machine has [\d.]+",
        refused.value.message,
    )


def test_room_around_arrays_of_many_axes_is_along_some_of_them() -> None:
    """Room along all would be 3000 times the array here."""
    spec = loads(COPY.replace("ORACLE", "x"), "copy.yaml")
    x, rooms = np.arange(4.0**8).reshape([4] * 8), []

    def copying(arrays: inputs.Arrays, sizes: Mapping[str, int]) -> None:
        base = arrays["x"].base
        rooms.append(base.size if base is not None else 0)
        assert np.array_equal(arrays["x"], x)
        arrays["y"][...] = arrays["x"]

    for seed in range(3):
        y = np.empty_like(x)
        inputs.strided(spec, copying, np.random.default_rng(seed))({"x": x, "y": y}, {"m": 1})
        assert np.array_equal(x, y)
    assert max(rooms) < 150 * x.size and min(rooms) > 10 * x.size


def test_sizes_are_within_what_indices_allow() -> None:
    spec = loads(rows("x[i, 0] + float32(i ** 4)"), "rows.yaml")
    report = trial.run(spec, choices(spec)[0], Cpu(Level.V2), {})
    assert report.right
    assert not [c for c in report.others if c.kind is InputKind.LONG]
    with pytest.raises(TilesmithError) as refused:
        trial.run(spec, choices(spec)[0], Cpu(Level.V2), {"m": 40_000})
    assert refused.value.message == "rows: a size of 40000 is more than its indices allow: 32768"
