"""What a kernel to measure is, what its arguments hold, and its sizes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Dims = tuple[int, ...]
Sizes = dict[str, tuple[Dims, ...]]  # by kind

MOST = 1 << 24

# Which sizes a case belongs to. `main` is larger than the caches wherever the kernel is bound by
# memory; `odd` has a prime, or the odd number next to it, in place of each dim of `main`.
KINDS = ("main", "odd", "L1", "L2", "L3", "small")


@dataclass(frozen=True)
class Values:
    """What an argument holds: how it is drawn from a generator, a shape and the case's dims, and of
    which type.
    """

    draw: Callable[[np.random.Generator, Dims, Dims], Array]
    dtype: type[np.generic] = np.float32


NORMAL = Values(lambda rng, shape, _: rng.standard_normal(shape, dtype=np.float32))
POSITIVE = Values(lambda rng, shape, _: 0.01 + rng.random(shape, dtype=np.float32))
NEAR_ONE = Values(lambda rng, shape, _: 1 + 1e-3 * rng.standard_normal(shape, dtype=np.float32))
PIXELS = Values(lambda rng, shape, _: rng.integers(0, 256, shape, dtype=np.uint8), np.uint8)
WEIGHTS = Values(lambda rng, shape, _: rng.integers(-127, 128, shape, dtype=np.int8), np.int8)
CLASSES = Values(lambda rng, shape, dims: rng.integers(0, dims[-1], shape), np.int64)


@dataclass(frozen=True)
class Kernel:
    """One function to measure, float32, and what is needed to check it and to bound its time.

    values: what the arguments hold; those that are not named, normal numbers. most: the largest of
    each dim where sizes are drawn; those that are not named, `MOST`.
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
    most: Dims = ()

    @property
    def rank(self) -> int:
        return len(self.sizes["main"][0])

    def arguments(self, *dims: int) -> list[tuple[Values, Dims]]:
        """Each argument's values and shape."""
        shapes = self.inputs(*dims)
        return list(zip([*self.values, *[NORMAL] * len(shapes)], shapes, strict=False))


# ---------------------------------------------------------------- sizes

# L1, L2, L3: argument and result together lie well within 32 KiB, 1 MiB and 16 MiB.
ROWS: Sizes = {
    "main": ((4096, 1024),),
    "odd": ((4099, 1021),),
    "L1": ((6, 512),),
    "L2": ((64, 1024),),
    "L3": ((1024, 1024),),
}
SQUARES: Sizes = {
    "main": ((4096, 4096),),
    "odd": ((4093, 4099),),
    "L1": ((48, 64),),
    "L2": ((256, 256),),
    "L3": ((1024, 1024),),
}
ELEMENTS: Sizes = {
    "main": ((1 << 24,),),
    "odd": ((16777213,),),
    "L1": ((3072,),),
    "L2": ((1 << 16,),),
    "L3": ((1 << 20,),),
}
PRODUCTS: Sizes = {
    "main": ((1024, 1024, 1024), (8, 4096, 4096)),
    "odd": ((1021, 1031, 1019), (7, 4093, 4099)),
    "L1": ((48, 48, 48), (8, 64, 96)),
    "L2": ((256, 256, 256), (8, 512, 256)),
    "L3": ((512, 512, 512), (8, 1024, 1024)),
}
IMAGES: Sizes = SQUARES | {"main": ((3000, 4000),), "odd": ((2999, 4001),)}
SCANS: Sizes = SQUARES | {"L1": ((6, 512),), "L2": ((64, 1024),)}
COLUMNS: Sizes = SQUARES | {"L1": ((24, 256),), "L2": ((512, 256),)}


def two(main: Dims, small: Dims) -> Sizes:
    return {"main": (main,), "small": (small,)}


# ---------------------------------------------------------------- shapes


def one(*dims: int) -> tuple[Dims, ...]:
    return (dims,)


def same(*dims: int) -> Dims:
    return dims


def per_element(count: int) -> Callable[..., int]:
    return lambda *dims: count * math.prod(dims)


def mapped(
    name: str, reference: Callable[..., Array], operations: int, sizes: Sizes, **more: Any
) -> Kernel:
    """A kernel with one argument, whose result has the argument's shape."""
    return Kernel(name, one, same, reference, per_element(operations), sizes, **more)
