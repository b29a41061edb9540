"""tilesmith itself: as it is installed, or the build in the folder that BENCH_TILESMITH names."""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..references import scaled
from ..worker import Array, Call, Maker

FOLDER = os.environ.get("BENCH_TILESMITH")
if FOLDER:
    # An editable install has a finder of its own, which would come before any folder.
    sys.meta_path[:] = [finder for finder in sys.meta_path if isinstance(finder, type)]
    sys.path.insert(0, FOLDER)

import tilesmith as ts  # noqa: E402 - from where the lines above say

if FOLDER and not Path(ts.__file__).is_relative_to(FOLDER):
    raise ImportError(f"tilesmith is in {Path(ts.__file__).parent}, not in {FOLDER}")

_config = ts.show_config(mode="dicts")
VERSION = f"{_config['version']}, {_config['level']}, {_config['compiler']}"


def how() -> str:
    """The variant of the latest call, and whether slices were packed for it."""
    latest = getattr(ts, "last_call", dict)()  # older commits have none
    if not latest:
        return ""
    return f"variant {latest['variant']}" + ", packed" * bool(latest["packed"])


def _with(function: Callable[..., Any], **options: Any) -> Maker:
    def make(out: Array | None, *arguments: Array) -> Call:
        return partial(function, *arguments, out=out, **options)

    return make


def _lstm(out: Array | None, *arguments: Array) -> Call:
    x, w_ih, w_hh, *others = arguments
    w_ih, w_hh = scaled(w_ih), scaled(w_hh)
    outs = (out, None)
    return lambda: ts.lstm(x, w_ih, w_hh, *others, out=outs)[0]


def _one_of_two(function: Callable[..., Any], which: int, **options: Any) -> Maker:
    """Where a kernel has two results, one of them."""

    def make(out: Array | None, *arguments: Array) -> Call:
        outs = (out, None) if which == 0 else (None, out)
        return lambda: function(*arguments, out=outs, **options)[which]

    return make


_plain = (
    *("matmul", "softmax", "exp", "layer_norm", "transpose", "blur", "cumsum"),
    *("gelu", "grey", "sobel", "unsharp", "log", "log1p", "expm1", "tanh", "sin", "cos", "sigmoid"),
    *("silu", "gelu_tanh", "softplus", "log_softmax", "rms_norm", "cross_entropy", "histogram"),
    *("matvec", "triangular_solve", "trmm", "sqdist", "attention"),
    *("gaussian", "heat2d", "resize", "conv2d", "depthwise_conv2d", "unsharp_mask", "conv1d"),
    "conv3d",
    *("exclusive_cumsum", "reverse_cumsum", "cumprod", "rope", "matvec_int8", "matvec_int4"),
)
_reductions = (
    *("sum", "mean", "max", "min", "argmax", "argmin", "prod", "var", "norm", "logsumexp"),
)

KERNELS = {
    **{name: _with(getattr(ts, name)) for name in _plain},
    **{f"{name}_first": _with(getattr(ts, name), axis=0) for name in _reductions},
    **{f"{name}_last": _with(getattr(ts, name), axis=-1) for name in _reductions},
    "clamp": _with(ts.clamp, low=0, high=1),
    "linear": _with(ts.linear, activation="relu"),
    "multiply_add": _with(ts.multiply_add, a=2),
    "axpby": _with(ts.axpby, a=2, b=-3),
    "add_layer_norm": _one_of_two(ts.add_layer_norm, 0),
    "add_rms_norm": _one_of_two(ts.add_rms_norm, 0, epsilon=2**-23),  # the reference's
    "mean_var": _one_of_two(ts.mean_var, 1, axis=-1),
    "conv_transpose2d": _with(ts.conv_transpose2d, stride=2, padding=1),
    "max_pool2d": _with(ts.max_pool2d, size=3, padding=1),
    "avg_pool2d": _with(ts.avg_pool2d, size=3, padding=1),
    "matmul_tn": _with(lambda a, b, out: ts.matmul(a.T, b, out=out)),
    "matmul_nt": _with(lambda a, b, out: ts.matmul(a, b.T, out=out)),
    "matmul_batch": _with(ts.matmul),
    "matmul_tall": _with(ts.matmul),
    "vecmat": _with(lambda a, x, out: ts.matvec(a.T, x, out=out)),
    "lstm": _lstm,
}
