"""The check of a GPU, where there is none: its own logic, and all of it with stand-ins."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import scipy.ndimage
import scipy.special

from bench import cases as bench_cases
from bench.kernels import KERNELS
from build_tools.gpu_check import __main__ as command
from build_tools.gpu_check import (
    bench,
    cases,
    formulas,
    jobs,
    large,
    launches,
    libraries,
    parts,
    prepare,
    report,
    right,
    sanitizer,
    times,
)
from build_tools.gpu_check.budget import Budget
from build_tools.gpu_check.cases import Array, Case, expected
from build_tools.gpu_check.jobs import Job, Stage
from build_tools.gpu_check.rows import Row, Status, failure, read, write
from gen.language.formulas import oracle
from gen.targets.registry import TARGETS
from gen.trial.inputs import random_arrays
from gen.trial.plain import Reference

ROOT = Path(__file__).parents[2]
STANDINS = Path(__file__).parent / "gpu"
F = formulas.F(np, scipy.special, scipy.ndimage)
RNG = np.random.default_rng(5)


def exact_softmax(x: Array) -> Array:
    return np.asarray(scipy.special.softmax(x.astype("f8"), axis=-1) if x.size else x.astype("f8"))


EXACT: dict[str, Callable[[Array], Array]] = {
    "exp": lambda x: np.exp(x.astype("f8")),
    "softmax": exact_softmax,
    "transpose": lambda x: x.T.astype("f8"),
}


def case(kernel: str, shape: tuple[int, ...], dtype: str = "float32") -> Case:
    x = RNG.standard_normal(shape).astype(dtype)
    exact = EXACT[kernel](x)
    bound = np.abs(exact) * float(np.finfo(dtype).eps)
    sizes = dict(zip("mn", shape, strict=False))
    output = expected("y", exact, bound, exact.astype(dtype))
    return Case(kernel, dtype, sizes, "random", "0", {}, {"x": x}, (output,))


@pytest.fixture
def carried(tmp_path: Path) -> Path:
    """A folder as `prepare` makes it, but that its package is the stand-in."""
    folder = tmp_path / "carried"
    (folder / "packages").mkdir(parents=True)
    (folder / "packages" / "site").symlink_to(STANDINS)
    for kernel, shapes in {
        "exp": [(0,), (1,), (33,)],
        "softmax": [(1, 0), (1, 3), (33, 2)],
    }.items():
        made = [case(kernel, shape, dtype) for shape in shapes for dtype in ("float32", "float64")]
        cases.save(folder / "cases", kernel, made)
    return folder


def checked(
    carried: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str, path: str = ""
) -> tuple[int, dict[tuple[str, str, str], Row], str]:
    """The exit status of a run, its rows and its table."""
    monkeypatch.setenv("PATH", path)
    monkeypatch.setattr(sanitizer, "PLACES", ())
    to = carried.parent / "results"
    status = command.main(
        ["run", "--folder", str(carried), "--to", str(to), "--scale", "64", *arguments]
    )
    told = json.loads((to / "gpu_check.json").read_text())
    rows = [Row(**{**row, "status": Status(row["status"])}) for row in told["rows"]]
    table = (to / "gpu_check.md").read_text()
    return status, {(r.part, r.subject, r.what): r for r in rows}, table


# ---------------------------------------------------------------- all of it


def test_a_folder_that_nobody_prepared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["run", "--folder", str(tmp_path), "--to", str(tmp_path / "out")]) == 1
    assert "has no packages: gpu_check prepare OUT makes a folder" in capsys.readouterr().err


def test_all_parts_run(carried: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, rows, table = checked(carried, monkeypatch)
    assert status == 0, table
    assert rows["machine", "GPU", "A GPU of the tests"]
    for way in ("plain", "out=", "strided", "in place", "broadcast", "bits, variant 0"):
        row = rows["right", "softmax", f"float64 {way}"]
        assert (row.status, row.numbers["wrong"]) == (Status.RIGHT, 0)
    assert rows["large", "softmax", "float64 256x64"].status is Status.RIGHT
    for what in ("captured graph", "two streams"):
        assert rows["launches", "exp", what].status is Status.RIGHT
    assert "above a raw launch us" in rows["launches", "exp", "a call with out="].numbers
    measured = rows["times", "softmax", "float32 256x64"]
    assert {"tilesmith us", "cupy us", "GB/s", "of the copy's rate %"} <= set(measured.numbers)
    assert rows["sanitizer", "compute-sanitizer", "racecheck and memcheck"].status is Status.SKIPPED
    assert "- sanitizer, compute-sanitizer, racecheck and memcheck: there is none on PATH" in table


@pytest.mark.parametrize(
    ("fault", "status", "text"),
    [
        ("wrong", Status.WRONG, "is right: 84"),
        ("raises", Status.WRONG, "RuntimeError: an illegal memory access was encountered"),
        ("crashes", Status.FAILED, "exit status -11"),
        ("hangs", Status.FAILED, "not done in "),
    ],
)
def test_what_is_wrong_is_said(
    carried: Path, monkeypatch: pytest.MonkeyPatch, fault: str, status: Status, text: str
) -> None:
    monkeypatch.setenv("FAULT", fault)
    seconds = ("--seconds", "15") if fault == "hangs" else ()
    exit_status, rows, table = checked(carried, monkeypatch, "--only", "right", *seconds)
    bad = [row for row in rows.values() if not row.status.good]
    assert exit_status == 1 and {row.subject for row in bad} == {"softmax"}, table
    assert [row for row in bad if row.status is status and text in row.text], table
    assert rows["right", "exp", "float64 plain"].status is Status.RIGHT


def test_a_machine_without_a_gpu(carried: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_GPU", "1")
    exit_status, rows, table = checked(carried, monkeypatch)
    assert exit_status == 1
    ((_, failed),) = ((key, row) for key, row in rows.items() if row.status is Status.FAILED)
    assert failed.text == "RuntimeError: cudaErrorNoDevice: no CUDA-capable device is detected"
    others = [row for row in rows.values() if row is not failed]
    assert {row.text for row in others} == {"the machine cannot"} and len(others) == 11, table
    assert {row.status for row in others} == {Status.SKIPPED}


def test_a_kernel_that_crashed_is_not_timed(carried: Path) -> None:
    bad = Row("right", "softmax", jobs.CRASHED, Status.FAILED)
    todo = {s.name: s.jobs([bad]) for s in parts.stages(["exp", "softmax"], None)}
    assert todo["times"] == [Job("times", ("exp",))]
    assert todo["large"] == [Job("large", ("exp",))]


SANITIZER = """#!{python}
import subprocess, sys
tool, program = sys.argv[2], sys.argv[sys.argv.index("--kernel-name") + 2:]
done = subprocess.run(program, capture_output=True, text=True)
planted = "planted" in done.stdout
print("========= Invalid __global__ write of size 4 bytes" if planted else "")
count = {count}
print("========= RACECHECK SUMMARY: %d hazards displayed" % count if tool == "racecheck" else
      "========= ERROR SUMMARY: %d errors" % count)
