"""What a spec file says, read and checked, for every choice of dtypes at once.

Immutable. Spans point into the file. Expressions over dims alone (constraints, `when`) are IR
already; the body is a resolved `Program`; a recipe's step keeps its arguments as YAML nodes, which
`yaml.decode` turns into the primitive's dataclass.
"""

from dataclasses import dataclass, field
from typing import final

from ..errors import Span
from ..ir import nodes as ir
from ..ir.types import DType
from . import yaml
from .program import Program

Size = str | int
"""One axis of an argument: a dim's name or a fixed extent."""


@final
@dataclass(frozen=True, slots=True)
class Argument:
    """An array argument. `element` is a type variable's name or a dtype's."""

    name: str
    element: str
    shape: tuple[Size, ...]
    intent: ir.Intent
    doc: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar parameter; without a default the caller must give it."""

    name: str
    element: str
    default: bool | int | float | None = None
    doc: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Temporary:
    """What the spec says of a temporary beyond its definition.

    shape: over dims; None: as large as its definitions need.
    """

    name: str
    element: str
    shape: tuple[ir.Expr, ...] | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class TypeVariable:
    """`T: [float32, float64]`: one kernel a choice."""

    name: str
    choices: tuple[DType, ...]


@final
@dataclass(frozen=True, slots=True)
class Signature:
    """The core axes of the inputs and outputs, as in NumPy's generalised ufuncs."""

    inputs: tuple[tuple[Size, ...], ...]
    outputs: tuple[tuple[Size, ...], ...]

    def __str__(self) -> str:
        return "->".join(
            ",".join("(" + ",".join(map(str, shape)) + ")" for shape in side)
            for side in (self.inputs, self.outputs)
        )


@final
@dataclass(frozen=True, slots=True)
class Step:
    """One step of a recipe: a primitive's name and its arguments, not yet decoded."""

    primitive: str
    args: yaml.Map
    span: Span = field(compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Variant:
    """Steps for the sizes where `when` holds; None: for all."""

    when: ir.Expr | None
    steps: tuple[Step, ...]
    span: Span = field(compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Param:
    """A recipe's parameter: one value for all levels (level "") or one a level."""

    name: str
    values: tuple[tuple[str, int | str], ...]
    span: Span = field(compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Recipe:
    """How to run the kernel on a target such as `cpu` or `cpu.v3`."""

    target: str
    params: tuple[Param, ...]
    variants: tuple[Variant, ...]
    auto: bool
    span: Span = field(compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Formula:
    """A formula of the spec for one output: its oracle, or the accuracy that it promises."""

    output: str
    text: yaml.Scalar


@final
@dataclass(frozen=True, slots=True)
class KernelSpec:
    """A kernel's spec.

    dims: sizes in order of first appearance in the arguments' shapes; loop_dim is the one (if any)
    that is not in the signature. constraints: bool IR expressions over dims. requires: dims that
    must not be 0, since a max or min runs over them.
    """

    path: str
    name: str
    doc: str
    follows: str
    signature: Signature
    dtypes: tuple[TypeVariable, ...]
    dims: tuple[str, ...]
    loop_dim: str | None
    arguments: tuple[Argument, ...]
    scalars: tuple[Scalar, ...]
    temporaries: tuple[Temporary, ...]
    constraints: tuple[ir.Expr, ...]
    requires: tuple[str, ...]
    program: Program
    oracle: tuple[Formula, ...]
    accuracy: tuple[Formula, ...]
    example: str
    recipes: tuple[Recipe, ...]
    span: Span = field(compare=False, repr=False)
