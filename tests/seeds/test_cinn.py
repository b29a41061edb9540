"""CINN's document on its schedule primitives, example by example, in our notation.

Each "original IR -> IR after" of it is a golden in `tests/golden/cinn/`: the original, the steps,
the tree after them. Every step is proved, and so is what is lowered from the last tree, which is
compiled and run against NumPy. Where the document has 32 x 64 there are dims here, so that sizes
are not square and no factor divides them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from gen.errors import ScheduleError
from gen.ir.nodes import Kernel
from gen.ir.rules.verify import verify
from gen.ir.text.printer import to_text
from gen.lower.finish import Finished, finish
from gen.lower.lower import lower
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.targets.c.library import Compiled, build
from gen.targets.cpu.emit import emit_file, emit_kernel
from gen.targets.cpu.jit import compiler_command, native_level
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from tests.conftest import Golden
from tests.schedule.support import assert_same, inputs, schedule, start

Arrays = Mapping[str, np.ndarray]
Sizes = Mapping[str, int]

SIZES = (
    {"m": 33, "n": 65, "p": 18},
    {"m": 7, "n": 3, "p": 130},
    {"m": 701, "n": 67, "p": 3},  # enough for two threads
    {"m": 1, "n": 1, "p": 1},
    {"m": 0, "n": 5, "p": 2},
    {"m": 2, "n": 4, "p": 0},
)

COPY = """\
def NAME(m, n, A: float32[m, n], B: Out[float32[m, n]]):
    for B.i in range(m):
        for B.j in range(n):
            with block("B", i0=spatial(B.i), i1=spatial(B.j)):
                B[i0, i1] = A[i0, i1]
"""

COPY_64 = """\
def NAME(m, A: float32[m, 64], B: Out[float32[m, 64]]):
    for B.i in range(m):
        for B.j in range(64):
            with block("B", i0=spatial(B.i), i1=spatial(B.j)):
                B[i0, i1] = A[i0, i1]
"""

PAIRS = """\
def NAME(m, A: float32[m, 2], B: Out[float32[m, 2]]):
    for B.i in range(m):
        for B.j in range(2):
            with block("B", i0=spatial(B.i), i1=spatial(B.j)):
                B[i0, i1] = A[i0, i1]
"""

CHAIN = """\
def NAME(m, n, p, A: float32[n, m, p], C: Out[float32[m, n, p]]):
    with allocate(B=float32[n, m, p]):
        for B.i in range(n):
            for B.j in range(m):
                for B.k in range(p):
                    with block("B", i0=spatial(B.i), i1=spatial(B.j), i2=spatial(B.k)):
                        B[i0, i1, i2] = 1.0 + A[i0, i1, i2]
        for C.i in range(m):
            for C.j in range(n):
                for C.k in range(p):
                    with block("C", i0=spatial(C.i), i1=spatial(C.j), i2=spatial(C.k)):
                        C[i0, i1, i2] = 2.0 * B[i1, i0, i2]
"""

ROWS_OF_10 = CHAIN.replace("NAME(m, n, p", "NAME(m, p").replace("range(n)", "range(10)")
ROWS_OF_10 = ROWS_OF_10.replace("[n, m, p]", "[10, m, p]").replace("[m, n, p]", "[m, 10, p]")

BOTH = """\
def NAME(n, p, A: float32[n, n, p], C: Out[float32[n, n, p]], B: Out[float32[n, n, p]]):
    for C.i in range(n):
        for C.j in range(n):
            for C.k in range(p):
                with block("C", i0=spatial(C.i), i1=spatial(C.j), i2=spatial(C.k)):
                    C[i0, i1, i2] = 2.0 * A[i1, i0, i2]
    for B.i in range(n):
        for B.j in range(n):
            for B.k in range(p):
                with block("B", i0=spatial(B.i), i1=spatial(B.j), i2=spatial(B.k)):
                    B[i0, i1, i2] = 1.0 + A[i0, i1, i2]
"""

BROADCAST = """\
def NAME(m, n, p, A: float32[m, n], B: Out[float32[m, n, p]]):
    for B.i in range(m):
        for B.j in range(n):
            for B.k in range(p):
                with block("B", i0=spatial(B.i), i1=spatial(B.j), i2=spatial(B.k)):
                    B[i0, i1, i2] = A[i0, i1]
