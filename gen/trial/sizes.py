"""Sizes that a kernel is tried at.

Input: a spec. Output: whether a call may have given sizes, and small sizes at the edges: around the
vectors' length, and on either side of each variant's `when`.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from .. import language as specs
from ..ir.interpret.sizes import SizeError, value
from ..ir.nodes import Binary, BinaryOp, Const, Expr, Unary, UnaryOp
from ..ir.walk import walk
from ..language.formulas import oracle
from ..language.model import KernelSpec
from ..language.shapes import not_negative
from ..schedule import recipe as recipes
from ..targets.target import Target


def edges(spec: KernelSpec, width: int) -> Iterator[dict[str, int]]:
    """Small sizes around the width of a target: every pair of them for each two of the dims, and
    where constraints relate dims, which leaves few of these, others as well.
    """
    around = sorted({0, 1, 2, width - 1, width, width + 1, 4 * width + 3})
    if len(spec.dims) == 1:
        combos: list[tuple[int, ...]] = [(n,) for n in around]
    else:
        combos = [
            tuple(pair[k % 2] for k in range(len(spec.dims)))
            for pair in itertools.product(around, around)
        ]
    if specs.relations(spec) or spec.sizes:
        drawn = np.random.default_rng(0).choice([*around, 3], (_DRAWS, len(spec.dims)))
        combos += [tuple(map(int, combo)) for combo in drawn]
    for combo in combos:
        edge = dict(zip(spec.dims, combo, strict=True))
        if math.prod(combo) <= _MOST_POINTS and allowed(spec, edge):
            yield edge


_DRAWS = 100
_MOST_POINTS = 2**19  # of kernels with many dims


def sides(spec: KernelSpec, target: Target) -> Iterator[dict[str, int]]:
    """Sizes on either side of each `when` of the target's recipe: of those around its numbers and
    their roots the two smallest and the largest for which the same of them hold.
    """
    recipe = recipes.choose(spec.recipes, target.name, target.level)
    whens = [v.when for v in recipe.variants if v.when is not None] if recipe else []
    numbers = {abs(int(n.value.real)) for w in whens for n in walk(w) if isinstance(n, Const)}
    near = {n + k for c in numbers for n in (c, math.isqrt(c)) for k in (-1, 0, 1)}
    around, rank = sorted({1, 2, *(n for n in near if n > 0)}), len(spec.dims)
    combos: Iterable[Sequence[int]] = itertools.product(around, repeat=rank)
    if len(around) ** rank > _MOST_COMBOS:
        combos = np.random.default_rng(0).choice(around, (_MOST_COMBOS, rank)).tolist()
    found: dict[tuple[bool, ...], list[dict[str, int]]] = {}
    for combo in combos if whens else ():
        sizes = dict(zip(spec.dims, combo, strict=True))
        if math.prod(combo) <= _MOST_POINTS and allowed(spec, sizes):
            known = values_of(spec, sizes)
            found.setdefault(tuple(_holds(w, known) for w in whens), []).append(sizes)
    for group in found.values():
        ordered = sorted(group, key=lambda sizes: math.prod(sizes.values()))
        yield from (*ordered[:2], *ordered[2:][-1:])


_MOST_COMBOS = 5000


def _holds(when: Expr, values: Mapping[str, float]) -> bool:
    match when:
        case Binary(BinaryOp.AND, lhs, rhs):
            return _holds(lhs, values) and _holds(rhs, values)
        case Binary(BinaryOp.OR, lhs, rhs):
            return _holds(lhs, values) or _holds(rhs, values)
        case Unary(UnaryOp.NOT, operand):
            return not _holds(operand, values)
    try:
        return bool(value(when, values))
    except SizeError:
        return False


def allowed(spec: KernelSpec, sizes: Mapping[str, int]) -> bool:
    """Whether a call may have these sizes, its scalars at their defaults."""
    least = specs.least_sizes(spec).items()
    try:
        values = values_of(spec, sizes)
        needed = [value(c, values) for c in (*spec.constraints, *not_negative(spec))]
    except SizeError:
        return False
    least_ = [sizes[dim] >= size for dim, size in least]
    return all(least_) and all(needed) and all(values[s.name] >= 0 for s in spec.sizes)


def values_of(
    spec: KernelSpec, sizes: Mapping[str, int], scalars: Mapping[str, float] | None = None
) -> dict[str, float]:
    """The dims' values and the scalars', by default their defaults, and the named sizes'."""
    return specs.with_named(spec, {**oracle.defaults(spec), **(scalars or {}), **sizes})


def kernel_dims(
    spec: KernelSpec, sizes: Mapping[str, int], scalars: Mapping[str, float] | None = None
) -> dict[str, int]:
    """The values of all dims of the kernel."""
    values = values_of(spec, sizes, scalars)
    return {dim: int(values[dim]) for dim in spec.all_dims}
