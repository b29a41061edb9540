"""The kernels' descriptors as C: `ts_kernels.c`, static tables in the types of ts_engine.h.

Input: manifest entries. Output: C text; entry k of `ts_kernels` is entry k of the input.
"""

from collections.abc import Sequence
from itertools import product

from ..ir.nodes import Intent
from ..ir.types import DType
from .manifest import LEVELS, Argument, Entry, Parameter

_INTENT = {Intent.IN: "TS_IN", Intent.OUT: "TS_OUT", Intent.INOUT: "TS_INOUT"}


def table_symbol(kernel: str, dtypes: Sequence[str], level: str) -> str:
    """The symbol of a kernel's table of variants: `ts_softmax_float32_v4`."""
    return "_".join(["ts", kernel, *dtypes, level])


def descriptors(entries: Sequence[Entry]) -> str:
    """`ts_kernels.c` for the entries, in their order."""
    levels = sorted({level for entry in entries for level in entry.levels}, key=LEVELS.index)
    mask = sum(1 << LEVELS.index(level) for level in levels)
    tables = "\n".join(_tables(entry) for entry in entries)
    kernels = "".join(f"    {_kernel(entry)},\n" for entry in entries)
    return (
        "/* Generated: the extension's kernels, for the calling engine. */\n"
        '#include "ts_engine.h"\n\n'
        f"{tables}\n"
        f"const ts_kernel ts_kernels[] = {{\n{kernels}}};\n\n"
        f"const uint32_t ts_levels_built = {mask};\n"
    )


def overloads(entry: Entry) -> list[tuple[str, ...]]:
    """All choices of dtypes: the type variables' values in order."""
    return list(product(*entry.types.values()))


def _tables(entry: Entry) -> str:
    name = entry.kernel
    lines = [
        f"extern const ts_variant {table_symbol(name, dtypes, level)}[];"
        for dtypes in overloads(entry)
        for level in entry.levels
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
        _array(
            f"static const char *const {name}_type_variables[]",
            [f'"{t}"' for t in entry.types] or ["0"],
        ),
    ]
    for number, dtypes in enumerate(overloads(entry)):
        values = ", ".join(_dtype(t) for t in dtypes) or "0"
        lines.append(f"static const ts_dtype {name}_types_{number}[] = {{{values}}};")
    lines.append(_array(f"static const ts_overload {name}_overloads[]", _overloads(entry)))
    return "\n".join(lines) + "\n"


def _array(declaration: str, items: Sequence[str]) -> str:
    return f"{declaration} = {{\n" + "".join(f"    {item},\n" for item in items) + "};"


def _overloads(entry: Entry) -> list[str]:
    items = []
    for number, dtypes in enumerate(overloads(entry)):
        variants = ", ".join(
            f"[TS_{level.upper()}] = {table_symbol(entry.kernel, dtypes, level)}"
            for level in entry.levels
        )
        items.append(f"{{{entry.kernel}_types_{number}, {{{variants}}}}}")
    return items


def _arguments(entry: Entry) -> list[str]:
    return [_argument(entry, argument) for argument in entry.arguments]


def _argument(entry: Entry, argument: Argument) -> str:
    names = [a.name for a in entry.arguments]
    in_place = sum(1 << names.index(name) for name in argument.in_place)
    return (
        f'{{"{argument.name}", {_INTENT[argument.intent]}, {_type(entry, argument.dtype)}, '
        f"{str(argument.looped).lower()}, {len(argument.core)}, "
        f"{entry.kernel}_axes_{names.index(argument.name)}, {in_place}}}"
    )


def _parameter(entry: Entry, parameter: Parameter) -> str:
    return f'{{"{parameter.name}", {_type(entry, parameter.dtype)}}}'


def _type(entry: Entry, dtype: str) -> str:
    """The pair (type variable, dtype) of an argument or scalar."""
    if dtype in entry.types:
        return f"{list(entry.types).index(dtype)}, TS_BOOL"
    return f"-1, {_dtype(dtype)}"


def _dtype(name: str) -> str:
    return f"TS_{DType(name).value.upper()}"


def _axis(entry: Entry, extent: str | int) -> str:
    return str(-1 - extent) if isinstance(extent, int) else str(entry.dims.index(extent))


def _kernel(entry: Entry) -> str:
    name = entry.kernel
    counts = (
        len(entry.arguments),
        len(entry.parameters),
        len(entry.dims),
        len(entry.types),
        len(overloads(entry)),
        len(entry.inputs),
    )
    tables = ("arguments", "parameters", "dims", "least", "type_variables", "overloads")
    loop_dim = -1 if entry.loop_dim is None else entry.dims.index(entry.loop_dim)
    return (
        f'{{"{name}", {", ".join(map(str, counts))}, '
        f"{', '.join(f'{name}_{table}' for table in tables)}, {loop_dim}, "
        f"{str(entry.has_axis).lower()}}}"
    )
