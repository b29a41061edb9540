"""Races of launches: which barriers are needed, and what is refused without them."""

import pytest

from gen.ir.nodes import Kernel
from gen.ir.text.parser import from_text
from gen.poly.certificate import Source
from gen.poly.checks.races import spare_barriers

from .script import accept, refusal

PLAIN = from_text("""\
def rows(m, n, x: float32[m, n, 4], y: Out[float32[m, n, 4]]):
    with allocate(t=float32[m, n, 4]):
        for y.i in range(m):
            for k in range(n):
                for t.j in range(4):
                    with block("t", i=spatial(y.i), k=spatial(k), j=spatial(t.j)):
                        t[i, k, j] = x[i, k, j] * 2.0
                for y.j in range(4):
                    with block("y", i=spatial(y.i), k=spatial(k), j=spatial(y.j)):
                        y[i, k, j] = t[i, k, 3 - j]
""")
SHARED = {"y_0": Source(("t",), shared=("y.i", "k"))}
BODY = """\
{0}for t.j in threadIdx.x(4):
    with block("t", i=spatial(y.i), k=spatial(k), j=spatial(t.j)):
        t[j] = x[i, k, j] * 2.0
{1}for y.j in threadIdx.x(4):
    with block("y", i=spatial(y.i), k=spatial(k), j=spatial(y.j)):
        y[i, k, j] = t[3 - j]
{2}"""


def rows(*barriers: int, inside: bool = True, scope: str = "shared", size: str = "4") -> Kernel:
    """Rows reversed by way of shared memory, allocated inside the loop k or outside of it."""
    body = BODY.format(*("barrier()\n" if k in barriers else "" for k in range(3)))
    body = "\n".join("                " + line for line in body.splitlines())
    made = f"with allocate(t=float32[{size}] @ {scope}):"
    lines = ("for k in range(n):", made) if inside else (made, "for k in range(n):")
    return from_text(
        "def rows(m, n, x: float32[m, n, 4], y: Out[float32[m, n, 4]]):\n"
        f"    for y.i in blockIdx.x(m):\n        {lines[0]}\n            {lines[1]}\n{body}\n"
    )


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("barriers", [(0, 1), (1, 2), (0, 1, 2)])
def test_barriers_on_both_sides(barriers: tuple[int, ...], inside: bool) -> None:
    accept(PLAIN, rows(*barriers, inside=inside), **SHARED)


@pytest.mark.parametrize(("inside", "ends"), [(True, (0, 1)), (False, (3, 0))])
def test_none_before_the_next_iteration_writes(inside: bool, ends: tuple[int, int]) -> None:
    """Inside the loop, too: each iteration has a buffer of its own, but the memory is one."""
    refused = refusal(PLAIN, rows(1, inside=inside), **SHARED)
    assert refused.reason == (
        f"threads have a race: t[i=0, k=1, j={ends[0]}] writes 't' and y[i=0, k=0, j={ends[1]}]"
        " reads it in another thread, with no barrier between"
        + ("; 't' is in the same memory in all iterations" if inside else "")
    )
    assert refused.witness and refused.witness.sizes == {"m": 1, "n": 2}
    assert refused.hint == "a barrier orders them: `sync_threads: {loop: y.j, where: after}`"


def test_none_before_the_threads_read() -> None:
    refused = refusal(PLAIN, rows(0, 2), **SHARED)
    assert str(refused).startswith("<script>:7:21: error: threads have a race: ")
    assert refused.message == (
        "threads have a race: t[i=0, k=0, j=0] writes 't' and y[i=0, k=0, j=3] reads it in another"
        " thread, with no barrier between (for example: m=1, n=1; t[i=0, k=0, j=0] runs at y.i=0,"
        " k=0, t.j=0; y[i=0, k=0, j=3] runs at y.i=0, k=0, y.j=3; element t[0])"
    )
    assert refused.hint == "a barrier orders them: `sync_threads: {loop: y.j, where: before}`"


