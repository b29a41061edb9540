"""What a kernel should give, and how near to it: the spec's `oracle` and `accuracy` evaluated.

Input: a KernelSpec and NumPy arrays by name. Output: arrays by the outputs' names. The oracle runs
one precision up, so that its own rounding does not count.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy
from numpy.typing import NDArray

from ...errors import Span, SpecError
from ...ir import nodes as ir
from ...ir import storage
from ...ir.interpret.sizes import found, value
from ...ir.types import DType
from .. import yaml
from ..body.resolve import definitions
from ..build import shape_of
from ..declared.scalars import members_of
from ..model import Argument, Formula, KernelSpec
from ..named_sizes import with_named
from ..shapes import extent
from ..syntax import nodes as syntax
from ..syntax.grammar import Words
from . import formula

Arrays = Mapping[str, NDArray[Any]]

_ORACLE: dict[str, Callable[..., Any]] = {
    "abs": numpy.abs,
    "min": numpy.minimum,
    "max": numpy.maximum,
}
_ACCURACY = ("ulp", "abs", "min", "max", "sqrt", "rsqrt", "exp", "log", "select")


def read(
    node: yaml.Scalar | yaml.Map | None, arguments: tuple[Argument, ...]
) -> tuple[Formula, ...]:
    """The formulas of the outputs, as `oracle` and `accuracy` give them. Raises SpecError."""
    outputs = [a.name for a in arguments if a.intent is not ir.Intent.IN]
    if node is None:
        return ()
    if isinstance(node, yaml.Scalar):
        if len(outputs) != 1:
            raise SpecError("there are several outputs", node.span, "give a map, one key an output")
        return (Formula(outputs[0], node),)
    formulas: list[Formula] = []
    for key, text in node.entries:
        if key.text not in outputs:
            raise SpecError(
                f"'{key.text}' is not an output", key.span, yaml.hint(key.text, outputs)
            )
        if not isinstance(text, yaml.Scalar):
            raise SpecError("a formula must be a text", text.span)
        formulas.append(Formula(key.text, text))
    return tuple(formulas)


def check(spec: KernelSpec) -> None:
    """Refuses formulas that name what does not exist. Raises SpecError."""
    inputs = [a.name for a in spec.arguments if a.intent is not ir.Intent.OUT]
    known = [*inputs, *spec.all_dims, *(s.name for s in spec.scalars)]
    for oracle in spec.oracle:
        formula.check(oracle.text, known, _ORACLE, _words(spec))
    values = [
        *known,
        *(a.name for a in spec.arguments),
        *(t.name for t in spec.program.temporaries),
    ]
    if spec.accuracy:
        _check_own(spec)
    for accuracy in spec.accuracy:
        axes = axis_names(spec, accuracy.output)
        names = [*values, "eps", *(a for a in axes if a)]
        formula.check(accuracy.text, names, _ACCURACY, _words(spec))


def _check_own(spec: KernelSpec) -> None:
    """Refuses names that formulas of accuracy have themselves: they would not see the spec's."""
    places: dict[str, Span | None] = {a.name: a.span for a in spec.arguments}
    places |= {s.name: s.span for s in spec.scalars} | {s.name: s.span for s in spec.sizes}
    places |= {t.name: t.span for t in spec.program.temporaries}
    for name, span in (places | dict.fromkeys(spec.dims, spec.span)).items():
        if name in ("eps", *_ACCURACY):
            message = f"'{name}' has a meaning of its own in 'accuracy'"
            raise SpecError(message, span, "choose another name")


def evaluate(
    spec: KernelSpec, arrays: Arrays, scalars: Mapping[str, Any] | None = None
) -> dict[str, NDArray[Any]]:
    """The outputs by the oracle, in a wider type than the kernel's.

    arrays: the in and inout arguments, of the spec's shapes. scalars: those not left at their
    defaults. Raises SpecError.
    """
    values = _scalars(spec, arrays, scalars or {})
    dims = sizes(spec, arrays, scalars)
    try:
        return _evaluate(spec, arrays, values, dims, numpy.longdouble)
    except SpecError:  # much of SciPy has no long double
        return _evaluate(spec, arrays, values, dims, numpy.float64)


def as_written(spec: KernelSpec, arrays: Arrays) -> tuple[Callable[[], Any], ...]:
    """Each oracle as a call that evaluates it on the arrays as they are, in their own precision.

    For timing: what a user of NumPy would run. Scalars have their defaults. Raises SpecError, as
    the calls do.
    """
    values = {**sizes(spec, arrays), **_scalars(spec, arrays, {}), **arrays}
    return tuple(formula.prepared(o.text, values, _ORACLE, _words(spec)) for o in spec.oracle)


