"""The early end of a loop. Read as a part of `ir.nodes`."""

from dataclasses import dataclass
from typing import final

from .expressions import Expr, Node


@final
@dataclass(frozen=True, slots=True)
class Leave(Node):
    """Ends the serial loop around it where the condition does not hold: neither the rest of the
    iteration runs nor any later one. Around that loop may be a vectorized one; what then remains of
    the lanes that are done changes nothing, so that code may go on until all of them are. Made by
    finishing alone (`lower.leaving`).
    """

    condition: Expr
