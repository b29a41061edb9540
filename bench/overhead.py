"""What a call and an import cost: tilesmith on tiny arrays beside a NumPy ufunc.

Interleaved rounds in one process, medians. The budgets are 1.5 times `np.add(a, b, out=c)` for a
call, and 30 ms on top of `import numpy` for `import tilesmith`; `python -m bench overhead` prints
both.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import tilesmith as ts


def call_overhead(rounds: int = 15, calls: int = 20_000) -> dict[str, float]:
    """Nanoseconds a call, by name, on arrays of 4 elements."""
    a, b, c = np.ones(4), np.ones(4), np.empty(4)
    row, rows = np.ones((1, 4)), np.empty((1, 4))
    one = np.empty(1)
    candidates: dict[str, Callable[[], object]] = {
        "np.add(a, b, out=c)": lambda: np.add(a, b, out=c),
        "np.exp(a, out=c)": lambda: np.exp(a, out=c),
        "ts.exp(a, out=c)": lambda: ts.exp(a, out=c),
        "ts.clamp(a, out=c)": lambda: ts.clamp(a, out=c),
        "ts.softmax(x, out=y)": lambda: ts.softmax(row, out=rows),
        "ts.sum(x, out=y)": lambda: ts.sum(row, out=one),
        "ts.exp(a)": lambda: ts.exp(a),
    }
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, f in candidates.items():
            start = time.perf_counter()
            for _ in range(calls):
                f()
            times[name].append((time.perf_counter() - start) / calls * 1e9)
    return {name: statistics.median(t) for name, t in times.items()}


def import_time(rounds: int = 9) -> dict[str, float]:
    """Milliseconds to import NumPy, and NumPy with tilesmith, each in fresh interpreters."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    times: dict[str, list[float]] = {"numpy": [], "numpy, tilesmith": []}
    for _ in range(rounds):
        for modules, seen in times.items():
            run = subprocess.run(
                [sys.executable, "-c", code.format(modules)],
                capture_output=True,
                text=True,
                check=True,
            )
            seen.append(float(run.stdout) * 1e3)
    return {name: statistics.median(t) for name, t in times.items()}


def main() -> None:
    calls = call_overhead()
    budget = calls["np.add(a, b, out=c)"]
    for name, ns in calls.items():
        print(f"{name:24} {ns:7.0f} ns  {ns / budget:5.2f} of np.add")
    imports = import_time()
    added = imports["numpy, tilesmith"] - imports["numpy"]
    print(f"import numpy {imports['numpy']:.1f} ms, tilesmith adds {added:.1f} ms")
