"""The fuzzer: what it draws, what it finds, and a slice of fixed seed."""

import ctypes
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from build_tools.fuzz import __main__ as fuzz
from build_tools.fuzz import checks, kernels, memory, names, steps
from build_tools.fuzz import trial as trials
from build_tools.fuzz.cases import Array, Case, case_of, difference
from build_tools.fuzz.checks import Options
from build_tools.fuzz.draft import Draft, from_text
from build_tools.fuzz.failure import Failure, isolated
from build_tools.fuzz.memory import run_guarded
from build_tools.fuzz.names import hostile
from build_tools.fuzz.report import Tally
from build_tools.fuzz.shrink import Failing, shrunk
from build_tools.fuzz.trial import replayed, trial
from gen import language as specs
from gen.errors import TilesmithError
from gen.ir.nodes import Kernel
from gen.ir.walk import loops
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.values.flow import plain_flow
from gen.poly.witness import Refused
from gen.poly.workbench import Workbench
from gen.progress import SILENT
from gen.schedule.base import Primitive, StepContext
from gen.schedule.edit import tree
from gen.schedule.primitives.parallel import Parallel
from gen.schedule.primitives.reverse import Reverse
from gen.schedule.primitives.split import Split
from gen.schedule.primitives.vectorize import Vectorize
from gen.schedule.registry import PRIMITIVES, lookup
from gen.targets.cpu import jit
from gen.targets.cpu import updates as update
from gen.targets.cuda import target as cuda
from gen.targets.cuda.emit import sources

FIRST, NUMBER_OF_SEQUENCES = 47, 35
"""Seeds of which kernels have all that is asked for below."""


def unproved(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
    """A prover that lets everything pass."""


def draft(compute: str, **shapes: tuple[str, ...]) -> Draft:
    types = {name: "int64" if name == "p" else "T" for name in shapes}
    return Draft("float32", shapes, types, frozenset(), (), {}, compute)


# ---------------------------------------------------------------- what is drawn

ROWS, COLUMNS, BOTH = ("m",), ("n",), ("m", "n")


def test_drawn_kernels_are_specs_and_are_read_back() -> None:
    words = {"sum(", "max(", "range(1, ", "steps", "p0[", "+= ", "i + 1", "argmax(", "latest("}
    for seed in range(80):
        drawn = kernels.draw(Random(seed))
        built(drawn)
        read = from_text(drawn.text(), "drawn.yaml")
        assert read.text() == drawn.text()
        assert read.arrays == drawn.arrays
        words -= {word for word in words if word in drawn.compute}
    assert not words


def test_names_of_the_pool_stand_for_everything() -> None:
    """Arrays, dims, indices, kernels; what computes stays the same."""
    drawn = draft("t[i, j] = x[i, j] + 1\ny[i] = sum(t[i, j] for j in range(n))",
                  x=BOTH, t=BOTH, y=ROWS)  # fmt: skip
    seen = set()
    for seed in range(60):
        named = hostile(drawn, Random(seed))
        assert any(word in named.text() for word in names.HOSTILE)
        assert len(named.used) == len(drawn.used)
        assert from_text(named.text(), "drawn.yaml").text() == named.text()
        seen |= {old for old in ("x", "t", "y", "i", "j", "m", "n") if old not in named.text()}
        seen |= {"kernel"} if named.kernel != "drawn" else set()
    assert seen >= {"x", "kernel"}


def test_maps_of_iterations_are_drawn_and_taken() -> None:
    """Negated, divided and mixed coordinates, of which the prover takes some."""
    kernel = built(draft("y[i, j] = x[i, j] + 1", x=BOTH, y=BOTH))
    state = Scheduled(kernel, plain_flow(kernel))
    for primitive in map(lookup, ("set_schedule", "transform_block_layout")):
        texts, taken = [], 0
        for seed in range(30):
            step = steps.draw(kernel, Random(seed), (primitive,))
            texts.append(str(step))
            with suppress(TilesmithError):
                step(state, StepContext(kernel, unproved))
                taken += 1
        assert taken > 8
        assert any(" // " in text for text in texts) and any("-(" in text for text in texts)


def test_names_by_as_are_drawn() -> None:
    kernel = built(draft("y[i, j] = x[i, j] + 1", x=BOTH, y=BOTH))
    drawn = [str(steps.draw(kernel, Random(seed), (Split,))) for seed in range(40)]
    given = [text for text in drawn if "as: [y." in text]
    assert given and len(given) < len(drawn)


# ---------------------------------------------------------------- arrays among marks


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2, 0), (2, 3, 2)])
def test_arrays_are_spread_among_marks(shape: tuple[int, ...], seed: int) -> None:
    array = np.arange(np.prod(shape, dtype=int), dtype=np.int16).reshape(shape)
    held = memory._spread(array, Random(seed))
    held.inner[...] = array
    np.testing.assert_array_equal(held.inner, array)
    assert held.is_kept and held.outside.sum() == held.whole.size - array.size
    held.whole[int(np.flatnonzero(held.outside)[seed])] = 1
    assert not held.is_kept


