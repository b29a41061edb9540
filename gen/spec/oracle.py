"""What a kernel should give, and how near to it: the spec's `oracle` and `accuracy` evaluated.

Input: a KernelSpec and NumPy arrays by name. Output: arrays by the outputs' names. The oracle runs
one precision up, so that its own rounding does not count.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy
from numpy.typing import NDArray

from ..ir import nodes as ir
from ..ir.types import DType
from . import formula, syntax
from .model import Formula, KernelSpec
from .resolve import definitions

Arrays = Mapping[str, NDArray[Any]]

_ORACLE: dict[str, Callable[..., Any]] = {
    "abs": numpy.abs,
    "min": numpy.minimum,
    "max": numpy.maximum,
}
_ACCURACY = ("ulp", "abs", "min", "max", "sqrt", "rsqrt", "exp", "log", "select")


def check(spec: KernelSpec) -> None:
    """Refuses formulas that name what there is not. Raises SpecError."""
    inputs = [a.name for a in spec.arguments if a.intent is not ir.Intent.OUT]
    known = [*inputs, *spec.dims, *(s.name for s in spec.scalars)]
    for oracle in spec.oracle:
        formula.check(oracle.text, known, _ORACLE)
    values = [
        *known,
        *(a.name for a in spec.arguments),
        *(t.name for t in spec.program.temporaries),
    ]
    for accuracy in spec.accuracy:
        axes = axis_names(spec, accuracy.output)
        formula.check(accuracy.text, [*values, "eps", *(a for a in axes if a)], _ACCURACY)


def evaluate(
    spec: KernelSpec, arrays: Arrays, scalars: Mapping[str, Any] | None = None
) -> dict[str, NDArray[Any]]:
    """The outputs by the oracle, in a wider type than the kernel's.

    arrays: the in and inout arguments, of the spec's shapes. scalars: those not left at their
    defaults. Raises SpecError, and what NumPy raises.
    """
    values = _scalars(spec, arrays, scalars or {})
    dims = sizes(spec, arrays)
    try:
        return _evaluate(spec, arrays, values, dims, numpy.longdouble)
    except (TypeError, ValueError, RuntimeError):  # much of SciPy has no long double
        return _evaluate(spec, arrays, values, dims, numpy.float64)


def _evaluate(
    spec: KernelSpec,
    arrays: Arrays,
    scalars: Mapping[str, Any],
    dims: Mapping[str, int],
    widest: type[numpy.floating[Any]],
) -> dict[str, NDArray[Any]]:
    shapes = {
        a.name: tuple(s if isinstance(s, int) else dims[s] for s in a.shape) for a in spec.arguments
    }
    values: dict[str, Any] = {**dims}
    values |= {name: _wider(numpy.asarray(value), widest)[()] for name, value in scalars.items()}
    values |= {
        a.name: _wider(arrays[a.name], widest)
        for a in spec.arguments
        if a.intent is not ir.Intent.OUT
    }
    return {
        oracle.output: numpy.broadcast_to(
            formula.evaluate(oracle.text, values, _ORACLE), shapes[oracle.output]
        )
        for oracle in spec.oracle
    }


def _wider(array: NDArray[Any], widest: type[numpy.floating[Any]]) -> NDArray[Any]:
    """One precision up; integers stay."""
    if array.dtype.kind == "c":
        return array.astype(numpy.clongdouble if widest is numpy.longdouble else numpy.complex128)
    if array.dtype.kind != "f":
        return array
    return array.astype(widest if array.dtype == numpy.float64 else numpy.float64)


def sizes(spec: KernelSpec, arrays: Arrays) -> dict[str, int]:
    """The dims' values, from the shapes of whichever arrays are given."""
    return {
        dim: arrays[a.name].shape[axis]
        for a in spec.arguments
        if a.name in arrays
        for axis, dim in enumerate(a.shape)
        if isinstance(dim, str)
    }