def _evaluate(
    spec: KernelSpec,
    arrays: Arrays,
    scalars: Mapping[str, Any],
    dims: Mapping[str, int],
    widest: type[numpy.floating[Any]],
) -> dict[str, NDArray[Any]]:
    shapes = {
        a.name: tuple(value(extent(s), {**dims, **scalars}) for s in a.shape)
        for a in spec.arguments
    }
    values: dict[str, Any] = {**dims}
    values |= {name: _wider(numpy.asarray(value), widest)[()] for name, value in scalars.items()}
    values |= {
        a.name: _wider(arrays[a.name], widest)
        for a in spec.arguments
        if a.intent is not ir.Intent.OUT
    }
    words = _words(spec)
    return {o.output: _fitting(o, values, _ORACLE, words, shapes[o.output]) for o in spec.oracle}


def _words(spec: KernelSpec) -> Words:
    return Words(members=members_of(spec.scalars))


def _fitting(
    wanted: Formula,
    values: Mapping[str, Any],
    functions: Mapping[str, Callable[..., Any]],
    words: Words,
    shape: tuple[int, ...],
) -> NDArray[Any]:
    """The formula's value in the output's shape. Raises SpecError where it does not fit."""
    found = formula.evaluate(wanted.text, values, functions, words)
    if found is None or isinstance(found, tuple | list):
        raise SpecError("this gives several values, or none", formula.span(wanted.text))
    array = numpy.asarray(found)
    try:
        return numpy.broadcast_to(array, shape)
    except ValueError:
        message = f"this has the shape {array.shape}, and '{wanted.output}' has {shape}"
        raise SpecError(message, formula.span(wanted.text)) from None


def _wider(array: NDArray[Any], widest: type[numpy.floating[Any]]) -> NDArray[Any]:
    """One precision up; integers stay."""
    if array.dtype.kind == "c":
        return array.astype(numpy.clongdouble if widest is numpy.longdouble else numpy.complex128)
    if not storage.is_float(array):
        return array
    return array.astype(widest if array.dtype == numpy.float64 else numpy.float64)


def sizes(
    spec: KernelSpec, arrays: Arrays, scalars: Mapping[str, Any] | None = None
) -> dict[str, int]:
    """The dims' values, from the shapes of whichever arrays are given, and the named sizes.

    scalars: those not left at their defaults.
    """
    known = (a for a in spec.arguments if a.name in arrays)
    dims = found(((shape_of(a.shape), arrays[a.name].shape) for a in known), spec.dims)
    values = with_named(spec, {**defaults(spec), **(scalars or {}), **dims})
    return {dim: int(values[dim]) for dim in spec.all_dims if dim in values}


def defaults(spec: KernelSpec) -> dict[str, bool | int | float]:
    """The scalars that have one."""
    return {s.name: s.default for s in spec.scalars if s.default is not None}


def _scalars(spec: KernelSpec, arrays: Arrays, given: Mapping[str, Any]) -> dict[str, Any]:
    """Scalar parameters as the kernel sees them: rounded to the type that is computed in."""
    of_element = {
        a.element: numpy.dtype(DType(arrays[a.name].dtype.name).computed.value)
        for a in spec.arguments
        if a.name in arrays
    }
    for variable in spec.dtypes:
        if variable.name in of_element:
            dtype = of_element[variable.name]
            of_element[f"real({variable.name})"] = numpy.zeros(0, dtype).real.dtype
    of_element |= {d.value: numpy.dtype(d.computed.value) for d in DType}
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
    common: dict[str, Any] = {**sizes(spec, values, scalars), **values}
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
    arrays = (v for v in (output, *values.values()) if isinstance(v, numpy.ndarray))
    floats = (v.real if v.dtype.kind == "c" else v for v in arrays)
    floating = next(filter(storage.is_float, floats), None)
    eps = 0.0 if floating is None else float(storage.eps(floating))
    known = {name: _computed(value) for name, value in values.items()} | {**grids, "eps": eps}
    functions = _functions(None if floating is None else floating.dtype)
    bound = _fitting(accuracy, known, functions, _words(spec), output.shape)
    if bound.dtype.kind == "c":
        raise SpecError("an error cannot be a complex number", formula.span(accuracy.text))
    return bound.astype(numpy.float64)


def _computed(value: Any) -> Any:
    return storage.computed(value) if isinstance(value, numpy.ndarray) else value


def _functions(floating: numpy.dtype[Any] | None) -> dict[str, Callable[..., Any]]:
    def ulp(value: NDArray[Any]) -> NDArray[Any]:
        size = numpy.abs(numpy.asarray(value))
        return storage.ulp(size, numpy.dtype(float) if floating is None else floating)

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
