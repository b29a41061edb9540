"""How far expressions and accesses reach: numbers that hold for all sizes.

Input: an index expression with what is known of its variables, or a kernel and one of its
temporaries. Output: the greatest value; the extent of constant size that the accesses stay in; and
whether threads share them. For primitives and lowering; the prover checks what is made of it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import final

import islpy as isl

from ...ir.algebra import maximum, minimum
from ...ir.nodes import Expr, Kernel, Var
from ...ir.walk import accessed, variables
from ..sets.affine import NotAffine, affine, frame
from ..sets.extract import Placed, outline
from ..sets.statement import Access, Statement
from ..witness import Refused
from .code import formula
from .times import IN, PARAM, known

_SET = isl.dim_type.set
_MOST_PIECES = 8


def greatest(value: Expr, conditions: Iterable[Expr]) -> int | None:
    """The greatest value of an index expression where the conditions hold; None where there is
    none, or isl cannot say it. Conditions that are not affine count for nothing.
    """
    given = tuple(conditions)
    names = sorted(frozenset[str]().union(*map(variables, (value, *given))))
    where = known(names, given)
    at = replace(frame(where.get_space(), ()), known=where.from_params())
    try:
        return _most(affine(value, at).intersect_params(where))
    except NotAffine:
        return None


def _most(function: isl.PwAff) -> int | None:
    most = function.floor().max_val()  # isl halves where nothing is left over
    return int(most.to_python()) if most.is_int() else None


@final
@dataclass(frozen=True, slots=True)
class Extent:
    """`size` places from `start` on, in the variables of loops around an Allocate."""

    start: Expr
    size: int


@final
@dataclass(frozen=True, slots=True)
class Footprint:
    """The elements of a temporary that are accessed while the loops around its Allocate stand
    still: their variables are parameters, as sizes are. sizes: how many parameters those are.
    """

    elements: isl.Set
    sizes: int

    def extent(self, axis: int) -> Extent | None:
        """The smallest along an axis that holds what is accessed; None where no size does for
        all sizes and iterations. It starts at an affine place where one will do.
        """
        first, last = self.elements.dim_min(axis), self.elements.dim_max(axis)
        longest = _most(last.sub(first))
        if longest is None:
            return None
        for start, told in _starts(first):
            if _most(start.sub(first)) == 0 and _most(last.sub(start)) == longest:
                return Extent(told, longest + 1)
        return None

    def longest(self, axis: int, size: int) -> int | None:
        """The most that is accessed along an axis where all sizes are `size`."""
        here = self.elements
        for k in range(self.sizes):
            here = here.fix_val(PARAM, k, isl.Val(size))
        most = _most(here.dim_max(axis).sub(here.dim_min(axis)))
        return None if most is None else most + 1


def _starts(first: isl.PwAff) -> Iterator[tuple[isl.PwAff, Expr]]:
    """What may begin where something first is, and the same as an expression: an affine piece of
    it, the least or the greatest of the pieces, itself.
    """
    where = first.domain()
    pieces = [isl.PwAff.from_aff(aff).floor() for _, aff in first.get_pieces()]
    if len(pieces) <= _MOST_PIECES:
        told = [_formula(piece, where) for piece in pieces]
        yield from zip(pieces, told, strict=True)
        yield reduce(isl.PwAff.min, pieces), reduce(minimum, told)
        yield reduce(isl.PwAff.max, pieces), reduce(maximum, told)
    yield first, _formula(first, where)


def _formula(function: isl.PwAff, where: isl.Set) -> Expr:
    space = where.get_space()
    names = (str(space.get_dim_name(PARAM, k)) for k in range(space.dim(PARAM)))
    told = isl.AstBuild.from_context(where.params()).expr_from_pw_aff(function)
    return formula(told, {name: Var(name) for name in names})


@final
class Temporaries:
    """Those of a kernel whose inits are explicit, as its statements access them. isl is told of a
    statement once, whichever of them are asked about.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._told: dict[int, Statement] = {}

    def footprint(self, buffer: str) -> Footprint | None:
        """What is accessed of a temporary; None where isl cannot say it."""
        accesses = self._accesses(buffer)
        if not accesses or any(a.storage.owners for a in accesses):
            return None
        storage = accesses[0].storage
        loops = [accesses[0].statement.dims[k] for k in storage.kept]
        touched = reduce(isl.Set.union, (a.place.range() for a in accesses)).intersect(storage.box)
        sizes = int(touched.dim(PARAM))
        elements = touched.move_dims(PARAM, sizes, _SET, 0, len(loops)).coalesce()
        for k, name in enumerate(loops):
            elements = elements.set_dim_name(PARAM, sizes + k, name)
        return Footprint(elements, sizes)

    def of_one_thread(self, buffer: str) -> bool:
        """Whether each element of a temporary of a kernel in launch form is accessed by one thread
        of one launch alone, as far as isl can say it.
        """
        accesses = self._accesses(buffer)
        found = [a.statement.launch for a in accesses]
        if not found or found[0] is None or any(launch != found[0] for launch in found):
            return False
        first = found[0].outside + len(found[0].axes)
        places = (
            a.place.project_out(IN, first, int(a.place.dim(IN)) - first).coalesce()
            for a in accesses
        )
        return bool(reduce(isl.Map.union, places).is_injective())

    def _accesses(self, buffer: str) -> list[Access]:
        """Of a temporary; none where isl cannot say them."""
        try:
            statements = [self._tell(s) for s in self._placed if buffer in accessed(s.block)]
        except Refused:
            return []
        return [a for s in statements for a in (*s.reads, *s.writes) if a.storage.name == buffer]

    @cached_property
    def _placed(self) -> tuple[Placed, ...]:
        return outline(self._kernel).blocks

    def _tell(self, placed: Placed) -> Statement:
        if placed.uid not in self._told:
            self._told[placed.uid] = placed.statement()
        return self._told[placed.uid]
