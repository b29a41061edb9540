"""Who else computes the gallery's operators: PyTorch where it has them, else SciPy or NumPy.

A function of a spec's inputs, in the order of its arguments, for each, named as the spec: of tensors for
PyTorch, which have the arrays' memory; of arrays for the others. What is given is given by the
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


# ---------------------------------------------------------------- convolutions


@_torch
def conv2d_valid(x: Tensor, weight: Tensor) -> Tensor:
    return F.conv2d(x, weight)


# ---------------------------------------------------------------- poolings


@_torch
def max_pool3d(x: Tensor) -> Tensor:
    return F.max_pool3d(x, 2)


# ---------------------------------------------------------------- norms


@_torch
def instance_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.instance_norm(x, weight=weight, bias=bias)


# ---------------------------------------------------------------- activations


@_torch
def mish(x: Tensor) -> Tensor:
    return F.mish(x)


# ---------------------------------------------------------------- losses


@_torch
def huber(x: Tensor, target: Tensor) -> Tensor:
    return F.huber_loss(x, target, reduction="none").mean(-1)


# ---------------------------------------------------------------- scans


@_torch
def logcumsumexp(x: Tensor) -> Tensor:
    return torch.logcumsumexp(x, -1)


# ---------------------------------------------------------------- resampling


@_torch
def upsample_bilinear(x: Tensor) -> Tensor:
    return F.interpolate(x[None], scale_factor=2, mode="bilinear")[0]


# ---------------------------------------------------------------- reductions


@_torch
def max_with_place(x: Tensor) -> tuple[Tensor, Tensor]:
    return tuple(torch.max(x, -1))


# ---------------------------------------------------------------- chains


@_torch
def product_gelu_residual(x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    return residual + F.gelu(torch.addmm(bias, x, weight))


# ---------------------------------------------------------------- images


@_scipy
def laplacian(x: Array) -> Array:
    return np.stack([scipy.ndimage.laplace(image, mode="nearest") for image in x])


# ---------------------------------------------------------------- signals


@_scipy
def fir(x: Array, taps: Array) -> Array:
    return scipy.signal.lfilter(taps, np.float32(1), x)


# ---------------------------------------------------------------- lookups


@_torch
def one_hot(at: Tensor) -> Tensor:
    return F.one_hot(at, 1000).float()
