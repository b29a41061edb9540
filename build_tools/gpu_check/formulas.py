"""The eight kernels as formulas over large arrays: what is right, how near, and what peers call.

`F` has what the formulas need of CuPy, or of NumPy and SciPy: the same text runs on both. Exact
results are computed in float64; of float64 itself twice the spec's bound is allowed, since the
formula rounds, too. A test compares the bounds with those of the specs.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod, sqrt
from types import ModuleType
from typing import Any, final

Array = Any  # of NumPy or of CuPy


@final
@dataclass(frozen=True, slots=True)
class F:
    """xp: CuPy or NumPy. special, ndimage: SciPy's modules or CuPy's of that name."""

    xp: ModuleType
    special: Any
    ndimage: Any

    def eps(self, dtype: Any) -> float:
        return float(self.xp.finfo(dtype).eps)

    def ulp(self, value: Array, dtype: Any) -> Array:
        """The distance of each value to the next larger one of the type in magnitude."""
        info = self.xp.finfo(dtype)
        _, exponent = self.xp.frexp(self.xp.abs(value.astype(dtype)).astype("f8"))
        least = int(info.minexp) - int(info.nmant)
        return self.xp.ldexp(1.0, self.xp.maximum(exponent - 1 - int(info.nmant), least))


@final
@dataclass(frozen=True, slots=True)
class Formula:
    """exact: of float64 arrays. bound: of these, of the exact result, and of the kernel's dtype.
    cupy, torch: calls that a user would make instead; the latter takes the module `torch`.
    """

    exact: Callable[..., Array]
    bound: Callable[..., Array]
    cupy: Callable[..., Array]
    torch: Callable[..., Any]


def _exact_exp(f: F, x: Array) -> Array:
    return f.xp.exp(x)


def _exact_gelu(f: F, x: Array) -> Array:
    return 0.5 * x * f.special.erfc(-x / sqrt(2))


def _exact_softmax(f: F, x: Array) -> Array:
    e = f.xp.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _bound_softmax(f: F, y: Array, dtype: Any, x: Array) -> Array:
    far = f.xp.abs(x - x.max(axis=-1, keepdims=True))
    return (4 + x.shape[-1] / 16 + far) * f.ulp(y, dtype)


EPSILON = 1e-5


def _norms(f: F, x: Array) -> tuple[Array, Array]:
    mean = x.mean(axis=-1, keepdims=True)
    return mean, ((x - mean) ** 2).mean(axis=-1, keepdims=True)


def _exact_layer_norm(f: F, x: Array, weight: Array, bias: Array) -> Array:
    mean, variance = _norms(f, x)
    return (x - mean) / f.xp.sqrt(variance + EPSILON) * weight + bias


def _bound_layer_norm(f: F, y: Array, dtype: Any, x: Array, weight: Array, bias: Array) -> Array:
    mean, variance = _norms(f, x)
    xp, eps, scale = f.xp, f.eps(dtype), 1 / f.xp.sqrt(variance + EPSILON)
    sizes = 8 * eps * (xp.abs(x) + xp.abs(mean) + xp.abs(x - mean))
    sums = (4 + x.shape[-1] / 8) * eps * xp.sqrt(variance + mean**2)
    return (sizes + sums) * scale * xp.abs(weight) + 8 * eps * xp.abs(bias) + f.ulp(y, dtype)


def _bound_sum(f: F, y: Array, dtype: Any, x: Array, axis: Any = None) -> Array:
    summed = x.size if axis is None else x.shape[axis]
    return (summed / 8 + 8) * f.eps(dtype) * f.xp.abs(x).sum(axis=axis)


def _bound_product(f: F, y: Array, dtype: Any, a: Array, b: Array) -> Array:
    return (a.shape[-1] + 2) * f.eps(dtype) * f.xp.matmul(f.xp.abs(a), f.xp.abs(b))


def _bound_blur(f: F, y: Array, dtype: Any, x: Array) -> Array:
    mean = f.ndimage.uniform_filter(f.xp.abs(x), size=3, mode="nearest")
    return 8 * f.eps(dtype) * mean


def _exact_blur(f: F, x: Array) -> Array:
    return f.ndimage.correlate(x, f.xp.ones((3, 3)) / 9, mode="nearest")


def _cupy_layer_norm(f: F, x: Array, weight: Array, bias: Array) -> Array:
    mean, variance = _norms(f, x)
    return (x - mean) / f.xp.sqrt(variance + x.dtype.type(EPSILON)) * weight + bias


def _torch_blur(torch: Any, x: Any) -> Any:
    padded = torch.nn.functional.pad(x[None, None], (1, 1, 1, 1), mode="replicate")
    return torch.nn.functional.avg_pool2d(padded, 3, stride=1)


FORMULAS: Mapping[str, Formula] = {
    "exp": Formula(
        _exact_exp,
        lambda f, y, dtype, x: 1.01 * f.ulp(y, dtype),
        _exact_exp,
        lambda torch, x: torch.exp(x),
    ),
    "gelu": Formula(
        _exact_gelu,
        lambda f, y, dtype, x: 4 * f.eps(dtype) * f.xp.abs(x) + 4 * f.ulp(y, dtype),
        lambda f, x: x.dtype.type(0.5) * x * f.special.erfc(-x * x.dtype.type(sqrt(0.5))),
        lambda torch, x: torch.nn.functional.gelu(x),
    ),
    "softmax": Formula(
        _exact_softmax,
        _bound_softmax,
        lambda f, x: f.special.softmax(x, axis=-1),
        lambda torch, x: torch.softmax(x, -1),
    ),
    "layer_norm": Formula(
        _exact_layer_norm,
        _bound_layer_norm,
        _cupy_layer_norm,
        lambda torch, x, weight, bias: torch.nn.functional.layer_norm(
            x, x.shape[-1:], weight, bias, EPSILON
        ),
    ),
    "sum": Formula(
        lambda f, x, axis=None: x.sum(axis=axis),
        _bound_sum,
        lambda f, x, axis=None: x.sum(axis=axis),
        lambda torch, x, axis=None: torch.sum(x) if axis is None else torch.sum(x, axis),
    ),
    "transpose": Formula(
        lambda f, x: f.xp.swapaxes(x, -1, -2),
        lambda f, y, dtype, x: 0.0,
        lambda f, x: f.xp.ascontiguousarray(f.xp.swapaxes(x, -1, -2)),
        lambda torch, x: x.transpose(-1, -2).contiguous(),
    ),
    "matvec": Formula(
        lambda f, a, x: f.xp.matmul(a, x),
        _bound_product,
        lambda f, a, x: f.xp.matmul(a, x),
        lambda torch, a, x: torch.mv(a, x),
    ),
    "matmul": Formula(
        lambda f, a, b: f.xp.matmul(a, b),
        _bound_product,
        lambda f, a, b: f.xp.matmul(a, b),
        lambda torch, a, b: torch.matmul(a, b),
    ),
    "blur": Formula(
        _exact_blur,
        _bound_blur,
        lambda f, x: f.ndimage.uniform_filter(x, size=3, mode="nearest"),
        _torch_blur,
    ),
}


@final
@dataclass(frozen=True, slots=True)
class Work:
    """A call on large arrays of these shapes. operations: floating-point ones, where they are what
    takes the time; else 0.
    """

    kernel: str
    shapes: tuple[tuple[int, ...], ...]
    result: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    operations: int = 0

    @property
    def formula(self) -> Formula:
        return FORMULAS[self.kernel]

    @property
    def elements(self) -> int:
        """That must be read and written, each once."""
        return sum(map(prod, self.shapes)) + prod(self.result)

    def __str__(self) -> str:
        options = "".join(f" {name}={value}" for name, value in self.options.items())
        return ", ".join("x".join(map(str, shape)) for shape in self.shapes) + options


def works(kernel: str, scale: int = 1) -> Iterator[Work]:
    """The calls that are tried and timed, the most telling first. scale: what edges are divided
    by, at most 64.
    """
    k = 1024 // scale
    match kernel:
        case "exp" | "gelu":
            yield Work(kernel, ((64 * k * k,),), (64 * k * k,))
        case "softmax":
            for rows, row in ((16, 4), (32, 1), (1, 64)):
                yield Work(kernel, ((rows * k, row * k),), (rows * k, row * k))
        case "layer_norm":
            for rows, row in ((16, 4), (32, 1), (1, 64)):
                shape = rows * k, row * k
                yield Work(kernel, (shape, shape[1:], shape[1:]), shape)
        case "sum":
            shape = 8 * k, 8 * k
            yield Work(kernel, (shape,), shape[:1], {"axis": -1})
            yield Work(kernel, (shape,), shape[1:], {"axis": 0})
            yield Work(kernel, (shape,), (), {"axis": None})
        case "transpose":
            yield Work(kernel, ((8 * k, 8 * k),), (8 * k, 8 * k))
            yield Work(kernel, ((8 * k + 1, 8 * k - 1),), (8 * k - 1, 8 * k + 1))
        case "matvec":
            yield Work(kernel, ((8 * k, 8 * k), (8 * k,)), (8 * k,))
            yield Work(kernel, ((64 * k, k), (k,)), (64 * k,))
        case "matmul":
            for n in (4 * k, k, 2 * k + 1):
                yield Work(kernel, ((n, n), (n, n)), (n, n), operations=2 * n**3)
        case "blur":
            yield Work(kernel, ((8 * k, 8 * k),), (8 * k, 8 * k))
            yield Work(kernel, ((3 * k - 72 // scale, 4000 // scale),),
                       (3 * k - 72 // scale, 4000 // scale))  # fmt: skip


def inputs(f: F, work: Work, dtype: str, seed: int, *, whole: bool = False) -> list[Array]:
    """Random arrays, normal around 0. whole: of -1, 0 and 1, of which all sums are exact."""
    random = f.xp.random.RandomState(seed)
    if whole:
        return [random.randint(-1, 2, shape).astype(dtype) for shape in work.shapes]
    return [random.standard_normal(shape).astype(dtype) for shape in work.shapes]


def compared(
    f: F, work: Work, got: Array, given: list[Array], *, whole: bool = False
) -> tuple[float, float]:
    """The largest error, and over what is allowed. whole: nothing is."""
    xp = f.xp
    wide = [x.astype("f8") for x in given]
    exact = work.formula.exact(f, *wide, **work.options)
    if got.shape != exact.shape:
        return float("inf"), float("inf")
    allowed: Any = 0.0
    if not whole:
        allowed = work.formula.bound(f, exact, got.dtype, *wide, **work.options)
        allowed = 2 * allowed if got.dtype == "f8" else allowed
    error = xp.abs(got.astype("f8") - exact)
    ratio = xp.where(error == 0, 0.0, error / xp.maximum(allowed, 1e-300))
    ratio = xp.where(xp.isnan(error), xp.inf, ratio)  # of numbers, no NaN comes
    return float(error.max()), float(ratio.max())
