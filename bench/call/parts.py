"""The parts of a call's time, by calls that stop after each step.

Input: calls as Python writes them. Output: the least nanoseconds of each of their states, and the
table of differences between them.
"""

import math
import timeit
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, final

import numpy as np

from build_tools import markdown

from .. import ROOT
from . import stopped
from .stopped import NOTHING, ONE, STEPS, WHOLE

PAGE = ROOT / "docs" / "bench.md"
HEADING = "## What a call takes\n"
COMMAND = "`python -m bench call --write`"
SAMPLE = 2e-4  # seconds of calls in a sample, some
HEAD = (
    *("call", "NumPy", "tilesmith", "Python", "types", "checks", "result", "plan", "variant"),
    *("kernel", "sum"),
)


@final
@dataclass(frozen=True, slots=True)
class Call:
    """Statements of ours and of NumPy's, in which f is the function and x, y, ... are arrays; other
    is "" where NumPy has no such function.
    """

    name: str
    kernel: str
    ours: str
    numpy: str
    arrays: Mapping[str, np.ndarray[Any, Any]]


def calls() -> Iterator[Call]:
    for told, count in (("1 element", 1), ("1 KB", 256), ("64 KB", 16384)):
        x = np.linspace(-1, 1, count, dtype=np.float32)
        arrays = {"x": x, "y": np.empty_like(x)}
        yield Call(f"exp, {told}", "exp", "f(x, out=y)", "np.exp(x, out=y)", arrays)
        yield Call(f"exp, {told}, new", "exp", "f(x)", "np.exp(x)", arrays)
    x = np.linspace(-1, 1, 256, dtype=np.float32)
    yield Call(
        "clamp, 1 KB", "clamp", "f(x, 0, 1, out=y)", "np.clip(x, 0, 1, out=y)",
        {"x": x, "y": np.empty_like(x)},
    )  # fmt: skip
    x = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    arrays = {"x": x, "y": np.empty(64, np.float32)}
    for axis in (0, 1):
        statement = f"f(x, axis={axis}, out=y)"
        yield Call(f"sum, 64x64, axis {axis}", "sum", statement, f"np.sum{statement[1:]}", arrays)
    yield Call("sum, 64x64, axis 1, new", "sum", "f(x, axis=1)", "np.sum(x, axis=1)", arrays)
    a, b = (np.ones(shape, np.float32) for shape in ((8, 96), (96, 64)))
    arrays = {"a": a, "b": b, "y": np.empty((8, 64), np.float32)}
    yield Call("matmul, 8x64x96", "matmul", "f(a, b, out=y)", "np.matmul(a, b, out=y)", arrays)
    yield Call("matmul, 8x64x96, new", "matmul", "f(a, b)", "np.matmul(a, b)", arrays)
    x = np.linspace(-1, 1, 16 * 64, dtype=np.float32).reshape(16, 64)
    yield Call("softmax, 16x64", "softmax", "f(x, out=y)", "", {"x": x, "y": np.empty_like(x)})


# ---------------------------------------------------------------- measuring


@final
@dataclass(frozen=True, slots=True)
class State:
    """What a call of the stopped binding does: the last step, 0 for all; which kernels it has."""

    stop: int = 0
    kernels: int = WHOLE


STOPS = tuple(State(number) for number in range(1, len(STEPS) + 1))
ENDS = (State(0, ONE), State(0, NOTHING), State(0, WHOLE))


@final
@dataclass(frozen=True, slots=True)
class Times:
    """Nanoseconds: of the package's call and of NumPy's, and of the stopped binding's by state."""

    package: float
    numpy: float | None
    states: Mapping[State, float]


def measured(rounds: int) -> dict[str, Times]:
    """By the call's name, in rounds that go through all states of all calls."""
    import tilesmith as ts

    ts.set_num_threads(1)
    module = stopped.load(ts)
    module.set_num_threads(1)
    every = list(calls())
    best: dict[tuple[str, object], float] = {}
    loop = math.inf  # what is not of the call

    def sample(call: Call, what: object, statement: str, function: object) -> None:
        least = _nanoseconds(statement, {"f": function, "np": np, **call.arrays})
        key = (call.name, what)
        best[key] = min(best.get(key, least), least)

    for _ in range(rounds):
        loop = min(loop, _nanoseconds("pass", {}))
        for call in every:
            sample(call, "package", call.ours, getattr(ts, call.kernel))
            if call.numpy:
                sample(call, "numpy", call.numpy, None)
            for state in (*STOPS, *ENDS):
                _set(module, ts, state)
                sample(call, state, call.ours, getattr(module, call.kernel))
    best = {key: least - loop for key, least in best.items()}
    return {
        call.name: Times(
            best[call.name, "package"],
            best.get((call.name, "numpy")),
            {state: best[call.name, state] for state in (*STOPS, *ENDS)},
        )
        for call in every
    }


def _set(module: ModuleType, package: object, state: State) -> None:
    stopped.use(module, package, state.kernels)
    module.stop_at(state.stop)


def _nanoseconds(statement: str, names: dict[str, object]) -> float:
    """Of one turn of a loop around the statement."""
    timer = timeit.Timer(statement, globals=names)
    once = max(timer.timeit(20) / 20, 1e-8)
    number = max(20, int(SAMPLE / once))
    return min(timer.timeit(number) / number for _ in range(3)) * 1e9


# ---------------------------------------------------------------- the table


def differences(states: Mapping[State, float]) -> list[float]:
    """Python, types, checks, result, plan, variant, kernel: together the whole call."""
    call, types, sizes, result, overlap = (states[state] for state in STOPS)
    one, nothing, whole = (states[state] for state in ENDS)
    checks = sizes - types + overlap - result
    return [
        *(call, types - call, checks, result - sizes),
        *(one - overlap, nothing - one, whole - nothing),
    ]


def table(found: Mapping[str, Times]) -> Iterator[str]:
    yield from markdown.table(
        HEAD, "l" + "r" * (len(HEAD) - 1), (_cells(name, times) for name, times in found.items())
    )


def _cells(name: str, times: Times) -> Iterator[str]:
    yield name
    yield "" if times.numpy is None else f"{times.numpy:.0f}"
    yield f"{times.package:.0f}"
    yield from (f"{part:.0f}" for part in differences(times.states))
    yield f"{times.states[ENDS[-1]]:.0f}"


def main(rounds: int, *, write: bool, told: Callable[[str], None] = print) -> None:
    lines: Sequence[str] = list(table(measured(rounds)))
    told("\n".join(lines))
    if write:
        from ..suite import keep  # which needs SciPy

        keep(PAGE, f"Nanoseconds, on one thread, on {{date}} ({COMMAND}).\n", lines, HEADING)
