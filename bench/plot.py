"""A picture of a run: each case's time over its floor, by peers, on a logarithmic axis."""

import importlib.util
from pathlib import Path

from .cases import UnknownName
from .results import Results, Row

MARKERS = "sD^vP*Xh<>"


def check(path: Path) -> None:
    """Before a long run: can it be drawn at its end?"""
    if path.suffix not in {".svg", ".png"}:
        raise UnknownName(f"a plot is a file .svg or .png, not {path.name!r}")
    if importlib.util.find_spec("matplotlib") is None:
        raise UnknownName("there is no matplotlib, which draws the plot")


def draw(results: Results, path: Path) -> None:
    """SVG or PNG, by the file's ending. One panel a number of threads; results in kept arrays."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows = [row for row in results.rows if row.kind in {"main", "given"} and row.floor]
    rows = rows or [row for row in results.rows if row.floor]
    if not rows:
        raise ValueError("there is nothing to draw: no ceilings were measured")
    ours, others, yardsticks = results.group("kept")
    counts = list(dict.fromkeys(row.threads for row in rows))
    labels = list(dict.fromkeys(row.label for row in rows))
    figure, axes = plt.subplots(
        1, len(counts), figsize=(1 + 5.5 * len(counts), 1.6 + 0.3 * len(labels)),
        sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    for axis, threads in zip(axes[0], counts, strict=True):
        here = [row for row in rows if row.threads == threads]
        for number, name in enumerate([*others, *yardsticks, *reversed(ours)]):
            times, places = _points(here, labels, name)
            first = bool(ours) and name == ours[0]
            axis.plot(
                times, places, linestyle="none", label=name, alpha=0.9, zorder=3 if first else 2,
                marker="o" if first else MARKERS[number % len(MARKERS)],
                markersize=9 if first else 5, color="black" if first else f"C{number}",
            )  # fmt: skip
        axis.axvline(1, color="grey", linewidth=1)
        axis.set_xscale("log")
        axis.set_xlabel("time / floor")
        axis.set_title(f"{threads} thread{'s' if threads > 1 else ''}")
        axis.grid(axis="both", alpha=0.25)
        axis.set_axisbelow(True)
    axes[0][0].set_yticks(range(len(labels)), labels)
    axes[0][0].invert_yaxis()
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=3 * len(counts) + 1, frameon=False
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def _points(rows: list[Row], labels: list[str], peer: str) -> tuple[list[float], list[int]]:
    known = [(row, row.seconds(peer)) for row in rows]
    pairs = [(t / row.floor, labels.index(row.label)) for row, t in known if t is not None]
    return [x for x, _ in pairs], [y for _, y in pairs]
