"""Stores, inits and updates as C, of all lanes of a vectorized loop at once.

Input: a statement in the loops' variables. Output: C lines. A product that a sum takes is added by
a fused multiply-add, in scalar and in vector code alike.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import assert_never

from ...ir import nodes as ir
from ...ir.algebra import dtype_of, index
from ...ir.index.linear import linear
from ...ir.types import DType
from ...ir.walk import loads, targets
from ..c.expr import COMBINE, c_type, combined, identity, suffix
from ..c.lines import indented
from ..c.names import NUMBER
from ..c.updates import pair
from ..c.views import Dense, Registers, View, at_lane, register_number, steps, vectors
from . import combiners
from .context import Kept, Push
from .passes.index_ties import in_order
from .vectors import masks
from .vectors.casts import as_accessed
from .vectors.expr import Vectors, advanced
from .vectors.forms import STORED, UNSIGNED, VECTOR_TYPES
from .vectors.masks import All, Bits
from .vectors.prelude import Parts

# ---------------------------------------------------------------- all lanes


def vector(block: ir.Block, dtypes: tuple[DType, ...], code: Vectors) -> list[str]:
    """All active lanes of one statement."""
    match body := block.body:
        case ir.Store(target, value) if target in code.pushes:
            return _pushed(code.pushes[target], target, dtypes[0], code.parts(value), code)
        case ir.Store(target, value) if dtypes[0] is DType.BOOL:
            return _flags(target, value, code)
        case ir.Store(target, ir.Cast(dtype, value)) if _as_stored(target, dtype, value, code):
            return store(target, dtype, code.parts(value), code, dtype_of(value))
        case ir.Store(target, value):
            parts = code.parts(value)
            if target in code.again:
                parts = code.before.keep(target, parts, f"ts_{suffix(dtypes[0])}")
            return store(target, dtypes[0], parts, code)
        case ir.Init(combiner, targets):
            lines = []
            for k, (target, dtype) in enumerate(zip(targets, dtypes, strict=True)):
                none = f"ts_set_{suffix(dtype)}({identity(combiner, dtype, k)})"
                parts = (none,) * code.shape.parts(dtype.lane_bits)
                lines += store(target, dtype, parts, code)
            return lines
        case ir.Update(_, targets) if not any(code.varies(i) for t in targets for i in t.indices):
            return _tree(body, dtypes, code, in_order(block))
        case ir.Update(ir.Combiner.ARGMIN | ir.Combiner.ARGMAX):
            return _pairs(body, dtypes, code, in_order(block))
        case ir.Update(ir.DefinedCombiner() as combiner, targets, values):
            held = [_old(body, k, dtype, code) for k, dtype in enumerate(dtypes)]
            before, found = combiners.vector(combiner, held, [code.parts(v) for v in values], code)
            stores = zip(targets, dtypes, found, strict=True)
            lines = [line for t, dtype, parts in stores for line in store(t, dtype, parts, code)]
            return ["{", *indented(before + lines), "}"]
        case ir.Update(ir.Combiner() as combiner, (target,), (value,)):
            old = code.load(target.buffer, target.indices, dtypes[0], stores=True)
            return store(target, dtypes[0], _combine(combiner, old, value, code), code)
        case _:
            raise AssertionError(f"{body} has one target")


def _flags(target: ir.Destination, condition: ir.Expr, code: Vectors) -> list[str]:
    """Stores 1 where the condition holds, else 0: as wide as what it compares, and narrowed on the
    way to memory; under a mask, as the bytes that memory has.
    """
    mask = code.where(condition)
    own = mask.bits if isinstance(mask, Bits) else 32
    wide = UNSIGNED[8 if isinstance(code.mask, Bits) else own]
    return store(target, DType.BOOL, code.ones(mask, wide), code, wide)


def _pushed(
    push: Push, target: ir.Destination, dtype: DType, parts: Parts, code: Vectors
) -> list[str]:
    """Vectors that pass the caches by."""
    s, line, n = suffix(dtype), _place(target, code), code.shape.native(dtype.bits)
    match push:
        case "":
            return [f"ts_stream_{s}({line} + {q * n}, {p});" for q, p in enumerate(parts)]
        case str():
            return [f"ts_row_push_{s}(&{push}, {p});" for p in parts]
        case Kept(place, first):
            lines, whole = [], max(1, 512 // (dtype.bits * n))
            for q in range(0, len(parts), whole):
                vectors = f"(ts_{s}[]){{{', '.join(parts[q : q + whole])}}}"
                start = "false" if q else first
                lines.append(f"ts_line_push_{s}({place}, {line} + {q * n}, {vectors}, {start});")
            return lines
        case _:
            assert_never(push)


def _combine(combiner: ir.Combiner, old: Parts, value: ir.Expr, code: Vectors) -> Parts:
    s = suffix(dtype_of(value))
    match value:
        case ir.Binary(ir.BinaryOp.MUL, a, b) if (
            code.scalars.fuses and combiner is ir.Combiner.SUM and not dtype_of(value).is_integer
        ):
            terms = zip(code.parts(a), code.parts(b), old, strict=True)
            return tuple(f"ts_fma_{s}({x}, {y}, {z})" for x, y, z in terms)
        case _:
            pairs = zip(old, code.parts(value), strict=True)
            return tuple(f"ts_{COMBINE[combiner]}_{s}({x}, {y})" for x, y in pairs)


def _as_stored(target: ir.Destination, dtype: DType, value: ir.Expr, code: Vectors) -> bool:
    """Whether a cast of the value can be made as it is stored."""
    in_memory = not isinstance(code.views[target.buffer], Registers) and target not in code.again
    wide = dtype_of(value)
    return (
        in_memory
        and not isinstance(code.mask, Bits)
        and wide in VECTOR_TYPES
        and as_accessed(dtype, wide)
    )


def store(
    target: ir.Destination, dtype: DType, parts: Parts, code: Vectors, wide: DType | None = None
) -> list[str]:
    """Stores the active lanes; of a register, the others keep their value if they have one.

    wide: the type of the parts, where it is not that of the target: memory is stored from it.
    """
    view = code.views[target.buffer]
    stored = STORED.get(dtype, dtype)
    s, bits = suffix(stored), stored.lane_bits
    if wide is not None and wide is not stored:
        s, bits = f"{suffix(wide)}_as_{NUMBER[stored]}", wide.lane_bits
    if isinstance(view, Registers):
        number = register_number(view, target.indices, code.lane, stores=True)
        assert number is not None
        places = vectors(view, number, len(parts), code.scalars)
        if view.blend and not isinstance(code.mask, All):
            on = masks.as_bits(code.mask, bits, code.shape).parts
            triples = zip(on, parts, places, strict=True)
            parts = tuple(f"ts_select_{s}({m}, {p}, {old})" for m, p, old in triples)
        return [f"{place} = {p};" for place, p in zip(places, parts, strict=True)]
    step = steps(view, target.indices, code.lane, code.scalars)
    assert step is not None
    base = _place(target, code)
    if stored is not dtype:
        base = f"({c_type(stored)} *){base}"
    lines = []
    for q, p in enumerate(parts):
        form, last = code.access(bits, q)
        place = advanced(base, q * code.shape.native(bits), step)
        if step.unit:
            lines.append(f"ts_store{form}_{s}({', '.join((place, p, *last))});")
        else:
            given = ", ".join((place, step.stride, p, *last))
            lines.append(f"ts_store_strided{form}_{s}({given});")
    return lines


def loaded_again(
    blocks: Sequence[ir.Block], views: Mapping[str, View]
) -> frozenset[ir.Destination]:
    """Places of temporaries in memory that one of the blocks stores into, no other does, and a
    later one loads.
    """
    written = [t.buffer for block in blocks for t in targets(block.body)]
    found = set()
    for k, block in enumerate(blocks):
        if isinstance(block.body, ir.Store) and written.count(block.body.target.buffer) == 1:
            target = block.body.target
            reads = (
                ir.Destination(x.buffer, x.indices) for b in blocks[k + 1 :] for x in loads(b.body)
            )
            if isinstance(views[target.buffer], Dense) and target in reads:
                found.add(target)
    return frozenset(found)


def _place(target: ir.Destination, code: Vectors) -> str:
    """The address of the first lane."""
    first = at_lane(target.indices, code.lane, index(0))
    return f"&{code.scalars.element(target.buffer, first, code.scalars.facts)}"


# ---------------------------------------------------------------- lane trees


def _tree(body: ir.Update, dtypes: tuple[DType, ...], code: Vectors, in_order: bool) -> list[str]:
    """All lanes combined into one place; lanes that are not active hold the identity."""
    values = [active_or_identity(body.combiner, v, k, code) for k, v in enumerate(body.values)]
    places = [code.scalars.element(t.buffer, t.indices, code.scalars.facts) for t in body.targets]
    if isinstance(body.combiner, ir.DefinedCombiner):
        return combiners.tree(body.combiner, places, values, code)
    if body.combiner in (ir.Combiner.ARGMIN, ir.Combiner.ARGMAX):
        return _tree_of_pairs(body, places, values, dtypes, code, in_order)
    dtype, form, parts = dtypes[0], COMBINE[body.combiner], values[0]
    s = suffix(dtype)
    total = parts[0]
    for part in parts[1:]:
        total = f"ts_{form}_{s}({total}, {part})"
    reduced = f"ts_reduce_{form}_{s}({total})"
    return [f"{places[0]} = {combined(body.combiner, dtype, places[0], reduced)};"]


def active_or_identity(
    combiner: ir.AnyCombiner, value: ir.Expr, position: int, code: Vectors
) -> Parts:
    """The value, with the identity in lanes that are not active or that mean nothing."""
    dtype, mask = dtype_of(value), code.mask
    parts = code.parts(value)
    if isinstance(mask, All) and not code.shape.partial(dtype.lane_bits):
        return parts
    s = suffix(dtype)
    none = f"ts_set_{s}({identity(combiner, dtype, position)})"
    on = masks.as_bits(mask, dtype.lane_bits, code.shape).parts
    return tuple(f"ts_select_{s}({m}, {p}, {none})" for m, p in zip(on, parts, strict=True))


def _tree_of_pairs(
    body: ir.Update,
    places: list[str],
    values: list[Parts],
    dtypes: tuple[DType, ...],
    code: Vectors,
    in_order: bool,
) -> list[str]:
    """The extreme value of all lanes, a NaN if there is one; then the least index that has it.

    Mostly no lane wins, and that takes a comparison a vector. Of equal values none does, if they
    come in the order of their indices; and all may, as long as nothing is there.
    """
    s, b, combiner = suffix(dtypes[0]), dtypes[0].bits, body.combiner
    assert isinstance(combiner, ir.Combiner)
    form, sign = ("max", "l") if combiner is ir.Combiner.ARGMAX else ("min", "g")
    names = [f"held{q}" for q in range(len(values[0]))]
    loses = f"ts_{sign}{'e' if in_order else 't'}_{s}"
    lost = [f"{loses}({name}, ts_set_{s}({places[0]}))" for name in names]
    nothing = f"{places[1]} == {identity(combiner, dtypes[1], 1)}"
    held = [f"const ts_{s} {name} = {p};" for name, p in zip(names, values[0], strict=True)]
    all_lost = f"ts_all_m{b}({reduce(lambda x, y: f'ts_mand_m{b}({x}, {y})', lost)})"
    whole = f" && {places[0]} == {places[0]}" if in_order and dtypes[0].is_float else ""
    held.append(f"if ((!{all_lost}{whole}) || {nothing}) {{")
    lines = list[str]()
    top = reduce(lambda x, y: f"ts_{form}_{s}({x}, {y})", names)
    lines.append(f"const {c_type(dtypes[0])} top = ts_reduce_{form}_{s}({top});")
    has = tuple(f"ts_eq_{s}({n}, ts_set_{s}(top))" for n in names)
    if dtypes[0].is_float:
        has = tuple(f"ts_mor_m{b}({h}, ts_isnan_{s}({n}))" for h, n in zip(has, names, strict=True))
    lines.append(
        f"const {c_type(dtypes[1])} first = {_least(has, b, body.values[1], values[1], code)};"
    )
    lines += pair(combiner, places, ["top", "first"], dtypes)
    return ["{", *indented([*held, *indented(lines), "}"]), "}"]


def _least(has: Sequence[str], bits: int, at: ir.Expr, parts: Parts, code: Vectors) -> str:
    """The least index of the lanes that a mask has: the first one's, where indices ascend."""
    form, lane = linear(at), ir.Var(code.lane)
    step = form.coefficient(code.lane)
    ascends = step > 0 and not any(code.varies(x) for x in form.terms if x != lane)
    if ascends and not isinstance(code.mask, Bits) and code.shape.room(bits) <= 64:
        (first,) = at_lane((at,), code.lane, index(0))
        n = code.shape.native(bits)
        ballots = (f"ts_ballot_m{bits}({h})" for h in has)
        which = " | ".join(f"{x} << {q * n}" if q else x for q, x in enumerate(ballots))
        return f"{code.scalars.value(first)} + {step} * (int64_t)__builtin_ctzll({which})"
    t = suffix(dtype_of(at))
    none = f"ts_set_{t}({identity(ir.Combiner.ARGMAX, dtype_of(at), 1)})"
    on = masks.widths(tuple(has), bits, dtype_of(at).bits, code.shape)
    found = (f"ts_select_{t}({m}, {p}, {none})" for m, p in zip(on, parts, strict=True))
    return f"ts_reduce_min_{t}({reduce(lambda x, y: f'ts_min_{t}({x}, {y})', found)})"


