"""Finished kernels as C11.

Input: the finished variants of one kernel, dtype choice and ISA level. Output: the text of their
functions and of the table that `ts_abi.h` describes. Nothing depends on anything but the input.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from ...errors import located
from ...ir.index.facts import of_kernel
from ...ir.nodes import Kernel
from ...ir.walk import externals
from ...lower.finish import Finished
from ..c.call import arguments, sizes, when_function
from ..c.file import emit_file, variants_table
from ..c.finishing import dtypes_of, fuses
from ..c.layout import wrapped
from ..c.lines import indented
from ..c.marks import Owner, marked, unmarked
from ..c.names import c_names, check
from .chooser import choices
from .context import Context, Module, all_of_function
from .levels import Level, Processor
from .passes import tensor
from .statements import statement
from .streams.prefetch import check_reads
from .streams.streams import check_all, fenced
from .strides import Strides, numbers, of_unit_stride, of_variant


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
    they need a unit stride and have none (see `strides`). keep_marks: with the lines that
    `marks.owned` reads.
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
    unit = of_unit_stride([variant.kernel for variant in variants], frozenset(packed))
    taken = {table, *(n for *_, own in coded for n in all_of_function(f"{table}_{own}"))}
    for variant, kernel, machine, own in coded:
        symbol, when = f"{table}_{own}", "NULL"
        first, last = (variant is variants[k] for k in (0, -1))
        strides = of_variant(kernel, unit, first, last)
        axes = (*numbers(kernel, strides.unit), *numbers(kernel, strides.columns, first=True))
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


# ---------------------------------------------------------------- functions


def _variant(
    symbol: str,
    kernel: Kernel,
    unit: Strides,
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
    tests = " && ".join(f"call->strides[{k}] == 1" for k in numbers(kernel, either))
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
    unit: Strides,
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
        fuses(kernel),
        aligned=frozenset(p.buffer for p in kernel.phases),
    )
    return context, declared
