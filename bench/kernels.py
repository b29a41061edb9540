"""Every shipped kernel beside NumPy or SciPy: interleaved rounds in one process, medians, ratios.

The full benchmark, with each peer in a process of its own, comes with the work on speed; this one
shows at a glance where a kernel stands. A peer computes the same function, so each result is
compared with the peer's before anything is timed.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.ndimage
import scipy.special
from numpy.typing import NDArray

import tilesmith as ts

Array = NDArray[Any]
Run = Callable[[Array], object]


@dataclass(frozen=True)
class Case:
    """One line: a kernel and a peer, each of which fills the array that it is given."""

    name: str
    peer_name: str
    ours: Run
    peer: Run
    shape: tuple[int, ...]
    dtype: type[np.generic] = np.float32


def _real(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def _elementwise() -> Iterator[Case]:
    x = _real(1 << 24)
    size = x.shape
    yield Case("exp", "numpy", lambda o: ts.exp(x, out=o), lambda o: np.exp(x, out=o), size)
    yield Case(
        "gelu",
        "scipy",
        lambda o: ts.gelu(x, out=o),
        lambda o: np.multiply(x, scipy.special.ndtr(x), out=o),
        size,
    )
    yield Case(
        "clamp",
        "numpy",
        lambda o: ts.clamp(x, low=0, high=1, out=o),
        lambda o: np.clip(x, 0, 1, out=o),
        size,
    )


def _rows() -> Iterator[Case]:
    x, ones, zeros = _real(4096, 1024), np.ones(1024, np.float32), np.zeros(1024, np.float32)

    def norm(o: Array) -> None:
        np.subtract(x, x.mean(axis=-1, keepdims=True), out=o)
        np.divide(o, np.sqrt(x.var(axis=-1, keepdims=True) + np.float32(1e-5)), out=o)

    def softmax(o: Array) -> None:
        np.exp(x - x.max(axis=-1, keepdims=True), out=o)
        np.divide(o, o.sum(axis=-1, keepdims=True), out=o)

    yield Case("softmax", "numpy", lambda o: ts.softmax(x, out=o), softmax, x.shape)
    yield Case("layer_norm", "numpy", lambda o: ts.layer_norm(x, ones, zeros, out=o), norm, x.shape)
    yield Case(
        "cumsum",
        "numpy",
        lambda o: ts.cumsum(x, out=o),
        lambda o: np.cumsum(x, axis=-1, out=o),
        x.shape,
    )
    yield Case(
        "transpose",
        "numpy",
        lambda o: ts.transpose(x, out=o),
        lambda o: np.copyto(o, x.T),
        x.shape[::-1],
    )


def _reductions() -> Iterator[Case]:
    x = _real(4096, 1024)
    pairs = {
        "sum": (ts.sum, np.sum),
        "mean": (ts.mean, np.mean),
        "max": (ts.max, np.max),
        "argmax": (ts.argmax, np.argmax),
    }
    for name, (ours, peer) in pairs.items():
        dtype = np.int64 if name == "argmax" else np.float32
        for axis, size in ((-1, 4096), (0, 1024)):
            yield Case(
                f"{name} axis={axis}",
                "numpy",
                lambda o, f=ours, axis=axis: f(x, axis=axis, out=o),
                lambda o, f=peer, axis=axis: f(x, axis=axis, out=o),
                (size,),
                dtype,
            )


def _products() -> Iterator[Case]:
    a, b, bias = _real(1024, 1024), _real(1024, 1024), _real(1024)

    def linear(o: Array) -> None:
        np.matmul(a, b, out=o)
        np.add(o, bias, out=o)
        np.maximum(o, 0, out=o)

    yield Case(
        "matmul",
        "numpy",
        lambda o: ts.matmul(a, b, out=o),
        lambda o: np.matmul(a, b, out=o),
        a.shape,
    )
    yield Case(
        "linear", "numpy", lambda o: ts.linear(a, b, bias, relu=True, out=o), linear, a.shape
    )


def _images() -> Iterator[Case]:
    rgb, x = _real(1500, 2000, 3), _real(1500, 2000)
    weights = np.array([0.2125, 0.7154, 0.0721], np.float32)

    def blurred() -> Array:
        result: Array = scipy.ndimage.uniform_filter(x, size=3, mode="nearest")
        return result

    def sobel(o: Array) -> None:
        down = scipy.ndimage.sobel(x, axis=0, mode="nearest") / 4
        across = scipy.ndimage.sobel(x, axis=1, mode="nearest") / 4
        np.sqrt((down * down + across * across) / 2, out=o)

    yield Case(
        "grey",
        "numpy",
        lambda o: ts.grey(rgb, out=o),
        lambda o: np.matmul(rgb, weights, out=o),
        x.shape,
    )
    yield Case(
        "blur", "scipy", lambda o: ts.blur(x, out=o), lambda o: np.copyto(o, blurred()), x.shape
    )
    yield Case("sobel", "scipy", lambda o: ts.sobel(x, out=o), sobel, x.shape)
    yield Case(
        "unsharp",
        "scipy",
        lambda o: ts.unsharp(x, out=o),
        lambda o: np.subtract(2 * x, blurred(), out=o),
        x.shape,
    )


def measure(case: Case, rounds: int = 7) -> tuple[float, float]:
    """Median milliseconds of ours and of the peer, rounds interleaved, results compared first."""
    out, expected = np.empty(case.shape, case.dtype), np.empty(case.shape, case.dtype)
    case.ours(out)
    case.peer(expected)
    np.testing.assert_allclose(out, expected, rtol=2e-4, atol=2e-4)
    times: dict[str, list[float]] = {"ours": [], "peer": []}
    for _ in range(rounds):
        for name, run in (("ours", case.ours), ("peer", case.peer)):
            start = time.perf_counter()
            run(out)
            times[name].append((time.perf_counter() - start) * 1e3)
    return statistics.median(times["ours"]), statistics.median(times["peer"])


def main() -> None:
    print(f"{'kernel, float32':20} {'result':>12} {'ms':>9} {'peer':>6} {'ms':>9} {'faster':>7}")
    for group in (_elementwise, _rows, _reductions, _products, _images):
        for case in group():
            ours, peer = measure(case)
            shape = "x".join(map(str, case.shape))
            print(
                f"{case.name:20} {shape:>12} {ours:9.3f} {case.peer_name:>6} {peer:9.3f}"
                f" {peer / ours:6.1f}x",
                flush=True,
            )