def test_what_is_written_beside_an_array_is_found() -> None:
    """By code that knows no strides, where arrays have some."""
    drawn = draft("y[i] = v[i] + 1", v=COLUMNS, y=COLUMNS)
    case = case_of(drawn, {"n": 5}, 0)
    assert case is not None

    def wrong(arrays: Mapping[str, Array]) -> None:
        out = arrays["y"]
        ctypes.memset(out.ctypes.data, 0, out.nbytes + (0 if out.strides[0] > 4 else 4))

    for packed in (("v", "y"), ()):
        said = run_guarded(wrong, case, Random(3), packed)
        assert said is not None and said.startswith(("y is written outside", "y[0] is 0.0"))


def test_numbers_are_of_every_kind() -> None:
    drawn = draft("y[i] = v[i]", v=COLUMNS, y=COLUMNS)
    seen = set()
    for data, seed in product(kernels.DATA, range(20)):
        case = case_of(replace(drawn, data=data), {"n": 17}, seed)
        assert case is not None and case.exact and case.signed
        values = case.arrays["v"]
        seen |= {"nan"} if np.isnan(values).any() else set()
        seen |= {"inf"} if np.isinf(values).any() else set()
        seen |= {"-0.0"} if ((values == 0) & np.signbit(values)).any() else set()
        seen |= {"largest"} if (values == np.finfo(np.float32).max).any() else set()
        seen |= {"least"} if (values == np.float32(1e-45)).any() else set()
        seen |= {"ties"} if len(np.unique(values)) <= 2 else set()
    assert seen == {"nan", "inf", "-0.0", "largest", "least", "ties"}


@pytest.mark.parametrize(
    ("got", "same"), [(np.nan, True), (np.inf, False), (0.0, False), (-0.0, False)]
)
def test_results_are_compared_to_the_bit(got: float, same: bool) -> None:
    wanted = {"y": np.array([np.nan], np.float32)}
    case = Case({}, {}, {}, wanted, signed=True)
    assert (difference({"y": np.array([got], np.float32)}, case) is None) == same
    zero = Case({}, {}, {}, {"y": np.array([-0.0], np.float32)}, signed=True)
    assert (difference({"y": np.array([got], np.float32)}, zero) is None) == np.signbit(got)


def built(drawn: Draft) -> Kernel:
    spec = specs.loads(drawn.text(), "drawn.yaml")
    return specs.build(spec, specs.choices(spec)[0])


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda p: p.name)
def test_every_primitive_is_drawn(primitive: type[Primitive]) -> None:
    """A new one from its examples alone."""
    kernel = built(draft("t[i, j] = x[i, j] + 1\ny[i] = sum(t[i, j] for j in range(n))",
                         x=BOTH, t=BOTH, y=ROWS))  # fmt: skip
    known = {x.var for x in loops(kernel.body)} | {"t", "x", "y"}
    for seed in range(8):
        drawn = steps.draw(kernel, Random(seed), (primitive,))
        assert str(drawn).startswith(f"{primitive.name}: ")
        named = {getattr(drawn, name, None) for name in ("loop", "block", "buffer")} - {None}
        assert all(set((name,) if isinstance(name, str) else name) <= known for name in named)


# ---------------------------------------------------------------- what is found

NATIVE = (jit.native_level(),)
SCALE = draft("y[i] = v[i] * 2 + abs(v[i])", v=COLUMNS, y=COLUMNS)
TOTAL = draft("y = sum(v[i] + 1 for i in range(n))", v=COLUMNS, y=())


