"""What runs along rows."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from .. import references
from .kernel import CLASSES, NORMAL, ROWS, SCANS, Kernel, mapped, per_element, same, two


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
    yield Kernel(
        "cross_entropy",
        lambda m, n: ((m, n), (m,)),
        lambda m, n: (m,),
        references.cross_entropy,
        per_element(4),
        two((4096, 4096), (64, 1024)),
        values=(NORMAL, CLASSES),
    )
    # Near a zero of the running sum, the error is that of the larger sums before it.
    yield mapped("cumsum", partial(np.cumsum, axis=-1), 1, SCANS, limit=2e-3, headline=True)
