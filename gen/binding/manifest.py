"""What is known of a compiled kernel: the entries of manifest.json.

Input: JSON, one object a kernel (a *fragment*, which the build writes beside the kernel's C files).
Output: `Entry`, validated, and the manifest of all kernels as text. Invariant: an Entry describes a
kernel that the runtime can call; all that bindings depend on is in its fields, the rest (proof,
accuracy, example) is in `details` and reaches the manifest and docstrings alone.
"""

import json
import keyword
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from ..errors import TilesmithError
from ..ir.algebra import index
from ..ir.interpret.sizes import from_text, told
from ..ir.nodes import Binary, BinaryOp, Expr, Intent, Var
from ..ir.types import INDEX, DType
from ..ir.walk import variables, walk
from ..lower.index_limits import SIZES
from ..targets.runtime import ARCHITECTURES, LEVELS, RUNTIME
from .json_values import integer, items, mapping, strings

_DECLARATIONS = RUNTIME / "ts_declarations.pxi"


PACKAGE_FUNCTIONS = (
    "free_workspace",
    "get_include",
    "get_num_threads",
    "kernels",
    "last_call",
    "set_num_threads",
    "show_config",
    "threads",
    "warmup",
)

Scalar = bool | int | float


@final
@dataclass(frozen=True, slots=True)
class EntryArgument:
    """An array. `dtype` is a type variable or an element type; `looped`: its first axis is the loop
    dim; `core`: its other axes, each a dim's name, a constant extent, or an expression over dims
    and int64 scalars as text; `in_place`: of an output, the inputs that may be the very same array,
    and those that may be on GPUs.
    """

    name: str
    intent: Intent
    dtype: str
    looped: bool
    core: tuple[str | int, ...]
    in_place: tuple[str, ...] = ()
    in_place_on_gpus: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class EntryParameter:
    """A scalar; without a default the caller must give it. members: the words that callers give,
    each for its place among them.
    """

    name: str
    dtype: str
    default: Scalar | None = None
    members: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel as the binding sees it.

    types: each type variable's choices, in the order in which they are tried; kernels exist for
        all combinations. following: the variables that follow another, and which: the choices of
        the two go in pairs. requires: least extents of dims, where that is not 0. constraints: what
        else calls are checked for, as text. named: sizes that have a name, and what they come to,
        as text. limits: of scalars that index, as `lower.index_limits` has them; largest: of
        sizes; products: of sizes, which calls work out, as text. ordered: whether a result depends
        on where along the core axis an element is, as positions and running sums do. architectures:
        of GPUs, those that there is code for, by the choice of dtypes: names with `_` between.
    """

    kernel: str
    doc: str
    signature: str
    types: Mapping[str, tuple[str, ...]]
    dims: tuple[str, ...]
    loop_dim: str | None
    arguments: tuple[EntryArgument, ...]
    parameters: tuple[EntryParameter, ...]
    requires: Mapping[str, int]
    levels: tuple[str, ...]
    ordered: bool = True
    details: Mapping[str, object] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()
    following: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    largest: int = SIZES[-1]
    products: tuple[str, ...] = ()
    architectures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[EntryArgument, ...]:
        return tuple(a for a in self.arguments if a.intent is not Intent.OUT)

    @property
    def outputs(self) -> tuple[EntryArgument, ...]:
        return tuple(a for a in self.arguments if a.intent is Intent.OUT)

    @property
    def has_axis(self) -> bool:
        """Whether calls take axis=: there is one core dim, and no array has two core axes."""
        core = [extent for a in self.arguments for extent in a.core]
        dims = {name for extent in core if isinstance(extent, str) for name in names_in(extent)}
        return (
            len(dims & set(self.dims)) == 1
            and all(isinstance(extent, str) for extent in core)
            and all(len(a.core) <= 1 for a in self.arguments)
        )

    @property
    def reduces(self) -> bool:
        """Whether calls take several axes, and keepdims=: one array's core dim is gone."""
        cores = [len(a.core) for a in self.inputs]
        return self.has_axis and cores == [1] and not any(a.core for a in self.outputs)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The named sizes, then the extents of axes that are expressions, each once."""
        core = (extent for a in self.arguments for extent in a.core)
        dims = set(self.dims)
        texts = (e for e in core if isinstance(e, str) and e not in dims)
        return tuple(dict.fromkeys([*self.named, *texts]))

    @property
    def size_rules(self) -> tuple[str, ...]:
        """What callers are told of sizes: least ones, constraints, and what the named ones are."""
        least = (f"{dim} >= {size}" for dim, size in self.requires.items())
        named = (f"{name} = {value}" for name, value in self.named.items())
        words = {p.name for p in self.parameters if p.members}
        of_sizes = (c for c in self.constraints if not variables(self.parsed(c)) & words)
        return (*least, *of_sizes, *named)

    def parsed(self, size: str | int) -> Expr:
        """A size, extent or constraint in IR: what a name stands for, where it is a named size's.

        Raises TilesmithError where it is none.
        """
        reals = {p.name: DType.FLOAT64 for p in self.parameters if p.dtype == DType.FLOAT64.value}
        return parsed(self.named.get(size, size) if isinstance(size, str) else size, reals)


def entry_to_json(entry: Entry) -> dict[str, object]:
    """The entry as a fragment or the manifest holds it: JSON values only, in a fixed order."""
    return {
        "kernel": entry.kernel,
        "doc": entry.doc,
        "signature": entry.signature,
        "types": {name: list(choices) for name, choices in entry.types.items()},
        "following": dict(entry.following),
        "dims": list(entry.dims),
        "loop_dim": entry.loop_dim,
        "arguments": [
            {
                "name": a.name,
                "intent": a.intent.value,
                "dtype": a.dtype,
                "looped": a.looped,
                "core": list(a.core),
                "in_place": list(a.in_place),
                "in_place_on_gpus": list(a.in_place_on_gpus),
            }
            for a in entry.arguments
        ],
        "parameters": [
            {
                "name": p.name,
                "dtype": p.dtype,
                "default": _default_to_json(p.default),
                "members": list(p.members),
            }
            for p in entry.parameters
        ],
        "requires": dict(entry.requires),
        "constraints": list(entry.constraints),
        "sizes": dict(entry.named),
        "limits": {name: list(limits) for name, limits in entry.limits.items()},
        "largest": entry.largest,
        "products": list(entry.products),
        "levels": list(entry.levels),
        "architectures": {types: list(names) for types, names in entry.architectures.items()},
        "ordered": entry.ordered,
        "details": dict(entry.details),
    }


def entry_from_json(data: Mapping[str, object]) -> Entry:
    """The entry that `entry_to_json` wrote. Raises TilesmithError where it cannot be bound."""
    try:
        fields = dict(data)
        entry = Entry(
            kernel=str(fields["kernel"]),
            doc=str(fields["doc"]),
            signature=str(fields["signature"]),
            types={str(k): strings(v) for k, v in mapping(fields["types"]).items()},
            following={k: str(v) for k, v in mapping(fields["following"]).items()},
            dims=strings(fields["dims"]),
            loop_dim=None if fields["loop_dim"] is None else str(fields["loop_dim"]),
            arguments=tuple(_argument(mapping(a)) for a in items(fields["arguments"])),
            parameters=tuple(_parameter(mapping(p)) for p in items(fields["parameters"])),
            requires={k: integer(v) for k, v in mapping(fields["requires"]).items()},
            constraints=strings(fields["constraints"]),
            named={k: str(v) for k, v in mapping(fields["sizes"]).items()},
            limits={
                k: tuple(integer(limit) for limit in items(v))
                for k, v in mapping(fields["limits"]).items()
            },
            largest=integer(fields["largest"]),
            products=strings(fields["products"]),
            levels=strings(fields["levels"]),
            architectures={k: strings(v) for k, v in mapping(fields["architectures"]).items()},
            ordered=bool(fields["ordered"]),
            details=mapping(fields["details"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TilesmithError(
            f"malformed fragment of kernel {data.get('kernel')!r}: {error}"
        ) from None
    validate(entry)
    return entry


def manifest_text(entries: Sequence[Entry], version: str, cuda_sources: str | None = None) -> str:
    """manifest.json: the kernels by name. cuda_sources: the digest of GPUs' sources, if any."""
    kernels = {e.kernel: entry_to_json(e) for e in sorted(entries, key=lambda e: e.kernel)}
    gpus = {} if cuda_sources is None else {"cuda_sources": cuda_sources}
    document = {"manifest": 1, "version": version, **gpus, "kernels": kernels}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


