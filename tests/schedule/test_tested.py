"""`tested: true`: tests in place of a proof where data hides what reads take, and nowhere else."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import islpy as isl
import numpy as np
import pytest

from gen.display import text as show
from gen.errors import ScheduleError
from gen.ir.nodes import Kernel
from gen.ir.text.parser import from_text
from gen.language import KernelSpec, build, choices, loads
from gen.pipeline import generate
from gen.poly import certificate
from gen.poly.cache import prove_once
from gen.poly.certificate import PROVED, Scheduled, Standing
from gen.poly.limit import ProofTimeout, prove_within
from gen.poly.prove import prove
from gen.poly.tested.comparison import FORMS, compare
from gen.poly.values.flow import plain_flow
from gen.poly.witness import Refused
from gen.poly.workbench import Workbench
from gen.schedule.base import Primitive, Prover, Step, StepContext, Steps
from gen.schedule.recipe import run as run_steps
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.trial.proofs import proofs
from tests.schedule.support import start, steps

# Row i has the entries from start[i] to before start[i + 1]: which, data says.
ROWS = """
tilesmith: 1
kernel: rows
doc: Twice the entries of each row, summed.
signature: (m + 1),(k)->(m)
dtypes: {T: [float64]}
arguments:
  start: {type: "int64[m + 1]"}
  v: {type: "T[k]"}
  y: {type: "T[m]", intent: out}
compute: |
  w[e] = v[e]
  for i in range(m):
      for e in range(start[i], start[i + 1]):
          w[e] = FACTOR * v[e]
  for i in range(m):
      y[i] = sum(w[e] for e in k if start[i] <= e and e < start[i + 1])
recipes:
  - target: cpu
    variants:
      - steps:
          - merge: {loops: [w_1.i, y.i], as: [m.i], tested: true}
