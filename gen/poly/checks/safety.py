"""Races and bounds: what is wrong with an execution whatever it computes.

Input: statements, or an execution. Output: nothing; raises Refused with a witness. Every iteration
variable must lie within its domain and every access within its buffer, no input may be written, and
no two iterations of a parallel or vectorized loop may meet at a place that one of them writes.
Lanes of a vectorized loop may update one place of one block: that is the lane tree. Nests in parts
of a symbolic size must be permutable.
"""

from collections.abc import Sequence

import islpy as isl

from ...ir.nodes import Intent, IterVar, LoopKind, Update, Var
from ...ir.walk import loads
from ..sets.affine import NotAffine, affine
from ..sets.order import IN, OUT, Relations, common, space
from ..sets.statement import Access, LoopLevel, Statement
from ..values.roles import Execution
from ..witness import Refused, Witness, partner, sample


def check_bounds(statements: Sequence[Statement]) -> None:
    """Raises Refused for an access outside its buffer, and for a write to an input."""
    for s in statements:
        for access in (*s.guards, *s.reads, *s.writes):
            outside = access.place.subtract_range(access.storage.box)
            if outside.is_empty():
                continue
            case = sample(outside.domain())
            place = partner(outside, case)[access.storage.depth :]
            instance = s.describe(case)
            verb = "write" if access in s.writes else "read"
            # Of an index that is not affine, the proof knows limits: the place need not be reached.
            verb = f"may {verb}" if access.free else f"{verb}s"
            how = ", by an index that is not affine," if access.free else ""
            name = f"'{access.storage.name}'{how}"
            read = loads(s.block.body)[access.number] if access in s.reads else None
            raise Refused(
                f"{instance} {verb} {name} outside its bounds, at {list(place)}",
                Witness(case.sizes, (instance,), access.storage.name, place),
                (read and read.span) or s.block.span,
            )
        for write in s.writes:
            parameter = write.storage.parameter
            if parameter and parameter.intent is Intent.IN:
                raise Refused(
                    f"block '{s.name}' writes '{write.storage.name}', an input", span=s.block.span
                )


def check_domains(statements: Sequence[Statement]) -> None:
    """Raises Refused where an iteration variable leaves the domain that its block declares."""
    for s in statements:
        inside = [(v, found) for v in s.block.iters if (found := _inside(v, s)) is not None]
        all_ = isl.Set.universe(s.domain.get_space())
        for _, found in inside:
            all_ = all_.intersect(found)
        if s.domain.is_subset(all_):
            continue
        for v, found in inside:
            alien = s.domain.subtract(found)
            if alien.is_empty():
                continue
            case = sample(alien)
            instance = s.describe(case)
            raise Refused(
                f"{instance} runs, where '{v.name}' is outside its domain",
                Witness(case.sizes, (instance,)),
                s.block.span,
            )


def _inside(v: IterVar, s: Statement) -> isl.Set | None:
    """Where an iteration variable is in its domain; None for a domain that inputs bound, of which
    the loops' bounds are matched instead.
    """
    try:
        value, lower, upper = (affine(e, s.at) for e in (Var(v.name), v.lower, v.upper))
    except NotAffine:
        return None
    return value.ge_set(lower).intersect(value.lt_set(upper))


def check_races(run: Execution, buffers: frozenset[str]) -> None:
    """Raises Refused for two iterations of a parallel or vectorized loop that meet at a place of
    one of the buffers.
    """
    for level, depth, inside in _parallel_levels(run):
        for s in inside:
            for w in s.writes:
                if w.storage.way and LoopKind.DISTRIBUTED in level.kinds:
                    continue  # what ranks hand each other
                if w.storage.name not in buffers or depth in w.storage.kept:
                    continue  # allocated inside the loop: a place of its own in each iteration
                for other in inside:
                    for access in (*other.writes, *other.reads):
                        if access.storage is w.storage:
                            _check_pair(run.relations, level, depth, w, access)


