"""What is measured: each kernel with its arguments, its float64 reference, its work and its sizes.

Work is what no implementation can avoid: every input byte read once and every output byte written
once, and the operations of the kernel's algebra (an exponential or a square root counts as one).
"""

import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import references

Array = NDArray[Any]
Dims = tuple[int, ...]
Sizes = dict[str, tuple[Dims, ...]]  # by kind

# Which sizes a case belongs to. `main` is larger than the caches wherever the kernel is bound by
# memory; `odd` has a prime, or the odd number next to it, in place of each dim of `main`.
KINDS = ("main", "odd", "L1", "L2", "L3", "small")


class UnknownName(Exception):
    """A name on the command line that nothing has."""


@dataclass(frozen=True)
class Values:
    """What an argument holds: how it is drawn from a generator and a shape, and of which type."""

    draw: Callable[[np.random.Generator, Dims], Array]
    dtype: type[np.generic] = np.float32


NORMAL = Values(lambda rng, shape: rng.standard_normal(shape, dtype=np.float32))
POSITIVE = Values(lambda rng, shape: 0.01 + rng.random(shape, dtype=np.float32))
NEAR_ONE = Values(lambda rng, shape: 1 + 1e-3 * rng.standard_normal(shape, dtype=np.float32))
PIXELS = Values(lambda rng, shape: rng.integers(0, 256, shape, dtype=np.uint8), np.uint8)
CLASSES = Values(lambda rng, shape: rng.integers(0, 3, shape), np.int64)


@dataclass(frozen=True)
class Kernel:
    """One function to measure, float32, and what is needed to check it and to bound its time.

    values: what the arguments hold; those that are not named, normal numbers.
    """

    name: str
    inputs: Callable[..., tuple[Dims, ...]]  # from dims: the arguments' shapes
    result: Callable[..., Dims]
    reference: Callable[..., Array]  # from float64 arguments
    operations: Callable[..., int]
    sizes: Sizes
    dtype: type[np.generic] = np.float32  # of the result
    limit: float = 2e-4  # the largest error of a right result, relative to 1 + |expected|
    headline: bool = False
    values: tuple[Values, ...] = ()

    def arguments(self, *dims: int) -> list[tuple[Values, Dims]]:
        """Each argument's values and shape."""
        shapes = self.inputs(*dims)
        return list(zip([*self.values, *[NORMAL] * len(shapes)], shapes, strict=False))


@dataclass(frozen=True)
class Case:
    """One kernel at one size: a row of the table."""

    kernel: Kernel
    dims: Dims
    kind: str

    @property
    def label(self) -> str:
        return f"{self.kernel.name} {size_text(self.dims)}"

    @property
    def bytes_read(self) -> int:
        arguments = self.kernel.arguments(*self.dims)
        return sum(np.dtype(v.dtype).itemsize * math.prod(shape) for v, shape in arguments)

    @property
    def bytes_written(self) -> int:
        size = np.dtype(self.kernel.dtype).itemsize
        return size * math.prod(self.kernel.result(*self.dims))

    @property
    def operations(self) -> int:
        return self.kernel.operations(*self.dims)

    def arguments(self) -> list[Array]:
        """The same arrays every time, in every process."""
        rng = np.random.default_rng(zlib.crc32(self.label.encode()))
        return [v.draw(rng, shape) for v, shape in self.kernel.arguments(*self.dims)]

    def expected(self, arguments: Iterable[Array]) -> Array:
        exact = self.kernel.reference(*(x.astype(np.float64) for x in arguments))
        return np.ascontiguousarray(exact)


def size_text(dims: Dims) -> str:
    return "x".join(map(str, dims))


# ---------------------------------------------------------------- sizes

