"""A kernel's results beside the right ones, in units of the accuracy that its spec promises.

Input: a spec as reference, a kernel, arrays. Output: a Case. What is right says the oracle; where
there is none, the plain schedule, as also where values leave what a type holds on the way to a
result, of which an accuracy promises nothing. Invariant: NaN alone beside NaN is not called right.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from ..errors import SpecError
from ..ir import storage
from ..ir.nodes import Intent
from ..ir.types import DType
from ..language.formulas import oracle
from .inputs import Array, Arrays, Call, Outside, random_arrays
from .kinds import InputKind, smallest
from .plain import Reference
from .sizes import kernel_dims


@final
@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison: the sizes, the largest error over the bound, and where it is.

    compared: how many results; finite: of how many of these the oracle makes a finite number.
    variant: which one ran, where that is known. scalars: those that were not at their defaults.
    """

    sizes: Mapping[str, int]
    worst: float
    error: float
    place: str
    compared: int
    finite: int
    variant: str = ""
    kind: InputKind = InputKind.RANDOM
    scalars: Mapping[str, float | str] = field(default_factory=dict)

    @property
    def mute(self) -> bool:
        """Whether there are results, but no number to tell a right kernel from a wrong one.

        Not where a size is 0: the mean of nothing is NaN.
        """
        return self.compared > 0 and self.finite == 0 and 0 not in self.sizes.values()


MUTE = (
    "all results are NaN or infinite, of positive inputs too, so a wrong kernel would not be seen:"
    " say by `drawn` of an argument for which inputs the oracle is finite"
)


def mute(cases: Sequence[Comparison]) -> bool:
    """Whether there are cases of sizes above 0 with results, and all of these are mute."""
    told = [c for c in cases if c.compared and 0 not in c.sizes.values()]
    return bool(told) and all(c.mute for c in told)


def tried(
    reference: Reference,
    kernel: Call,
    arrays: Arrays,
    sizes: Mapping[str, int],
    rng: np.random.Generator,
) -> Comparison:
    """`compare`, and where most results are no numbers, as of a logarithm, of positive inputs."""
    case = compare(reference, kernel, arrays, sizes)
    if 2 * case.finite >= case.compared:
        return case
    spec, dtypes, own = reference.spec, reference.dtypes, rng.spawn(1)[0]
    positive = random_arrays(spec, dtypes, sizes, own, positive=True)
    other = compare(reference, kernel, positive, sizes)
    worse = max(other, case, key=lambda c: c.worst)
    finite = case.finite + other.finite
    return replace(worse, compared=case.compared + other.compared, finite=finite)


def compare(
    reference: Reference,
    kernel: Call,
    arrays: Arrays,
    sizes: Mapping[str, int],
    kind: InputKind = InputKind.RANDOM,
) -> Comparison:
    """The kernel's outputs beside the right ones. kind: of the arrays' values.

    kernel: is called with all arrays, and writes those that are outputs. Raises SpecError where the
    oracle fails.
    """
    spec = reference.spec
    outputs = [a.name for a in spec.arguments if a.intent is not Intent.IN]
    dims, none = kernel_dims(spec, sizes), Comparison(dict(sizes), 0.0, 0.0, "", 0, 0, kind=kind)
    if not any(arrays[name].size for name in outputs):
        kernel(arrays, dims)  # nothing to compare, and not every oracle takes nothing
        return none
    before = {n: x.copy() if n in outputs else x for n, x in arrays.items()}
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        exact = _exact(reference, before, sizes, kind)
        try:
            kernel(arrays, dims)
        except Outside as outside:
            return replace(none, worst=np.inf, error=np.inf, place=f"{outside}, around it")
        bounds = _bounds(reference, before, {n: arrays[n] for n in outputs}, sizes, kind)
        found = {n: _off(arrays[n], exact[n], bounds.get(n)) for n in outputs if n in exact}
        if kind.beyond and any(ratio.max(initial=0) > 1 for _, ratio in found.values()):
            other = reference.results(before, sizes)
            for n, (off, ratio) in found.items():
                loose = kind is InputKind.EXTREME  # what overflows may do so on another way
                _, near = _off(arrays[n], other[n], bounds.get(n), loose=loose)
                if loose and not spec.oracle:  # products that are added fused overflow later
                    near = np.where(np.isfinite(other[n]), near, 0)
                found[n] = off, np.minimum(ratio, near)
    for name, (off, ratio) in found.items():
        if off.size:
            at = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
            compared, finite = off.size, int(np.isfinite(exact[name]).sum())
            none = replace(none, compared=none.compared + compared, finite=none.finite + finite)
            if float(ratio[at]) >= none.worst:
                place = f"{name}[{', '.join(map(str, at))}]"
                none = replace(none, worst=float(ratio[at]), error=float(off[at]), place=place)
    return none


