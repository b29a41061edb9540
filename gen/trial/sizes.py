"""Sizes that a kernel is tried at.

Input: a spec, and conditions of its variants. Output: whether a call may have given sizes, and
small sizes at the edges: around the vectors' length, and on either side of each variant's `when`;
scalars, where these decide a `when`.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from .. import language as specs
from ..ir.interpret.sizes import SizeError, value
from ..ir.nodes import Binary, BinaryOp, Const, Expr, Intent, Unary, UnaryOp, Var
from ..ir.walk import variables, walk
from ..language.build import shape_of
from ..language.formulas import oracle
from ..language.model import KernelSpec
from ..language.shapes import not_negative
from ..lower.variants import Variant

USUAL = 256
"""The size of a dim in a call that variants for all calls are for."""

Number: TypeAlias = bool | int | float | None


def edges(spec: KernelSpec, width: int) -> Iterator[dict[str, int]]:
    """Small sizes around the width of a target: every pair of them for each two of the dims, and
    others as well where constraints relate dims, which leaves few of these, or where a result is of
    a size such as `n - 2`, since with two of a kind it may always be empty.
    """
    around = sorted({0, 1, 2, width - 1, width, width + 1, 4 * width + 3})
    if len(spec.dims) == 1:
        combos: list[tuple[int, ...]] = [(n,) for n in around]
    else:
        combos = [
            tuple(pair[k % 2] for k in range(len(spec.dims)))
            for pair in itertools.product(around, around)
        ]
    if specs.relations(spec) or spec.sizes or _derived(spec):
        drawn = np.random.default_rng(0).choice([*around, 3], (_DRAWS, len(spec.dims)))
        combos += [tuple(map(int, combo)) for combo in drawn]
    for combo in combos:
        edge = dict(zip(spec.dims, combo, strict=True))
        if math.prod(combo) <= _MOST_POINTS and allowed(spec, edge) and _fits(spec, edge):
            yield edge


def _derived(spec: KernelSpec) -> bool:
    """Whether a result has an axis of a size that follows from a dim's."""
    written = (a for a in spec.arguments if a.intent is not Intent.IN)
    sizes = (size for a in written for size in shape_of(a.shape))
    return any(not isinstance(size, Var | Const) for size in sizes)


_DRAWS = 100
_MOST_POINTS = 2**19  # of kernels with many dims


def sides(spec: KernelSpec, whens: Sequence[Expr]) -> Iterator[dict[str, int]]:
    """Sizes on either side of each `when`: of those around its numbers and their roots the two
    smallest and the largest for which the same of them hold.
    """
    for group in _sides(spec, whens, _MOST_COMBOS).values():
        yield from _some(group)


def other_scalars(
    spec: KernelSpec, whens: Sequence[Expr]
) -> Iterator[tuple[KernelSpec, list[dict[str, int]]]]:
    """The spec with other defaults: with each other word; then, for variants, of these conditions,
    that no sizes take while scalars are at their defaults, with others that are as near to its own
    as can be, and sizes that take them.
    """
    for scalar in spec.scalars:
        for word in {*range(len(scalar.members))} - {scalar.default}:
            yield with_defaults(spec, {scalar.name: word}), []
    free = [s for s in spec.scalars if s.name in _deciding(spec, whens)]
    if not free:
        return
    left = set(range(len(whens) + 1)) - {*map(_taken, _sides(spec, whens, _MOST_COMBOS))}
    near = {n + k for c in _numbers(whens) for n in (c, -c) for k in (-1, 0, 1)} | {*range(5)}
    ordered = sorted(near, key=abs)
    near_to = {s.name: range(len(s.members)) if s.members else ordered for s in free}
    choices = [[s.default, *(n for n in near_to[s.name] if n != s.default)] for s in free]
    for chosen in itertools.islice(_by_changes(choices), _MOST_SCALARS):
        if not left:
            return
        other = with_defaults(spec, {s.name: v for s, v in zip(free, chosen, strict=True)})
        groups = _sides(other, whens, _FEWER_COMBOS)
        if found := [held for held in groups if _taken(held) in left]:
            left -= {*map(_taken, found)}
            yield other, [sizes for held in found for sizes in _some(groups[held])]


def changed(spec: KernelSpec, other: KernelSpec) -> dict[str, float | str]:
    """The scalars with another default there, as callers give them. NaN differs from NaN."""
    pairs = zip(spec.scalars, other.scalars, strict=True)
    return {
        s.name: s.members[int(s.default)] if s.members else s.default
        for own, s in pairs
        if s.default is not None and s.default is not own.default
    }


