"""Who else computes the gallery's operators: PyTorch where it has them, else SciPy or NumPy.

For each a function of the spec's inputs, in the order of its arguments, and named as the spec: of
tensors for PyTorch, which have the arrays' memory; of arrays for the others. All is said by the
peer's own operators, eager; several outputs come as a tuple.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
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


def peer(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        PEERS[function.__name__] = Peer(name, function)
        return function

    return keep


_torch = peer("PyTorch")


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
