"""Measure: a process a peer, rounds interleaved, all processes stopped but the one being timed."""

import contextlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from .cases import Case
from .peers import Peer
from .processes import Died, Worker
from .results import Cell, PeerFacts, Results, Row

PREPARE_SECONDS = 180.0  # loading, compiling and checking one case; more is a failure
SLOW_CALL = 0.2  # seconds: a call as long as this is timed in few rounds
SLOW_ROUNDS = 3

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Settings:
    threads: tuple[int, ...] = (1, 2)
    rounds: int = 7
    offset: int = 16  # bytes past a multiple of 64, where NumPy's large arrays begin
    level: str | None = None


class Crew:
    """The peers' processes at one number of threads, and the one that measures the ceilings.

    All are stopped, except while `woken`.
    """

    def __init__(self, peers: Sequence[Peer], threads: int, settings: Settings) -> None:
        self.peers, self.threads, self.settings = peers, threads, settings
        self.facts: dict[str, PeerFacts] = {}
        self.workers: dict[str, Worker] = {}
        self.ceilings: Worker | None = None

    def __enter__(self) -> Self:
        # Ours alone first: an editable install builds itself at import.
        for peers in ([p for p in self.peers if p.ours][:1], self.peers):
            launched = [(p, self._launch(p)) for p in peers if p.name not in self.facts]
            for peer, worker in launched:
                self._greet(peer, worker)
        variables = {"OMP_NUM_THREADS": str(self.threads)}
        ceilings = Worker(["bench.ceilings"], variables)
        with contextlib.suppress(Died):
            if ceilings.answer()["status"] == "ok":
                self.ceilings = ceilings
                ceilings.stop()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in (*self.workers.values(), *([self.ceilings] if self.ceilings else [])):
            worker.end()

    def _launch(self, peer: Peer) -> Worker:
        pinned = set(sorted(os.sched_getaffinity(0))[: self.threads]) if peer.pinned else None
        arguments = ["bench.worker", peer.module, peer.results]
        return Worker(
            [*arguments, str(self.settings.offset)],
            peer.variables(self.threads, self.settings.level),
            pinned,
        )

    def _greet(self, peer: Peer, worker: Worker) -> None:
        try:
            reply = worker.answer()
        except Died as death:
            reply = {"status": "failed", "why": str(death)}
        present = reply["status"] == "ok"
        version = reply["version"] if present else f"{reply['status']}: {reply['why']}"
        self.facts[peer.name] = PeerFacts(version, present, peer.results, peer.ours, peer.yardstick)
        if present:
            self.workers[peer.name] = worker
            worker.stop()
        else:
            worker.end()

    def revive(self) -> None:
        """Start those again that died over the case before."""
        for peer in self.peers:
            if self.facts[peer.name].present and peer.name not in self.workers:
                self._greet(peer, self._launch(peer))

    def bury(self, name: str) -> None:
        self.workers.pop(name).end()

    @contextlib.contextmanager
    def woken(self, worker: Worker) -> Iterator[Worker]:
        worker.go_on()
        try:
            yield worker
        finally:
            worker.stop()


def run(
    cases: Sequence[Case],
    peers: Sequence[Peer],
    settings: Settings,
    keep: Callable[[Results], None] = lambda results: None,
) -> Results:
    """Every case by every peer by every number of threads; `keep` is given what there is by then
    after each case.
    """
    results = Results(machine(), vars(settings) | {"threads": list(settings.threads)})
    for threads in settings.threads:
        with Crew(peers, threads, settings) as crew:
            results.peers |= crew.facts
            results.ceilings[str(threads)] = _levels(crew)
            for number, case in enumerate(cases, 1):
                progress(f"[{number}/{len(cases)}] {case.label}, {threads} thread(s)")
                results.rows.append(measure(case, crew))
                keep(results)
    progress("")
    return results


def measure(case: Case, crew: Crew) -> Row:
    crew.revive()
    with _data(case) as folder:
        cells = _prepare(case, crew, folder)
    bandwidths, peak = _sample(case, crew, cells)
    return Row(
        case.kernel.name,
        case.dims,
        case.kind,
        crew.threads,
        case.bytes_read,
        case.bytes_written,
        case.operations,
        bandwidths,
        peak,
        cells,
    )


