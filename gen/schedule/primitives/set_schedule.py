"""set_schedule: any affine order of the instances of blocks."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from ...ir.index.bounds import normal
from ...ir.nodes import Block, Kernel, Loop, Seq, Stmt, Var
from ...ir.text.print_expr import expr_to_text
from ...ir.types import INDEX
from ...ir.walk import ancestors, blocks, replace_stmt, seq, substitute
from ...poly.certificate import Flow, Scheduled, Source
from ...poly.queries.code import generate
from ...poly.queries.times import (
    Known,
    Piece,
    Timed,
    agree,
    complaint,
    loops_taken,
    read_map,
    timed,
)
from ...poly.sets.affine import NotAffine
from ..base import Example, Primitive, Steps
from ..edit import tree as edit
from ..edit.allocation import hoist
from ..edit.points import bounds, context
from ..edit.tree import CannotApply
from ..examples import SCALE, TWICE
from .decompose_reduction import DecomposeReduction


class SetSchedule(Primitive):
    """Gives each iteration of the innermost loops around blocks a time, by a map in isl's notation,
    and puts loops in their place that run in the order of time.

    `map` has one piece a block, from its loops, outermost first, to as many coordinates for each
    block: `{ s[i, j] -> [i + j, j] }`. A piece may leave outer loops out, which stay then. Sums,
    dims, and division by a constant may be in it: `[i // 4, n - 1 - i]`. Coordinates that are
    constant order the blocks. `as` names a loop a coordinate. isl generates the bounds and guards
    (Grosser, Verdoolaege and Cohen 2015); the prover decides whether the order is right.
    """

    block: str | tuple[str, ...]
    map: str
    as_: tuple[str, ...] | None = None

    aliases = ("set_low_level_schedule",)

    def apply(self, state: Scheduled) -> Scheduled:
        kernel, root = state.kernel, edit.tree(state.kernel)
        parts, outside = self._parts(kernel), self._outside(kernel)
        given, coordinates = self._names(parts), parts[0][0].coordinates
        if len(given) != coordinates:
            raise CannotApply(f"`as` must give {coordinates} names, one a coordinate of time")
        old, inside = self._replaced(kernel), _inside(kernel, outside)
        freed = {loop for part, _ in parts for loop in part.loops}
        if wrong := complaint(tuple(part for part, _ in parts)):
            raise CannotApply(wrong)
        edit.require_free_loops(kernel, given, freed)
        found: dict[str, int] = {}
        try:
            code = generate(parts, self._context(kernel), given)
        except NotImplementedError as e:  # no map that was tried makes isl say such a thing
            raise CannotApply(f"{e}, which has no form in the IR") from None
        if idle := set(self._blocks()) - {b.name for b in blocks(code)}:
            raise CannotApply(f"block '{min(idle)}' runs in no iteration")
        new = _tidied(code, given, edit.names(kernel) - freed, found)
        start = next(k for k, s in enumerate(inside) if s is old[0])
        body = (*inside[:start], new, *inside[start + len(old) :])
        inner = outside[-1] if outside else None
        root = replace_stmt(root, inner, edit.with_body(inner, body)) if inner else seq(body)
        after = edit.rebuild(kernel, root)
        timing = {part.block: part for part, _ in parts}
        return Scheduled(after, _flow(state.flow, timing, new, found))

    def _blocks(self) -> tuple[str, ...]:
        return (self.block,) if isinstance(self.block, str) else self.block

    def _names(self, parts: tuple[tuple[Timed, Block], ...]) -> tuple[str, ...]:
        part = parts[0][0]
        return self.as_ or tuple(f"{part.block}.t{k}" for k in range(part.coordinates))

    def _parts(self, kernel: Kernel) -> tuple[tuple[Timed, Block], ...]:
        """Each block, without what of its guard is in its part, and its part of the schedule.

        Raises CannotApply.
        """
        pieces = self._pieces(kernel)
        outside = self._context(kernel)
        result = []
        for name in self._blocks():
            block = edit.block_named(kernel, name)
            inner = _taken(kernel, block, pieces[name])[1]
            for loop in inner:
                edit.require_unfused(loop)
            limits = {x.var: bounds(x) for x in inner}
            try:
                part, left = timed(outside, name, limits, block.predicate, pieces[name])
            except NotAffine as e:
                raise CannotApply(
                    f"the bounds of the loops around block '{name}' have `{expr_to_text(e.expr)}`,"
                    " which is not affine"
                ) from None
            result.append((part, replace(block, predicate=left)))
        return tuple(result)

    def _pieces(self, kernel: Kernel) -> dict[str, Piece]:
        """The map's piece of each block."""
        scalars = (s.name for s in kernel.scalars if s.dtype is INDEX)
        found = read_map(self.map, (*kernel.dims, *scalars))
        if found is None:
            raise CannotApply(
                "`map` is not an affine map in isl's notation",
                "it is like `{ s[i, j] -> [i + j, j] }`",
            )
        for name, pieces in found.items():
            if name not in self._blocks():
                raise CannotApply(f"the map names '{name}', which is not among the blocks given")
            if len(pieces) > 1:
                raise CannotApply(
                    f"the map has pieces of block '{name}' that differ in their numbers of loops or"
                    " coordinates"
                )
        for name in self._blocks():
            if name not in found:
                raise CannotApply(f"the map says nothing of block '{name}'")
        return {name: pieces[0] for name, pieces in found.items()}

    def _outside(self, kernel: Kernel) -> tuple[Loop, ...]:
        """The loops that stay, which must be the same around all blocks."""
        pieces = self._pieces(kernel)
        first, *others = self._blocks()
        around = _taken(kernel, edit.block_named(kernel, first), pieces[first])[0]
        for name in others:
            here = _taken(kernel, edit.block_named(kernel, name), pieces[name])[0]
            if [x.var for x in here] != [x.var for x in around]:
                raise CannotApply(
                    f"the map leaves other loops around block '{name}' than around '{first}'"
                )
        return around

    def _context(self, kernel: Kernel) -> Known:
        outside = self._outside(kernel)
        above = (*ancestors(edit.tree(kernel), outside[-1]), outside[-1]) if outside else ()
        return context(kernel, above)

    def _replaced(self, kernel: Kernel) -> tuple[Stmt, ...]:
        """The statements that the new loops replace, which hold no other block."""
        inside = _inside(kernel, self._outside(kernel))
        wanted = set(self._blocks())
        places = [k for k, s in enumerate(inside) if wanted & {b.name for b in blocks(s)}]
        found = inside[places[0] : places[-1] + 1]
        for other in (b.name for s in found for b in blocks(s)):
            if other not in wanted:
                raise CannotApply(
                    f"block '{other}' is among them: the map must give it a time, too"
                )
        return found

    def remedies(self, state: Scheduled) -> Iterator[Steps]:
        """The inits of reductions outside of the new loops."""
        kernel = hoist(state).kernel
        pieces = self._pieces(kernel)
        own = [b for b in map(partial(edit.block_named, kernel), self._blocks()) if b.initialises]
        taken = ((b.name, _taken(kernel, b, pieces[b.name])[1]) for b in own)
        inits = tuple(DecomposeReduction(name, inner[0].var) for name, inner in taken if inner)
        if inits:
            yield (*inits, self)

    EXAMPLES = (
        Example(
            "Diagonals",
            SCALE,
            '- set_schedule: {block: y, map: "{ y[i, j] -> [i + j, j] }", as: [y.d, y.j]}',
        ),
        Example(
            "Two blocks, one an iteration behind the other",
            TWICE,
            '- set_schedule: {block: [t, y], map: "{ t[i] -> [i, 0]; y[i] -> [i + 1, 1] }",'
            " as: [z.i, z.k]}",
        ),
        Example(
            "Two iterations at one time",
            SCALE,
            '- set_schedule: {block: y, map: "{ y[i, j] -> [i + j] }"}',
            refused="the map is not injective: it gives two iterations of 'y' one time",
        ),
        Example(
            "Iterations without a time",
            SCALE,
            '- set_schedule: {block: y, map: "{ y[i, j] -> [i, j] : j < 4 }"}',
            refused="the map gives some iterations of block 'y' no time",
        ),
        Example(
            "What is not affine",
            SCALE,
            '- set_schedule: {block: y, map: "{ y[i, j] -> [n * i + j] }"}',
            refused="`map` is not an affine map in isl's notation",
        ),
    )


