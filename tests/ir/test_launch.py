"""Launches: loops bound to axes, barriers, and memory that threads have or share."""

import numpy as np
import pytest

from gen.ir.interpret.evaluate import InterpError
from gen.ir.interpret.interp import run
from gen.ir.rules.verify import IRError, verify
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text

REVERSED = """\
def reversed_rows(m, x: float32[m, 8], y: Out[float32[m, 8]]):
    for y.i in blockIdx.x(m):
        with allocate(t=float32[8] @ shared):
            for t.j in threadIdx.x(8):
                with block("t", i=spatial(y.i), j=spatial(t.j)):
                    t[j] = x[i, j] * 2.0
            barrier()
            for y.j in threadIdx.x(8):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = t[7 - j]
"""
ROTATED = """\
def rotated(n, x: float32[n, 4], y: Out[float32[n, 4]]):
    for b in blockIdx.x(1):
        for k in range(n):
            with allocate(t=float32[4] @ shared):
                for t.j in threadIdx.x(4):
                    with block("t", k=spatial(k), j=spatial(t.j)):
                        t[j] = x[k, j]
                barrier()
                for y.j in threadIdx.x(4):
                    with block("y", k=spatial(k), j=spatial(y.j)):
                        y[k, j] = t[3 - j]
                barrier()
"""
BARRIER = "            barrier()\n"


def test_a_launch_is_a_script() -> None:
    kernel = from_text(REVERSED)
    assert to_text(kernel) == REVERSED
    verify(kernel)


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_threads_meet_at_a_barrier(seed: int | None) -> None:
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    got = run(from_text(REVERSED), {"x": x}, seed=seed)["y"]
    np.testing.assert_array_equal(got, 2 * x[:, ::-1])


def test_a_missing_barrier_shows() -> None:
    x = np.ones((2, 8), np.float32)
    with pytest.raises(InterpError, match=r"reads t.*, which was never written"):
        run(from_text(REVERSED.replace(BARRIER, "")), {"x": x}, seed=1)


def test_shared_memory_is_one_in_all_iterations() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for seed in range(3):
        got = run(from_text(ROTATED), {"x": x}, seed=seed)["y"]
        np.testing.assert_array_equal(got, x[:, ::-1])
    early = ROTATED[: ROTATED.rindex("                barrier()")]  # the last one
    with pytest.raises(InterpError, match=r"reads t.*, which was never written"):
        run(from_text(early), {"x": x}, seed=1)


def test_each_thread_has_its_local_memory() -> None:
    kernel = from_text("""\
def k(x: float32[4], y: Out[float32[4]]):
    for b in blockIdx.x(1):
        with allocate(t=float32[1] @ local):
            for t.j in threadIdx.x(4):
                with block("t", j=spatial(t.j)):
                    t[0] = x[j]
            for y.j in threadIdx.x(4):
                with block("y", j=spatial(y.j)):
                    y[j] = t[0]
""")
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(run(kernel, {"x": x}, seed=3)["y"], x)


def test_what_no_loop_of_an_axis_is_around_runs_once() -> None:
    kernel = from_text(
        """\
def k(n, x: InOut[float32[n]]):
    for b in blockIdx.x(3):
        with block("x", where=n >= 1):
            x[0] = x[0] + 1.0
        for t in threadIdx.x(n):
            with block("x_1", i=spatial(t), where=t >= 1 and b < 1, origin=x[t]):
                x[i] = x[i] + 1.0
""".replace("origin=x[t]", "origin=x_1[i]")
    )
    for n in (0, 1, 4):
        x = run(kernel, {"x": np.zeros(n, np.float32)}, seed=0)["x"]
        np.testing.assert_array_equal(x[:1], 3.0)  # once a block, by its first thread
        np.testing.assert_array_equal(x[1:], 1.0)


def test_threads_at_two_barriers() -> None:
    kernel = from_text("""\
def k(x: int64[2], y: Out[int64[2]]):
    for t in threadIdx.x(2):
        for r in range(x[t]):
            barrier()
        with block("y", i=spatial(t)):
            y[i] = x[i]
""")
    with pytest.raises(IRError, match="not all threads of a block reach a barrier"):
        run(kernel, {"x": np.array([1, 2])})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("t.j in threadIdx.x(8)", "t.j in threadIdx.x(4)", "threadIdx.x has extent `4` in loop"),
        ("blockIdx.x(m)", "threadIdx.y(256)", "2048 threads of a block are more than 1024"),
        ("blockIdx.x(m)", "blockIdx.y(65536)", "65536 along blockIdx.y is more than 65535"),
        ("blockIdx.x(m)", "parallel(m)", "threadIdx.x loop 't.j' is in parallel loop 'y.i'"),
        ("t.j in threadIdx.x(8)", "t.j in blockIdx.x(m)", "are both blockIdx.x"),
        ("t.j in threadIdx.x(8)", "t.j in threadIdx.x(1, 8)", "does not start at 0"),
        ("t.j in threadIdx.x(8)", "t.j in parallel(8)", "parallel loop 't.j' is in the launch"),
        ("@ shared", "@ heap", "'t' is allocated in a launch, and heap"),
        ("@ shared", "@ constant", "'t' is allocated in a launch, and constant"),
        ("@ shared", "@ stack", "accesses 't', stack memory from outside of its threadIdx.x loop"),
        ("blockIdx.x(m)", "range(m)", "accesses 't', shared memory from outside of its launch"),
        (
            BARRIER + "            for y.j in threadIdx.x(8):\n",
            "            for y.j in threadIdx.x(8):\n"
            "                for y.k in range(y.j):\n                    barrier()\n",
            "the bounds of loop 'y.k' differ from thread to thread",
        ),
        (
            BARRIER + "            for y.j in threadIdx.x(8):\n",
            "            for y.j in threadIdx.x(8):\n"
            "                with delinearize(y.j, 2, 4) as (p, q):\n"
            "                    barrier()\n",
            "which parts 'p' has differs from thread to thread",
        ),
    ],
)
def test_rules(old: str, new: str, message: str) -> None:
    assert old in REVERSED
    with pytest.raises(IRError) as refused:
        verify(from_text(REVERSED.replace(old, new)))
    assert message in refused.value.message


SQUARE = """\
def square(x: Out[float32[4, 4]]):
    for i in threadIdx.x(4):
        for j in range(4):
            with block("x", i=spatial(i), j=spatial(j, 4)):
                x[i, j] = 0.0
"""


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        ("blockIdx.x(4)", "blockIdx.x loop 'j' is in threadIdx.x loop 'i'"),
        ("threadIdx.y(i)", "the extent `i` of threadIdx.y loop 'j' is not fixed at a launch"),
        ("threadIdx.x(4)", "loop 'j' and loop 'i' around it are both threadIdx.x"),
    ],
)
def test_rules_of_nested_axes(loop: str, message: str) -> None:
    with pytest.raises(IRError) as refused:
        verify(from_text(SQUARE.replace("range(4)", loop)))
    assert refused.value.message == message


def test_constant_memory_is_written_before_a_launch() -> None:
    text = """\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n] @ constant):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in blockIdx.x(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i] + 1.0
"""
    verify(from_text(text))
    with pytest.raises(IRError) as refused:
        verify(from_text(text.replace("t.i in range", "t.i in blockIdx.x")))
    assert refused.value.message == "block 't' writes 't', constant memory"
