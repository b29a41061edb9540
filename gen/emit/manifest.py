"""What is known of a compiled kernel: the entries of manifest.json.

Input: JSON, one object a kernel (a *fragment*, which the build writes beside the kernel's C files).
Output: `Entry`, validated, and the manifest of all kernels as text. Invariant: an Entry describes a
kernel that the runtime can call; all that bindings depend on is in its fields, the rest (proof,
accuracy, recipe) is in `details` and reaches the manifest alone.
"""

import json
import keyword
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from ..errors import TilesmithError
from ..ir.nodes import Intent
from ..ir.types import DType, Kind

LEVELS = ("v2", "v3", "v4", "neon")  # as ts_level in ts_engine.h

PACKAGE_FUNCTIONS = (
    "free_workspace",
    "get_num_threads",
    "kernels",
    "last_call",
    "set_num_threads",
    "show_config",
)

Scalar = bool | int | float


@final
@dataclass(frozen=True, slots=True)
class Argument:
    """An array. `dtype` is a type variable or an element type; `looped`: its first axis is the loop
    dim; `core`: its other axes, each a dim's name or a constant extent; `in_place`: of an output,
    the inputs that may be the very same array.
    """

    name: str
    intent: Intent
    dtype: str
    looped: bool
    core: tuple[str | int, ...]
    in_place: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Parameter:
    """A scalar; without a default the caller must give it."""

    name: str
    dtype: str
    default: Scalar | None = None


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel as the binding sees it.

    types: each type variable's choices, in the order in which they are tried; kernels exist for
        all combinations. requires: least extents of dims, where that is not 0.
    """

    kernel: str
    doc: str
    signature: str
    types: Mapping[str, tuple[str, ...]]
    dims: tuple[str, ...]
    loop_dim: str | None
    arguments: tuple[Argument, ...]
    parameters: tuple[Parameter, ...]
    requires: Mapping[str, int]
    levels: tuple[str, ...]
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.intent is not Intent.OUT)

    @property
    def outputs(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.arguments if a.intent is Intent.OUT)

    @property
    def has_axis(self) -> bool:
        """Whether calls take axis=: there is one core dim, and no array has it twice."""
        core = {extent for a in self.arguments for extent in a.core}
        return (
            len(core) == 1
            and isinstance(next(iter(core)), str)
            and all(len(a.core) <= 1 for a in self.arguments)
        )


def entry_to_json(entry: Entry) -> dict[str, object]:
    """The entry as a fragment or the manifest holds it: JSON values only, in a fixed order."""
    return {
        "kernel": entry.kernel,
        "doc": entry.doc,
        "signature": entry.signature,
        "types": {name: list(choices) for name, choices in entry.types.items()},
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
            }
            for a in entry.arguments
        ],
        "parameters": [
            {"name": p.name, "dtype": p.dtype, "default": _default_to_json(p.default)}
            for p in entry.parameters
        ],
        "requires": dict(entry.requires),
        "levels": list(entry.levels),
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
            types={str(k): _strings(v) for k, v in _mapping(fields["types"]).items()},
            dims=_strings(fields["dims"]),
            loop_dim=None if fields["loop_dim"] is None else str(fields["loop_dim"]),
            arguments=tuple(_argument(_mapping(a)) for a in _items(fields["arguments"])),
            parameters=tuple(_parameter(_mapping(p)) for p in _items(fields["parameters"])),
            requires={k: _integer(v) for k, v in _mapping(fields["requires"]).items()},
            levels=_strings(fields["levels"]),
            details=_mapping(fields["details"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TilesmithError(
            f"malformed fragment of kernel {data.get('kernel')!r}: {error}"
        ) from None
    validate(entry)
    return entry


def manifest_text(entries: Sequence[Entry], version: str) -> str:
    """manifest.json: the kernels by name, each as `entry_to_json` gives it."""
    kernels = {e.kernel: entry_to_json(e) for e in sorted(entries, key=lambda e: e.kernel)}
    document = {"manifest": 1, "version": version, "kernels": kernels}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


# ---------------------------------------------------------------- validation

# What the binding itself is called and calls: a kernel of that name would take its place.
_USED_BY_THE_BINDING = (
    *("AxisError", "False", "ImportError", "MemoryError", "None", "OverflowError", "SystemError"),
    *("True", "TypeError", "ValueError", "bool", "cnp", "complex", "float", "getattr", "importlib"),
    *("int", "isinstance", "json", "len", "list", "np", "operator", "os", "print", "range", "str"),
    *("sys", "tuple", "type", "zip"),
)
RESERVED = frozenset([*PACKAGE_FUNCTIONS, *_USED_BY_THE_BINDING])
_OPTIONS = frozenset({"axis", "out", "num_threads"})
_LIMITS = {"arguments": 12, "parameters": 16, "dims": 16}
_CORE_LIMIT, _AXES_LIMIT = 8, 64


def validate(entry: Entry) -> None:
    """Raises TilesmithError where the runtime could not call the kernel."""
    problem = _problem(entry)
    if problem is not None:
        raise TilesmithError(f"kernel {entry.kernel}: {problem}")


def _problem(entry: Entry) -> str | None:
    names = [a.name for a in entry.arguments] + [p.name for p in entry.parameters]
    bound = {extent for a in entry.inputs for extent in a.core} | {entry.loop_dim}
    counts = {name: len(getattr(entry, name)) for name in _LIMITS}
    if not _is_name(entry.kernel) or entry.kernel.startswith("_") or entry.kernel in RESERVED:
        return "the name cannot be that of a function in the generated module"
    for name in names:
        if not _is_name(name) or name.startswith("_") or name in _OPTIONS:
            return f"{name!r} cannot be the name of an argument"
    for what, limit in _LIMITS.items():
        if counts[what] > limit:
            return f"has {counts[what]} {what}; the runtime takes at most {limit}"
    if sum(a.looped + len(a.core) for a in entry.arguments) > _AXES_LIMIT:
        return f"its arrays have more than {_AXES_LIMIT} axes together"
    for dim in entry.dims:
        if dim not in bound:
            return f"no input has dim {dim}, so that a call could not tell its extent"
    if unknown := sorted(set(entry.levels) - set(LEVELS)):
        return f"unknown ISA level {unknown[0]!r}"
    return next(filter(None, (_argument_problem(entry, a) for a in entry.arguments)), None) or next(
        filter(None, (_parameter_problem(entry, p) for p in entry.parameters)), None
    )


def _argument_problem(entry: Entry, argument: Argument) -> str | None:
    where = f"argument {argument.name}"
    dims = {extent for extent in argument.core if isinstance(extent, str)}
    if not dims <= set(entry.dims):
        return f"{where} has an axis that is neither a dim nor a constant"
    if len(argument.core) > _CORE_LIMIT:
        return f"{where} has more than {_CORE_LIMIT} core axes"
    if argument.intent is not Intent.IN and entry.loop_dim is not None and not argument.looped:
        return f"{where} is written but lacks the loop dim {entry.loop_dim}"
    if argument.looped and entry.loop_dim is None:
        return f"{where} is looped but the kernel has no loop dim"
    return _type_problem(entry, where, argument.dtype)


def _parameter_problem(entry: Entry, parameter: Parameter) -> str | None:
    where = f"scalar {parameter.name}"
    if any(DType(choice).kind is Kind.COMPLEX for choice in choices(entry, parameter.dtype)):
        return f"{where} is complex; scalars are real"
    return _type_problem(entry, where, parameter.dtype)


def _type_problem(entry: Entry, where: str, dtype: str) -> str | None:
    if DType.BFLOAT16.value in choices(entry, dtype):
        return f"{where} is bfloat16, which NumPy has no dtype for"
    return None


def choices(entry: Entry, dtype: str) -> tuple[str, ...]:
    """The element types that a type variable or an element type stands for."""
    return entry.types.get(dtype, (dtype,))


def _is_name(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None and not keyword.iskeyword(name)


# ---------------------------------------------------------------- JSON values


_NOT_FINITE = ("inf", "-inf", "nan")  # strings: JSON has no numbers for them


def _default_to_json(default: Scalar | None) -> Scalar | str | None:
    return str(default) if isinstance(default, float) and not math.isfinite(default) else default


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, got {value!r}")
    return value


def _items(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {value!r}")
    return value


def _strings(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in _items(value))


def _integer(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"expected an integer, got {value!r}")
    return value


def _argument(data: dict[str, object]) -> Argument:
    core = tuple(x if isinstance(x, int) else str(x) for x in _items(data["core"]))
    return Argument(
        name=str(data["name"]),
        intent=Intent(data["intent"]),
        dtype=str(data["dtype"]),
        looped=bool(data["looped"]),
        core=core,
        in_place=_strings(data["in_place"]),
    )


def _parameter(data: dict[str, object]) -> Parameter:
    default = data["default"]
    if default in _NOT_FINITE:
        default = float(str(default))
    if default is not None and not isinstance(default, bool | int | float):
        raise TypeError(f"expected a number, got {default!r}")
    return Parameter(str(data["name"]), str(data["dtype"]), default)