def _pairs(body: ir.Update, dtypes: tuple[DType, ...], code: Vectors, in_order: bool) -> list[str]:
    """(value, index) lanes combined with those of the targets, lane by lane. in_order: no index
    is before the one that is there, unless none is: that is asked where a value is the identity's,
    as the masks of indices are longer, and what waits for them is every comparison after it.
    """
    (value_type, index_type), b = dtypes, dtypes[0].bits
    s, t = suffix(value_type), suffix(index_type)
    lines = ["{"]
    for name, suf, parts in (
        ("value", s, code.parts(body.values[0])),
        ("at", t, code.parts(body.values[1])),
        ("best", s, _old(body, 0, value_type, code)),
        ("best_at", t, _old(body, 1, index_type, code)),
    ):
        lines += [f"    const ts_{suf} {name}{q} = {p};" for q, p in enumerate(parts)]
    count = code.shape.parts(b)
    index_bits = index_type.bits
    none = f"ts_set_{s}({identity(body.combiner, value_type, 0)})"
    nobody = f"ts_set_{t}({identity(body.combiner, index_type, 1)})"
    nearer = tuple(
        f"ts_eq_{t}(best_at{q}, {nobody})" if in_order else f"ts_lt_{t}(at{q}, best_at{q})"
        for q in range(code.shape.parts(index_bits))
    )
    tie = masks.widths(nearer, index_bits, b, code.shape)
    sign = "le" if body.combiner is ir.Combiner.ARGMAX else "ge"
    wins = []
    for q in range(count):
        v, best = f"value{q}", f"best{q}"
        beyond = (
            f"ts_mand_m{b}(ts_mnot_m{b}(ts_{sign}_{s}({v}, {best})), ts_eq_{s}({best}, {best}))"
        )
        nans = f"ts_mand_m{b}(ts_ne_{s}({v}, {v}), ts_ne_{s}({best}, {best}))"
        equal = f"ts_mor_m{b}(ts_eq_{s}({v}, {best}), {nans})"
        if in_order:
            found = f"ts_any_m{b}(ts_eq_{s}({best}, {none}))"
            lines.append(f"    ts_m{b} wins{q} = {beyond};")
            lines.append(f"    if ({found}) wins{q} = ts_mor_m{b}(wins{q}, {tie[q]});")
        else:
            nearest = f"ts_mand_m{b}({equal}, {tie[q]})"
            lines.append(f"    const ts_m{b} wins{q} = ts_mor_m{b}({beyond}, {nearest});")
        wins.append(f"wins{q}")
    for position, (name, dtype) in enumerate(zip(("value", "at"), dtypes, strict=True)):
        on = masks.widths(tuple(wins), b, dtype.bits, code.shape)
        old = "best" if position == 0 else "best_at"
        new = tuple(
            f"ts_select_{suffix(dtype)}({m}, {name}{q}, {old}{q})" for q, m in enumerate(on)
        )
        lines += indented(store(body.targets[position], dtype, new, code))
    return [*lines, "}"]


def _old(body: ir.Update, position: int, dtype: DType, code: Vectors) -> Parts:
    target = body.targets[position]
    return code.load(target.buffer, target.indices, dtype, stores=True)
