"""Why a step does not apply: the text, for what the primitives' examples do not show."""

import pytest

from gen.errors import ScheduleError
from gen.schedule import examples
from gen.schedule.examples import BLOCKED, PAIR, ROW_SQUARES, ROW_SUM, SCALE, SHARE, TWICE, UPPER

from .support import assert_same, schedule, start

INPLACE = """\
def inplace(n, x: float32[n], y: InOut[float32[n]]):
    for y.i in range(1, n):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=reduction(y.j)):
                y[i] = combine.sum(y[i], x[j])
"""

TOTAL = """\
def total(m, n, x: float32[m, n], y: Out[float32[()]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=reduction(y.i), j=reduction(y.j), initialises=True):
                y[()] = combine.sum(y[()], x[i, j])
"""

STAIRS = """\
def stairs(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n], u=float32[n], v=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for u.i in range(n):
            with block("u", i=spatial(u.i)):
                u[i] = t[i] * 2.0
        for v.i in range(n):
            with block("v", i=spatial(v.i)):
                v[i] = t[i] * u[i]
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = v[i] + t[i]
"""

CORNER = """\
def corner(n, x: float32[n], y: InOut[float32[n]]):
    for y.i_0 in range(n):
        for y.i_1 in range(y.i_0, n):
            for y.k in range(y.i_1):
                for y.j in range(y.k, y.i_1):
                    with block(
                        "y",
                        a=reduction(y.i_0),
                        i=spatial(y.i_1, a, n),
                        k=reduction(y.k, i),
                        j=reduction(y.j, k, i),
                    ):
                        y[i] = combine.sum(y[i], x[j] * x[k])
"""

ROWS = """\
def rows(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    with allocate(t=float32[()]):
        for t.i in range(m):
            for t.j in range(n):
                with block("t", i=spatial(t.i), j=spatial(t.j)):
                    t[()] = x[i, j] * 2.0
                with block("y", i=spatial(t.i), j=spatial(t.j)):
                    y[i, j] = t[()] + 1.0
"""

FROM_ONE = """\
def from_one(n, x: float32[n], y: Out[float32[()]]):
    for y.j in range(1, n):
        with block("y", j=reduction(y.j), initialises=True):
            y[()] = combine.sum(y[()], x[j])
"""

RAGGED = """\
def ragged(n, count: int64[n], x: float32[n], y: Out[float32[n]]):
    for y.i in range(n):
        for y.j in range(count[y.i]):
            with block("y", i=spatial(y.i), j=reduction(y.j, count[i]), initialises=True):
                y[i] = combine.sum(y[i], x[i])
"""

PARTS = """\
def parts(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(1, n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i]
        for t_1.i in range(min(n, 1)):
            with block("t_1", i=spatial(t_1.i)):
                t[i] = 0.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + 1.0
"""

TWICE_WRITTEN = PARTS.replace("range(1, n)", "range(n)").replace("y[i] = t[i]", "y[i] = x[i]")

STACKED = """\
def stacked(n, x: float32[n, n, n], y: InOut[float32[n, n, n]]):
    for y.i in range(n):
        for y.j in range(n):
            for y.k in range(y.i + 1):
                with block("y", i=spatial(y.i), j=spatial(y.j), k=spatial(y.k, 0, i + 1)):
                    y[i, j, k] = x[i, j, k] * 2.0
"""

BAND = """\
def band(n, x: float32[n, n], y: InOut[float32[n, n]]):
    for y.i in range(n):
        for y.j in range(y.i, min(y.i + 3, n)):
            with block("y", i=spatial(y.i), j=spatial(y.j, i, min(i + 3, n))):
                y[i, j] = x[i, j] * 2.0
"""

RAGGED_ROWS = """\
def ragged_rows(m, n, count: int64[n], x: float32[n], y: Out[float32[m, n]]):
    for y.k in range(m):
        for y.i in range(n):
            for y.j in range(count[y.i]):
                with block(
                    "y",
                    k=spatial(y.k),
                    i=spatial(y.i),
                    j=reduction(y.j, count[i]),
                    initialises=True,
                ):
                    y[k, i] = combine.sum(y[k, i], x[i])
"""

