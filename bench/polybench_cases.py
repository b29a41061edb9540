"""PolyBench's thirty kernels: their specs, their sizes, and what NumPy makes of them.

Input: a benchmark and the name of one of PolyBench's sizes. Output: a Problem: the spec with that
size's scalars as its defaults, and the arrays of a call, as the spec has them drawn.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from gen import language as specs
from gen.ir.nodes import Intent
from gen.language.formulas import oracle
from gen.language.model import KernelSpec
from gen.trial.inputs import Array

from . import ROOT
from .polybench_numpy import FORMS
from .suite import Call, Problem, formulas, problem_of

FOLDER = ROOT / "tests" / "language"
NAMES = ("MINI", "SMALL", "MEDIUM", "LARGE")
"""Of PolyBench's sizes; there is a larger one."""


@final
@dataclass(frozen=True, slots=True)
class Benchmark:
    """One of PolyBench's. file: of the spec. names: of the dims and scalars that have its sizes.
    sizes: these, as NAMES has them.
    """

    name: str
    file: str
    names: str
    sizes: tuple[tuple[int, ...], ...]

    def at(self, size: str) -> dict[str, int]:
        return dict(zip(self.names.split(), self.sizes[NAMES.index(size)], strict=True))


_SQUARE = ((40,), (120,), (400,), (2000,))
_PRODUCT = ((20, 30), (60, 80), (200, 240), (1000, 1200))
_COLUMNS = ((28, 32), (80, 100), (240, 260), (1200, 1400))
_VECTORS = ((38, 42), (116, 124), (390, 410), (1900, 2100))

BENCHMARKS = tuple(
    Benchmark(*each)
    for each in (
        ("correlation", "corpus/polybench/correlation", "m n", _COLUMNS),
        ("covariance", "corpus/polybench/covariance", "m n", _COLUMNS),
        ("gemm", "corpus/polybench/gemm", "m n k",
         ((20, 25, 30), (60, 70, 80), (200, 220, 240), (1000, 1100, 1200))),
        ("gemver", "corpus/polybench/gemver", "n", _SQUARE),
        ("gesummv", "corpus/polybench/gesummv", "n", ((30,), (90,), (250,), (1300,))),
        ("symm", "corpus/polybench/symm", "m n", _PRODUCT),
        ("syr2k", "corpus/polybench/syr2k", "m n", _PRODUCT),
        ("syrk", "corpus/polybench/syrk", "m n", _PRODUCT),
        ("trmm", "corpus/polybench/trmm_transposed", "m n", _PRODUCT),
        ("2mm", "corpus/polybench/two_matmuls", "m n k l",
         ((16, 18, 22, 24), (40, 50, 70, 80), (180, 190, 210, 220), (800, 900, 1100, 1200))),
        ("3mm", "corpus/polybench/three_matmuls", "m n k p l",
         ((16, 18, 20, 22, 24), (40, 50, 60, 70, 80), (180, 190, 200, 210, 220),
          (800, 900, 1000, 1100, 1200))),
        ("atax", "corpus/polybench/atax", "m n", _VECTORS),
        ("bicg", "corpus/polybench/bicg", "m n", _VECTORS),
        ("doitgen", "corpus/polybench/doitgen", "q r p",
         ((8, 10, 12), (20, 25, 30), (40, 50, 60), (140, 150, 160))),
        ("mvt", "corpus/polybench/mvt", "n", _SQUARE),
        ("cholesky", "specs/cholesky", "n", _SQUARE),
        ("durbin", "corpus/polybench/durbin", "n", _SQUARE),
        ("gramschmidt", "corpus/polybench/gramschmidt", "n m", _PRODUCT),
        ("lu", "corpus/polybench/lu", "n", _SQUARE),
        ("ludcmp", "corpus/polybench/ludcmp", "n", _SQUARE),
        ("trisolv", "corpus/polybench/trisolv", "n", _SQUARE),
        ("deriche", "corpus/polybench/deriche", "w h",
         ((64, 64), (192, 128), (720, 480), (4096, 2160))),
        ("floyd-warshall", "corpus/floyd_warshall_apart", "n", ((60,), (180,), (500,), (2800,))),
        ("nussinov", "corpus/polybench/nussinov", "n", ((60,), (180,), (500,), (2500,))),
        ("adi", "corpus/polybench/adi", "steps n", ((20, 20), (40, 60), (100, 200), (500, 1000))),
        ("fdtd-2d", "corpus/polybench/fdtd_2d", "s h w",
         ((20, 20, 30), (40, 60, 80), (100, 200, 240), (500, 1000, 1200))),
        ("heat-3d", "corpus/polybench/heat_3d", "steps n",
         ((20, 10), (40, 20), (100, 40), (500, 120))),
        ("jacobi-1d", "corpus/polybench/jacobi_1d", "steps n",
         ((20, 30), (40, 120), (100, 400), (500, 2000))),
        ("jacobi-2d", "specs/jacobi_2d", "steps n",
         ((20, 30), (40, 90), (100, 250), (500, 1300))),
        ("seidel-2d", "specs/seidel_2d", "steps n",
         ((20, 40), (40, 120), (100, 400), (500, 2000))),
    )
)  # fmt: skip


def path_of(benchmark: Benchmark) -> Path:
    """The spec's file."""
    return FOLDER / f"{benchmark.file}.yaml"


def problem(benchmark: Benchmark, size: str) -> Problem:
    return problem_of(path_of(benchmark), benchmark.at(size), dtypes_of)


def dtypes_of(spec: KernelSpec) -> specs.Dtypes:
    """float64 as PolyBench has it; int32 where there are integers alone."""
    known = specs.choices(spec)
    return next((d for d in known if d["T"].value == "float64"), known[0])


def in_numpy(given: Problem) -> Call:
    """The oracle as it is written, as Python runs it, or NumPy's form."""
    scalars = oracle.defaults(given.spec)
    if form := FORMS.get(given.spec.name.removesuffix("_apart")):
        outputs = {a.name for a in given.spec.arguments if a.intent is Intent.OUT}

        def formed(arrays: Mapping[str, Array]) -> Mapping[str, Array]:
            return form(**{n: x for n, x in arrays.items() if n not in outputs}, **scalars)

        return formed

    return formulas(given)
