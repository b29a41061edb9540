"""Inputs that a kernel is tried on: random ones, and those that go wrong where random ones do not.

Input: a spec and sizes. Output: arrays with values of a kind, and kernels that are called with
arrays that lie in memory as a caller's may. Invariant: the same generator gives the same arrays.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ..errors import KernelFault, TilesmithError
from ..ir.algebra import dtype_of
from ..ir.interpret.evaluate import numpy_dtype
from ..ir.interpret.sizes import value
from ..ir.nodes import Cast, Combiner, Intent, Kernel, Loop, Stmt, Update
from ..ir.types import DType
from ..ir.walk import nested, walk
from ..language import Dtypes
from ..language.build import shape_of
from ..language.formulas import oracle
from ..language.model import KernelSpec
from ..lower.index_limits import check, index_limits
from .sizes import allowed, values_of

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Call = Callable[[Mapping[str, Array], Mapping[str, int]], None]
"""A kernel called with all its arrays, outputs included, and its dims' sizes (`kernel_dims`)."""


@final
class InputKind(Enum):
    """What is particular about a case's inputs; the values are as reports call them."""

    RANDOM = "random"
    TIES = "ties"
    SMALL = "zeros and the smallest"
    EXTREME = "the largest"
    SPECIAL = "NaN and infinities"
    STRIDED = "strided"
    LONG = "long"

    @property
    def beyond(self) -> bool:
        """Whether the values may leave what a type holds on the way to a result."""
        return self in (InputKind.SMALL, InputKind.EXTREME, InputKind.SPECIAL)


def random_arrays(
    spec: KernelSpec,
    dtypes: Dtypes,
    sizes: Mapping[str, int],
    rng: np.random.Generator,
    scalars: Mapping[str, float] | None = None,
    *,
    positive: bool = False,
    kind: InputKind = InputKind.RANDOM,
) -> dict[str, Array]:
    """Every array argument: inputs random around 0 or as `kind` has them, outputs uninitialised.

    positive: inputs of at least 1/2 instead. scalars: those of which shapes follow and that are
    not at their defaults.
    """
    arrays: dict[str, Array] = {}
    values = values_of(spec, sizes, scalars)

    def normal(*shape: int) -> Array:
        drawn = rng.standard_normal(shape)
        return np.abs(drawn) + 0.5 if positive else drawn

    for a in spec.arguments:
        shape = tuple(value(extent, values) for extent in shape_of(a.shape))
        element = dtypes.get(a.element) or DType(a.element)
        dtype = numpy_dtype(element)
        if a.intent is Intent.OUT:
            arrays[a.name] = np.empty(shape, dtype)
        elif element.is_float:
            arrays[a.name] = _of_kind(normal(*shape), element, kind, rng).astype(dtype)
        elif dtype.kind == "c":
            parts = _of_kind(normal(2, *shape), element.real, kind, rng)
            arrays[a.name] = np.empty(shape, dtype)
            arrays[a.name].real, arrays[a.name].imag = parts
        elif dtype.kind == "b":
            arrays[a.name] = rng.integers(0, 2, shape).astype(dtype)
        else:
            drawn = rng.integers(0, 3 if kind is InputKind.TIES else 100, shape).astype(dtype)
            arrays[a.name] = _with_limits(drawn, rng) if kind is InputKind.EXTREME else drawn
    return arrays


def _of_kind(drawn: Array, element: DType, kind: InputKind, rng: np.random.Generator) -> Array:
    """Random float64 numbers, some or all of them replaced by those of a kind."""
    limits = _LIMITS[element]
    match kind:
        case InputKind.TIES:
            return rng.integers(-1, 2, drawn.shape).astype(float)
        case InputKind.SMALL:
            others = (0.0, -0.0, limits.smallest, -limits.smallest, limits.normal)
            return _mixed(drawn, others, 0.5, rng)
        case InputKind.SPECIAL:
            return _mixed(drawn, (np.nan, np.inf, -np.inf, -0.0), 0.1, rng)
        case InputKind.EXTREME if drawn.size:  # one: sums of several depend on their order
            changed = drawn.copy()
            changed.flat[rng.integers(drawn.size)] = rng.choice((-1, 1)) * limits.largest
            return changed
        case _:
            return drawn


