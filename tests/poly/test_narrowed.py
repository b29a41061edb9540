"""What narrowing may make of loops that data bounds, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from gen import language as specs
from gen.display.text import unproved
from gen.ir.algebra import index
from gen.ir.index.facts import of_kernel
from gen.ir.nodes import Loop, LoopKind, Var
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.ir.walk import loops
from gen.lower.finish import finished
from gen.lower.narrowing import narrow
from gen.pipeline import schedule
from gen.poly.rewrites.narrowed import check_narrowed
from gen.poly.witness import Refused
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

ROOT = Path(__file__).parents[2]
HEAD = "def k(m, n, start: int64[m + 1], at: int32[m], v: float32[n], y: InOut[float32[m]]):\n"
CONDITION = "start[i] <= k and k < start[i + 1]"
BEFORE = f"""\
  for i in range(m):
   for k in range(n):
        with block("y"):
            y[i] = combine.sum(y[i], v[k] if {CONDITION} else 0.0)
"""
FIRST = "max(min(start[i], 4611686018427387904), -4611686018427387904)"
LAST = "max(min(start[i + 1], 4611686018427387904), -4611686018427387904)"
AFTER = f"""\
  for i in range(m):
   for k in range(max(0, {FIRST}), min(n, {LAST})):
        with block("y"):
            y[i] = combine.sum(y[i], v[k])
"""
REFUSED = {
    "one too few at the end": (
        (LAST, f"{LAST} - 1"),
        "block 'y': narrowed, it would combine values in fewer iterations",
    ),
    "a sum of data that may wrap around": (
        (LAST, "start[i + 1] - 1 + 1"),
        "block 'y': narrowed, it would combine values in fewer iterations",
    ),
    "one too many": ((f"max(0, {FIRST})", "0"), "it would combine values in more"),
    "another place of the bound": (("start[i]", "start[i + 1]"), "in fewer iterations"),
    "a bound outside its array": (("start[i + 1]", "start[i + 2]"), "may read outside 'start'"),
    "another value": (("v[k])", "v[n - 1])"), "block 'y': narrowed, it computes something else"),
    "another order": (("for i in range(m)", "for i in parallel(m)"), "another statement"),
    "a condition that data need not meet": (
        ("   for k", "   if at[i] > 0:\n    for k"),
        "in fewer iterations: `at[i] > 0` is not known",
    ),
}


def test_the_rows_of_a_sparse_matrix() -> None:
    check_narrowed(from_text(HEAD + BEFORE), from_text(HEAD + AFTER))


FIRST_FEW = """\
def k(n, at: int64[1], v: float32[n], y: InOut[float32[1]]):
  if at[0] <= 3:
    for k in range({last}):
      with block("y"):
        y[0] = combine.sum(y[0], v[k] if k < at[0] else 0.0)
"""


def test_what_is_known_of_data_alone() -> None:
    """That `at[0]` is at most 3 says nothing of k by itself."""
    before = from_text(FIRST_FEW.format(last="n"))
    check_narrowed(before, from_text(FIRST_FEW.format(last="min(n, 3)")))
    with pytest.raises(Refused, match="in fewer iterations: `k < min\\(n, 2\\)` is not known"):
        check_narrowed(before, from_text(FIRST_FEW.format(last="min(n, 2)")))


def test_zeros_of_other_signs_are_other_conditions() -> None:
    """A condition that is another is one that narrowing made, and is looked at as such."""
    tree = FIRST_FEW.format(last="n").replace("at[0] <= 3", "int64(v[0] / 0.0) <= 3")
    check_narrowed(from_text(tree), from_text(tree))
    with pytest.raises(Refused, match="what data bounds: narrowed, it may read outside 'v'"):
        check_narrowed(from_text(tree), from_text(tree.replace("/ 0.0)", "/ -0.0)")))


SET = """\
  for k in range(n):
        with block("v"):
            v[k] = {value} if k == at[0] else {other}
