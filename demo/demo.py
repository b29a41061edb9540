"""tilesmith's main job on real input: a photograph and a classifier of handwritten digits.

Writes contact_sheet.png into demo/out, or the folder given, and prints a table of every kernel
that ran. Exits 1 if a result is further from float64 than 1e-5 of the largest, or if a prediction
differs from scikit-learn's.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from sklearn.datasets import load_digits, load_sample_image
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

import tilesmith as ts

Array = NDArray[Any]


# ------------------------------------------------------------------ the same in NumPy


def numpy_grey(rgb: Array) -> Array:
    return rgb @ np.array([0.2125, 0.7154, 0.0721], rgb.dtype)


def _up_here_down(x: Array, axis: int) -> tuple[Array, Array, Array]:
    """The neighbours of each element along an axis, borders repeated."""
    pad = [(0, 0), (0, 0)]
    pad[axis] = (1, 1)
    p = np.pad(x, pad, mode="edge")
    n = x.shape[axis]
    a, b, c = (p.take(range(k, k + n), axis) for k in range(3))
    return a, b, c


def numpy_blur(x: Array) -> Array:
    a, b, c = _up_here_down(x, 0)
    a, b, c = _up_here_down((a + b + c) / 3, 1)
    return (a + b + c) / 3


def numpy_sobel(x: Array) -> Array:
    a, b, c = _up_here_down(x, 0)
    left, _, right = _up_here_down((a + 2 * b + c) / 4, 1)
    up, here, down = _up_here_down(a - c, 1)
    return np.sqrt(((left - right) ** 2 + ((up + 2 * here + down) / 4) ** 2) / 2)


def numpy_unsharp(x: Array, amount: float) -> Array:
    return x + amount * (x - numpy_blur(x))


def numpy_linear(x: Array, weight: Array, bias: Array, activation: str) -> Array:
    z = x @ weight + bias
    return np.maximum(z, 0) if activation == "relu" else z


def numpy_softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# ------------------------------------------------------------------ running and comparing


@dataclass
class Report:
    """A line of the table for each kernel that ran."""

    rows: list[tuple[str, ...]] = field(default_factory=list)
    worst: float = 0.0

    def run(
        self,
        name: str,
        peer: Callable[..., Array],
        *args: Array,
        options: dict[str, Any] | None = None,
        peer_options: dict[str, Any] | None = None,
    ) -> Array:
        """The kernel on the arguments, timed beside NumPy and compared with it in float64."""
        kernel, given = getattr(ts, name), options or {}
        peer_given = given if peer_options is None else peer_options
        result: Array = kernel(*args, **given)
        exact = peer(*(a.astype(np.float64) for a in args), **peer_given)
        scale = np.abs(exact).max() if exact.size else 1.0
        error = float(np.abs(result - exact).max() / scale) if exact.size else 0.0
        self.worst = max(self.worst, error)
        plan = ts.last_call()
        ours = _best_of(lambda: kernel(*args, **given))
        numpys = _best_of(lambda: peer(*args, **peer_given))
        shape = " ".join("x".join(map(str, a.shape)) for a in args)
        self.rows.append(
            (name, shape, plan["level"], plan["variant"], f"{ours * 1e3:.3f}",
             f"{numpys * 1e3:.3f}", f"{numpys / ours:.1f}x", f"{error:.1e}")
        )  # fmt: skip
        return result

    def print(self) -> None:
        head = ("kernel", "shapes", "level", "variant", "ms", "NumPy ms", "faster", "error")
        widths = [max(len(r[k]) for r in [head, *self.rows]) for k in range(len(head))]
        for row in [head, *self.rows]:
            print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
        print("ms, NumPy ms: the least of several runs on one thread")
        print("error: largest difference from NumPy in float64, over the largest element")


def _best_of(f: Callable[[], object], rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times)


# ------------------------------------------------------------------ the two jobs


def photograph(report: Report, folder: Path) -> None:
    """A photograph through grey, blur, Sobel and unsharp, as a contact sheet in the folder."""
    rgb = (load_sample_image("china.jpg") / np.float32(255)).astype(np.float32)
    grey = report.run("grey", numpy_grey, rgb)
    blurred = report.run("blur", numpy_blur, grey)
    edges = report.run("sobel", numpy_sobel, grey)
    sharp = report.run("unsharp", numpy_unsharp, grey, options={"amount": 1.5})
    report.run("clamp", lambda x, low, high: np.clip(x, low, high), sharp,
               options={"low": 0.0, "high": 1.0})  # fmt: skip
    panels = {
        "grey": grey,
        "blur": blurred,
        "sobel": edges / edges.max(),
        "unsharp": ts.clamp(sharp, low=0.0, high=1.0),
    }
    h, w = grey.shape
    sheet = Image.new("RGB", (2 * w, 2 * (h + 16)), "white")
    draw = ImageDraw.Draw(sheet)
    for k, (name, panel) in enumerate(panels.items()):
        x, y = (k % 2) * w, (k // 2) * (h + 16)
        draw.text((x + 4, y + 2), f"tilesmith.{name}", fill="black")
        sheet.paste(Image.fromarray((panel * 255).round().astype(np.uint8)), (x, y + 16))
    folder.mkdir(exist_ok=True)
    sheet.save(folder / "contact_sheet.png")
    print(f"wrote {folder / 'contact_sheet.png'} ({sheet.width}x{sheet.height})")


def digits(report: Report) -> bool:
    """Digits classified by fused `linear` kernels; whether all predictions are scikit-learn's."""
    data = load_digits()
    x = (data.data / 16).astype(np.float32)
    train, test = x[:1200], x[1200:]
    model = MLPClassifier((64, 32), max_iter=300, random_state=0)
    model.fit(train, data.target[:1200])
    weights = [w.astype(np.float32) for w in model.coefs_]
    biases = [b.astype(np.float32) for b in model.intercepts_]
    hidden = test
    for k, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        activation = {"activation": "relu" if k + 1 < len(weights) else "none"}
        hidden = report.run("linear", numpy_linear, hidden, weight, bias, options=activation)
    odds = report.run("softmax", numpy_softmax, hidden)
    mine = report.run("argmax", lambda o, axis: o.argmax(axis), odds, options={"axis": -1})
    theirs = model.predict(test)
    same, right = int((mine == theirs).sum()), float((mine == data.target[1200:]).mean())
    print(f"digits: {same} of {len(test)} predictions as scikit-learn's, {right:.1%} right")
    return same == len(test)


def main(folder: Path) -> int:
    report = Report()
    with ts.threads(1), threadpool_limits(1):  # on busy processors a call waits for its last thread
        photograph(report, folder)
        agree = digits(report)
    report.print()
    if report.worst > 1e-5:
        print(f"error: a kernel is off by {report.worst:.1e}", file=sys.stderr)
        return 1
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "out"))
