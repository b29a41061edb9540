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


def call_overhead(rounds: int = 15, calls: int = 20_000) -> dict[str, tuple[float, float]]:
    """Nanoseconds a call on 4 elements, by name: ours, and `np.add` on the very same arrays."""
    a, c = np.ones(4), np.empty(4)
    row, rows = np.ones((1, 4)), np.empty((1, 4))
    one = np.empty(1)

    def add() -> object:
        return np.add(a, a, out=c)

    def add_rows() -> object:
        return np.add(row, row, out=rows)

    candidates: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "exp(a, out=c)": (lambda: ts.exp(a, out=c), add),
        "clamp(a, out=c)": (lambda: ts.clamp(a, out=c), add),
        "cumsum(a, out=c)": (lambda: ts.cumsum(a, out=c), add),
        "softmax(x, out=y)": (lambda: ts.softmax(row, out=rows), add_rows),
        "matmul(x, x.T)": (lambda: ts.matmul(row, row.T), lambda: np.add(row, row)),
        "sum(x, axis=-1, out=s)": (lambda: ts.sum(row, axis=-1, out=one), add_rows),
        "exp(a)": (lambda: ts.exp(a), lambda: np.add(a, a)),
    }
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in candidates}
    for _ in range(rounds):
        for name, pair in candidates.items():
            for run, seen in zip(pair, times[name], strict=True):
                start = time.perf_counter()
                for _ in range(calls):
                    run()
                seen.append((time.perf_counter() - start) / calls * 1e9)
    return {name: (statistics.median(x), statistics.median(y)) for name, (x, y) in times.items()}


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
    print("a call on 4 elements    tilesmith   np.add on the same arrays")
    for name, (ours, add) in call_overhead().items():
        print(f"{name:20} {ours:9.0f} ns {add:9.0f} ns  {ours / add:5.2f}")
    imports = import_time()
    added = imports["numpy, tilesmith"] - imports["numpy"]
    print(f"import numpy {imports['numpy']:.1f} ms, tilesmith adds {added:.1f} ms")
