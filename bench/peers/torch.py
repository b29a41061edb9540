"""PyTorch, eager: `out=` where an operator has it; the others' results come from kept memory."""

import os
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from ..references import scaled
from ..worker import Array, Call, Maker

VERSION = torch.__version__
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
torch.set_grad_enabled(False)

Tensor = torch.Tensor
aten = torch.ops.aten
_luminance = torch.tensor([0.2125, 0.7154, 0.0721])
_reductions = {
    f"{name}_{place}": (function, axis)
    for name, function in (
        ("sum", torch.sum), ("mean", torch.mean), ("max", torch.amax), ("argmax", torch.argmax),
        ("min", torch.amin), ("argmin", torch.argmin), ("prod", torch.prod),
        ("logsumexp", torch.logsumexp),
    )
    for axis, place in ((0, "first"), (1, "last"))
}  # fmt: skip


def _var(x: Tensor, axis: int) -> Tensor:
    return torch.var(x, axis, correction=0)


def _norm(x: Tensor, axis: int) -> Tensor:
    return torch.linalg.vector_norm(x, dim=axis)


# Without `out=` here.
_fresh = {
    f"{name}_{place}": (function, axis)
    for name, function in (("var", _var), ("norm", _norm))
    for axis, place in ((0, "first"), (1, "last"))
}
_elementwise = {
    "log": torch.log, "log1p": torch.log1p, "expm1": torch.expm1, "tanh": torch.tanh,
    "sin": torch.sin, "cos": torch.cos, "sigmoid": torch.sigmoid,
}  # fmt: skip


def _padded(x: Tensor) -> Tensor:
    if torch.compiler.is_compiling():  # it compiles this to less
        rows = torch.cat([x[:1], x, x[-1:]])
        return torch.cat([rows[:, :1], rows, rows[:, -1:]], 1)
    return F.pad(x[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]


def blur(x: Tensor) -> Tensor:
    p = _padded(x)
    rows = p[:-2] + p[1:-1] + p[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) * (1 / 9)


def sobel(x: Tensor) -> Tensor:
    p = _padded(x)
    smooth, slope = p[:-2] + 2 * p[1:-1] + p[2:], p[:-2] - p[2:]
    across = smooth[:, :-2] - smooth[:, 2:]
    along = slope[:, :-2] + 2 * slope[:, 1:-1] + slope[:, 2:]
    return torch.sqrt((across * across + along * along) * (1 / 32))


_offsets = torch.arange(-4, 5)
_bell = torch.exp(-0.5 * _offsets**2) / torch.exp(-0.5 * _offsets**2).sum()


def gaussian(x: Tensor) -> Tensor:
    bell, padded = _bell.to(x), F.pad(x[None, None], (4, 4, 4, 4), mode="replicate")
    return F.conv2d(F.conv2d(padded, bell.view(1, 1, 9, 1)), bell.view(1, 1, 1, 9))[0, 0]


def lstm(*arguments: Tensor) -> Tensor:
    x, w_ih, w_hh, b_ih, b_hh, h, c = arguments
    weights = (w_ih, w_hh, b_ih, b_hh)
    return torch.lstm(x, (h[None], c[None]), weights, True, 1, 0.0, False, False, False)[0]


def _distances(x: Tensor, y: Tensor) -> Tensor:
    exact = "donot_use_mm_for_euclid_dist"
    return torch.cdist(x, y, compute_mode=exact).square_()


def heat2d(u: Tensor) -> Tensor:
    y = u.clone()
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    y[1:-1, 1:-1] += 0.1 * (around - 4 * u[1:-1, 1:-1])
    return y


def _rope(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    low, high = x.chunk(2, -1)
    return torch.cat((low * cosine - high * sine, high * cosine + low * sine), -1)


def _matvec_int8(weight: Tensor, scale: Tensor, x: Tensor) -> Tensor:
    return (weight * scale[..., None]).flatten(1) @ x.flatten()


def _matvec_int4(weight: Tensor, scale: Tensor, x: Tensor) -> Tensor:
    both = torch.cat((weight & 15, weight >> 4), -1) - 8.0
    return _matvec_int8(both, scale, x)


# Each from its arguments to a new result: what is compiled, too.
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "matmul": torch.matmul,
    "linear": lambda x, w, b: torch.relu(torch.addmm(b, x, w)),
    "softmax": lambda x: torch.softmax(x, -1),
    "layer_norm": lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b, 1e-5),
    "exp": torch.exp,
    "gelu": F.gelu,
    "clamp": lambda x: torch.clamp(x, 0, 1),
    "transpose": lambda x: x.t().contiguous(),
    "cumsum": lambda x: torch.cumsum(x, -1),
    "grey": lambda rgb: rgb @ _luminance.to(rgb),
    "blur": blur,
    "sobel": sobel,
    "unsharp": lambda x: 2 * x - blur(x),
    **_elementwise,
    "silu": F.silu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus": F.softplus,
    "multiply_add": lambda x, y, z: torch.addcmul(2 * x, y, z),
    "axpby": lambda x, y: torch.add(2 * x, y, alpha=-3),
    "add_layer_norm": lambda x, r, w, b: F.layer_norm(x + r, (x.shape[-1],), w, b, 1e-5),
    "add_rms_norm": lambda x, r, w: F.rms_norm(x + r, (x.shape[-1],), w),
    "mean_var": lambda x: torch.var_mean(x, -1, correction=0)[0],
    "cumprod": lambda x: torch.cumprod(x, -1),
    "exclusive_cumsum": lambda x: torch.cumsum(x, -1) - x,
    "reverse_cumsum": lambda x: torch.flip(torch.cumsum(torch.flip(x, (-1,)), -1), (-1,)),
    "rope": _rope,
    "matvec_int8": _matvec_int8,
    "matvec_int4": _matvec_int4,
    "max_pool2d": lambda x: F.max_pool2d(x[None], 3, 2, 1)[0],
    "avg_pool2d": lambda x: F.avg_pool2d(x[None], 3, 2, 1)[0],
    "conv1d": F.conv1d,
    "conv3d": F.conv3d,
    "conv_transpose2d": lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1),
    "unsharp_mask": lambda x: 2 * x - gaussian(x),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "rms_norm": lambda x, w: F.rms_norm(x, (x.shape[-1],), w),
    "cross_entropy": lambda x, target: F.cross_entropy(x, target, reduction="none"),
    "histogram": lambda x: torch.bincount(x, minlength=256),
    **{
        name: lambda x, f=f, axis=axis: f(x, axis)
        for name, (f, axis) in (_reductions | _fresh).items()
    },
    "matmul_tn": lambda a, b: a.t() @ b,
    "matmul_nt": lambda a, b: a @ b.t(),
    "matmul_batch": torch.matmul,
    "matmul_tall": torch.matmul,
    "matvec": torch.mv,
    "vecmat": lambda a, x: torch.mv(a.t(), x),
    "triangular_solve": lambda a, b: torch.linalg.solve_triangular(a, b, upper=False),
    "trmm": lambda a, b: torch.tril(a) @ b,
    "sqdist": _distances,
    "attention": F.scaled_dot_product_attention,
    "lstm": lstm,
    "resize": lambda x: F.interpolate(x[None, None], (224, 224), mode="bilinear")[0, 0],
    "heat2d": heat2d,
    "gaussian": gaussian,
    "conv2d": F.conv2d,
    "depthwise_conv2d": lambda x, w, b: F.conv2d(x, w[:, None], b, groups=len(w)),
}