# L1, L2, L3: argument and result together lie well within 32 KiB, 1 MiB and 16 MiB.
_ROWS: Sizes = {
    "main": ((4096, 1024),),
    "odd": ((4099, 1021),),
    "L1": ((6, 512),),
    "L2": ((64, 1024),),
    "L3": ((1024, 1024),),
}
_SQUARES: Sizes = {
    "main": ((4096, 4096),),
    "odd": ((4093, 4099),),
    "L1": ((48, 64),),
    "L2": ((256, 256),),
    "L3": ((1024, 1024),),
}
_ELEMENTS: Sizes = {
    "main": ((1 << 24,),),
    "odd": ((16777213,),),
    "L1": ((3072,),),
    "L2": ((1 << 16,),),
    "L3": ((1 << 20,),),
}
_PRODUCTS: Sizes = {
    "main": ((1024, 1024, 1024), (8, 4096, 4096)),
    "odd": ((1021, 1031, 1019), (7, 4093, 4099)),
    "L1": ((48, 48, 48), (8, 64, 96)),
    "L2": ((256, 256, 256), (8, 512, 256)),
    "L3": ((512, 512, 512), (8, 1024, 1024)),
}
_IMAGES: Sizes = _SQUARES | {"main": ((3000, 4000),), "odd": ((2999, 4001),)}
_SCANS: Sizes = _SQUARES | {"L1": ((6, 512),), "L2": ((64, 1024),)}
_COLUMNS: Sizes = _SQUARES | {"L1": ((24, 256),), "L2": ((512, 256),)}


def _two(main: Dims, small: Dims) -> Sizes:
    return {"main": (main,), "small": (small,)}


# ---------------------------------------------------------------- kernels


def _one(*dims: int) -> tuple[Dims, ...]:
    return (dims,)


def _same(*dims: int) -> Dims:
    return dims


def _per_element(count: int) -> Callable[..., int]:
    return lambda *dims: count * math.prod(dims)


def _map(
    name: str, reference: Callable[..., Array], operations: int, sizes: Sizes, **more: Any
) -> Kernel:
    """A kernel with one argument, whose result has the argument's shape."""
    return Kernel(name, _one, _same, reference, _per_element(operations), sizes, **more)


def _reductions(
    name: str, function: Callable[..., Array], operations: int = 1, **more: Any
) -> Iterator[Kernel]:
    """A reduction over the first axis and over the last: two kernels to whoever schedules them."""
    for axis, place in ((0, "first"), (1, "last")):
        headline = (name, place) == ("sum", "first")
        yield Kernel(
            f"{name}_{place}",
            _one,
            lambda m, n, axis=axis: (m,) if axis else (n,),
            lambda x, axis=axis: np.asarray(function(x, axis=axis)),
            _per_element(operations),
            _COLUMNS if headline else _two((4096, 4096), (512, 256)),
            dtype=np.int64 if name in ("argmax", "argmin") else np.float32,
            limit=0 if name in ("argmax", "argmin") else 2e-4,
            headline=headline,
            **more,
        )


def _every_reduction() -> Iterator[Kernel]:
    yield from _reductions("sum", np.sum)
    yield from _reductions("mean", np.mean)
    yield from _reductions("max", np.max)
    yield from _reductions("min", np.min)
    yield from _reductions("argmax", np.argmax)
    yield from _reductions("argmin", np.argmin)
    yield from _reductions("prod", np.prod, values=(NEAR_ONE,))
    yield from _reductions("var", np.var, 4)
    yield from _reductions("norm", np.linalg.norm, 2)
    yield from _reductions("logsumexp", references.special("logsumexp"), 4)


def _rows() -> Iterator[Kernel]:
    """What runs along rows."""
    yield _map("log_softmax", references.log_softmax, 5, _two((4096, 1024), (64, 1024)))
    yield Kernel(
        "rms_norm",
        lambda m, n: ((m, n), (n,)),
        _same,
        references.rms_norm,
        _per_element(4),
        _two((4096, 1024), (64, 1024)),
    )
    yield Kernel(
        "cross_entropy",
        lambda m, n: ((m, n), (m,)),
        lambda m, n: (m,),
        references.cross_entropy,
        _per_element(4),
        _two((4096, 4096), (64, 1024)),
        values=(NORMAL, CLASSES),
    )
    yield Kernel(
        "histogram",
        _one,
        lambda n: (256,),
        references.histogram,
        _per_element(1),
        _two((1 << 24,), (1 << 18,)),
        dtype=np.int64,
        limit=0,
        values=(PIXELS,),
    )


def _functions() -> Iterator[Kernel]:
    """Elementwise functions."""
    elements = _two((1 << 24,), (1 << 16,))
    yield _map("log", np.log, 1, elements, values=(POSITIVE,))
    yield _map("log1p", np.log1p, 1, elements, values=(POSITIVE,))
    yield _map("expm1", np.expm1, 1, elements)
    yield _map("tanh", np.tanh, 1, elements)
    yield _map("sin", np.sin, 1, elements)
    yield _map("cos", np.cos, 1, elements)
    yield _map("sigmoid", references.expit, 3, elements)
    yield _map("silu", lambda x: x * references.expit(x), 4, elements)
    yield _map("gelu_tanh", references.gelu_tanh, 8, elements)
    yield _map("softplus", partial(np.logaddexp, 0), 4, elements)
    yield Kernel(
        "multiply_add",
        lambda n: ((n,), (n,), (n,)),
        _same,
        lambda x, y, z: 2 * x + y * z,
        _per_element(3),
        _two((1 << 23,), (1 << 15,)),
    )


