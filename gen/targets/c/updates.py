"""Stores, inits and updates of one instance as C.

Input: a statement in the loops' variables. Output: C lines. A product that a sum takes is added by
a fused multiply-add, as in vector code, unless the kernel has none.
"""

from collections.abc import Sequence
from dataclasses import replace

from ...ir import nodes as ir
from ...ir.index.facts import Facts
from ...ir.types import DType
from ...ir.walk import substitute
from .expr import Scalars, beats, c_type, combined, identity, suffix, unwrapped


def scalar(
    body: ir.Store | ir.Init | ir.Update, dtypes: tuple[DType, ...], code: Scalars
) -> list[str]:
    """One instance. dtypes: the targets' types."""

    def place(target: ir.Destination) -> str:
        return code.element(target.buffer, target.indices, code.facts)

    match body:
        case ir.Store(target, value):
            return [f"{place(target)} = {unwrapped(code.value(value))};"]
        case ir.Init(combiner, targets):
            return [
                f"{place(t)} = {identity(combiner, d, k, code.words)};"
                for k, (t, d) in enumerate(zip(targets, dtypes, strict=True))
            ]
        case ir.Update(ir.Combiner.ARGMIN | ir.Combiner.ARGMAX as combiner, targets, values):
            new = [unwrapped(code.value(v)) for v in values]
            return pair(combiner, [place(t) for t in targets], new, dtypes)
        case ir.Update(ir.DefinedCombiner() as combiner, targets, values):
            new = [unwrapped(code.value(v)) for v in values]
            return defined(combiner, [place(t) for t in targets], new, code)
        case ir.Update(ir.Combiner() as combiner, (target,), (value,)):
            return [_update(combiner, place(target), value, dtypes[0], code)]
        case _:
            raise AssertionError(f"{body} has one target")


def _update(combiner: ir.Combiner, place: str, value: ir.Expr, dtype: DType, code: Scalars) -> str:
    match value:
        case ir.Binary(ir.BinaryOp.MUL, a, b) if (
            code.fuses and combiner is ir.Combiner.SUM and not dtype.is_integer
        ):
            x, y = unwrapped(code.value(a)), unwrapped(code.value(b))
            return f"{place} = ts_fma_{suffix(dtype)}_s({x}, {y}, {place});"
        case _:
            return f"{place} = {combined(combiner, dtype, place, code.value(value))};"


def pair(
    combiner: ir.Combiner, places: list[str], new: list[str], dtypes: tuple[DType, ...]
) -> list[str]:
    return [
        "{",
        f"    const {c_type(dtypes[0])} value = {new[0]}, best = {places[0]};",
        f"    const {c_type(dtypes[1])} at = {new[1]}, best_at = {places[1]};",
        f"    if ({beats(combiner, ('best', 'best_at'), ('value', 'at'))}) {{",
        f"        {places[0]} = value;",
        f"        {places[1]} = at;",
        "    }",
        "}",
    ]


# ---------------------------------------------------------------- combiners that a spec defines

TUPLES = {"a": "old", "b": "new", "c": "both"}  # the combiner's names of them, and the code's


def combined_by(combiner: ir.DefinedCombiner, at: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
    """What the parts become, over elements in memory: these may be integers of any size, where
    variables are taken for indices.
    """
    variables = (v for owner in TUPLES for v in combiner.variables(owner))
    elements = {v.name: ir.Load(v.name, at, v.dtype) for v in variables}
    return tuple(substitute(expr, elements) for expr in combiner.combined)


def defined(
    combiner: ir.DefinedCombiner, places: Sequence[str], new: Sequence[str], code: Scalars
) -> list[str]:
    """One tuple combined into places. new: C text of its values."""
    names = {
        v.name: f"{text}{k}"
        for owner, text in TUPLES.items()
        for k, v in enumerate(combiner.variables(owner))
    }

    def element(buffer: str, indices: tuple[ir.Expr, ...], facts: Facts) -> str:
        return names[buffer]

    named = replace(code, element=element)
    lines = ["{"]
    for k, (place, value) in enumerate(zip(places, new, strict=True)):
        lines.append(f"    const {c_type(combiner.dtypes[k])} old{k} = {place}, new{k} = {value};")
    for k, expr in enumerate(combined_by(combiner, ())):
        lines.append(f"    const {c_type(combiner.dtypes[k])} both{k} = {named.value(expr)};")
    lines += [f"    {place} = both{k};" for k, place in enumerate(places)]
    return [*lines, "}"]
