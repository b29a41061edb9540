"""What a refusal says: the reason, and one concrete case in which the schedule goes wrong.

Input: isl sets of counterexamples. Output: the case with the smallest sizes, as text and as data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import islpy as isl

from ..errors import Span, TilesmithError
from .certificate import Read


@final
@dataclass(frozen=True, slots=True)
class Instance:
    """An executed instance of a block: its iteration variables' and its loops' values."""

    block: str
    iters: Mapping[str, int]
    loops: Mapping[str, int]

    def __str__(self) -> str:
        return f"{self.block}[{_values(self.iters)}]" if self.iters else self.block


@final
@dataclass(frozen=True, slots=True)
class Witness:
    """A case that goes wrong: the dims' values, the instances concerned, and the element."""

    sizes: Mapping[str, int]
    instances: tuple[Instance, ...] = ()
    buffer: str | None = None
    element: tuple[int, ...] = ()

    def __str__(self) -> str:
        return "; ".join(self.lines())

    def lines(self) -> tuple[str, ...]:
        """The sizes, where each instance runs, and the element: one a line."""
        parts = [_values(self.sizes)] if self.sizes else []
        parts += [f"{i} runs at {_values(i.loops)}" for i in self.instances if i.loops]
        if self.buffer is not None:
            parts.append(f"element {self.buffer}{list(self.element)}")
        return tuple(parts)


def _values(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


class Refused(TilesmithError):
    """The prover's no: a reason in one sentence, and a case in which it shows, if there is one.

    hidden: the read of which data hides where its value comes from, so that a test may tell.
    """

    def __init__(
        self,
        reason: str,
        witness: Witness | None = None,
        span: Span | None = None,
        hint: str | None = None,
        hidden: Read | None = None,
    ) -> None:
        case = f" (for example: {witness})" if witness and str(witness) else ""
        super().__init__(reason + case, span, hint)
        self.reason = reason
        self.witness = witness
        self.hidden = hidden


@final
@dataclass(frozen=True, slots=True)
class Sample:
    """A point of a set: the parameters' values by name, and the coordinates."""

    sizes: Mapping[str, int]
    point: tuple[int, ...]


def sample(counterexamples: isl.Set) -> Sample:
    """A point with the smallest sizes in lexicographic order. The set must not be empty."""
    space = counterexamples.get_space()
    names = [str(space.get_dim_name(_PARAM, k)) for k in range(space.dim(_PARAM))]
    sizes = counterexamples.params()
    count = len(names)
    flat = isl.Set.from_params(sizes).move_dims(isl.dim_type.set, 0, _PARAM, 0, count)
    natural = flat.intersect(_natural(flat.get_space()))
    smallest = flat if natural.is_empty() else natural.lexmin()  # only scalars can be negative
    least = _coordinates(smallest.sample_point(), count)
    for k, value in enumerate(least):
        counterexamples = counterexamples.fix_val(_PARAM, k, _val(value))
    point = _coordinates(counterexamples.sample_point(), int(counterexamples.dim(_SET)))
    return Sample(dict(zip(names, least, strict=True)), point)


def partner(relation: isl.Map, case: Sample) -> tuple[int, ...]:
    """A point that the relation pairs with the case's point, for the case's sizes."""
    return images(relation, case)[0]


def images(relation: isl.Map, case: Sample) -> tuple[tuple[int, ...], ...]:
    """One point that the relation pairs with the case's point, or none if there is none."""
    point = isl.Set.universe(relation.get_space().domain())
    for k, value in enumerate(case.sizes.values()):
        point = point.fix_val(_PARAM, k, _val(value))
    for k in range(int(point.dim(_SET))):
        point = point.fix_val(_SET, k, _val(case.point[k]))
    image = relation.intersect_domain(point).range()
    if image.is_empty():
        return ()
    return (_coordinates(image.sample_point(), int(image.dim(_SET))),)


def _natural(space: isl.Space) -> isl.Set:
    result = isl.Set.universe(space)
    for k in range(space.dim(_SET)):
        result = result.lower_bound_val(_SET, k, 0)
    return result


def _val(value: int) -> isl.Val:
    """Of any size; from an int itself islpy takes 64 bits."""
    return isl.Val(str(value))


def _coordinates(point: isl.Point, count: int) -> tuple[int, ...]:
    return tuple(
        int(point.get_coordinate_val(isl.dim_type.set, k).to_python()) for k in range(count)
    )


_PARAM, _SET = isl.dim_type.param, isl.dim_type.set
