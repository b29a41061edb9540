"""Reductions over the first axis and over the last, and counts."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import references
from .kernel import COLUMNS, NEAR_ONE, PIXELS, Array, Kernel, one, per_element, two


def kernels() -> Iterator[Kernel]:
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
    yield Kernel(
        "histogram",
        one,
        lambda n: (256,),
        references.histogram,
        per_element(1),
        two((1 << 24,), (1 << 18,)),
        dtype=np.int64,
        limit=0,
        values=(PIXELS,),
    )


def _reductions(
    name: str, function: Callable[..., Array], operations: int = 1, **more: Any
) -> Iterator[Kernel]:
    """A reduction over the first axis and over the last: two kernels to whoever schedules them."""
    for axis, place in ((0, "first"), (1, "last")):
        headline = (name, place) == ("sum", "first")
        yield Kernel(
            f"{name}_{place}",
            one,
            lambda m, n, axis=axis: (m,) if axis else (n,),
            lambda x, axis=axis: np.asarray(function(x, axis=axis)),
            per_element(operations),
            COLUMNS if headline else two((4096, 4096), (512, 256)),
            dtype=np.int64 if name in ("argmax", "argmin") else np.float32,
            limit=0 if name in ("argmax", "argmin") else 2e-4,
            headline=headline,
            **more,
        )
