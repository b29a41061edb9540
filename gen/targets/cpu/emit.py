"""Finished kernels as C11.

Input: the finished variants of one kernel, dtype choice and ISA level. Output: the text of their
functions and of the table that `ts_abi.h` describes. Nothing depends on anything but the input.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from ...errors import located
from ...ir.index.facts import of_kernel
from ...ir.index.linear import linear
from ...ir.nodes import (
    Buffer,
    Destination,
    Intent,
    Kernel,
    Load,
    LoopKind,
    Parameter,
    Store,
)
from ...ir.walk import blocks, externals, loads, loops, targets, variables
from ...lower.finish import Finished
from ..c.call import arguments, sizes, when_function
from ..c.file import emit_file, variants_table
from ..c.finishing import dtypes_of
from ..c.layout import wrapped
from ..c.lines import indented
from ..c.marks import Owner, marked, unmarked
from ..c.names import c_names, check
from .chooser import choices
from .context import Context, Module, all_of_function
from .levels import Level, Processor
from .passes import tensor
from .passes.unroll import has_vector_form, in_lanes
from .statements import statement
from .streams.prefetch import check_reads
from .streams.streams import check_all, fenced


def source(
    kernel: str,
    variants: Mapping[str, Sequence[Finished]],
    level: Level,
    *,
    packed: Collection[str],
    keep_marks: bool = False,
) -> str:
    """The C file of a kernel on a level. variants: by the suffix of their dtypes; the rest is as
    `emit_kernel` has it.
    """
    parts = [
        emit_kernel(kernel, suffix_, chosen, level, packed=packed, keep_marks=keep_marks)
        for suffix_, chosen in variants.items()
    ]
    trees = (variant.kernel for chosen in variants.values() for variant in chosen)
    called = tuple(dict.fromkeys(e for tree in trees for e in externals(tree)))
    return emit_file(kernel, parts, level, called)


def emit_kernel(
    name: str,
    dtypes: str,
    variants: Sequence[Finished],
    level: Level,
    *,
    packed: Collection[str],
    keep_marks: bool = False,
) -> str:
    """The functions and the table of one kernel for one choice of dtypes.

    dtypes: the choice, as in symbols (`float32`). packed: the arrays that the caller packs where
    they need a unit stride and have none; for others the code is there for unit and any strides.
    keep_marks: with the lines that `marks.owned` reads.
    Raises TilesmithError where a type or operation has no C form.
    """
    table = f"ts_{name}_{dtypes}_{level.value}"
    texts: list[str] = []
    rows: list[str] = []
    coded = [
        (variant, variant.kernel, machine, "_".join((variant.name, *sorted(machine.features))))
        for variant in variants
        for machine in tensor.machines(variant.kernel, Processor(level))
    ]
    taken = {table, *(n for *_, own in coded for n in all_of_function(f"{table}_{own}"))}
    for variant, kernel, machine, own in coded:
        symbol, when = f"{table}_{own}", "NULL"
        first, last = (variant is variants[k] for k in (0, -1))
        strides = _strides(kernel, frozenset(packed), first, last)
        axes = (*_numbers(kernel, strides.unit), *_numbers(kernel, strides.columns, first=True))
        mask = sum(1 << axis for axis in axes)
        with located(variant.span or kernel.span):
            functions = _variant(symbol, kernel, strides, variant.shared, machine, taken)
        texts += ("\n".join(marked(Owner.VARIANT, variant.name, [f])) for f in functions)
        if variant.when is not None or machine.features:
            when = f"{symbol}_when"
            tests = [f"ts_cpu_has_{feature}()" for feature in sorted(machine.features)]
            texts.append(when_function(when, variant.when, kernel, tests))
        rows.append(f'    {{{symbol}, {when}, UINT64_C({mask}), "{own}"}},')
    text = "\n\n".join([*texts, variants_table(table, rows)])
    text = text if keep_marks else unmarked(text)
    return "\n".join(part for line in text.splitlines() for part in wrapped(line)) + "\n"


# ---------------------------------------------------------------- unit strides


@final
@dataclass(frozen=True, slots=True)
class _Strides:
    """The arrays that vector code walks an element a lane. unit: along the last axis, where they
    always come with stride 1; either: along that, with any stride; columns: along the first axis
    alone, where a variant asks for stride 1 and leaves other arrays to another: those that are
    packed, for their last axis, to the first variant, and those that are not, to the last.
    """

    unit: frozenset[str]
    either: frozenset[str]
    columns: frozenset[str]

    def walked(self, buffer: Buffer) -> frozenset[int]:
        """The axes that have stride 1."""
        last = {len(buffer.shape) - 1} if buffer.name in self.unit else set[int]()
        return frozenset(last | ({0} if buffer.name in self.columns else set[int]()))


def _strides(kernel: Kernel, packed: frozenset[str], first: bool, last: bool) -> _Strides:
    """first, last: whether the variant is the first, or the last, of those that are tried.

    Where nothing is computed, no variant changes a result: all but the last ask for stride 1.
    """
    walked = _walked(kernel)
    rows = frozenset(
        p.buffer.name for p in kernel.parameters if len(p.buffer.shape) - 1 in walked[p]
    )
    inputs = (p for p in kernel.parameters if p.intent is Intent.IN and len(p.buffer.shape) > 1)
    columns = frozenset(p.buffer.name for p in inputs if walked[p] == {0})
    asked = (frozenset() if first else columns & packed) | (
        frozenset() if last else columns - packed
    )
    unit = rows if _moves(kernel) and not last else rows & packed
    return _Strides(unit, rows - unit, asked)


def _moves(kernel: Kernel) -> bool:
    """Whether the kernel only moves elements."""
    return all(
        isinstance(b.body, Store) and isinstance(b.body.value, Load) for b in blocks(kernel.body)
    )


def _walked(kernel: Kernel) -> dict[Parameter, set[int]]:
    """The axes of each argument that vector code walks an element a lane."""
    found: dict[str, set[int]] = {p.buffer.name: set() for p in kernel.parameters}
    dtypes = dtypes_of(kernel)
    for name, axis in tensor.walked(kernel):
        if name in found:
            found[name].add(axis)
    for loop in loops(kernel.body):
        if loop.kind is not LoopKind.VECTORIZED or not in_lanes(loop.body, loop.var):
            continue
        for block in blocks(loop.body):
            if not has_vector_form(block, loop.var, dtypes):
                continue
            accesses: list[Load | Destination] = [*loads(block.body), *targets(block.body)]
            for a in accesses:
                moving = [k for k, i in enumerate(a.indices) if loop.var in variables(i)]
                steps = [linear(a.indices[k]).coefficient(loop.var) for k in moving]
                if a.buffer in found and steps == [1]:
                    found[a.buffer].add(moving[0])
    return {p: found[p.buffer.name] for p in kernel.parameters}


def _numbers(kernel: Kernel, names: frozenset[str], *, first: bool = False) -> list[int]:
    """The flattened numbers of the arguments' last axes, or of their first ones."""
    numbers, start = [], 0
    for p in kernel.parameters:
        rank = len(p.buffer.shape)
        if p.buffer.name in names:
            numbers.append(start if first else start + rank - 1)
        start += rank
    return numbers