"""
MERGE = "- merge: {loops: [w_1.i, y.i], as: [m.i], tested: true}"
STEP = MERGE.removeprefix("- ")


@cache
def rows(factor: str = "2") -> KernelSpec:
    return loads(ROWS.replace("FACTOR", factor), "rows.yaml")


@cache
def plain_rows(factor: str = "2") -> Scheduled:
    spec = rows(factor)
    kernel = build(spec, choices(spec)[0])
    return Scheduled(kernel, plain_flow(kernel))


def run(
    state: Scheduled, recipe: str, prover: Prover = prove, bench: Workbench | None = None
) -> tuple[Step, ...]:
    return run_steps(state, steps(recipe), StepContext(state.kernel, prover, bench or Workbench()))


def refused(state: Scheduled, recipe: str) -> ScheduleError:
    with pytest.raises(ScheduleError) as caught:
        run(state, recipe)
    return caught.value


# A gather from what another block computes, in place, so that all of it has been written before.
GATHER = """
def k(n, p: int64[n], x: InOut[float64[n]], y: Out[float64[n]]):
    assume(n >= 1)
    for x.i in range(n):
        with block("x", i=spatial(x.i)):
            x[i] = x[i] + 1.0
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = x[min(max(p[i], 0), n - 1)]
"""


# ---------------------------------------------------------------- what a test may stand in for


def test_a_step_is_tested_where_it_says_so_alone() -> None:
    error = refused(plain_rows(), MERGE.replace(", tested: true", ""))
    assert "y[i=0, e=0] reads 'w' before w_1[i=1, e=0] computes it" in error.message
    assert error.hint is not None and "with `tested: true` the step is compared" in error.hint
    (step,) = run(plain_rows(), MERGE)
    assert step.state.standing == Standing(
        tested=(certificate.Tested(STEP, frozenset({("y", 2)})),)
    )
    assert str(step.primitive) == STEP


def test_what_is_proved_is_not_called_tested() -> None:
    (step,) = run(plain_rows(), "- parallel: {loop: y.i, tested: true}")
    assert step.state.standing == PROVED and str(step.state.standing) == "proved"


def test_what_is_tested_is_not_known_as_proved() -> None:
    state, bench = plain_rows(), Workbench()
    plain = state.kernel
    prove(plain, state, bench)
    before = bench.proved(plain)
    merged = run(state, MERGE, bench=bench)[-1].state
    assert bench.proved(plain) == before
    with pytest.raises(Refused, match="before w_1"):
        prove(plain, replace(merged, standing=PROVED), bench)
    prove(plain, replace(state, standing=merged.standing), bench)
    assert len(bench.proved(plain)) == 2 * len(before)  # known once for each standing


def test_a_difference_is_a_refusal_with_the_arrays() -> None:
    """Rows overlap where start goes back; then each must have its own w, and merged it has not."""
    error = refused(plain_rows("(i + 1)"), MERGE)
    assert "a test finds a difference: y[1] is " in error.message
    assert ", and by the spec " in error.message and "; with start = [" in error.message
    assert error.notes == ("for example: m=5, k=5", "  element y[1]")


def test_a_gather_of_what_is_not_there_yet() -> None:
    error = refused(start(GATHER), "- merge: {loops: [x.i, y.i], as: [m.i], tested: true}")
    assert "y[0] is 3.0, and by the spec 4.0; with p = [1, 0]" in error.message
    assert error.notes[0] == "for example: n=2"


def test_steps_after_it_are_tested_again() -> None:
    """And no others are: reversed, a row takes from w what no step has left to tests."""
    merged = run(plain_rows(), MERGE)[-1].state
    context = StepContext(plain_rows().kernel)
    (step,) = run_steps(merged, steps("- split: {loop: m.i, factors: [null, 4]}"), context)
    assert str(step.state.standing) == "tested"
    with pytest.raises(ScheduleError, match=r"reads 'w', which w\[e=0\] computes, but w_1"):
        run_steps(merged, steps("- reverse: {loop: m.i}"), context)


def test_what_was_tested_before_is_no_leave_for_what_a_later_step_breaks() -> None:
    """The read of y may be tested since the merge; here y is merged wrongly."""
    allowed = Standing(tested=(certificate.Tested("a step", frozenset({("y", 0)})),))
    state = replace(start(GATHER), standing=allowed)
    error = refused(state, "- merge: {loops: [x.i, y.i], as: [m.i]}")
    assert "a test finds a difference: y[0] is 3.0" in error.message


class Merged(Primitive):
    """The merge of the rows, as the steps of a composite are."""

    def apply(self, state: Scheduled) -> Steps:
        return steps(MERGE.replace(", tested: true", ""))


def test_a_composite_passes_it_on() -> None:
    state, context = plain_rows(), StepContext(plain_rows().kernel)
    assert str(Merged(tested=True)(state, context).standing) == "tested"
    with pytest.raises(ScheduleError, match="reads 'w' before"):
        Merged()(state, context)


# ---------------------------------------------------------------- what it may not


def test_races_are_not_tested() -> None:
    """Rows of a permutation share nothing, but data may say otherwise."""
    scatter = """
def k(n, p: int64[n], x: float64[n], y: InOut[float64[n]]):
    for y.i in range(n):
        for y.at in range(n):
            with block("y", i=reduction(y.i), at=spatial(y.at)):
                y[at] = combine.sum(y[at], x[i] if p[i] == at else 0.0)
"""
    error = refused(start(scatter), "- parallel: {loop: y.i, tested: true}")
    assert "parallel loop 'y.i' has a race" in error.message
    error = refused(plain_rows(), f"{MERGE}\n- parallel: {{loop: m.i, tested: true}}")
    assert "parallel loop 'm.i' has a race: w_1[i=0, e=0] writes 'w'" in error.message


ANY = Standing(
    tested=(
        certificate.Tested("a step", frozenset((b, k) for b in ("x", "y", "t") for k in range(4))),
    )
)


def all_allowed(plain: str, tree: str) -> str:
    """The refusal where every read may be tested."""
    kernel = from_text(plain)
    with pytest.raises(Refused) as caught:
        prove(kernel, Scheduled(from_text(tree), plain_flow(kernel), ANY))
    return caught.value.reason


def test_bounds_are_not_tested() -> None:
    beyond = GATHER.replace("min(max(p[i], 0), n - 1)", "max(p[i], 0)")
    assert all_allowed(GATHER, beyond).startswith(
        "y[i=0] may read 'x', by an index that is not affine,"
    )


def test_that_nothing_is_read_before_it_is_written_is_not_tested() -> None:
    temporary = """
