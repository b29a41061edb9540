"""The kernels' descriptors as C: `ts_kernels.c`, static tables in the types of ts_engine.h.

Input: manifest entries. Output: C text; entry k of `ts_kernels` is entry k of the input.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from ..ir.algebra import dtype_of
from ..ir.interpret.sizes import Told, told
from ..ir.nodes import Binary, Cast, Const, Expr, Intent, Var
from ..ir.types import DType
from ..lower.index_limits import SIZES
from ..targets.runtime import LEVELS
from .manifest import SIZE_OPERATIONS, Entry, EntryArgument, EntryParameter

_INTENT = {Intent.IN: "TS_IN", Intent.OUT: "TS_OUT", Intent.INOUT: "TS_INOUT"}


def table_symbol(kernel: str, dtypes: Sequence[str], level: str) -> str:
    """The symbol of a kernel's table of variants: `ts_softmax_float32_v4`."""
    return "_".join(["ts", kernel, *dtypes, level])


def declaration(entry: Entry, types: Mapping[str, str]) -> str:
    """What compiled callers of a kernel depend on: its name, and in order its arguments' intents,
    element types and core axes, and its scalars' types: `sum(in float32 (n), out float32 ())`.
    """
    arrays = (
        f"{a.intent.value} {types.get(a.dtype, a.dtype)} ({', '.join(map(str, a.core))})"
        for a in entry.arguments
    )
    scalars = (types.get(p.dtype, p.dtype) for p in entry.parameters)
    return f"{entry.kernel}({', '.join([*arrays, *scalars])})"


def descriptors(entries: Sequence[Entry]) -> str:
    """`ts_kernels.c` for the entries, in their order."""
    levels = sorted({level for entry in entries for level in entry.levels}, key=LEVELS.index)
    mask = sum(1 << LEVELS.index(level) for level in levels)
    tables = "\n".join(_tables(number, entry) for number, entry in enumerate(entries))
    kernels = "".join(f"    {_kernel(entry)},\n" for entry in entries)
    return (
        "/* Generated: the extension's kernels, for the calling engine. */\n"
        '#include "ts_engine.h"\n\n'
        f"{tables}\n"
        f"const ts_kernel ts_kernels[] = {{\n{kernels}}};\n\n"
        f"const int ts_kernels_count = {len(entries)};\n"
        f"const uint32_t ts_levels_built = {mask};\n"
    )


def overloads(entry: Entry) -> list[tuple[str, ...]]:
    """All choices of dtypes: the type variables' values in order."""
    free = [name for name in entry.types if name not in entry.following]
    return [
        tuple(
            choices[chosen[free.index(entry.following.get(name, name))]]
            for name, choices in entry.types.items()
        )
        for chosen in product(*(range(len(entry.types[name])) for name in free))
    ]


def _tables(kernel: int, entry: Entry) -> str:
    name = entry.kernel
    lines = [
        f"extern const ts_variant {table_symbol(name, dtypes, level)}[];"
        for dtypes in overloads(entry)
        for level in _levels(entry, dtypes)
    ]
    for number, argument in enumerate(entry.arguments):
        axes = ", ".join(_axis(entry, extent) for extent in argument.core) or "0"
        lines.append(f"static const int64_t {name}_axes_{number}[] = {{{axes}}};")
    lines += [
        _array(f"static const ts_argument {name}_arguments[]", _arguments(entry)),
        _array(
            f"static const ts_parameter {name}_parameters[]",
            [_parameter(entry, p) for p in entry.parameters] or ["{0}"],
        ),
        _array(f"static const char *const {name}_dims[]", [f'"{d}"' for d in entry.dims] or ["0"]),
        _array(
            f"static const int64_t {name}_least[]",
            [str(entry.requires.get(d, 0)) for d in entry.dims] or ["0"],
        ),
        *_expressions(entry, "sizes", entry.sizes),
        *_expressions(entry, "constraints", entry.constraints),
        *_expressions(entry, "products", entry.products),
        _array(
            f"static const char *const {name}_type_variables[]",
            [f'"{t}"' for t in entry.types] or ["0"],
        ),
    ]
    for number, dtypes in enumerate(overloads(entry)):
        values = ", ".join(_dtype(t) for t in dtypes) or "0"
        lines.append(f"static const ts_dtype {name}_types_{number}[] = {{{values}}};")
    lines.append(_array(f"static const ts_overload {name}_overloads[]", _overloads(kernel, entry)))
    return "\n".join(lines) + "\n"


def _expressions(entry: Entry, what: str, texts: Sequence[str]) -> Iterator[str]:
    """The table of sizes, constraints or products, after the terms of each."""
    items = []
    for number, text in enumerate(texts):
        terms = f"{entry.kernel}_{what}_{number}"
        size = entry.parsed(text)
        postfix = ", ".join([*_terms(entry, size), "{TS_END, 0}"])
        yield f"static const ts_term {terms}[] = {{{postfix}}};"
        tells = told(size) or Told("")
        # The axis of a named size tells nothing that a call would look for.
        is_dim = tells.dim in entry.dims and text not in entry.named
        found = entry.dims.index(tells.dim) if is_dim else -1
        items.append(f'{{"{text}", {terms}, {found}, {tells.times}, {tells.more}}}')
    yield _array(f"static const ts_size {entry.kernel}_{what}[]", items or ["{0}"])


