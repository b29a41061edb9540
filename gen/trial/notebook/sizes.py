"""The sizes of a call of a kernel, found and checked.

Input: shapes and scalars. Output: the leading axes, which broadcast, and the values of dims and
named sizes. Raises ValueError where they do not fit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from ... import language as specs
from ...ir.interpret.sizes import SizeError, found, told, value
from ...ir.interpret.sizes import given as given_values
from ...ir.nodes import Expr
from ...ir.text.print_expr import expr_to_text
from ...ir.types import INDEX
from ...ir.walk import variables
from ...language.build import shape_of
from ...language.model import Argument, KernelSpec, Size, size_text
from ...language.shapes import derived, extent
from .given import inputs_of

Shape = tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class CallSizes:
    """leading: the axes before the core ones, as all inputs have them together. cores: the core
    axes of each argument. dims: of the kernel, but for the loop dim.
    """

    leading: Shape
    cores: Mapping[str, Shape]
    dims: Mapping[str, int]


def core(spec: KernelSpec, a: Argument) -> tuple[Size, ...]:
    """The axes that the signature has."""
    return a.shape[1:] if has_loop_dim(spec, a) else a.shape


def has_loop_dim(spec: KernelSpec, a: Argument) -> bool:
    return spec.loop_dim is not None and a.shape[:1] == (spec.loop_dim,)


def sizes_of(
    spec: KernelSpec, shapes: Sequence[Shape], scalars: Mapping[str, complex]
) -> CallSizes:
    """shapes: of the inputs; scalars: of those that sizes depend on, the values."""
    leading, own = dict[str, Shape](), []
    for a, shape in zip(inputs_of(spec), shapes, strict=True):
        axes = core(spec, a)
        split = len(shape) - len(axes)
        if split < 0:
            raise ValueError(
                f"{spec.name}: {a.name} has {len(shape)} axes, its core is"
                f" ({', '.join(map(size_text, axes))})"
            )
        leading[a.name] = shape[:split]
        own.append((a, shape[split:]))
    dims = found(((shape_of(core(spec, a)), shape) for a, shape in own), spec.dims)
    _check_told(spec, own, dims)
    numbers = {name: v for name, v in scalars.items() if isinstance(v, int | float)}
    integers = {s.name: int(numbers[s.name]) for s in spec.scalars if s.element == INDEX.value}
    _check_constraints(spec, {**dims, **integers})
    values = _named(spec, {**numbers, **dims})
    _check_constraints(spec, values)
    _check_shapes(spec, own, values)
    return CallSizes(
        _broadcast(spec.name, leading),
        {
            a.name: tuple(value(extent(axis), values) for axis in core(spec, a))
            for a in spec.arguments
        },
        {d: int(values[d]) for d in spec.all_dims if d != spec.loop_dim},
    )


def _broadcast(kernel: str, leading: Mapping[str, Shape]) -> Shape:
    try:
        return np.broadcast_shapes(*leading.values())
    except ValueError:
        shapes = ", ".join(f"{name} has {shape}" for name, shape in leading.items())
        raise ValueError(f"{kernel}: leading axes do not broadcast: {shapes}") from None


def _check_told(
    spec: KernelSpec, given: Sequence[tuple[Argument, Shape]], dims: Mapping[str, int]
) -> None:
    """Raises ValueError where an axis is too short for any size of the dim that it tells."""
    for a, shape in given:
        for axis, (own, got) in enumerate(zip(core(spec, a), shape, strict=True)):
            tells = told(extent(own))
            if tells is not None and dims.get(tells.dim, 0) < 0 and got < tells.more:
                raise ValueError(
                    f"{spec.name}: core axis {axis} of {a.name} ({size_text(own)}) has size {got},"
                    f" expected at least {tells.more}"
                )


def _check_constraints(spec: KernelSpec, values: Mapping[str, float]) -> None:
    """Raises ValueError where sizes break a constraint."""
    least = specs.least_sizes(spec)
    for dim in spec.dims:
        if dim in values and values[dim] < least.get(dim, 0):
            raise ValueError(
                f"{spec.name}: dim {dim} is {values[dim]}, it must be at least {least.get(dim, 0)}"
            )
    for constraint in specs.relations(spec):
        if not variables(constraint) <= values.keys():
            continue  # until the named sizes are known
        if not _value(spec, expr_to_text(constraint), constraint, values):
            sizes = given_values(constraint, values)
            raise ValueError(f"{spec.name}: needs {expr_to_text(constraint)}, got {sizes}")


def _named(spec: KernelSpec, given: Mapping[str, float]) -> dict[str, float]:
    """The dims, scalars and named sizes. Raises ValueError where one cannot be worked out."""
    values = dict(given)
    for size in spec.sizes:
        values[size.name] = _value(spec, size.name, size.value, values)
        if values[size.name] < 0:
            sizes = given_values(size.value, values)
            raise ValueError(f"{spec.name}: the size {size.name} is negative for {sizes}")
    return values


def _value(spec: KernelSpec, name: str, expr: Expr, values: Mapping[str, float]) -> int:
    try:
        return value(expr, values)
    except SizeError as error:
        sizes = given_values(expr, values)
        raise ValueError(f"{spec.name}: {name}: {error}, for {sizes}") from None


def _check_shapes(
    spec: KernelSpec, given: Sequence[tuple[Argument, Shape]], values: Mapping[str, float]
) -> None:
    """Raises ValueError where sizes do not fit the inputs' core shapes."""
    for size in derived(spec.arguments):
        text = expr_to_text(size)
        if _value(spec, text, size, values) < 0:
            sizes = given_values(size, values)
            raise ValueError(f"{spec.name}: the size {text} is negative for {sizes}")
    for a, shape in given:
        for axis, (own, got) in enumerate(zip(core(spec, a), shape, strict=True)):
            expected = value(extent(own), values)
            if got != expected:
                raise ValueError(
                    f"{spec.name}: core axis {axis} of {a.name} ({size_text(own)}) has size {got},"
                    f" expected {expected}"
                )