def with_defaults(spec: KernelSpec, values: Mapping[str, Number]) -> KernelSpec:
    """The spec with other defaults of scalars."""
    scalars = (replace(s, default=values.get(s.name, s.default)) for s in spec.scalars)
    return replace(spec, scalars=tuple(scalars))


def _taken(held: Sequence[bool]) -> int:
    """The variant that a call takes, by which conditions hold; the last has none."""
    return [*held, True].index(True)


def _numbers(whens: Sequence[Expr]) -> set[int]:
    return {abs(int(n.value.real)) for w in whens for n in walk(w) if isinstance(n, Const)}


def _deciding(spec: KernelSpec, whens: Sequence[Expr]) -> set[str]:
    """The names that conditions hold, and those that the named sizes among them follow from."""
    names = {name for when in whens for name in variables(when)}
    for size in reversed(spec.sizes):
        names |= variables(size.value) if size.name in names else set()
    return names


def _by_changes(choices: Sequence[Sequence[Number]]) -> Iterator[tuple[Number, ...]]:
    """A choice of each, of which one is not the first, then two; those that are early before."""
    changes = [
        dict(zip(which, at, strict=True))
        for count in (1, 2)
        for which in itertools.combinations(range(len(choices)), count)
        for at in itertools.product(*(range(1, len(choices[k])) for k in which))
    ]
    for changed in sorted(changes, key=lambda c: (len(c), sum(c.values()))):
        yield tuple(each[changed.get(k, 0)] for k, each in enumerate(choices))


def _sides(
    spec: KernelSpec, whens: Sequence[Expr], most: int
) -> dict[tuple[bool, ...], list[dict[str, int]]]:
    """Sizes around the conditions' numbers and their roots, by which of these hold. most: how many
    are drawn, where there are more.
    """
    numbers = _numbers(whens)
    near = {n + k for c in numbers for n in (c, math.isqrt(c)) for k in (-1, 0, 1)}
    around, rank = sorted({1, 2, *(n for n in near if n > 0)}), len(spec.dims)
    combos: Iterable[Sequence[int]] = itertools.product(around, repeat=rank)
    if len(around) ** rank > most:
        combos = np.random.default_rng(0).choice(around, (most, rank)).tolist()
    found: dict[tuple[bool, ...], list[dict[str, int]]] = {}
    for combo in combos if whens else ():
        sizes = dict(zip(spec.dims, combo, strict=True))
        if math.prod(combo) <= _MOST_POINTS and allowed(spec, sizes) and _fits(spec, sizes):
            known = values_of(spec, sizes)
            found.setdefault(tuple(holds(w, known) for w in whens), []).append(sizes)
    return found


def _some(group: Sequence[dict[str, int]]) -> Sequence[dict[str, int]]:
    """The two smallest and the largest."""
    ordered = sorted(group, key=lambda sizes: math.prod(sizes.values()))
    return *ordered[:2], *ordered[2:][-1:]


_MOST_COMBOS = 5000


def _fits(spec: KernelSpec, sizes: Mapping[str, int]) -> bool:
    """Whether no array is too large: a dim may be that of two axes."""
    values = values_of(spec, sizes)
    shapes = ([value(extent, values) for extent in shape_of(a.shape)] for a in spec.arguments)
    return all(math.prod(shape) <= _MOST_POINTS for shape in shapes)


_FEWER_COMBOS = 300  # for each of the other scalars
_MOST_SCALARS = 128


def holds(when: Expr, values: Mapping[str, float]) -> bool:
    """Whether a condition of a variant does, of these sizes and scalars."""
    match when:
        case Binary(BinaryOp.AND, lhs, rhs):
            return holds(lhs, values) and holds(rhs, values)
        case Binary(BinaryOp.OR, lhs, rhs):
            return holds(lhs, values) or holds(rhs, values)
        case Unary(UnaryOp.NOT, operand):
            return not holds(operand, values)
    try:
        return bool(value(when, values))
    except SizeError:
        return False


def usual(spec: KernelSpec, variants: Sequence[Variant]) -> Variant:
    """The variant that a call with dims of 256 takes, as far as sizes say; the first ones of a
    recipe may be for what is rare.
    """
    try:
        values = values_of(spec, dict.fromkeys(spec.dims, USUAL))
    except SizeError:
        return variants[-1]
    return next((v for v in variants if v.when is None or holds(v.when, values)), variants[-1])


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
