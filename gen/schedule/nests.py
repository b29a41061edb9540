"""Nests of loops that are taken as one thing: a nested block, or an intrinsic's pattern.

A nest is marked by an annotation on its outermost loop; the blocks in it stay as they are, so the
prover and the interpreter see what it computes. Input: a marked loop, or one to be. Output: how its
parts are those of an intrinsic's pattern; CannotApply, with the part that differs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import final

from ..ir import nodes as ir
from ..ir.algebra import floordiv, index, mod, simplify
from ..ir.index.linear import Linear, constant, linear
from ..ir.text.print_expr import expr_to_text
from ..ir.walk import buffers, loops, statements, substitute, walk
from .edit.tree import CannotApply, chain, nearest, reduction_loops
from .intrinsics import Intrinsic, lookup

NESTED, TENSORIZED = "blockize", "tensorize"

MOST_LANES = 512  # as `vectorize`


def mark(loop: ir.Loop, key: str) -> str | None:
    """What a loop is marked with: the name of a nested block, or of an intrinsic."""
    return next((str(value) for name, value in loop.annotations if name == key), None)


def tensorized(loop: ir.Loop) -> bool:
    return mark(loop, TENSORIZED) is not None


def marked(loop: ir.Loop, key: str, value: str) -> ir.Loop:
    """The loop with that mark in place of those that it has."""
    return replace(unmarked(loop), annotations=(*unmarked(loop).annotations, (key, value)))


def unmarked(loop: ir.Loop) -> ir.Loop:
    kept = tuple(a for a in loop.annotations if a[0] not in (NESTED, TENSORIZED))
    return replace(loop, annotations=kept)


def nest_named(kernel: ir.Kernel, name: str) -> ir.Loop:
    """The loop of that name, or the outermost one of the nested block of that name."""
    known = {loop.var: loop for loop in loops(kernel.body)}
    known |= {nested: loop for loop in known.values() if (nested := mark(loop, NESTED))}
    if name not in known:
        raise CannotApply(f"there is no loop or nested block '{name}'", nearest(name, known))
    return known[name]


def nested_names(kernel: ir.Kernel) -> frozenset[str]:
    return frozenset(name for loop in loops(kernel.body) if (name := mark(loop, NESTED)))


# ---------------------------------------------------------------- what a pattern takes


@final
@dataclass(frozen=True, slots=True)
class Match:
    """A nest that computes an intrinsic's pattern. operands: by the pattern's arguments, in their
    order, what the nest accesses; the first is the target.
    """

    intrinsic: Intrinsic
    nest: tuple[ir.Loop, ...]
    operands: Mapping[str, ir.Load | ir.Destination]

    @property
    def lanes(self) -> int:
        return _extent(self.nest[0])


def match(loop: ir.Loop, intrinsic: Intrinsic, buffers: Mapping[str, ir.Buffer]) -> Match:
    """How the nest is the intrinsic's pattern, guards aside. buffers: by name, all that it uses.

    Raises CannotApply with the part that differs.
    """
    nest = chain(loop, len(intrinsic.nest))
    block = nest[-1].body
    if len(nest) < len(intrinsic.nest) or not isinstance(block, ir.Block):
        raise CannotApply(
            f"'{intrinsic.name}' takes {len(intrinsic.nest)} loops, one directly in the other, "
            f"around one block: what is in loop '{loop.var}' is not that"
        )
    for own, wanted in zip(nest, intrinsic.nest, strict=True):
        _check_extent(own, wanted, intrinsic)
    around = {name for name in reduction_loops(block)} - {own.var for own in nest}
    if block.initialises and not around:
        raise CannotApply(
            f"block '{block.name}' stores its first value in the nest",
            f"decompose_reduction: {{block: {block.name}, loop: {loop.var}}} first",
        )
    for key, _ in block.annotations:
        raise CannotApply(f"block '{block.name}' is marked by '{key}', which the nest cannot be")
    _check_update(block, intrinsic)
    arguments = [p.buffer for p in intrinsic.pattern.parameters]
    refusals: list[CannotApply] = []
    orders = _operands(in_loops(block), in_loops(intrinsic.block))
    for operands in sorted(orders, key=lambda o: _other_types(o, arguments, buffers)):
        found = Match(intrinsic, nest, {a.name: operands[a.name] for a in arguments})
        try:
            for argument in arguments:
                _check_places(found, argument, buffers)
            return found
        except CannotApply as refusal:
            refusals.append(refusal)
    raise refusals[0]


def _extent(loop: ir.Loop) -> int:
    extent = constant(loop.upper)
    if extent is None or constant(loop.lower) != 0:
        raise CannotApply(f"loop '{loop.var}' does not run from 0 over a constant extent")
    return extent


def _check_extent(own: ir.Loop, wanted: ir.Loop, intrinsic: Intrinsic) -> None:
    extent, upper = _extent(own), constant(wanted.upper)
    if upper is not None and extent != upper:
        raise CannotApply(
            f"loop '{own.var}' runs {extent} times, and that of '{intrinsic.name}' {upper}",
            f"split it by {upper}" if extent > upper else None,
        )
    if not 1 <= extent <= MOST_LANES:
        raise CannotApply(f"loop '{own.var}' has {extent} lanes: 1 to {MOST_LANES} can be")


def in_loops(block: ir.Block) -> ir.Block:
    """The block's body in the loops' variables."""
    values = {v.name: b for v, b in zip(block.iters, block.bindings, strict=True)}
    return replace(block, body=substitute(block.body, values))


# ---------------------------------------------------------------- the same computation


def _other_types(
    operands: Mapping[str, ir.Load | ir.Destination],
    arguments: Sequence[ir.Buffer],
    buffers: Mapping[str, ir.Buffer],
) -> int:
    """How many operands are of other types than the pattern's arguments."""
    return sum(buffers[operands[a.name].buffer].dtype is not a.dtype for a in arguments)


