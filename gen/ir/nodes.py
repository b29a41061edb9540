"""The IR: blocks in loops. This page is its grammar, from the spec to the emitted code.

Words. A *block* is the unit of scheduling: named iteration variables, each with a domain, and a
body that computes one value a point. *Loops* around a block bind its iteration variables to index
expressions. A block *instance* is named by the values of its iteration variables, whatever loops
surround it; its *origin* says which instance of which block of the plain schedule it computes.
A *dim* is a symbolic size.

Every node is immutable and carries the place in the spec that it came from, which takes no part
in equality. One namespace holds dims, arguments, scalars and temporaries; blocks have names of
their own; loops are named `block.index` and are their own variables (`Var("y.i")`); iteration
variables are local to their block (`Var("i")`).
"""

from dataclasses import dataclass
from enum import Enum
from typing import final

from .expressions import (
    COMPARISONS,
    PREDICATES,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    External,
    Function,
    Load,
    Node,
    Select,
    Unary,
    UnaryOp,
    Var,
)
from .leave import Leave
from .transfers import Transfer
from .types import Contraction, DType, Intent

__all__ = [
    "COMPARISONS",
    "PREDICATES",
    "Alignment",
    "Allocate",
    "AnyCombiner",
    "Barrier",
    "Binary",
    "BinaryOp",
    "Block",
    "Buffer",
    "Call",
    "Cast",
    "Combiner",
    "Const",
    "Contraction",
    "DefinedCombiner",
    "Delinearize",
    "Destination",
    "Expr",
    "External",
    "Function",
    "If",
    "Init",
    "Intent",
    "IterKind",
    "IterVar",
    "Kernel",
    "Leave",
    "Load",
    "Loop",
    "LoopKind",
    "Node",
    "Origin",
    "Parameter",
    "Phase",
    "Scope",
    "Select",
    "Seq",
    "Stmt",
    "Store",
    "Transfer",
    "Unary",
    "UnaryOp",
    "Update",
    "Var",
]


# ---------------------------------------------------------------- memory


@final
class Scope(Enum):
    """Where a buffer lives."""

    GLOBAL = "global"  # an argument
    AUTO = "auto"  # a temporary whose place lowering chooses: stack or heap, by size
    HEAP = "heap"
    STACK = "stack"
    REGISTER = "register"
    SHARED = "shared"  # one for each block of a launch
    LOCAL = "local"  # one for each thread of a launch
    CONSTANT = "constant"  # written before a launch, read in it
    DEVICE = "device"  # a GPU's own; outside of launches it is only copied
    RANK = "rank"  # one for each rank
    MESSAGE = "message"  # what a rank stores there, it sends; what it reads there, it has received


@final
@dataclass(frozen=True, slots=True)
class Alignment:
    """The elements from one index of an axis to the next are `offset` modulo `factor`; lowering
    makes the axes inside as much longer as that needs.
    """

    axis: int
    factor: int
    offset: int


@final
@dataclass(frozen=True, slots=True)
class Buffer(Node):
    """fixed: a temporary that lowering does not shrink to what is used of it."""

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    scope: Scope = Scope.AUTO
    aligned: tuple[Alignment, ...] = ()
    fixed: bool = False


@final
@dataclass(frozen=True, slots=True)
class Destination(Node):
    """A place that a statement writes."""

    buffer: str
    indices: tuple[Expr, ...]


# ---------------------------------------------------------------- statements


@final
class Combiner(Enum):
    """Associative, commutative combinations of tuples of values; most are of one value. ARGMIN and
    ARGMAX combine (value, index): the extreme value, then the smaller index; a NaN counts as the
    extreme value, as in NumPy.
    """

    SUM = "sum"
    PROD = "prod"
    MIN = "min"
    MAX = "max"
    ANY = "any"
    ALL = "all"
    ARGMIN = "argmin"
    ARGMAX = "argmax"


@final
@dataclass(frozen=True, slots=True)
class DefinedCombiner:
    """A combination that a spec defines; associative and commutative, as every combiner. It is no
    node: its variables are its own, and what walks a tree does not enter it.

    parts: the names of the values in a tuple. identity: one each. combined: what each becomes, in
    this order, over the variables `a.part`, `b.part` and, of parts before it, `c.part`.
    """

    name: str
    parts: tuple[str, ...]
    identity: tuple[Const, ...]
    combined: tuple[Expr, ...]

    @property
    def value(self) -> str:
        """Its name, as of a Combiner."""
        return self.name

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return tuple(none.dtype for none in self.identity)

    def variables(self, owner: str) -> tuple[Var, ...]:
        """Those of one tuple; owner: "a" or "b", which are combined, or "c", the result."""
        pairs = zip(self.parts, self.dtypes, strict=True)
        return tuple(Var(f"{owner}.{part}", dtype) for part, dtype in pairs)


AnyCombiner = Combiner | DefinedCombiner


@final
@dataclass(frozen=True, slots=True)
class Store(Node):
    """`target = value`."""

    target: Destination
    value: Expr


@final
@dataclass(frozen=True, slots=True)
class Init(Node):
    """`targets = the combiner's identity`."""

    combiner: AnyCombiner
    targets: tuple[Destination, ...]


