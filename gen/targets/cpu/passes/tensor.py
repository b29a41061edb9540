"""Tensorized nests as C: the intrinsic in place of the loops.

Input: a lowered tree, unrolled and inlined, in which loops are marked with intrinsics. Output: the
tree with the marks of those nests alone that an intrinsic computes as they stand, and the C of such
a nest. Where a guard leaves out some lanes, it computes the others; where one leaves out some of
each group, as in the last iteration over a reduction, the loops do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ....errors import TilesmithError
from ....ir.algebra import conjunction, conjuncts, index
from ....ir.index.inequalities import inequalities
from ....ir.nodes import Buffer, Destination, Expr, Kernel, Load, Loop, LoopKind, Node
from ....ir.walk import blocks, buffers, loops, map_children, variables
from ....schedule.edit.tree import CannotApply
from ....schedule.intrinsics import lookup
from ....schedule.nests import TENSORIZED, Match, mark, match, tensorized, unmarked
from ...c.expr import suffix
from ...c.views import at_lane, steps
from .. import updates
from ..context import Context
from ..levels import Processor
from ..vectors import masks
from ..vectors.expr import Vectors
from ..vectors.forms import moves_alone
from ..vectors.masks import All, First, Mask, Shape
from ..vectors.prelude import Prelude
from .unroll import unroll

_KINDS = (LoopKind.VECTORIZED, LoopKind.UNROLLED)


def marks_that_hold(kernel: Kernel, machine: Processor) -> Kernel:
    """The kernel with the marks of those nests alone that their intrinsics compute.

    Raises TilesmithError where an intrinsic computes none of the nests that it was to.
    """
    if not any(tensorized(loop) for loop in loops(kernel)):
        return kernel
    arrays = buffers(kernel)
    refused: dict[str, TilesmithError] = {}
    held: set[str] = set()

    def go(node: Node) -> Node:
        if not isinstance(node, Loop) or not tensorized(node):
            return map_children(node, go)
        refusal = _refusal(node, arrays, machine)
        if refusal is None:
            held.add(node.var)
            return node
        reason, hint = refusal
        refused.setdefault(node.var, TilesmithError(reason, node.span, hint))
        return unroll(unmarked(node))

    body = map_children(kernel, go)
    for var, refusal in refused.items():
        if var not in held:
            raise refusal
    return body


def _refusal(
    loop: Loop, buffers: Mapping[str, Buffer], machine: Processor
) -> tuple[str, str | None] | None:
    """Why the intrinsic does not compute the nest, and what to write; None where it does."""
    name = mark(loop, TENSORIZED)
    assert name is not None
    what = f"loop '{loop.var}' is tensorized by '{name}', and"
    try:
        found = match(loop, lookup(name), buffers)
    except CannotApply as refusal:
        return f"{what} lowered it is another nest: {refusal.reason}", refusal.hint
    assert all(own.kind is _KINDS[k > 0] for k, own in enumerate(found.nest))
    if not all(_on_first_lanes(guard, found) for guard in _guards(loop)):
        hint = (
            "leave `tensorize` out, or take the condition out of the sum: an array in which what it"
            " leaves out is 0 gives the same"
        )
        return f"{what} guards leave out some of each group, everywhere", hint
    native = machine.lanes(buffers[_target(found).buffer].dtype)
    if found.lanes % native:
        hint = f"split by a multiple of $lanes, which is {native} here"
        return f"{what} has {found.lanes} lanes, no multiple of {native}, those of a vector", hint
    return None


def _guards(loop: Loop) -> tuple[Expr, ...]:
    return tuple(guard for block in blocks(loop) for guard in conjuncts(block.predicate))


def _on_first_lanes(guard: Expr, found: Match) -> bool:
    """Whether a guard keeps the first lanes, whole, and leaves out the others."""
    lane, *inner = (loop.var for loop in found.nest)
    forms = inequalities(guard) or ()
    alone = all(moves_alone(f, lane) and f.coefficient(lane) < 0 for f in forms)
    return bool(forms) and alone and not variables(guard) & {*inner}


def _target(found: Match) -> Destination:
    target = next(iter(found.operands.values()))
    assert isinstance(target, Destination)
    return target


def matches(kernel: Kernel, buffers: Mapping[str, Buffer]) -> Iterator[Match]:
    """The nests that intrinsics compute."""
    for loop in loops(kernel):
        if name := mark(loop, TENSORIZED):
            yield match(loop, lookup(name), buffers)


def machines(kernel: Kernel, machine: Processor) -> tuple[Processor, ...]:
    """Those for which there is code of its own: with all that the kernel's intrinsics use and not
    every processor of the level has, and without.
    """
    level = machine.level.value
    codes = (found.intrinsic.code for found in matches(kernel, buffers(kernel)))
    used = frozenset(code.features[level] for code in codes if level in code.features)
    return (replace(machine, features=used), machine) if used else (machine,)


def compiled_with(machine: Processor) -> str:
    """What stands before a function that uses the machine's features."""
    names = ",".join(sorted(machine.features))
    return f'TS_WITH("{names}") ' if names else ""


