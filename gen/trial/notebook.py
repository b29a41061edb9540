"""A spec's kernel as a Python function, compiled on the spot: `tilesmith.gen.compile(path)`.

The same pipeline as a wheel's, proofs included, kept by content in the user's cache folder. It is
for trying a spec out: arguments that are not contiguous or not of the kernel's types are copied,
which the functions of a built package do not do; and there is no `axis`, `out` or `keepdims`: the
last axes are the signature's.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import language as specs
from ..cache import cache_folder
from ..errors import TilesmithError
from ..ir.interpret.evaluate import numpy_dtype
from ..ir.interpret.sizes import SizeError, found, value
from ..ir.interpret.sizes import given as given_values
from ..ir.nodes import Expr, Intent
from ..ir.text.print_expr import expr_to_text
from ..ir.types import INDEX, DType
from ..ir.walk import variables
from ..language import Dtypes
from ..language.build import shape_of
from ..language.declared.scalars import members_of
from ..language.formulas import oracle
from ..language.model import Argument, KernelSpec, Size, size_text
from ..language.shapes import derived, extent
from ..lower.variants import suffix
from ..pipeline import load, made
from ..poly.cache import prover
from ..targets.registry import TARGETS
from ..targets.target import Registry, Runnable, Target

Array = NDArray[Any]


def compile(
    path: str | os.PathLike[str],
    level: str | None = None,
    *,
    target: str | None = None,
    targets: Registry = TARGETS,
) -> "NotebookKernel":
    """The kernel of a spec's file as a function of arrays.

    level: of the target; without one the best that this machine has. target: one of the targets,
    by name; without one the first. Each choice of dtypes is scheduled, proved and compiled at its
    first call. Raises SpecError, TilesmithError where there is no such target or level, and at
    calls ScheduleError and TilesmithError (no compiler).
    """
    (chosen,) = targets.chosen(target, [level or targets[target].here()[-1]])
    return NotebookKernel(targets.load(Path(path)), chosen)


@final
@dataclass(repr=False)
class NotebookKernel:
    """A callable kernel. spec: what it computes; target: what it is compiled for.

    Its own `__doc__`, which `help` shows, is the spec's.
    """

    spec: KernelSpec
    target: Target
    _compiled: dict[str, Runnable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.__name__ = self.spec.name
        self.__doc__ = self.spec.doc

    def __repr__(self) -> str:
        spec = self.spec
        return f"<kernel {spec.name} {spec.signature} of {spec.path}, {self.target.level}>"

    def __call__(
        self, *arrays: ArrayLike, num_threads: int = 1, **scalars: complex | str
    ) -> Array | tuple[Array, ...]:
        """The outputs, new arrays; leading axes broadcast by the kernel's signature.

        An `inout` argument is given like an input and returned like an output. Raises TypeError for
        a wrong number of arrays, what is not an array, a masked one, unknown scalars and types that
        the kernel does not have, and ValueError for shapes that do not fit.
        """
        given = [a for a in self.spec.arguments if a.intent is not Intent.OUT]
        if len(arrays) != len(given):
            names = ", ".join(a.name for a in given)
            raise TypeError(
                f"{self.spec.name} takes {len(given)} arrays ({names}), not {len(arrays)}"
            )
        unknown = scalars.keys() - {s.name for s in self.spec.scalars}
        if unknown:
            hint = _ALONE if min(unknown) in _BUILT else ""
            raise TypeError(f"{self.spec.name} has no scalar {min(unknown)!r}{hint}")
        inputs = {a.name: self._array(a, x) for a, x in zip(given, arrays, strict=True)}
        dtypes = self._dtypes(inputs)
        kernel = self._kernel(dtypes)
        values = {**oracle.defaults(self.spec), **self._numbers(scalars)}
        missing = [s.name for s in self.spec.scalars if s.name not in values]
        if missing:
            raise TypeError(f"{self.spec.name} needs the scalar {missing[0]!r}")
        return self._run(kernel, dtypes, inputs, values, num_threads)

    def _numbers(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The scalars with words as their numbers. Raises TypeError and ValueError as a built
        package's functions do.
        """
        numbers = dict(given)
        for name, members in members_of(self.spec.scalars).items():
            if name not in given:
                continue
            word, known = given[name], " or ".join(map(repr, members))
            if not isinstance(word, str):
                found = type(word).__name__
                raise TypeError(f"{self.spec.name}: {name} must be {known}, got {found}")
            if word not in members:
                raise ValueError(f"{self.spec.name}: {name} must be {known}, got {word!r}")
            numbers[name] = members.index(word)
        return numbers

    def _array(self, argument: Argument, given: ArrayLike) -> Array:
        """What np.asarray gives. Raises TypeError as a built package's functions do."""
        where = f"{self.spec.name}: argument {argument.name}"
        masked = sys.modules.get("numpy.ma")  # not imported: nobody can have made one
        if masked is not None and isinstance(given, masked.MaskedArray):
            raise TypeError(
                f"{where} is a masked array, whose mask would be lost;"
                " pass its .data or .filled(...)"
            )
        if given is None:
            raise TypeError(f"{where} is None, not an array")
        if _is_elsewhere(given):
            raise TypeError(
                f"{where} is a {type(given).__name__} that is not in the processor's memory; pass"
                " NumPy's array, also to a kernel for a GPU, which copies it there and back"
            )
        return np.asarray(given)

    def _kernel(self, dtypes: Dtypes) -> Runnable:
        key = suffix(dtypes)
        if key not in self._compiled:
            prove = prover(cache_folder() / "proofs")
            variants, sources = made(self.spec, dtypes, self.target, prove)
            self._compiled[key] = load(self.spec, dtypes, variants, self.target, sources)
        return self._compiled[key]

    def _dtypes(self, inputs: Mapping[str, Array]) -> Dtypes:
        """Of the choices of types that all inputs can be cast to by NumPy's "safe" rule, the one in
        which most of them have their own type; the first of these.
        """
        given = {a.name: a for a in self.spec.arguments if a.name in inputs}
        fitting = [
            choice
            for choice in specs.choices(self.spec)
            if all(
                np.can_cast(x.dtype, _dtype(given[n], choice), "safe") for n, x in inputs.items()
            )
        ]
        if not fitting:
            types = ", ".join(f"{name}: {x.dtype}" for name, x in inputs.items())
            raise TypeError(f"{self.spec.name} has no version for {types}")
        return min(
            fitting,
            key=lambda choice: sum(x.dtype != _dtype(given[n], choice) for n, x in inputs.items()),
        )

    def _run(
        self,
        kernel: Runnable,
        dtypes: Dtypes,
        inputs: Mapping[str, Array],
        scalars: Mapping[str, Any],
        threads: int,
    ) -> Array | tuple[Array, ...]:
        core = {a.name: shape_of(self._core(a)) for a in self.spec.arguments}
        leading: list[tuple[int, ...]] = []
        own: list[tuple[Argument, tuple[int, ...]]] = []
        for a in self.spec.arguments:
            if a.name in inputs:
                split = inputs[a.name].ndim - len(core[a.name])
                if split < 0:
                    raise ValueError(
                        f"{self.spec.name}: {a.name} has {inputs[a.name].ndim} axes, its core is"
                        f" ({', '.join(map(size_text, self._core(a)))})"
                    )
                leading.append(inputs[a.name].shape[:split])
                own.append((a, inputs[a.name].shape[split:]))
        dims = found(((core[a.name], shape) for a, shape in own), self.spec.dims)
        integers = [s.name for s in self.spec.scalars if s.element == INDEX.value]
        self._check_constraints({**dims, **{name: int(scalars[name]) for name in integers}})
        values = self._sizes({**scalars, **dims})
        self._check_constraints(values)
        self._check_sizes(own, values)
        outer = np.broadcast_shapes(*leading)
        full: dict[str, Array] = {}
        for a in self.spec.arguments:
            shape = (*outer, *(value(extent, values) for extent in core[a.name]))
            if a.intent is Intent.OUT:
                full[a.name] = np.empty(shape, _dtype(a, dtypes))
            else:
                wide = np.broadcast_to(inputs[a.name], shape).astype(_dtype(a, dtypes), order="C")
                full[a.name] = wide
        sizes = {d: int(values[d]) for d in self.spec.all_dims if d != self.spec.loop_dim}
        for arrays in self._problems(full, inputs, outer):
            kernel.bound(arrays, sizes, scalars, threads)()
        results = tuple(full[a.name] for a in self.spec.arguments if a.intent is not Intent.IN)
        results = tuple(r[()] for r in results)
        return results[0] if len(results) == 1 else results

    def _core(self, a: Argument) -> tuple[Size, ...]:
        looped = self.spec.loop_dim is not None and a.shape[:1] == (self.spec.loop_dim,)
        return a.shape[1:] if looped else a.shape

    def _check_constraints(self, values: Mapping[str, float]) -> None:
        """Raises ValueError where sizes break a constraint."""
        name = self.spec.name
        least = specs.least_sizes(self.spec)
        for dim in self.spec.dims:
            if dim in values and values[dim] < least.get(dim, 0):
                raise ValueError(
                    f"{name}: dim {dim} is {values[dim]}, it must be at least {least.get(dim, 0)}"
                )
        for constraint in specs.relations(self.spec):
            if not variables(constraint) <= values.keys():
                continue  # until the named sizes are known
            if not self._value(expr_to_text(constraint), constraint, values):
                sizes = given_values(constraint, values)
                raise ValueError(f"{name}: needs {expr_to_text(constraint)}, got {sizes}")

    def _sizes(self, given: Mapping[str, float]) -> dict[str, float]:
        """The dims, scalars and named sizes. Raises ValueError where one cannot be worked out."""
        values = dict(given)
        for size in self.spec.sizes:
            values[size.name] = self._value(size.name, size.value, values)
            if values[size.name] < 0:
                sizes = given_values(size.value, values)
                raise ValueError(f"{self.spec.name}: the size {size.name} is negative for {sizes}")
        return values

    def _value(self, name: str, expr: Expr, values: Mapping[str, float]) -> int:
        try:
            return value(expr, values)
        except SizeError as error:
            sizes = given_values(expr, values)
            raise ValueError(f"{self.spec.name}: {name}: {error}, for {sizes}") from None

    def _check_sizes(
        self, given: Sequence[tuple[Argument, tuple[int, ...]]], values: Mapping[str, float]
    ) -> None:
        """Raises ValueError where sizes do not fit the inputs' core shapes."""
        name = self.spec.name
        for size in derived(self.spec.arguments):
            text = expr_to_text(size)
            if self._value(text, size, values) < 0:
                sizes = given_values(size, values)
                raise ValueError(f"{name}: the size {text} is negative for {sizes}")
        for a, shape in given:
            for axis, (own, got) in enumerate(zip(self._core(a), shape, strict=True)):
                expected = value(extent(own), values)
                if got != expected:
                    raise ValueError(
                        f"{name}: core axis {axis} of {a.name} ({size_text(own)}) has size {got},"
                        f" expected {expected}"
                    )

    def _problems(
        self, full: Mapping[str, Array], inputs: Mapping[str, Array], outer: tuple[int, ...]
    ) -> list[dict[str, Array]]:
        """The arrays of each call: one for all problems where they can be its loop dim."""
        single = {a.name for a in self.spec.arguments if self._core(a) == a.shape}
        shared = {n for n in single if n in inputs and inputs[n].ndim == full[n].ndim - len(outer)}
        if self.spec.loop_dim is not None and single <= shared:
            first = (0,) * len(outer)
            count = int(np.prod(outer))
            if count == 0:
                return []
            return [
                {
                    n: _view(x, first) if n in shared else x.reshape(count, *x.shape[len(outer) :])
                    for n, x in full.items()
                }
            ]
        return [
            {n: _view(x, at) if n in single else _view(x, at)[np.newaxis] for n, x in full.items()}
            for at in np.ndindex(*outer)
        ]


