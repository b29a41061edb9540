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

Array = NDArray[Any]
Dims = tuple[int, ...]
Sizes = dict[str, tuple[Dims, ...]]  # by kind

# Which sizes a case belongs to. `main` is larger than the caches wherever the kernel is bound by
# memory; `odd` has a prime, or the odd number next to it, in place of each dim of `main`.
KINDS = ("main", "odd", "L1", "L2", "L3", "small")


class UnknownName(Exception):
    """A name on the command line that nothing has."""


@dataclass(frozen=True)
class Kernel:
    """One function to measure, float32, and what is needed to check it and to bound its time."""

    name: str
    inputs: Callable[..., tuple[Dims, ...]]  # from dims: the arguments' shapes
    result: Callable[..., Dims]
    reference: Callable[..., Array]  # from float64 arguments
    operations: Callable[..., int]
    sizes: Sizes
    dtype: type[np.generic] = np.float32  # of the result
    limit: float = 2e-4  # the largest error of a right result, relative to 1 + |expected|
    headline: bool = False


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
        return 4 * sum(math.prod(shape) for shape in self.kernel.inputs(*self.dims))

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
        shapes = self.kernel.inputs(*self.dims)
        return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]

    def expected(self, arguments: Iterable[Array]) -> Array:
        exact = self.kernel.reference(*(x.astype(np.float64) for x in arguments))
        return np.ascontiguousarray(exact)


def size_text(dims: Dims) -> str:
    return "x".join(map(str, dims))


# ---------------------------------------------------------------- references, in float64


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def _layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
    return np.asarray(centred * scale * weight + bias)


def _gelu(x: Array) -> Array:
    import scipy.special

    return np.asarray(x * scipy.special.ndtr(x))


def _blur(x: Array) -> Array:
    import scipy.ndimage

    return np.asarray(scipy.ndimage.uniform_filter(x, size=3, mode="nearest"))


def _sobel(x: Array) -> Array:
    import scipy.ndimage

    down = scipy.ndimage.sobel(x, axis=0, mode="nearest") / 4
    across = scipy.ndimage.sobel(x, axis=1, mode="nearest") / 4
    return np.asarray(np.sqrt((down * down + across * across) / 2))


def _grey(rgb: Array) -> Array:
    return np.asarray(rgb @ np.array([0.2125, 0.7154, 0.0721]))


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


def _reductions(name: str, function: Callable[..., Array]) -> Iterator[Kernel]:
    """A reduction over the first axis and over the last: two kernels to whoever schedules them."""
    for axis, place in ((0, "first"), (1, "last")):
        headline = (name, place) == ("sum", "first")
        yield Kernel(
            f"{name}_{place}",
            _one,
            lambda m, n, axis=axis: (m,) if axis else (n,),
            lambda x, axis=axis: np.asarray(function(x, axis=axis)),
            _per_element(1),
            _COLUMNS if headline else _two((4096, 4096), (512, 256)),
            dtype=np.int64 if name == "argmax" else np.float32,
            limit=0 if name == "argmax" else 2e-4,
            headline=headline,
        )


def _kernels() -> Iterator[Kernel]:
    yield Kernel(
        "matmul",
        lambda m, n, k: ((m, k), (k, n)),
        lambda m, n, k: (m, n),
        np.matmul,
        lambda m, n, k: 2 * m * n * k,
        _PRODUCTS,
        headline=True,
    )
    yield _map("softmax", _softmax, 5, _ROWS, headline=True)
    yield _map("exp", np.exp, 1, _ELEMENTS, headline=True)
    yield Kernel(
        "layer_norm",
        lambda m, n: ((m, n), (n,), (n,)),
        _same,
        _layer_norm,
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
    yield _map("blur", _blur, 5, _IMAGES, headline=True)
    # Near a zero of the running sum, the error is that of the larger sums before it.
    yield _map("cumsum", partial(np.cumsum, axis=-1), 1, _SCANS, limit=2e-3, headline=True)
    yield from _reductions("sum", np.sum)
    yield from _reductions("mean", np.mean)
    yield from _reductions("max", np.max)
    yield from _reductions("argmax", np.argmax)
    yield _map("gelu", _gelu, 4, _two((1 << 24,), (1 << 16,)))
    yield _map("clamp", lambda x: np.clip(x, 0, 1), 2, _two((1 << 24,), (1 << 16,)))
    yield Kernel(
        "grey",
        lambda m: ((m, 3),),
        _same,
        _grey,
        _per_element(5),
        _two((3000 * 4000,), (1 << 15,)),
    )
    yield _map("sobel", _sobel, 13, _two((3000, 4000), (256, 256)))
    yield _map("unsharp", lambda x: 2 * x - _blur(x), 7, _two((3000, 4000), (256, 256)))
    yield Kernel(
        "linear",
        lambda m, n, k: ((m, k), (k, n), (n,)),
        lambda m, n, k: (m, n),
        lambda x, weight, bias: np.maximum(x @ weight + bias, 0),
        lambda m, n, k: 2 * m * n * k + 2 * m * n,
        _two((1024, 1024, 1024), (64, 256, 256)),
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
