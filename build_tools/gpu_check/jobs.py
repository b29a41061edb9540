"""Runs the parts, each job in a process of its own: a fault in one leaves the others as they are.

Input: stages, the most important first, and how long all may take. Output: rows. Invariant: every
job that is named gives a row, be it of why it did not run.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import final

from . import sanitizer
from .budget import Budget
from .rows import Row, Status, read


@final
@dataclass(frozen=True, slots=True)
class Job:
    """part, subjects: what the process is to do. tool: of compute-sanitizer, which it runs under;
    prefix: how that is called.
    """

    part: str
    subjects: tuple[str, ...] = ()
    tool: str = ""
    prefix: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ", ".join(self.subjects)


@final
@dataclass(frozen=True, slots=True)
class Stage:
    """Jobs of equal importance. share: of the time that is left. workers: how many run at once.

    jobs: given the rows so far; a row in a job's place says why there is none.
    """

    name: str
    share: float
    workers: int
    jobs: Callable[[Sequence[Row]], Sequence[Job | Row]]


Runner = Callable[[Job, float], list[Row]]
"""Runs a job for so many seconds."""

LEAST = 5.0  # seconds under which no job is started


def run(stages: Sequence[Stage], budget: Budget, runner: Runner) -> Iterator[list[Row]]:
    """The rows of all stages, those so far after each."""
    rows: list[Row] = []
    for stage in stages:
        own = budget.share(stage.share)
        with ThreadPoolExecutor(stage.workers) as pool:
            todo = stage.jobs(tuple(rows))
            made = pool.map(partial(_one, budget=own, runner=runner), todo)
            rows += [row for some in made for row in some]
        yield list(rows)


def _one(job: Job | Row, budget: Budget, runner: Runner) -> list[Row]:
    if isinstance(job, Row):
        return [job]
    if budget.left < LEAST:
        return [Row(job.part, str(job), job.tool, Status.SKIPPED, "no time left")]
    try:
        return runner(job, budget.left)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return [Row(job.part, str(job), job.tool, Status.FAILED, text)]


GRACE = 8.0  # seconds that a process has beyond those that it is told


def command(job: Job, seconds: float, rows: Path, more: Sequence[str]) -> list[str]:
    return [
        *job.prefix,
        sys.executable,
        "-m",
        "build_tools.gpu_check",
        "job",
        job.part,
        *job.subjects,
        "--seconds",
        f"{max(seconds - GRACE, LEAST / 2):.1f}",
        "--rows",
        str(rows),
        *(("--tool", job.tool) if job.tool else ()),
        *more,
    ]


def in_a_process(
    job: Job, seconds: float, environment: Mapping[str, str], more: Sequence[str] = ()
) -> list[Row]:
    """Runs a job; it is ended where it takes longer. more: arguments of every job."""
    with tempfile.TemporaryDirectory() as folder:
        found, said = Path(folder, "rows"), Path(folder, "said")
        with said.open("wb") as output:
            process = subprocess.Popen(
                command(job, seconds, found, more),
                env=dict(environment),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            status = _ended(process, seconds)
        rows, text = read(found), said.read_text("utf-8", "replace")
        if job.tool:
            return _under_a_tool(job, rows, status, text)
        if status != 0:
            rows.append(_cut_off(job, status, seconds, text))
        return rows


def _ended(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


CRASHED = "the process"


def _cut_off(job: Job, status: int | None, seconds: float, text: str) -> Row:
    if status is None:
        return Row(job.part, str(job), CRASHED, Status.FAILED, f"not done in {seconds:.0f} s")
    last = " ".join(text.strip().split("\n")[-3:])
    return Row(job.part, str(job), CRASHED, Status.FAILED, f"exit status {status}: {last}"[-500:])


def _under_a_tool(job: Job, rows: Sequence[Row], status: int | None, text: str) -> list[Row]:
    found = sanitizer.verdict(job.tool, str(job), status, text)
    if str(job) == sanitizer.CONTROL:
        return [sanitizer.of_control(found)]
    return [found, *(row for row in rows if not row.status.good)]


def crashed(rows: Sequence[Row]) -> set[str]:
    """The subjects of which a process did not end as it should."""
    return {row.subject for row in rows if row.what == CRASHED}
