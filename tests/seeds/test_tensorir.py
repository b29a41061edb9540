"""What the TensorIR RFC and a study of TVM's schedules describe, in our notation.

Each workload and its schedule are a golden in `tests/golden/tensorir/`: the steps, and the tree
after each. Every step is proved, so is what is lowered from the last tree, and that is compiled and
run against NumPy. Where the documents have 1024 there are dims, so that no factor divides.
"""

# ruff: noqa: E501 (the scripts)

from collections.abc import Callable

import numpy as np
import pytest

from gen.errors import ScheduleError
from gen.ir.algebra import TRUE
from gen.ir.nodes import If, Select
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.ir.walk import blocks, walk
from gen.poly.certificate import Scheduled
from gen.schedule.examples import ROW_SUM, TWICE
from tests.conftest import Golden
from tests.schedule.support import schedule, start
from tests.targets.scheduled import Array, agrees, lowered

MATMUL = """\
def matmul(m, n, k, A: float32[m, k], B: float32[k, n], C: Out[float32[m, n]]):
    for C.i in range(m):
        for C.j in range(n):
            for C.k in range(k):
                with block("C", vi=spatial(C.i), vj=spatial(C.j), vk=reduction(C.k), initialises=True):
                    C[vi, vj] = combine.sum(C[vi, vj], A[vi, vk] * B[vk, vj])
"""

TILED = """\
- split: {loop: C.i, factors: [null, 32]}
- split: {loop: C.j, factors: [null, 32]}
- split: {loop: C.k, factors: [null, 4]}
- reorder: {loops: [C.i_0, C.j_0, C.k_0, C.k_1, C.i_1, C.j_1]}
- vectorize: {loop: C.j_1, width: 32}
- decompose_reduction: {block: C, loop: C.j_0}
"""

# The same blocks as products of matrices, as DLight's rule for those makes them of any product.
GEMM = """\
def gemm(m, n, k, A: float32[m, k], B: float32[n, k], C: Out[float32[m, n]]):
    for C.i in range(m):
        for C.j in range(n):
            for C.k in range(k):
                with block("C", vi=spatial(C.i), vj=spatial(C.j), vk=reduction(C.k), initialises=True):
                    C[vi, vj] = combine.sum(C[vi, vj], A[vi, vk] * B[vj, vk])
"""

NORMAL_FORM = """\
- reindex: {block: C, buffer: B, as: BT}
- cache_write: {block: C, as: acc}
- pad: {block: C, multiples: {vk: 4}}
- split: {loop: C.i, factors: [null, 4]}
- split: {loop: C.j, factors: [null, 4]}
- split: {loop: C.k, factors: [null, 4]}
- reorder: {loops: [C.i_0, C.j_0, C.k_0, C.k_1, C.i_1, C.j_1]}
- annotate: {loop: C.k_0, key: pragma_auto_unroll_max_step, value: 4}
- annotate: {loop: C.k_0, key: pragma_unroll_explicit, value: 1}
- vectorize: {loop: C.j_1, width: 4}
- transform_layout: {buffer: BT, order: [1, 0]}
- storage_align: {buffer: BT, axis: 0, factor: 16, offset: 8}
- parallel: {loop: BT.vj}
"""

# DLight's Reduction, and the epilogue that it moves to it.
MEAN = """\
def mean(m, n, A: float32[m, n], A_red: Out[float32[m]]):
    with allocate(total=float32[m]):
        for total.i in range(m):
            for total.k in range(n):
                with block("total", vi=spatial(total.i), vk=reduction(total.k), initialises=True):
                    total[vi] = combine.sum(total[vi], A[vi, vk])
        for A_red.i in range(m):
            with block("A_red", vi=spatial(A_red.i)):
                A_red[vi] = total[vi] * 0.5
"""

REDUCTION = """\
- split: {loop: total.k, factors: [null, 16]}
- rfactor: {block: total, loop: total.k_1, as: [rf, total.r]}
- reorder: {loops: [total.k_0, total.k_1]}
- decompose_reduction: {block: rf, loop: total.k_0}
- reverse_compute_at: {block: A_red, loop: total.i}
- annotate: {loop: total.k_0, key: pragma_auto_unroll_max_step, value: 16}
"""

GEMV = """\
def gemv(m, n, A: float32[m, n], x: float32[n], y: Out[float32[m]]):
    for y.i in range(m):
        for y.k in range(n):
            with block("y", vi=spatial(y.i), vk=reduction(y.k), initialises=True):
                y[vi] = combine.sum(y[vi], A[vi, vk] * x[vk])
"""

# Two rfactors: over threads times lanes, then over threads.
TWICE_FACTORED = """\
- split: {loop: y.k, factors: [null, 3, 4], as: [y.r, y.tr, y.vec]}
- rfactor: {block: y, loops: [y.tr, y.vec], as: [rf, y.tr2, y.vec2]}
- rfactor: {block: y, loop: y.tr2, as: [rf2, y.tr3]}
"""

CONCAT = """\
def concat(a, b, c, A0: float32[a], A1: float32[b], A2: float32[c], B: Out[float32[a + b + c]]):
    for B0.i in range(a):
        with block("B0", vi=spatial(B0.i)):
            B[vi] = A0[vi]
    for B1.i in range(b):
        with block("B1", vi=spatial(B1.i)):
            B[vi + a] = A1[vi]
    for B2.i in range(c):
        with block("B2", vi=spatial(B2.i)):
            B[vi + a + b] = A2[vi]
"""

PARTS = """\
- vectorize: {loop: B0.i, width: 4}
- parallel: {loop: B1.i}
- split: {loop: B2.i, factors: [null, 8]}
"""