def _mixed(
    drawn: Array, others: tuple[float, ...], share: float, rng: np.random.Generator
) -> Array:
    return np.where(rng.random(drawn.shape) < share, rng.choice(others, drawn.shape), drawn)


def _with_limits(drawn: Array, rng: np.random.Generator) -> Array:
    limits = np.iinfo(drawn.dtype)
    others = np.array([limits.min, limits.min + 1, limits.max - 1, limits.max, 0], drawn.dtype)
    return np.where(rng.random(drawn.shape) < 0.5, rng.choice(others, drawn.shape), drawn)


class _Limits(NamedTuple):
    """Of a float type: its smallest number above 0, its smallest normal one, its largest."""

    smallest: float
    normal: float
    largest: float


_LIMITS = {
    DType.FLOAT16: _Limits(2.0**-24, 2.0**-14, 65504.0),
    DType.BFLOAT16: _Limits(2.0**-133, 2.0**-126, (2 - 2.0**-7) * 2.0**127),
    DType.FLOAT32: _Limits(2.0**-149, 2.0**-126, (2 - 2.0**-23) * 2.0**127),
    DType.FLOAT64: _Limits(2.0**-1074, 2.0**-1022, (2 - 2.0**-52) * 2.0**1023),
}


def smallest(element: DType) -> float:
    """The smallest number above 0 of a float or complex type."""
    return _LIMITS[element.real].smallest


def kinds(plain: Kernel) -> tuple[InputKind, ...]:
    """The kinds of values that say something of the kernel: not those that lead to casts of which
    any number may come, nor large ones in products, which overflow in some orders and not in
    others.
    """
    casts = (n for n in walk(plain) if isinstance(n, Cast) and n.dtype.is_integer)
    if any(dtype_of(n.operand).is_float for n in casts):
        return InputKind.TIES, InputKind.STRIDED
    updates = (n for n in walk(plain) if isinstance(n, Update) and n.combiner is Combiner.PROD)
    products = any(not dtype_of(n.values[0]).is_integer for n in updates)
    large = () if products else (InputKind.EXTREME,)
    return InputKind.TIES, InputKind.SMALL, *large, InputKind.SPECIAL, InputKind.STRIDED


# ---------------------------------------------------------------- memory


@final
class Outside(Exception):
    """A kernel wrote where it may not."""


def strided(spec: KernelSpec, kernel: Call, rng: np.random.Generator) -> Call:
    """The kernel, called with the values of the arrays that it is given in arrays of other strides:
    with room between, reversed, with axes in another order, repeated by a stride of 0. The last
    axis has stride 1 where the kernel needs that.

    Raises Outside where anything but an output is changed.
    """
    written = {a.name for a in spec.arguments if a.intent is not Intent.IN}

    def call(arrays: Arrays, sizes: Mapping[str, int]) -> None:
        for unit in (False, True):
            laid = {n: _laid(x, n not in written, unit, rng) for n, x in arrays.items()}
            before = {n: base.copy() for n, (base, _) in laid.items()}
            try:
                kernel({n: view for n, (_, view) in laid.items()}, sizes)
                break
            except KernelFault:
                raise
            except TilesmithError:
                if unit:
                    raise
        for name, (base, view) in laid.items():
            if name in written:
                arrays[name][...] = view
                view[...] = 0
                _inside(before[name], base, view)[...] = 0
            if before[name].tobytes() != base.tobytes():
                raise Outside(name)

    return call


def _laid(array: Array, read: bool, unit: bool, rng: np.random.Generator) -> tuple[Array, Array]:
    """A larger array, and the view of it that has the array's values."""
    rank = array.ndim
    free = rank - 1 if unit and rank else rank  # the axes that may lie as they like
    order = [*map(int, rng.permutation(free)), *range(free, rank)]
    steps = [*map(int, rng.choice((1, 2, -1, -2), free)), *[1] * (rank - free)]
    shape = [n * abs(s) + 5 for n, s in zip(array.shape, steps, strict=True)]  # room at both ends
    first = [*map(int, rng.integers(2, 4, rank))]
    base = np.zeros([shape[k] for k in order], array.dtype)
    ways = tuple(
        slice(f, f + n * s, s) if s > 0 else slice(f + n * -s - 1, f - 1, s)
        for f, n, s in zip(first, array.shape, steps, strict=True)
    )
    view = base.transpose(np.argsort(order))[ways] if rank else base
    view[...] = array
    for axis in (k for k in range(free) if array.shape[k] > 1 and read):
        one = np.broadcast_to(view[(slice(None),) * axis + (slice(0, 1),)], view.shape)
        view = one if np.array_equal(one, view) else view
    return base, view