def _layer_norm_out(x: Tensor, w: Tensor, b: Tensor, out: Tensor) -> Tensor:
    moments = torch.empty(2, x.shape[0], 1)
    shape = (x.shape[-1],)
    aten.native_layer_norm.out(x, shape, w, b, 1e-5, out0=out, out1=moments[0], out2=moments[1])
    return out


# The same into `out`, where PyTorch can.
FILLING: dict[str, Callable[..., Tensor]] = {
    "matmul": lambda a, b, out: torch.matmul(a, b, out=out),
    "linear": lambda x, w, b, out: torch.addmm(b, x, w, out=out).relu_(),
    "softmax": lambda x, out: torch.softmax(x, -1, out=out),
    "layer_norm": _layer_norm_out,
    "exp": lambda x, out: torch.exp(x, out=out),
    "gelu": lambda x, out: aten.gelu.out(x, out=out),
    "gelu_tanh": lambda x, out: aten.gelu.out(x, approximate="tanh", out=out),
    "silu": lambda x, out: aten.silu.out(x, out=out),
    "softplus": lambda x, out: aten.softplus.out(x, out=out),
    "log_softmax": lambda x, out: torch.log_softmax(x, -1, out=out),
    **{name: lambda x, out, f=f: f(x, out=out) for name, f in _elementwise.items()},
    "clamp": lambda x, out: torch.clamp(x, 0, 1, out=out),
    "transpose": lambda x, out: out.copy_(x.t()),
    "cumsum": lambda x, out: torch.cumsum(x, -1, out=out),
    "grey": lambda rgb, out: torch.matmul(rgb, _luminance, out=out),
    **{
        name: lambda x, out, f=f, axis=axis: f(x, axis, out=out)
        for name, (f, axis) in _reductions.items()
    },
}


def _maker(name: str) -> Maker:
    def make(out: Array | None, *arguments: Array) -> Call:
        given = [
            scaled(x) if name == "lstm" and k in (1, 2) else x for k, x in enumerate(arguments)
        ]
        tensors: list[Any] = [torch.from_numpy(x) for x in given]
        if out is None or name not in FILLING:
            return lambda: FUNCTIONS[name](*tensors)
        into = torch.from_numpy(out)
        return lambda: FILLING[name](*tensors, out=into)

    return make


KERNELS = {name: _maker(name) for name in FUNCTIONS}
