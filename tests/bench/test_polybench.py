"""PolyBench's kernels: all thirty, at sizes that calls may have, and right in NumPy."""

import numpy as np
import pytest

from bench.polybench_cases import BENCHMARKS, NAMES, Benchmark, dtypes_of, in_numpy, path_of
from bench.polybench_cases import problem as problem_of
from bench.polybench_numpy import FORMS
from gen import language as specs
from gen.ir.nodes import Intent
from gen.language.formulas import oracle
from gen.trial.inputs import random_arrays
from gen.trial.sizes import allowed
from tests.language.references import REFERENCES

THIRTY = """2mm 3mm adi atax bicg cholesky correlation covariance deriche doitgen durbin fdtd-2d
    floyd-warshall gemm gemver gesummv gramschmidt heat-3d jacobi-1d jacobi-2d lu ludcmp mvt
    nussinov seidel-2d symm syr2k syrk trisolv trmm"""


def test_there_are_thirty() -> None:
    assert sorted(b.name for b in BENCHMARKS) == sorted(THIRTY.split())


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda b: b.name)
def test_sizes_are_of_all_dims_and_known_scalars(benchmark: Benchmark) -> None:
    spec = specs.load(path_of(benchmark))
    named = set(benchmark.names.split())
    assert named - {s.name for s in spec.scalars} == set(spec.dims)
    for size in NAMES:
        values = benchmark.at(size)
        assert allowed(spec, {dim: values[dim] for dim in spec.dims})


def test_a_problem_has_its_steps() -> None:
    benchmark = next(b for b in BENCHMARKS if b.name == "jacobi-1d")
    problem = problem_of(benchmark, "MINI")
    assert oracle.defaults(problem.spec) == {"steps": 20}
    assert problem.sizes == {"n": 30} and problem.drawn["a"].dtype == np.float64
    assert problem.written == problem.restored == ("a", "b")


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda b: b.name)
def test_in_numpy(benchmark: Benchmark) -> None:
    """As the reference that says it in yet another way, or the oracle one precision up."""
    spec = specs.load(path_of(benchmark))
    for n in (4, 7):
        sizes = {dim: n + k for k, dim in enumerate(reversed(spec.dims))}
        drawn = random_arrays(spec, dtypes_of(spec), sizes, np.random.default_rng(n))
        problem = problem_of(benchmark, "MINI")
        given = type(problem)(spec, sizes, drawn)
        copies = [{name: x.copy() for name, x in drawn.items()} for _ in range(2)]
        found = in_numpy(given)(copies[0])
        inputs = [a.name for a in spec.arguments if a.intent is not Intent.OUT]
        known = {name: copies[1][name] for name in inputs}
        if spec.oracle:
            expected = oracle.evaluate(spec, known)
        else:
            expected = REFERENCES[spec.name](**known, **oracle.defaults(spec))
        for name in given.written:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-10, atol=1e-11)


def test_forms_are_for_specs_without_an_oracle() -> None:
    loaded = [specs.load(path_of(b)) for b in BENCHMARKS]
    assert {s.name.removesuffix("_apart") for s in loaded if not s.oracle} == FORMS.keys()
