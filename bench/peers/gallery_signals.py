"""The second half of who else computes the gallery's operators: see `gallery`."""

import numpy as np
import scipy
import torch
import torch.nn.functional as F

from ..worker import Array
from .gallery import PEERS, peer

__all__ = ["PEERS"]  # all

Tensor = torch.Tensor

_torch, _scipy, _numpy = peer("PyTorch"), peer("SciPy"), peer("NumPy")


# ---------------------------------------------------------------- scans


@_torch
def logcumsumexp(x: Tensor) -> Tensor:
    return torch.logcumsumexp(x, -1)


@_torch
def running_max(x: Tensor) -> Tensor:
    return torch.cummax(x, -1)[0]


@_torch
def exclusive_product(x: Tensor) -> Tensor:
    return F.pad(torch.cumprod(x[:, :-1], -1), (1, 0), value=1.0)


@_torch
def masked_sum(x: Tensor, mask: Tensor) -> Tensor:
    return torch.cumsum(x * mask, -1)


@_scipy
def smoothing(x: Array) -> Array:
    a = np.float32(0.25)
    return scipy.signal.lfilter([a], np.array([1, a - 1], np.float32), x, zi=x[:, :1] * (1 - a))[0]


@_torch
def gated_recurrence(a: Tensor, x: Tensor) -> Tensor:
    h = torch.empty_like(x)
    state = h[:, 0] = x[:, 0]
    for t in range(1, x.shape[1]):
        state = h[:, t] = torch.addcmul(x[:, t], a[:, t], state)
    return h


@_scipy
def biquad(x: Array) -> Array:
    return scipy.signal.lfilter(
        np.array([0.2, 0.4, 0.2], np.float32), np.array([1, -0.4, 0.2], np.float32), x
    )


# ---------------------------------------------------------------- resampling


@_torch
def upsample_nearest(x: Tensor) -> Tensor:
    return F.interpolate(x[None], scale_factor=2)[0]


@_torch
def upsample_bilinear(x: Tensor) -> Tensor:
    return F.interpolate(x[None], scale_factor=2, mode="bilinear")[0]


@_torch
def upsample_cubic(x: Tensor) -> Tensor:
    return F.interpolate(x[None, :, None], scale_factor=(1, 2), mode="bicubic")[0, :, 0]


@_torch
def downsample_box(x: Tensor) -> Tensor:
    return F.avg_pool2d(x, 2)


@_scipy
def grid_sample(x: Array, row: Array, column: Array) -> Array:
    at = np.stack([row, column])
    return np.stack([scipy.ndimage.map_coordinates(z, at, order=1, mode="nearest") for z in x])


@_torch
def pixel_shuffle(x: Tensor) -> Tensor:
    return F.pixel_shuffle(x.flatten(0, 2), 2)


# ---------------------------------------------------------------- reductions


@_torch
def max_with_place(x: Tensor) -> tuple[Tensor, Tensor]:
    return tuple(torch.max(x, -1))


@_torch
def nearest_neighbour(x: Tensor, z: Tensor) -> Tensor:
    return torch.cdist(x, z, compute_mode="donot_use_mm_for_euclid_dist").argmin(-1)


# ---------------------------------------------------------------- chains


@_torch
def product_gelu_residual(x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    return residual + F.gelu(torch.addmm(bias, x, weight))


@_torch
def conv_norm_relu(x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return F.conv2d(x, weight).mul_(scale[:, None, None]).add_(shift[:, None, None]).relu_()


@_torch
def feed_forward(x: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return torch.addmm(x, torch.relu_(x @ up), down)


# ---------------------------------------------------------------- images


@_scipy
def laplacian(x: Array) -> Array:
    return np.stack([scipy.ndimage.laplace(image, mode="nearest") for image in x])


@_scipy
def median3x3(x: Array) -> Array:
    return scipy.ndimage.median_filter(x, (1, 3, 3))[:, 1:-1, 1:-1]


@_torch
def dilation(x: Tensor) -> Tensor:
    return F.max_pool2d(x, 3, 1, 1)


@_scipy
def sobel_edges(x: Array) -> Array:
    slopes = (scipy.ndimage.sobel(image, axis)[1:-1, 1:-1] for image in x for axis in (0, 1))
    down, right = np.stack([*slopes]).reshape(-1, 2, x.shape[1] - 2, x.shape[2] - 2).swapaxes(0, 1)
    return (down * down + right * right > 16).astype(np.uint8)


@_torch
def harris(x: Tensor) -> Tensor:
    down = (x[:, 2:, 1:-1] - x[:, :-2, 1:-1]) * 0.5
    right = (x[:, 1:-1, 2:] - x[:, 1:-1, :-2]) * 0.5
    sums = F.avg_pool2d(torch.stack([down * down, right * right, down * right]), 3, 1) * 9
    dd, rr, dr = sums
    return dd * rr - dr * dr - 0.05 * (dd + rr) ** 2


@_numpy
def ycbcr(x: Array) -> Array:
    mixed = x @ _YCBCR
    mixed += _HALF
    return mixed


_YCBCR = np.array(
    [[0.299, -0.168736, 0.5], [0.587, -0.331264, -0.418688], [0.114, 0.5, -0.081312]], np.float32
)
_HALF = np.array([0, 0.5, 0.5], np.float32)


@_numpy
def equalise(x: Array, table: Array) -> Array:
    return table[x]


# ---------------------------------------------------------------- signals


@_scipy
def fir(x: Array, taps: Array) -> Array:
    return scipy.signal.lfilter(taps, np.float32(1), x)


@_numpy
def autocorrelation(x: Array) -> Array:
    n = x.shape[1]
    lags = (np.einsum("ij,ij->i", x[:, : n - k], x[:, k:]) for k in range(16))
    return np.stack([*lags], axis=1)


@_numpy
def haar(x: Array) -> tuple[Array, Array]:
    root = np.float32(0.5**0.5)
    return (x[:, ::2] + x[:, 1::2]) * root, (x[:, ::2] - x[:, 1::2]) * root


@_torch
def decimate(x: Tensor, taps: Tensor) -> Tensor:
    return F.conv1d(x[:, None], taps[None, None], stride=2)[:, 0]


# ---------------------------------------------------------------- lookups


@_torch
def one_hot(at: Tensor) -> Tensor:
    return F.one_hot(at, 1000).float()


@_torch
def embedding_bag(at: Tensor, table: Tensor) -> Tensor:
    return F.embedding_bag(at, table, mode="sum")


@_torch
def gather(x: Tensor, at: Tensor) -> Tensor:
    return torch.gather(x, -1, at)


@_torch
def scatter_add(at: Tensor, x: Tensor) -> Tensor:
    return torch.zeros(512, x.shape[1]).index_add_(0, at, x)


@_torch
def rope_pairs(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cosine - odd * sine, odd * cosine + even * sine], -1).flatten(-2)
