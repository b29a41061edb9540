"""receive: where a rank takes a message, and whether it waits for it there."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

from ...ir.exchanges import Exchange, exchange
from ...ir.nodes import Scope, Stmt
from ...ir.transfers import Wait
from ...ir.walk import blocks, loads, loops, replace_stmt, seq
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit import CannotApply, buffer_named, rebuild, tree


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
    EXAMPLES: ClassVar[tuple[Example, ...]] = ()

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
