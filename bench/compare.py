"""Two commits side by side: each built into a folder of its own, then measured interleaved."""

import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import CACHE, ROOT
from .cases import UnknownName
from .peers import Peer
from .report import join, milliseconds
from .results import Results, Row

WORKING_TREE = "."
NOTABLE = 0.03  # a difference worth a word, if it is also larger than the spread of the rounds


def built(name: str) -> Path:
    """The folder with tilesmith built from a commit (kept for the next time) or from `.`."""
    if name == WORKING_TREE:
        folder = CACHE / "working-tree"
        shutil.rmtree(folder, ignore_errors=True)
        _install(ROOT, folder)
        return folder
    commit = _commit(name)
    folder = CACHE / commit
    if not folder.exists():
        with tempfile.TemporaryDirectory() as scratch:
            archive = Path(scratch) / "source.tar"
            subprocess.run(
                ["git", "-C", str(ROOT), "archive", "-o", str(archive), commit], check=True
            )
            with tarfile.open(archive) as tar:
                tar.extractall(Path(scratch) / "source", filter="data")
            _install(Path(scratch) / "source", folder)
    return folder


def _commit(name: str) -> str:
    found = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        raise UnknownName(f"no commit {name!r}; '{WORKING_TREE}' is the working tree")
    return found.stdout.strip()


def _install(source: Path, folder: Path) -> None:
    """Into an unfinished folder first: an interrupted build is not to be taken for a whole one."""
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    install = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--target"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *install, str(unfinished), str(source)],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-10:])
        raise BuildFailed(f"{source} could not be built:\n{last}")
    unfinished.rename(folder)


class BuildFailed(Exception):
    """A commit that does not build."""


def peers(before: str, after: str) -> tuple[Peer, Peer]:
    """The two builds as peers; both are ours, and called by what was asked for."""
    if before == after:
        raise UnknownName(f"{before!r} is compared with itself")
    one, other = (
        Peer(
            f"tilesmith {name}",
            "bench.peers.tilesmith",
            environment={"BENCH_TILESMITH": str(built(name))},
        )
        for name in (before, after)
    )
    return one, other


def markdown(results: Results, before: str, after: str) -> str:
    return "\n".join(_lines(results, f"tilesmith {before}", f"tilesmith {after}")) + "\n"


def _lines(results: Results, before: str, after: str) -> Iterator[str]:
    yield join(["case", "threads", before, after, "faster", ""])
    yield join(["---", "--:", "--:", "--:", "--:", "---"])
    ratios = []
    for row in results.rows:
        old, new = row.seconds(before), row.seconds(after)
        times = [
            milliseconds(t) if t else row.cells[n].status for t, n in ((old, before), (new, after))
        ]
        ratio = ""
        if old and new:
            ratios.append(old / new)
            ratio = f"{old / new:.2f}x"
        yield join([row.label, str(row.threads), *times, ratio, verdict(row, before, after)])
    if ratios:
        yield ""
        yield f"{after} is {statistics.geometric_mean(ratios):.3f} times as fast (geometric mean)."


def verdict(row: Row, before: str, after: str) -> str:
    """Slower or faster, where the middle halves of the rounds do not even touch."""
    old, new = row.cells[before], row.cells[after]
    if not old.seconds or not new.seconds:
        return ""
    if abs(old.median / new.median - 1) < NOTABLE:
        return ""
    (old_low, old_high), (new_low, new_high) = _middle(old.seconds), _middle(new.seconds)
    if new_low > old_high:
        return "slower"
    return "faster" if new_high < old_low else ""


def _middle(times: tuple[float, ...]) -> tuple[float, float]:
    ordered = sorted(times)
    quarter = len(ordered) // 4
    return ordered[quarter], ordered[-1 - quarter]