def check_tiles(run: Execution, buffers: frozenset[str]) -> None:
    """Raises Refused for two iterations of a nest cut into parts of a symbolic size that depend on
    each other by one of the buffers, and of which the earlier is ahead in some loop: it may be in a
    later part.
    """
    for a in run.tree.statements:
        for b in run.tree.statements:
            for level, depth in _turned(a, b):
                for x in (*a.writes, *a.reads):
                    for y in (*b.writes, *b.reads):
                        meet = x.storage is y.storage and x.storage.name in buffers
                        if meet and (x in a.writes or y in b.writes):
                            _check_ahead(run.relations, level, depth, x, y)


def _turned(a: Statement, b: Statement) -> list[tuple[LoopLevel, int]]:
    """The loops of turned nests that both are in, and the dims before each."""
    result, depth = [], 0
    for level in common(a, b):
        if level.turned is not None:
            result.append((level, depth))
        depth += len(level.dims)
    return result


def _check_ahead(relations: Relations, level: LoopLevel, depth: int, x: Access, y: Access) -> None:
    adding = x is y and isinstance(x.statement.block.body, Update)
    if adding:
        return  # terms of one reduction, in any order
    pairs = relations.meet(x, y).intersect(relations.before(x, y))
    k = 0
    for outer in x.statement.levels:
        if outer.turned == level.turned:
            break
        for _ in outer.dims:
            pairs = pairs.equate(IN, k, OUT, k)
            k += 1
    ahead = pairs.intersect(isl.Map.universe(pairs.get_space()).order_gt(IN, depth, OUT, depth))
    if ahead.is_empty():
        return
    case = sample(ahead.domain())
    first = x.statement.describe(case)
    second = y.statement.describe(case, partner(ahead, case))
    place = partner(x.place, case)[x.storage.depth :]
    raise Refused(
        f"{first} must run before {second}, since both touch '{x.storage.name}', but may be in a"
        f" later part of loop '{level.loops[0]}'",
        Witness(case.sizes, (first, second), x.storage.name, place),
        x.statement.block.span,
    )


def _parallel_levels(run: Execution) -> list[tuple[LoopLevel, int, list[Statement]]]:
    """The loops whose iterations run in any order, the dims around them, and what is inside."""
    found: dict[LoopLevel, tuple[int, list[Statement]]] = {}
    for s in run.tree.statements:
        depth = 0
        for level in s.levels:
            if any(kind.is_unordered for kind in level.kinds):
                found.setdefault(level, (depth, []))[1].append(s)
            depth += len(level.dims)
    return [(level, depth, inside) for level, (depth, inside) in found.items()]


def _check_pair(
    relations: Relations, level: LoopLevel, depth: int, w: Access, other: Access
) -> None:
    both_update = isinstance(w.statement.block.body, Update) and other in w.statement.writes
    if both_update and not {LoopKind.PARALLEL, LoopKind.DISTRIBUTED} & set(level.kinds):
        return
    meet = relations.meet(w, other)
    equal = isl.Map.universe(space(relations.tree.parameters, w, other))
    for k in range(depth):
        equal = equal.equate(IN, k, OUT, k)
    for k in range(depth, depth + len(level.dims)):
        for one, two in ((IN, OUT), (OUT, IN)):
            race = meet.intersect(equal.order_lt(one, k, two, k))
            if not race.is_empty():
                raise _race(level, w, other, race)
        equal = equal.equate(IN, k, OUT, k)


def _race(level: LoopLevel, w: Access, other: Access, race: isl.Map) -> Refused:
    case = sample(race.domain())
    writer = w.statement.describe(case)
    meeting = other.statement.describe(case, partner(race, case))
    verb = "writes" if other in other.statement.writes else "reads"
    place = partner(w.place, case)[w.storage.depth :]
    kind = min(k.value for k in level.kinds if k.is_unordered)
    return Refused(
        f"{kind} loop '{level.loops[0]}' has a race: {writer} writes '{w.storage.name}' and"
        f" {meeting} {verb} it in another iteration",
        Witness(case.sizes, (writer, meeting), w.storage.name, place),
        w.statement.block.span,
    )