REFUSALS = [
    (
        PAIR,
        "merge: {loops: [t.i, y.i, z.i], as: [w.i]}\n- fission: {loop: w.i, before: a}",
        "block 'a' is not in loop 'w.i'",
    ),
    (UPPER, "peel: {loop: y.i, at: y.j}", "loop 'y.j' is not around loop 'y.i'"),
    (
        BAND,
        "split: {loop: y.i, factors: [null, 4]}\n- peel: {loop: y.j, at: y.i_0}",
        "both ends of loop 'y.j' depend on loops inside of 'y.i_0'; one has to",
    ),
    (
        RAGGED_ROWS,
        "decompose_reduction: {block: y, loop: y.j}\n- peel: {loop: y.j, at: y.k}",
        "nothing bounds `count[y.i]` inside of loop 'y.k'",
    ),
    (TWICE, "split: {loop: y.i, factors: [4]}", "it takes at least two factors"),
    (TWICE, "split: {loop: y.i, factors: [null, 0]}", "factor 0 is not positive"),
    (TWICE, "split: {loop: y.i, factors: [null, null]}", "only one factor can be inferred"),
    (
        TWICE,
        "split: {loop: y.i, factors: [4, null]}",
        "only the outermost factor can be inferred where the extent is symbolic",
    ),
    (TWICE, "split: {loop: y.i, factors: [null, 4], as: [y.o]}", "`as` must give 2 names"),
    (
        UPPER,
        "split: {loop: y.j, factors: [4, 4], grid: true}",
        "with `grid` the outermost factor is null: there are as many parts as it takes",
    ),
    (BLOCKED, "split: {loop: y.i, factors: [null, bb]}", "there is no dim or int64 scalar 'bb'"),
    (
        BLOCKED,
        "split: {loop: y.i, factors: [null, 2, b]}",
        "a factor that is given at run time is the second of two, `[null, b]`, of a loop whose"
        " start depends on no other",
    ),
    (
        TWICE,
        "split: {loop: y.i, factors: [null, 4], as: [y.o, t.i]}",
        "the name 't.i' is taken; give another one with `as`",
    ),
    (
        TWICE,
        "split: {loop: y.i, factors: [null, 4], as: [outer, y.b]}",
        "'outer' cannot be the name of a loop: loops are named like 'block.index'",
    ),
    (
        TWICE,
        "parallel: {loop: y.i}\n- split: {loop: y.i, factors: [null, 4]}",
        "loop 'y.i' is parallel already",
    ),
    (SCALE, "fuse: {loops: [y.i]}", "it takes at least two loops"),
    (SCALE, "fuse: {loops: [y.j, y.i]}", "the loops, from outside in, are y.i, y.j"),
    (SCALE, "reorder: {loops: [y.i]}", "it takes at least two loops"),
    (SCALE, "reorder: {loops: [y.i, y.i]}", "a loop is named twice"),
    (
        TWICE,
        "reorder: {loops: [y.i, t.i]}",
        "loop 't.i' is not directly nested in 'y.i': there must be only loops between them",
    ),
    (SCALE, "tile: {loops: [y.i], sizes: [4]}", "it takes at least two loops"),
    (SCALE, "tile: {loops: [y.i, y.j], sizes: [4, 4], as: [y.a]}", "`as` must give 4 names"),
    (SCALE, "parallel: {loop: y.i}\n- tile: {loops: [y.i, y.j], sizes: [4, 4]}", "is parallel"),
    (TWICE, "unroll: {loop: y.i, as: [y.a, y.b]}", "nothing is created without one"),
    (TWICE, "unroll: {loop: y.i, factor: 2, as: [y.a]}", "`as` must give 2 names"),
    (TWICE, "transform_layout: {buffer: t}", "give `factors`, or an `order`, or both"),
    (TWICE, "transform_layout: {buffer: t, axis: 0}", "give `axis` and `factors` together"),
    (
        TWICE,
        "transform_layout: {buffer: t, axis: 1, factors: [null, 4]}",
        "'t' has 1 axes: there is no axis 1",
    ),
    (
        TWICE,
        "transform_layout: {buffer: t, axis: 0, factors: [4, 4]}",
        "the first of `factors` is null: the outermost axis is as long as is needed",
    ),
    (
        TWICE,
        "transform_layout: {buffer: t, axis: 0, factors: [null, 0]}",
        "`factors` are positive, all but the first",
    ),
    (
        TWICE,
        "transform_layout: {buffer: t, axis: 0, factors: [null, 4], order: [1, 1]}",
        "`order` must list the axes 0 to 1 once each",
    ),
    (TWICE, "merge: {loops: [t.i]}", "it takes at least two loops"),
    (TWICE, "merge: {loops: [t.i, t.i]}", "a loop is named twice"),
    (TWICE, "merge: {loops: [t.i, y.i], as: [a.i, b.i]}", "`as` must give 1 name"),
    (SCALE, "merge: {loops: [y.j, y.i]}", "loop 'y.j' has no siblings"),
    (
        ROW_SQUARES,
        "cache_read: {block: t, buffer: x, at: t.i}\n- merge: {loops: [t.j, y.i]}",
        "loops 't.j' and 'y.i' are not siblings",
    ),
    (
        INPLACE,
        "cache_read: {block: y, buffer: x}\n- merge: {loops: [x_cache.d0, y.i]}",
        "the proof was refused: y[i=1, j=2] reads 'x_cache' before x_cache[d0=2] computes it",
    ),
    (TWICE, "vectorize: {loop: y.i, width: 4, accumulators: 0}", "accumulators 0 is not positive"),
    (TWICE, "vectorize: {loop: y.i, width: 513}", "width 513 is more than 512 lanes"),
    (
        TWICE,
        "split: {loop: y.i, factors: [null, 1000000]}\n- vectorize: {loop: y.i_1, width: 1000000}",
        "width 1000000 is more than 512 lanes",
    ),
    (
        TWICE,
        "vectorize: {loop: y.i, width: 512, accumulators: 9}",
        "9 accumulators of 512 lanes are more than 4096 lanes in all",
    ),
    (TWICE, "vectorize: {loop: y.i, width: 4, as: [y.a]}", "`as` must give 2 names"),
    (
        TWICE,
        "split: {loop: y.i, factors: [null, 4]}\n"
        "- vectorize: {loop: y.i_1, width: 4, as: [y.a, y.b]}",
        "`as` names nothing: the loop is as wide as a vector already",
    ),
    (
        SCALE,
        "parallel: {loop: y.j}\n- vectorize: {loop: y.i, width: 4}",
        "vectorize (loop y.i): parallel loop 'y.j' would be in vectorized loop 'y.i': all lanes",
    ),
    (
        SCALE,
        "distribute: {loop: y.j}\n- parallel: {loop: y.i}",
        "distributed loop 'y.j' would be in parallel loop 'y.i': a rank has threads",
    ),
    (
        SCALE,
        "bind: {loop: y.i, axis: blockIdx.x}\n- distribute: {loop: y.j}",
        "distributed loop 'y.j' would be in blockIdx.x loop 'y.i': a launch runs on the GPU of one",
    ),
    (
        SCALE,
        "bind: {loop: y.j, axis: threadIdx.x}\n- parallel: {loop: y.i}",
        "threadIdx.x loop 'y.j' would be in parallel loop 'y.i': one thread of the host starts",
    ),
    (
        SCALE,
        "bind: {loop: y.i, axis: threadIdx.x}\n- bind: {loop: y.j, axis: blockIdx.x}",
        "blockIdx.x loop 'y.j' would be in threadIdx.x loop 'y.i': a block holds threads",
    ),
    (
        SCALE,
        "bind: {loops: [y.i, y.j], axis: threadIdx.x}",
        "threadIdx.x loop 'y.j' would be in threadIdx.x loop 'y.i': each axis has one loop",
    ),
    (
        SCALE,
        "tile: {loops: [y.i, y.j], sizes: [64, 64]}\n- bind: {loop: y.i_1, axis: threadIdx.y}\n"
        "- bind: {loop: y.j_1, axis: threadIdx.x}",
        "4096 threads of a block are more than 1024",
    ),
    (
        TWICE,
        "bind: {loop: t.i, axis: threadIdx.x}\n- set_scope: {buffer: t, scope: constant}",
        "block 't' writes 't' in the launch of loop 't.i', and constant memory is only read there",
    ),
    (
        SCALE,
        "bind: {loop: y.i, axis: blockIdx.x}\n- bind: {loop: y.j, axis: threadIdx.x}\n"
        "- cache_read: {block: y, buffer: x, at: y.i, scope: register}",
        "'x_cache' is register memory, which each thread has for itself, and loop 'y.j' runs block"
        " 'y' on several",
    ),
    (TWICE, "set_scope: {buffer: u, scope: heap}", "there is no buffer 'u'"),
    (TWICE, "compute_at: {block: u, loop: y.i}", "there is no block 'u'"),
    (TWICE, "compute_at: {block: t, loop: t.i}", "loop 't.i' is around block 't' already"),
    (TWICE, "compute_at: {block: y, loop: t.i}", "no block reads from block 'y'"),
    (
        TWICE,
        "vectorize: {loop: t.i, width: 4}\n- compute_at: {block: t, loop: y.i}",
        "loop 't.i_1' around it is vectorized already; move it first",
    ),
    (
        SHARE,
        "decompose_reduction: {block: t, loop: t.i}\n- compute_at: {block: t, loop: y.i}",
        "its init is block 't.init' by now; move it before decompose_reduction",
    ),
    (TWICE, "reverse_compute_at: {block: y, loop: y.i}", "is around block 'y' already"),
    (
        TWICE,
        "cache_write: {block: t, buffer: t}\n- cache_write: {block: t, buffer: y}",
        "block 't' does not write 'y'",
    ),
    (TWICE, "cache_write: {block: t, at: y.i}", "loop 'y.i' is not around block 't'"),
    (TWICE, "cache_write: {block: t, as: a.b}", "'a.b' cannot be the name of a buffer"),
    (INPLACE, "cache_write: {block: y}", "block 'y' adds to what is in 'y'"),
    (
        SHARE,
        "decompose_reduction: {block: t, loop: t.i}\n- cache_write: {block: t.init}",
        "block 't.init' is the init of a reduction",
    ),
    (TWICE, "cache_read: {block: y, buffer: t, at: t.i}", "loop 't.i' is not around block 'y'"),
    (TWICE, "reverse_compute_inline: {block: t}", "block 't' reads from 0 blocks, not from one"),
    (SHARE, "reverse_compute_inline: {block: t}", "block 't' is a reduction; use reverse"),
    (SHARE, "reverse_compute_inline: {block: y}", "block 't' is a reduction; use reverse"),
    (PAIR, "reverse_compute_inline: {block: y}", "block 'z' reads from block 't', too"),
    (ROW_SUM, "rfactor: {block: y}", "give either `loop` or `loops`"),
    (TWICE, "rfactor: {block: y, loop: y.i}", "block 'y' is not a reduction"),
    (SHARE, "rfactor: {block: t, loop: y.i}", "loop 'y.i' is not around block 't'"),
    (ROW_SUM, "rfactor: {block: y, loops: [y.j, y.j]}", "a loop is named twice"),
    (
        ROW_SUM,
        "rfactor: {block: y, loop: y.j, as: [p, y.r, y.s]}",
        "`as` must give 1 name, or 2 with the join's loops",
    ),
    (
        ROW_SUM,
        "fuse: {loops: [y.i, y.j]}",
        "fuse (loops [y.i, y.j]): 'y.i_j' carries both spatial and reduction variables",
    ),
    (
        FROM_ONE,
        "shift: {loop: y.j, by: -2}\n- rfactor: {block: y, loop: y.j}",
        "loop 'y.j' may start below 0; split it first",
    ),
    (
        RAGGED,
        "rfactor: {block: y, loop: y.j}",
        "the extent of loop 'y.j' has no bound over the kernel's dims",
    ),
    (SHARE, "compute_inline: {block: t}", "block 't' is a reduction: it has no single expression"),
    (PARTS, "compute_inline: {block: t}", "block 'y' reads 't' from other blocks, too"),
    (TWICE_WRITTEN, "compute_inline: {block: t}", "'t' is written by 2 blocks"),
    (
        TOTAL,
        "fuse: {loops: [y.i, y.j]}\n- rfactor: {block: y, loop: y.i_j}",
        "loop 'y.i_j' is fused; factor its parts before fusing them",
    ),
]