def _check_update(block: ir.Block, intrinsic: Intrinsic) -> None:
    own, wanted = in_loops(block).body, in_loops(intrinsic.block).body
    assert isinstance(wanted, ir.Update)
    what = f"block '{block.name}'"
    if not isinstance(own, ir.Update):
        raise CannotApply(f"{what} is no {wanted.combiner.value}, as '{intrinsic.name}' is")
    if own.combiner != wanted.combiner:
        raise CannotApply(
            f"{what} is a {own.combiner.value}, and '{intrinsic.name}' a {wanted.combiner.value}"
        )
    if not any(True for _ in _operands(in_loops(block), in_loops(intrinsic.block))):
        raise CannotApply(
            f"{what} adds {_texts(own)}, and '{intrinsic.name}' adds {_texts(wanted)}"
        )


def _texts(body: ir.Update) -> str:
    return ", ".join(expr_to_text(value) for value in body.values)


def _operands(own: ir.Block, wanted: ir.Block) -> Iterator[dict[str, ir.Load | ir.Destination]]:
    """What the block may access where the pattern's accesses its arguments, as far as the form of
    what it computes tells: factors may change places.
    """
    body, pattern = own.body, wanted.body
    assert isinstance(body, ir.Update) and isinstance(pattern, ir.Update)
    places = zip(pattern.targets, body.targets, strict=True)
    targets_: dict[str, ir.Load | ir.Destination] = {w.buffer: t for w, t in places}
    (value,), (wanted_value,) = body.values, pattern.values
    for operands in _same(value, wanted_value):
        yield targets_ | operands


def _same(own: ir.Expr, wanted: ir.Expr) -> Iterator[dict[str, ir.Load | ir.Destination]]:
    """The loads of an expression by the pattern's arguments; none where it is another one."""
    match own, wanted:
        case ir.Load(), ir.Load(buffer):
            yield {buffer: own}
        case ir.Cast(dtype, a), ir.Cast(wanted_dtype, b) if dtype is wanted_dtype:
            yield from _same(a, b)
        case ir.Binary(op, a, b), ir.Binary(wanted_op, c, d) if op is wanted_op:
            orders = [(a, b), (b, a)] if op in (ir.BinaryOp.ADD, ir.BinaryOp.MUL) else [(a, b)]
            for x, y in orders:
                yield from (one | two for one in _same(x, c) for two in _same(y, d))


# ---------------------------------------------------------------- the same places


def _check_places(found: Match, wanted: ir.Buffer, buffers: Mapping[str, ir.Buffer]) -> None:
    """What stands for an argument of the pattern has its type, and is walked as that is."""
    access = found.operands[wanted.name]
    buffer = buffers[access.buffer]
    what = f"'{access.buffer}', which is '{wanted.name}' of '{found.intrinsic.name}',"
    if buffer.dtype is not wanted.dtype:
        raise CannotApply(f"{what} is of {buffer.dtype.value}, not of {wanted.dtype.value}")
    expected = _expected(found.intrinsic, wanted)
    moved = [0 for _ in found.nest]
    for axis, (i, stride) in enumerate(zip(access.indices, _strides(buffer), strict=True)):
        by = steps(i, found.nest)
        if by is None:
            raise CannotApply(f"{what} is at {expr_to_text(i)}: no fixed step in each loop", _COPY)
        for k, loop in enumerate(found.nest):
            if by[k] and stride is None:
                where = f"with '{loop.var}' along axis {axis}"
                raise CannotApply(f"{what} moves {where}, whose stride is not a constant", _COPY)
            moved[k] += by[k] * (stride or 0)
    for loop, own, step in zip(found.nest, moved, expected, strict=True):
        if own != step:
            where = f"with '{loop.var}' by {own} elements"
            raise CannotApply(f"{what} moves {where}, and has to by {step}", _COPY)
    if buffer.scope is ir.Scope.GLOBAL and sum(map(bool, expected)) > 1:
        raise CannotApply(f"{what} is an argument: only the call knows its stride", _COPY)


