"""receive: where a rank takes a message, and whether it waits for it there."""

from dataclasses import replace

from ...ir.exchanges import Exchange, exchange
from ...ir.nodes import Scope, Stmt
from ...ir.transfers import Wait
from ...ir.walk import blocks, loads, loops, seq
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit.tree import CannotApply, buffer_named, replaced, tree
from ..examples import NEIGHBOURS, RANKS


class Receive(Primitive):
    """Receives a message later, so that a rank computes something before it waits: right before
    what computes a block, in the sequence in which the message is sent.

    With `blocking: false` the rank says where it is now that it is ready to receive, and waits for
    the message only then. One wait is for all that is done with a message without blocking.
    """

    buffer: str
    before: str
    blocking: bool = True

    aliases = ("recv",)

    def apply(self, state: Scheduled) -> Scheduled:
        if buffer_named(state.kernel, self.buffer).scope is not Scope.MESSAGE:
            raise CannotApply(f"'{self.buffer}' is not a message")
        found = exchange(tree(state.kernel), self.buffer)
        if not found.receive.blocking:
            raise CannotApply(f"'{self.buffer}' is received without blocking already")
        at, copies = self._target(found), self._copies(found)
        target = found.sequence.body[at]
        if at <= found.position(found.send):
            raise CannotApply(f"'{self.before}' stands before '{self.buffer}' is sent")
        if any(target is s for s in copies):
            raise CannotApply(f"'{self.before}' is what takes '{self.buffer}'")
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
        return replaced(state, found.sequence, seq(tuple(body)))

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

    EXAMPLES = (
        Example(
            "What needs no message, before a rank waits for one",
            RANKS,
            "- send: {buffer: t, loop: y.i_0, to: [1]}\n"
            "- peel: {loop: y.i_1, at: 1, as: [y.first, y.rest]}\n"
            "- after: {block: y_2, other: y, loop: y.i_0}\n"
            "- receive: {buffer: t_sent, before: y_2, blocking: false}",
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