# ---------------------------------------------------------------- validation

# What the binding itself is called and calls: a kernel of that name would take its place.
_USED_BY_THE_BINDING = (
    *("AttributeError", "AxisError", "BaseException", "Exception", "False", "ImportError"),
    *("MemoryError", "ModuleNotFoundError", "None", "OSError", "OverflowError", "RuntimeError"),
    *("BufferError", "RuntimeWarning", "Sequence", "SystemError"),
    *("True", "TypeError", "ValueError", "bool", "cnp", "complex", "float", "getattr", "importlib"),
    *("PyCapsule_New", "PyObject_CheckBuffer", "int64_t", "uint32_t", "uintptr_t"),
    *("ctypes", "hasattr", "int", "isinstance", "json", "len", "list", "np", "open", "operator"),
    *("os", "print", "range", "re", "str"),
    *("sorted", "sys", "tuple", "type", "zip"),
)
_USED_BY_THE_STUBS = (
    *("Any", "ArrayLike", "Callable", "Literal", "NDArray", "dict", "final", "float", "object"),
    *("Protocol", "overload", "property"),
)
_DECLARED = re.findall(r"\b(?:ts|TS)_\w+", _DECLARATIONS.read_text("utf-8"))
RESERVED = frozenset([*PACKAGE_FUNCTIONS, *_USED_BY_THE_BINDING, *_USED_BY_THE_STUBS, *_DECLARED])
_OPTIONS = frozenset({"axis", "keepdims", "out", "num_threads", "workspace"})
# What Cython takes for no name of a function or a parameter, and for none of a parameter.
_WORDS = frozenset({"DEF", "ELIF", "ELSE", "IF", "cdef", "cimport", "cpdef", "ctypedef", "include"})
_TYPES = frozenset(
    {
        *("Py_UCS4", "Py_UNICODE", "Py_hash_t", "Py_ssize_t", "Py_tss_t", "bint", "char", "const"),
        *("double", "float", "int", "long", "ptrdiff_t", "short", "signed", "size_t", "sizeof"),
        *("ssize_t", "unsigned", "void", "volatile", "NULL", "ts_kernels"),
    }
)
_LIMITS = {"arguments": 12, "parameters": 16, "dims": 16, "sizes": 16}
_CORE_LIMIT, _AXES_LIMIT, _TERMS_LIMIT = 8, 64, 64