def _is_elsewhere(given: Any) -> bool:
    """Whether it is, or may be, on a device, from which np.asarray might copy it."""
    if isinstance(given, np.ndarray):
        return False
    if hasattr(given, "__dlpack_device__"):
        try:
            return given.__dlpack_device__()[0] not in _PROCESSOR
        except (BufferError, RuntimeError, TypeError, ValueError):  # it is on several
            return True
    return hasattr(given, "__cuda_array_interface__")


_PROCESSOR = (1, 3, 11)
"""DLPack's kinds of devices whose memory is the processor's, pinned or not."""


def _view(array: Array, at: tuple[int, ...]) -> Array:
    """What is there, with no axis left as well: `array[at]` would be a copy of the number."""
    place: tuple[Any, ...] = (*at, ...)
    found: Array = array[place]
    return found


_BUILT = frozenset({"axis", "out", "keepdims"})
"""What the functions of a built package take besides."""

_ALONE = (
    ": a kernel tried out takes arrays, scalars and num_threads= alone; the functions of a built"
    " package have axis=, out= and keepdims="
)


def _dtype(a: Argument, dtypes: Dtypes) -> np.dtype[Any]:
    return numpy_dtype(dtypes.get(a.element) or DType(a.element))


__all__ = ["NotebookKernel", "TilesmithError", "compile"]