"""
ROW = "def k(n, at: int64[1], v: InOut[float32[n]]):\n"


def test_what_is_stored_in_one_place() -> None:
    """Elsewhere the place keeps what it holds, so that no iteration but one does anything."""
    plain = from_text(ROW + SET.format(value="1.0", other="v[k]"))
    found = narrow(plain.body, of_kernel(plain), {"at": (index(1),), "v": (Var("n"),)})
    narrowed = replace(plain, body=found)
    assert "v[k] = 1.0\n" in to_text(narrowed)
    check_narrowed(plain, narrowed)
    two = to_text(narrowed).replace(" + 1)", ")")
    with pytest.raises(Refused, match="block 'v': narrowed, it would combine values in fewer"):
        check_narrowed(plain, from_text(two))
    other = to_text(narrowed).replace("v[k] = 1.0", "v[k] = 2.0")
    with pytest.raises(Refused, match="block 'v': narrowed, it computes something else"):
        check_narrowed(plain, from_text(other))


@pytest.mark.parametrize("other", ["v[0]", "0.0"])
def test_where_all_places_are_stored_to_none_is_left_out(other: str) -> None:
    plain = from_text(ROW + SET.format(value="1.0", other=other))
    shapes = {"at": (index(1),), "v": (Var("n"),)}
    assert narrow(plain.body, of_kernel(plain), shapes) == plain.body


def test_a_part_of_the_condition_stays() -> None:
    left = AFTER.replace("v[k])", "v[k] if k < start[i + 1] else 0.0)")
    check_narrowed(from_text(HEAD + BEFORE), from_text(HEAD + left))


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    (old, new), reason = REFUSED[case]
    assert old in AFTER
    with pytest.raises(Refused) as refused:
        check_narrowed(from_text(HEAD + BEFORE), from_text(HEAD + AFTER.replace(old, new)))
    assert reason in str(refused.value)


def test_each_block_of_a_loop_is_asked_for_its_own_condition() -> None:
    """Those of a loop that was unrolled have one; these do not."""
    second = """\
        with block("z"):
            z[i] = combine.sum(z[i], v[k]{})
"""
    head = HEAD.replace("y:", "z: InOut[float32[m]], y:")
    for condition, is_right in ((CONDITION, True), ("start[i] <= k", False)):
        before = BEFORE + second.format(f" if {condition} else 0.0")
        trees = from_text(head + before), from_text(head + AFTER + second.format(""))
        if is_right:
            check_narrowed(*trees)
        else:
            with pytest.raises(Refused, match=r"block 'z': narrowed, .* in fewer"):
                check_narrowed(*trees)


def test_an_index_that_no_iteration_may_read() -> None:
    """Where it lies outside no iteration runs, as is proved; the bound is read anyway."""
    condition = "start[int64(at[i])] <= k"
    before = BEFORE.replace(CONDITION, condition)
    bound = FIRST.replace("start[i]", "start[int64(at[i])]")
    inner = AFTER.replace(FIRST, bound).replace(f"min(n, {LAST})", "n")
    with pytest.raises(Refused, match="may read outside 'start'"):
        check_narrowed(from_text(HEAD + before), from_text(HEAD + inner))
    guarded = inner.replace(
        "   for k", "   if int64(at[i]) >= 0 and int64(at[i]) < m + 1:\n    for k"
    )
    check_narrowed(from_text(HEAD + before), from_text(HEAD + guarded))


def test_what_a_loop_writes_does_not_bound_it() -> None:
    text = HEAD.replace("v: float32[n], y: InOut[float32[m]]", "v: int64[n], y: InOut[int64[m]]")
    before = BEFORE.replace(CONDITION, "y[i] <= k").replace("0.0", "int64(0)")
    inner = AFTER.replace("start[i],", "y[i],").replace(f"min(n, {LAST})", "n")
    with pytest.raises(Refused, match="loop 'k': narrowed, it is bounded by 'y', its own"):
        check_narrowed(from_text(text + before), from_text(text + inner))


@pytest.mark.parametrize("file", ["csr_matvec", "add_rows"])
def test_specs_whose_loops_are_narrowed(file: str) -> None:
    spec = specs.load(ROOT / "tests" / "language" / "corpus" / f"{file}.yaml")
    target = Cpu(Level.V3)
    for variant in schedule(spec, specs.choices(spec)[0], target, unproved):
        made = list(finished(variant.lowered.kernel, target.finishing))
        (k,) = (k for k, (done, _) in enumerate(made) if done and done.name == "narrow")
        exact, new = made[k - 1][1], made[k][1]
        assert new.body != exact.body
        check_narrowed(exact, new)


def test_all_threads_come_to_a_barrier() -> None:
    """Nor is a loop narrowed that has one: which of its iterations run must not depend on data."""
    text = """\
def k(m, n, start: int64[m + 1], v: float32[n], y: InOut[float32[m]]):
    for o in blockIdx.x(m):
        for t in threadIdx.x(32):
            for k in range(n):
                with block("y"):
                    y[o] = combine.sum(y[o], v[k] if start[o] <= k else 0.0)
                barrier()
"""
    kernel = from_text(text)
    assert narrow(kernel.body, of_kernel(kernel), {"start": ()}) == kernel.body
    bare = from_text(text.replace("                barrier()\n", ""))
    shapes = {p.buffer.name: p.buffer.shape for p in bare.parameters}
    narrowed = narrow(bare.body, of_kernel(bare), shapes)
    assert any(isinstance(x, Loop) and x.kind is LoopKind.SERIAL for x in loops(narrowed))
    assert narrowed != bare.body