# A reduction axis of one term, which NormalizePrimFunc takes away.
UNIT = """\
def unit(m, n, A: float32[m, 1], B: float32[1, n], C: Out[float32[m, n]]):
    for C.i in range(m):
        for C.j in range(n):
            for C.k in range(1):
                with block("C", vi=spatial(C.i), vj=spatial(C.j), vk=reduction(C.k), initialises=True):
                    C[vi, vj] = combine.sum(C[vi, vj], A[vi, vk] * B[vk, vj])
"""

NORMALIZED = """\
- decompose_reduction: {block: C, loop: C.i}
- transform_block_layout: {block: C, indices: "vi, vj"}
"""

CASES: dict[str, tuple[str, str, Callable[..., Array], tuple[int, ...]]] = {
    "matmul": (MATMUL, TILED, lambda a, b: a @ b, (0, 1, 31, 33, 64)),
    "gemm": (GEMM, NORMAL_FORM, lambda a, b: a @ b.T, (0, 1, 3, 4, 9)),
    "mean": (MEAN, REDUCTION, lambda a: a.sum(1) / 2, (0, 1, 15, 16, 33)),
    "gemv": (GEMV, TWICE_FACTORED, lambda a, x: a @ x, (0, 1, 11, 12, 25)),
    "concat": (CONCAT, PARTS, lambda *parts: np.concatenate(parts), (0, 1, 7, 8)),
    "unit": (UNIT, NORMALIZED, lambda a, b: a @ b, (0, 1, 5)),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, golden: Golden) -> None:
    text, recipe, _, _ = CASES[name]
    done = schedule(start(text), recipe)
    trees = (f"# {step.primitive}\n\n{to_text(step.state.kernel)}" for step in done)
    golden(f"tensorir/{name}.txt", "\n".join((text, *trees)))


@pytest.mark.parametrize("name", CASES)
def test_compiled(name: str) -> None:
    text, recipe, wanted, sizes = CASES[name]
    agrees(text, recipe, wanted, sizes, threads=2)


def test_a_workload_is_scheduled_several_times() -> None:
    """What is printed after some steps is all that the others need."""
    lines = TILED.splitlines(keepends=True)
    at_once = schedule(start(MATMUL), TILED)[-1].state
    state = start(MATMUL)
    for line in lines:
        done = schedule(state, line)[-1].state
        state = Scheduled(from_text(to_text(done.kernel)), done.flow)
    assert state == at_once


def test_a_concatenation_has_no_branch() -> None:
    kernel = lowered(CONCAT, PARTS.replace("- vectorize: {loop: B0.i, width: 4}\n", ""))
    assert not any(isinstance(n, If | Select) for n in walk(kernel.body))
    assert all(b.predicate == TRUE for b in blocks(kernel.body))


# ---------------------------------------------------------------- what TVM trusts, or refuses late


BACKWARDS = TWICE.replace("y[i] = t[i]", "y[i] = t[n - 1 - i]")
BORDERED = """\
def bordered(n, x: float32[n], y: Out[float32[n + 1]]):
    with allocate(t=float32[n + 1]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i]
        with block("t_end"):
            t[n] = 0.0
        for y.i in range(n + 1):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + 1.0
"""
FEWER = """\
def fewer(n, x: float32[n + 3], y: Out[float32[n]]):
    with allocate(t=float32[n + 3]):
        for t.i in range(n + 3):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + 1.0
"""
SPREAD_OUT = """\
def spread_out(m, n, x: float32[n], y: Out[float32[m, n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = t[j] + 1.0
"""

REFUSED = {
    "merge without the values that it needs": (
        BACKWARDS,
        "- merge: {loops: [t.i, y.i]}",
        "reads 't' before t[i=1] computes it",
    ),
    "an inlined consumer that reads what another block stores": (
        BORDERED,
        "- reverse_compute_inline: {block: y}",
        "block 'y' reads from 2 blocks, not from one",
    ),
    "an inlined consumer of which one value makes many": (
        SPREAD_OUT,
        "- reverse_compute_inline: {block: y}",
        "its reads of 't' do not name each of its iteration variables once",
    ),
    "an init inside the reduction": (
        MATMUL,
        "- split: {loop: C.k, factors: [null, 4]}\n- decompose_reduction: {block: C, loop: C.k_1}",
        "would run again at each iteration of the reduction loop 'C.k_0'",
    ),
    "terms in parallel": (MATMUL, "- parallel: {loop: C.k}", "has a race"),
    "an axis gone that the reduction needs": (
        UNIT,
        '- transform_block_layout: {block: C, indices: "vi, vj"}',
        "no reduction variable of block 'C' would be left",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    text, recipe, reason = REFUSED[what]
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(text), recipe)
    assert reason in refusal.value.message


def test_merge_with_a_proof() -> None:
    agrees(TWICE, "- merge: {loops: [t.i, y.i]}", lambda x: x * 2 + 1)


def test_an_inlined_consumer_of_a_part() -> None:
    """Guarded where the producer ran further than it."""
    recipe = "- reverse_compute_inline: {block: y}"
    agrees(FEWER, recipe, lambda x: x[:-3] * 2 + 1)


@pytest.mark.parametrize("loop", ["y.j_0", "y.j_1"])
def test_rfactor_by_more_than_there_is(loop: str) -> None:
    """16 partials, most of which add nothing to what they start from."""
    recipe = f"- split: {{loop: y.j, factors: [null, 16]}}\n- rfactor: {{block: y, loop: {loop}}}"
    agrees(ROW_SUM, recipe, lambda x: x.sum(1), (0, 1, 3, 15, 17))
