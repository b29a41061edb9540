"""What is measured: each kernel at each of its sizes, its arguments, result and work.

Work is what no implementation can avoid: every input byte read once and every output byte written
once, and the operations of the kernel's algebra (an exponential or a square root counts as one).
"""

import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from .kernels import KERNELS
from .kernels.kernel import KINDS, Array, Dims, Kernel

MANY_TERMS = 8192


class UnknownName(Exception):
    """A name on the command line that nothing has."""


@dataclass(frozen=True)
class Case:
    """One kernel at one size: a row of the table.

    offset: where arrays begin, in bytes past a multiple of 64; None: where the run's settings say.
    gap: the elements between the rows of the arguments.
    """

    kernel: Kernel
    dims: Dims
    kind: str
    offset: int | None = None
    gap: int = 0

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

    @property
    def limit(self) -> float:
        """The largest error of a right result. Of sums of many terms it grows with them."""
        terms = self.operations / max(1, math.prod(self.kernel.result(*self.dims)))
        return self.kernel.limit * max(1.0, terms / MANY_TERMS)

    def arguments(self) -> list[Array]:
        """The same arrays every time, in every process."""
        rng = np.random.default_rng(zlib.crc32(self.label.encode()))
        drawn = self.kernel.arguments(*self.dims)
        return [values.draw(rng, shape, self.dims) for values, shape in drawn]

    def expected(self, arguments: Iterable[Array]) -> Array:
        exact = self.kernel.reference(*(x.astype(np.float64) for x in arguments))
        return np.ascontiguousarray(exact)


def size_text(dims: Dims) -> str:
    return "x".join(map(str, dims))


# ---------------------------------------------------------------- choosing


def _dims_of(text: str) -> Dims | None:
    parts = text.split("x")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else None


def named(names: Iterable[str]) -> list[Kernel]:
    """These kernels; all, if none is named. Raises UnknownName."""
    names = list(names) or list(KERNELS)
    for name in names:
        if name not in KERNELS:
            raise UnknownName(f"no kernel {name!r}; there are {', '.join(KERNELS)}")
    return [KERNELS[name] for name in names]


def choose(names: Iterable[str], sizes: Iterable[str]) -> list[Case]:
    """The cases of these kernels (all, if none is named) at these kinds of size or these dims.
    Raises UnknownName.
    """
    kernels, sizes = named(names), list(sizes) or list(KINDS)
    for size in sizes:
        if size not in KINDS and _dims_of(size) is None:
            raise UnknownName(
                f"no size {size!r}; sizes are {', '.join(KINDS)}, or dims such as 512x512"
            )
    chosen = [c for kernel in kernels for size in sizes for c in _cases_of(kernel, size)]
    if not chosen:
        raise UnknownName(f"none of the kernels has a size {' or '.join(sizes)}")
    return chosen


def _cases_of(kernel: Kernel, size: str) -> Iterator[Case]:
    dims = _dims_of(size)
    if dims is None:
        yield from (Case(kernel, each, size) for each in kernel.sizes.get(size, ()))
    elif len(dims) == kernel.rank:
        yield Case(kernel, dims, "given")