@pytest.mark.parametrize(("kernel", "steps", "reason"), REFUSALS, ids=[s for _, s, _ in REFUSALS])
def test_refused(kernel: str, steps: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(kernel), "- " + steps)
    assert reason in refusal.value.message


HINTS = [
    (
        STACKED,
        "bind: {loop: y.j, axis: blockIdx.y}\n- bind: {loop: y.k, axis: blockIdx.x}\n"
        "- reorder: {loops: [y.j, y.i, y.k]}",
        "reorder before bind",
    ),
    (
        SCALE,
        "vectorize: {loop: y.i, width: 4}\n- parallel: {loop: y.j}",
        "reorder the vectorized loop inside",
    ),
    (
        UPPER,
        "bind: {loop: y.j, axis: threadIdx.x}\n- bind: {loop: y.i, axis: blockIdx.x}",
        "split: {loop: y.i, factors: [null, 32]}; then bind the inner loop",
    ),
    (
        TWICE,
        "bind: {loop: y.i, axis: blockIdx.x}\n- set_scope: {buffer: t, scope: shared}",
        "compute_at: {block: t, loop: y.i} puts it into the launch",
    ),
    (
        TWICE,
        "bind: {loop: t.i, axis: blockIdx.x}\n- set_scope: {buffer: t, scope: shared}",
        "reverse_compute_at: {block: y, loop: t.i} puts it into the launch",
    ),
    (STAIRS, "compute_at: {block: t, loop: y.i}", "move block 'v' there first"),
    (STAIRS, "compute_at: {block: u, loop: y.i}", "move block 'v' there first"),
    (STAIRS, "compute_at: {block: t, loop: v.i}", None),
    (CORNER, "peel: {loop: y.j, at: y.i_0}", "`at: y.i_1` has one"),
    (
        SCALE,
        "peel: {loop: y.j, at: y.i}",
        "no loop around it has one; a number cuts it, as in `at: 1`",
    ),
    (SCALE, "fuse: {loops: [y.i, y.j], as: tiles}", "say 'y.tiles'"),
    (SCALE, "fuse: {loops: [y.i, y.j], as: a b}", None),
    (SCALE, "fission: {loop: y.i}", None),
    (ROWS, "fission: {loop: t.i}", "fission 't.j' first, which has several"),
    (ROWS, "fission: {loop: t.j, before: t}", "the second part may begin with y"),
    (ROWS, "fission: {loop: t.j, before: s}", "the second part may begin with y"),
    (ROWS, "fission: {loop: t.j, before: yy}", "did you mean 'y'?"),
    (
        ROWS,
        "fuse: {loops: [t.i, t.j], as: t.ij}\n- fission: {loop: t.ij}",
        "fission before loops are fused",
    ),
]


