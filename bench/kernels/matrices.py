"""Products of matrices, and what else is of matrices."""

from collections.abc import Iterator

import numpy as np

from .. import references
from .kernel import (
    PIXELS,
    PRODUCTS,
    SQUARES,
    WEIGHTS,
    Kernel,
    Values,
    one,
    per_element,
    same,
    two,
)

TRIANGLES = Values(
    lambda rng, shape, _: (
        rng.standard_normal(shape, dtype=np.float32) / np.float32(max(1, shape[-1]))
        + 2 * np.eye(*shape, dtype=np.float32)
    )
)
"""Which solving with changes little, below the diagonal and above."""


def kernels() -> Iterator[Kernel]:
    yield Kernel(
        "matmul",
        lambda m, n, k: ((m, k), (k, n)),
        lambda m, n, k: (m, n),
        np.matmul,
        lambda m, n, k: 2 * m * n * k,
        PRODUCTS,
        headline=True,
    )
    yield Kernel(
        "transpose",
        one,
        lambda m, n: (n, m),
        np.transpose,
        per_element(0),
        SQUARES,
        headline=True,
    )
    yield Kernel(
        "linear",
        lambda m, n, k: ((m, k), (k, n), (n,)),
        lambda m, n, k: (m, n),
        lambda x, weight, bias: np.maximum(x @ weight + bias, 0),
        lambda m, n, k: 2 * m * n * k + 2 * m * n,
        two((1024, 1024, 1024), (64, 256, 256)),
    )
    yield from _views()
    yield from _thin()
    yield Kernel(
        "sqdist",
        lambda m, n, d: ((m, d), (n, d)),
        lambda m, n, d: (m, n),
        references.sqdist,
        lambda m, n, d: 3 * m * n * d,
        {"main": ((2048, 2048, 64), (4096, 4096, 3)), "small": ((128, 128, 16),)},
    )


def _views() -> Iterator[Kernel]:
    """Products whose matrices are views, and many small ones."""
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
        two((1024, 64, 64, 64), (64, 16, 16, 16)),
    )


def _thin() -> Iterator[Kernel]:
    """Few columns, vectors, triangles."""
    yield Kernel(
        "matmul_tall",
        lambda m, n, k: ((m, k), (k, n)),
        lambda m, n, k: (m, n),
        np.matmul,
        lambda m, n, k: 2 * m * n * k,
        two((1 << 18, 16, 64), (2000, 16, 64)),
    )
    for name, transposed in (("matvec", False), ("vecmat", True)):
        yield Kernel(
            name,
            lambda m, k, transposed=transposed: ((k, m) if transposed else (m, k), (k,)),
            lambda m, k: (m,),
            lambda a, x, transposed=transposed: np.matmul(a.T if transposed else a, x),
            lambda m, k: 2 * m * k,
            two((4096, 4096), (128, 128)),
        )
    yield Kernel(
        "trmm",
        lambda m, n: ((m, m), (m, n)),
        same,
        lambda a, b: np.matmul(np.tril(a), b),
        lambda m, n: m * m * n,
        two((1024, 1024), (128, 128)),
    )
    yield Kernel(
        "triangular_solve",
        lambda m, n: ((m, m), (m, n)),
        same,
        lambda a, b: np.linalg.solve(np.tril(a), b),
        lambda m, n: m * m * n,
        two((1024, 1024), (128, 128)),
        values=(TRIANGLES,),
    )
    yield from (_quantised("matvec_int8", WEIGHTS, 2), _quantised("matvec_int4", PIXELS, 1))


def _quantised(name: str, values: Values, each: int) -> Kernel:
    """A matrix of small weights times a vector. each: the bytes of two of them."""
    return Kernel(
        name,
        lambda m, g, half: ((m, g, each * half), (m, g), (g, 2 * half)),
        lambda m, g, half: (m,),
        getattr(references, name),
        lambda m, g, half: 6 * m * g * half,
        two((4096, 128, 16), (256, 16, 16)),
        limit=2e-3,
        values=(values,),
    )