# ---------------------------------------------------------------- functions


def _variant(
    symbol: str,
    kernel: Kernel,
    unit: _Strides,
    shared: frozenset[str],
    target: Processor,
    taken: set[str],
) -> list[str]:
    """taken: the names of functions in the file; those of this variant's are added."""
    module = Module(taken=taken)
    context, declared = _context(symbol, kernel, unit, shared, target, module)
    body = statement(kernel.body, context)
    check_all(kernel.body, context)
    check_reads(kernel.body)
    body += [*fenced(body), "return TS_OK;"]
    used = set(re.findall(r"\w+", "\n".join(body)))
    kept: list[str] = []
    for name, line in reversed(declared):
        if name in used:
            kept.insert(0, line)
            used |= set(re.findall(r"\w+", line))
    if not any("call" in line for line in [*kept, *body]):
        kept.append("(void)call;")
    head = f"static int {symbol}(const ts_call *call)"
    compiled_with = tensor.compiled_with(target)
    if unit.either:
        head = f"TS_INLINE int {symbol}_code(const ts_call *call, const bool unit)"
    texts = [
        *module.functions,
        "\n".join([compiled_with + head, "{", *indented([*kept, *body]), "}"]),
    ]
    for text in texts:
        check(text, context.names)
    if unit.either:
        texts.append(compiled_with + _chooser(symbol, kernel, unit.either))
    return texts


def _chooser(symbol: str, kernel: Kernel, either: frozenset[str]) -> str:
    tests = " && ".join(f"call->strides[{k}] == 1" for k in _numbers(kernel, either))
    return "\n".join(
        [
            f"static int {symbol}(const ts_call *call)",
            "{",
            f"    const bool unit = {tests};",
            f"    return unit ? {symbol}_code(call, true) : {symbol}_code(call, false);",
            "}",
        ]
    )


def _context(
    symbol: str,
    kernel: Kernel,
    unit: _Strides,
    shared: frozenset[str],
    target: Processor,
    module: Module,
) -> tuple[Context, list[tuple[str, str]]]:
    """The context at the top of a variant's function, and its declarations by the name declared.

    shared: the arguments that a call may give as one array.
    """
    names = c_names(kernel, externals(kernel))
    declared, scope = sizes(kernel, names.variables)
    taken, views = arguments(kernel, names, unit.walked, unit.either, shared)
    for ctype, name, line in (*taken, *choices(kernel, names)):
        scope.append((ctype, name))
        declared.append((name, line))
    context = Context(
        symbol,
        module,
        target,
        frozenset(names.strides[name][-1] for name in unit.either),
        names,
        dtypes_of(kernel),
        views,
        of_kernel(kernel),
        tuple(scope),
        aligned=frozenset(p.buffer for p in kernel.phases),
    )
    return context, declared