@contextlib.contextmanager
def _data(case: Case) -> Iterator[str]:
    """Arguments and expected result as files, in memory where there is such a folder."""
    shared = Path("/dev/shm")
    place = str(shared) if os.access(shared, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place, prefix="bench-") as folder:
        arguments = case.arguments()
        for number, array in enumerate(arguments):
            np.save(f"{folder}/argument{number}.npy", array)
        np.save(f"{folder}/expected.npy", case.expected(arguments))
        yield folder


def _prepare(case: Case, crew: Crew, folder: str) -> dict[str, Cell]:
    """Each peer loads, compiles and checks: all at the same time, since nothing is timed."""
    cells: dict[str, Cell] = {}
    for worker in crew.workers.values():
        worker.go_on()
        with contextlib.suppress(Died):  # said again by `answer`
            worker.tell(
                do="prepare", kernel=case.kernel.name, folder=folder, limit=case.limit,
                offset=case.offset, gap=case.gap,
            )  # fmt: skip
    for name, worker in list(crew.workers.items()):
        try:
            cells[name] = Cell(**worker.answer(PREPARE_SECONDS))
            worker.stop()
        except Died as death:
            cells[name] = Cell("failed", why=str(death))
            crew.bury(name)
    return cells


def _sample(case: Case, crew: Crew, cells: dict[str, Cell]) -> tuple[dict[str, float], float]:
    """Fill the cells with times; returns the bandwidth of each stream, and the peak."""
    times: dict[str, list[float]] = {n: [] for n, cell in cells.items() if cell.status == "ok"}
    streams: dict[str, list[float]] = {}
    peaks: list[float] = []
    for number in range(crew.settings.rounds):
        start = number % max(len(times), 1)
        for name in [*list(times)[start:], *list(times)[:start]]:
            if number >= SLOW_ROUNDS and times[name] and times[name][0] > SLOW_CALL:
                continue
            try:
                with crew.woken(crew.workers[name]) as worker:
                    reply = worker.ask(PREPARE_SECONDS, do="sample")
            except Died as death:
                reply = {"status": "failed", "why": str(death)}
                crew.bury(name)
            if reply["status"] == "ok":
                times[name].append(reply["seconds"])
            else:
                cells[name] = Cell(**reply)
                del times[name]
        _sample_ceilings(case, crew, streams, peaks)
    for name, seconds in times.items():
        cells[name] = replace(cells[name], seconds=tuple(seconds))
    return {s: float(np.median(b)) for s, b in streams.items()}, max(peaks, default=0.0)


def _sample_ceilings(
    case: Case, crew: Crew, streams: dict[str, list[float]], peaks: list[float]
) -> None:
    if crew.ceilings is None:
        return
    with crew.woken(crew.ceilings) as worker:
        if not streams:
            reply = worker.ask(do="prepare", read=case.bytes_read, written=case.bytes_written)
            streams.update({name: [] for name in reply["streams"]})
        for name, seen in streams.items():
            seen.append(worker.ask(do="sample", stream=name)["bandwidth"])
        peaks.append(worker.ask(do="peak", size=4)["operations"])


# ---------------------------------------------------------------- the machine


def _levels(crew: Crew) -> dict[str, dict[str, float]]:
    """The table of ceilings: bytes a second by working set, and the peaks."""
    if crew.ceilings is None:
        return {}
    each = {"L1": 24 * KIB * crew.threads, "L2": 512 * KIB * crew.threads}
    sizes = each | {"L3": 8 * MIB, "memory": 128 * MIB}
    with crew.woken(crew.ceilings) as worker:
        table = {n: worker.ask(do="level", size=s)["bandwidths"] for n, s in sizes.items()}
        peaks = {
            f"float{8 * size}": max(
                worker.ask(do="peak", size=size)["operations"] for _ in range(5)
            )
            for size in (4, 8)
        }
    return {**table, "peak": peaks}


def machine() -> dict[str, str]:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")
    return {
        "processor": model or platform.processor() or platform.machine(),
        "processors": str(len(os.sched_getaffinity(0))),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