@pytest.mark.parametrize(("kernel", "steps", "hint"), HINTS, ids=[s for _, s, _ in HINTS])
def test_what_to_do_instead(kernel: str, steps: str, hint: str | None) -> None:
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(kernel), "- " + steps)
    assert refusal.value.hint == hint


LEGAL = [
    # What the five systems refuse, or get wrong.
    ("ROW_SUM", "rfactor: {block: y, loop: y.j}"),  # one term a partial
    ("ROW_SUM", "split: {loop: y.j, factors: [null, 16]}\n- rfactor: {block: y, loop: y.j_1}"),
    ("ROW_SUM", "split: {loop: y.j, factors: [null, 4]}\n- rfactor: {block: y, loop: y.j_0}"),
    ("TRIANGLE", "split: {loop: y.j, factors: [null, 3]}\n- rfactor: {block: y, loop: y.j_0}"),
    ("ROW_SQUARES", "compute_at: {block: t, loop: y.i}\n- vectorize: {loop: y.j, width: 4}"),
    ("ROW_SQUARES", "tile: {loops: [t.i, t.j], sizes: [2, 3]}\n"
                    "- reverse_compute_at: {block: y, loop: t.j_0}"),
    ("TRIANGLE", "vectorize: {loop: y.j, width: 4, accumulators: 2}"),
    ("TRIANGLE", "split: {loop: y.i, factors: [null, 4]}\n- parallel: {loop: y.i_0}"),
    ("STENCIL", "split: {loop: y.i, factors: [null, 4]}\n"
                "- compute_at: {block: t, loop: y.i_0}\n- parallel: {loop: y.i_0}"),
    ("TWICE", "cache_write: {block: t}\n- compute_inline: {block: t}"),
    ("SCALE", "fuse: {loops: [y.i, y.j]}\n- vectorize: {loop: y.i_j, width: 4}"),
    ("SCALE", "split: {loop: y.j, factors: [null, 3]}\n- split: {loop: y.j_1, factors: [2, null]}"),
    ("PAIR", "merge: {loops: [t.i, y.i, z.i]}\n- vectorize: {loop: t.i, width: 4}"),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "steps"), LEGAL, ids=[s for _, s in LEGAL])
