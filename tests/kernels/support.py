"""The shipped kernels, their specs, and how a call of one is compared with its oracle."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilesmith as ts
from gen import spec as specs
from gen import trial
from gen.ir.nodes import Intent
from gen.ir.types import DType
from gen.spec import oracle
from gen.spec.build import choices
from gen.spec.model import KernelSpec

Array = NDArray[Any]
ROOT = Path(__file__).parents[2]
SPECS: dict[str, KernelSpec] = {
    path.stem: specs.load(path) for path in sorted((ROOT / "kernels_spec").glob("*.yaml"))
}
CASES = [(name, dtypes) for name, spec in SPECS.items() for dtypes in choices(spec)]


def case_name(value: object) -> str:
    return value if isinstance(value, str) else "_".join(d.value for d in value.values())  # type: ignore[attr-defined]


def call(spec: KernelSpec, arrays: Mapping[str, Array], **options: Any) -> tuple[Array, ...]:
    """The public function on the inputs, as a user would call it."""
    inputs = [arrays[a.name] for a in spec.arguments if a.intent is not Intent.OUT]
    result = getattr(ts, spec.name)(*inputs, **options)
    return result if isinstance(result, tuple) else (result,)


def outputs(spec: KernelSpec) -> tuple[str, ...]:
    return tuple(a.name for a in spec.arguments if a.intent is Intent.OUT)


def assert_right(
    spec: KernelSpec,
    dtypes: Mapping[str, DType],
    arrays: Mapping[str, Array],
    results: tuple[Array, ...],
    scalars: Mapping[str, float] | None = None,
) -> None:
    """Each element within the accuracy that the spec promises, of the oracle one precision up."""
    given = scalars or {}
    exact = oracle.evaluate(spec, arrays, given)
    values = {**arrays, **dict(zip(outputs(spec), results, strict=True))}
    values |= trial.temporaries(spec, dtypes, values, oracle.sizes(spec, values), given)
    bounds = oracle.accuracy_bound(spec, values, given)
    for name, got in zip(outputs(spec), results, strict=True):
        assert got.shape == exact[name].shape
        with np.errstate(invalid="ignore"):
            off = np.abs(got.astype(np.longdouble) - exact[name])
            same = (got == exact[name]) | (np.isnan(got) & np.isnan(exact[name]))
        assert np.all(same | (off <= bounds[name])), (
            f"{spec.name}: largest error {np.nanmax(np.where(same, 0, off))}"
        )


def sizes_of(spec: KernelSpec, dtypes: Mapping[str, DType]) -> Iterator[dict[str, int]]:
    """Sizes around the vectors of every level, and one that is far above every tile."""
    level = ts.show_config("dicts")["level"]
    lanes = {"v2": 16, "v3": 32, "v4": 64, "neon": 16}[level] // next(iter(dtypes.values())).bytes
    yield from trial.edges(spec, lanes)
    yield {dim: 150 + 31 * k for k, dim in enumerate(spec.dims)}
