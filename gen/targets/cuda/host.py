"""The host side of a variant: the tree outside of its launches, as C.

Input: a finished tree. Output: the C function that the table of variants has, which launches what
the device text defines; and that text. Widths of indices, memory for temporaries and the parts of
large grids are decided here, from the call alone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never, final

from ...errors import TilesmithError
from ...ir.index.facts import of_kernel
from ...ir.nodes import (
    Allocate,
    Barrier,
    Block,
    Buffer,
    Delinearize,
    Expr,
    If,
    Kernel,
    Leave,
    Loop,
    LoopKind,
    Scope,
    Seq,
    Stmt,
    Transfer,
)
from ...ir.walk import buffers, externals, loads, loops, variables
from ..c import call
from ..c.expr import C11, Scalars, c_type
from ..c.finishing import dtypes_of, fuses
from ..c.lines import indented
from ..c.marks import Owner, marked
from ..c.names import CNames, c_names
from ..c.statements import counted, delinearized, under
from ..c.views import ArgumentView, Dense, View, plain_scalars
from .launch import BLOCKS, THREADS, LaunchText, launch_of
from .statements import DeviceCode, LaunchNeeds
from .width import IndexReach, reach
from .words import is_taken


@final
@dataclass(slots=True)
class DeviceModule:
    """The device text of a file so far: functions, and the number of barriers in them."""

    functions: list[str] = field(default_factory=list)
    barriers: int = 0


@final
@dataclass(slots=True)
class _Made:
    """The launches of a variant so far. symbol: what their names begin with."""

    symbol: str
    launches: list[LaunchText] = field(default_factory=list)


@final
@dataclass(frozen=True, slots=True)
class _Host:
    """What stands around a statement. around: the variables of the loops. code: for launches."""

    kernel: Kernel
    code: DeviceCode
    made: _Made
    around: tuple[str, ...] = ()

    @property
    def scalars(self) -> Scalars:
        """Of no array: the host does not read a GPU's memory."""
        return plain_scalars(self.code.names.variables, {}, self.code.facts, C11)

    def inside(self, stmt: Stmt, *bound: str) -> "_Host":
        return replace(self, code=self.code.inside(stmt), around=(*self.around, *bound))


def function(symbol: str, launched: str, kernel: Kernel, module: DeviceModule) -> str:
    """The C of a variant. symbol: its name; launched: what the names of its launches begin with.
    The device text is added to the module.

    Raises TilesmithError where a launch, a type or an operation has no form on a GPU.
    """
    names, everywhere = _names(kernel), dtypes_of(kernel)
    declared = call.sizes(kernel, names.variables)[0]
    shared = [p.buffer.name for p in kernel.parameters]  # none is declared `restrict`
    taken, views = call.arguments(kernel, names, lambda _: frozenset(), (), shared)
    state = LaunchNeeds(module.barriers)
    outside = tuple(b for b in buffers(kernel).values() if b.scope is Scope.DEVICE)
    for b in outside:
        views[b.name] = Dense(names.arrays[b.name], b)
    code = DeviceCode(names, everywhere, views, of_kernel(kernel), state, fuses(kernel))
    host = _Host(kernel, code, _Made(launched))
    body = _statement(kernel.body, host)
    module.barriers = state.barriers
    module.functions += [launch.text for launch in host.made.launches]
    lines = [line for _, line in declared] + [line for *_, line in taken]
    lines += [f"const int64_t {names.variables[p.name]} = 0;" for p in kernel.phases]
    lines += _memory(outside, kernel, host)
    if host.made.launches:
        lines += [_wide(kernel, names, views, host), "int64_t first[3] = {0};"]
        lines.append("int status = TS_OK;")
    text = [
        f"static int {symbol}(const ts_call *call)",
        "{",
        *indented([*_used(lines, body), *body]),
    ]
    return "\n".join([*text, "    return TS_OK;", "}"])


def _names(kernel: Kernel) -> CNames:
    """The names in a kernel; places on axes are named as CUDA does."""
    names = c_names(kernel, externals(kernel), is_taken)
    axes = {n.var: n.kind.value.replace(".", "_") for n in loops(kernel.body) if n.kind.is_bound}
    return replace(names, variables={**names.variables, **axes})


def _used(lines: Sequence[str], body: Sequence[str]) -> list[str]:
    """The declarations whose names the body, or another of them, has."""
    used = set(re.findall(r"\w+", "\n".join(body)))
    kept: list[str] = []
    for line in reversed(lines):
        match = re.search(r"(\w+)(\[\w*\])? = ", line)
        if match is None or match[1] in used:
            kept.insert(0, line)
            used |= set(re.findall(r"\w+", line))
    return kept if "call" in used else [*kept, "(void)call;"]


# ---------------------------------------------------------------- width and memory


