"""What runs along rows."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from .. import references
from .kernel import (
    CLASSES,
    NEAR_ONE,
    NORMAL,
    ROWS,
    SCANS,
    Kernel,
    mapped,
    one,
    per_element,
    same,
    two,
)


def kernels() -> Iterator[Kernel]:
    yield mapped("softmax", references.softmax, 5, ROWS, headline=True)
    yield mapped("log_softmax", references.log_softmax, 5, two((4096, 1024), (64, 1024)))
    yield Kernel(
        "layer_norm",
        lambda m, n: ((m, n), (n,), (n,)),
        same,
        references.layer_norm,
        per_element(8),
        ROWS,
        headline=True,
    )
    yield Kernel(
        "rms_norm",
        lambda m, n: ((m, n), (n,)),
        same,
        references.rms_norm,
        per_element(4),
        two((4096, 1024), (64, 1024)),
    )
    of_sums = two((4096, 1024), (64, 512))
    yield Kernel(
        "add_layer_norm",
        lambda m, n: ((m, n), (m, n), (n,), (n,)),
        same,
        lambda x, residual, weight, bias: references.layer_norm(x + residual, weight, bias),
        per_element(9),
        of_sums,
    )
    yield Kernel(
        "add_rms_norm",
        lambda m, n: ((m, n), (m, n), (n,)),
        same,
        lambda x, residual, weight: references.rms_norm(x + residual, weight),
        per_element(5),
        of_sums,
    )
    yield Kernel(
        "cross_entropy",
        lambda m, n: ((m, n), (m,)),
        lambda m, n: (m,),
        references.cross_entropy,
        per_element(4),
        two((4096, 4096), (64, 1024)),
        values=(NORMAL, CLASSES),
    )
    yield from _scans()


def _scans() -> Iterator[Kernel]:
    # Near a zero of the running sum, the error is that of the larger sums before it.
    yield mapped("cumsum", partial(np.cumsum, axis=-1), 1, SCANS, limit=2e-3, headline=True)
    scans = two((4096, 4096), (64, 1024))
    yield mapped("exclusive_cumsum", references.exclusive_cumsum, 1, scans, limit=2e-3)
    yield mapped("reverse_cumsum", references.reverse_cumsum, 1, scans, limit=2e-3)
    product = partial(np.cumprod, axis=-1)
    yield mapped("cumprod", product, 1, scans, values=(NEAR_ONE,), limit=2e-3)
    yield Kernel(
        "mean_var",
        one,
        lambda m, n: (m,),
        references.mean_var,
        per_element(4),
        two((4096, 4096), (64, 1024)),
    )
