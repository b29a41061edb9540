"""Functions of elements."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from .. import references
from .kernel import ELEMENTS, POSITIVE, Kernel, mapped, per_element, same, two


def kernels() -> Iterator[Kernel]:
    yield mapped("exp", np.exp, 1, ELEMENTS, headline=True)
    elements = two((1 << 24,), (1 << 16,))
    yield mapped("log", np.log, 1, elements, values=(POSITIVE,))
    yield mapped("log1p", np.log1p, 1, elements, values=(POSITIVE,))
    yield mapped("expm1", np.expm1, 1, elements)
    yield mapped("tanh", np.tanh, 1, elements)
    yield mapped("sin", np.sin, 1, elements)
    yield mapped("cos", np.cos, 1, elements)
    yield mapped("sigmoid", references.expit, 3, elements)
    yield mapped("silu", lambda x: x * references.expit(x), 4, elements)
    yield mapped("gelu_tanh", references.gelu_tanh, 8, elements)
    yield mapped("softplus", partial(np.logaddexp, 0), 4, elements)
    yield mapped("gelu", references.gelu, 4, elements)
    yield mapped("clamp", lambda x: np.clip(x, 0, 1), 2, elements)
    yield Kernel(
        "multiply_add",
        lambda n: ((n,), (n,), (n,)),
        same,
        lambda x, y, z: 2 * x + y * z,
        per_element(3),
        two((1 << 23,), (1 << 15,)),
    )
    yield Kernel(
        "axpby",
        lambda n: ((n,), (n,)),
        same,
        lambda x, y: 2 * x - 3 * y,
        per_element(3),
        two((1 << 23,), (1 << 15,)),
    )
