"""Threads"""

import threading
from typing import Any

import numpy as np
import pytest

import tilesmith as ts

from .support import KERNELS, LEFT, every_kernel, python, refused

RANGE = "num_threads must be from 1 to 1024, got"


@pytest.mark.parametrize("count", [0, -1, 1025, 2**70])
def test_out_of_range(count: int) -> None:
    """`num_threads=` 0, negative or more than 1024: ValueError; `threads()` and `set_num_threads()`
    alike.
    """
    with refused(ValueError, f"exp: {RANGE} {count}"):
        ts.exp(1.0, num_threads=count)
    with refused(ValueError, f"threads: {RANGE} {count}"):
        ts.threads(count)
    with refused(ValueError, f"set_num_threads: {RANGE} {count}"):
        ts.set_num_threads(count)


@pytest.mark.parametrize("count", [True, 2.0, "2", [2]])
def test_no_integer(count: Any) -> None:
    """`num_threads=` a bool, a float, a string: TypeError."""
    message = f"num_threads must be an integer, got {type(count).__name__}"
    for call in (
        lambda: ts.sum([1.0], num_threads=count),
        lambda: ts.threads(count),
        lambda: ts.set_num_threads(count),
    ):
        with refused(TypeError, message):
            call()


@pytest.mark.parametrize("value", ["0", "-2", "two", "", " 2", "2.0", "1_0", "99999", "\u0662"])
def test_environment(value: str) -> None:
    """TILESMITH_NUM_THREADS that is no integer from 1 to 1024: ImportError that shows it."""
    done = python("", TILESMITH_NUM_THREADS=value)
    assert "TILESMITH_NUM_THREADS must be an integer from 1 to 1024, got" in done.stderr
    assert "ImportError" in done.stderr


def test_more_than_processors() -> None:
    """More threads than processors or work: right; parts that are not worth a thread are joined."""
    x = np.random.default_rng(1).standard_normal((300, 300))
    for threads in (7, 1024):
        np.testing.assert_array_equal(ts.softmax(x, num_threads=threads), ts.softmax(x))
        np.testing.assert_array_equal(ts.exp(x[0, :3], num_threads=threads), ts.exp(x[0, :3]))


def test_context() -> None:
    """`with threads(n):`: for the Python thread that entered it, nested, left on errors, too."""
    before, seen = ts.get_num_threads(), []
    with ts.threads(3), ts.threads(1):
        other = threading.Thread(target=lambda: seen.append(ts.get_num_threads()))
        other.start()
        other.join()
        assert ts.get_num_threads() == 1
    with pytest.raises(KeyError), ts.threads(2):
        raise KeyError
    assert seen == [before] and ts.get_num_threads() == before


def test_small_calls() -> None:
    """Calls that are too short to gain by threads: on one, which is the calling one; decisions.md
    has the measurements.
    """
    code = """
import os
def started(x):
    ts.exp(x, num_threads=4)
    return len(os.listdir("/proc/self/task"))
before = started(np.ones(64, "f"))
print(started(np.ones(2_000, "f")) - before, started(np.ones(1_000_000, "f")) - before)
"""
    assert python(code).stdout == "0 3\n"


@every_kernel
def test_the_same_bits(kernel: str) -> None:
    """Results on any number of threads: the same to the last bit."""
    x = np.random.default_rng(2).standard_normal((40, 20, 24)).astype("f")
    x = x[: len(LEFT)] if kernel == "linear, weight" else x
    call = KERNELS[kernel]
    expected = call(x, num_threads=1)
    for threads in (2, 3, 5):
        np.testing.assert_array_equal(call(x, num_threads=threads), expected)


def test_callers_at_once() -> None:
    """Calls from many Python threads at once, each with threads of its own, while workspace is
    freed: right.
    """
    x = np.random.default_rng(3).standard_normal((120, 200)).astype("f").T
    calls = [
        lambda: ts.softmax(x, num_threads=2),
        lambda: ts.matmul(x, x.T, num_threads=2),
        lambda: ts.sum(x, axis=0),
        lambda: ts.layer_norm(x, x[0], x[1], num_threads=2),
    ]
    expected, wrong = [call() for call in calls], []

    def work(number: int) -> None:
        for turn in range(40):
            k = (number + turn) % len(calls)
            if not np.array_equal(calls[k](), expected[k]):
                wrong.append(k)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        ts.free_workspace()
        workers[0].join(0.002)
    assert not wrong


def test_workspace_that_is_kept() -> None:
    """Memory that kernels need for a while: a thread keeps what its largest call needed, up to
    256 MiB; `free_workspace()` gives it back.
    """
    code = """
def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 >> 20
def kept(n):
    u, y = np.ones((n, n), "f"), np.ones((n, n), "f")
    for _ in range(3):
        ts.heat2d(u, out=y, num_threads=1)
    with_it = megabytes()
    ts.free_workspace()
    return with_it - megabytes()
ts.heat2d(np.ones((9, 9), "f"))
print(kept(5000), kept(7000))
"""
    several, beyond = map(int, python(code).stdout.split())
    assert 150 <= several <= 256 and beyond < 100


def test_busy_machine() -> None:
    """Other processes that keep all processors busy: right; a thread that the system sets aside
    holds up the part that it is at, and others run the rest; decisions.md has the measurements.
    """
    code = """
import os, subprocess, sys, time
x = np.random.default_rng(5).standard_normal((900, 1000)).astype("f")
expected = ts.softmax(x, num_threads=1)
busy = [sys.executable, "-c", "while True: pass"]
others = [subprocess.Popen(busy) for _ in range(ts.get_num_threads())]
end = time.monotonic() + 0.5
try:
    right = True
    while time.monotonic() < end:
        right &= all(np.array_equal(ts.softmax(x, num_threads=n), expected) for n in (2, 5))
finally:
    for other in others:
        other.kill()
print(right)
"""
    assert python(code).stdout == "True\n"


def test_shared_out() -> None:
    """One array read by many calls at once, and each another part of one written: right."""
    x, out = np.random.default_rng(4).standard_normal((64, 3000)), np.zeros((64, 3000))

    def work(k: int) -> None:
        ts.exp(x[k::8], out=out[k::8], num_threads=2)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    np.testing.assert_array_equal(out, ts.exp(x))
