"""The language's specs compiled with the plain schedule, beside their oracles.

`tests/spec` runs them in the interpreter; here they pass through lowering and the C compiler.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gen import jit, trial
from gen import spec as specs
from gen.ir.types import DType
from gen.lower.target import Level, Target
from gen.pipeline import emit, schedule, suffix
from gen.poly.prove import prove

SPECS = sorted((Path(__file__).parent / "spec" / "specs").glob("*.yaml"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILESMITH_CACHE", str(tmp_path))


def positive_definite(n: int) -> NDArray[Any]:
    a = np.random.default_rng(n).standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_compiled(path: Path) -> None:
    spec, dtypes = specs.load(path), {"T": DType.FLOAT64}
    source = emit(spec, {suffix(dtypes): schedule(spec, dtypes, Target(Level.V2), prove)}, Level.V2)
    kernel = jit.load(spec, dtypes, source, Level.V2)
    for n in (0, 1, 2, 3, 17):
        sizes = {dim: n + k for k, dim in enumerate(spec.dims)}
        if any(sizes[dim] < least for dim, least in specs.least_sizes(spec).items()):
            continue
        arrays = trial.random_arrays(spec, dtypes, sizes, np.random.default_rng(n))
        if spec.name == "cholesky":
            arrays["a"] = positive_definite(n)
        case = trial.compare(spec, dtypes, kernel, arrays, sizes)
        assert case.worst <= 1, case
