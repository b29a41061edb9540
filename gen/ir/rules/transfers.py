"""The rules of what ranks hand each other, and of who may touch a rank's memory.

Input: a kernel whose other rules have been checked. Output: nothing, or an IRError naming the node.
"""

from .. import nodes as ir
from ..exchanges import transfers
from ..transfers import Receive, Send, Wait
from ..types import INDEX
from ..walk import accessed, ancestors, blocks, loads, statements, targets, walk
from .expressions import Environment, expect, refuse


def check_transfers(kernel: ir.Kernel) -> None:
    """Raises IRError for a message that is not sent, received and waited for as it must be, and for
    a rank's memory where no rank is.
    """
    messages: set[str] = set()
    for node in statements(kernel.body):
        if isinstance(node, ir.Allocate):
            for buffer in node.buffers:
                if buffer.scope is ir.Scope.MESSAGE:
                    messages.add(buffer.name)
                    _check_message(buffer, node, kernel)
                elif buffer.scope is ir.Scope.RANK:
                    _check_owned(buffer, node, kernel)
    for node in statements(kernel.body):
        if isinstance(node, ir.Transfer) and node.message not in messages:
            refuse(node, f"'{node.message}' is sent or received, but no message in scope")


def _check_owned(buffer: ir.Buffer, at: ir.Allocate, kernel: ir.Kernel) -> None:
    for block in blocks(at.body):
        if buffer.name in accessed(block) and _ranks(kernel, block) is None:
            refuse(
                block,
                f"block '{block.name}' accesses '{buffer.name}', which each rank has for itself, in"
                " no distributed loop",
            )


def _ranks(kernel: ir.Kernel, stmt: ir.Stmt) -> ir.Loop | None:
    """The distributed loop around a statement."""
    around = (s for s in ancestors(kernel.body, stmt) if isinstance(s, ir.Loop))
    return next((loop for loop in around if loop.kind is ir.LoopKind.DISTRIBUTED), None)


# ---------------------------------------------------------------- one message


def _check_message(buffer: ir.Buffer, at: ir.Allocate, kernel: ir.Kernel) -> None:
    name, found = buffer.name, transfers(at.body, buffer.name)
    order = [type(x) for x in found]
    if order[:2] != [Send, Receive] or order[2:] not in ([], [Wait]):
        how = ", ".join(x.__name__.lower() for x in order) or "nothing"
        refuse(
            found[0] if found else buffer,
            f"a message is sent, received, and waited for at most once, in this order; of '{name}'"
            f" there is {how}",
        )
    unfinished = not all(x.blocking for x in found if isinstance(x, Send | Receive))
    if unfinished != (Wait in order):
        what = "nothing waits for" if unfinished else "there is nothing to wait for of"
        refuse(found[-1], f"{what} '{name}'")
    path = ancestors(at.body, found[0])
    sequence = path[-1] if path else at.body
    if not isinstance(sequence, ir.Seq) or not all(
        any(x is s for s in sequence.body) for x in found
    ):
        refuse(found[0], f"what is done with '{name}' does not stand in one sequence")
    _check_loops(found[0], path)
    around = Environment(
        {**dict.fromkeys(kernel.dims, INDEX), **{s.name: s.dtype for s in kernel.scalars}}
        | {s.var: INDEX for s in ancestors(kernel.body, sequence) if isinstance(s, ir.Loop)},
        {},
    )
    for x in found:
        _check_rank(x, around)
    _check_blocks(name, sequence, found, at)


def _check_loops(send: ir.Transfer, path: tuple[ir.Stmt, ...]) -> None:
    loops = [s for s in path if isinstance(s, ir.Loop)]
    if not any(loop.kind is ir.LoopKind.DISTRIBUTED for loop in loops):
        refuse(
            send,
            f"'{send.message}' is sent in no distributed loop, or is allocated inside of it: two"
            " ranks must have it",
        )
    for loop in loops:
        if loop.kind not in (ir.LoopKind.DISTRIBUTED, ir.LoopKind.SERIAL, ir.LoopKind.UNROLLED):
            refuse(send, f"'{send.message}' is sent in {loop.kind.value} loop '{loop.var}'")


def _check_rank(transfer: ir.Transfer, around: Environment) -> None:
    match transfer:
        case Send(message, to):
            expect(to, INDEX, f"the rank that '{message}' is sent to", around)
        case Receive(message, source):
            expect(source, INDEX, f"the rank that '{message}' is received from", around)
        case _:
            pass


def _check_blocks(
    name: str, sequence: ir.Seq, found: tuple[ir.Transfer, ...], at: ir.Allocate
) -> None:
    """Stored before it is sent, read after it is there."""
    places = [next(k for k, s in enumerate(sequence.body) if s is x) for x in found]
    receive = found[1]
    assert isinstance(receive, Receive)
    there = places[1] if receive.blocking else places[2]
    position = {id(b): k for k, s in enumerate(sequence.body) for b in walk(s)}
    for block in blocks(at.body):
        if name not in accessed(block):
            continue
        k = position.get(id(block))
        if any(x.buffer == name for x in loads(block)) and (k is None or k < there):
            refuse(block, f"block '{block.name}' reads '{name}' where it is not received")
        if any(t.buffer == name for t in targets(block.body)):
            if not isinstance(block.body, ir.Store):
                refuse(block, f"block '{block.name}' does more to '{name}' than to store")
            if k is None or k > places[0]:
                refuse(block, f"block '{block.name}' stores in '{name}' where it is not sent after")
