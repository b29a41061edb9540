"""NVIDIA's compute-sanitizer: racecheck and memcheck, a process for each kernel.

Before it is believed, it has to find a race and a write out of bounds that are planted.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from .rows import Row, Status

PART = "sanitizer"
TOOLS = ("racecheck", "memcheck")
PLACES = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/opt/cuda/bin")
_STATUS = 99  # of a run in which something is found


def found() -> str | None:
    """The program, on PATH or where CUDA puts it."""
    on_path = shutil.which("compute-sanitizer")
    places = (Path(place, "compute-sanitizer") for place in PLACES)
    return on_path or next((str(path) for path in places if path.is_file()), None)


def prefix(program: str, tool: str) -> tuple[str, ...]:
    """What a command is put behind. Only kernels whose names have `ts_` in them are looked at."""
    return (program, "--tool", tool, "--error-exitcode", str(_STATUS), "--report-api-errors", "no",
            "--kernel-name", "kns=ts_")  # fmt: skip


_SUMMARIES = {
    "racecheck": re.compile(r"RACECHECK SUMMARY: (\d+) hazard"),
    "memcheck": re.compile(r"ERROR SUMMARY: (\d+) error"),
}


def verdict(tool: str, subject: str, status: int | None, output: str) -> Row:
    """What a run showed. status: None where it did not end in time."""
    summary = _SUMMARIES[tool].search(output)
    if status is None:
        return Row(PART, subject, tool, Status.FAILED, "it did not end in time")
    if summary is None or status not in (0, _STATUS):
        last = " ".join(output.split("\n")[-6:]).strip()
        return Row(PART, subject, tool, Status.FAILED, f"exit status {status}: {last}"[:500])
    count = int(summary[1])
    if not count and not status:
        return Row(PART, subject, tool, Status.RIGHT, "", {"found": 0})
    first = next((line for line in output.split("\n") if _is_finding(line)), "")
    return Row(PART, subject, tool, Status.WRONG, first.strip("= "), {"found": count})


def _is_finding(line: str) -> bool:
    return line.startswith("=========") and bool(re.search(r"Error|Invalid|hazard|Race", line))


PLANTED = {
    "racecheck": """extern "C" __global__ void ts_planted(float *y)
{
    __shared__ float s[64];
    s[threadIdx.x] = y[threadIdx.x];
    y[threadIdx.x] = s[63 - threadIdx.x];
}""",
    "memcheck": """extern "C" __global__ void ts_planted(float *y) { y[threadIdx.x + 1] = 0; }""",
}
CONTROL = "planted fault"


def plant(xp: ModuleType, tool: str) -> None:
    """Runs what the tool has to find."""
    y = xp.zeros(64, "f4")
    xp.RawKernel(PLANTED[tool], "ts_planted")((1,), (64,), (y,))
    xp.cuda.Device().synchronize()


def trusted(tool: str, rows: Sequence[Row]) -> bool:
    """Whether the tool found what was planted."""
    return any((r.part, r.subject, r.what, r.status) == (PART, CONTROL, tool, Status.RIGHT)
               for r in rows)  # fmt: skip


def of_control(row: Row) -> Row:
    """The verdict on the planted fault, which has to be found."""
    match row.status:
        case Status.WRONG:
            return Row(PART, CONTROL, row.what, Status.RIGHT, "it is found")
        case Status.RIGHT:
            text = "it is not found, so this tool is not believed here"
            return Row(PART, CONTROL, row.what, Status.SKIPPED, text)
        case _:
            text = f"the tool does not work here: {row.text}"
            return Row(PART, CONTROL, row.what, Status.SKIPPED, text)