sys.exit(99 if count else done.returncode)
"""


@pytest.mark.parametrize(
    ("count", "status", "runs"),
    [("int(planted)", Status.RIGHT, True), ("1", Status.WRONG, True), ("0", Status.SKIPPED, False)],
)
def test_the_sanitizer_is_believed_once_it_finds_what_is_planted(
    carried: Path, monkeypatch: pytest.MonkeyPatch, count: str, status: Status, runs: bool
) -> None:
    program = carried.parent / "bin" / "compute-sanitizer"
    program.parent.mkdir()
    program.write_text(SANITIZER.format(python=sys.executable, count=count))
    program.chmod(0o755)
    only = "--only", "control,sanitizer", "--kernels", "exp"
    exit_status, rows, table = checked(carried, monkeypatch, *only, path=str(program.parent))
    control = rows["sanitizer", sanitizer.CONTROL, "memcheck"]
    assert control.status is (Status.RIGHT if runs else Status.SKIPPED)
    assert (("sanitizer", "exp", "memcheck") in rows) is runs
    if runs:
        assert rows["sanitizer", "exp", "racecheck"].status is status, table
        assert exit_status == (status is not Status.RIGHT)


def test_the_sanitizers_words() -> None:
    ok = sanitizer.verdict("memcheck", "exp", 0, "========= ERROR SUMMARY: 0 errors\n")
    assert ok == Row("sanitizer", "exp", "memcheck", Status.RIGHT, "", {"found": 0})
    hazards = (
        "========= COMPUTE-SANITIZER\n"
        "========= Error: Race reported between Write access and Read access [128 hazards]\n"
        "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n"
    )
    found = sanitizer.verdict("racecheck", "exp", 99, hazards)
    assert (found.status, found.numbers) == (Status.WRONG, {"found": 1})
    assert found.text.startswith("Error: Race reported between Write access and Read access")
    refused = sanitizer.verdict("memcheck", "exp", 1, "========= Error: Device not supported\n")
    assert (refused.status, refused.text) == (
        Status.FAILED,
        "exit status 1: ========= Error: Device not supported",
    )
    late = sanitizer.verdict("memcheck", "exp", None, "")
    assert (late.status, late.text) == (Status.FAILED, "it did not end in time")
    assert sanitizer.of_control(refused).text == f"the tool does not work here: {refused.text}"


# ---------------------------------------------------------------- right and wrong


def test_an_error_beyond_the_bound_is_found() -> None:
    exact = np.array([1.0, np.nan, np.inf, -0.0, 2.0])
    wanted = expected("y", exact, np.full(5, 1e-6), None)
    got = exact.astype("f4")
    assert right.off(got, wanted) == (0.0, "")
    got[4] = 2.00001
    ratio, text = right.off(got, wanted)
    assert 9 < ratio < 11 and text.startswith("y[4] is np.float32(2.00001), and np.float64(2.0) is")
    for wrong in (np.nan, np.inf):
        got[4] = wrong
        assert right.off(got, wanted)[0] == np.inf
    got[4], got[1] = 2, 0
    assert right.off(got, wanted)[0] == np.inf
    assert right.off(got[None], wanted)[1] == "y has the shape (1, 5), not (5,)"
    whole = expected("y", np.array([3, 4]), None, None)
    assert right.off(np.array([3, 4]), whole)[0] == 0 and right.off(np.array([3, 5]), whole)[0] > 1


def test_what_is_right_is_kept_beyond_float64() -> None:
    exact = np.array([1 / np.longdouble(3)])
    wanted = expected("y", exact, np.array([1e-17], "f4"), None)
    assert wanted.low is not None and wanted.exact is not None
    assert wanted.low.dtype == wanted.exact.dtype == np.float64
    assert right.off(np.array([1 / 3]), wanted)[0] == 0  # the nearest there is
    near = np.nextafter([1 / 3], 1)
    assert right.off(near, wanted)[0] == pytest.approx(float(abs(near[0] - exact[0])) / 1e-17)


def test_bits_are_compared() -> None:
    bits = np.array([[1.0, np.nan, 0.0]], "f4")
    wanted = expected("y", None, None, bits)
    assert right.other_bits(bits.copy(), wanted) == ""
    assert right.other_bits(-np.array([[-1.0, np.nan, -0.0]], "f4"), wanted) == ""
    assert right.other_bits(np.array([[1.0, np.nan, -0.0]], "f4"), wanted) == (
        "y[0, 2] is np.float32(-0.0), and np.float32(0.0) under the emulator; 1 of 3 differ"
    )
    assert right.other_bits(bits.astype("f8"), wanted).startswith("y is float64(1, 3), and")


def package(kernel: Callable[..., Any], variant: str = "0") -> Any:
    return SimpleNamespace(transpose=kernel, last_call=lambda: {"variant": variant})


def transposed(x: Array, out: Array | None = None) -> Array:
    if out is None:
        return x.swapaxes(-1, -2).copy()
    out[...] = x.swapaxes(-1, -2).copy()
    return out


def rows_of(ts: Any, *given: Case, seconds: float = 60) -> dict[str, Row]:
    found = right.check(np, ts, "transpose", iter(given), Budget.of(seconds))  # type: ignore[arg-type]
    return {row.what: row for row in found}


def test_each_way_to_call_is_checked() -> None:
    one, two = case("transpose", (3, 3)), case("transpose", (4, 2))
    rows = rows_of(package(transposed), one, two)
    assert {what: (r.status, r.numbers["tried"]) for what, r in rows.items()} == {
        "float32 plain": (Status.RIGHT, 2),
        "float32 bits, variant 0": (Status.RIGHT, 2),
        "float32 out=": (Status.RIGHT, 2),
        "float32 strided": (Status.RIGHT, 2),
        "float32 in place": (Status.RIGHT, 1),
        "float32 broadcast": (Status.RIGHT, 2),
    }


def test_a_kernel_that_ignores_strides_or_out_is_found() -> None:
    def beside(x: Array, out: Array | None = None) -> Array:
        if out is not None and out.base is not None:
            out.base[0, 0] = 5
        return transposed(x, out)

    def another(x: Array, out: Array | None = None) -> Array:
        transposed(x, out)
        return transposed(x)

    def in_order(x: Array, out: Array | None = None) -> Array:
        if out is not None and out is x:
            for at in np.ndindex(x.shape):
                out[at] = x[at[::-1]]
            return out
        return transposed(x, out)

    one = case("transpose", (3, 3))
    rows = rows_of(package(beside), one)
    assert rows["strided: float32 m=3 n=3 random"].text == "something beside out= is written"
    rows = rows_of(package(another), one)
    assert rows["out=: float32 m=3 n=3 random"].text == "what is returned is not out="
    rows = rows_of(package(in_order), one)
    assert [w for w, r in rows.items() if r.status is Status.WRONG and r.numbers] == [
        "float32 in place"
    ]


def test_other_variants_have_other_bits() -> None:
    rows = rows_of(package(transposed, "unit"), case("transpose", (3, 3)))
    assert rows["float32 another variant than the emulator's"].status is Status.RIGHT
    assert not [what for what in rows if "bits" in what]


def test_few_of_many_wrong_cases_are_listed() -> None:
    rows = rows_of(package(lambda x, out=None: transposed(x, out) + 1),
                   *(case("transpose", (k, k)) for k in range(1, 9)))  # fmt: skip
    assert len([w for w in rows if ":" in w]) == right.MOST_REPORTED
    assert rows["float32 plain"].numbers["wrong"] == 8
    rows = rows_of(package(transposed), case("transpose", (3, 3)), seconds=0)
    assert [row.status for row in rows.values()] == [Status.SKIPPED]


def test_cases_are_read_as_they_were_written(tmp_path: Path) -> None:
    made = [case("exp", (3,), "float64"), case("exp", (0,))]
    cases.save(tmp_path, "exp", made)
    assert cases.kernels(tmp_path) == ["exp"]
    for before, after in zip(made, cases.load(tmp_path, "exp"), strict=True):
        assert (str(before), before.options) == (str(after), after.options)
        for part in ("exact", "low", "bound", "bits"):
            np.testing.assert_array_equal(
                getattr(before.outputs[0], part), getattr(after.outputs[0], part)
            )


# ---------------------------------------------------------------- formulas


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", formulas.FORMULAS)
def test_formulas_are_what_the_specs_say(kernel: str, dtype: str) -> None:
    spec = TARGETS.load(ROOT / "kernels_spec" / f"{kernel}.yaml")
    (dtypes,) = (c for c in specs_choices(spec) if {d.value for d in c.values()} == {dtype})
    sizes = dict(zip(spec.dims, (7, 33, 5), strict=False))
    arrays = random_arrays(spec, dtypes, sizes, RNG)
    (name,) = (a.name for a in spec.arguments if a.name not in spec_inputs(spec))
    inputs = {n: x for n, x in arrays.items() if n != name}
    options = {"axis": -1} if kernel == "sum" else {}
    formula, wide = formulas.FORMULAS[kernel], [x.astype("f8") for x in inputs.values()]
    exact = formula.exact(F, *wide, **options)
    np.testing.assert_allclose(
        exact, oracle.evaluate(spec, inputs)[name].astype("f8"), rtol=1e-9, atol=1e-11
    )
    rounded = {name: exact.astype(dtype)}
    further = Reference(spec, dtypes).temporaries(inputs, sizes)
    bound = oracle.accuracy_bound(spec, {**inputs, **further, **rounded})[name]
    mine = formula.bound(F, exact, np.dtype(dtype), *wide, **options)
    np.testing.assert_allclose(np.broadcast_to(mine, exact.shape), bound, rtol=1e-4)


def specs_choices(spec: Any) -> Sequence[Mapping[str, Any]]:
    from gen import language

    return language.choices(spec)


def spec_inputs(spec: Any) -> set[str]:
    return {a.name for a in spec.arguments if a.intent.value == "in"}


@pytest.mark.parametrize("kernel", formulas.FORMULAS)
def test_large_calls_are_compared(kernel: str) -> None:
    """Of each size: what NumPy computes in float32 is right, and what is slightly off is not."""
    formula = formulas.FORMULAS[kernel]

    def package_of(factor: float) -> Any:
        def function(*given: Array, out: Array, **options: Any) -> None:
            out[...] = formula.exact(F, *(x.astype("f8") for x in given), **options) * factor

        return SimpleNamespace(**{kernel: function})

    for factor, status in ((1.0, Status.RIGHT), (1.001, Status.WRONG)):
        rows = list(large.check(F, package_of(factor), kernel, ["float32"], Budget.of(60), 64))
        assert rows[0].status is status, rows
        assert factor != 1 or {row.status for row in rows} == {status}, rows
        assert len(rows) >= len(list(formulas.works(kernel, 64)))


@pytest.mark.parametrize("kernel", large.WHOLE)
def test_one_element_that_is_left_out_of_a_large_sum_is_found(kernel: str) -> None:
    """As a bound would not show it."""
    formula = formulas.FORMULAS[kernel]

    def function(first: Array, *given: Array, out: Array, **options: Any) -> None:
        missing = first.copy()
        at = tuple(int(k) for k in np.argwhere(first)[0])
        missing[at] = 0
        out[...] = formula.exact(F, missing, *given, **options)

    ts: Any = SimpleNamespace(**{kernel: function})
    rows = list(large.check(F, ts, kernel, ["float32"], Budget.of(60), 64))
    whole = [row for row in rows if "whole" in row.what]
    assert whole and {row.status for row in whole} == {Status.WRONG}


def test_what_is_left_unwritten_is_wrong() -> None:
    ts: Any = SimpleNamespace(exp=lambda x, out: None)
    (row,) = large.check(F, ts, "exp", ["float32"], Budget.of(60), 64)
    assert (row.status, row.numbers["of what is allowed"]) == (Status.WRONG, np.inf)


# ---------------------------------------------------------------- libraries


def test_a_promise_that_is_not_kept_is_found() -> None:
    given = {name: lambda *_, **__: np.zeros(()) for name in libraries.NEEDED}
    rows = list(libraries.check(np, cast(Any, SimpleNamespace(**given)), Budget.of(60)))
    found = {row.what: row for row in rows}
    assert found["arrays that overlap"].text == "overlapping arrays give something else"
    assert found["sums without axes, and of nothing"].status is Status.WRONG
    assert found["scalars on the GPU"].text == "another result with 0"
    assert found["PyTorch's tensors"].status is Status.SKIPPED
    assert not any(row.status is Status.RIGHT for row in rows)


def test_promises_are_not_tried_of_other_packages() -> None:
    (row,) = libraries.check(np, cast(Any, SimpleNamespace()), Budget.of(60))
    assert (row.status, row.text[:24]) == (Status.SKIPPED, "the package has no clamp")


# ---------------------------------------------------------------- the benchmark's kernels


class Torch:
    """What `bench` takes of PyTorch, by NumPy; `factor` times what is right."""

    class _Tensor(np.ndarray):
        def is_floating_point(self) -> bool:
            return self.dtype.kind == "f"

        def double(self) -> Any:
            return self.astype("f8")

    def from_dlpack(self, x: Array) -> Any:
        return x.view(self._Tensor)

    def nan_to_num(self, x: Array, nan: float) -> Array:
        return np.nan_to_num(x, nan=nan)


@pytest.mark.parametrize(("factor", "status"), [(1, Status.MEASURED), (1.01, Status.WRONG)])
def test_the_benchmarks_kernels(
    monkeypatch: pytest.MonkeyPatch, factor: float, status: Status
) -> None:
    def ours(out: Array, x: Array) -> Callable[[], object]:
        def call() -> str:
            np.multiply(np.exp(x), factor, out=out)
            return "tilesmith"

        return call

    def theirs(x: Array) -> Any:
        return np.exp(x).view(Torch._Tensor)

    case = bench_cases.Case(KERNELS["exp"], (64,), "main")
    monkeypatch.setattr(bench_cases, "choose", lambda names, sizes: [case])
    for name, table in (("tilesmith", "KERNELS"), ("torch", "FUNCTIONS")):
        module = SimpleNamespace(**{table: {"exp": ours if name == "tilesmith" else theirs}})
        monkeypatch.setitem(sys.modules, f"bench.peers.{name}", module)

    class Watch(Stopwatch):
        def measure(self, calls: Sequence[Callable[[], object]]) -> list[float]:
            took = [call() for call in calls]
            return [{"tilesmith": 4.0}.get(str(one), 8.0) for one in took]

    watch: Any = Watch({})
    copy, row = bench.rows(np, cast(Any, Torch()), watch, Budget.of(60), compiled=False)
    assert (copy.what, row.what, row.status) == ("device to device", "64", status)
    assert (row.numbers["error"] > 1e-3) == (status is Status.WRONG)
    if status is Status.MEASURED:
        assert row.numbers["best peer's time over ours"] == 2


# ---------------------------------------------------------------- times


class Stopwatch:
    """Each way takes its time, the first call of a round ten times that."""

    cache = 1 << 20

    def __init__(self, times_: Mapping[str, float]) -> None:
        self.times, self.ran = times_, list[str]()

    def measure(self, calls: Sequence[Callable[[], object]]) -> list[float]:
        took = [self.times[str(call())] for call in calls]
        return [10 * took[0], *took[1:]]

    def copy(self) -> int:
        self.ran.append("copy")
        return 2000


def timed(peers: Mapping[str, Any], scale: int = 64) -> list[Row]:
    ts: Any = SimpleNamespace(exp=lambda x, out: "tilesmith")
    watch: Any = Stopwatch({"tilesmith": 4.0, "cupy": 8.0, "2000": 1.0})
    found = times.rows(F, ts, watch, [("exp", ["float32"])], lambda *_: peers, Budget.of(60),
                       scale=scale)  # fmt: skip
    return list(found)


def test_medians_beside_peers_and_the_copy() -> None:
    def absent(given: list[Any]) -> Callable[[], object]:
        raise ImportError("no such function")

    copy, row = timed({"cupy": lambda given: lambda: "cupy", "torch": absent})
    assert copy.numbers == {"GB/s": pytest.approx(2.0)}
    assert row.text == "best peer: cupy; torch: ImportError: no such function"
    moved = 2 * 4 * 64 * 16 * 16
    assert row.numbers == pytest.approx({
        "tilesmith us": 4.0,
        "cupy us": 8.0,
        "spread %": 0.0,
        "GB/s": moved / 4e3,
        "of the copy's rate %": 100 * moved / 4e-6 / 2e9,
        "best peer's time over ours": 2.0,
    })  # fmt: skip


def test_inputs_are_rotated_beyond_the_cache() -> None:
    (work,) = formulas.works("exp", 64)
    sets = times.sets_of_inputs(work, "float32", 1 << 20)
    assert (sets - 1) * work.elements * 4 > 2 << 20
    (large_,) = formulas.works("exp")
    assert times.sets_of_inputs(large_, "float32", 50 << 20) == 3


def test_the_first_sizes_in_float32_come_first() -> None:
    todo = [("sum", ["float32", "float64"]), ("exp", ["float32", "float64"])]
    order = [(k, d, str(w.options)) for k, d, w in times.in_order(todo, 64)]
    assert order[:3] == [
        ("sum", "float32", "{'axis': -1}"),
        ("exp", "float32", "{}"),
        ("sum", "float32", "{'axis': 0}"),
    ]
    assert [d for _, d, _ in order] == ["float32"] * 4 + ["float64"] * 4


def test_a_calls_time_is_the_median_of_batches_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0, 9, 0, 8, 0, 1, 0, 4, 0, 3, 0, 6, 0, 2, 0, 5])
    monkeypatch.setattr(launches.time, "perf_counter", lambda: next(now))
    called: list[str] = []
    ways = [lambda: called.append("raw"), lambda: called.append("call")]
    took = launches.per_call(ways, lambda: None, batches=3, calls=4)
    assert took == [2e6 / 4, 5e6 / 4]
    assert called[:16] == (["raw"] * 4 + ["call"] * 4) * 2


# ---------------------------------------------------------------- time and processes


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_stages_keep_to_the_time() -> None:
    clock, told = Clock(), list[tuple[str, float]]()

    def runner(job: Job, seconds: float) -> list[Row]:
        told.append((job.part, seconds))
        clock.now += min(seconds, 50)
        return [Row(job.part, "", "", Status.RIGHT)]

    def stage(name: str, share: float) -> Stage:
        return Stage(name, share, 1, lambda rows: [Job(name)])

    stages = [stage("a", 0.3), stage("b", 0.5), stage("c", 1.0), stage("d", 1.0)]
    *_, rows = jobs.run(stages, Budget.of(100, clock), runner)
    assert told == [("a", 30), ("b", 35), ("c", 35)]
    assert [(r.part, r.status) for r in rows] == [
        *((part, Status.RIGHT) for part in "abc"),
        ("d", Status.SKIPPED),
    ]
    assert rows[-1].text == "no time left"


def test_a_part_that_raises_leaves_the_others() -> None:
    def runner(job: Job, seconds: float) -> list[Row]:
        if job.part == "a":
            raise OSError("no room")
        return [Row(job.part, "x", "y", Status.RIGHT)]

    def two(rows: Sequence[Row]) -> list[Job | Row]:
        return [Job("a", ("x",)), Job("b", ("x",)), Row("c", "z", "", Status.SKIPPED)]

    ((first, second, third),) = jobs.run([Stage("", 1, 2, two)], Budget.of(60), runner)
    assert (first.status, first.text) == (Status.FAILED, "OSError: no room")
    assert (second.status, third.part) == (Status.RIGHT, "c")


def test_a_part_says_what_it_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(work: parts.Work) -> Iterator[Row]:
        yield Row("times", "exp", "1", Status.MEASURED)
        raise ValueError("two\n lines")

    monkeypatch.setattr(parts, "PARTS", {"times": broken})
    work = parts.Work(Path(), ["exp", "sum"], "", Budget.of(1))
    rows = list(parts.run("times", work))
    assert rows[1] == failure("times", "exp, sum", "all of it", ValueError("two lines"))


def test_rows_that_are_cut_off_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    assert read(path) == []
    row = Row("times", "exp", "1", Status.MEASURED, "é", {"us": 1.5})
    write(path, row)
    with path.open("a") as file:
        file.write('{"part": "ti')
    assert read(path) == [row]


# ---------------------------------------------------------------- the report


ROWS = (
    Row("right", "exp", "plain", Status.WRONG, "y[0] is 1 | not 2", {"tried": 3, "wrong": 1}),
    Row("times", "exp", "float32 8", Status.MEASURED, "", {"tilesmith us": 1234.5, "GB/s": 0.25}),
    Row("times", "sum", "float32 8", Status.FAILED, "RuntimeError: no"),
    Row("times", "torch", "PyTorch eager", Status.SKIPPED, "there is none"),
)
TABLE = """# On a GPU, 2026-11-23

