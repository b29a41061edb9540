"""All that calls of one form have in common, found once: what they check, and where arrays go.

Two calls are of one form where their inputs have the same types, shapes and strides, and the
scalars that sizes and indices depend on are the same. Input: such a call. Output: a CallPlan. It
copies an input where the kernel does not take it as it lies: of another type, in parts of elements,
with leading axes that are no single axis, or without the stride of 1 that vectors need.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from operator import add, mul
from typing import Any, Protocol, assert_never, final

import numpy as np

from ...ir.interpret.evaluate import numpy_dtype
from ...ir.nodes import Intent
from ...ir.types import DType
from ...language import Dtypes
from ...language.model import Argument, KernelSpec
from ...targets.target import ArrayLayout, Runnable
from .given import Array, Given, KernelScalars, inputs_of, type_of
from .sizes import CallSizes, Shape, core, has_loop_dim, sizes_of


@final
@dataclass(frozen=True, slots=True)
class AsGiven:
    """An input as it lies. number: which of the inputs."""

    number: int
    layout: ArrayLayout


@final
@dataclass(frozen=True, slots=True)
class Copied:
    """A copy of an input. order: its axes as they lie in memory, the outermost first."""

    name: str
    number: int
    dtype: np.dtype[Any]
    shape: Shape
    order: tuple[int, ...]

    @property
    def layout(self) -> ArrayLayout:
        return _dense(self.dtype, self.shape, self.order)

    def made(self, given: Given) -> Array:
        lying: Array = np.empty([self.shape[axis] for axis in self.order], self.dtype)
        copy = lying.transpose([self.order.index(axis) for axis in range(lying.ndim)])
        try:
            copy[...] = given
        except OverflowError as error:  # of a number of Python's
            raise OverflowError(f"{self.name}: {error}") from None
        return copy


@final
@dataclass(frozen=True, slots=True)
class New:
    """A result."""

    dtype: np.dtype[Any]
    shape: Shape

    @property
    def layout(self) -> ArrayLayout:
        return _dense(self.dtype, self.shape, range(len(self.shape)))


def _dense(dtype: np.dtype[Any], shape: Shape, order: Sequence[int]) -> ArrayLayout:
    """Of a new array whose axes lie in that order, the outermost first."""
    strides, step = [0] * len(shape), dtype.itemsize
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return ArrayLayout(dtype, shape, tuple(strides))


Source = AsGiven | Copied | New


class Run(Protocol):
    def __call__(self, addresses: Sequence[int], scalars: Mapping[str, complex], /) -> None: ...


@final
@dataclass(frozen=True, slots=True)
class CallPlan:
    """sources: where the array of each argument comes from. results: which of them are returned.
    types: of scalars that are no sizes. outer: the axes that are run one by one, and steps: the
    strides of each argument along them, in bytes.
    """

    scalars: KernelScalars
    sources: tuple[Source, ...]
    results: tuple[int, ...]
    types: Mapping[str, DType]
    run: Run
    outer: Shape
    steps: tuple[Shape, ...]

    def __call__(self, given: Sequence[Given], scalars: Mapping[str, Any]) -> Any:
        """The results of a call. scalars: as `KernelScalars.values` has them."""
        numbers = self.scalars.numbers(scalars, self.types)
        arrays = [_array(source, given) for source in self.sources]
        addresses = [array.ctypes.data for array in arrays]
        if self.outer:
            for at in product(*map(range, self.outer)):
                offsets = (sum(map(mul, at, step)) for step in self.steps)
                self.run([*map(add, addresses, offsets)], numbers)
        else:
            self.run(addresses, numbers)
        found = tuple(_scalar_if_0d(arrays[k]) for k in self.results)
        return found[0] if len(found) == 1 else found


def _array(source: Source, given: Sequence[Given]) -> Array:
    match source:
        case AsGiven(number):
            array: Array = given[number]  # type: ignore[assignment]  # a number of Python's is none
            return array
        case New(dtype, shape):
            return np.empty(shape, dtype)
        case Copied(number=number):
            return source.made(given[number])
        case _:
            assert_never(source)


def _scalar_if_0d(array: Array) -> Any:
    return array if array.ndim else array[()]


# ---------------------------------------------------------------- planning


def planned(
    scalars: KernelScalars,
    kernel: Runnable,
    dtypes: Dtypes,
    given: Sequence[Given],
    values: Mapping[str, Any],
    threads: int,
) -> CallPlan:
    """The plan of a call. kernel: for the dtypes. values: as `KernelScalars.values` has them.
    Raises TypeError, ValueError and OverflowError where the call is wrong.
    """
    spec = scalars.spec
    types = {s.name: type_of(s.element, dtypes) for s in spec.scalars}
    numbers = scalars.numbers(values, types)
    sizes = sizes_of(spec, [np.shape(x) for x in given], values)
    draft = _Draft(spec, sizes, tuple(_sources(spec, dtypes, given, sizes)))
    if draft.together:
        draft = draft.with_single_leading_axes()
    if draft.count == 0:
        return draft.plan(scalars, types, _nothing)
    layouts = draft.layouts
    for number, axis in kernel.refused(layouts, sizes.dims, numbers).items():
        draft = draft.with_unit_stride(number, axis)
    run = kernel.laid_out(draft.layouts, sizes.dims, numbers, threads)
    return draft.plan(scalars, types, run)


def _nothing(addresses: Sequence[int], scalars: Mapping[str, complex]) -> None:
    """What is run where some leading axis is empty."""


def _sources(
    spec: KernelSpec, dtypes: Dtypes, given: Sequence[Given], sizes: CallSizes
) -> Iterator[Source]:
    numbers = {a.name: k for k, a in enumerate(inputs_of(spec))}
    for a in spec.arguments:
        dtype = numpy_dtype(type_of(a.element, dtypes))
        full = (*sizes.leading, *sizes.cores[a.name])
        if a.intent is Intent.OUT:
            yield New(dtype, full)
            continue
        number = numbers[a.name]
        x = given[number]
        if a.intent is Intent.IN and isinstance(x, np.ndarray) and x.dtype == dtype:
            taken = AsGiven(number, _layout(x))
            if taken.layout.is_whole:
                yield taken
                continue
        shape = full if a.intent is Intent.INOUT else np.shape(x)
        yield _copied(spec, a, number, dtype, shape)


def _layout(array: Array) -> ArrayLayout:
    return ArrayLayout(array.dtype, array.shape, array.strides)


def _copied(spec: KernelSpec, a: Argument, number: int, dtype: Any, shape: Shape) -> Copied:
    where = f"{spec.name}: argument {a.name}"
    return Copied(where, number, dtype, shape, tuple(range(len(shape))))


@final
@dataclass(frozen=True, slots=True)
class _Draft:
    """Where the arrays of a call come from, as far as it is known."""

    spec: KernelSpec
    sizes: CallSizes
    sources: tuple[Source, ...]

    @property
    def count(self) -> int:
        return math.prod(self.sizes.leading)

    @property
    def together(self) -> bool:
        """Whether the leading axes can be the loop dim: all arrays without that have core axes
        alone.
        """
        pairs = zip(self.spec.arguments, self.sources, strict=True)
        single = [(a, s) for a, s in pairs if not has_loop_dim(self.spec, a)]
        return self.spec.loop_dim is not None and all(
            a.intent is Intent.IN and len(s.layout.shape) == len(core(self.spec, a))
            for a, s in single
        )

    def with_single_leading_axes(self) -> "_Draft":
        """Where leading axes are no single one, a copy in which they are."""
        draft = self
        for number, a in enumerate(self.spec.arguments):
            leading = self._steps(number)
            if has_loop_dim(self.spec, a) and _merged(self.sizes.leading, leading) is None:
                full = (*self.sizes.leading, *self.sizes.cores[a.name])
                draft = draft._with_copy(number, full, range(len(full)))
        return draft

    def with_unit_stride(self, number: int, axis: int) -> "_Draft":
        """With a copy of an input in which the axis, of the kernel's, has neighbours side by
        side.
        """
        a, shape = self.spec.arguments[number], self.sources[number].layout.shape
        leading = len(shape) - len(core(self.spec, a))
        looped = has_loop_dim(self.spec, a)
        if looped and axis == 0:
            leading = len(self.sizes.leading)
            shape = (*self.sizes.leading, *self.sizes.cores[a.name])
            return self._with_copy(number, shape, [*range(leading, len(shape)), *range(leading)])
        own = leading + axis - looped
        others = [k for k in range(len(shape)) if k != own]
        return self._with_copy(number, shape, [*others, own])

    def _with_copy(self, number: int, shape: Shape, order: Sequence[int]) -> "_Draft":
        source, a = self.sources[number], self.spec.arguments[number]
        assert not isinstance(source, New), "results are contiguous, and all kernels take that"
        copy = _copied(self.spec, a, source.number, source.layout.dtype, shape)
        sources = list(self.sources)
        sources[number] = replace(copy, order=tuple(order))
        return replace(self, sources=tuple(sources))

    def _steps(self, number: int) -> Shape:
        """The strides of an argument along all leading axes: 0 along those that it has not."""
        a, layout = self.spec.arguments[number], self.sources[number].layout
        own = len(layout.shape) - len(core(self.spec, a))
        pairs = zip(layout.shape[:own], layout.strides[:own], strict=True)
        missing = len(self.sizes.leading) - own
        return (*[0] * missing, *(0 if n == 1 else stride for n, stride in pairs))

    @property
    def layouts(self) -> tuple[ArrayLayout, ...]:
        """Of the kernel's arguments, for one run of it."""
        return tuple(self._of_kernel(number) for number in range(len(self.sources)))

    def _of_kernel(self, number: int) -> ArrayLayout:
        a, layout = self.spec.arguments[number], self.sources[number].layout
        shape = self.sizes.cores[a.name]
        strides = layout.strides[len(layout.shape) - len(shape) :]
        if not has_loop_dim(self.spec, a):
            return ArrayLayout(layout.dtype, shape, strides)
        count, step = 1, 0
        if self.together:
            count = self.count
            step = _merged(self.sizes.leading, self._steps(number)) or 0
        return ArrayLayout(layout.dtype, (count, *shape), (step, *strides))

    def plan(self, scalars: KernelScalars, types: Mapping[str, DType], run: Run) -> CallPlan:
        arguments = self.spec.arguments
        returned = (k for k, a in enumerate(arguments) if a.intent is not Intent.IN)
        outer = () if self.together or self.count == 0 else self.sizes.leading
        steps = tuple(self._steps(number) for number in range(len(arguments))) if outer else ()
        return CallPlan(scalars, self.sources, tuple(returned), types, run, outer, steps)


def _merged(shape: Shape, strides: Shape) -> int | None:
    """The stride of the one axis that stands for these; None where none does."""
    axes = [(n, stride) for n, stride in zip(shape, strides, strict=True) if n != 1]
    if any(stride != n * inner for (_, stride), (n, inner) in pairwise(axes)):
        return None
    return axes[-1][1] if axes else 0