def test_which_barriers_are_spare() -> None:
    every = frozenset({0, 1, 2})
    assert spare_barriers(rows(0, 1, 2), every) == {0}
    assert spare_barriers(rows(0, 1, 2), frozenset({1})) == frozenset()
    assert spare_barriers(rows(1), every) == frozenset()  # there are races already


def test_local_memory_of_another_thread() -> None:
    refused = refusal(PLAIN, rows(0, 1, 2, scope="local"), **SHARED)
    assert "needs t[0, 0, 3] from 't', but its source does not put it there" in refused.reason


def test_blocks_have_no_barrier() -> None:
    plain = from_text("""\
def shifted(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[n - 1 - i]
""")
    two = from_text("""\
def shifted(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in blockIdx.x(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in blockIdx.x(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[n - 1 - i]
""")
    accept(plain, two)  # two launches, one after the other
    one = from_text("""\
def shifted(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for b in blockIdx.y(1):
            for t.i in blockIdx.x(n):
                with block("t", i=spatial(t.i)):
                    t[i] = x[i] * 2.0
            barrier()
            for y.i in blockIdx.x(n):
                with block("y", i=spatial(y.i)):
                    y[i] = t[n - 1 - i]
""")
    refused = refusal(plain, one)
    assert refused.reason == (
        "threads have a race: t[i=1] writes 't' and y[i=0] reads it in another block"
    )
    assert refused.hint is None


def test_a_barrier_that_runs_too_seldom() -> None:
    """One in a loop that may be empty orders nothing."""
    text = """\
def rows(m, n, x: float32[m, n, 4], y: Out[float32[m, n, 4]]):
    for y.i in blockIdx.x(m):
        with allocate(t=float32[n, 4] @ shared):
            for t.j in threadIdx.x(4):
                for t.k in range(n):
                    with block("t", i=spatial(y.i), k=spatial(t.k), j=spatial(t.j)):
                        t[k, j] = x[i, k, j] * 2.0
            for r in range(SOME):
                barrier()
            for y.j in threadIdx.x(4):
                for y.k in range(n):
                    with block("y", i=spatial(y.i), k=spatial(y.k), j=spatial(y.j)):
                        y[i, k, j] = t[k, 3 - j]
"""
    flow = {"y_0": Source(("t",), shared=("y.i",))}
    accept(PLAIN, from_text(text.replace("SOME", "n")), **flow)  # where n is 0, nothing is read
    refused = refusal(PLAIN, from_text(text.replace("SOME", "n - 1")), **flow)
    assert refused.witness and refused.witness.sizes == {"m": 1, "n": 1}


def test_threads_run_in_lockstep_inside_their_loop() -> None:
    """Barriers may stand in the threads' own loop, too."""
    inside = from_text("""\
def rows(m, n, x: float32[m, n, 4], y: Out[float32[m, n, 4]]):
    for y.i in blockIdx.x(m):
        with allocate(t=float32[4] @ shared):
            for j in threadIdx.x(4):
                for k in range(n):
                    with block("t", i=spatial(y.i), k=spatial(k), j=spatial(j)):
                        t[j] = x[i, k, j] * 2.0
                    barrier()
                    with block("y", i=spatial(y.i), k=spatial(k), j=spatial(j)):
                        y[i, k, j] = t[3 - j]
                    barrier()
""")
    accept(PLAIN, inside, y_0=Source(("t",), shared=("y.i", "k")))


def test_two_threads_write_one_element() -> None:
    plain = from_text("""\
def k(x: float32[4], y: Out[float32[1]]):
    with block("y", i=spatial(0, 1)):
        y[i] = x[i]
""")
    twice = from_text("""\
def k(x: float32[4], y: Out[float32[1]]):
    for t in threadIdx.x(4):
        with block("y", i=spatial(0, 1)):
            y[i] = x[i]
""")
    refused = refusal(plain, twice)
    assert refused.reason == (
        "threads have a race: y[i=0] writes 'y' and y[i=0] writes it in another thread, with no"
        " barrier between"
    )
    assert refused.hint is None
