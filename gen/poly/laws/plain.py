"""The plain schedule as a law rewrites it: what a schedule that takes the law for granted is proved
against.

Input: a plain kernel, and which laws are applied to which of its blocks. Output: the values of the
kernel in which these reductions are one, in the place of the first. Whether the law fits is found
here, from the plain schedule and its flow alone; and no value of another block may come from
elsewhere than before.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...ir import nodes as ir
from ...ir.walk import ancestors, blocks, buffers, replace_stmt, substitute
from ..certificate import Given
from ..values.flow import Computed, Identity, Logical, Value, Values, logical_flow, merged
from ..witness import Refused
from .law import TERM
from .matching import Blocks, Fit, NoFit, fitting


def under(plain: ir.Kernel, laws: Sequence[Given], logical: Logical) -> Logical:
    """The plain schedule's values under the laws. logical: without them.

    Raises Refused where a law does not fit, or would change what another block takes.
    """
    for given in laws:
        try:
            fit = fitting(known(plain, logical), given.blocks, given.law)
        except NoFit as no:
            raise Refused(f"law '{given.law}' is not one of this kernel: {no}") from None
        plain = _joined(plain, fit)
        after = logical_flow(plain)
        _require_same(logical, after, fit)
        logical = after
    return logical


def known(plain: ir.Kernel, logical: Logical) -> Blocks:
    """The blocks of a plain kernel, with what makes the values that they read."""
    by_name = {b.name: b for b in blocks(plain.body)}

    def maker(block: str, number: int) -> Value | None:
        values = logical.reads[block, number]
        made = [v for v in values if not isinstance(v, Identity)]
        if len(made) != 1 or not all(_is_empty(v, made[0]) for v in values if v not in made):
            return None
        return made[0]

    def _is_empty(none: Value, made: Value) -> bool:
        """Whether it is what the reduction gives where it has no terms."""
        body = by_name[made.block].body if isinstance(made, Computed) else None
        return (
            isinstance(made, Computed)
            and isinstance(body, ir.Update)
            and none == Identity(body.combiner, made.target)
        )

    return Blocks(by_name, maker)


def _joined(plain: ir.Kernel, fit: Fit) -> ir.Kernel:
    """The kernel with one reduction in the place of the first; the others are gone."""
    by_name = {b.name: b for b in blocks(plain.body)}
    first, *others = (by_name[name] for name in fit.blocks.values())
    assert isinstance(first.body, ir.Update)
    places: dict[str, ir.Destination] = {}
    for part, name in fit.blocks.items():
        block = by_name[name]
        assert isinstance(block.body, ir.Update)
        names = {v.name: ir.Var(w.name) for v, w in zip(block.iters, first.iters, strict=True)}
        places[part] = substitute(block.body.targets[0], names)
    last, counts = list(places.values())[-1], []
    for part, none in zip(fit.law.combiner.parts, fit.law.combiner.identity, strict=True):
        if part not in places:
            shape = buffers(plain)[last.buffer].shape
            counts.append(ir.Buffer(f"{first.name}.{part}", none.dtype, shape))
            places[part] = ir.Destination(counts[-1].name, last.indices)
    ordered = tuple(places[part] for part in fit.law.combiner.parts)
    values = tuple(
        substitute(fit.form.terms[part], {TERM: first.body.values[0]})
        for part in fit.law.combiner.parts
    )
    body = replace_stmt(
        plain.body,
        first,
        replace(first, body=ir.Update(fit.law.combiner, ordered, values)),
    )
    for block in others:
        body = replace_stmt(body, _alone(body, block), ir.Seq(()))
    return replace(plain, body=_allocated(body, tuple(counts)))


def _alone(root: ir.Stmt, block: ir.Block) -> ir.Stmt:
    """The outermost statement that holds this block and no other."""
    around = (*ancestors(root, block), block)
    return next(s for s in around if blocks(s) == (block,))


def _allocated(body: ir.Stmt, buffers: tuple[ir.Buffer, ...]) -> ir.Stmt:
    if not buffers:
        return body
    if isinstance(body, ir.Allocate):
        return replace(body, buffers=(*body.buffers, *buffers))
    return ir.Allocate(buffers, body)


# ---------------------------------------------------------------- nothing else may change


def _require_same(before: Logical, after: Logical, fit: Fit) -> None:
    """Refuses where a read, or what an output holds in the end, is another value than before."""
    first = next(iter(fit.blocks.values()))
    parts = fit.law.combiner.parts
    moved: dict[Value, Value] = {}
    none: dict[Value, Value] = {}  # the law's identities are those of its parts' reductions: proved
    for part, block in fit.blocks.items():
        k = parts.index(part)
        moved[Computed(block, 0)] = Computed(first, k)
        none[Identity(fit.law.combiner, k)] = Identity(fit.form.meanings[part].combiner, 0)

    def require(old: Values, new: Values, where: str) -> None:
        was, is_ = _with(_with(old, moved), none), _with(new, none)
        if was.keys() != is_.keys() or not all(m.is_equal(is_[v]) for v, m in was.items()):
            raise Refused(
                "the reductions cannot be one in the place of the first:"
                f" {where} would take other values"
            )

    own = len([key for key in before.reads if key[0] == first])
    for (block, number), values in after.reads.items():
        old = before.reads[block, number % own if block == first else number]
        require(old, values, f"block '{block}'")
    for value, values in after.bases.items():
        require(before.bases[value], values, f"block '{value.block}'")
    for name, values in after.finals.items():
        require(before.finals[name], values, f"'{name}' in the end")


def _with(values: Values, renamed: Mapping[Value, Value]) -> Values:
    return merged(*({renamed.get(value, value): m} for value, m in values.items()))
