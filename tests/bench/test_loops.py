"""The loops that Numba gets: run by Python, they compute what the spec says."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.loops import NoLoops, to_numba
from gen import language as specs
from gen.language.formulas import oracle
from gen.lower.variants import Plain
from gen.targets.registry import TARGETS
from gen.trial.inputs import random_arrays
from gen.trial.plain import Reference
from gen.trial.sizes import allowed, kernel_dims

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "language" / "corpus" / "polybench"
FILES = [
    *(
        CORPUS / f"{name}.yaml"
        for name in ("atax", "gemm", "correlation", "jacobi_1d", "durbin", "nussinov")
    ),
    *(ROOT / "kernels_spec" / f"{name}.yaml" for name in ("softmax", "blur", "trmm", "cumsum")),
]


@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_loops(file: Path, columns: bool) -> None:
    spec = TARGETS.load(file)
    dtypes = specs.choices(spec)[0]
    plain = Plain(spec, dtypes)
    names: dict[str, Any] = {"math": math, "np": np, "prange": range}
    exec(to_numba(plain, columns=columns), names)
    sizes = dict.fromkeys(spec.dims, 5)
    assert allowed(spec, sizes)
    arrays = random_arrays(spec, dtypes, sizes, np.random.default_rng(0), positive=True)
    expected = Reference(spec, dtypes).results(arrays, sizes)
    dims, defaults = kernel_dims(spec, sizes), oracle.defaults(spec)
    kernel = plain.under(None)
    scalars = [defaults[s.name] for s in kernel.scalars]
    ours = [arrays[p.buffer.name] for p in kernel.parameters]
    names["kernel"](*(dims[dim] for dim in kernel.dims), *scalars, *ours)
    for name, array in expected.items():
        np.testing.assert_allclose(arrays[name], array, rtol=1e-3, atol=1e-4, err_msg=name)


def test_no_plain_form() -> None:
    spec = TARGETS.load(ROOT / "kernels_spec" / "argmax.yaml")
    with pytest.raises(NoLoops, match="the reduction of 'y'"):
        to_numba(Plain(spec, specs.choices(spec)[0]), columns=False)


def test_what_runs_as_far_as_data_says_is_left_out() -> None:
    spec = TARGETS.load(CORPUS.parent / "csr_matvec.yaml")
    with pytest.raises(NoLoops, match="data says"):
        to_numba(Plain(spec, specs.choices(spec)[0]), columns=False)


def test_columns_are_for_arrays_that_lie_along_them() -> None:
    """`a @ x` walks along rows of `a`, and `ax @ a` down all columns at once."""
    spec = TARGETS.load(CORPUS / "atax.yaml")
    text = to_numba(Plain(spec, specs.choices(spec)[0]), columns=True)
    assert "v_ax_total" in text
    assert "v_y_total" not in text
