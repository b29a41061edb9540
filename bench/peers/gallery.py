"""Who else computes the gallery's operators: PyTorch where it has them, else SciPy or NumPy.

For each a function of the spec's inputs, in the order of its arguments, and named as the spec: of
tensors for PyTorch, which have the arrays' memory; of arrays for the others. All is said by the
peer's own operators, eager; several outputs come as a tuple.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import torch
import torch.nn.functional as F

from gen.ir.nodes import Intent

from ..suite import Call, Problem
from ..worker import Array

torch.set_num_threads(1)
torch.set_grad_enabled(False)

Tensor = torch.Tensor


@dataclass(frozen=True)
class Peer:
    """name: of the library. function: of the inputs."""

    name: str
    function: Callable[..., Any]

    def call(self, given: Problem) -> Call:
        """Tensors are made where it is asked first: always with the same arrays."""
        inputs = [a.name for a in given.spec.arguments if a.intent is not Intent.OUT]
        told: list[Any] = []

        def call(arrays: Mapping[str, Array]) -> Mapping[str, Array]:
            if not told:
                made = torch.from_numpy if self.name == "PyTorch" else np.asarray
                told.extend(made(arrays[name]) for name in inputs)
            found = self.function(*told)
            results = found if isinstance(found, tuple) else (found,)
            return {n: np.asarray(r) for n, r in zip(given.written, results, strict=True)}

        return call


PEERS: dict[str, Peer] = {}


def _peer(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        PEERS[function.__name__] = Peer(name, function)
        return function

    return keep


_torch, _scipy, _numpy = _peer("PyTorch"), _peer("SciPy"), _peer("NumPy")


# ---------------------------------------------------------------- products


@_torch
def product_nt(a: Tensor, b: Tensor) -> Tensor:
    return a @ b.T


@_torch
def product_tn(a: Tensor, b: Tensor) -> Tensor:
    return a.T @ b


@_torch
def product_tt(a: Tensor, b: Tensor) -> Tensor:
    return a.T @ b.T


@_torch
def batched_product(x: Tensor, y: Tensor) -> Tensor:
    return torch.matmul(x, y)


@_torch
def bilinear_form(x: Tensor, weight: Tensor, z: Tensor) -> Tensor:
    return F.bilinear(x, z, weight)


@_torch
def outer_product(x: Tensor, y: Tensor) -> Tensor:
    return torch.outer(x, y)


@_torch
def gram_matrix(x: Tensor) -> Tensor:
    return x.T @ x


@_torch
def attention_scores(q: Tensor, k: Tensor, bias: Tensor) -> Tensor:
    return (q @ k.mT).mul_(q.shape[-1] ** -0.5).add_(bias)


@_torch
def complex_product(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


@_torch
def expert_product(x: Tensor, expert: Tensor, weight: Tensor) -> Tensor:
    return torch.bmm(x[:, None], weight[expert])[:, 0]


# ---------------------------------------------------------------- convolutions


@_torch
def conv1d_dilated(x: Tensor, weight: Tensor) -> Tensor:
    return F.conv1d(x, weight, dilation=2)


@_torch
def conv1d_causal(x: Tensor, weight: Tensor) -> Tensor:
    k = weight.shape[1]
    return F.conv1d(F.pad(x, (k - 1, 0)), weight.flip(-1)[:, None], groups=x.shape[1])


@_torch
def conv2d_valid(x: Tensor, weight: Tensor) -> Tensor:
    return F.conv2d(x, weight)


@_torch
def conv2d_same(x: Tensor, weight: Tensor) -> Tensor:
    return F.conv2d(x, weight, padding=1)


@_torch
def conv2d_grouped(x: Tensor, weight: Tensor) -> Tensor:
    b, g, c, h, w = x.shape
    y = F.conv2d(x.reshape(b, g * c, h, w), weight.flatten(0, 1), groups=g)
    return y.reshape(b, g, -1, *y.shape[2:])


@_torch
def conv3d_valid(x: Tensor, weight: Tensor) -> Tensor:
    return F.conv3d(x, weight)


@_torch
def conv2d_transposed(x: Tensor, weight: Tensor) -> Tensor:
    return F.conv_transpose2d(x, weight, stride=2)


@_torch
def patches(x: Tensor, weight: Tensor) -> Tensor:
    return F.conv2d(x, weight, stride=4)


@_torch
def pointwise(x: Tensor, weight: Tensor) -> Tensor:
    return F.conv2d(x, weight[:, :, None, None])


# ---------------------------------------------------------------- poolings


@_torch
def max_pool1d_with_place(x: Tensor) -> tuple[Tensor, Tensor]:
    return F.max_pool1d(x, 2, return_indices=True)


@_torch
def max_pool3d(x: Tensor) -> Tensor:
    return F.max_pool3d(x, 2)


@_torch
def lp_pool2d(x: Tensor) -> Tensor:
    return F.lp_pool2d(x, 2.0, 2)


@_torch
def global_mean(x: Tensor) -> Tensor:
    return x.mean((2, 3))


@_torch
def sliding_mean(x: Tensor) -> Tensor:
    return F.avg_pool1d(x, 3, 1, 1, count_include_pad=False)


# ---------------------------------------------------------------- norms


@_torch
def instance_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.instance_norm(x, weight=weight, bias=bias)


@_torch
def batch_norm_inference(
    x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, bias: Tensor
) -> Tensor:
    return F.batch_norm(x, mean, variance, weight, bias)


@_torch
def l2_normalise(x: Tensor) -> Tensor:
    return F.normalize(x)


# ---------------------------------------------------------------- activations


@_torch
def elu(x: Tensor) -> Tensor:
    return F.elu(x)


@_torch
def selu(x: Tensor) -> Tensor:
    return F.selu(x)


@_torch
def leaky_relu(x: Tensor) -> Tensor:
    return F.leaky_relu(x)


@_torch
def hardswish(x: Tensor) -> Tensor:
    return F.hardswish(x)


@_torch
def mish(x: Tensor) -> Tensor:
    return F.mish(x)


@_torch
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    return F.prelu(x, slope)


@_torch
def glu(x: Tensor) -> Tensor:
    return F.glu(x)


@_torch
def swiglu(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return F.silu(a) * b


@_torch
def geglu(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return F.gelu(a) * b


# ---------------------------------------------------------------- losses


@_torch
def mse(x: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(x, target, reduction="none").mean(-1)


@_torch
def huber(x: Tensor, target: Tensor) -> Tensor:
    return F.huber_loss(x, target, reduction="none").mean(-1)


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
