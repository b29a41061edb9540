"""NumPy: ufuncs with `out=`, temporaries made by each call where an expression needs them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..worker import Array, Call, Maker

VERSION = np.__version__
_LUMINANCE = np.array([0.2125, 0.7154, 0.0721], np.float32)


def _with(function: Callable[..., Any], **options: Any) -> Maker:
    def make(out: Array | None, *arguments: Array) -> Call:
        return partial(function, *arguments, out=out, **options)

    return make


def _softmax(x: Array, out: Array | None) -> Array:
    e = np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    np.exp(e, out=e)
    return np.divide(e, e.sum(axis=-1, keepdims=True), out=e)


def _layer_norm(x: Array, weight: Array, bias: Array, out: Array | None) -> Array:
    y = np.subtract(x, x.mean(axis=-1, keepdims=True), out=out)
    y *= 1 / np.sqrt(np.einsum("ij,ij->i", y, y)[:, None] / x.shape[-1] + np.float32(1e-5))
    y *= weight
    y += bias
    return y


def _transpose(x: Array, out: Array | None) -> Array:
    if out is None:
        return np.ascontiguousarray(x.T)
    out[...] = x.T
    return out


def _rows_and_columns(x: Array) -> tuple[Array, Array]:
    """The sum of each 3 rows, padded, so that 3 slices of it are the sums over neighbourhoods."""
    p = np.pad(x, 1, mode="edge")
    return p, p[:-2] + p[1:-1] + p[2:]


def _blur(x: Array, out: Array | None) -> Array:
    _, rows = _rows_and_columns(x)
    y = np.add(rows[:, :-2], rows[:, 1:-1], out=out)
    y += rows[:, 2:]
    y *= np.float32(1 / 9)
    return y


def _unsharp(x: Array, out: Array | None) -> Array:
    y = _blur(x, out)
    return np.subtract(2 * x, y, out=y)


def _sobel(x: Array, out: Array | None) -> Array:
    p = np.pad(x, 1, mode="edge")
    smooth, slope = p[:-2] + 2 * p[1:-1] + p[2:], p[:-2] - p[2:]
    across = smooth[:, :-2] - smooth[:, 2:]
    along = slope[:, :-2] + 2 * slope[:, 1:-1] + slope[:, 2:]
    across *= across
    along *= along
    across += along
    across *= np.float32(1 / 32)
    return np.sqrt(across, out=out)


def _grey(rgb: Array, out: Array | None) -> Array:
    return np.asarray(np.matmul(rgb, _LUMINANCE, out=out))


def _linear(x: Array, weight: Array, bias: Array, out: Array | None) -> Array:
    y = np.matmul(x, weight, out=out)
    y += bias
    return np.maximum(y, 0, out=y)


def _norm(x: Array, axis: int, out: Array | None) -> Array:
    return np.asarray(np.linalg.norm(x, axis=axis))


def _multiply_add(x: Array, y: Array, z: Array, out: Array | None) -> Array:
    r = np.multiply(y, z, out=out)
    return np.add(r, 2 * x, out=r)


def _softplus(x: Array, out: Array | None) -> Array:
    return np.logaddexp(np.float32(0), x, out=out)


def _gelu_tanh(x: Array, out: Array | None) -> Array:
    y = np.multiply(x, x, out=out)
    y *= np.float32(0.044715 * np.sqrt(2 / np.pi))
    y += np.float32(np.sqrt(2 / np.pi))
    y *= x
    np.tanh(y, out=y)
    y += 1
    y *= x
    y *= np.float32(0.5)
    return y


def _rms_norm(x: Array, weight: Array, out: Array | None) -> Array:
    scale = 1 / np.sqrt(np.einsum("ij,ij->i", x, x)[:, None] / x.shape[-1] + np.float32(2**-23))
    y = np.multiply(x, scale, out=out)
    y *= weight
    return y


def _axpby(x: Array, y: Array, out: Array | None) -> Array:
    z = np.multiply(x, np.float32(2), out=out)
    z -= np.float32(3) * y
    return z


def _add_rms_norm(x: Array, residual: Array, weight: Array, out: Array | None) -> Array:
    return _rms_norm(x + residual, weight, out)


def _add_layer_norm(
    x: Array, residual: Array, weight: Array, bias: Array, out: Array | None
) -> Array:
    return _layer_norm(x + residual, weight, bias, out)


def _rope(x: Array, cosine: Array, sine: Array, out: Array | None) -> Array:
    y = np.empty_like(x) if out is None else out
    half = cosine.shape[-1]
    low, high = x[..., :half], x[..., half:]
    np.multiply(low, cosine, out=y[..., :half])
    y[..., :half] -= high * sine
    np.multiply(high, cosine, out=y[..., half:])
    y[..., half:] += low * sine
    return y


def _exclusive_cumsum(x: Array, out: Array | None) -> Array:
    y = np.cumsum(x, axis=-1, out=out)
    y -= x
    return y


def _reverse_cumsum(x: Array, out: Array | None) -> Array:
    y = np.empty_like(x) if out is None else out
    np.cumsum(x[:, ::-1], axis=-1, out=y[:, ::-1])
    return y


def _matvec_int8(weight: Array, scale: Array, x: Array, out: Array | None) -> Array:
    return np.einsum("mgk,mg,gk->m", weight.astype(np.float32), scale, x, optimize=True)


def _histogram(x: Array, out: Array | None) -> Array:
    return np.bincount(x, minlength=256)


def _attention(q: Array, k: Array, v: Array, out: Array | None) -> Array:
    scores = np.matmul(q, k.swapaxes(-1, -2))
    scores *= np.float32(1 / np.sqrt(q.shape[-1]))
    return np.asarray(np.matmul(_softmax(scores, scores), v, out=out))


_reductions = {
    "sum": np.sum, "mean": np.mean, "max": np.max, "argmax": np.argmax, "min": np.min,
    "argmin": np.argmin, "prod": np.prod, "var": np.var, "norm": _norm,
}  # fmt: skip

KERNELS = {
    "matmul": _with(np.matmul),
    "exp": _with(np.exp),
    "clamp": _with(np.clip, a_min=0, a_max=1),
    "cumsum": _with(np.cumsum, axis=-1),
    "grey": _with(_grey),
    **{f"{name}_first": _with(f, axis=0) for name, f in _reductions.items()},
    **{f"{name}_last": _with(f, axis=-1) for name, f in _reductions.items()},
    "softmax": _with(_softmax),
    "layer_norm": _with(_layer_norm),
    "transpose": _with(_transpose),
    "blur": _with(_blur),
    "unsharp": _with(_unsharp),
    "sobel": _with(_sobel),
    "linear": _with(_linear),
    **{name: _with(getattr(np, name)) for name in ("log", "log1p", "expm1", "tanh", "sin", "cos")},
    "multiply_add": _with(_multiply_add),
    "axpby": _with(_axpby),
    "add_layer_norm": _with(_add_layer_norm),
    "add_rms_norm": _with(_add_rms_norm),
    "mean_var": _with(np.var, axis=-1),
    "cumprod": _with(np.cumprod, axis=-1),
    "exclusive_cumsum": _with(_exclusive_cumsum),
    "reverse_cumsum": _with(_reverse_cumsum),
    "rope": _with(_rope),
    "matvec_int8": _with(_matvec_int8),
    "softplus": _with(_softplus),
    "gelu_tanh": _with(_gelu_tanh),
    "rms_norm": _with(_rms_norm),
    "histogram": _with(_histogram),
    "matmul_tn": _with(lambda a, b, out: np.matmul(a.T, b, out=out)),
    "matmul_nt": _with(lambda a, b, out: np.matmul(a, b.T, out=out)),
    "matmul_batch": _with(np.matmul),
    "matmul_tall": _with(np.matmul),
    "matvec": _with(np.matmul),
    "vecmat": _with(lambda a, x, out: np.matmul(a.T, x, out=out)),
    "trmm": _with(lambda a, b, out: np.matmul(np.tril(a), b, out=out)),
    "attention": _with(_attention),
}
