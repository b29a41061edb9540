"""The examples of the specs, run as doctests on the built extension."""

import doctest
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from gen.language import load

SPECS = sorted((Path(__file__).parents[2] / "kernels_spec").glob("*.yaml"))


@pytest.fixture(scope="module")
def tilesmith() -> ModuleType:
    module = pytest.importorskip(
        "tilesmith", reason="the extension is not built", exc_type=ImportError
    )
    assert isinstance(module, ModuleType)
    return module


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_spec_has_an_example_of_its_kernel(path: Path) -> None:
    assert f">>> ts.{path.stem}(" in load(path).example


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_example(path: Path, tilesmith: ModuleType) -> None:
    names = {"np": np, "ts": tilesmith}
    test = doctest.DocTestParser().get_doctest(
        load(path).example, names, path.stem, str(path), None
    )
    report: list[str] = []
    results = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert results.attempted and not results.failed, "".join(report)