def walked(kernel: Kernel) -> Iterator[tuple[str, int]]:
    """The axes of arrays along which groups of elements lie, which are the same in all lanes."""
    for found in matches(kernel, buffers(kernel)):
        inner = {loop.var for loop in found.nest[1:]}
        for access in list(found.operands.values())[1:]:
            if found.nest[0].var not in variables(access):
                axes = (k for k, i in enumerate(access.indices) if variables(i) & inner)
                yield from ((access.buffer, axis) for axis in axes)


# ---------------------------------------------------------------- C


def statement(loop: Loop, context: Context) -> list[str]:
    """All lanes of the nest, or the first ones."""
    name = mark(loop, TENSORIZED)
    assert name is not None
    found = match(loop, lookup(name), {name: view.buffer for name, view in context.views.items()})
    target, *operands = found.operands.values()
    assert isinstance(target, Destination)
    guards = _guards(loop)
    inside = replace(context, facts=context.facts.where(conjunction(*guards)))
    shape = Shape(found.lanes, context.target.vector_bytes * 8)
    code = Vectors(inside.scalars, context.views, loop.var, shape, All(), Prelude())
    mask: Mask = All()
    for guard in guards:
        outside = replace(code, scalars=context.scalars)
        mask = masks.both(mask, outside.where(guard), shape)
    lines: list[str] = []
    if isinstance(mask, First):
        lines.append(f"const int64_t active = {mask.count};")
        code = replace(code, mask=First("active"))
    dtype = context.dtypes[target.buffer]
    old = code.load(target.buffer, target.indices, dtype)
    given = zip(old, *(_operand(found, o, code) for o in operands), strict=True)
    form = _form(found, context.target)
    new = tuple(f"ts_{form}({', '.join(parts)})" for parts in given)
    stores = updates.store(target, dtype, new, code)
    if not lines:
        return stores
    guarded = ["if (active > 0) {", *(f"    {line}" for line in stores), "}"]
    return ["{", *(f"    {line}" for line in [*lines, *guarded]), "}"]


def _form(found: Match, machine: Processor) -> str:
    code = found.intrinsic.code
    feature = code.features.get(machine.level.value)
    return f"{code.form}_{feature}" if feature in machine.features else code.form


def _operand(found: Match, access: Load | Destination, code: Vectors) -> tuple[str, ...]:
    """A vector for each of the target's: the groups of its lanes, or one group for them all."""
    lane, inner = found.nest
    first = at_lane(at_lane(access.indices, lane.var, index(0)), inner.var, index(0))
    place = f"&{code.scalars.element(access.buffer, first, code.scalars.facts)}"
    view = code.views[access.buffer]
    s, bits = suffix(view.buffer.dtype), view.buffer.dtype.bits
    group, parts = 32 // bits, range(code.shape.parts(32))
    if lane.var not in variables(access):
        step = steps(view, access.indices, inner.var, code.scalars)
        assert step is not None
        return tuple(f"ts_group{group}_{s}({place}, {step.stride})" for _ in parts)
    places = [f"{place} + {q * code.shape.native(bits)}" if q else place for q in parts]
    if not isinstance(code.mask, First):
        return tuple(f"ts_load_{s}({p})" for p in places)
    counts = [masks.count_in(code.shape, 32, q, code.mask.count) for q in parts]
    pairs = zip(places, counts, strict=True)
    return tuple(f"ts_load_first_{s}({p}, {group} * ({count}))" for p, count in pairs)
