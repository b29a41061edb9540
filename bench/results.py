"""What a run found: times a peer, floors, ratios; and its form as JSON."""

import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .cases import size_text

NOISY = 0.2


@dataclass(frozen=True)
class Cell:
    """One peer on one case. `status` is ok, wrong, failed, or none: it has no such kernel. how:
    which of its ways it took, where it says so.
    """

    status: str
    seconds: tuple[float, ...] = ()
    error: float | None = None
    why: str = ""
    how: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def noisy(self) -> bool:
        """Whether its rounds disagree: half of them lie a fifth of the median apart, or more."""
        if len(self.seconds) < 2:
            return False
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return high - low > NOISY * self.median


@dataclass(frozen=True)
class Row:
    """One case at one number of threads, by peers, with the ceilings measured beside it."""

    kernel: str
    dims: tuple[int, ...]
    kind: str
    threads: int
    bytes_read: int
    bytes_written: int
    operations: int
    bandwidths: dict[str, float]  # bytes a second, of each stream that bounds the kernel
    peak: float  # operations a second
    cells: dict[str, Cell]

    @property
    def label(self) -> str:
        return f"{self.kernel} {size_text(self.dims)}"

    @property
    def floors(self) -> dict[str, float]:
        """Seconds that no implementation can beat, by what it is that takes them."""
        moved = self.bytes_read + self.bytes_written
        return {
            "memory": moved / max(self.bandwidths.values()) if self.bandwidths else 0.0,
            "arithmetic": self.operations / self.peak if self.peak else 0.0,
        }

    @property
    def floor(self) -> float:
        return max(self.floors.values())

    @property
    def bound(self) -> str:
        return max(self.floors, key=lambda name: self.floors[name])

    def seconds(self, peer: str) -> float | None:
        cell = self.cells.get(peer)
        return cell.median if cell is not None and cell.seconds else None

    def best(self, peers: Iterable[str]) -> tuple[str, float] | None:
        """The fastest of these peers whose results are right."""
        times = {name: self.seconds(name) for name in peers}
        known = {name: t for name, t in times.items() if t is not None}
        return min(known.items(), key=lambda item: item[1]) if known else None


@dataclass(frozen=True)
class PeerFacts:
    version: str  # or why it is absent
    present: bool
    results: str
    ours: bool
    yardstick: bool = False


class Group(NamedTuple):
    """Names of peers, by what they are in a table."""

    ours: list[str]
    others: list[str]
    yardsticks: list[str]


@dataclass
class Results:
    """A whole run."""

    machine: dict[str, str]
    settings: dict[str, Any]
    peers: dict[str, PeerFacts] = field(default_factory=dict)
    ceilings: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)  # by threads
    rows: list[Row] = field(default_factory=list)

    def group(self, results: str) -> Group:
        """Of the peers present that keep results so: ours, the others, and yardsticks."""
        here = {n: p for n, p in self.peers.items() if p.present and p.results == results}
        return Group(
            [n for n, p in here.items() if p.ours],
            [n for n, p in here.items() if not p.ours and not p.yardstick],
            [n for n, p in here.items() if p.yardstick],
        )

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> Results:
    tree = json.loads(path.read_text(encoding="utf-8"))
    peers = {name: PeerFacts(**facts) for name, facts in tree.pop("peers").items()}
    return Results(rows=[_row(row) for row in tree.pop("rows")], peers=peers, **tree)


def _row(tree: dict[str, Any]) -> Row:
    cells = {
        name: Cell(**(cell | {"seconds": tuple(cell["seconds"])}))
        for name, cell in tree["cells"].items()
    }
    return Row(**(tree | {"dims": tuple(tree["dims"]), "cells": cells}))