def _taken(kernel: Kernel, block: Block, piece: Piece) -> tuple[tuple[Loop, ...], tuple[Loop, ...]]:
    """The loops around a block that stay, and those that the map takes."""
    here, count = edit.loops_around(edit.tree(kernel), block), loops_taken(piece)
    if count > len(here):
        raise CannotApply(
            f"the map takes {count} loops around block '{block.name}', which has {len(here)}"
        )
    return here[: len(here) - count], here[len(here) - count :]


def _inside(kernel: Kernel, outside: tuple[Loop, ...]) -> tuple[Stmt, ...]:
    """The statements in the innermost of the loops, or in none."""
    root = edit.tree(kernel)
    return edit.under(outside[-1]) if outside else root.body if isinstance(root, Seq) else (root,)


def _tidied(
    stmt: Stmt, given: tuple[str, ...], taken: frozenset[str], found: dict[str, int]
) -> Stmt:
    """The tree with terms gathered and a name of its own for each loop; `found` gets the coordinate
    of each.
    """
    match stmt:
        case Loop():
            name = edit.fresh(stmt.var, taken | found.keys())
            found[name] = given.index(stmt.var)
            body = _tidied(substitute(stmt.body, {stmt.var: Var(name)}), given, taken, found)
            lower, upper = normal(stmt.lower), normal(stmt.upper)
            return replace(stmt, var=name, lower=lower, upper=upper, body=body)
        case Seq(body_):
            return Seq(tuple(_tidied(s, given, taken, found) for s in body_))
        case Block():
            return replace(stmt, bindings=tuple(map(normal, stmt.bindings)))
        case _:
            return stmt


# ---------------------------------------------------------------- flow


def _flow(
    flow: Flow, timing: Mapping[str, Timed], new: Stmt, coordinates: Mapping[str, int]
) -> Flow:
    """The flow with new loops in `shared` where what was shared fixes their values."""
    old = {loop for part in timing.values() for loop in part.loops}
    around = {b.name: [x.var for x in edit.loops_around(new, b)] for b in blocks(new)}

    def moved(reader: str, source: Source) -> Source:
        kept = tuple(v for v in source.shared if v not in old)
        if not source.writers or not {reader, *source.writers} <= timing.keys():
            return replace(source, shared=kept)
        fixed = (
            v
            for v in around[reader]
            if all(
                v in around[w] and agree(timing[reader], timing[w], source.shared, coordinates[v])
                for w in source.writers
            )
        )
        return replace(source, shared=(*kept, *fixed))

    return {read: moved(read[0], source) for read, source in flow.items()}
