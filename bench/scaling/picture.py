"""A picture of a run: time against size, a line a kernel, a panel a number of threads.

Ours are thick lines, NumPy's thin ones of the same colour; rings are jumps that nothing explains.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..results import Results, Row
from . import measuring
from .jumps import jumps

BYTES = "bytes read and written"


def draw(found: Results, path: Path) -> None:
    """SVG or PNG, by the file's ending. Above, seconds; below, bytes a second."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    counts = list(dict.fromkeys(row.threads for row in found.rows))
    names = list(dict.fromkeys(row.kind for row in found.rows))
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tilesmith", "font.size": 8}):
        figure, axes = plt.subplots(
            2, len(counts), figsize=(1 + 4.5 * len(counts), 7.5),
            sharex=True, sharey="row", squeeze=False, layout="constrained",
        )  # fmt: skip
        for column, threads in enumerate(counts):
            over, under = axes[0][column], axes[1][column]
            for number, name in enumerate(names):
                rows = measuring.of(found, name, threads)
                _line(over, under, rows, name, plt.get_cmap("tab20")(number % 20))
            over.set_title(f"{threads} thread{'s' * (threads > 1)}")
            under.set_xlabel(BYTES)
            for axis in (over, under):
                axis.set_xscale("log")
                axis.set_yscale("log")
                axis.minorticks_off()
                axis.grid(alpha=0.25)
        axes[0][0].set_ylabel("seconds a call")
        axes[1][0].set_ylabel("bytes a second")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)
    if path.suffix == ".svg":
        path.write_text(shorter(path.read_text("utf-8")), "utf-8")


def shorter(svg: str) -> str:
    """With a digit behind the point, which is a tenth of a pixel."""
    return re.sub(r"(\d\.\d)\d+", r"\1", svg)


def _line(over: Any, under: Any, rows: Sequence[Row], name: str, colour: Any) -> None:
    ours = measuring.points(rows)
    theirs = [
        (row.bytes_read + row.bytes_written, min(row.cells[measuring.NUMPY].seconds))
        for row in rows
        if row.seconds(measuring.NUMPY) is not None
    ]
    rises = [j.after for j in jumps(ours) if not j.explained]
    lines = (
        ([(p.size, p.seconds) for p in ours], {"linewidth": 1.1, "label": name, "zorder": 3}),
        (theirs, {"linewidth": 0.4, "alpha": 0.7}),
        (
            [(p.size, p.seconds) for p in rises],
            {"linestyle": "none", "marker": "o", "fillstyle": "none", "markersize": 5},
        ),
    )
    for pairs, style in lines:
        sizes = [size for size, _ in pairs]
        over.plot(sizes, [seconds for _, seconds in pairs], color=colour, **style)
        under.plot(sizes, [size / seconds for size, seconds in pairs], color=colour, **style)
