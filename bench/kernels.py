"""Every shipped kernel beside NumPy and SciPy: interleaved rounds in one process, medians, ratios.

The full benchmark, with each peer in a process of its own, comes with the work on speed; this one
shows at a glance where a kernel stands.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.ndimage
import scipy.special
from numpy.typing import NDArray

import tilesmith as ts

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """One line: the kernel on its arguments, and the same by a peer."""

    name: str
    peer_name: str
    ours: Callable[[Array], Array]
    peer: Callable[[Array], Array]
    out: Array


def cases() -> list[Case]:
    rng = np.random.default_rng(0)

    def real(*shape: int) -> Array:
        return rng.standard_normal(shape, dtype=np.float32)

    flat, rows, image = real(1 << 24), real(4096, 1024), real(3000, 4000)
    square, other = real(1024, 1024), real(1024, 1024)
    ones, zeros = np.ones(1024, np.float32), np.zeros(1024, np.float32)
    rgb = real(1500, 2000, 3)
    like, row = np.empty_like, np.empty(4096, np.float32)
    third = np.float32(0.2125), np.float32(0.7154), np.float32(0.0721)

    def layer_norm(out: Array) -> Array:
        centred = rows - rows.mean(axis=-1, keepdims=True)
        return np.divide(centred, np.sqrt(rows.var(axis=-1, keepdims=True) + 1e-5), out=out)

    def grey(out: Array) -> Array:
        return np.matmul(rgb, np.array(third), out=out)

    return [
        Case("exp 16M", "numpy", lambda o: ts.exp(flat, out=o), lambda o: np.exp(flat, out=o), like(flat)),
        Case("gelu 16M", "scipy", lambda o: ts.gelu(flat, out=o),
             lambda o: np.multiply(flat, scipy.special.ndtr(flat), out=o), like(flat)),
        Case("clamp 16M", "numpy", lambda o: ts.clamp(flat, low=0, high=1, out=o),
             lambda o: np.clip(flat, 0, 1, out=o), like(flat)),
        Case("softmax 4096x1024", "scipy", lambda o: ts.softmax(rows, out=o),
             lambda o: scipy.special.softmax(rows, axis=-1), like(rows)),
        Case("layer_norm 4096x1024", "numpy", lambda o: ts.layer_norm(rows, ones, zeros, out=o),
             layer_norm, like(rows)),
        Case("matmul 1024", "numpy", lambda o: ts.matmul(square, other, out=o),
             lambda o: np.matmul(square, other, out=o), like(square)),
        Case("linear 4096x1024x1024", "numpy", lambda o: ts.linear(rows, square, zeros, relu=True, out=o),
             lambda o: np.maximum(np.matmul(rows, square, out=o) + zeros, 0, out=o), like(rows)),
        Case("sum last 4096x1024", "numpy", lambda o: ts.sum(rows, out=o),
             lambda o: np.sum(rows, axis=-1, out=o), row),
        Case("sum first 4096x1024", "numpy", lambda o: ts.sum(rows, axis=0, out=o),
             lambda o: np.sum(rows, axis=0, out=o), zeros.copy()),
        Case("mean last 4096x1024", "numpy", lambda o: ts.mean(rows, out=o),
             lambda o: np.mean(rows, axis=-1, out=o), row.copy()),
        Case("max last 4096x1024", "numpy", lambda o: ts.max(rows, out=o),
             lambda o: np.max(rows, axis=-1, out=o), row.copy()),
        Case("argmax last 4096x1024", "numpy", lambda o: ts.argmax(rows, out=o),
             lambda o: np.argmax(rows, axis=-1, out=o), np.empty(4096, np.int64)),
        Case("cumsum 4096x1024", "numpy", lambda o: ts.cumsum(rows, out=o),
             lambda o: np.cumsum(rows, axis=-1, out=o), like(rows)),
        Case("transpose 4096x1024", "numpy", lambda o: ts.transpose(rows, out=o),
             lambda o: np.copyto(o, rows.T) or o, np.empty((1024, 4096), np.float32)),
        Case("grey 1500x2000", "numpy", lambda o: ts.grey(rgb, out=o), grey, np.empty((1500, 2000), np.float32)),
        Case("blur 3000x4000", "scipy", lambda o: ts.blur(image, out=o),
             lambda o: scipy.ndimage.uniform_filter(image, 3, output=o, mode="nearest") or o, like(image)),
        Case("sobel 3000x4000", "scipy", lambda o: ts.sobel(image, out=o),
             lambda o: np.hypot(scipy.ndimage.sobel(image, 0), scipy.ndimage.sobel(image, 1), out=o), like(image)),
        Case("unsharp 3000x4000", "scipy", lambda o: ts.unsharp(image, out=o),
             lambda o: np.subtract(2 * image, scipy.ndimage.uniform_filter(image, 3, mode="nearest"), out=o),
             like(image)),
    ]  # fmt: skip


def measure(case: Case, rounds: int = 5) -> tuple[float, float]:
    """Median milliseconds of ours and of the peer, rounds interleaved, after one call of each."""
    case.ours(case.out)
    case.peer(case.out)
    ours, peer = [], []
    for _ in range(rounds):
        for f, seen in ((case.ours, ours), (case.peer, peer)):
            start = time.perf_counter()
            f(case.out)
            seen.append((time.perf_counter() - start) * 1e3)
    return statistics.median(ours), statistics.median(peer)


def main() -> None:
    print(f"{'kernel, float32':24} {'ms':>9} {'peer':>6} {'ms':>9} {'faster':>7}")
    for case in cases():
        ours, peer = measure(case)
        print(f"{case.name:24} {ours:9.3f} {case.peer_name:>6} {peer:9.3f} {peer / ours:6.1f}x")
