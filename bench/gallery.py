"""The gallery: seventy operators from their algebra beside PyTorch, SciPy and NumPy, on one thread.

python -m bench gallery [operators...] [--rounds N] [--write]

Each spec is compiled with the recipe that rules write. The result is compared with the peer's
before both are timed, in turn: the least processor time of each, as calls of many milliseconds are
never alone on a machine that others use. `--write` keeps the tables in
docs/gallery.md, with the rules that took the blocks of the variant that runs.
"""

import ctypes
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from threadpoolctl import ThreadpoolController

from build_tools import markdown
from gen.errors import TilesmithError
from gen.lower.variants import Plain
from gen.targets.recipes import ByRules, by_rules
from gen.targets.target import Runnable
from gen.trial.inputs import Array
from gen.trial.run import compiled
from gen.trial.sizes import kernel_dims

from . import ROOT
from .gallery_cases import ENTRIES, Entry, first_types, problem
from .suite import (
    Problem,
    copied,
    keep,
    least,
    mean,
    milliseconds,
    ours,
    target_here,
    told_sizes,
)

PAGE = ROOT / "docs" / "gallery.md"
COMMAND = "`python -m bench gallery --write`"
HEAD = ("operator", "lines", "rules", "sizes", "ours, ms", "peer", "peer, ms", "peer / ours")
TOLERANCE = 1e-3
"""Of float32 results, beside the largest: peers sum in another order."""


@final
@dataclass(frozen=True, slots=True)
class Row:
    """Of one operator. seconds: the least of ours and of the peer's."""

    entry: Entry
    rules: str
    peer: str
    ours: float
    other: float

    @property
    def ratio(self) -> float:
        return self.other / self.ours


def measured(entry: Entry, rounds: int) -> Row:
    """The row, right first. Raises TilesmithError where ours and the peer's results differ."""
    from .peers.gallery_signals import PEERS

    given, target = problem(entry), target_here()
    dtypes = first_types(given.spec)
    found = by_rules(Plain(given.spec, dtypes), target)
    assert found is not None
    kernel = compiled(replace(given.spec, recipes=(found.recipe,)), dtypes, target)
    peer = PEERS[entry.name]
    call = ours(given, kernel, 1)
    _assert_alike(entry, given, call(copied(given.drawn)), peer.call(given)(copied(given.drawn)))
    with ThreadpoolController().limit(limits=1):
        calls = {"ours": ours(given, kernel, 1), "peer": peer.call(given)}
        best = least(given, calls, rounds, clock=time.thread_time)
    return Row(entry, _rules(given, found, kernel), peer.name, best["ours"], best["peer"])


def _rules(given: Problem, found: ByRules, kernel: Runnable) -> str:
    """Those that took the blocks of the variant that a call takes, the last block's first."""
    variant = kernel.variant(given.drawn, kernel_dims(given.spec, given.sizes))
    chosen = found.chosen[int(variant) if len(found.chosen) > 1 else 0]
    return ", ".join(dict.fromkeys(taken.rule for taken in chosen.taken))


def _assert_alike(
    entry: Entry, given: Problem, found: Mapping[str, Array], expected: Mapping[str, Array]
) -> None:
    for name in given.written:
        if found[name].shape != expected[name].shape:
            shapes = f"{found[name].shape} and {expected[name].shape}"
            raise TilesmithError(f"{entry.name}: the shapes of {name} are {shapes}")
        wide = np.complex128 if found[name].dtype.kind == "c" else np.float64
        off: Array = abs(found[name].astype(wide) - expected[name].astype(wide))
        bound = 0 if found[name].dtype.kind in "iub" else TOLERANCE
        if not np.max(off, initial=0) <= bound * max(1.0, np.max(abs(expected[name]), initial=0)):
            message = f"{entry.name}: {name} is {np.max(off):.1e} from the peer's"
            raise TilesmithError(message)


# ---------------------------------------------------------------- the page


def lines_of(entry: Entry) -> int:
    """Of the spec, its recipe left out."""
    text, _, _ = entry.path.read_text("utf-8").partition("\nrecipes:")
    return len(text.splitlines())


def link(entry: Entry) -> str:
    """To the spec's file, from the page."""
    where = os.path.relpath(entry.path, PAGE.parent)
    return f"[{lines_of(entry)}]({where})"


def cells(row: Row) -> Iterator[str]:
    yield f"`{row.entry.name}`"
    yield link(row.entry)
    yield row.rules
    yield told_sizes(row.entry.sizes)
    yield milliseconds(row.ours)
    yield row.peer
    yield milliseconds(row.other)
    yield f"{row.ratio:.2f}"


def summary(rows: Sequence[Row]) -> Iterator[str]:
    ratios = [row.ratio for row in rows]
    ahead, close = sum(r > 1 for r in ratios), sum(0.8 <= r <= 1 for r in ratios)
    yield (
        f"The peers' time over ours has a geometric mean of {mean(ratios):.2f}; ours is faster in"
        f" {ahead} of {len(rows)}, and in {close} more the peer is no more than a quarter faster."
    )


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """One for each class: lines of Markdown."""
    for kind in dict.fromkeys(row.entry.kind for row in rows):
        yield f"\n### {kind.capitalize()}\n"
        of_kind = (cells(row) for row in rows if row.entry.kind == kind)
        yield from markdown.table(HEAD, "lrllrlrr", of_kind)


def keep_memory() -> None:
    """Results that peers allocate get the pages of those before, as glibc gives them none back."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-1, 2**30)  # M_TRIM_THRESHOLD
        mallopt(-3, 2**30)  # M_MMAP_THRESHOLD


def main(names: Sequence[str], rounds: int, *, write: bool) -> None:
    """Prints a row an operator, then the tables."""
    keep_memory()
    rows: list[Row] = []
    for entry in ENTRIES:
        if not names or entry.name in names or entry.kind in names:
            rows.append(measured(entry, rounds))
            print(" ".join(cells(rows[-1])), flush=True)
    lines = [*summary(rows), *tables(rows)]
    print("\n".join(lines))
    if write:
        keep(PAGE, f"In float32, on {{date}} ({COMMAND}).\n", lines)