def validate(entry: Entry) -> None:
    """Raises TilesmithError where the runtime could not call the kernel."""
    problem = _problem(entry)
    if problem is not None:
        raise TilesmithError(f"kernel {entry.kernel}: {problem}")


def _problem(entry: Entry) -> str | None:
    names = [a.name for a in entry.arguments] + [p.name for p in entry.parameters]
    counts = {name: len(getattr(entry, name)) for name in _LIMITS}
    if not _is_name(entry.kernel) or entry.kernel in RESERVED:
        return "the name cannot be that of a function in the generated module"
    for name in names:
        if not _is_name(name) or name in _OPTIONS | _TYPES:
            return f"{name!r} cannot be the name of an argument"
    for what, limit in _LIMITS.items():
        if counts[what] > limit:
            return f"has {counts[what]} {what}; the runtime takes at most {limit}"
    if sum(a.looped + len(a.core) for a in entry.arguments) > _AXES_LIMIT:
        return f"its arrays have more than {_AXES_LIMIT} axes together"
    problem = _size_problem(entry)
    if problem is not None:
        return problem
    if unknown := sorted(set(entry.levels) - set(LEVELS)):
        return f"unknown ISA level {unknown[0]!r}"
    named = {name for names in entry.architectures.values() for name in names}
    if unknown := sorted(named - set(ARCHITECTURES)):
        return f"unknown architecture {unknown[0]!r}"
    return next(filter(None, (_argument_problem(entry, a) for a in entry.arguments)), None)


