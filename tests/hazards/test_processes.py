"""Processes, signals and interpreters"""

import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest

import tilesmith as ts

from .support import python

FORK = """
import os, threading
x = np.random.default_rng(1).standard_normal((300, 700)).astype("f").T   # packed: uses workspace
expected = ts.softmax(x, num_threads=2), ts.matmul(x, x.T, num_threads=2)
def right(threads=None):
    return (np.array_equal(ts.softmax(x, num_threads=threads), expected[0])
            and np.array_equal(ts.matmul(x, x.T, num_threads=threads), expected[1]))
def in_child(check):
    child = os.fork()
    if child == 0:
        try:
            print(check(), flush=True)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
"""


def test_fork() -> None:
    """A forked child: runs on one thread, and right, until it is told otherwise; then on more,
    right as well.
    """
    code = """
ts.set_num_threads(2)
in_child(lambda: (ts.get_num_threads(), right(), right(2), right(3)))
print(ts.get_num_threads(), right())
"""
    done = python(FORK + code)
    assert done.stdout == "(1, True, True, True)\n2 True\n", done.stderr


def test_fork_in_a_thread() -> None:
    """A fork in a thread other than the first, while others call kernels: the child is right; a
    child of the child, too.
    """
    code = """
stop = False
def busy():
    while not stop:
        ts.softmax(x, num_threads=2)
workers = [threading.Thread(target=busy) for _ in range(2)]
for worker in workers: worker.start()
def fork():
    for turn in range(10):
        in_child(lambda: (right(), right(2)))
    in_child(lambda: in_child(lambda: (ts.get_num_threads(), right(2))))
forker = threading.Thread(target=fork)
forker.start(); forker.join()
stop = True
for worker in workers: worker.join()
print(right(2))
"""
    done = python(FORK + code)
    expected = "(True, True)\n" * 10 + "(1, True)\nNone\nTrue\n"
    assert done.stdout == expected, done.stdout + done.stderr


def test_threads_of_a_child() -> None:
    """Threads that a forked child starts: right, with threads of their own."""
    code = """
def check():
    found = []
    threads = [threading.Thread(target=lambda: found.append(right(2))) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return found, right(2)
in_child(check)
"""
    done = python(FORK + code)
    assert done.stdout == "([True, True, True], True)\n", done.stderr


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools(method: str, tmp_path: Path) -> None:
    """multiprocessing, by fork, spawn or forkserver: right."""
    script = tmp_path / "pool.py"
    script.write_text(f"""
import multiprocessing
import numpy as np, tilesmith as ts
if __name__ == "__main__":
    x = np.ones((200, 300), "f")
    expected = ts.softmax(x, num_threads=2)
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        results = pool.map(ts.softmax, [x] * 6)
    print(all(np.array_equal(result, expected) for result in results))
""")
    done = python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert done.stdout == "True\n", done.stderr


LIMITED = """
import os, resource
def address_space(more):
    pages = int(open("/proc/self/statm").read().split()[0])
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
def threads():
    return len(os.listdir("/proc/self/task"))
def fails(call):
    try:
        call()
    except MemoryError as error:
        return str(error)
x = np.random.default_rng(1).standard_normal((3000, 700)).astype("f")
expected = ts.softmax(x, num_threads=1), ts.sum(x.T, axis=-1, num_threads=1)
given = np.empty_like(expected[0]), np.empty_like(expected[1])
def right(threads):  # allocates next to nothing: stacks of threads may leave no more
    ts.softmax(x, out=given[0], num_threads=threads)
    ts.sum(x.T, axis=-1, out=given[1], num_threads=threads)
    return all(map(np.array_equal, given[0], expected[0])) and np.array_equal(given[1], expected[1])
"""
limited = pytest.mark.skipif(sys.platform != "linux", reason="limits are Linux's")


@limited
def test_no_memory_for_threads() -> None:
    """Less address space (`ulimit -v`) than the stacks of the threads take: on those that there
    are, with the same results.
    """
    code = """
before = threads()
address_space(60 << 20)
print(right(64), right(1024), 1 <= threads() - before < 10)
"""
    done = python(LIMITED + code)
    assert done.stdout == "True True True\n", done.stdout + done.stderr


@limited
def test_no_more_threads() -> None:
    """A limit on the number of threads or processes (`ulimit -u`): on those that there are, with
    the same results.
    """
    code = """
if os.getuid() == 0:  # whom the limit does not bind
    os.setuid(65534)
before = threads()
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
print(right(64), threads() - before)
"""
    done = python(LIMITED + code)
    assert done.stdout == "True 0\n", done.stdout + done.stderr


@limited
def test_no_memory() -> None:
    """Too little memory for a result, or for what a call needs besides: MemoryError; what follows
    is right.
    """
    code = """
strided, out = np.ones((1 << 24, 2), "f")[:, 0], np.empty(1 << 24, "f")
matrices = np.ones((40, 1000, 1000), "f").T
address_space(40 << 20)
print(fails(lambda: ts.exp(matrices)))
print(fails(lambda: ts.softmax(strided, out=out)))
print(right(2))
"""
    done = python(LIMITED + code)
    first, *others = done.stdout.splitlines()
    assert first.startswith("Unable to allocate 153. MiB for an array with shape"), done.stderr
    assert others == ["softmax: no memory for the kernel's workspace", "True"], done.stderr


def test_interrupts() -> None:
    """Ctrl-C during a call: the call ends, then KeyboardInterrupt; what follows is right."""
    code = """
import os, signal, threading, time
x = np.random.default_rng(1).standard_normal((700, 700))
expected, result = ts.matmul(x, x), None
def interrupt():
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)
other = threading.Thread(target=interrupt)
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been inherited as ignored
try:
    other.start()
    while True:
        result = ts.matmul(x, x, num_threads=2)
except KeyboardInterrupt:
    print("interrupted")
other.join()
print(np.array_equal(ts.matmul(x, x, num_threads=2), expected), np.array_equal(result, expected))
"""
    done = python(code)
    assert done.stdout == "interrupted\nTrue True\n", done.stderr


def test_subinterpreters() -> None:
    """A second interpreter inside the process: ImportError; NumPy does not support it either."""
    new = find_spec("_interpreters")
    code = f"""
import {"_interpreters" if new else "_xxsubinterpreters"} as interpreters
other = interpreters.create({"'legacy'" if new else "isolated=False"})
try:
    print(interpreters.run_string(other, "import tilesmith"))
except Exception as error:
    print(error)
print(ts.exp(0.0))
"""
    done = python(code)
    reason = "this module can only be loaded into one interpreter per process"
    assert "ImportError" in done.stdout and reason in done.stdout, done.stdout + done.stderr
    assert done.stdout.endswith("\n1.0\n")


def test_free_threaded_python() -> None:
    """Free-threaded Python: not declared, since it is not tested; importing the package there turns
    the GIL on, and Python warns of it.
    """
    assert not sysconfig.get_config_var("Py_GIL_DISABLED")
    generated = Path(ts.get_include(), "_kernels.pyx")
    if generated.exists():  # in an editable install, whose header is where it was built
        assert "freethreading_compatible" not in generated.read_text()