"""

SUM = """\
def NAME(m, n, p, A: float32[m, n, p], B: Out[float32[m, n]]):
    for B.i in range(m):
        for B.j in range(n):
            for B.k0 in range(p):
                with block(
                    "B", i0=spatial(B.i), i1=spatial(B.j), i2=reduction(B.k0), initialises=True
                ):
                    B[i0, i1] = combine.sum(B[i0, i1], A[i0, i1, i2])
"""

SUM_OF_TWO = """\
def NAME(m, n, p, A: float32[m, n, p], B: Out[float32[m]]):
    for B.i in range(m):
        for B.j0 in range(n):
            for B.k0 in range(p):
                with block(
                    "B", i0=spatial(B.i), i1=reduction(B.j0), i2=reduction(B.k0), initialises=True
                ):
                    B[i0] = combine.sum(B[i0], A[i0, i1, i2])
"""


def copied(x: Arrays, dims: Sizes) -> Arrays:
    return {"B": x["A"]}


def chained(x: Arrays, dims: Sizes) -> Arrays:
    return {"C": 2 * (1 + x["A"].transpose(1, 0, 2))}


def both(x: Arrays, dims: Sizes) -> Arrays:
    return {"C": 2 * x["A"].transpose(1, 0, 2), "B": 1 + x["A"]}


def repeated(x: Arrays, dims: Sizes) -> Arrays:
    return {"B": np.repeat(x["A"][:, :, None], dims["p"], 2)}


def summed(x: Arrays, dims: Sizes) -> Arrays:
    return {"B": x["A"].sum(2)}


def summed_twice(x: Arrays, dims: Sizes) -> Arrays:
    return {"B": x["A"].sum((1, 2))}


@dataclass(frozen=True)
class Case:
    """An example: the original, the steps, and what NumPy says of it."""

    original: str
    steps: str
    wanted: Callable[[Arrays, Sizes], Arrays]


CASES: dict[str, Case] = {
    "fuse": Case(COPY, "- fuse: {loops: [B.i, B.j]}", copied),
    "split": Case(COPY_64, "- split: {loop: B.j, factors: [4, 16]}", copied),
    "split_symbolic": Case(COPY, "- split: {loop: B.j, factors: [null, 16]}", copied),
    "reorder": Case(COPY, "- reorder: {loops: [B.j, B.i]}", copied),
    "unroll": Case(PAIRS, "- unroll: {loop: B.j}", copied),
    "compute_inline": Case(CHAIN, "- compute_inline: {block: B}", chained),
    "compute_at": Case(
        CHAIN, "- fuse: {loops: [C.i, C.j]}\n- compute_at: {block: B, loop: C.k}", chained
    ),
    "compute_at_part_of_a_fused_loop": Case(
        ROWS_OF_10,
        "- fuse: {loops: [C.i, C.j]}\n"
        "- split: {loop: C.i_j, factors: [null, 16]}\n"
        "- compute_at: {block: B, loop: C.i_j_0}",
        chained,
    ),
    "simple_compute_at": Case(BOTH, "- simple_compute_at: {block: B, loop: C.k}", both),
    "simple_compute_at_after_the_same_fuse": Case(
        BOTH,
        "- fuse: {loops: [B.i, B.j]}\n"
        "- fuse: {loops: [C.i, C.j]}\n"
        "- simple_compute_at: {block: B, loop: C.k}",
        both,
    ),
    "cache_read": Case(
        BROADCAST, "- cache_read: {block: B, buffer: A, as: A_temp_buffer}", repeated
    ),
    "cache_write": Case(
        SUM,
        "- cache_write: {block: B, as: B_temp_buffer}\n"
        "- decompose_reduction: {block: B, loop: B.k0}",
        summed,
    ),
    "set_buffer": Case(
        CHAIN,
        "- compute_at: {block: B, loop: C.k}\n- set_buffer: {buffer: B, scope: register}",
        chained,
    ),
    "rfactor": Case(
        SUM_OF_TWO,
        "- rfactor: {block: B, loop: B.k0, as: rf_B}\n"
        "- fission: {loop: B.i, as: [rf_B.i, B.i]}\n"
        "- reorder: {loops: [B.k0, rf_B.i, B.j0]}\n"
        "- transform_layout: {buffer: rf_B, order: [1, 0]}\n"
        "- decompose_reduction: {block: rf_B, loop: B.j0}\n"
        "- decompose_reduction: {block: B, loop: B.r0}",
        summed_twice,
    ),
    "parallel": Case(COPY, "- parallel: {loop: B.i}", copied),
    "vectorize": Case(COPY, "- vectorize: {loop: B.j, width: 16}", copied),
}


def original(name: str) -> Scheduled:
    return start(CASES[name].original.replace("NAME", name))


@cache
def last(name: str) -> Scheduled:
    """The proved state after the example's steps."""
    return schedule(original(name), CASES[name].steps)[-1].state