def _size_problem(entry: Entry) -> str | None:
    scalars = {p.name for p in entry.parameters if choices(entry, p.dtype) == (DType.INT64.value,)}
    known = {*entry.dims, *scalars} - {entry.loop_dim}
    for text in (*entry.sizes, *entry.constraints):  # what is named may be in what follows it
        size = entry.parsed(text)
        reals = {v.name for v in walk(size) if isinstance(v, Var) and v.dtype is not INDEX}
        if not variables(size) <= known | reals:
            return f"{text!r} is over more than core dims, int64 scalars and numbers"
        known |= {text} & set(entry.named)
        operations = (e.op for e in walk(size) if isinstance(e, Binary))
        if unknown := [op.value for op in operations if op not in SIZE_OPERATIONS]:
            return f"{text!r} has {unknown[0]!r}"
        if sum(1 for _ in walk(size)) >= _TERMS_LIMIT:
            return f"{text[:64]}... has more than {_TERMS_LIMIT} parts"
    bound = {tells.dim for a in entry.inputs for e in a.core if (tells := told(parsed(e)))}
    for dim in entry.dims:
        if dim not in bound and dim != entry.loop_dim:
            return f"no input has dim {dim}, so that a call could not tell its extent"
    return None


SIZE_OPERATIONS = {  # in sizes and constraints, as ts_operation in ts_engine.h
    BinaryOp.ADD: "ADD", BinaryOp.SUB: "SUB", BinaryOp.MUL: "MUL", BinaryOp.FLOORDIV: "FLOORDIV",
    BinaryOp.MOD: "MOD", BinaryOp.MIN: "MIN", BinaryOp.MAX: "MAX", BinaryOp.EQ: "EQ",
    BinaryOp.NE: "NE", BinaryOp.LT: "LT", BinaryOp.LE: "LE", BinaryOp.GT: "GT", BinaryOp.GE: "GE",
}  # fmt: skip


def parsed(extent: str | int, reals: Mapping[str, DType] | None = None) -> Expr:
    """The extent, or the constraint, in IR. reals: the float64 scalars that may be in it.

    Raises TilesmithError where it is none.
    """
    if isinstance(extent, int):
        return index(extent)
    try:
        return from_text(extent, reals)
    except SyntaxError:
        raise TilesmithError(f"{extent!r} is not an expression") from None


def names_in(text: str) -> frozenset[str]:
    """The dims and scalars in an extent or a constraint."""
    return variables(parsed(text))


def _argument_problem(entry: Entry, argument: EntryArgument) -> str | None:
    where = f"argument {argument.name}"
    if len(argument.core) > _CORE_LIMIT:
        return f"{where} has more than {_CORE_LIMIT} core axes"
    if argument.intent is not Intent.IN and entry.loop_dim is not None and not argument.looped:
        return f"{where} is written but lacks the loop dim {entry.loop_dim}"
    if argument.looped and entry.loop_dim is None:
        return f"{where} is looped but the kernel has no loop dim"
    return None


def choices(entry: Entry, dtype: str) -> tuple[str, ...]:
    """The element types that a type variable or an element type stands for."""
    return tuple(dict.fromkeys(entry.types.get(dtype, (dtype,))))


def _is_name(name: str) -> bool:
    """Whether a function or a parameter of the module can have the name. The binding's own names
    begin with an underscore.
    """
    fits = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None
    return fits and not keyword.iskeyword(name) and name not in _WORDS


# ---------------------------------------------------------------- JSON values


_NOT_FINITE = ("inf", "-inf", "nan")  # strings: JSON has no numbers for them


def _default_to_json(default: Scalar | None) -> Scalar | str | None:
    return str(default) if isinstance(default, float) and not math.isfinite(default) else default


def _argument(data: dict[str, object]) -> EntryArgument:
    core = tuple(x if isinstance(x, int) else str(x) for x in items(data["core"]))
    intent, looped = Intent(data["intent"]), bool(data["looped"])
    shared = (strings(data[key]) for key in ("in_place", "in_place_on_gpus"))
    return EntryArgument(str(data["name"]), intent, str(data["dtype"]), looped, core, *shared)


def _parameter(data: dict[str, object]) -> EntryParameter:
    default = data["default"]
    if default in _NOT_FINITE:
        default = float(str(default))
    if default is not None and not isinstance(default, bool | int | float):
        raise TypeError(f"expected a number, got {default!r}")
    members = strings(data["members"])
    return EntryParameter(str(data["name"]), str(data["dtype"]), default, members)