def test_a_slice_of_fixed_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    options = Options(prove, NATIVE)
    fuzz.run(FIRST, NUMBER_OF_SEQUENCES, None, options, tmp_path, SILENT, tally)
    assert [path.read_text("utf-8") for path in tmp_path.iterdir()] == []
    assert tally.proved > NUMBER_OF_SEQUENCES // 2
    assert tally.longest >= 4
    wanted = {
        *(f"{data} numbers" for data in kernels.DATA),
        "hostile names",
        "argmax()",
        "argmin()",
    }
    wanted |= {"tuple", "exp()", "gather", "scatter", "ring", "-x", "--x", "x - -y", "if-else"}
    assert not wanted - set(tally.drawn)
    assert f"{NUMBER_OF_SEQUENCES} sequences: {tally.proved} proved end to end" in str(tally)
    assert capsys.readouterr().err == ""


@pytest.mark.thorough
def test_a_longer_slice_on_all_levels(tmp_path: Path) -> None:
    options = Options(prove, fuzz.levels("all"))
    tally = Tally()
    fuzz.run(1000, 200, None, options, tmp_path, SILENT, tally)
    assert [path.read_text("utf-8") for path in tmp_path.iterdir()] == []
    assert len({name for name, what in tally.steps if what == "proved"}) > len(PRIMITIVES) // 2


def test_a_wrong_step_is_found_shrunk_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A split without its guard, and nobody who proves it."""
    drawn = draft(
        "t[i, j] = x[i, j] - v[j]\nr[i] = sum(t[i, j] for j in range(n))\ny[i] = r[i] + 1",
        x=BOTH, v=COLUMNS, t=BOTH, r=ROWS, y=ROWS,
    )  # fmt: skip
    taken = (
        Reverse("y.i"),
        Split("r.i", (None, 4)),
        Parallel("r.i_0"),
        Vectorize("t.j", 4),
        Parallel("t.i"),
    )
    options = Options(unproved)
    outcome = trial(drawn, replayed(taken), options)
    assert outcome.failure is None
    with monkeypatch.context() as planted:
        planted.setattr(tree, "guarded", lambda body, *guards: body)
        outcome = trial(drawn, replayed(taken), options)
        assert outcome.failure is not None
        assert outcome.failure.kind == "the tree is wrong"
        small = shrunk(Failing(drawn, outcome.taken, outcome.failure), options, 0)
        assert len(small.steps) == 1
        assert isinstance(small.steps[0], Split | Vectorize)
        assert len(small.draft.compute.splitlines()) == 1
        assert small.failure.sizes is not None and max(small.failure.sizes.values()) <= 1
        path = fuzz.keep(small, 0, tmp_path)
        assert fuzz.replay(path, options, 0) == 1
        assert f"{path}: the tree is wrong at {{" in capsys.readouterr().out
        assert fuzz.main(["--replay", str(path), "--levels", "none"]) == 0  # nor is it proved
        assert "refused: " in capsys.readouterr().out
    assert fuzz.main(["--replay", str(path), "--levels", "none"]) == 0
    assert f"{path}: nothing fails, 1 steps proved" in capsys.readouterr().out


def test_wrong_code_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes past the end that are added as well."""
    taken = (Vectorize("y.i", 4),)
    options = Options(unproved, NATIVE)
    assert trial(TOTAL, replayed(taken), options).failure is None

    def without(combiner: object, value: object, k: int, code: Any) -> Any:
        return code.parts(value)

    monkeypatch.setattr(update, "active_or_identity", without)
    failure = trial(TOTAL, replayed(taken), options).failure
    assert failure is not None
    assert failure.kind == f"the code for {NATIVE[0].value} is wrong"
    assert failure.detail.startswith("y[] is ")


def test_wrong_code_for_gpus_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """All variants are called, and what the emulator computes is compared."""
    added = draft("y[i] = x[i] + 5", x=COLUMNS, y=COLUMNS)
    options = Options(prove, by_rules=fuzz.targets("cuda", ()), run=fuzz.called("emulated"))
    choose = replayed(())
    right = trial(added, choose, options)
    assert (right.proved, right.failure) == (True, None)
    assert right.compared == trial(added, choose, replace(options, run=())).compared + 5

    def wrong(*given: Any, **more: Any) -> dict[str, str]:
        return {n: t.replace("5.0f", "6.0f") for n, t in sources(*given, **more).items()}

    monkeypatch.setattr(cuda, "sources", wrong)
    failure = trial(added, choose, options).failure
    assert failure is not None and failure.kind == "the code for cuda is wrong"

    def refused(*given: Any, **more: Any) -> dict[str, str]:
        return {n: t.replace("5.0f", "five") for n, t in sources(*given, **more).items()}

    monkeypatch.setattr(cuda, "sources", refused)
    failure = trial(added, choose, options).failure
    assert failure is not None and "the compiler refused" in failure.detail