@cache
def lowered(name: str, level: Level) -> Kernel:
    """What is emitted, proved against the original."""
    result = lower(last(name), Cpu(level).lowering)
    verify(result.kernel, lowered=True)
    prove(original(name).kernel, result)
    return result.kernel


def emitted(names: tuple[str, ...], level: Level) -> str:
    """One C file of the examples."""
    parts = []
    for name in names:
        kernel = lowered(name, level)
        arrays = [p.buffer.name for p in kernel.parameters]
        variants = (Finished("0", finish(kernel, Cpu(level).finishing)),)
        parts.append(emit_kernel(kernel.name, "float32", variants, level, packed=arrays))
    return emit_file("cinn", parts, level)


@pytest.fixture(scope="module")
def compiled() -> Callable[[str], Compiled]:
    """The examples' kernels, of one library."""
    level = native_level()
    source = emitted(tuple(CASES), level)
    library = build(source, compiler_command(level, ("-Wall", "-Wextra", "-Werror")))

    def one(name: str) -> Compiled:
        symbol = f"ts_{name}_float32_{level.value}"
        return Compiled(lowered(name, level), source, library, symbol, 1)

    return one


@pytest.mark.parametrize("name", CASES)
def test_ir_after(name: str, golden: Golden) -> None:
    steps = "".join(f"# {line}\n" for line in CASES[name].steps.splitlines())
    parts = (to_text(original(name).kernel), steps, to_text(last(name).kernel))
    golden(f"cinn/{name}.txt", "\n".join(parts))


@pytest.mark.parametrize("name", ("unroll", "parallel", "vectorize"))
def test_generated_code_after(name: str, golden: Golden) -> None:
    """CINN's vectorized loop makes 2 trips for 32 elements and for 17: it rounds that up and
    writes past the end. Here the last vector is masked. What it unrolls ends by `i < 2`, which was
    to be `j < 2`.
    """
    golden(f"cinn/{name}.v3.c", emitted((name,), Level.V3))


@pytest.mark.parametrize("name", CASES)
def test_runs_as_numpy_does(name: str, compiled: Callable[[str], Compiled]) -> None:
    """In the middle of a larger array, of which nothing else changes."""
    kernel = compiled(name)
    for sizes in SIZES:
        dims = {dim: sizes[dim] for dim in kernel.kernel.dims}
        given = inputs(kernel.kernel, dims)
        wanted = CASES[name].wanted(given, dims)
        for threads in (1, 2):
            around = {
                key: np.full([e + 20 for e in x.shape], 77, x.dtype) for key, x in wanted.items()
            }
            inside = {key: x[(slice(10, -10),) * x.ndim] for key, x in around.items()}
            kernel({**given, **inside}, dims=dims, threads=threads)
            for key, x in wanted.items():
                np.testing.assert_array_equal(inside[key], x, err_msg=f"{key} at {dims}")
                inside[key][...] = 77
                assert (around[key] == 77).all()


# ---------------------------------------------------------------- where the document is wrong


def refusal(kernel: str, steps: str) -> str:
    with pytest.raises(ScheduleError) as refused:
        schedule(start(kernel), steps)
    return refused.value.message


SQUARE = CHAIN.replace("NAME(m, ", "square(").replace("range(m)", "range(n)")
SQUARE = SQUARE.replace("[m, n, p]", "[n, n, p]").replace("[n, m, p]", "[n, n, p]")

