"""A launch as a function of device text, and what the host side has to give it.

Input: a launch of a finished tree, and the names of its kernel. Output: the text of its function,
once for any width of indices, and of its two entry points; its symbol and its parameters.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import final

from ...ir.index.linear import constant
from ...ir.launch import Axes, axes
from ...ir.nodes import Buffer, Intent, Kernel, Loop, LoopKind, Scope
from ...ir.types import INDEX, DType
from ...ir.walk import loops
from ..c.expr import c_type, join
from ..c.lines import indented
from .statements import DeviceCode, LaunchNeeds, first, in_parts, statement
from .words import INDEX_TYPE

BLOCKS = (LoopKind.BLOCK_X, LoopKind.BLOCK_Y, LoopKind.BLOCK_Z)
THREADS = (LoopKind.THREAD_X, LoopKind.THREAD_Y, LoopKind.THREAD_Z)
WIDTHS = {"i32": "int32_t", "i64": "int64_t"}
"""The types that indices are counted in, by the suffix of entry points."""


@final
@dataclass(frozen=True, slots=True)
class LaunchParameter:
    """A parameter of a launch. inside: its type in the function; outside: in the entry points,
    where an index is of their width; value: C of the host side, of something that has an address.
    """

    name: str
    inside: str
    outside: str
    value: str


@final
@dataclass(frozen=True, slots=True)
class LaunchText:
    """symbol: what the entry points' names begin with. text: of the device side."""

    symbol: str
    axes: Axes
    passed: tuple[LaunchParameter, ...]
    text: str


def launch_of(
    symbol: str, loop: Loop, kernel: Kernel, code: DeviceCode, around: tuple[str, ...]
) -> LaunchText:
    """code: at the launch. around: the variables of the host's loops around it."""
    own = axes(loop)
    count = prod(constant(own[kind]) or 0 for kind in THREADS if kind in own)
    launched = LaunchNeeds(code.launched.barriers)
    body = statement(loop, replace(code, launched=launched))
    lines = _used([*launched.shared, *body])
    code.launched.barriers = launched.barriers
    used = set(re.findall(r"(?<![\w.])\w+", "\n".join(lines)))  # what is no member
    passed = tuple(p for p in _parameters(loop, kernel, code, around) if p.name in used)
    return LaunchText(symbol, own, passed, _text(symbol, count, passed, lines))


_DECLARED = re.compile(rf" *const {INDEX_TYPE} (\w+) = .*;( /\*.*\*/)?")


def _used(lines: list[str]) -> list[str]:
    """The lines without declarations of what no other line names, of which compilers warn."""
    while True:
        words = Counter(word for line in lines for word in re.findall(r"(?<![\w.])\w+", line))
        kept = [s for s in lines if not ((m := _DECLARED.fullmatch(s)) and words[m[1]] == 1)]
        if kept == lines:
            return lines
        lines = kept


# ---------------------------------------------------------------- parameters


def _parameters(
    loop: Loop, kernel: Kernel, code: DeviceCode, around: tuple[str, ...]
) -> Iterator[LaunchParameter]:
    """All that a launch may use: sizes, places, scalars, arrays with their strides, temporaries."""
    names = code.names
    for name in (*kernel.dims, *around):
        yield _index(names.variables[name])
    for kind in BLOCKS:
        if any(axis.kind is kind and in_parts(axis) for axis in loops(loop)):
            yield replace(_index(first(kind)), value=f"first[{'xyz'.index(kind.value[-1])}]")
    for phase in kernel.phases:
        yield _index(names.variables[phase.name])
    for scalar in kernel.scalars:
        name = names.variables[scalar.name]
        if scalar.dtype is INDEX:
            yield _index(name)
        else:
            ctype = c_type(scalar.dtype)
            yield LaunchParameter(name, f"const {ctype}", f"const {ctype}", name)
    for p in kernel.parameters:
        yield _array(names.arrays[p.buffer.name], p.buffer.dtype, p.intent is Intent.IN)
        yield from map(_index, names.strides[p.buffer.name])
    for buffer in device_buffers(code):
        yield _array(names.arrays[buffer.name], buffer.dtype, False)


def device_buffers(code: DeviceCode) -> Iterator[Buffer]:
    """The temporaries outside of launches."""
    return (v.buffer for v in code.views.values() if v.buffer.scope is Scope.DEVICE)


def _index(name: str) -> LaunchParameter:
    return LaunchParameter(name, f"const {INDEX_TYPE}", f"const {INDEX_TYPE}", name)


def _array(name: str, dtype: DType, read_only: bool) -> LaunchParameter:
    ctype = f"const {c_type(dtype)}" if read_only else c_type(dtype)
    return LaunchParameter(name, f"ts_global<{ctype}>", f"{ctype} *", name)


# ---------------------------------------------------------------- text


def _text(symbol: str, threads: int, passed: tuple[LaunchParameter, ...], body: list[str]) -> str:
    """The function, and its entry points."""
    given = ", ".join(join(p.inside, p.name) for p in passed)
    parts = [
        "\n".join(
            [
                f"template <typename {INDEX_TYPE}>",
                f"TS_DEVICE void {symbol}({given})",
                "{",
                *indented(body),
                "}",
            ]
        )
    ]
    handed = ", ".join(p.name for p in passed)
    for suffix, ctype in WIDTHS.items():
        taken = ", ".join(join(p.outside.replace(INDEX_TYPE, ctype), p.name) for p in passed)
        parts.append(
            "\n".join(
                [
                    f'extern "C" __global__ void __launch_bounds__({threads})',
                    f"{symbol}_{suffix}({taken})",
                    "{",
                    f"    {symbol}<{ctype}>({handed});",
                    "}",
                ]
            )
        )
    return "\n\n".join(parts)
