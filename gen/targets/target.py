"""What a target supplies, and the registry of targets.

A target is a class; an instance of it is the target at one of its levels, and that is what the
stages take: `lower(state, target.lowering)`, `finish(kernel, target.finishing)`,
`pipeline.emit(spec, variants, target)`. Recipes name a target (`cpu`), or one level of it
(`cpu.v3`).
"""

import ctypes
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from .. import language as specs
from ..errors import SpecError, TilesmithError
from ..ir.nodes import Kernel
from ..ir.types import DType
from ..language import Dtypes, yaml
from ..language.model import KernelSpec, Param, Recipe
from ..lower.finish import Finished
from ..lower.index_limits import Limits
from ..lower.passes import Finishing, Passes
from ..schedule.rules.choose import Rules

Array = NDArray[Any]


class Does(Enum):
    """What an instruction does with data, as tables call it."""

    VECTOR = "vector"
    SCALAR = "scalar"
    FUSED = "fma"
    LOAD = "loads"
    STORE = "stores"


@final
@dataclass(frozen=True, slots=True)
class Instruction:
    """offset: into its function, as jumps name it. line: of the source, from 1; 0: of none. kinds:
    what it does with data; none for counting, addresses and jumps.
    """

    offset: str
    text: str
    line: int
    kinds: frozenset[Does] = frozenset()


@final
@dataclass(frozen=True, slots=True)
class CompiledFunction:
    name: str
    instructions: tuple[Instruction, ...]


def joined(sources: Mapping[str, str]) -> str:
    """All that is emitted for a kernel, as one text."""
    return "".join(sources.values())


@final
@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """How an array lies in memory, wherever that is. strides: in bytes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_whole(self) -> bool:
        """Whether strides are whole numbers of elements."""
        return not any(s % self.dtype.itemsize for s in self.strides)

    def at(self, address: int) -> Array:
        """The array that lies so from an address on. Its memory is the caller's to keep."""
        if not self.size:
            return np.empty(self.shape, self.dtype)
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        below, above = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        whole = ctypes.c_char * (above - below + self.dtype.itemsize)
        memory = whole.from_address(address + below)
        return np.ndarray(self.shape, self.dtype, memoryview(memory), -below, self.strides)