_COPY = "cache_read makes a copy, and transform_layout gives that its order"


def _expected(intrinsic: Intrinsic, wanted: ir.Buffer) -> tuple[int, ...]:
    """By how many elements the pattern's argument moves with each loop, in row-major order."""
    accesses = (
        n for n in walk(in_loops(intrinsic.block)) if isinstance(n, ir.Load | ir.Destination)
    )
    indices = next(a.indices for a in accesses if a.buffer == wanted.name)
    strides = _strides(replace(wanted, scope=ir.Scope.AUTO))
    forms = [(linear(i), stride or 0) for i, stride in zip(indices, strides, strict=True)]
    return tuple(
        sum(form.coefficient(loop.var) * stride for form, stride in forms)
        for loop in intrinsic.nest
    )


def _strides(buffer: ir.Buffer) -> tuple[int | None, ...]:
    """The elements from one place along each axis to the next; None where no constant: of an
    argument, the last axis counts as 1, since there is code for other strides.
    """
    found: list[int | None] = []
    size: int | None = 1
    for extent in reversed(buffer.shape):
        found.insert(0, size)
        length = None if buffer.scope is ir.Scope.GLOBAL else constant(extent)
        size = None if size is None or length is None else size * length
    return tuple(found)


def steps(i: ir.Expr, nest: Sequence[ir.Loop]) -> tuple[int, ...] | None:
    """By how much an index grows with each loop of the nest; None where that is not fixed. All but
    the first are short: their values are tried.
    """
    lane, *short = nest

    def at(values: Sequence[int]) -> Linear:
        pairs = zip(short, values, strict=True)
        return linear(settled(substitute(i, {loop.var: index(v) for loop, v in pairs})))

    extents = [_extent(loop) for loop in short]
    first = at([0] * len(short))
    with_lane = first.coefficient(lane.var)
    alone = [at([int(k == one) for k in range(len(short))]) for one in range(len(short))]
    by = [
        moved.constant - first.constant if extent > 1 else 0
        for moved, extent in zip(alone, extents, strict=True)
    ]
    if lane.var in first.without(ir.Var(lane.var)).variables():
        return None
    for values in product(*map(range, extents)):
        moved = sum(v * step for v, step in zip(values, by, strict=True))
        if at(values) != first + moved:
            return None
    return (with_lane, *by)


def settled(e: ir.Expr) -> ir.Expr:
    """The index expression without what divides evenly in its quotients and remainders."""
    match e:
        case ir.Binary(ir.BinaryOp.FLOORDIV | ir.BinaryOp.MOD as op, lhs, ir.Const(int(d))) if (
            d > 0
        ):
            form, d = linear(settled(lhs)), int(d)
            if op is ir.BinaryOp.MOD:
                return mod(form.modulo(d).expr(), d)
            return linear(floordiv(form.expr(), d)).expr()
        case ir.Binary(op, lhs, rhs):
            return simplify(ir.Binary(op, settled(lhs), settled(rhs)))
        case _:
            return e


# ---------------------------------------------------------------- what must stay as it is


def taken_apart(old: ir.Kernel, new: ir.Kernel) -> str | None:
    """Why a step may not be: it changed what is inside a marked nest."""
    before, after = _nests(old), _nests(new)
    for (key, name), nests in before.items():
        own = {loop.var: _inside(loop) for loop in nests}
        shapes = {_shape(loop) for loop in nests}
        tensorized = {loop.var for (k, _), found in after.items() for loop in found if k != key}
        left = after.get((key, name), [])
        if not left and not tensorized & own.keys():
            return f"it takes apart the nest '{name}'"
        for loop in left:
            kept = own[loop.var] == _inside(loop) if loop.var in own else _shape(loop) in shapes
            if not kept:
                return f"it takes apart the nest '{name}'"
    for (key, name), nests in after.items():
        for loop in nests if key == TENSORIZED else ():
            try:
                match(loop, lookup(name), buffers(new))
            except CannotApply as refusal:
                return f"it takes apart the nest '{name}': {refusal.reason}"
    return None


def _nests(kernel: ir.Kernel) -> dict[tuple[str, str], list[ir.Loop]]:
    found: dict[tuple[str, str], list[ir.Loop]] = {}
    for loop in loops(kernel.body):
        for key in (NESTED, TENSORIZED):
            if (name := mark(loop, key)) is not None:
                found.setdefault((key, name), []).append(loop)
    return found


def _inside(loop: ir.Loop) -> tuple[tuple[str, str], ...]:
    """The loops and blocks of a nest, in their order."""
    parts = (n for n in statements(loop) if isinstance(n, ir.Loop | ir.Block))
    return tuple((n.var, n.kind.value) if isinstance(n, ir.Loop) else (n.name, "") for n in parts)


def _shape(loop: ir.Loop) -> tuple[str, ...]:
    """As `_inside`, whatever the names: of copies."""
    return tuple(kind for _, kind in _inside(loop))
