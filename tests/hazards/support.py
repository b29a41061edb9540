"""Calls of several kernels on one array, and what each hazard's test is compared with.

The tests of this folder are also documentation: `python -m build_tools.docs` makes docs/hazards.md
of their docstrings, each of which reads `hazard: what happens.`
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilesmith as ts

Array = NDArray[Any]
RNG = np.random.default_rng(11)
SHAPE = (20, 24)
OTHER, WEIGHT, BIAS = (RNG.standard_normal(s).astype("f") for s in ((24, 30), (24, 9), (9,)))
LEFT, SHIFT = RNG.standard_normal((6, 20)).astype("f"), RNG.standard_normal(24).astype("f")

# Each takes an array of SHAPE; they differ in their core axes, their outputs and what they read.
KERNELS: dict[str, Callable[..., Any]] = {
    "exp": ts.exp,
    "softmax": ts.softmax,
    "cumsum along axis 0": lambda x, **o: ts.cumsum(x, axis=0, **o),
    "sum": lambda x, **o: ts.sum(x, axis=-1, **o),
    "argmax along axis 0": lambda x, **o: ts.argmax(x, axis=0, **o),
    "blur": ts.blur,
    "transpose": ts.transpose,
    "layer_norm": lambda x, **o: ts.layer_norm(x, SHIFT, SHIFT, **o),
    "matmul, left": lambda x, **o: ts.matmul(x, OTHER, **o),
    "matmul, right": lambda x, **o: ts.matmul(LEFT, x, **o),
    "linear": lambda x, **o: ts.linear(x, WEIGHT, BIAS, **o),
    "linear, weight": lambda x, **o: ts.linear(LEFT, x, SHIFT, **o),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def numbers(dtype: str = "f") -> Array:
    return np.random.default_rng(12).standard_normal(SHAPE).astype(dtype)


def assert_close(got: Array, expected: Array) -> None:
    """Layouts may choose other code, which may round otherwise."""
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6)


@contextmanager
def refused(error: type[Exception], message: str) -> Iterator[None]:
    """What is inside raises the error, and says the message."""
    with pytest.raises(error) as caught:
        yield
    assert message in str(caught.value)


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, with np and ts imported."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("TILESMITH_")}
    return subprocess.run(
        [sys.executable, "-c", "import numpy as np, tilesmith as ts\n" + code],
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=Path(__file__).parent,
    )
