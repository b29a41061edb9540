"""Peers that do what a peer must not do: the benchmark has to say so by name."""

import os
import signal
from collections.abc import Callable
from typing import Any

import numpy as np

VERSION = "0"


def _wrong(out: Any, x: Any) -> Callable[[], Any]:
    return lambda: np.add(np.exp(x), 0.5, out=out)


def _misshapen(out: Any, x: Any) -> Callable[[], Any]:
    return lambda: x.max(axis=1)


def _raising(out: Any, x: Any) -> Callable[[], Any]:
    raise ValueError("no such thing\nas this")


def _crashing(out: Any, x: Any) -> Callable[[], Any]:
    return lambda: os.kill(os.getpid(), signal.SIGSEGV)


def _crashing_later(out: Any, a: Any, b: Any) -> Callable[[], Any]:
    calls = iter([True])

    def call() -> Any:
        if not next(calls, False):
            os.kill(os.getpid(), signal.SIGKILL)
        return np.matmul(a, b, out=out)

    return call


KERNELS: dict[str, Callable[..., Any]] = {
    "exp": _wrong,
    "max_first": _misshapen,
    "clamp": _raising,
    "gelu": _crashing,
    "matmul": _crashing_later,
    "transpose": lambda out, x: None,  # not for this size
    "sum_first": lambda out, x: lambda: np.sum(x, axis=0, out=out),
}
