"""Ranks in the interpreter: each runs up to what another one must do first, then another one does.

Input: a distributed loop, a Machine, and what builds statements without transfers. Output: the
function that runs the loop, of which each iteration is a rank with memory of its own. Which of the
ranks that can go on does is drawn, and so is whether an asynchronous send is done before the other
rank receives; where no orders are drawn, it is not. Raises InterpError naming the ranks where none
can go on, and for messages that are left over.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..exchanges import has_transfer
from ..nodes import Barrier, Loop, Transfer
from ..transfers import Receive, Send, Wait
from ..walk import accessed, statements, walk
from .evaluate import InterpError
from .machine import RANK, Cells, Machine, expression, received
from .source import Thunk
from .threads import Action, Build, paused

Key = tuple[str, int, int]
"""A message, the rank that sends it, and the one that receives it."""


@dataclass(frozen=True, slots=True)
class _Need:
    """What a rank waits for: another one, and what that must do. then: what follows at once."""

    met: Callable[[], bool]
    rank: int
    what: str
    then: Action = lambda: None


@dataclass(slots=True)
class _Rank:
    """Where a rank is, and what it has. left: what it has begun without blocking, by message."""

    number: int
    steps: Iterator[Barrier | Transfer]
    values: dict[str, object]
    places: dict[str, Cells]
    needs: list[_Need] = field(default_factory=list)
    left: dict[str, list[_Need]] = field(default_factory=dict)
    ended: bool = False

    def can_go_on(self) -> bool:
        return not self.ended and all(need.met() for need in self.needs)


@dataclass(frozen=True, slots=True)
class _Post:
    """The messages of one run of a loop, which has the ranks `first` to below `end`.

    sent: in order, by way. begun: how many of them the other rank has come to receive.
    """

    first: int
    end: int
    peers: dict[int, Thunk]
    sent: dict[Key, list[Cells]] = field(default_factory=dict)
    begun: dict[Key, int] = field(default_factory=dict)


def distributed(loop: Loop, machine: Machine, build: Build) -> Action:
    lower, upper = expression(loop.lower, machine), expression(loop.upper, machine)
    used = accessed(loop) | {n.message for n in statements(loop) if isinstance(n, Transfer)}
    mine = [x for name in sorted(used) for x in (name, received(name))]
    values, places = machine.values, machine.places
    stops = has_transfer(loop.body)
    steps = paused(loop.body, machine, build)
    peers = {id(x): _peer(x, machine) for x in walk(loop) if isinstance(x, Send | Receive)}

    def start(number: int) -> None:
        values[loop.var] = values[RANK] = number
        places.update({x: machine.owned[x].of(number) for x in mine if x in machine.owned})

    def run() -> None:
        first, end = lower(), upper()
        ranks = []
        for number in machine.shuffled(range(first, end)):
            start(number)
            if stops:
                ranks.append(_Rank(number, steps(), dict(values), dict(places)))
            else:
                list(steps())
        _run({rank.number: rank for rank in ranks}, _Post(first, end, peers), machine)
        values.pop(RANK, None)

    return run


def _peer(transfer: Send | Receive, machine: Machine) -> Thunk:
    return expression(transfer.to if isinstance(transfer, Send) else transfer.source, machine)


def _run(ranks: dict[int, _Rank], post: _Post, machine: Machine) -> None:
    """The ranks, to their end."""
    while not all(rank.ended for rank in ranks.values()):
        ready = machine.shuffled(rank for rank in ranks.values() if rank.can_go_on())
        if not ready:
            raise InterpError(_stuck(ranks))
        _go_on(ready[0], post, machine)
    for (message, sender, receiver), sent in post.sent.items():
        if len(sent) > post.begun.get((message, sender, receiver), 0):
            raise InterpError(
                f"rank {sender} sends '{message}' to rank {receiver}, which never receives it"
            )


def _go_on(rank: _Rank, post: _Post, machine: Machine) -> None:
    machine.values.update(rank.values)
    machine.places.update(rank.places)
    for need in rank.needs:
        need.then()
    stop = next(rank.steps, None)
    rank.needs, rank.ended = [], stop is None
    match stop:
        case Send():
            _send(rank, stop, post, machine)
        case Receive():
            _receive(rank, stop, post, machine)
        case Wait(message):
            rank.needs = rank.left.pop(message, [])
        case _:
            pass
    rank.values, rank.places = dict(machine.values), dict(machine.places)


def _send(rank: _Rank, send: Send, post: _Post, machine: Machine) -> None:
    name, to = send.message, post.peers[id(send)]()
    parcel = machine.places[name]
    machine.places[name] = machine.owned[name].make()
    if not post.first <= to < post.end:
        return
    key = name, rank.number, to
    sent = post.sent.setdefault(key, [])
    sent.append(parcel)
    number = len(sent)
    if send.synchronous or machine.random is None or machine.random.integers(2):
        need = _Need(lambda: post.begun.get(key, 0) >= number, to, f"receive '{name}'")
        _begin(rank, name, need, blocking=send.blocking)


def _receive(rank: _Rank, receive: Receive, post: _Post, machine: Machine) -> None:
    name, source = receive.message, post.peers[id(receive)]()
    machine.places[received(name)] = machine.owned[name].make()
    if not post.first <= source < post.end:
        return
    key = name, source, rank.number
    number = post.begun[key] = post.begun.get(key, 0) + 1

    def take() -> None:
        machine.places[received(name)] = post.sent[key][number - 1]

    need = _Need(lambda: len(post.sent.get(key, ())) >= number, source, f"send '{name}'", take)
    _begin(rank, name, need, blocking=receive.blocking)


def _begin(rank: _Rank, message: str, need: _Need, *, blocking: bool) -> None:
    if blocking:
        rank.needs = [need]
    else:
        rank.left.setdefault(message, []).append(need)


def _stuck(ranks: dict[int, _Rank]) -> str:
    """Which ranks wait for which: for one that has ended, or in a circle."""
    waits = {
        rank.number: next(need for need in rank.needs if not need.met())
        for rank in ranks.values()
        if not rank.ended
    }
    chain: list[int] = []
    at = min(waits)
    while at in waits and at not in chain:
        chain.append(at)
        at = waits[at].rank
    if at in waits:
        chain = chain[chain.index(at) :]
        what = "ranks wait for each other: "
    else:
        chain = chain[-1:]
        what = ""
    told = [f"rank {n} waits for rank {waits[n].rank} to {waits[n].what}" for n in chain]
    return what + ", ".join(told) + ("" if at in waits else ", which has ended")
