"""Complex numbers from spec to compiled code, on every level of the machine, beside NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from build_tools.accuracy import machine_levels
from gen import language as specs
from gen.cache import cache_folder
from gen.language import Dtypes
from gen.language.model import KernelSpec
from gen.lower.variants import suffix
from gen.pipeline import emit, schedule_to_emit
from gen.poly.cache import prover
from gen.targets.c.library import Loaded
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level, Processor
from gen.targets.cpu.target import Cpu
from gen.targets.target import joined
from gen.trial import comparison, inputs
from gen.trial.plain import Reference
from gen.trial.sizes import edges
from tests.plain import without_steps

SPECS = sorted((Path(__file__).parent / "language" / "complex").glob("*.yaml"))
Array = NDArray[Any]


def _compiled(path: Path, level: Level, plain: bool) -> list[tuple[KernelSpec, Dtypes, Loaded]]:
    text = path.read_text("utf-8")
    spec = specs.loads(text, path.name)
    if plain:
        spec = without_steps(spec)
    prove = prover(cache_folder() / "proofs")
    choices = {suffix(c): c for c in specs.choices(spec)}
    variants = {s: schedule_to_emit(spec, c, Cpu(level), prove) for s, c in choices.items()}
    source = joined(emit(spec, variants, Cpu(level)))
    return [(spec, c, jit.load(spec, c, source, level, flags=["-O0"])) for c in choices.values()]


def _mandelbrot(c: Array, steps: int) -> Array:
    z, count = np.zeros_like(c), np.zeros(c.shape, np.int32)
    with np.errstate(all="ignore"):
        for _ in range(steps):
            z = z * z + c
            count += z.real**2 + z.imag**2 <= 4
    return count


@pytest.mark.parametrize(
    ("level", "plain"), [(machine_levels()[0], True), (machine_levels()[-1], False)]
)
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_compiled(path: Path, level: str, plain: bool) -> None:
    for spec, dtypes, kernel in _compiled(path, Level(level), plain):
        lanes = Processor(Level(level)).lanes(dtypes["T"])
        rng = np.random.default_rng(lanes)
        for sizes in edges(spec, lanes):
            arrays = inputs.random_arrays(spec, dtypes, sizes, rng)
            if spec.name == "mandelbrot":
                kernel(arrays, sizes)
                assert np.sum(arrays["count"] != _mandelbrot(arrays["c"], 40)) <= 1  # rounding
                continue
            case = comparison.compare(Reference(spec, dtypes), kernel, arrays, sizes)
            assert case.worst <= 1, (suffix(dtypes), case)