def _wide(kernel: Kernel, names: CNames, views: Mapping[str, View], host: _Host) -> str:
    """The declaration of whether indices need 64 bits."""
    most = reach(kernel)
    if most is None:
        return "const bool wide = true;"
    tests = [f"{_polynomial(most, names)} <= TS_NARROW"]
    for view in views.values():
        if isinstance(view, ArgumentView) and view.strides:
            extents = (host.scalars.index(e) for e in view.buffer.shape)
            spans = (
                f"ts_span({extent}, {stride})"
                for extent, stride in zip(extents, view.strides, strict=True)
            )
            tests.append(f"{' + '.join(spans)} <= TS_NARROW")
    return f"const bool wide = !({' && '.join(tests)});"


def _polynomial(most: IndexReach, names: CNames) -> str:
    """C of a polynomial, in float64: its terms are not negative, so no rounding is more than some
    units in the last place, which TS_NARROW leaves room for.
    """
    terms = []
    for monomial, factor in sorted(most.terms.items()):
        factors = [f"ts_far({names.variables[name]})" for name in monomial]
        number = [repr(float(factor))] if factor != 1 or not monomial else []
        terms.append(" * ".join([*number, *factors]))
    return " + ".join(terms)


def _memory(outside: Sequence[Buffer], kernel: Kernel, host: _Host) -> list[str]:
    """Declarations of temporaries in the GPU's memory, one after another in one piece."""
    if not outside:
        return []
    fixed = {*kernel.dims, *(s.name for s in kernel.scalars)}
    lines, ends = [], []
    for b in outside:
        if not all(variables(e) <= fixed for e in b.shape):
            raise TilesmithError(
                f"the size of '{b.name}', in the GPU's memory, is not known at the call", b.span
            )
        name = host.code.names.arrays[b.name]
        size = f"sizeof({c_type(b.dtype)})"
        for extent in reversed(b.shape):
            size = f"ts_bytes({host.scalars.index(extent)}, {size})"
        lines.append(f"const size_t {name}_bytes = ts_piece({size});")
        ends.append(f"{name}_bytes")
    total = "0"
    for end in ends:
        total = end if total == "0" else f"ts_pieces({total}, {end})"
    lines.append(f"char *const workspace = call->device->reserve(call->device, {total});")
    lines.append("if (!workspace) return TS_NO_MEMORY;")
    before = ""
    for b, end in zip(outside, ends, strict=True):
        name, ctype = host.code.names.arrays[b.name], c_type(b.dtype)
        lines.append(f"{ctype} *const {name} = ({ctype} *)(workspace{before});")
        before += f" + {end}"
    return lines


# ---------------------------------------------------------------- statements


def _statement(stmt: Stmt, host: _Host) -> list[str]:
    match stmt:
        case Loop() if stmt.kind.is_bound:
            return marked(Owner.LOOP, stmt.var, _launch(stmt, host))
        case Loop():
            inner = host.inside(stmt, stmt.var)
            lines = counted(stmt, inner.scalars, host.code.names, _statement(stmt.body, inner))
            return marked(Owner.LOOP, stmt.var, lines)
        case Delinearize():
            inner = host.inside(stmt, *stmt.vars)
            return delinearized(stmt, host.scalars, host.code.names, _statement(stmt.body, inner))
        case If(condition, body):
            return under(host.scalars.condition(condition), _statement(body, host.inside(stmt)))
        case Allocate(_, body):
            return _statement(body, host)
        case Seq(body_):
            return [line for part in body_ for line in _statement(part, host)]
        case Barrier():
            return []  # which orders nothing outside of launches
        case Leave(condition):
            return _leave(condition, host)
        case Block() | Transfer():
            raise AssertionError("lowering lets none of these through")
        case _:
            assert_never(stmt)


def _leave(condition: Expr, host: _Host) -> list[str]:
    """The end of the loop around it, if the device can say that the flag is off."""
    (flag,) = loads(condition)
    code = host.code
    element = plain_scalars(code.names.variables, code.views, code.facts, C11).element
    asked = (
        f"call->device->is_zero(call->device, &{element(flag.buffer, flag.indices, code.facts)})"
    )
    return under(f"call->device->is_zero && {asked}", ["break;"])


def _launch(loop: Loop, host: _Host) -> list[str]:
    made = host.made
    symbol = f"{made.symbol}_launch{len(made.launches)}"
    launch = launch_of(symbol, loop, host.kernel, host.code, host.around)
    made.launches.append(launch)
    grid = ", ".join(_extents(launch, BLOCKS, host.scalars))
    block = ", ".join(_extents(launch, THREADS, host.scalars))
    values = ", ".join(f"(void *)&{p.value}" for p in launch.passed)
    lines = [
        f"const int64_t grid[3] = {{{grid}}};",
        f"const uint32_t block[3] = {{{block}}};",
        f"void *parameters[] = {{{values}}};",
        f'status = ts_launch(call, wide ? "{symbol}_i64" : "{symbol}_i32",',
        "    grid, block, first, parameters);",
        "if (status != TS_OK) return status;",
    ]
    return ["{", *indented(lines), "}"]


def _extents(launch: LaunchText, kinds: Sequence[LoopKind], scalars: Scalars) -> Iterator[str]:
    for kind in kinds:
        extent: Expr | None = launch.axes.get(kind)
        yield "1" if extent is None else scalars.index(extent)