def _exact(
    reference: Reference, arrays: Arrays, sizes: Mapping[str, int], kind: InputKind
) -> Mapping[str, Array]:
    """The oracle's outputs; those of the plain schedule where there is no oracle, or where it takes
    no values of that kind. Raises SpecError where it fails on others.
    """
    try:
        if reference.spec.oracle:
            return oracle.evaluate(reference.spec, arrays)
    except SpecError as error:
        if kind is InputKind.RANDOM:
            if not any(a.drawn for a in reference.spec.arguments):
                error.hint = error.hint or "`drawn` of an argument says on what it is tried"
            raise
    return reference.results(arrays, sizes)


def _bounds(
    reference: Reference,
    before: Arrays,
    results: Arrays,
    sizes: Mapping[str, int],
    kind: InputKind,
) -> Mapping[str, Array]:
    """The errors that the spec allows. before: the arrays as they were given. Where they hold NaN
    or infinities, which would leave no bound for any element, as of 1 in their place.
    """
    if not kind.beyond:
        further = reference.temporaries(before, sizes)
        return oracle.accuracy_bound(reference.spec, {**before, **further, **results})
    before, results = _finite(before), _finite(results)
    further = reference.temporaries(before, sizes)
    bounds = oracle.accuracy_bound(reference.spec, {**before, **_finite(further), **results})
    return {n: b + _underflow(results[n]) for n, b in bounds.items()}


def _finite(arrays: Arrays) -> dict[str, Array]:
    return {
        n: x if x.dtype.kind in "biu" else np.where(np.isfinite(x), x, 1).astype(x.dtype)
        for n, x in arrays.items()
    }


def _underflow(got: Array) -> float:
    """What may be lost where numbers are near the smallest, of which an accuracy says nothing."""
    dtype = DType(got.dtype.name)
    if dtype.is_integer or dtype is DType.BOOL:
        return 0.0
    return smallest(dtype) + _LOST * smallest(dtype.computed)


_LOST = 1000  # roundings to a multiple of the smallest number, each half of it


def _off(
    got: Array, expected: Array, bound: Array | None, *, loose: bool = False
) -> tuple[Array, Array]:
    """How far each element is off, and that over what is allowed. bound: None where the spec
    promises none. loose: whether any infinity or NaN is as good as another.
    """
    # A bool as its byte, since NumPy takes a byte of 2 for True.
    value = got.view(np.uint8) if got.dtype.kind == "b" else storage.computed(got)
    if got.dtype.kind in "iu" and expected.dtype.kind in "iu":
        expected = expected.astype(got.dtype)  # integers wrap
    off = np.abs(
        value.astype(np.clongdouble if value.dtype.kind == "c" else np.longdouble) - expected
    )
    same = (value == expected) | (np.isnan(value) & np.isnan(expected))
    if storage.is_float(got):
        rounded = storage.computed(expected.astype(np.float64).astype(got.dtype))
        same |= np.isinf(value) & (value == rounded)
    if loose or value.dtype.kind == "c":
        same |= ~np.isfinite(value) & ~np.isfinite(expected)
    off = np.where(same, 0, off)
    allowed = _usual(expected, got) if bound is None else bound
    ratio = np.where(off == 0, 0, off / np.maximum(allowed, np.finfo(float).tiny))
    return off, np.where(np.isnan(ratio), np.inf, ratio)


def _usual(expected: Array, got: Array) -> float:
    """The bound where a spec promises none: integers exactly, floats to 1000 eps of the largest."""
    if not (storage.is_float(got) or got.dtype.kind == "c") or not expected.size:
        return 0.0
    finite = np.abs(expected[np.isfinite(expected)])
    return float(1000 * storage.eps(got) * finite.max(initial=0))
