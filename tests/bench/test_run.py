"""Workers, and whole runs of tiny sizes: real processes, with NumPy and tilesmith as the peers."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bench import ROOT, cases, peers, run, worker
from bench.peers import Peer
from bench.processes import Died, Worker
from bench.results import Results

ODD = Peer("odd", "tests.bench.odd_peers")
ABSENT = Peer("absent", "tests.bench.no_such_peer")
SETTINGS = run.Settings(threads=(1,), rounds=2)


@pytest.fixture(scope="module")
def found() -> Results:
    chosen = cases.choose(["exp", "max_first", "clamp", "gelu", "matmul"], ["17x3x5", "17x5", "17"])
    chosen += cases.choose(["sum_first", "transpose"], ["17x5"])
    names = ["tilesmith", "numpy", "tilesmith new"]
    return run.run(chosen, [*peers.choose(names), ODD, ABSENT], SETTINGS)


def test_right_peers_are_timed_in_every_round(found: Results) -> None:
    assert [row.label for row in found.rows] == [
        "exp 17", "max_first 17x5", "clamp 17", "gelu 17", "matmul 17x3x5",
        "sum_first 17x5", "transpose 17x5",
    ]  # fmt: skip
    for row in found.rows:
        for name in ("tilesmith", "numpy", "tilesmith new"):
            if (name, row.kernel) != ("numpy", "gelu"):  # which has no erf
                assert row.cells[name].status == "ok"
                assert len(row.cells[name].seconds) == 2
                assert all(1e-8 < t < 1e-2 for t in row.cells[name].seconds)
    assert found.rows[3].cells["numpy"].status == "none"


def test_a_wrong_peer_is_reported_and_not_timed(found: Results) -> None:
    wrong = found.rows[0].cells["odd"]
    assert (wrong.status, wrong.seconds) == ("wrong", ())
    assert wrong.error is not None and 0.1 < wrong.error < 0.5
    assert found.rows[1].cells["odd"].error == float("inf")


def test_failures_are_reported_and_the_peer_lives_on(found: Results) -> None:
    said = {row.kernel: (row.cells["odd"].status, row.cells["odd"].why) for row in found.rows}
    assert said["clamp"] == ("failed", "ValueError: no such thing")
    assert said["gelu"] == ("failed", "killed by SIGSEGV")
    assert said["matmul"] == ("failed", "killed by SIGKILL")
    assert said["transpose"] == ("none", "")
    assert said["sum_first"] == ("ok", "")


def test_absent_peers_are_named(found: Results) -> None:
    assert found.peers["absent"].version.startswith("absent: No module named 'tests.bench.no_such")
    assert not found.peers["absent"].present
    assert found.peers["numpy"].version == np.__version__
    assert ", v" in found.peers["tilesmith"].version


def test_ceilings_are_measured_beside_each_case(found: Results) -> None:
    if not found.ceilings["1"]:
        pytest.skip("there is no C compiler with OpenMP")
    assert all(1e7 < b < 1e13 for row in found.rows for b in row.bandwidths.values())
    assert set(found.rows[0].bandwidths) == {"copy", "copy_nt"}
    assert set(found.ceilings["1"]) == {"L1", "L2", "L3", "memory", "peak"}
    assert (
        1e8 < found.ceilings["1"]["peak"]["float64"] < found.ceilings["1"]["peak"]["float32"] < 1e13
    )


def test_workers_are_stopped_but_for_the_one_at_work() -> None:
    chosen = peers.choose(["numpy", "numpy new"])
    with run.Crew(chosen, 1, SETTINGS) as crew:
        one, other = crew.workers["numpy"], crew.workers["numpy new"]
        assert state(one) == state(other) == "T"
        with crew.woken(one):
            one.ask(do="prepare", kernel="no such", folder="", limit=0)
            assert state(one) != "T" and state(other) == "T"
        assert state(one) == "T"
    assert one.process.returncode is not None and other.process.returncode is not None


def test_a_worker_that_is_killed_in_its_sleep_is_reported_and_started_again() -> None:
    (case,) = cases.choose(["exp"], ["17"])
    with run.Crew(peers.choose(["numpy"]), 1, SETTINGS) as crew:
        crew.workers["numpy"].process.kill()
        crew.workers["numpy"].process.wait()
        cell = run.measure(case, crew).cells["numpy"]
        assert (cell.status, cell.why) == ("failed", "killed by SIGKILL")
        assert run.measure(case, crew).cells["numpy"].status == "ok"


def state(of: Worker) -> str:
    return Path(f"/proc/{of.process.pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_silent_worker_is_ended() -> None:
    silent = Worker(["bench.worker", "bench.peers.numpy", "kept", "16"], {})
    assert silent.answer()["status"] == "ok"
    with pytest.raises(Died, match=r"no answer in 0\.1 s"):
        silent.answer(within=0.1)
    assert silent.process.returncode is not None


def test_stopped_workers_die_with_their_parent() -> None:
    code = (
        "import os, signal; from bench.processes import Worker;"
        "w = Worker(['bench.worker', 'bench.peers.numpy', 'kept', '16'], {}); w.answer(); w.stop();"
        "print(w.process.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    stat = Path(f"/proc/{int(done.stdout)}/stat")
    deadline = time.monotonic() + 5
    while stat.exists() and " Z " not in stat.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not stat.exists() or " Z " in stat.read_text()


def test_threads_and_level_are_variables_of_the_process() -> None:
    v3 = peers.PEERS["tilesmith v3"].variables(threads=2, level=None)
    assert (v3["TILESMITH_CPU_LEVEL"], v3["TILESMITH_NUM_THREADS"]) == ("v3", "2")
    ours = peers.PEERS["tilesmith"]
    assert "TILESMITH_CPU_LEVEL" not in ours.variables(1, None)
    assert ours.variables(1, "v3")["TILESMITH_CPU_LEVEL"] == "v3"
    assert "mmap_max=0" in ours.variables(1, None)["GLIBC_TUNABLES"]
    assert "GLIBC_TUNABLES" not in peers.PEERS["tilesmith new"].variables(1, None)


def test_arrays_begin_where_they_are_asked_to() -> None:
    for offset in (0, 16, 60):
        for size in (1, 5, 100_000):
            assert worker.placed((size,), np.float32, offset).ctypes.data % 64 == offset
    assert worker.placed((2, 0), np.float32, 16).shape == (2, 0)


def test_errors_are_relative_and_nan_is_infinite() -> None:
    assert worker.largest_error(np.array([1.5, 200.0]), np.array([1.0, 199.0])) == 0.25
    assert worker.largest_error(np.array([np.nan]), np.array([1.0])) == np.inf
    assert worker.largest_error(np.zeros(2), np.zeros(3)) == np.inf
    assert worker.largest_error(np.array([3]), np.array([2])) > 0


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command(tmp_path: Path) -> None:
    kept = str(tmp_path / "run.json")
    done = bench(
        "exp",
        "--sizes",
        "20",
        "--threads",
        "1",
        "--peers",
        "numpy",
        "--rounds",
        "1",
        "--json",
        kept,
    )
    assert (done.returncode, done.stderr) == (0, "")  # no progress in a pipe
    assert "| exp 20 | given | **" in done.stdout
    again = bench("report", kept)
    assert again.stdout == done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["soft"], "error: no kernel 'soft'; there are matmul, "),
        (["--peers", "numpi"], "error: no peer 'numpi'; there are tilesmith, "),
        (["--threads", "two"], "argument --threads: 'two' is not a number from 1 up"),
        (["--plot", "run.txt"], "error: a plot is a file .svg or .png, not 'run.txt'"),
        (["report", "no/such.json"], "error: [Errno 2] No such file or directory: 'no/such.json'"),
        (
            ["compare", "no-such-commit", "."],
            "error: no commit 'no-such-commit'; '.' is the working",
        ),
        (["compare", "HEAD", "HEAD"], "error: 'HEAD' is compared with itself"),
    ],
)
def test_clear_errors(words: list[str], message: str) -> None:
    done = bench(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