def test_legal(kernel: str, steps: str) -> None:
    plain = start(getattr(examples, kernel))
    after = schedule(plain, "- " + steps)[-1].state.kernel
    assert_same(plain.kernel, after, sizes=(0, 1, 3, 4, 5, 17))


def test_a_sum_that_the_iterations_make_together_has_no_turns() -> None:
    running = """\
def running(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[1]):
        for y.k in range(n):
            with block("t", i=spatial(0, 1), k=reduction(y.k), initialises=True):
                t[i] = combine.sum(t[i], x[k])
            with block("y", k=spatial(y.k)):
                y[k] = x[k]
"""
    with pytest.raises(ScheduleError, match=r"block 't' adds to 't' over loop 'y\.k'"):
        schedule(start(running), "- double_buffer: {buffer: t, loop: y.k}")


def test_parts_of_a_tuple_that_lie_differently_have_no_common_region() -> None:
    argmax = """\
def parts(n, m, x: float32[n, m], y: Out[int64[m]]):
    with allocate(t=int64[m], v=float32[2, m]):
        for t.j in range(m):
            for t.i in range(n):
                with block("t", j=spatial(t.j), i=reduction(t.i), initialises=True):
                    v[j % 2, j], t[j] = combine.argmax((v[j % 2, j], t[j]), (x[i, j], i))
        for y.j in range(m):
            with block("y", j=spatial(y.j)):
                y[j] = t[j]
"""
    with pytest.raises(ScheduleError, match="'t' fills 'v' and 't' at places that differ"):
        schedule(start(argmax), "- compute_at: {block: t, loop: y.j}")


def test_a_block_without_iterations_gets_no_schedule() -> None:
    nowhere = """\
def nowhere(n, x: float32[n], y: InOut[float32[n]]):
    for y.i in range(max(n, 4), min(1, n)):
        with block("y", i=spatial(y.i)):
            y[i] = x[i]
"""
    with pytest.raises(ScheduleError, match="block 'y' runs in no iteration"):
        schedule(start(nowhere), '- set_schedule: {block: y, map: "{ y[a] -> [-a] }"}')


def test_lanes_stay_as_many_as_they_are() -> None:
    """An exchange with a skewed loop would make their number depend on it."""
    steps = """- skew: {loops: [y.i, y.j]}
- vectorize: {loop: y.i, width: 4}
- reorder: {loops: [y.j, y.i_1]}"""
    with pytest.raises(ScheduleError, match=r"vectorized loop 'y\.i_1' would have `.*` lanes") as e:
        schedule(start(SCALE), steps)
    assert e.value.hint == "vectorize after this step"
