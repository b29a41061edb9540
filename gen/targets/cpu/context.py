"""What the C of a statement depends on: the module that it is part of and what stands around it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import final

from ...ir.index.facts import Facts
from ...ir.nodes import Destination, Loop, Stmt
from ...ir.types import DType
from ..c.expr import Scalars
from ..c.names import CNames
from ..c.views import View, plain_scalars
from .levels import Processor


def all_of_function(name: str) -> tuple[str, ...]:
    """The C names that may be of a function or its copies."""
    return tuple(f"{name}{copy}" for copy in ("", "_code", "_unit", "_any", "_when"))


@final
@dataclass(slots=True)
class Module:
    """The C functions of one variant so far, the names of functions that are taken in its file, and
    the blocks that a loop streams.
    """

    functions: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    streamed: set[str] = field(default_factory=set)

    def name(self, wish: str) -> str:
        """A function's name, which those of its copies begin with."""
        name, k = wish, 1
        while not self.taken.isdisjoint(all_of_function(name)):
            k += 1
            name = f"{wish}_{k}"
        self.taken.update(all_of_function(name))
        return name


@final
@dataclass(frozen=True, slots=True)
class Kept:
    """A row of `ts_stream.h` that is kept in memory. place: C for it; first: for whether nothing
    was stored into the row yet.
    """

    place: str
    first: str


Push = str | Kept


@final
@dataclass(frozen=True, slots=True)
class Apart:
    """Where the stores of a loop go that stores into other rows each iteration (see `apart`)."""

    loop: Loop
    pushes: Mapping[Destination, Push]


@final
@dataclass(frozen=True, slots=True)
class Context:
    """What stands around a statement.

    symbol: the variant's C name. unit: C names of the strides that are 1 in one of two copies of
    the code, told apart by the constant `unit`; none: there is one. dtypes: of all buffers. scope:
    C declarations, without initialisers, of what the code here can name. fuses: sums take products
    by fused multiply-adds. held: workspace to release on the way out of this C function. outside:
    how much of that is held around the innermost loop. parallel: inside a parallel loop. pushes:
    the rows of `ts_stream.h` that stores go to, where they do; empty where the vectors are whole
    lines, which pass the caches by as they are. aligned: the arguments with whose lines loops
    begin. apart: the loop inside whose stores a loop around has decided on.
    """

    symbol: str
    module: Module
    target: Processor
    unit: frozenset[str]
    names: CNames
    dtypes: Mapping[str, DType]
    views: Mapping[str, View]
    facts: Facts
    scope: tuple[tuple[str, str], ...]
    fuses: bool
    held: tuple[str, ...] = ()
    outside: int = 0
    parallel: bool = False
    pushes: Mapping[Destination, Push] = field(default_factory=dict)
    aligned: frozenset[str] = frozenset()
    apart: Apart | None = None

    @property
    def scalars(self) -> Scalars:
        return plain_scalars(self.names.variables, self.views, self.facts, fuses=self.fuses)

    def inside(self, stmt: Stmt) -> "Context":
        """With what holds inside the statement."""
        return replace(self, facts=self.facts.inside(stmt))

    @property
    def releases(self) -> list[str]:
        """What releases the workspace held, the last first."""
        return _released(self.held)

    @property
    def releases_in_loop(self) -> list[str]:
        """What releases the workspace held in an iteration of the innermost loop."""
        return _released(self.held[self.outside :])

    def in_loop(self, var: str) -> "Context":
        """Inside a loop over that variable, which what is inside may leave."""
        scope = (*self.scope, ("int64_t", self.names.variables[var]))
        return replace(self, scope=scope, outside=len(self.held))


def _released(held: tuple[str, ...]) -> list[str]:
    return [f"ts_workspace_release({name});" for name in reversed(held)]
