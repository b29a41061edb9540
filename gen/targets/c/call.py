"""What a kernel's function takes from its call (`ts_call`), as C."""

from collections.abc import Callable, Collection, Mapping, Sequence

from ...ir.algebra import conjunction
from ...ir.index.facts import Facts
from ...ir.nodes import Buffer, Expr, Intent, Kernel, Var
from ...ir.types import DType
from ...ir.walk import externals, variables
from .expr import c_type, const, join, suffix
from .lines import indented
from .names import CNames, c_names
from .views import ArgumentView, View, plain_scalars


def sizes(
    kernel: Kernel, names: Mapping[str, str]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The declarations of a kernel's dims and scalars, by the C name, and their C types and names.
    names: C names of variables.
    """
    declared: list[tuple[str, str]] = []
    scope: list[tuple[str, str]] = []
    for k, dim in enumerate(kernel.dims):
        declared.append((names[dim], f"const int64_t {names[dim]} = call->dims[{k}];"))
        scope.append(("int64_t", names[dim]))
    for k, scalar in enumerate(kernel.scalars):
        declared.append((names[scalar.name], _scalar(k, scalar, names[scalar.name])))
        scope.append((c_type(scalar.dtype), names[scalar.name]))
    return declared, scope


def _scalar(position: int, scalar: Var, name: str) -> str:
    ctype = c_type(scalar.dtype)
    if scalar.dtype.is_complex:
        part, s = c_type(scalar.dtype.real), suffix(scalar.dtype.real)
        given = ", ".join(f"({part})call->scalars[{position}].parts[{k}]" for k in (0, 1))
        return f"const {ctype} {name} = ts_complex_{s}_s({given});"
    member = "f64" if scalar.dtype.is_float else "i64"
    value = f"call->scalars[{position}].{member}"
    if scalar.dtype is DType.BOOL:
        value = f"{value} != 0"
    elif scalar.dtype not in (DType.FLOAT64, DType.INT64):
        value = f"({ctype}){value}"
    return f"const {join(ctype, name)} = {value};"


def arguments(
    kernel: Kernel,
    names: CNames,
    walked: Callable[[Buffer], frozenset[int]],
    either: Collection[str],
    shared: Collection[str],
) -> tuple[list[tuple[str, str, str]], dict[str, View]]:
    """The declarations of a kernel's arrays and their strides (C type, name, line), and the views.

    walked: the axes of an array that have stride 1. either: the arrays whose last axis has it where
        the constant `unit` of the function says so. shared: those that may be one array with
        another.
    """
    declared: list[tuple[str, str, str]] = []
    views: dict[str, View] = {}
    axis = 0
    for k, p in enumerate(kernel.parameters):
        buffer, name = p.buffer, names.arrays[p.buffer.name]
        strides = tuple(names.strides[buffer.name])
        views[buffer.name] = ArgumentView(name, buffer, strides, walked(buffer))
        ctype = f"{'const ' if p.intent is Intent.IN else ''}{c_type(buffer.dtype)} *"
        ctype += "" if buffer.name in shared else "restrict"
        declared.append((ctype, name, f"{const(ctype)} {name} = call->data[{k}];"))
        for i, stride in enumerate(strides):
            value = f"call->strides[{axis + i}]"
            if buffer.name in either and i == len(strides) - 1:
                value = f"unit ? 1 : {value}"
            declared.append(("int64_t", stride, f"const int64_t {stride} = {value};"))
        axis += len(strides)
    return declared, views


def when_function(
    symbol: str, condition: Expr | None, kernel: Kernel, tests: Sequence[str] = ()
) -> str:
    """The function that tells whether a variant may be chosen: where the condition and all `tests`,
    which are C, hold.
    """
    tests = [*tests]
    names = c_names(kernel, externals(kernel)).variables
    scalars = plain_scalars(names, {}, Facts((), ()))
    used: set[str] = set()
    if condition is not None:
        tests.append(scalars.condition(conjunction(condition)))
        used = {names[name] for name in variables(condition)}
    lines = [line for name, line in sizes(kernel, names)[0] if name in used]
    return "\n".join(
        [
            f"static bool {symbol}(const ts_call *call)",
            "{",
            *indented([*(lines or ["(void)call;"]), f"return {' && '.join(tests)};"]),
            "}",
        ]
    )
