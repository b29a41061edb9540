"""The messages of a tree: who sends and who receives them.

Input: a tree. Output: its exchanges, each a message with the statements that send and receive it.
"""

from dataclasses import dataclass
from typing import final

from .nodes import Allocate, Loop, LoopKind, Node, Scope, Seq, Stmt, Transfer
from .transfers import Receive, Send, Wait
from .walk import ancestors, children, remembered, statements


@final
@dataclass(frozen=True, slots=True)
class Exchange:
    """A message and what is done with it, in the order of the text.

    sequence: the Seq whose statements all three are. around: the loops around that, from the
    Allocate of the message inward.
    """

    send: Send
    receive: Receive
    wait: Wait | None
    sequence: Seq
    around: tuple[Loop, ...]

    @property
    def message(self) -> str:
        return self.send.message

    @property
    def ranks(self) -> Loop:
        """The distributed loop; the verifier has seen to it that there is one."""
        return next(loop for loop in self.around if loop.kind is LoopKind.DISTRIBUTED)

    def position(self, transfer: Transfer) -> int:
        """Which statement of the sequence it is."""
        return next(k for k, s in enumerate(self.sequence.body) if s is transfer)


@remembered
def has_transfer(node: Node) -> bool:
    return any(isinstance(n, Transfer) for n in statements(node))


def transfers(stmt: Node, message: str) -> tuple[Transfer, ...]:
    """What is done with a message, in textual order."""
    return tuple(n for n in statements(stmt) if isinstance(n, Transfer) and n.message == message)


def exchange(stmt: Stmt, message: str) -> Exchange:
    """That of one message, which the statement is the body of the Allocate of. Verified."""
    found = transfers(stmt, message)
    send = next(x for x in found if isinstance(x, Send))
    receive = next(x for x in found if isinstance(x, Receive))
    wait = next((x for x in found if isinstance(x, Wait)), None)
    path = ancestors(stmt, send)
    sequence = path[-1]
    assert isinstance(sequence, Seq)
    return Exchange(send, receive, wait, sequence, tuple(s for s in path if isinstance(s, Loop)))


def exchanges(node: Node) -> tuple[Exchange, ...]:
    """All of a verified tree, in the order of their Allocates."""
    found: list[Exchange] = []
    if isinstance(node, Allocate):
        mine = (b.name for b in node.buffers if b.scope is Scope.MESSAGE)
        found = [exchange(node.body, name) for name in mine]
    return (*found, *(x for child in children(node) for x in exchanges(child)))
