"""The shipped kernels, their specs, and how a call of one is compared with its oracle."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilesmith as ts
from gen import language as specs
from gen.ir import storage
from gen.ir.nodes import Intent
from gen.ir.types import DType
from gen.language.build import choices
from gen.language.formulas import oracle
from gen.language.model import KernelSpec
from gen.trial.plain import Reference
from gen.trial.sizes import edges

Array = NDArray[Any]
ROOT = Path(__file__).parents[2]
SPECS: dict[str, KernelSpec] = {
    path.stem: specs.load(path) for path in sorted((ROOT / "kernels_spec").glob("*.yaml"))
}

# Of the integers some; test_integers.py has them all.
_TRIED = {DType.BOOL, DType.INT8, DType.UINT16, DType.INT64, *(d for d in DType if d.is_float)}
CASES = [
    (name, dtypes)
    for name, spec in SPECS.items()
    for dtypes in choices(spec)
    if len(choices(spec)) <= 2 or next(iter(dtypes.values())) in _TRIED
]


def case_name(value: object) -> str:
    return value if isinstance(value, str) else "_".join(d.value for d in value.values())  # type: ignore[attr-defined]


def call(spec: KernelSpec, arrays: Mapping[str, Array], **options: Any) -> tuple[Array, ...]:
    """The public function on the inputs, as a user would call it."""
    inputs = [arrays[a.name] for a in spec.arguments if a.intent is not Intent.OUT]
    if str(spec.signature).startswith("(n)->()"):
        options = {"axis": -1, **options}  # these reduce all axes where nothing is said
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
    if spec.oracle:
        exact = oracle.evaluate(spec, arrays, given)
    elif written := _WRITTEN_OUT.get(spec.name):
        exact = {outputs(spec)[0]: written(arrays, given)}
    else:
        exact = _plain(spec, arrays)
    values = {**arrays, **dict(zip(outputs(spec), results, strict=True))}
    sizes = oracle.sizes(spec, values, given)
    values |= _reference(spec, *dtypes.items()).temporaries(values, sizes, given)
    bounds = oracle.accuracy_bound(spec, values, given)
    for name, got in zip(outputs(spec), results, strict=True):
        assert got.shape == exact[name].shape
        value = storage.computed(got)
        with np.errstate(invalid="ignore"):
            off = np.abs(value.astype(np.longdouble) - exact[name])
            same = (value == exact[name]) | (np.isnan(value) & np.isnan(exact[name]))
        assert np.all(same | (off <= bounds[name])), (
            f"{spec.name}: largest error {np.nanmax(np.where(same, 0, off))}"
        )


@cache
def _reference(spec: KernelSpec, *dtypes: tuple[str, DType]) -> Reference:
    """One for all tests, since it is compiled."""
    return Reference(spec, dict(dtypes))


def _plain(spec: KernelSpec, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """What the spec says, where it has no oracle: its plain schedule in float64."""
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    dtypes = {variable.name: DType.FLOAT64 for variable in spec.dtypes}
    return _reference(spec, *dtypes.items()).results(wide, oracle.sizes(spec, arrays))


def far(spec: KernelSpec, size: int) -> int:
    """A size far above the tiles; a quarter of it for kernels of many dims, which take long."""
    return size if len(spec.dims) <= 3 else size // 4


def sizes_of(spec: KernelSpec, dtypes: Mapping[str, DType]) -> Iterator[dict[str, int]]:
    """Sizes around the vectors of every level, and one that is far above every tile."""
    level = ts.show_config("dicts")["level"]
    width = {"v2": 16, "v3": 32, "v4": 64, "neon": 16}[level]
    yield from edges(spec, width // next(iter(dtypes.values())).computed.bytes)
    yield sizes_from(spec, far(spec, 150), 31)


def sizes_from(spec: KernelSpec, first: int, step: int) -> dict[str, int]:
    """A size for each dim; where a kernel has many, or takes long, always the same few."""
    return _FEW.get(spec.name) or {dim: first + step * k for k, dim in enumerate(spec.dims)}


_FEW = {
    "attention": {"h": 2, "m": 37, "d": 19, "n": 53, "e": 21},
    "group_norm": {"m": 3, "g": 4, "k": 5, "n": 70},
    "lstm": {"t": 5, "b": 7, "d": 37, "h": 21},
    "masked_attention": {"h": 2, "m": 37, "d": 19, "n": 53, "e": 21},
    "triangular_solve": {"s": 3, "m": 150, "n": 181},
    "trmm": {"s": 3, "m": 150, "n": 181},
    "conv1d": {"n": 3, "c": 5, "w": 150, "o": 19, "kw": 3},
    "conv2d": {"n": 3, "h": 20, "w": 37, "o": 19, "cg": 5, "kh": 3, "kw": 2},
    "conv3d": {"n": 2, "c": 3, "d": 5, "h": 7, "w": 37, "o": 19, "kd": 2, "kh": 3, "kw": 2},
    "conv_transpose2d": {"n": 2, "c": 5, "h": 7, "w": 37, "o": 19, "kh": 3, "kw": 2},
    "depthwise_conv2d": {"n": 3, "c": 5, "h": 20, "w": 70, "kh": 3, "kw": 4},
}


def _heat2d(arrays: Mapping[str, Array], scalars: Mapping[str, float]) -> Array:
    u = arrays["u"].astype(np.longdouble)
    alpha = np.longdouble(arrays["u"].dtype.type(scalars.get("alpha", 0.1)))
    for _ in range(int(scalars.get("steps", 1))):
        old = u.copy()
        around = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
        u[1:-1, 1:-1] += alpha * (around - 4 * old[1:-1, 1:-1])
    return u


_WRITTEN_OUT = {"heat2d": _heat2d}  # where no expression says what the kernel does
