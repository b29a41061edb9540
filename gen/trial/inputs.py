"""Inputs that a kernel is tried on: random ones, and those that go wrong where random ones do not.

Input: a spec and sizes. Output: arrays with values of a kind, and kernels that are called with
arrays that lie in memory as a caller's may. Invariant: the same generator gives the same arrays.
"""

import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ..errors import KernelFault, TilesmithError
from ..ir.algebra import dtype_of
from ..ir.interpret.evaluate import numpy_dtype
from ..ir.interpret.sizes import value
from ..ir.nodes import Allocate, Cast, Combiner, Intent, Kernel, Loop, Stmt, Update
from ..ir.types import DType
from ..ir.walk import nested, walk
from ..language import Dtypes
from ..language.build import shape_of
from ..language.formulas import oracle
from ..language.model import KernelSpec
from ..lower.index_limits import check, index_limits
from .drawn import draw
from .kinds import InputKind, of_kind, with_limits
from .sizes import allowed, values_of

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Call = Callable[[Mapping[str, Array], Mapping[str, int]], None]
"""A kernel called with all its arrays, outputs included, and its dims' sizes (`kernel_dims`)."""


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
    """Every array argument: inputs as the spec has them drawn, or random around 0; or as `kind` has
    them; outputs uninitialised.

    positive: inputs of which the spec says nothing are at least 1/2. scalars: those of which shapes
    follow and that are not at their defaults.
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
        elif a.drawn is not None:
            arrays[a.name] = draw(a.drawn, shape, element, values, kind, rng)
        elif element.is_float:
            arrays[a.name] = of_kind(normal(*shape), element, kind, rng).astype(dtype)
        elif dtype.kind == "c":
            parts = of_kind(normal(2, *shape), element.real, kind, rng)
            arrays[a.name] = np.empty(shape, dtype)
            arrays[a.name].real, arrays[a.name].imag = parts
        elif dtype.kind == "b":
            arrays[a.name] = rng.integers(0, 2, shape).astype(dtype)
        else:
            drawn = rng.integers(0, 3 if kind is InputKind.TIES else 100, shape).astype(dtype)
            arrays[a.name] = with_limits(drawn, rng) if kind is InputKind.EXTREME else drawn
    return arrays


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
    if rank > _MOST_ROOM:  # which doubles an axis, and more
        for k in map(int, rng.permutation(rank)[_MOST_ROOM:]):
            steps[k] = 1 if steps[k] > 0 else -1
            shape[k], first[k] = array.shape[k], 0
    base = np.zeros([shape[k] for k in order], array.dtype)
    ways = tuple(
        slice(f, f + n * s, s) if s > 0 else slice(f + n * -s - 1, f - 1 if f else None, s)
        for f, n, s in zip(first, array.shape, steps, strict=True)
    )
    view = base.transpose(np.argsort(order))[ways] if rank else base
    view[...] = array
    for axis in (k for k in range(free) if array.shape[k] > 1 and read):
        one = np.broadcast_to(view[(slice(None),) * axis + (slice(0, 1),)], view.shape)
        view = one if np.array_equal(one, view) else view
    return base, view


_MOST_ROOM = 4
"""Of how many axes have room around them, and may be apart."""


def _inside(other: Array, base: Array, view: Array) -> Array:
    """The view of another array that is to it as the view is to its base."""
    offset = view.ctypes.data - base.ctypes.data if view.size else 0
    return np.ndarray(view.shape, view.dtype, other, offset, view.strides)


# ---------------------------------------------------------------- sizes


MOST_ELEMENTS = 2**21
MOST_WORK = 2**23
MOST_BYTES = 2**30
"""What a run may take of memory, where nobody says the sizes."""

AN_ELEMENT = 128
"""The bytes that a run takes for each element of an argument, about: results are compared in the
widest type there is, and copied on the way."""


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
    given, for which the innermost blocks of the plain schedule run at most so often and a run takes
    no more than MOST_BYTES; None where there are none, the last wanted size where all are too much.
    """
    free, found = [dim for dim in spec.dims if dim not in given], None
    for size in wanted:
        around = (size, size + 1, size // 2, 2 * size, 3, 1)
        for combo in itertools.islice(itertools.product(around, repeat=len(free)), 10_000):
            sizes = {**given, **dict(zip(free, combo, strict=True))}
            if allowed(spec, sizes):
                found = {dim: sizes[dim] for dim in spec.dims}
                if runs(spec, plain, found) <= most and memory(spec, plain, found) <= MOST_BYTES:
                    return found
                break
    return found


def memory(spec: KernelSpec, plain: Kernel, sizes: Mapping[str, int]) -> float:
    """About how many bytes a run of the plain schedule takes, its comparison included."""
    values = values_of(spec, sizes)
    inside = plain.body.buffers if isinstance(plain.body, Allocate) else ()
    each = [(p.buffer, AN_ELEMENT) for p in plain.parameters]
    each += [(b, numpy_dtype(b.dtype).itemsize) for b in inside]
    shapes = (([value(extent, values) for extent in b.shape], taken) for b, taken in each)
    return sum(math.prod(map(float, shape)) * taken for shape, taken in shapes)


def too_large(spec: KernelSpec, plain: Kernel, sizes: Mapping[str, int]) -> str | None:
    """Why indices are not enough for a call of these sizes; None where they are."""
    try:
        check(spec.name, index_limits([(plain, None)]), oracle.defaults(spec), sizes)
    except ValueError as error:
        return str(error)
    return None


def too_much(spec: KernelSpec, plain: Kernel, sizes: Mapping[str, int]) -> str | None:
    """Why the machine's memory is not enough for a run of these sizes; None where it is."""
    needed, there = memory(spec, plain, sizes), _machine_bytes()
    if needed <= there:
        return None
    return (
        f"{spec.name}: a run of these sizes would take about {needed / 1e9:.3g} GB, and this"
        f" machine has {there / 1e9:.3g}"
    )


def _machine_bytes() -> float:
    """Of memory; as much as anybody wants where the system does not say."""
    known = {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= getattr(os, "sysconf_names", {}).keys()
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) if known else math.inf


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