OF_6_BY_10 = CHAIN.replace("NAME(m, n, ", "chain(").replace("[m, n, p]", "[6, 10, p]")
OF_6_BY_10 = OF_6_BY_10.replace("range(m)", "range(6)").replace("range(n)", "range(10)")
OF_6_BY_10 = OF_6_BY_10.replace("[n, m, p]", "[10, 6, p]")

BACKWARDS = """\
def backwards(n, A: float32[n], C: Out[float32[n]]):
    with allocate(B=float32[n]):
        for B.i in range(n):
            with block("B", i=spatial(B.i)):
                B[i] = 1.0 + A[i]
        for C.i in range(n):
            with block("C", i=spatial(C.i)):
                C[i] = 2.0 * B[n - 1 - i]
"""


def test_the_same_fuse_by_hand_does_not_make_simple_compute_at_right() -> None:
    """ "You need to do the same Fuse manually for B = 1 + A to use SimpleComputeAt", says CINN's
    document. It then accepts that C reads B[j, i] before it is computed, wherever i < j.
    """
    steps = (
        "- fuse: {loops: [B.i, B.j]}\n"
        "- fuse: {loops: [C.i, C.j]}\n"
        "- SimpleComputeAt: {block: B, loop: C.k}"
    )
    assert "C[i0=0, i1=1, i2=0] reads 'B' before B[i0=1, i1=0, i2=0] computes it" in refusal(
        SQUARE, steps
    )


def test_simple_compute_at_of_fused_loops_that_come_to_the_same_number() -> None:
    """CINN compares the numbers of iterations, of which 6 x 10 and 10 x 6 have as many."""
    assert "the fused loop B.i by B.j of 10 by 6 runs over other iterations than" in refusal(
        OF_6_BY_10,
        "- fuse: {loops: [B.i, B.j]}\n"
        "- fuse: {loops: [C.i, C.j]}\n"
        "- simple_compute_at: {block: B, loop: C.k}",
    )


def test_compute_at_of_what_is_read_backwards() -> None:
    """CINN puts the ends of a loop into the index: of 10 - i it has the region from 7 on, of two
    elements, for i < 4. Here each iteration computes the four that it reads.
    """
    before = start(BACKWARDS)
    after = schedule(
        before,
        "- split: {loop: C.i, factors: [null, 4]}\n- compute_at: {block: B, loop: C.i_0}",
    )[-1].state.kernel
    assert "for B.i in range(4):" in to_text(after)
    assert "where=0 <= n - C.i_0 * 4 - 4 + B.i" in to_text(after)
    assert_same(before.kernel, after, sizes=(0, 1, 4, 6))


@pytest.mark.parametrize("name", ("B", "rf", "first"))
def test_rfactor_whatever_the_name(name: str) -> None:
    """CINN finds the block to give its new axis by the first `r` or `f` of its name."""
    before = start(SUM_OF_TWO.replace("B", name).replace("NAME", "total"))
    after = schedule(before, f"- rfactor: {{block: {name}, loop: {name}.k0}}")[-1].state.kernel
    assert f"allocate({name}_rf=float32[m, p])" in to_text(after)
    assert_same(before.kernel, after, sizes=(1, 3))


def test_a_fused_loop_that_does_not_start_at_0() -> None:
    """CINN never looks at where it starts."""
    before = start(COPY.replace("NAME", "inner").replace("Out[", "InOut[").replace("e(m", "e(1, m"))
    after = schedule(before, "- fuse: {loops: [B.i, B.j]}")[-1].state.kernel
    assert "B.i_j in range(max(m - 1, 0) * n)" in to_text(after)
    assert_same(before.kernel, after, sizes=(0, 1, 3, 4))


def test_cache_write_of_a_reduction_with_an_init_apart() -> None:
    """The original of CINN's example has its init in a block of its own."""
    steps = (
        "- decompose_reduction: {block: B, loop: B.k0}\n- CacheWrite: {block: B, as: B_temp_buffer}"
    )
    after = schedule(original("cache_write"), steps)[-1].state
    assert to_text(after.kernel) == to_text(last("cache_write").kernel)