1 wrong, 1 failed, 1 skipped, 1 measured.

## Wrong

- right, exp, plain: y[0] is 1 | not 2

## Failed

- times, sum, float32 8: RuntimeError: no

## Could not be run

- times, torch, PyTorch eager: there is none

## right

|  | what |  | tried | wrong | note |
|---|---|---|---:|---:|---|
| exp | plain | wrong | 3 | 1 | y[0] is 1 \\| not 2 |

## times

|  | what |  | tilesmith us | GB/s | note |
|---|---|---|---:|---:|---|
| exp | float32 8 | measured | 1234.5 | 0.25 |  |
| sum | float32 8 | failed |  |  | RuntimeError: no |
| torch | PyTorch eager | skipped |  |  | there is none |
"""


def test_the_table() -> None:
    assert report.as_markdown(ROWS, "2026-11-23") == TABLE
    assert json.loads(report.as_json(ROWS, "2026-11-23"))["rows"][1]["numbers"]["GB/s"] == 0.25


def test_a_page_of_documentation(tmp_path: Path) -> None:
    machine = {"GPU": "H", "driver": "1", "CuPy": "2", "PyTorch": "3"}
    took = {"tilesmith us": 4.0, "of the copy's rate %": 50.0, "TFLOP/s": 2.0}
    rows = [
        *(Row("machine", name, what, Status.MEASURED) for name, what in machine.items()),
        Row("right", "exp", "float32 plain", Status.RIGHT, "", {"tried": 7}),
        Row("right", "exp", "float32 bits, variant 0", Status.RIGHT, "", {"tried": 5}),
        Row("large", "exp", "float32 8", Status.WRONG),
        Row("sanitizer", "exp", "racecheck", Status.RIGHT),
        Row("sanitizer", sanitizer.CONTROL, "racecheck", Status.RIGHT),
        Row("launches", "exp", "call", Status.MEASURED, "", {"above a raw launch us": 2.5}),
        Row("times", "copy", "device to device", Status.MEASURED, "", {"GB/s": 3000.0}),
        Row("bench", "exp", "8", Status.MEASURED, "", {**took, "torch us": 8.0}),
        Row(
            "bench",
            "exp",
            "8, torch.compile",
            Status.MEASURED,
            "",
            {**took, "torch.compile us": 6.0},
        ),
    ]
    (tmp_path / "run.json").write_text(report.as_json(rows, "2026-11-26"), "utf-8")
    assert command.main(["page", str(tmp_path / "run.json"), str(tmp_path / "page.md")]) == 0
    text = (tmp_path / "page.md").read_text("utf-8")
    for line in (
        "| small calls, in plain, bits | 12 |",
        "| rows wrong, failed | 1, 0 |",
        "| kernels clean under compute-sanitizer: racecheck | 1 |",
        "| exp | 8 | 4 | 50 % | 2 | torch.compile | 6 | 1.50 |",
    ):
        assert f"{line}\n" in text, text


def test_good_means_that_something_was_tried() -> None:
    assert not report.good([]) and not report.good(ROWS[3:])
    assert report.good([Row("right", "exp", "plain", Status.RIGHT), ROWS[3]])
    assert not report.good([Row("right", "exp", "plain", Status.RIGHT), ROWS[2]])


# ---------------------------------------------------------------- what is carried

SPEC = """\
tilesmith: 1
kernel: twice
doc: Twice each element, or what is at most that.
signature: ()->()
dtypes: {T: [float32]}
arguments:
  x: {type: "T[m]"}
  y: {type: "T[m]", intent: out}
