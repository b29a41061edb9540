"""What a spec file says, read and checked, for every choice of dtypes at once.

Immutable. Spans point into the file. Expressions over dims alone (constraints, `when`) are IR
already; the body is a resolved `Program`; a recipe's step keeps its arguments as YAML nodes, which
`yaml.decode` turns into the primitive's dataclass.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import final

from ..errors import Span
from ..ir import nodes as ir
from ..ir.text.print_expr import expr_to_text
from ..ir.types import DType
from . import yaml
from .body.program import Program
from .syntax import nodes as syntax

Size = str | int | ir.Expr
"""An axis of an argument: a dim's name, a number, or an expression over dims and int64 scalars."""


@final
class Property(Enum):
    """What holds of all values of an argument together, or of each of its matrices or rows."""

    POSITIVE_DEFINITE = "positive definite"
    DIAGONALLY_DOMINANT = "diagonally dominant"
    PERMUTATION = "permutation"
    PROBABILITIES = "probabilities"


@final
@dataclass(frozen=True, slots=True)
class Drawn:
    """How an argument's values are drawn where the kernel is tried.

    property: alone, without the rest. lower, below: the ends of a range, formulas over sizes;
    sorted: along the last axis.
    """

    property: Property | None
    lower: yaml.Scalar | None = None
    below: yaml.Scalar | None = None
    sorted: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Argument:
    """An array argument. `element` is a type variable's name or a dtype's. drawn: None where
    nothing is said of it.
    """

    name: str
    element: str
    shape: tuple[Size, ...]
    intent: ir.Intent
    doc: str = ""
    drawn: Drawn | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar parameter; without a default the caller must give it.

    members: the words that it may be, where its type is a list of them; to the kernel it is the
    number of one, an int64.
    """

    name: str
    element: str
    default: bool | int | float | None = None
    doc: str = ""
    members: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class DeclaredTemporary:
    """What the spec says of a temporary beyond its definition.

    shape: over dims, int64 scalars and named sizes; None: as large as its definitions need.
    """

    name: str
    element: str
    shape: tuple[ir.Expr, ...] | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class NamedSize:
    """A size that a call works out: of dims, scalars and the named sizes before it. `value` may
    hold what is not affine, which the prover then does not know; to the body the name is a dim.
    """

    name: str
    value: ir.Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class TypeVariable:
    """`T: [float32, float64]`: one kernel a choice.

    of: the variable that this one follows, `S: {of: T, int8: int64}`: its choices are in the order
    of that one's; None where it is free.
    """

    name: str
    choices: tuple[DType, ...]
    of: str | None = None


def storage_types(variables: tuple[TypeVariable, ...]) -> frozenset[str]:
    """The types and type variables that only store, in one choice at least."""
    found = {dtype.value for dtype in DType if dtype.only_stores}
    return frozenset(found | {v.name for v in variables if any(d.only_stores for d in v.choices)})


@final
@dataclass(frozen=True, slots=True)
class Signature:
    """The core axes of the inputs and outputs, as in NumPy's generalised ufuncs."""

    inputs: tuple[tuple[Size, ...], ...]
    outputs: tuple[tuple[Size, ...], ...]

    def __str__(self) -> str:
        return "->".join(
            ",".join("(" + ",".join(map(size_text, shape)) + ")" for shape in side)
            for side in (self.inputs, self.outputs)
        )


def size_text(size: Size) -> str:
    """The size as a spec writes it."""
    return str(size) if isinstance(size, str | int) else expr_to_text(size)


@final
@dataclass(frozen=True, slots=True)
class TuplePart:
    """One value of a reduction's tuple. combined: over `a.part`, `b.part`, and `c.part` of parts
    before it.
    """

    name: str
    element: str
    identity: syntax.Expr
    combined: syntax.Expr


@final
@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction that the spec defines."""

    name: str
    doc: str
    parts: tuple[TuplePart, ...]
    span: Span = field(compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class ExternalFunction:
    """A C function that the spec declares. arguments: names and types. symbols: C names by the
    result's type, "" for every type. oracle: its value, over the arguments.
    """

    name: str
    arguments: tuple[tuple[str, str], ...]
    result: str
    symbols: tuple[tuple[str, str], ...]
    header: str
    source: str
    oracle: yaml.Scalar
    doc: str
    span: Span = field(compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class RecipeStep:
    """One step of a recipe: a primitive's name and its arguments, not yet decoded: a map, where
    they are right. In a macro, and in a recipe as it is written, it may be a macro's name.
    """

    primitive: str
    args: yaml.Node
    span: Span = field(compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class RecipeVariant:
    """Steps for the sizes where `when` holds; None: for all."""

    when: ir.Expr | None
    steps: tuple[RecipeStep, ...]
    span: Span = field(compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Param:
    """A recipe's parameter: one value for all levels (level "") or one a level.

    spans: where the levels of the values are named.
    """

    name: str
    values: tuple[tuple[str, int | str], ...]
    span: Span = field(compare=False, repr=False)
    spans: tuple[Span, ...] = field(compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Recipe:
    """How to run the kernel on a target or on one of its levels, `target.level`; whether there is
    such a target the registry of targets says. macros: the names of those in its file.
    """

    target: str
    params: tuple[Param, ...]
    variants: tuple[RecipeVariant, ...]
    span: Span = field(compare=False, repr=False)
    target_span: Span = field(compare=False, repr=False)
    macros: tuple[yaml.Scalar, ...] = ()


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

    dims: sizes in order of first appearance in the arguments' shapes, each told by an input;
    loop_dim is the one (if any) that is not in the signature. sizes: those with a name that follow
    from dims and scalars. constraints: comparisons in IR over dims and scalars. requires:
    dims that must not be 0, since a max or min runs over them.
    """

    path: str
    name: str
    doc: str
    follows: str
    signature: Signature
    dtypes: tuple[TypeVariable, ...]
    dims: tuple[str, ...]
    sizes: tuple[NamedSize, ...]
    loop_dim: str | None
    arguments: tuple[Argument, ...]
    scalars: tuple[Scalar, ...]
    temporaries: tuple[DeclaredTemporary, ...]
    reductions: tuple[Reduction, ...]
    externals: tuple[ExternalFunction, ...]
    constraints: tuple[ir.Expr, ...]
    requires: tuple[str, ...]
    program: Program
    contraction: ir.Contraction
    oracle: tuple[Formula, ...]
    accuracy: tuple[Formula, ...]
    example: str
    recipes: tuple[Recipe, ...]
    span: Span = field(compare=False, repr=False)

    @property
    def all_dims(self) -> tuple[str, ...]:
        """The dims of the kernel: those that inputs tell, then the named sizes."""
        return (*self.dims, *(s.name for s in self.sizes))
