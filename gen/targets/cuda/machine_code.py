"""Machine code for packages: device text as one file for many architectures, kept between builds.

Input: device text. Output: a fatbin, and what each of its functions takes of each architecture, as
JSON. Invariant: the same text, headers, flags and compiler give the same files, in any folder;
nothing is kept that spills.
"""

import hashlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import final

from ...errors import TilesmithError
from .architectures import ARCHITECTURES, Architecture
from .compilers import FLAGS, HEADERS, Resources, required, run
from .occupancy import occupancy

_THREADS = re.compile(r'extern "C"\s+__global__\s+void\s+__launch_bounds__\((\d+)\)\s+(\w+)\(')

Functions = dict[str, dict[str, dict[str, float]]]
"""By name and architecture: registers, bytes that spill, of the stack and of shared memory, and
the share of a multiprocessor's threads that run at once."""


def machine_code(
    source: Path, architecture: str, to: Path, kept: Path, headers: Sequence[Path] = HEADERS
) -> Functions:
    """Compiles device text for an architecture and all later ones, and to PTX for those to come.

    kept: the folder of what was compiled before. headers: the folders of what the text includes.
    Raises TilesmithError where there is no nvcc, with its words where it refuses or warns, and
    where registers do not suffice.
    """
    options = ("-gencode", _code(architecture), "--compress-mode=size", "-fatbin")
    key = _key(source, options, headers)
    binary, told = kept / f"{key}.fatbin", kept / f"{key}.json"
    if not told.exists():
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept) as folder:
            made, words = Path(folder, "made.fatbin"), Path(folder, "made.json")
            entries = with_registers(source, (*options, "-o", str(made)), headers)
            functions = _functions(source, entries)
            words.write_text(json.dumps(functions, indent=1) + "\n", encoding="utf-8")
            os.replace(made, binary)
            os.replace(words, told)
    to.write_bytes(binary.read_bytes())
    kept_functions: Functions = json.loads(told.read_text("utf-8"))
    return kept_functions


@final
@dataclass(frozen=True, slots=True)
class OfLaunch:
    """What a launch's function takes, and the share of a multiprocessor's threads that run at
    once.
    """

    resources: Resources
    occupancy: float

    def __str__(self) -> str:
        r = self.resources
        return (
            f"{r.name}: {r.registers} registers, {r.spilled} B spilled, {r.shared} B shared,"
            f" {self.occupancy:.0%} of threads at once"
        )


def of_launches(text: str, architecture: Architecture) -> tuple[OfLaunch, ...]:
    """Of device text compiled for one architecture. Raises TilesmithError where there is no nvcc,
    or with its words where it refuses or warns.
    """
    threads = {name: int(n) for n, name in _THREADS.findall(text)}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.cu")
        source.write_text(text, "utf-8")
        to = ("-cubin", "-o", str(Path(folder, "kernel.cubin")))
        found = with_registers(source, (f"-arch={architecture}", *to), HEADERS)
    return tuple(
        OfLaunch(r, occupancy(architecture, threads[r.name], r.registers, r.shared)) for r in found
    )


def with_registers(
    source: Path, options: Sequence[str], headers: Sequence[Path]
) -> tuple[Resources, ...]:
    """Compiles device text; where functions spill, again, with all registers for these that there
    are. The compiler may hold a thread to 40, so that more run at once, and spill the 41st.
    """
    found = run(source, options, headers)
    spilled = {entry.name for entry in found if entry.spilled}
    if not spilled:
        return found

    def alone(entry: re.Match[str]) -> str:
        threads, name = entry.groups()
        return entry[0].replace(f"({threads})", f"({threads}, 1)") if name in spilled else entry[0]

    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder, source.name)
        again.write_text(_THREADS.sub(alone, source.read_text("utf-8")), "utf-8")
        return run(again, options, headers)


def later(architecture: str) -> tuple[str, ...]:
    """The architecture and all that come after it."""
    return ARCHITECTURES[ARCHITECTURES.index(architecture) :]


def _code(architecture: str) -> str:
    """One run of the compiler's front end for all of them: that takes most of the time."""
    front = architecture.replace("sm", "compute")
    return f"arch={front},code=[{','.join([*later(architecture), front])}]"


def _key(source: Path, options: Iterable[str], headers: Iterable[Path]) -> str:
    """A hash of all that the machine code depends on."""
    version = subprocess.run([required(), "--version"], capture_output=True, check=True).stdout
    texts = [source, *(path for folder in headers for path in sorted(folder.glob("ts_*.h")))]
    parts = [version, " ".join([*FLAGS, *options]).encode(), *(p.read_bytes() for p in texts)]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _functions(source: Path, entries: Iterable[Resources]) -> Functions:
    """Raises TilesmithError for the first that spills."""
    threads = {name: int(n) for n, name in _THREADS.findall(source.read_text("utf-8"))}
    functions: Functions = {}
    for entry in sorted(entries, key=lambda e: (e.name, ARCHITECTURES.index(e.architecture))):
        if entry.spilled:
            raise TilesmithError(
                f"{source.name}: {entry.name} needs more registers than a thread of"
                f" {threads[entry.name]} has on {entry.architecture}: {entry.spilled} bytes spill",
                hint="take smaller tiles a thread, or fewer threads a block",
            )
        figures = asdict(entry)
        name, architecture = figures.pop("name"), Architecture(figures.pop("architecture"))
        share = occupancy(architecture, threads[name], entry.registers, entry.shared)
        functions.setdefault(name, {})[architecture.value] = figures | {"occupancy": share}
    return functions
