"""receive: where a rank takes a message, and whether it waits for it there."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.exchanges import Exchange, exchange
from ...ir.nodes import Scope, Stmt
from ...ir.transfers import Wait
from ...ir.walk import blocks, loads, loops, replace_stmt, seq
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.tree import CannotApply, buffer_named, rebuild, tree
from ..examples import NEIGHBOURS, RANKS


@final
@dataclass(frozen=True)
class Receive(Primitive):
    """Receives a message later, so that a rank computes something before it waits: right before
    what computes a block, in the sequence in which the message is sent.

    With `blocking: false` the rank says where it is now that it is ready to receive, and waits for
    the message only then. One wait is for all that is done with a message without blocking.
    """

    buffer: str
    before: str
    blocking: bool = True

    name: ClassVar[str] = "receive"
    aliases: ClassVar[tuple[str, ...]] = ("recv",)
    layer: ClassVar[Layer] = Layer.COMMUNICATION
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "What needs no message, before a rank waits for one",
            RANKS,
            "- send: {buffer: t, loop: y.i_0, to: [1]}\n"
            "- peel: {loop: y.i_1, at: 1, as: [y.first, y.rest]}\n"
            "- after: {block: y_2, other: y, loop: y.i_0}\n"
            "- receive: {buffer: t_sent, before: y_2, blocking: false}",
            after="""\
def ranks(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n] @ rank, t_sent=float32[n] @ message):
        for t.i_0 in distributed((n + 3) // 4):
            for t.i_1 in range(4):
                with block("t", i=spatial(t.i_0 * 4 + t.i_1, n), where=t.i_0 * 4 + t.i_1 < n):
                    t[i] = x[i] * 2.0
        for y.i_0 in distributed((n + 3) // 4):
            with block(
                "t_sent",
                d0=spatial(4 * y.i_0 + 3, n),
                where=n >= 4 * y.i_0 + 5,
                origin=None,
            ):
                t_sent[d0] = t[d0]
            send(t_sent, to=y.i_0 + 1)
            receive(t_sent, source=y.i_0 - 1, blocking=False)
            for y.rest in range(1, 4):
                with block("y", i=spatial(y.i_0 * 4 + y.rest, n), where=y.i_0 * 4 + y.rest < n):
                    y[i] = t[max(i - 1, 0)] + t[i]
            wait(t_sent)
            with block("t_sent_in", d0=spatial(4 * y.i_0 - 1, n), where=y.i_0 >= 1, origin=None):
                t[d0] = t_sent[d0]
            for y.first in range(1):
                with block(
                    "y_2",
                    i=spatial(y.i_0 * 4 + y.first, n),
                    where=y.i_0 * 4 + y.first < n,
                    origin=y[i],
                ):
                    y[i] = t[max(i - 1, 0)] + t[i]
""",
        ),
        Example(
            "Ranks that would all wait in a send before any of them receives",
            NEIGHBOURS,
            "- send: {buffer: t, loop: y.i_0, to: [1, -1], as: [right, left]}\n"
            "- receive: {buffer: right, before: left_in}",
            refused="the proof was refused: ranks wait for each other: rank 0 in the send of"
            " 'right', and rank 1 in the send of 'left'",
        ),
        Example(
            "Where it is not sent yet",
            RANKS,
            "- send: {buffer: t, loop: y.i_0, to: [1]}\n- receive: {buffer: t_sent, before: t}",
            refused="'t' does not stand where 't_sent' is sent",
        ),
        Example(
            "After what reads it",
            RANKS,
            "- send: {buffer: t, loop: y.i_0, to: [1]}\n"
            "- peel: {loop: y.i_1, at: 1, as: [y.first, y.rest]}\n"
            "- receive: {buffer: t_sent, before: y.rest}",
            refused="the proof was refused: y_2[i=4] reads 't' before t_sent_in[d0=3] computes it",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        if buffer_named(state.kernel, self.buffer).scope is not Scope.MESSAGE:
            return f"'{self.buffer}' is no message"
        found = exchange(tree(state.kernel), self.buffer)
        if not found.receive.blocking:
            return f"'{self.buffer}' is received without blocking already"
        target = self._target(found)
        if target <= found.position(found.send):
            return f"'{self.before}' stands before '{self.buffer}' is sent"
        if any(found.sequence.body[target] is s for s in self._copies(found)):
            return f"'{self.before}' is what takes '{self.buffer}'"
        return None

    def _target(self, found: Exchange) -> int:
        """The statement of the sequence that the block or loop is in."""
        for k, s in enumerate(found.sequence.body):
            if self.before in {b.name for b in blocks(s)} | {x.var for x in loops(s)}:
                return k
        raise CannotApply(f"'{self.before}' does not stand where '{self.buffer}' is sent")

    def _copies(self, found: Exchange) -> tuple[Stmt, ...]:
        """What reads the message."""
        return tuple(
            s
            for s in found.sequence.body
            if any(x.buffer == self.buffer for b in blocks(s) for x in loads(b.body))
        )

    def rewrite(self, state: Scheduled) -> Scheduled:
        root = tree(state.kernel)
        found = exchange(root, self.buffer)
        copies, target = self._copies(found), found.sequence.body[self._target(found)]
        moved: tuple[Stmt, ...] = (found.receive, *copies)
        there: tuple[Stmt, ...] = moved
        if not self.blocking:
            moved = (*copies, *((found.wait,) if found.wait else ()))
            there = (Wait(self.buffer), *copies)
        body: list[Stmt] = []
        for s in found.sequence.body:
            if s is target:
                body += there
            if s is found.receive and not self.blocking:
                body.append(replace(found.receive, blocking=False))
            elif not any(s is x for x in moved):
                body.append(s)
        new = replace_stmt(root, found.sequence, seq(tuple(body)))
        return replace(state, kernel=rebuild(state.kernel, new))