def _terms(entry: Entry, expr: Expr) -> Iterator[str]:
    match expr:
        case Const(int(number)):
            yield f"{{TS_NUMBER, {number}}}"
        case Var(name) if name in entry.dims:
            yield f"{{TS_DIM, {entry.dims.index(name)}}}"
        case Var(name) if name in entry.named:
            yield f"{{TS_DIM, {len(entry.dims) + list(entry.named).index(name)}}}"
        case Var(name, dtype):
            real = "REAL_" if dtype.is_float else ""
            yield f"{{TS_{real}SCALAR, {[p.name for p in entry.parameters].index(name)}}}"
        case Const(float(number)):
            (bits,) = struct.unpack("=q", struct.pack("=d", number))
            yield f"{{TS_REAL_NUMBER, {bits}}}"
        case Cast(_, operand):
            yield from _terms(entry, operand)
            yield "{TS_WHOLE, 0}"
        case Binary(op, lhs, rhs):
            yield from _terms(entry, lhs)
            yield from _terms(entry, rhs)
            real = "REAL_" if dtype_of(lhs).is_float else ""
            yield f"{{TS_{real}{SIZE_OPERATIONS[op]}, 0}}"
        case _:
            raise AssertionError("a validated size has no other form")


def _array(declaration: str, items: Sequence[str]) -> str:
    return f"{declaration} = {{\n" + "".join(f"    {item},\n" for item in items) + "};"


def _overloads(kernel: int, entry: Entry) -> list[str]:
    items = []
    for number, dtypes in enumerate(overloads(entry)):
        variants = ", ".join(
            f"[TS_{level.upper()}] = {table_symbol(entry.kernel, dtypes, level)}"
            for level in _levels(entry, dtypes)
        )
        told = declaration(entry, dict(zip(entry.types, dtypes, strict=True)))
        items.append(f'{{"{told}", {kernel}, {entry.kernel}_types_{number}, {{{variants}}}}}')
    return items


def _levels(entry: Entry, dtypes: Sequence[str]) -> tuple[str, ...]:
    """The levels that there is a table for: of processors, then of GPUs."""
    return (*entry.levels, *entry.architectures.get("_".join(dtypes), ()))


def _arguments(entry: Entry) -> list[str]:
    return [_argument(entry, argument) for argument in entry.arguments]


def _argument(entry: Entry, argument: EntryArgument) -> str:
    names = [a.name for a in entry.arguments]
    in_place = (
        sum(1 << names.index(name) for name in inputs)
        for inputs in (argument.in_place, argument.in_place_on_gpus)
    )
    return (
        f'{{"{argument.name}", {_INTENT[argument.intent]}, {_type(entry, argument.dtype)}, '
        f"{str(argument.looped).lower()}, {len(argument.core)}, "
        f"{entry.kernel}_axes_{names.index(argument.name)}, {{{', '.join(map(str, in_place))}}}}}"
    )


def _parameter(entry: Entry, parameter: EntryParameter) -> str:
    limits = ", ".join(map(str, entry.limits.get(parameter.name, (-1,) * len(SIZES))))
    return f'{{"{parameter.name}", {_type(entry, parameter.dtype)}, {{{limits}}}}}'


def _type(entry: Entry, dtype: str) -> str:
    """The pair (type variable, dtype) of an argument or scalar."""
    if dtype in entry.types:
        return f"{list(entry.types).index(dtype)}, TS_BOOL"
    return f"-1, {_dtype(dtype)}"


def _dtype(name: str) -> str:
    return f"TS_{DType(name).value.upper()}"


def _axis(entry: Entry, extent: str | int) -> str:
    if isinstance(extent, int):
        return str(-1 - extent)
    return str([*entry.dims, *entry.sizes].index(extent))


def _kernel(entry: Entry) -> str:
    name = entry.kernel
    counts = (
        len(entry.arguments),
        len(entry.parameters),
        len(entry.dims),
        len(entry.types),
        len(overloads(entry)),
        len(entry.inputs),
        len(entry.sizes),
        len(entry.constraints),
        len(entry.products),
        len(entry.named),
    )
    tables = (
        *("arguments", "parameters", "dims", "least", "sizes", "constraints", "products"),
        "type_variables",
        "overloads",
    )
    loop_dim = -1 if entry.loop_dim is None else entry.dims.index(entry.loop_dim)
    return (
        f'{{"{name}", {", ".join(map(str, counts))}, '
        f"{', '.join(f'{name}_{table}' for table in tables)}, {loop_dim}, "
        f"{str(entry.has_axis).lower()}, {entry.largest}}}"
    )