@final
@dataclass(frozen=True, slots=True)
class Update(Node):
    """`targets = combine(targets, values)`: reads the targets, then writes them all."""

    combiner: AnyCombiner
    targets: tuple[Destination, ...]
    values: tuple[Expr, ...]


@final
class IterKind(Enum):
    SPATIAL = "spatial"
    REDUCTION = "reduction"


@final
@dataclass(frozen=True, slots=True)
class IterVar(Node):
    """An iteration variable of a block, over lower <= name < upper. The bounds may use dims and the
    block's earlier iteration variables.
    """

    name: str
    lower: Expr
    upper: Expr
    kind: IterKind = IterKind.SPATIAL


@final
@dataclass(frozen=True, slots=True)
class Origin(Node):
    """An instance of a block of the plain schedule: `block` at `at`, in iteration variables."""

    block: str
    at: tuple[Expr, ...]


@final
@dataclass(frozen=True, slots=True)
class Block(Node):
    """One statement with names for its instances.

    bindings: the iteration variables' values in the surrounding loops' variables.
    predicate: over the surrounding loops' variables; the instance runs only where it holds.
    initialises: an Update block that stores the combiner's identity by itself: at each entry of
        the outermost loop that its reduction variables depend on, once for each spatial instance
        inside (`ir.inits` makes that explicit); False once decomposed.
    origin: None for a block that the plain schedule does not have (a copy, a join, an init).
    """

    name: str
    iters: tuple[IterVar, ...]
    bindings: tuple[Expr, ...]
    predicate: Expr
    body: Store | Init | Update
    initialises: bool = False
    origin: Origin | None = None
    annotations: tuple[tuple[str, int | str], ...] = ()


@final
class LoopKind(Enum):
    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    DISTRIBUTED = "distributed"  # over ranks
    BLOCK_X = "blockIdx.x"
    BLOCK_Y = "blockIdx.y"
    BLOCK_Z = "blockIdx.z"
    THREAD_X = "threadIdx.x"
    THREAD_Y = "threadIdx.y"
    THREAD_Z = "threadIdx.z"

    @property
    def is_unordered(self) -> bool:
        """Whether the iterations run in any order, or at once, and are no axis of a launch."""
        return self in (LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.DISTRIBUTED)

    @property
    def is_block(self) -> bool:
        return self in (LoopKind.BLOCK_X, LoopKind.BLOCK_Y, LoopKind.BLOCK_Z)

    @property
    def is_thread(self) -> bool:
        return self in (LoopKind.THREAD_X, LoopKind.THREAD_Y, LoopKind.THREAD_Z)

    @property
    def is_bound(self) -> bool:
        """Whether it is an axis of a launch."""
        return self.is_block or self.is_thread


@final
@dataclass(frozen=True, slots=True)
class Loop(Node):
    """`for var in range(lower, upper)`; runs nothing where upper <= lower.

    The outermost loop of a kind that is bound to an axis is a *launch*; `ir.launch` says what runs.
    """

    var: str
    lower: Expr
    upper: Expr
    kind: LoopKind
    body: "Stmt"
    annotations: tuple[tuple[str, int | str], ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Delinearize(Node):
    """Binds `vars` to the parts of `value` in row-major order over `extents`; runs nothing where
    `value` is not below their product. A fused loop is a loop around one of these, so that
    `n*i + j` with a symbolic n, which is not affine, is never written down.
    """

    vars: tuple[str, ...]
    extents: tuple[Expr, ...]
    value: Expr
    body: "Stmt"


@final
@dataclass(frozen=True, slots=True)
class If(Node):
    """Made by lowering alone: until then, guards are the blocks' predicates."""

    condition: Expr
    body: "Stmt"


@final
@dataclass(frozen=True, slots=True)
class Allocate(Node):
    """Temporaries that live while `body` runs: new, uninitialised places at each entry."""

    buffers: tuple[Buffer, ...]
    body: "Stmt"


@final
@dataclass(frozen=True, slots=True)
class Barrier(Node):
    """In a launch, no thread of a block goes on before all of them are here; elsewhere nothing."""


@final
@dataclass(frozen=True, slots=True)
class Seq(Node):
    body: tuple["Stmt", ...]


Stmt = Block | Loop | Delinearize | If | Allocate | Barrier | Leave | Transfer | Seq


# ---------------------------------------------------------------- kernels


@final
@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """An array argument; its buffer's scope is GLOBAL, its shape over dims and INDEX scalars."""

    buffer: Buffer
    intent: Intent


@final
@dataclass(frozen=True, slots=True)
class Phase(Node):
    """A run-time integer in [0, size): how many elements of its line of the caches come before the
    first element of an argument. A kernel is right whatever it is.
    """

    name: str
    buffer: str
    size: int


@final
@dataclass(frozen=True, slots=True)
class Kernel(Node):
    """A kernel for one choice of dtypes.

    dims: symbolic sizes, each at least 0. scalars: scalar parameters.
    assumptions: bool expressions over dims and INDEX scalars that hold at every call (the spec's
        constraints, that shapes are not negative, and the variant's `when`).
    body: block names are unique until lowering copies blocks into heads and tails.
    phases: what loops that begin with lines of an argument start from.
    """

    name: str
    dims: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    scalars: tuple[Var, ...]
    assumptions: tuple[Expr, ...]
    body: Stmt
    phases: tuple[Phase, ...] = ()
    contraction: Contraction = Contraction.FUSED
