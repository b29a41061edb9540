"""Messages between ranks: each is received where it is sent to, and no ranks wait for ever.

Input: a tree. Output: nothing; raises Refused with a witness. What is in the messages is proved as
all memory is, since their places have the sender and the receiver as coordinates.

A blocking send may wait until the other rank comes to receive it, also one that is asynchronous:
MPI promises no room for what is under way. So where a rank waits, others must have done something
first, which must be earlier in some order of all that is done. Two are tried: ranks in lockstep,
and, of messages that stand in one sequence, ranks that take turns, from one end to the other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import islpy as isl

from ...ir.exchanges import Exchange, exchanges
from ...ir.nodes import Expr
from ...ir.transfers import Receive, Send, Wait
from ..sets.affine import NotAffine, affine, tuple_map
from ..sets.extract import Tree
from ..sets.order import IN, OUT, ordered
from ..sets.statement import Statement
from ..witness import Refused, Sample, Witness, partner, sample

Order = Callable[["Point", "Point"], isl.Map]
"""{instances of the one -> instances of the other : the first is earlier}"""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """A message as maps. rank: which dim its ranks are. sent, received: from what a rank does to
    what the other one does. send, receive: where they stand.
    """

    exchange: Exchange
    rank: int
    send: Statement
    receive: Statement
    sent: isl.Map
    received: isl.Map

    @property
    def name(self) -> str:
        return self.exchange.message


@final
@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """Where a rank may wait. needs: for other ranks to come to what they do with the message."""

    way: Way
    at: Statement
    needs: tuple[tuple[isl.Map, Statement], ...]


def check_messages(tree: Tree) -> None:
    """Raises Refused for a message that is not received, and for ranks that may wait for ever."""
    if not tree.transfers:
        return
    regions: dict[str, list[Way]] = {}
    for found in exchanges(tree.kernel.body):
        way = _way(tree, found)
        _check_met(way)
        regions.setdefault(found.ranks.var, []).append(way)
    for ways in regions.values():
        _check_progress(tree, ways)


def _way(tree: Tree, found: Exchange) -> Way:
    at = {id(transfer): s for transfer, s in tree.transfers}
    send, receive = at[id(found.send)], at[id(found.receive)]
    rank = send.dims.index(found.ranks.var)
    return Way(
        found,
        rank,
        send,
        receive,
        _to(send, rank, found.send.to, found),
        _to(receive, rank, found.receive.source, found),
    )


def _to(s: Statement, rank: int, peer: Expr, found: Exchange) -> isl.Map:
    """From a statement's instances to the same of the rank `peer`, where there is one."""
    try:
        to, lower, upper = (affine(e, s.at) for e in (peer, found.ranks.lower, found.ranks.upper))
    except NotAffine as e:
        raise Refused(
            f"which ranks '{found.message}' is sent to is not affine", span=found.send.span
        ) from e
    there = to.ge_set(lower).intersect(to.lt_set(upper))
    values = [s.at.values[dim] for dim in s.dims]
    values[rank] = to
    return tuple_map(tuple(values), s.at).intersect_domain(s.domain.intersect(there))


def _check_met(way: Way) -> None:
    """Refuses a send without a receive, and a receive without a send."""
    received = way.received.reverse()
    for have, lack, told in (
        (way.sent, received, "sends {0} to rank {1}, which does not receive it from there"),
        (way.received, way.sent.reverse(), "receives {0} from rank {1}, which does not send it"),
    ):
        alone = have.subtract(lack)
        if alone.is_empty():
            continue
        case = sample(alone.domain())
        mine, its = case.point[way.rank], partner(alone, case)[way.rank]
        raise Refused(
            f"rank {mine} {told.format(repr(way.name), its)}",
            Witness(case.sizes),
            way.exchange.send.span,
        )


# ---------------------------------------------------------------- waiting


def _points(way: Way, tree: Tree) -> Iterator[Point]:
    """Where ranks may wait for what a message needs."""
    sent, received = (way.sent, way.receive), (way.received, way.send)
    found = way.exchange
    for transfer, s in tree.transfers:
        match transfer:
            case Send(blocking=True) if transfer is found.send:
                yield Point(way, s, (sent,))
            case Receive(blocking=True) if transfer is found.receive:
                yield Point(way, s, (received,))
            case Wait() if transfer is found.wait:
                left = () if found.send.blocking else (sent,)
                yield Point(way, s, left if found.receive.blocking else (*left, received))
            case _:
                pass