def _headlines() -> Iterator[Kernel]:
    yield Kernel(
        "matmul",
        lambda m, n, k: ((m, k), (k, n)),
        lambda m, n, k: (m, n),
        np.matmul,
        lambda m, n, k: 2 * m * n * k,
        _PRODUCTS,
        headline=True,
    )
    yield _map("softmax", references.softmax, 5, _ROWS, headline=True)
    yield _map("exp", np.exp, 1, _ELEMENTS, headline=True)
    yield Kernel(
        "layer_norm",
        lambda m, n: ((m, n), (n,), (n,)),
        _same,
        references.layer_norm,
        _per_element(8),
        _ROWS,
        headline=True,
    )
    yield Kernel(
        "transpose",
        _one,
        lambda m, n: (n, m),
        np.transpose,
        _per_element(0),
        _SQUARES,
        headline=True,
    )
    yield _map("blur", references.blur, 5, _IMAGES, headline=True)
    # Near a zero of the running sum, the error is that of the larger sums before it.
    yield _map("cumsum", partial(np.cumsum, axis=-1), 1, _SCANS, limit=2e-3, headline=True)


def _kernels() -> Iterator[Kernel]:
    yield from _headlines()
    yield from _every_reduction()
    yield from _functions()
    yield from _rows()
    yield _map("gelu", references.gelu, 4, _two((1 << 24,), (1 << 16,)))
    yield _map("clamp", lambda x: np.clip(x, 0, 1), 2, _two((1 << 24,), (1 << 16,)))
    yield Kernel(
        "grey",
        lambda m: ((m, 3),),
        _same,
        references.grey,
        _per_element(5),
        _two((3000 * 4000,), (1 << 15,)),
    )
    yield _map("sobel", references.sobel, 13, _two((3000, 4000), (256, 256)))
    yield from _image_kernels()
    yield _map("unsharp", lambda x: 2 * x - references.blur(x), 7, _two((3000, 4000), (256, 256)))
    yield Kernel(
        "linear",
        lambda m, n, k: ((m, k), (k, n), (n,)),
        lambda m, n, k: (m, n),
        lambda x, weight, bias: np.maximum(x @ weight + bias, 0),
        lambda m, n, k: 2 * m * n * k + 2 * m * n,
        _two((1024, 1024, 1024), (64, 256, 256)),
    )
    yield from _products()
    yield from _sequences()


def _sequences() -> Iterator[Kernel]:
    yield Kernel(
        "sqdist",
        lambda m, n, d: ((m, d), (n, d)),
        lambda m, n, d: (m, n),
        references.sqdist,
        lambda m, n, d: 3 * m * n * d,
        {"main": ((2048, 2048, 64), (4096, 4096, 3)), "small": ((128, 128, 16),)},
    )
    yield Kernel(
        "attention",
        lambda heads, m, d: ((heads, m, d),) * 3,
        _same,
        references.attention,
        lambda heads, m, d: heads * m * m * (4 * d + 3),
        _two((8, 1024, 64), (4, 128, 32)),
    )
    yield Kernel(
        "lstm",
        lambda t, b, d, h: (
            *((t, b, d), (4 * h, d), (4 * h, h), (4 * h,), (4 * h,)),
            *((b, h), (b, h)),
        ),
        lambda t, b, d, h: (t, b, h),
        references.lstm,
        lambda t, b, d, h: t * b * (8 * h * (d + h) + 20 * h),
        _two((64, 32, 256, 256), (16, 8, 32, 32)),
        limit=1e-3,
    )


