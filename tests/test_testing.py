"""`gen.testing`: a package's functions beside their oracles, here functions of Python."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gen import testing
from gen.errors import TilesmithError
from gen.project import TEMPLATES

NORMALIZE = (TEMPLATES / "kernels_spec" / "normalize.yaml").read_text("utf-8")
SUM = """\
tilesmith: 1
kernel: total
doc: Sums.
signature: (n)->()
dtypes: {T: [int64]}
arguments: {x: {type: "T[m, n]"}, y: {type: "T[m]", intent: out}}
compute: |
  y[i] = sum(x[i, j] for j in n)
oracle: np.sum(x, axis=-1)
"""


def package(name: str, function: Callable[..., Any]) -> ModuleType:
    made = ModuleType("made")
    made.show_config = lambda mode: {"level": "v2"}  # type: ignore[attr-defined]
    setattr(made, name, function)
    return made


def normalize(x: Any, out: Any) -> None:
    with np.errstate(invalid="ignore"):
        out[...] = x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True))


def test_cases_are_the_specs_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "normalize.yaml").write_text(NORMALIZE)
    (tmp_path / "total.yaml").write_text(SUM)
    names = [str(case) for case in testing.cases(tmp_path)]
    assert names == ["normalize-float32", "normalize-float64", "total-int64"]


def test_what_is_right_passes_and_what_is_wrong_does_not(tmp_path: Path) -> None:
    (tmp_path / "normalize.yaml").write_text(NORMALIZE)
    case = testing.cases(tmp_path)[0]
    case.check(package("normalize", normalize))

    def wrong_in_tails(x: Any, out: Any) -> None:
        normalize(x, out)
        out[:, 4:] *= 1 + 1e-4

    message = r"normalize-float32 at \{'m': 1, 'n': 5\}: y\[0, 4\] is off by .*e-05, .* of what the"
    with pytest.raises(AssertionError, match=message):
        case.check(package("normalize", wrong_in_tails))


def test_results_that_are_nan_alone_do_not_pass(tmp_path: Path) -> None:
    """And where positive inputs make numbers, these are compared."""
    logarithms = SUM.replace("int64", "float32").replace("sum(x[", "sum(log(x[")
    logarithms = logarithms.replace("j] for", "j]) for").replace("np.sum(x,", "np.sum(np.log(x),")

    def total(factor: float) -> Callable[..., None]:
        def function(x: Any, axis: Any, out: Any) -> None:
            with np.errstate(all="ignore"):
                out[...] = factor * np.sum(np.log(x.astype(float)), axis=axis)

        return function

    (tmp_path / "total.yaml").write_text(logarithms)
    (case,) = testing.cases(tmp_path)
    case.check(package("total", total(1)))
    with pytest.raises(AssertionError, match=r"total-float32 at .* is off by"):
        case.check(package("total", total(1.01)))
    (tmp_path / "total.yaml").write_text(logarithms.replace("np.log(x)", "np.log(-1 - np.abs(x))"))
    (case,) = testing.cases(tmp_path)

    def nan(x: Any, axis: Any, out: Any) -> None:
        out[...] = np.nan if x.shape[1] else 0

    with pytest.raises(AssertionError) as caught:
        case.check(package("total", nan))
    assert str(caught.value).startswith(
        "total-float32: all results are NaN or infinite, of positive inputs too, so a wrong kernel"
        " would not be seen: say by `drawn` of an argument for which inputs the oracle is finite"
    )


def test_reductions_run_along_the_last_axis(tmp_path: Path) -> None:
    (tmp_path / "total.yaml").write_text(SUM)
    (case,) = testing.cases(tmp_path)
    axes = []

    def total(x: Any, axis: Any, out: Any) -> None:
        axes.append(axis)
        np.sum(x, axis=axis, out=out)

    case.check(package("total", total))
    assert set(axes) == {-1}


def test_without_an_oracle_the_plain_schedule_says_what_is_right(tmp_path: Path) -> None:
    (tmp_path / "total.yaml").write_text(SUM.replace("oracle: np.sum(x, axis=-1)\n", ""))
    (case,) = testing.cases(tmp_path)
    case.check(package("total", lambda x, axis, out: np.sum(x, axis=axis, out=out)))

    def wrong(x: Any, axis: Any, out: Any) -> None:
        np.sum(x[:, :4], axis=axis, out=out)

    with pytest.raises(
        AssertionError, match=r"total-int64 at \{'m': 1, 'n': 11\}: y\[0\] is off by"
    ):
        case.check(package("total", wrong))


def test_a_scalar_without_a_default_cannot_be_tested(tmp_path: Path) -> None:
    old, new = "intent: out}}\n", "intent: out}}\nscalars: {w: {type: T}}\n"
    text = SUM.replace(old, new).replace("sum(x", "sum(w * x")
    (tmp_path / "total.yaml").write_text(text)
    (case,) = testing.cases(tmp_path)
    with pytest.raises(TilesmithError) as caught:
        case.check(package("total", lambda *_: None))
    assert str(caught.value) == "error: total: the scalar 'w' has no default"


FACTOR = """\
tilesmith: 1
kernel: factor
doc: The lower Cholesky factor of a.
signature: (n,n)->(n,n)
dtypes: {T: [float64]}
arguments:
  a: {type: "T[n, n]", drawn: positive definite}
  l: {type: "T[n, n]", intent: out}
compute: |
  for i in range(n):
      for j in range(i + 1, n):
          l[i, j] = 0
      for j in range(i):
          l[i, j] = (a[i, j] - sum(l[i, k] * l[j, k] for k in range(j))) / l[j, j]
      l[i, i] = sqrt(a[i, i] - sum(l[i, k] ** 2 for k in range(i)))
oracle: np.linalg.cholesky(a)
"""


def test_inputs_are_as_the_spec_has_them_drawn(tmp_path: Path) -> None:
    """The oracle of another matrix fails."""
    (tmp_path / "factor.yaml").write_text(FACTOR)
    (case,) = testing.cases(tmp_path)

    def factor(a: Any, out: Any) -> None:
        out[...] = np.linalg.cholesky(a)

    case.check(package("factor", factor))
