"""tilesmith itself: as it is installed, or the build in the folder that BENCH_TILESMITH names."""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

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


def _with(function: Callable[..., Any], **options: Any) -> Maker:
    def make(out: Array | None, *arguments: Array) -> Call:
        return partial(function, *arguments, out=out, **options)

    return make


_plain = (
    *("matmul", "softmax", "exp", "layer_norm", "transpose", "blur", "cumsum"),
    *("gelu", "grey", "sobel", "unsharp"),
)
_reductions = ("sum", "mean", "max", "argmax")

KERNELS = {
    **{name: _with(getattr(ts, name)) for name in _plain},
    **{f"{name}_first": _with(getattr(ts, name), axis=0) for name in _reductions},
    **{f"{name}_last": _with(getattr(ts, name), axis=-1) for name in _reductions},
    "clamp": _with(ts.clamp, low=0, high=1),
    "linear": _with(ts.linear, relu=True),
}