def _inside(other: Array, base: Array, view: Array) -> Array:
    """The view of another array that is to it as the view is to its base."""
    offset = view.ctypes.data - base.ctypes.data if view.size else 0
    return np.ndarray(view.shape, view.dtype, other, offset, view.strides)


# ---------------------------------------------------------------- sizes


MOST_ELEMENTS = 2**21
MOST_WORK = 2**23


def long_sizes(spec: KernelSpec, plain: Kernel) -> Iterator[dict[str, int]]:
    """For each dim, sizes in which it is beyond 2**16 and the others are small; where the arrays
    and the loops of the plain schedule are not too large.
    """
    for dim in spec.dims:
        for many, few in ((m, f) for m in (65539, 65540, 65537, 65792) for f in (3, 4, 1)):
            sizes = {d: many if d == dim else few for d in spec.dims}
            if allowed(spec, sizes) and _small(spec, plain, sizes):
                yield sizes
                break


def near(
    spec: KernelSpec, plain: Kernel, given: Mapping[str, int], wanted: Sequence[int], most: int
) -> dict[str, int] | None:
    """The first of the wanted sizes, or one near it that a call may have, for each dim that is not
    given, for which the innermost blocks of the plain schedule run at most so often; None where
    there are none, the last wanted size where all run too often.
    """
    free, found = [dim for dim in spec.dims if dim not in given], None
    for size in wanted:
        around = (size, size + 1, size // 2, 2 * size, 3, 1)
        for combo in itertools.islice(itertools.product(around, repeat=len(free)), 10_000):
            sizes = {**given, **dict(zip(free, combo, strict=True))}
            if allowed(spec, sizes):
                found = {dim: sizes[dim] for dim in spec.dims}
                if runs(spec, plain, found) <= most:
                    return found
                break
    return found


def too_large(spec: KernelSpec, plain: Kernel, sizes: Mapping[str, int]) -> str | None:
    """Why indices are not enough for a call of these sizes; None where they are."""
    try:
        check(spec.name, index_limits([(plain, None)]), oracle.defaults(spec), sizes)
    except ValueError as error:
        return str(error)
    return None


def costed(
    spec: KernelSpec, plain: Kernel, given: Mapping[str, int] | None = None
) -> dict[str, int]:
    """The sizes that costs are told for where nobody says which: tiles fit in, and it ends. Raises
    TilesmithError where a call may not have those that are given.
    """
    if found := near(spec, plain, given or {}, (256, 128, 64, 32, 16, 8), MOST_WORK):
        return found
    raise TilesmithError(f"{spec.name}: there is no call of these sizes to tell costs for")


def whole(values: Mapping[str, float]) -> dict[str, int]:
    """Those that are whole numbers, as all sizes are."""
    return {name: int(value) for name, value in values.items() if float(value).is_integer()}


def _small(spec: KernelSpec, plain: Kernel, sizes: Mapping[str, int]) -> bool:
    if too_large(spec, plain, sizes):
        return False
    values = values_of(spec, sizes)
    shapes = ([value(e, values) for e in shape_of(a.shape)] for a in spec.arguments)
    if any(np.prod(shape, dtype=float) > MOST_ELEMENTS for shape in shapes):
        return False
    return _work(plain.body, values) <= MOST_WORK


def runs(spec: KernelSpec, plain: Kernel, sizes: Mapping[str, int]) -> float:
    """How often the innermost blocks of the plain schedule run, at most."""
    return _work(plain.body, values_of(spec, sizes))


def _work(stmt: Stmt, values: Mapping[str, float]) -> float:
    """How often the innermost blocks run, at most."""
    inside = nested(stmt)
    if not isinstance(stmt, Loop):
        return max((_work(s, values) for s in inside), default=1.0)
    extent = value(stmt.upper, values)
    return extent * max((_work(s, {**values, stmt.var: extent}) for s in inside), default=0.0)
