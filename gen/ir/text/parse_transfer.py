"""Reads the statements that send, receive and wait; a part of `ir.text.parser`."""

import ast

from ..nodes import Transfer
from ..transfers import Receive, Send, Wait
from ..types import INDEX
from .parse_expr import Names, expression


def transfer(
    statement: ast.stmt, word: str, message: str, given: list[ast.keyword], names: Names
) -> Transfer:
    at = names.span(statement)
    notes = {k.arg: k.value for k in given}
    flags = {k: v.value for k, v in notes.items() if isinstance(v, ast.Constant)}
    match word, notes:
        case "send", {"to": to} if notes.keys() <= {"to", "synchronous", "blocking"}:
            synchronous, blocking = flags.get("synchronous", False), flags.get("blocking", True)
            rank = expression(to, INDEX, names)
            return Send(message, rank, bool(synchronous), bool(blocking), span=at)
        case "receive", {"source": source} if notes.keys() <= {"source", "blocking"}:
            rank = expression(source, INDEX, names)
            return Receive(message, rank, bool(flags.get("blocking", True)), span=at)
        case "wait", {} if not notes:
            return Wait(message, span=at)
        case _:
            names.refuse(statement, f"cannot read '{ast.unparse(statement)}' here")