class Runnable(Protocol):
    """A kernel that this process can call, for one choice of dtypes. Arrays are given by name, all
    of them, outputs included; sizes are of the kernel's dims, of which those that a shape gives may
    be left out. Scalars that are not given have the spec's defaults.
    """

    where: ClassVar[str]
    """What a time of seven calls was taken of, in words."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the variants, in the order in which they are tried."""

    def with_scalars(self, scalars: Mapping[str, complex]) -> "Runnable":
        """The kernel with these scalars where none are given."""

    @property
    def machine(self) -> str:
        """What runs it, as its maker calls it."""

    def __call__(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
        """Runs the kernel in place on the arrays, on one thread. Raises TilesmithError where an
        array does not fit, ValueError where sizes are too large, and MemoryError.
        """

    def variant(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> str:
        """The name of the variant that the call runs."""

    def bound(
        self,
        arrays: Mapping[str, Array],
        sizes: Mapping[str, int],
        scalars: Mapping[str, complex] | None = None,
        threads: int = 1,
        resident: bool = False,
    ) -> Callable[[], None]:
        """The call with all checked and found beforehand, to be made often. Raises as the call.

        resident: the arrays are where the kernel works from the start, and stay there: what is
            timed is the kernel, and what it computes comes back to nobody.
        """

    def refused(
        self,
        layouts: Sequence[ArrayLayout],
        sizes: Mapping[str, int],
        scalars: Mapping[str, complex],
    ) -> Mapping[int, int]:
        """The arguments, by number, that the kernel does not take as they lie, and the axis of each
        that must have stride 1. layouts: of all arguments, in their order. scalars: all of them.
        Raises as the call.
        """

    def laid_out(
        self,
        layouts: Sequence[ArrayLayout],
        sizes: Mapping[str, int],
        scalars: Mapping[str, complex],
        threads: int,
    ) -> Callable[[Sequence[int], Mapping[str, complex]], None]:
        """The call for arrays that lie so, to be made often: of the addresses of their first
        elements, and of scalars, of which those that sizes or indices depend on are the same.
        Whoever calls keeps the arrays alive. Raises as the call.
        """

    def traffic(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> tuple[str, ...]:
        """What the call, which is made, asks of memory, as lines of a table; none where that is not
        counted. Raises as the call.
        """

    def weight(self, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> float | None:
        """What the call, which is made, asks of memory, in one number: to rank schedules by where
        no time can be taken. None where it is not counted. Raises as the call.
        """


class Target(Protocol):
    """Machines that code is made for, at one level.

    A level is what kernels are compiled for one by one: an instruction set of CPUs, an architecture
    of GPUs. A target that has no such thing has one level all the same.
    """

    name: ClassVar[str]
    """As recipes and `--target` say it: a word."""

    levels: ClassVar[tuple[str, ...]]
    """By name, the least first; no other target has one of that name."""

    usual: ClassVar[tuple[str, ...]]
    """The levels that `check`, `prove` and `generate` take where none is asked for."""

    shown: ClassVar[str]
    """The level that `show` takes where none is asked for."""

    facts: ClassVar[frozenset[str]]
    """Those of its `parameters` that are facts of the machine: `tune` searches the others."""

    @classmethod
    def at(cls, level: str) -> Self:
        """The target at a level, which is one of its own."""

    @classmethod
    def here(cls) -> tuple[str, ...]:
        """The levels that this machine runs, the best last. Raises TilesmithError where there is
        none, or where finding out takes a compiler that is not there.
        """

    @property
    def level(self) -> str: ...

    def parameters(self, dtypes: Dtypes) -> Mapping[str, int]:
        """The parameters that recipes for the target have without defining them, by name: those of
        a CPU are `$lanes`, `$line` and `$line_bytes`.
        """

    def width(self, dtypes: Dtypes) -> int:
        """How many elements code takes at once: a kernel is tried at sizes around that."""

    def has_code_for(self, dtype: DType) -> bool:
        """Whether kernels may have arrays of the type. Levels of GPUs are made for the choices of
        dtypes of which this is so; a CPU's for all.
        """

    @property
    def rules(self) -> Rules | None:
        """What writes a recipe where a spec has none; None: the plain schedule is taken."""

    @property
    def lowering(self) -> Passes:
        """From the scheduled tree to one in which nothing is implied, which is verified and proved.
        A pass that finds what the target has no code for raises NoCode.
        """

    @property
    def finishing(self) -> Finishing:
        """From the lowered tree to the one that is emitted."""

    def emit(
        self,
        kernel: str,
        variants: Mapping[str, Sequence[Finished]],
        *,
        packed: Collection[str],
        keep_marks: bool = False,
    ) -> Mapping[str, str]:
        """The sources of a kernel, by file name.

        variants: by the suffix of their dtypes, in the order in which they are tried. packed: the
            arrays that the caller packs where they need a unit stride and have none. keep_marks:
            with lines that say what they are of (`marks`).
        Raises TilesmithError where a type or an operation has no form on the target.
        """

    def load(
        self,
        kernel: Kernel,
        dtypes: str,
        sources: Mapping[str, str],
        limits: Limits,
        scalars: Mapping[str, complex],
    ) -> Runnable:
        """What `emit` made, compiled and loaded.

        kernel: any tree of it, for its signature. dtypes: the suffix of the choice to take. limits:
            of sizes and scalars. scalars: their defaults.
        Raises TilesmithError, with the compiler's words where it refuses.
        """

    def emulating(self) -> Self:
        """The same, but what it loads runs on this machine's processor, and every access to memory
        is watched. Raises TilesmithError where there is no emulator.
        """

    def instructions(self, sources: Mapping[str, str]) -> tuple[CompiledFunction, ...]:
        """The machine's instructions, for `show --html`. Raises TilesmithError where there is
        nothing to read them with.
        """

    def figures(self, sources: Mapping[str, str]) -> tuple[str, ...]:
        """What the compiler tells of the code beside its instructions, as lines: of launches their
        registers, and how many threads run at once; none for a CPU. Raises TilesmithError where
        there is no such compiler.
        """


@final
@dataclass(frozen=True, slots=True)
class Registry:
    """The targets that there are; the first is meant where none is named. Raises TilesmithError
    where two have a level of one name: packages and their sources call levels by that alone.
    """

    targets: tuple[type[Target], ...]

    def __post_init__(self) -> None:
        if shared := [level for level, n in Counter(self.levels).items() if n > 1]:
            raise TilesmithError(f"two targets have a level '{shared[0]}'")

    def __getitem__(self, name: str | None) -> type[Target]:
        """The target of that name. Raises TilesmithError where there is none."""
        for target in self.targets:
            if name in (None, target.name):
                return target
        raise TilesmithError(f"unknown target {name!r}: there are {', '.join(self.names)}")

    def chosen(self, name: str | None, levels: Sequence[str] | None = None) -> tuple[Target, ...]:
        """A target at each of these levels, by default at its usual ones. Raises TilesmithError
        where there is no such target or level.
        """
        target = self[name]
        for level in levels or ():
            if level not in target.levels:
                known = ", ".join(target.levels)
                raise TilesmithError(f"unknown level {level!r}: there are {known}")
        return tuple(target.at(level) for level in levels or target.usual)

    def shipped(self, spec: KernelSpec) -> tuple[Target, ...]:
        """The first target, and the others that the spec has recipes for, at their usual levels."""
        first, *others = self.targets
        chosen = (first, *(target for target in others if self.has_recipe(spec, target.name)))
        return tuple(target.at(level) for target in chosen for level in target.usual)

    def has_recipe(self, spec: KernelSpec, name: str) -> bool:
        """Whether the spec has a recipe for the target, or for a level of it."""
        return any(recipe.target.partition(".")[0] == name for recipe in spec.recipes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(target.name for target in self.targets)

    @property
    def of_recipes(self) -> tuple[str, ...]:
        """All that a recipe can be for: `cpu`, `cpu.v2`, ..."""
        return tuple(
            name
            for target in self.targets
            for name in (target.name, *(f"{target.name}.{level}" for level in target.levels))
        )

    @property
    def levels(self) -> tuple[str, ...]:
        """All levels of all targets."""
        return tuple(level for target in self.targets for level in target.levels)

    def load(self, path: Path) -> KernelSpec:
        """A spec, with recipes for these targets. Raises SpecError."""
        return self._checked(specs.load(path))

    def loads(self, text: str, name: str) -> KernelSpec:
        """As `load`, of a text; errors call it by the name."""
        return self._checked(specs.loads(text, name))

    def _checked(self, spec: KernelSpec) -> KernelSpec:
        self.check(spec.recipes)
        return spec

    def check(self, recipes: Iterable[Recipe]) -> None:
        """Raises SpecError for a target or a level that does not exist: a recipe for it would never
        run, and be read by no one.
        """
        for recipe in recipes:
            if recipe.target not in self.of_recipes:
                raise self._unknown(recipe)
            levels = self[recipe.target.partition(".")[0]].levels
            for param in recipe.params:
                _check_levels(param, levels)

    def _unknown(self, recipe: Recipe) -> SpecError:
        known, at = ", ".join(self.of_recipes), recipe.target_span
        message = f"unknown target '{recipe.target[:64]}': there are {known}"
        return SpecError(message, at, yaml.hint(recipe.target, self.of_recipes))


def _check_levels(param: Param, levels: tuple[str, ...]) -> None:
    for (level, _), span in zip(param.values, param.spans, strict=True):
        if level and level not in levels:
            message = f"unknown level '{level[:64]}': there are {', '.join(levels)}"
            raise SpecError(message, span, yaml.hint(level, levels))