compute: |
  y[i] = x[i] + x[i]
oracle: 2 * x
accuracy: 0
recipes:
  - target: cuda
    variants:
      - steps:
          - split: {loop: y.i, factors: [null, 64], as: [y.b, y.t]}
          - gpu: {loops: [y.b, y.t]}
"""


def test_cases_are_prepared_with_the_emulators_bits(tmp_path: Path) -> None:
    specs, wheel, out = tmp_path / "specs", tmp_path / "a.whl", tmp_path / "out"
    specs.mkdir()
    wheel.touch()
    (specs / "twice.yaml").write_text(SPEC)
    told = list(prepare.prepare(out, "cp312", [wheel], specs))
    assert told[-2].endswith("in that folder:") and told[-1] == f"    {prepare.COMMAND}"
    assert (out / "build_tools" / "gpu_check" / "right.py").exists()
    assert (out / "packages" / "a.whl").exists()
    found = list(cases.load(out / "cases", "twice"))
    sizes = {case.sizes["m"] for case in found if case.kind == "random"}
    assert {0, 1, 31, 32, 33, 63, 64, 65, 257} <= sizes
    assert {"random", "ties", "zeros and the smallest"} <= {case.kind for case in found}
    ts: Any = SimpleNamespace(twice=doubled, last_call=lambda: {"variant": found[0].variant})
    rows = list(right.check(np, ts, "twice", iter(found), Budget.of(60)))
    assert {row.status for row in rows} == {Status.RIGHT}, rows
    assert rows[0].numbers["tried"] == len([c for c in found if c.kind == "random"])


def test_there_is_nothing_to_prepare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["prepare", str(tmp_path / "out"), "--specs", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "error: no spec has a recipe for cuda\n"


def doubled(x: Array, out: Array | None = None) -> Array:
    return np.add(x, x, out=out)


def test_the_wheels_that_are_carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = []

    def run(command: Sequence[str], **_: object) -> SimpleNamespace:
        commands.append(command)
        if "wheel" in command:
            (tmp_path / "a.whl").touch()
        return SimpleNamespace(returncode=0, stdout="cp312\n", stderr="")

    monkeypatch.setattr(prepare.subprocess, "run", run)
    monkeypatch.setattr(prepare, "nvcc", lambda: None)
    told = prepare.build("python3.12", tmp_path)
    assert told[0] == "a.whl" and told[1].startswith("without machine code, as there is no nvcc")
    assert commands[-1][0] == "python3.12"
    assert f"-Cbuild-dir={ROOT / 'build' / 'gpu_check-cp312'}" in commands[-1]
    monkeypatch.setattr(prepare, "nvcc", lambda: "nvcc")
    monkeypatch.setattr(prepare, "data_wheel", lambda wheel, to: to / f"{wheel.stem}_cuda.whl")
    assert prepare.build("python3.12", tmp_path) == ["a.whl", "a_cuda.whl"]


def test_the_python_of_the_other_machine() -> None:
    assert prepare.interpreter("/opt/python") == "/opt/python"
    own = f"cp3{sys.version_info.minor}"
    assert os.path.basename(prepare.interpreter(own)).startswith("python")
    with pytest.raises(Exception, match=r"there is no Python 3\.99: install it, or give --python"):
        prepare.interpreter("cp399")
