"""float16 and bfloat16 arrays through a built extension: types, promotion, `out=`, errors."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .author import Author
from .author import package as sources

BFLOAT16, FLOAT16 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)
X = np.random.default_rng(0).standard_normal(101)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, author: Author) -> ModuleType:
    folder = tmp_path_factory.mktemp("stored")
    source = sources(folder, sorted((Path(__file__).parent / "storage").glob("*.yaml")))
    built = folder / "stored_types"
    author.run("python", "-m", "mesonbuild.mesonmain", "setup", built, source)
    author.run("ninja", "-C", built)
    (built / "__init__.py").write_text("from ._kernels import *\n")
    sys.path.insert(0, str(folder))
    return importlib.import_module("stored_types")


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16])
def test_results_have_the_arguments_type(package: ModuleType, dtype: np.dtype[Any]) -> None:
    a, b = X.astype(dtype), X[::-1].astype(dtype)
    expected = (a.astype("f") + np.float32(0.001) * b.astype("f")).astype(dtype)
    for _ in range(2):  # the second call knows the type
        y = package.weighted_sum(a, b)
        assert y.dtype == dtype
        near = np.abs(y.astype("f") - expected.astype("f"))  # v2 rounds the product
        assert (near <= np.abs(expected.astype("f")) * 2.0**-7).all()
    np.testing.assert_array_equal(package.weighted_sum(a[::2], b[::2]), y[::2])
    out = np.zeros(202, dtype)[::2]
    assert package.weighted_sum(a, b, out=out) is out
    np.testing.assert_array_equal(out, y)
    assert package.weighted_sum(a[0], b[0]).dtype == dtype


def test_types_of_arguments_promote_as_numpys(package: ModuleType) -> None:
    a = np.ones(3)
    for one, other, result in (
        (FLOAT16, np.float32, np.float32),
        (BFLOAT16, np.float32, np.float32),
        (BFLOAT16, np.float64, np.float64),
        (FLOAT16, np.int8, FLOAT16),
        (BFLOAT16, np.int8, BFLOAT16),
    ):
        given = a.astype(one), a.astype(other)
        assert package.weighted_sum(*given).dtype == result == np.result_type(*given)
    assert package.weighted_sum(a.astype(FLOAT16), 2.0).dtype == FLOAT16
    assert package.weighted_sum(a.astype(BFLOAT16), 2.0).dtype == BFLOAT16
    assert package.weighted_sum([1.0], 2.0).dtype == np.float64


def test_what_does_not_fit_is_refused(package: ModuleType) -> None:
    a = np.ones(3)
    with pytest.raises(TypeError, match="weighted_sum: arrays of bfloat16, float16 have no common"):
        package.weighted_sum(a.astype(BFLOAT16), a.astype(FLOAT16))
    with pytest.raises(TypeError, match=r"out \(y\) must have dtype bfloat16, got float16"):
        package.weighted_sum(a.astype(BFLOAT16), a.astype(BFLOAT16), out=a.astype(FLOAT16))
    with pytest.raises(TypeError, match=r"out \(y\) must have dtype float16, got float32"):
        package.weighted_sum(a.astype(FLOAT16), a.astype(FLOAT16), out=a.astype("f"))


def test_a_result_in_bfloat16_needs_ml_dtypes(package: ModuleType) -> None:
    y = package.stored(X.astype("f"))
    np.testing.assert_array_equal(y.astype("f"), X.astype("f").astype(BFLOAT16).astype("f"))
    code = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'ml_dtypes': raise ImportError\n"
        "sys.meta_path.insert(0, Without())\n"
        f"sys.path.insert(0, {str(Path(package.__file__ or '').parents[1])!r})\n"
        "import numpy as np, stored_types\n"
        "assert stored_types.weighted_sum(np.ones(2), 1).dtype == float\n"
        "stored_types.stored(np.ones(2, 'f'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "TypeError: bfloat16 needs the package ml_dtypes"
