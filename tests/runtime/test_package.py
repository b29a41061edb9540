"""What an extension does at import and around calls: ISA levels, threads, forks, workspace."""

import math
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


def _python(site: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("TILESMITH_")}
    return subprocess.run(
        [sys.executable, "-c", "import numpy as np, standin as ts\n" + code],
        env=inherited | {"PYTHONPATH": str(site)} | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_every_supported_level_runs(standin_site: Path, ts: ModuleType) -> None:
    for level in ts.show_config("dicts")["levels_supported"]:
        code = "ts.square(np.ones(3)); print(ts.last_call()['level'])"
        done = _python(standin_site, code, TILESMITH_CPU_LEVEL=level)
        assert done.stdout.strip() == level, done.stderr


def test_unknown_and_unsupported_levels(standin_site: Path) -> None:
    done = _python(standin_site, "", TILESMITH_CPU_LEVEL="avx2")
    assert (
        "ImportError: standin._kernels: TILESMITH_CPU_LEVEL='avx2' is not among the ISA levels "
        "that were built: v2, v3, v4"
    ) in done.stderr
    done = _python(standin_site, "", TILESMITH_CPU_LEVEL="neon")
    assert "'neon' is not among" in done.stderr


@pytest.mark.parametrize("value", ["0", "1025", "two", "-1", ""])
def test_a_wrong_number_of_threads_stops_the_import(standin_site: Path, value: str) -> None:
    done = _python(standin_site, "", TILESMITH_NUM_THREADS=value)
    assert (
        f"ImportError: standin._kernels: TILESMITH_NUM_THREADS must be an integer from 1 to 1024, "
        f"got {value!r}"
    ) in done.stderr


def test_a_wrong_wish_for_streaming_stops_the_import(standin_site: Path) -> None:
    done = _python(standin_site, "", TILESMITH_STREAM="yes")
    assert (
        "ImportError: standin._kernels: TILESMITH_STREAM must be 'on' or 'off', got 'yes'"
    ) in done.stderr


# The stand-in kernel `limits` tells from how many bytes on it streams, and reads ahead: of one
# call; on many threads; of one of two calls that share the caches; with slices packed that are only
# read, which stay in the caches; and with those packed that are written.
LIMITS = """
into = np.empty((3, 4))[:, ::2]
ts.limits(np.empty((3, 2)), out=into, num_threads=1)
for limits in (
    ts.limits(np.empty(2), num_threads=1),
    ts.limits(np.empty(2), num_threads=1024),
    ts.limits(np.empty((2, 4, 2))[:, :3], num_threads=1)[0, 0],
    ts.limits(np.empty((3, 2))[:, ::-1], num_threads=1)[0],
    into[0],
):
    print(*limits)
"""


def test_what_is_too_much_for_the_caches(standin_site: Path, ts: ModuleType) -> None:
    config = ts.show_config("dicts")
    second, last, count = (
        config[key] for key in ("second_level_cache", "last_level_cache", "last_level_caches")
    )
    assert 2**15 <= second <= last
    assert 1 <= count <= len(os.sched_getaffinity(0))
    expected = [
        (last / 2, second),
        (last / 2 * count, second),
        (last / 4, second / 2),
        (last / 2, math.inf),
        (math.inf, math.inf),
    ]
    assert _limits(standin_site) == expected
    on = [(-1, second), (-1, second), (-0.5, second / 2), (-1, math.inf), (-1, math.inf)]
    assert _limits(standin_site, TILESMITH_STREAM="on") == on
    off = [(math.inf, prefetch) for _, prefetch in expected]
    assert _limits(standin_site, TILESMITH_STREAM="off") == off


def _limits(site: Path, **environment: str) -> list[tuple[float, float]]:
    done = _python(site, LIMITS, **environment)
    assert not done.stderr
    lines = (line.split() for line in done.stdout.splitlines())
    return [(float(stream), float(prefetch)) for stream, prefetch in lines]


def test_default_threads(standin_site: Path) -> None:
    code = "print(ts.get_num_threads()); ts.set_num_threads(5); print(ts.get_num_threads())"
    assert _python(standin_site, code).stdout.split() == [str(len(os.sched_getaffinity(0))), "5"]
    assert _python(standin_site, code, TILESMITH_NUM_THREADS="3").stdout.split() == ["3", "5"]


def test_set_num_threads_checks(ts: ModuleType) -> None:
    with pytest.raises(
        ValueError, match="set_num_threads: num_threads must be from 1 to 1024, got 0"
    ):
        ts.set_num_threads(0)
    with pytest.raises(
        TypeError, match="set_num_threads: num_threads must be an integer, got float"
    ):
        ts.set_num_threads(1.5)


def test_a_forked_child_is_serial_until_told_otherwise(standin_site: Path) -> None:
    """After the parent ran threads, a child that counted on them would wait for ever."""
    code = """
import os
x = np.ones(100_000)
ts.set_num_threads(4)
ts.square(x)
child = os.fork()
if child == 0:
    inherited = ts.get_num_threads()
    ts.square(x)
    threads = lambda: len(os.listdir('/proc/self/task'))
    alone = threads()
    ts.set_num_threads(3)
    right = bool((ts.square(2 * x) == 4).all()) and bool((ts.square(x, num_threads=2) == 1).all())
    print(inherited, alone, ts.get_num_threads(), right, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(ts.get_num_threads())
"""
    done = _python(standin_site, code)
    assert done.stdout.split("\n")[:2] == ["1 1 3 True", "4"], done.stderr


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_results_do_not_depend_on_threads(ts: ModuleType, threads: int) -> None:
    x = np.random.default_rng(1).uniform(1, 2, (211, 303))
    for array in (x, x.T, x[::2, ::3], np.broadcast_to(x[:, :1], x.shape)):
        for kernel in (ts.softmax, ts.square, ts.total):
            expected = kernel(array, num_threads=1)
            np.testing.assert_array_equal(kernel(array, num_threads=threads), expected)
    stack = np.random.default_rng(1).uniform(size=(50, 20, 21))
    got = ts.matmul(stack, stack.transpose(0, 2, 1), num_threads=threads)
    np.testing.assert_allclose(got, stack @ stack.transpose(0, 2, 1))


def test_threads_that_share_nothing_call_at_once(ts: ModuleType) -> None:
    """Packed calls from many Python threads, with the workspace freed under their feet."""
    x = np.random.default_rng(1).uniform(1, 2, (300, 300)).T
    expected, failures = ts.softmax(x, num_threads=1), []

    def work() -> None:
        for _ in range(30):
            if not np.array_equal(ts.softmax(x), expected):
                failures.append(threading.get_ident())

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        ts.free_workspace()
    assert not failures


def test_the_gil_is_released(standin_site: Path) -> None:
    """A thread counts while a long call runs in another."""
    code = """
import threading, time
big, done, count = np.ones((900, 900)), [], 0
def call():
    ts.matmul(big, big, num_threads=1)
    done.append(time.perf_counter())
worker = threading.Thread(target=call)
worker.start()
while not done:
    count += 1
    time.sleep(0.001)
print(count)
"""
    assert int(_python(standin_site, code).stdout) > 5


def test_workspace_is_kept_and_freed(standin_site: Path) -> None:
    """Slices of 1.6 MB are packed two at a time: later calls find the memory of the second."""
    code = """
def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6
x, out = np.ones((2, 400_000))[:, ::2], np.zeros((2, 200_000))
for call in range(3):
    ts.softmax(x, out=out, num_threads=1)
kept = megabytes()
ts.softmax(x, out=out, num_threads=1)
again = megabytes()
ts.free_workspace()
print(again - kept < 0.5, kept - megabytes() > 2.5)
"""
    assert _python(standin_site, code).stdout == "True True\n"


def test_show_config_and_manifest(ts: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert ts.show_config() is None
    printed = capsys.readouterr().out
    assert f"num_threads: {ts.get_num_threads()}\nthreads_by: pool\n" in printed
    assert "levels_built: v2, v3, v4\n" in printed
    assert re.search(r"^second_level_cache: [1-9]\d+\nlast_level_cache: [1-9]\d+$", printed, re.M)
    assert re.search(r"^compiler: (gcc|clang) \d+\.", printed, re.MULTILINE)
    assert f"numpy: {np.__version__}\n" in printed
    with pytest.raises(ValueError, match="show_config: mode must be 'stdout' or 'dicts', got 'x'"):
        ts.show_config("x")
    manifest = ts.kernels()
    assert manifest["softmax"]["signature"] == "(n)->(n)"
    assert set(manifest) <= set(ts._kernels.__all__)


def test_no_call_yet(standin_site: Path) -> None:
    assert _python(standin_site, "print(ts.last_call())").stdout == "None\n"


def test_nothing_heavy_is_imported(standin_site: Path) -> None:
    code = (
        "import sys; print([m for m in ('islpy', 'ruamel', 'gen', 'numpy.ma') if m in sys.modules])"
    )
    baseline = subprocess.run(
        [sys.executable, "-c", "import numpy\n" + code], capture_output=True, text=True, check=True
    )
    assert _python(standin_site, code).stdout == baseline.stdout
