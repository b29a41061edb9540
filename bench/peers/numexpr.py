"""numexpr: expressions compiled to its own virtual machine, in blocks over threads."""

from typing import Any

import numexpr as ne
import numpy as np

from ..worker import Array, Call

VERSION = ne.__version__


def _expression(text: str, out: Array | None, **variables: Any) -> Call:
    """Parsed and checked once; the call runs the compiled expression again."""
    ne.validate(text, local_dict=variables, out=out)
    return lambda: ne.re_evaluate(local_dict=variables)


def _softmax(out: Array | None, x: Array) -> Call:
    def call() -> Array:
        peak = x.max(axis=-1, keepdims=True)
        e = ne.evaluate("exp(x - peak)", local_dict={"x": x, "peak": peak}, out=out)
        total = e.sum(axis=-1, keepdims=True)
        return np.divide(e, total, out=e)

    return call


def _grey(out: Array | None, rgb: Array) -> Call:
    text = "a * r + b * g + c * d"
    weights = dict(zip("abc", np.array([0.2125, 0.7154, 0.0721], np.float32), strict=True))
    return _expression(text, out, **weights, r=rgb[:, 0], g=rgb[:, 1], d=rgb[:, 2])


def _blur(out: Array | None, x: Array) -> Call:
    third = np.float32(1 / 3)
    w = x.shape[1]

    def call() -> Array:
        p = np.pad(x, 1, mode="edge")
        rows = {"a": p[:-2], "b": p[1:-1], "c": p[2:], "third": third}
        column = ne.evaluate("(a + b + c) * third", local_dict=rows)
        across = {"a": column[:, :w], "b": column[:, 1 : w + 1], "c": column[:, 2:], "third": third}
        return np.asarray(ne.evaluate("(a + b + c) * third", local_dict=across, out=out))

    return call


KERNELS = {
    "exp": lambda out, x: _expression("exp(x)", out, x=x),
    "clamp": lambda out, x: _expression(
        "where(x < low, low, where(x > high, high, x))",
        out,
        x=x,
        low=np.float32(0),
        high=np.float32(1),
    ),
    "softmax": _softmax,
    "grey": _grey,
    "blur": _blur,
}