def k(n, p: int64[n], x: float64[n], y: Out[float64[n]]):
    assume(n >= 1)
    with allocate(t=float64[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] + 1.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[min(max(p[i], 0), n - 1)]
"""
    error = refused(start(temporary), "- merge: {loops: [t.i, y.i], as: [m.i], tested: true}")
    assert "y[i=0] reads 't' before t[i=1] computes it" in error.message
    assert error.hint == (
        "data decides what is read, but no test can stand in for the proof: y[i=0] may read 't'"
        " before it is written"
    )


def test_bodies_and_instances_are_not_tested() -> None:
    assert "block 'x' computes `2.0` where" in all_allowed(GATHER, GATHER.replace("+ 1.0", "+ 2.0"))
    assert "reads 'p' outside its bounds" in all_allowed(
        GATHER, GATHER.replace("y.i in range(n)", "y.i in range(n + 1)")
    )


def test_what_data_does_not_hide_is_not_tested() -> None:
    """The same wrong order, with an index that the proof knows."""
    known = GATHER.replace("x[min(max(p[i], 0), n - 1)]", "x[n - 1 - i] + float64(p[i])")
    error = refused(start(known), "- merge: {loops: [x.i, y.i], as: [m.i], tested: true}")
    assert "y[i=0] reads 'x' before x[i=1] computes it" in error.message and error.hint is None


@pytest.mark.parametrize("failure", [ProofTimeout("no answer"), isl.Error("isl failed")])
def test_no_answer_is_never_tested(failure: Exception) -> None:
    def fails(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
        raise failure

    with pytest.raises(type(failure)) as caught:
        run(plain_rows(), MERGE, fails)
    assert caught.value is failure


def test_time_runs_out_while_it_tests_too() -> None:
    merged = run(plain_rows(), MERGE)[-1].state
    with pytest.raises(ProofTimeout, match=r"no answer within 0\.1 seconds"):
        prove_within(plain_rows().kernel, merged, 0.1)


# ---------------------------------------------------------------- how it is told


def test_another_process_and_the_cache(tmp_path: Path) -> None:
    plain = plain_rows().kernel
    merged = run(plain_rows(), MERGE)[-1].state
    with pytest.raises(Refused) as caught:
        prove_within(plain, replace(merged, standing=PROVED), 60)
    assert caught.value.hidden == ("y", 2) and caught.value.hint is not None
    asked = []
    for _ in range(2):
        prove_once(plain, merged, tmp_path, lambda plain, state, bench: asked.append(state))
    assert asked == [merged, merged] and not any(tmp_path.iterdir())


def test_prove_show_and_the_manifest_say_tested(tmp_path: Path) -> None:
    spec = rows()
    found = [(p.status, p.step) for p in proofs(spec, [Cpu(Level.V3)])]
    assert found == [
        ("proved", "0: the plain schedule"),
        ("tested", f"0: {STEP}"),
        ("tested", "0: lowered, end to end"),
        ("tested", "0: finished, equal to the lowered tree"),
    ]
    told = show.text(spec, choices(spec)[0], Cpu(Level.V3), show.Steps("0")).splitlines()
    words = [line[4:10] for line in told if line.startswith(("#   proved", "#   tested"))]
    assert words == ["proved", "tested", "tested"]
    path = tmp_path / "rows.yaml"
    path.write_text(ROWS.replace("FACTOR", "2"), encoding="utf-8")
    details = generate(spec, [Cpu(Level.V3)], prove).manifest["details"]
    assert json.loads(json.dumps(details))["proof"] == {
        "status": "tested", "steps": {"v3": {"float64": {"0": 1}}}, "tested": [STEP],
    }  # fmt: skip


# ---------------------------------------------------------------- the cases


def test_the_positions_that_are_tried() -> None:
    random = np.random.default_rng(0)
    forms = [form(9, 9, random).tolist() for form in FORMS]
    permuted, backwards, last, repeated, in_order, ascending, first, outside = forms
    assert sorted(permuted) == in_order == backwards[::-1] == list(range(9))
    assert permuted not in (in_order, backwards) and last == [8] * 9 and first == [0] * 9
    assert len(set(repeated)) < 9 and repeated != sorted(repeated)
    assert len(set(ascending)) < 9 and ascending == sorted(ascending)
    assert min(outside) < 0 or max(outside) > 9


def test_sizes_at_the_edges_of_tiles() -> None:
    """A tree that is wrong from 17 elements on alone."""
    plain = from_text(GATHER)
    wrong = GATHER.replace("n - 1)]", "n - 1)] + (1.0 if n // 16 > 0 and i == 16 else 0.0)")
    with pytest.raises(Refused, match=r"y\[16\] is .*n=17; element y\[16\]"):
        compare(plain, from_text(wrong), frozenset())


@pytest.mark.parametrize(("factor", "right"), [("2", True), ("(i + 1)", False)])
def test_sizes_that_follow_from_others(factor: str, right: bool) -> None:
    """What was drawn for all of them alike would be none that the kernel takes."""
    text = ROWS.replace("FACTOR", factor).replace("(k)->(m)", "(k)->(r)")
    text = text.replace("range(m)", "range(r)").replace('"T[m]"', '"T[r]"')
    text = text.replace("compute:", "scalars: {s: {type: int64}}\nsizes: {r: m - 1 + s}\ncompute:")
    spec = loads(text.replace("compute:", "constraints: [s <= 1]\ncompute:"), "rows.yaml")
    plain = build(spec, choices(spec)[0])
    state = Scheduled(plain, plain_flow(plain))
    if right:
        assert run(state, MERGE)[-1].state.standing != PROVED
    else:
        error = refused(state, MERGE)
        assert "a test finds a difference: y[" in error.message
        sizes = dict(pair.split("=") for pair in error.notes[0].split(": ")[1].split(", "))
        assert int(sizes["r"]) == int(sizes["m"]) - 1 + int(sizes["s"])


def test_what_cannot_be_tested() -> None:
    large = from_text(GATHER.replace("n >= 1", "n // 500 >= 12"))
    with pytest.raises(Refused, match="no sizes small enough for a test"):
        compare(large, large, frozenset())
    unwritten = GATHER.replace("for y.i in range(n)", "for y.i in range(1, n)")
    with pytest.raises(Refused, match=r"difference: element \[0\] of 'y' is never"):
        compare(from_text(GATHER), from_text(unwritten), frozenset())


# Element i takes what iteration i - 6 or i - 5 has made, whichever data says: from 12 elements on.
FAR = """
def k(n, p: int64[n], y: InOut[float64[n]]):
    for y.i in range(6, n):
        with block("y", i=spatial(y.i, 6, n)):
            y[i] = y[i - 6 + min(max(p[i], 0), 1)] + 1.0
"""


def far(distance: int) -> Scheduled:
    text = FAR.replace("(6", f"({distance}").replace(" 6", f" {distance}")
    return start(text)


@pytest.mark.parametrize("distance", [6, 40, 300])
def test_what_is_taken_from_far(distance: int) -> None:
    error = refused(far(distance), "- reverse: {loop: y.i, tested: true}")
    assert "a test finds a difference: y[" in error.message


def test_what_is_overwritten_far() -> None:
    """Element i takes what was there at the call, which iteration i + 5 or i + 6 overwrites."""
    ahead = FAR.replace("range(6, n)", "range(n - 6)").replace("y.i, 6, n", "y.i, n - 6")
    ahead = ahead.replace("i - 6 + min(max(p[i], 0), 1)", "i + 6 - min(max(p[i], 0), 1)")
    error = refused(start(ahead), "- reverse: {loop: y.i, tested: true}")
    assert "a test finds a difference: y[" in error.message


def test_numbers_that_no_size_is_large_enough_for() -> None:
    error = refused(far(600), "- reverse: {loop: y.i, tested: true}")
    assert "no test tells: 600 is too large a number" in error.message


def test_blocks_that_meet_in_no_test() -> None:
    """Data may name an element that an iteration has made; what is tried does not."""
    hidden = "(y[i - 1] if p[i] == -5 else 0.0)"
    never = FAR.replace("y[i - 6 + min(max(p[i], 0), 1)]", hidden)
    error = refused(start(never), "- reverse: {loop: y.i, tested: true}")
    assert error.message.endswith(
        "no test tells: with none of the sizes and arrays that were tried does block 'y' read"
        " elements of 'y' that another iteration, of block 'y', has made"
    )