def test_a_crash_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Reverse, state: Scheduled) -> Scheduled:
        raise KeyError("y.i")

    monkeypatch.setattr(Reverse, "apply", broken)
    taken = (Split("y.i", (None, 2)), Reverse("y.i_0"))
    outcome = trial(SCALE, replayed(taken), Options(unproved))
    assert outcome.failure is not None
    assert outcome.failure.kind.startswith("crash in reverse: KeyError at base.py:")
    assert [step.name for step in outcome.taken] == ["split", "reverse"]


def test_what_dies_or_hangs_is_told() -> None:
    def killed() -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    assert isolated(killed, 10) == Failure("crash", "the process ended with exit code -11")
    told = isolated(lambda: time.sleep(60), 0.1)
    assert told == Failure("no answer", "none within 0.1 seconds")


def test_what_takes_too_long_is_counted_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that goes through tiles in tiles has no end in sight; nor may a shrinking."""

    def endless(kernel: Kernel) -> Primitive | None:
        while True:
            pass

    monkeypatch.setattr(trials, "_TRIAL_SECONDS", 0.05)
    outcome = trials.limited(SCALE, endless, Options(unproved))
    (refusal,) = outcome.refusals
    assert (refusal.by, refusal.reason) == ("time", "no end within 0.05 seconds")
    assert outcome.failure is None
    tally = Tally()
    tally.add(outcome)
    assert "1 at its limit of time" in str(tally)


def test_code_that_takes_long_to_compile_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_COMPILER_SECONDS", 0)
    outcome = trial(SCALE, replayed(()), Options(prove, NATIVE))
    assert outcome.failure is None
    assert [(r.primitive, r.by) for r in outcome.refusals] == [("the C compiler", "time")]


def test_needless_refusals_are_told_from_right_ones() -> None:
    """Of a race the interpreter knows nothing."""
    running = draft("for i in range(1, n):\n    y[i] = y[i - 1] + v[i]", v=COLUMNS, y=COLUMNS)
    running = replace(running, inout=frozenset({"y"}))
    taken = (Reverse("y.i"), Parallel("y.i"), Reverse("y.k"))
    outcome = trial(running, replayed(taken), Options(prove))
    assert [(r.primitive, r.by, r.needless) for r in outcome.refusals] == [
        ("reverse", "proof", False),
        ("parallel", "proof", None),
        ("reverse", "check", None),
    ]
    assert outcome.refusals[2].reason == "there is no loop '_'"
    outcome = trial(running, replayed(taken[:1]), Options(prove), only=[{"n": 1}])
    (refusal,) = outcome.refusals
    assert refusal.needless is False  # at the sizes of the prover's example

    answers = iter((None, Refused("nothing runs backwards"), None))

    def refusing(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
        if (answer := next(answers)) is not None:
            raise answer

    outcome = trial(SCALE, replayed(taken[:1]), Options(refusing))
    (refusal,) = outcome.refusals
    assert refusal.needless
    tally = Tally()
    tally.add(outcome)
    assert "1 refusals by the prover look needless" in str(tally)
    assert "       1  reverse: the proof was refused: nothing runs backwards" in str(tally)


@pytest.mark.parametrize("value", ["x[i]", "x[n - 1 - i]"])
def test_arrays_that_may_be_one_are_given_as_one(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where that is said and wrong: what is read has been written by then."""
    reading = draft(f"y[i] = {value}\n", x=("n",), y=("n",))
    monkeypatch.setattr(checks, "in_place", lambda kernel: frozenset({("x", "y")}))
    options = Options(prove, (jit.native_level(),), cases=8)
    failure = trial(reading, replayed(()), options).failure
    if value == "x[i]":
        assert failure is None
    else:
        assert failure is not None
        assert failure.kind.endswith("is wrong in place")
        assert failure.detail.startswith("x is y: y[")
