"""What the kernels compute, in float64: the references of `kernels`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
    return np.asarray(centred * scale * weight + bias)


def gelu(x: Array) -> Array:
    import scipy.special

    return np.asarray(x * scipy.special.ndtr(x))


def special(name: str) -> Callable[..., Array]:
    """A function of scipy.special, which is needed only where it is called."""

    def call(x: Array, **options: Any) -> Array:
        import scipy.special

        return np.asarray(getattr(scipy.special, name)(x, **options))

    return call


expit, log_softmax = special("expit"), partial(special("log_softmax"), axis=-1)


def gelu_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def rms_norm(x: Array, weight: Array) -> Array:
    return np.asarray(x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 2**-23) * weight)


def cross_entropy(x: Array, target: Array) -> Array:
    own = np.take_along_axis(x, target.astype(int)[:, None], -1)[:, 0]
    return np.asarray(special("logsumexp")(x, axis=-1) - own)


def histogram(x: Array) -> Array:
    return np.bincount(x.astype(int), minlength=256)


def blur(x: Array) -> Array:
    import scipy.ndimage

    return np.asarray(scipy.ndimage.uniform_filter(x, size=3, mode="nearest"))


def sobel(x: Array) -> Array:
    import scipy.ndimage

    down = scipy.ndimage.sobel(x, axis=0, mode="nearest") / 4
    across = scipy.ndimage.sobel(x, axis=1, mode="nearest") / 4
    return np.asarray(np.sqrt((down * down + across * across) / 2))


def grey(rgb: Array) -> Array:
    return np.asarray(rgb @ np.array([0.2125, 0.7154, 0.0721]))


def sqdist(x: Array, y: Array) -> Array:
    return np.stack([np.sum((row - y) ** 2, axis=-1) for row in x])


def attention(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return np.asarray(softmax(scores) @ v)


def scaled(weights: Array) -> Array:
    """The weights of a recurrence, in rows of length 1 or so: else its errors grow at each step."""
    rows: Array = weights / np.sqrt(weights.shape[-1]).astype(weights.dtype)
    return rows  # of whichever library they are


def lstm(*arguments: Array) -> Array:
    """The hidden states of all times."""
    x, w_ih, w_hh, b_ih, b_hh, h, c = arguments
    w_ih, w_hh, states = scaled(w_ih), scaled(w_hh), []
    for step in x:
        i, f, g, o = np.split(step @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, axis=-1)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        states.append(h)
    return np.stack(states)


def gaussian(x: Array) -> Array:
    import scipy.ndimage

    return np.asarray(scipy.ndimage.gaussian_filter(x, 1, mode="nearest"))


def heat2d(u: Array) -> Array:
    """One step."""
    y = u.copy()
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    y[1:-1, 1:-1] += 0.1 * (around - 4 * u[1:-1, 1:-1])
    return y


def resize(x: Array) -> Array:
    """224 by 224: between the centres of pixels, one axis after the other."""
    for axis in (0, 1):
        at = np.clip((np.arange(224) + 0.5) * x.shape[axis] / 224 - 0.5, 0, x.shape[axis] - 1)
        low = np.floor(at).astype(int)
        share = np.expand_dims(at - low, 1 - axis)
        high = np.minimum(low + 1, x.shape[axis] - 1)
        x = x.take(low, axis) * (1 - share) + x.take(high, axis) * share
    return x


def windows(x: Array, weight: Array) -> Array:
    return np.lib.stride_tricks.sliding_window_view(x, weight.shape[-2:], axis=(2, 3))


def conv2d(x: Array, weight: Array, bias: Array) -> Array:
    product = np.tensordot(windows(x, weight), weight, ((1, 4, 5), (1, 2, 3)))
    return np.asarray(np.moveaxis(product + bias, -1, 1))


def depthwise_conv2d(x: Array, weight: Array, bias: Array) -> Array:
    total = np.einsum("ncijpq,cpq->ncij", windows(x, weight), weight)
    return np.asarray(total + bias[:, None, None])


def mean_var(x: Array) -> Array:
    """The variance."""
    return np.asarray(x.var(axis=-1))


def rope(x: Array, cosine: Array, sine: Array) -> Array:
    """Pairs of features, half of them apart, are turned as complex numbers."""
    low, high = np.split(x, 2, axis=-1)
    return np.concatenate([low * cosine - high * sine, high * cosine + low * sine], axis=-1)


def exclusive_cumsum(x: Array) -> Array:
    return np.asarray(np.cumsum(x, axis=-1) - x)


def reverse_cumsum(x: Array) -> Array:
    return np.asarray(np.cumsum(x[..., ::-1], axis=-1)[..., ::-1])


def matvec_int8(weight: Array, scale: Array, x: Array) -> Array:
    return np.asarray(np.einsum("mgk,mg,gk->m", weight, scale, x))


def matvec_int4(weight: Array, scale: Array, x: Array) -> Array:
    bits = weight.astype(np.uint8)
    both = np.concatenate([bits & 15, bits >> 4], axis=-1) - 8.0
    return matvec_int8(both, scale, x)


def conv1d(x: Array, weight: Array, bias: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[-1], axis=2)
    return np.asarray(np.einsum("bcjq,kcq->bkj", windows, weight) + bias[:, None])


def conv3d(x: Array, weight: Array, bias: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axis=(2, 3, 4))
    return np.asarray(
        np.einsum("bczijpqt,kcpqt->bkzij", windows, weight) + bias[:, None, None, None]
    )


def conv_transpose2d(x: Array, weight: Array, bias: Array) -> Array:
    """With outputs two apart, of which one is cut off at each edge."""
    (n, c, h, w), (p, q) = x.shape, weight.shape[2:]
    wide = np.zeros((n, c, 2 * h + 2 * p - 3, 2 * w + 2 * q - 3), x.dtype)
    wide[:, :, p - 1 : p - 1 + 2 * h : 2, q - 1 : q - 1 + 2 * w : 2] = x
    windows = np.lib.stride_tricks.sliding_window_view(wide, (p, q), axis=(2, 3))
    windows = windows[:, :, 1:-1, 1:-1, ::-1, ::-1]
    return np.asarray(np.einsum("bcijpq,ckpq->bkij", windows, weight) + bias[:, None, None])


def pooled(x: Array, border: float, f: Callable[..., Array]) -> Array:
    """Of windows of 3 by 3 pixels, every second, with a border of one pixel."""
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1)), constant_values=border)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(1, 2))
    return f(windows[:, ::2, ::2], axis=(3, 4))


def unsharp_mask(x: Array) -> Array:
    return 2 * x - gaussian(x)