def _products() -> Iterator[Kernel]:
    """Products whose matrices are views, many small ones, vectors, few columns, triangles."""
    for name, left, right in (("matmul_tn", True, False), ("matmul_nt", False, True)):
        yield Kernel(
            name,
            lambda m, n, k, left=left, right=right: (
                (k, m) if left else (m, k),
                (n, k) if right else (k, n),
            ),
            lambda m, n, k: (m, n),
            lambda a, b, left=left, right=right: np.matmul(a.T if left else a, b.T if right else b),
            lambda m, n, k: 2 * m * n * k,
            {"main": ((1024, 1024, 1024), (8, 4096, 4096)), "small": ((128, 128, 128),)},
        )
    yield Kernel(
        "matmul_batch",
        lambda b, m, n, k: ((b, m, k), (b, k, n)),
        lambda b, m, n, k: (b, m, n),
        np.matmul,
        lambda b, m, n, k: 2 * b * m * n * k,
        _two((1024, 64, 64, 64), (64, 16, 16, 16)),
    )
    yield Kernel(
        "matmul_tall",
        lambda m, n, k: ((m, k), (k, n)),
        lambda m, n, k: (m, n),
        np.matmul,
        lambda m, n, k: 2 * m * n * k,
        _two((1 << 18, 16, 64), (2000, 16, 64)),
    )
    for name, transposed in (("matvec", False), ("vecmat", True)):
        yield Kernel(
            name,
            lambda m, k, transposed=transposed: ((k, m) if transposed else (m, k), (k,)),
            lambda m, k: (m,),
            lambda a, x, transposed=transposed: np.matmul(a.T if transposed else a, x),
            lambda m, k: 2 * m * k,
            _two((4096, 4096), (128, 128)),
        )
    yield Kernel(
        "trmm",
        lambda m, n: ((m, m), (m, n)),
        _same,
        lambda a, b: np.matmul(np.tril(a), b),
        lambda m, n: m * m * n,
        _two((1024, 1024), (128, 128)),
    )


def _image_kernels() -> Iterator[Kernel]:
    yield _map("gaussian", references.gaussian, 36, _two((3000, 4000), (256, 256)))
    yield _map("heat2d", references.heat2d, 6, _two((3000, 4000), (256, 256)))
    yield Kernel(
        "resize",
        _one,
        lambda h, w: (224, 224),
        references.resize,
        lambda h, w: 6 * 224 * 224,
        _two((3000, 4000), (256, 256)),
    )
    yield Kernel(
        "conv2d",
        lambda n, c, h, w, o, k: ((n, c, h, w), (o, c, k, k), (o,)),
        lambda n, c, h, w, o, k: (n, o, h - k + 1, w - k + 1),
        references.conv2d,
        lambda n, c, h, w, o, k: 2 * n * o * (h - k + 1) * (w - k + 1) * c * k * k,
        _two((8, 64, 58, 58, 64, 3), (1, 32, 30, 30, 32, 3)),
        limit=1e-3,
    )
    yield Kernel(
        "depthwise_conv2d",
        lambda n, c, h, w, k: ((n, c, h, w), (c, k, k), (c,)),
        lambda n, c, h, w, k: (n, c, h - k + 1, w - k + 1),
        references.depthwise_conv2d,
        lambda n, c, h, w, k: 2 * n * c * (h - k + 1) * (w - k + 1) * k * k,
        _two((16, 144, 114, 114, 3), (1, 32, 30, 30, 3)),
    )


KERNELS = {kernel.name: kernel for kernel in _kernels()}


# ---------------------------------------------------------------- choosing


def _dims_of(text: str) -> Dims | None:
    parts = text.split("x")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else None


def choose(names: Iterable[str], sizes: Iterable[str]) -> list[Case]:
    """The cases of these kernels (all, if none is named) at these kinds of size or these dims."""
    names, sizes = list(names) or list(KERNELS), list(sizes) or list(KINDS)
    for name in names:
        if name not in KERNELS:
            raise UnknownName(f"no kernel {name!r}; there are {', '.join(KERNELS)}")
    for size in sizes:
        if size not in KINDS and _dims_of(size) is None:
            raise UnknownName(
                f"no size {size!r}; sizes are {', '.join(KINDS)}, or dims such as 512x512"
            )
    chosen = [c for name in names for size in sizes for c in _cases_of(KERNELS[name], size)]
    if not chosen:
        raise UnknownName(f"none of the kernels has a size {' or '.join(sizes)}")
    return chosen


def _cases_of(kernel: Kernel, size: str) -> Iterator[Case]:
    dims = _dims_of(size)
    if dims is None:
        yield from (Case(kernel, each, size) for each in kernel.sizes.get(size, ()))
    elif len(dims) == len(kernel.sizes["main"][0]):
        yield Case(kernel, dims, "given")