def _check_progress(tree: Tree, ways: list[Way]) -> None:
    """Refuses messages of one distributed loop for which ranks may wait for each other."""
    points = [point for way in ways for point in _points(way, tree)]
    waits = {(a, b): _waits(tree, a, b) for a in points for b in points}
    for order in (_in_lockstep, *_in_turns(ways)):
        if all(w.is_subset(order(b, a).reverse()) for (a, b), w in waits.items()):
            return
    for (a, b), w in waits.items():
        circle = w.intersect(waits[b, a].reverse())
        if not circle.is_empty():
            raise _circle(a, b, circle)
    names = ", ".join(f"'{way.name}'" for way in ways)
    raise Refused(
        f"ranks may wait for each other: the proof knows no order in which {names} would be done",
        span=ways[0].exchange.send.span,
        hint=_HINT,
    )


_HINT = "with `blocking: false` ranks wait when all of them have sent"


def _waits(tree: Tree, a: Point, b: Point) -> isl.Map:
    """{a's instances -> those of b that must be done for the rank to go on}"""
    result = _before(tree, b.at, a.at, a.way.rank).reverse()
    for way, there in a.needs:
        result = result.union(way.apply_range(_before(tree, b.at, there, a.way.rank).reverse()))
    return result.coalesce()


def _before(tree: Tree, a: Statement, b: Statement, rank: int) -> isl.Map:
    """{a's instances -> b's instances : earlier, of one rank in one run of its loop}"""
    into = tree.parameters.add_dims(IN, len(a.dims)).add_dims(OUT, len(b.dims))
    result = ordered(a, b, into).intersect_domain(a.domain).intersect_range(b.domain)
    for k in range(rank + 1):
        result = result.equate(IN, k, OUT, k)
    return result


def _in_lockstep(a: Point, b: Point) -> isl.Map:
    return ordered(a.at, b.at, _between(a, b))


def _between(a: Point, b: Point) -> isl.Space:
    into = a.at.domain.get_space().map_from_domain_and_range(b.at.domain.get_space())
    return into.reset_tuple_id(IN).reset_tuple_id(OUT)


def _in_turns(ways: list[Way]) -> Iterator[Order]:
    """The order in which, in each iteration, ranks take turns with what stands together, if all
    messages stand in one sequence: so that who receives is there first.
    """
    first = ways[0]
    if any(way.exchange.sequence is not first.exchange.sequence for way in ways):
        return
    together = _together(ways)

    def order(a: Point, b: Point) -> isl.Map:
        k, dims = a.way.rank, len(a.at.dims)
        result, equal = isl.Map.empty(_between(a, b)), isl.Map.universe(_between(a, b))
        for dim in (*range(k), *range(k + 1, dims)):
            result = result.union(equal.order_lt(IN, dim, OUT, dim))
            equal = equal.equate(IN, dim, OUT, dim)
        (group, rises), (other, _) = together[a.way], together[b.way]
        if group != other:
            return result.union(equal) if group < other else result
        turn = equal.order_lt if rises else equal.order_gt
        same_rank = equal.equate(IN, k, OUT, k)
        result = result.union(turn(IN, k, OUT, k))
        return result.union(same_rank) if _position(a) < _position(b) else result

    yield order


def _position(point: Point) -> int:
    last = point.at.path[-1]
    assert isinstance(last, int)
    return last


def _together(ways: list[Way]) -> dict[Way, tuple[int, bool]]:
    """Groups of messages of which one starts before the other ends, and whether in a group the rank
    of the smaller number is first.
    """
    result: dict[Way, tuple[int, bool]] = {}
    group, end, rises = 0, -1, True
    for way in sorted(ways, key=lambda w: w.exchange.position(w.exchange.send)):
        found = way.exchange
        if found.position(found.send) > end:
            group += 1
            down = isl.Map.universe(way.sent.get_space()).order_gt(IN, way.rank, OUT, way.rank)
            rises = bool(way.sent.is_subset(down))
        end = max(end, found.position(found.wait or found.receive))
        result[way] = group, rises
    return result


def _circle(a: Point, b: Point, circle: isl.Map) -> Refused:
    case = sample(circle.domain())
    mine, its = case.point[a.way.rank], partner(circle, Sample(case.sizes, case.point))[b.way.rank]
    return Refused(
        f"ranks wait for each other: rank {mine} in {a.at.name}, and rank {its} in {b.at.name}",
        Witness(case.sizes),
        a.way.exchange.send.span,
        _HINT,
    )
