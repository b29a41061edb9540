"""Updates by a combiner that a spec defines, as C, of all lanes at once.

Input: an update in the loops' variables. Output: C lines. Both tuples are put into variables, since
what each part becomes may use all of them; the combiner's operands are then these.
"""

from collections.abc import Sequence
from dataclasses import replace

from ...ir.algebra import dtype_of
from ...ir.nodes import DefinedCombiner, Destination, Expr, Var
from ...ir.types import DType
from ...ir.walk import walk
from ..c.expr import c_type, literal, suffix
from ..c.updates import TUPLES, combined_by, defined
from .vectors.expr import Vectors
from .vectors.forms import VECTOR_TYPES, by_lane
from .vectors.prelude import Parts, Prelude

# ---------------------------------------------------------------- all lanes


def has_vector_form(combiner: DefinedCombiner, lane: str) -> bool:
    """Whether all that the combiner computes has one."""
    nodes = (n for e in combined_by(combiner, (Var(lane),)) for n in walk(e) if isinstance(n, Expr))
    values = [n for n in nodes if dtype_of(n) is not DType.BOOL]
    return all(dtype in VECTOR_TYPES for dtype in combiner.dtypes) and not any(
        by_lane(value, lane) for value in values
    )


def vector(
    combiner: DefinedCombiner, old: Sequence[Parts], new: Sequence[Parts], code: Vectors
) -> tuple[list[str], tuple[Parts, ...]]:
    """The lanes of two tuples combined: statements that stand before, and each part's vectors."""
    inner = Prelude()
    named = replace(code, before=inner)

    def name(owner: str, k: int, parts: Parts) -> Parts:
        names = tuple(f"{TUPLES[owner]}{k}_{q}" for q in range(len(parts)))
        ctype = f"ts_{suffix(combiner.dtypes[k])}"
        inner.lines += [f"const {ctype} {n} = {p};" for n, p in zip(names, parts, strict=True)]
        inner.kept[Destination(f"{owner}.{combiner.parts[k]}", (Var(code.lane),))] = names
        return names

    for k, parts in enumerate(zip(old, new, strict=True)):
        name("a", k, parts[0])
        name("b", k, parts[1])
    combined = enumerate(combined_by(combiner, (Var(code.lane),)))
    return inner.lines, tuple(name("c", k, named.parts(expr)) for k, expr in combined)


def tree(
    combiner: DefinedCombiner, places: Sequence[str], values: Sequence[Parts], code: Vectors
) -> list[str]:
    """All lanes combined into one place: the upper half with the lower, by way of memory, until one
    is left. Lanes that are not active hold the identity.
    """
    half = 1 << (code.shape.lanes - 1).bit_length() - 1
    lines, old, new = [], [], []
    for k, (none, parts) in enumerate(zip(combiner.identity, values, strict=True)):
        dtype = none.dtype
        s, n = suffix(dtype), code.shape.native(dtype.lane_bits)
        starts = range(0, len(parts) * n, n)
        lines.append(f"{c_type(dtype)} held{k}[{len(parts) * n + half}];")
        lines += [f"ts_store_{s}(&held{k}[{q}], {p});" for q, p in zip(starts, parts, strict=True)]
        lines.append(f"for (int64_t l = 0; l < {half}; ++l) {{")
        lines.append(f"    held{k}[{len(parts) * n} + l] = {literal(none.value, dtype)};")
        lines.append("}")
        old.append(tuple(f"ts_load_{s}(&held{k}[{q}])" for q in starts))
        new.append(tuple(f"ts_load_{s}(&held{k}[half + {q}])" for q in starts))
    before, combined = vector(combiner, old, new, code)
    stores = [
        f"ts_store_{suffix(dtype)}(&held{k}[{q * code.shape.native(dtype.lane_bits)}], {p});"
        for k, (dtype, parts) in enumerate(zip(combiner.dtypes, combined, strict=True))
        for q, p in enumerate(parts)
    ]
    lines.append(f"for (int64_t half = {half}; half; half /= 2) {{")
    lines += [f"    {line}" for line in (*before, *stores)]
    lines.append("}")
    lines += defined(combiner, places, [f"held{k}[0]" for k in range(len(places))], code.scalars)
    return ["{", *(f"    {line}" for line in lines), "}"]
