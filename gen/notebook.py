"""A spec's kernel as a Python function, compiled on the spot: `tilesmith.gen.compile(path)`.

The same pipeline as a wheel's, proofs included, kept by content in the user's cache folder. It is
for trying a spec out: arguments that are not contiguous or not of the kernel's types are copied,
which the functions of a built package do not do.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import jit
from . import spec as specs
from .errors import TilesmithError
from .ir.nodes import Intent
from .lower.target import Level, Target
from .pipeline import Dtypes, emit, prover, schedule, suffix
from .spec.model import Argument, KernelSpec

Array = NDArray[Any]


def compile(path: str | os.PathLike[str], level: str | None = None) -> "NotebookKernel":
    """The kernel of a spec's file as a function of arrays.

    level: an ISA level; without one the best that this machine has. Each choice of dtypes is
    scheduled, proved and compiled at its first call. Raises SpecError, and at calls ScheduleError
    and TilesmithError (no compiler).
    """
    chosen = Level(level) if level else jit.native_level()
    return NotebookKernel(specs.load(Path(path)), chosen)


@final
@dataclass
class NotebookKernel:
    """A callable kernel. spec: what it computes; level: what it is compiled for."""

    spec: KernelSpec
    level: Level
    _compiled: dict[str, jit.Loaded] = field(default_factory=dict, repr=False)

    def __call__(
        self, *arrays: ArrayLike, num_threads: int = 1, **scalars: float
    ) -> Array | tuple[Array, ...]:
        """The outputs, new arrays; leading axes broadcast by the kernel's signature.

        An `inout` argument is given like an input and returned like an output. Raises TypeError for
        a wrong number of arrays, unknown scalars and types that the kernel has not, and
        ValueError for shapes that do not fit.
        """
        given = [a for a in self.spec.arguments if a.intent is not Intent.OUT]
        if len(arrays) != len(given):
            names = ", ".join(a.name for a in given)
            raise TypeError(
                f"{self.spec.name} takes {len(given)} arrays ({names}), not {len(arrays)}"
            )
        unknown = scalars.keys() - {s.name for s in self.spec.scalars}
        if unknown:
            raise TypeError(f"{self.spec.name} has no scalar {min(unknown)!r}")
        inputs = {a.name: np.asarray(x) for a, x in zip(given, arrays, strict=True)}
        dtypes = self._dtypes(inputs)
        kernel = self._kernel(dtypes)
        values = {**kernel.scalars, **scalars}
        missing = [s.name for s in self.spec.scalars if s.name not in values]
        if missing:
            raise TypeError(f"{self.spec.name} needs the scalar {missing[0]!r}")
        return self._run(kernel, dtypes, inputs, values, num_threads)

    def _kernel(self, dtypes: Dtypes) -> jit.Loaded:
        key = suffix(dtypes)
        if key not in self._compiled:
            prove = prover(jit.cache_folder() / "proofs")
            variants = schedule(self.spec, dtypes, Target(self.level), prove)
            source = emit(self.spec, {key: variants}, self.level)
            self._compiled[key] = jit.load(self.spec, dtypes, source, self.level)
        return self._compiled[key]

    def _dtypes(self, inputs: Mapping[str, Array]) -> Dtypes:
        """The first choice of types that all inputs can be cast to without loss."""
        for choice in specs.choices(self.spec):
            if all(
                np.can_cast(inputs[a.name].dtype, _dtype(a, choice), "safe")
                for a in self.spec.arguments
                if a.name in inputs
            ):
                return choice
        types = ", ".join(f"{name}: {x.dtype}" for name, x in inputs.items())
        raise TypeError(f"{self.spec.name} has no version for {types}")

    def _run(
        self,
        kernel: jit.Loaded,
        dtypes: Dtypes,
        inputs: Mapping[str, Array],
        scalars: Mapping[str, float],
        threads: int,
    ) -> Array | tuple[Array, ...]:
        core = {a.name: self._core(a) for a in self.spec.arguments}
        dims: dict[str, int] = {}
        leading: list[tuple[int, ...]] = []
        for a in self.spec.arguments:
            if a.name in inputs:
                split = inputs[a.name].ndim - len(core[a.name])
                if split < 0:
                    raise ValueError(
                        f"{self.spec.name}: {a.name} has {inputs[a.name].ndim} axes, its core is"
                        f" ({', '.join(map(str, core[a.name]))})"
                    )
                leading.append(inputs[a.name].shape[:split])
                self._bind(a, core[a.name], inputs[a.name].shape[split:], dims)
        outer = np.broadcast_shapes(*leading)
        full: dict[str, Array] = {}
        for a in self.spec.arguments:
            shape = (*outer, *(dims[d] if isinstance(d, str) else d for d in core[a.name]))
            if a.intent is Intent.OUT:
                full[a.name] = np.empty(shape, _dtype(a, dtypes))
            else:
                wide = np.broadcast_to(inputs[a.name], shape).astype(_dtype(a, dtypes), order="C")
                full[a.name] = wide
        for arrays in self._problems(full, inputs, outer):
            kernel.compiled(arrays, scalars, dims=dims, threads=threads)
        results = tuple(full[a.name] for a in self.spec.arguments if a.intent is not Intent.IN)
        results = tuple(r[()] for r in results)
        return results[0] if len(results) == 1 else results

    def _core(self, a: Argument) -> tuple[str | int, ...]:
        looped = self.spec.loop_dim is not None and a.shape[:1] == (self.spec.loop_dim,)
        return a.shape[1:] if looped else a.shape

    def _bind(
        self, a: Argument, core: tuple[str | int, ...], shape: tuple[int, ...], dims: dict[str, int]
    ) -> None:
        for axis, (dim, size) in enumerate(zip(core, shape, strict=True)):
            expected = dim if isinstance(dim, int) else dims.setdefault(dim, size)
            if size != expected:
                raise ValueError(
                    f"{self.spec.name}: core axis {axis} of {a.name} ({dim}) has size {size},"
                    f" expected {expected}"
                )
        least = specs.least_sizes(self.spec)
        for dim in core:
            if isinstance(dim, str) and dims[dim] < least.get(dim, 0):
                raise ValueError(
                    f"{self.spec.name}: dim {dim} is {dims[dim]}, it must be at least {least[dim]}"
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
                    n: x[first] if n in shared else x.reshape(count, *x.shape[len(outer) :])
                    for n, x in full.items()
                }
            ]
        return [
            {n: x[at] if n in single else x[at][np.newaxis] for n, x in full.items()}
            for at in np.ndindex(*outer)
        ]


def _dtype(a: Argument, dtypes: Dtypes) -> np.dtype[Any]:
    return np.dtype(dtypes[a.element].value if a.element in dtypes else a.element)


__all__ = ["NotebookKernel", "TilesmithError", "compile"]