def _scalars(spec: KernelSpec, arrays: Arrays, given: Mapping[str, Any]) -> dict[str, Any]:
    """Scalar parameters as the kernel sees them: rounded to their element type."""
    of_element = {a.element: arrays[a.name].dtype for a in spec.arguments if a.name in arrays}
    of_element |= {d.value: numpy.dtype(d.value) for d in DType if d is not DType.BFLOAT16}
    return {
        s.name: numpy.asarray(given.get(s.name, s.default), of_element.get(s.element))[()]
        for s in spec.scalars
    }


# ---------------------------------------------------------------- accuracy


def accuracy_bound(
    spec: KernelSpec, values: Arrays, scalars: Mapping[str, Any] | None = None
) -> dict[str, NDArray[Any]]:
    """The absolute error that the spec allows each element of each output.

    values: the arguments, outputs (in the kernel's own element types) included, and the
    temporaries that the formulas use (`needed_temporaries`). Raises SpecError.
    """
    common: dict[str, Any] = {**sizes(spec, values), **values}
    common |= _scalars(spec, values, scalars or {})
    return {f.output: _bound(spec, f, values[f.output], common) for f in spec.accuracy}


def _bound(
    spec: KernelSpec, accuracy: Formula, output: NDArray[Any], values: Mapping[str, Any]
) -> NDArray[Any]:
    rank = output.ndim
    grids = {
        name: numpy.arange(output.shape[axis]).reshape(
            [-1 if k == axis else 1 for k in range(rank)]
        )
        for axis, name in enumerate(axis_names(spec, accuracy.output))
        if name
    }
    floating = next((v.dtype for v in (output, *values.values()) if _is_float(v)), None)
    eps = 0.0 if floating is None else float(numpy.finfo(floating).eps)
    bound = formula.evaluate(accuracy.text, {**values, **grids, "eps": eps}, _functions(floating))
    return numpy.broadcast_to(numpy.asarray(bound, numpy.float64), output.shape)


def _is_float(value: object) -> bool:
    return isinstance(value, numpy.ndarray) and value.dtype.kind == "f"


def _functions(floating: numpy.dtype[Any] | None) -> dict[str, Callable[..., Any]]:
    def ulp(value: NDArray[Any]) -> NDArray[Any]:
        return numpy.asarray(numpy.spacing(numpy.abs(numpy.asarray(value, floating))), float)

    def rsqrt(value: NDArray[Any]) -> NDArray[Any]:
        return numpy.asarray(1 / numpy.sqrt(value))

    functions = (ulp, numpy.abs, numpy.minimum, numpy.maximum, numpy.sqrt, rsqrt, numpy.exp,
                 numpy.log, numpy.where)  # fmt: skip
    return dict(zip(_ACCURACY, functions, strict=True))


def axis_names(spec: KernelSpec, output: str) -> tuple[str | None, ...]:
    """For each axis of an output the index that the body first names it by."""
    targets = [d.target for d in definitions(spec.program.body) if d.target.array == output]
    return tuple(
        next((index.name for index in axis if isinstance(index, syntax.Name)), None)
        for axis in zip(*(target.indices for target in targets), strict=True)
    )


def needed_temporaries(spec: KernelSpec) -> tuple[str, ...]:
    """Temporaries whose values the accuracy formulas use, in the order of their definition."""
    used = frozenset[str]().union(*(formula.names_in(f.text) for f in spec.accuracy))
    return tuple(t.name for t in spec.program.temporaries if t.name in used)


def expose(kernel: ir.Kernel, temporaries: tuple[str, ...]) -> ir.Kernel:
    """A plain schedule with some temporaries as outputs, so that running it gives their values."""
    if not isinstance(kernel.body, ir.Allocate):
        return kernel
    chosen = [b for b in kernel.body.buffers if b.name in temporaries]
    kept = tuple(b for b in kernel.body.buffers if b.name not in temporaries)
    inside = kernel.body.body
    outputs = tuple(
        ir.Parameter(replace(b, scope=ir.Scope.GLOBAL), ir.Intent.OUT, span=b.span) for b in chosen
    )
    return replace(
        kernel,
        parameters=(*kernel.parameters, *outputs),
        body=ir.Allocate(kept, inside) if kept else inside,
    )
