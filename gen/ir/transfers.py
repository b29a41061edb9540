"""What ranks hand each other: sends, receives and waits. Read as a part of `ir.nodes`.

The iterations of a distributed loop are ranks, which run its body side by side; what stands after
the loop runs when all of them are done. A rank is in each distributed loop the iteration of its
number. Of a buffer of scope RANK every rank has one: it sees what it has computed itself, or
received. All other memory that is allocated outside of the loop is seen by all ranks, and so are
arguments.

A buffer of scope MESSAGE is the way from one rank's memory to another's. A rank stores in it, sends
it to one rank, and then has an empty one. Another rank receives it, and may read what was stored.
Messages of one buffer from one rank to another come in the order in which they were sent. A
message to or from a rank that is not in the loop is none.
"""

from dataclasses import dataclass
from typing import final

from .expressions import Expr, Node


@dataclass(frozen=True, slots=True)
class Transfer(Node):
    """What a rank does with a message, in a distributed loop.

    message: a buffer of scope MESSAGE.
    """

    message: str


@final
@dataclass(frozen=True, slots=True)
class Send(Transfer):
    """Sends what the rank has stored in the message since it last did. If there is no such rank,
    nothing.

    synchronous: done only when the other rank has come to its Receive; an asynchronous one may be
        done before, or not. blocking: the rank goes on only when it is done; if not, a Wait does.
    """

    to: Expr
    synchronous: bool = False
    blocking: bool = True


@final
@dataclass(frozen=True, slots=True)
class Receive(Transfer):
    """Takes the next message that the rank `source` has sent here; without such a rank, nothing.

    blocking: the rank goes on only when it has it; if not, a Wait does.
    """

    source: Expr
    blocking: bool = True


@final
@dataclass(frozen=True, slots=True)
class Wait(Transfer):
    """The rank goes on when what it does with the message without blocking is done."""
