"""send: ranks hand each other what they have computed."""

from dataclasses import replace

from ...ir import nodes as ir
from ...ir import transfers
from ...ir.algebra import TRUE, add, index, mod
from ...ir.index.bounds import normal
from ...ir.walk import ancestors, blocks, loads, replace_stmt
from ...poly.certificate import Flow, Scheduled, Source
from ...poly.queries.code import generate
from ...poly.queries.halo import Elements, Halo, Way, halo
from ...poly.witness import sample
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.points import context
from ..edit.tree import CannotApply
from ..examples import NEIGHBOURS, RANKS, RING


class Send(Primitive):
    """Gives each rank a buffer of its own, and sends what others read of it, in messages.

    `loop` is the distributed loop whose iterations read what other ranks have computed. `to` says
    to which ranks each sends: 1 is the next one, -1 the one before. It sends what the sender has
    computed and the receiver needs and does not have. That is copied into a message before anything
    else in the loop, sent, received, and copied into the receiver's buffer. With `periodic` the
    ranks are a ring: the first one is next to the last.

    A blocking send is done when the message may be changed again, which may be before the other
    rank receives it; if `synchronous`, it is not. Either may wait, so blocking messages go one
    after another, and from one end of the ranks to the other. With `blocking: false` all ranks
    send first, and wait at the end of the loop's body.
    """

    buffer: str
    loop: str
    to: tuple[int, ...]
    synchronous: bool = False
    blocking: bool = True
    periodic: bool = False
    as_: tuple[str, ...] = ()

    aliases = ("create_xfer", "gen_communication")

    def _halo(self, kernel: ir.Kernel, loop: ir.Loop) -> Halo:
        """What the ranks need of each other. Raises CannotApply where they cannot send it."""
        buffer = edit.buffer_named(kernel, self.buffer)
        if edit.is_argument(kernel, self.buffer):
            raise CannotApply(f"'{self.buffer}' is an argument, which all ranks see")
        if buffer.scope is ir.Scope.RANK:
            raise CannotApply(f"each rank has a '{self.buffer}' already")
        if buffer.scope not in (ir.Scope.AUTO, ir.Scope.HEAP):
            raise CannotApply(f"'{self.buffer}' is {buffer.scope.value} memory, and no rank's")
        if loop.kind is not ir.LoopKind.DISTRIBUTED:
            raise CannotApply(f"loop '{self.loop}' is {loop.kind.value}, and not distributed")
        if not self.to or 0 in self.to or len(set(self.to)) < len(self.to):
            raise CannotApply("`to` has the distances to other ranks, each once: [1] is the next")
        if self.as_ and len(self.as_) != len(self.to):
            raise CannotApply(f"`as` names {len(self.as_)} messages, and there are {len(self.to)}")
        if not any(self.buffer == x.buffer for b in blocks(loop) for x in loads(b.body)):
            raise CannotApply(f"loop '{self.loop}' does not read '{self.buffer}'")
        found = halo(kernel, self.buffer, loop)
        if isinstance(found, str):
            raise CannotApply(
                f"block '{found}' accesses '{self.buffer}' in no distributed loop, or in one"
                " that is fused or runs over parts of a symbolic size"
            )
        made = (n for m in self._messages() for n in (m, _into(m)))
        edit.require_free(kernel, made)
        self._require_there(found, kernel, loop)
        return found

    def _peer(self, loop: ir.Loop, distance: int) -> ir.Expr:
        """The rank that many further."""
        peer = normal(add(ir.Var(loop.var), distance))
        return mod(peer, loop.upper) if self.periodic else peer

    def _way(self, found: Halo, kernel: ir.Kernel, loop: ir.Loop, distance: int) -> Way:
        if not self.periodic:
            return found.along(distance)
        if loop.lower != index(0):
            raise CannotApply(
                f"the ranks of loop '{loop.var}' do not start at 0, so they are not a ring"
            )
        way = found.around(self._peer(loop, distance), kernel, loop)
        if way is None:
            raise CannotApply(
                f"{distance} may be more than a few times around the ranks of loop '{loop.var}'"
            )
        return way

    def _require_there(self, found: Halo, kernel: ir.Kernel, loop: ir.Loop) -> None:
        """Refuses to send what nothing needs, or who sends it does not have."""
        for distance in self.to:
            sent = found.sent(self._way(found, kernel, loop, distance))
            if sent.is_empty():
                way = f"{distance} before it" if distance > 0 else f"{-distance} after it"
                raise CannotApply(
                    f"no rank needs of '{self.buffer}' what the rank {way} would send"
                )
            absent = sent.domain().subtract(found.ranks)
            if not absent.is_empty():
                case = sample(absent)
                rank, sizes = case.point[-1], ", ".join(f"{d}={n}" for d, n in case.sizes.items())
                raise CannotApply(
                    f"rank {rank} has computed what rank {rank + distance} needs of"
                    f" '{self.buffer}', but is not in loop '{self.loop}' to send it, for example"
                    f" where {sizes}"
                )

    def _messages(self) -> tuple[str, ...]:
        if self.as_:
            return self.as_
        first = f"{self.buffer}_sent"
        return tuple(first if k == 0 else f"{first}_{k + 1}" for k, _ in enumerate(self.to))

    def apply(self, state: Scheduled) -> Scheduled:
        kernel, loop = state.kernel, edit.loop_named(state.kernel, self.loop)
        old = edit.buffer_named(kernel, self.buffer)
        found = self._halo(kernel, loop)
        messages = self._messages()
        out: list[tuple[ir.Stmt, ...]] = []
        for name, distance in zip(messages, self.to, strict=True):
            pack, unpack = _copy(name, name, old), _copy(_into(name), name, old, back=True)
            to, source = self._peer(loop, distance), self._peer(loop, -distance)
            way = self._way(found, kernel, loop, distance)
            out.append(
                (
                    _looped(kernel, loop, found, found.sent(way), pack),
                    transfers.Send(name, to, self.synchronous, self.blocking),
                    transfers.Receive(name, source),
                    _looped(kernel, loop, found, found.received(way), unpack),
                )
            )
        body = self._ordered(out, edit.under(loop))
        owned = replace(old, scope=ir.Scope.RANK)
        scope = ir.Scope.MESSAGE
        made = (ir.Buffer(x, old.dtype, old.shape, scope, span=old.span) for x in messages)
        all_ = (*(owned if b is old else b for b in edit.temporaries(kernel)), *made)
        new = edit.rebuild(
            kernel, replace_stmt(edit.tree(kernel), loop, edit.with_body(loop, body)), buffers=all_
        )
        return Scheduled(new, self._flow(state, loop))

    def _ordered(
        self, messages: list[tuple[ir.Stmt, ...]], body: tuple[ir.Stmt, ...]
    ) -> tuple[ir.Stmt, ...]:
        if self.blocking:
            return (*(s for message in messages for s in message), *body)
        first = (s for message in messages for s in message[:2])
        then = (s for message in messages for s in message[2:])
        return (*first, *then, *body, *map(transfers.Wait, self._messages()))

    def _flow(self, state: Scheduled, loop: ir.Loop) -> Flow:
        """What is sent comes from where the loop's reads came from; they, and those after the loop,
        may take it from what was received.
        """
        all_ = blocks(edit.tree(state.kernel))
        after = all_[next(k for k, b in enumerate(all_) if b is blocks(loop)[0]) :]
        readers = [
            (b.name, k)
            for b in after
            for k, load in enumerate(loads(b.body))
            if load.buffer == self.buffer
        ]
        outside = tuple(x.var for x in edit.loops_around(edit.tree(state.kernel), loop))
        sources = [state.flow[r] for r in readers]
        writers = tuple(dict.fromkeys(w for s in sources for w in s.writers))
        common = tuple(v for v in outside if all(v in s.shared for s in sources))
        result = dict(state.flow)
        received = tuple(map(_into, self._messages()))
        for r in readers:
            result[r] = replace(result[r], writers=(*result[r].writers, *received))
        for message in self._messages():
            result[message, 0] = Source(writers, shared=common)
            result[_into(message), 0] = Source((message,), shared=outside)
        return result

    EXAMPLES = (
        Example(
            "The last element that a rank has computed, to the next one",
            RANKS,
            "- send: {buffer: t, loop: y.i_0, to: [1]}",
        ),
        Example(
            "Both neighbours: all ranks send before any of them waits",
            NEIGHBOURS,
            "- send: {buffer: t, loop: y.i_0, to: [1, -1], blocking: false, as: [right, left]}",
        ),
        Example(
            "Around a ring: the first rank needs what the last one has",
            RING,
            "- send: {buffer: t, loop: y.r, to: [1], blocking: false, periodic: true}",
        ),
        Example(
            "A ring of ranks that all wait for the next one",
            RING,
            "- send: {buffer: t, loop: y.r, to: [1], periodic: true}",
            refused="the proof was refused: ranks wait for each other: rank 0 in the send of"
            " 't_sent', and rank 0 in the send of 't_sent'",
        ),
        Example(
            "To one neighbour, where the other one needs something, too",
            NEIGHBOURS,
            "- send: {buffer: t, loop: y.i_0, to: [1]}",
            refused="the proof was refused: y[i=3] needs t[4] from 't', but rank 0 has neither"
            " computed nor received it",
        ),
        Example(
            "What no rank needs",
            RANKS,
            "- send: {buffer: t, loop: y.i_0, to: [1, 2]}",
            refused="no rank needs of 't' what the rank 2 before it would send",
        ),
        Example(
            "An argument",
            RANKS,
            "- send: {buffer: x, loop: y.i_0, to: [1]}",
            refused="'x' is an argument, which all ranks see",
        ),
    )


def _into(message: str) -> str:
    """The block that copies a message into the receiver's buffer."""
    return f"{message}_in"


def _copy(name: str, message: str, old: ir.Buffer, *, back: bool = False) -> ir.Block:
    """The copy of each element to a message, or back; each is in a loop named after it."""
    axes = tuple(f"d{k}" for k, _ in enumerate(old.shape))
    iters = tuple(ir.IterVar(d, index(0), e) for d, e in zip(axes, old.shape, strict=True))
    at = tuple(map(ir.Var, axes))
    to, source = (old.name, message) if back else (message, old.name)
    body = ir.Store(ir.Destination(to, at), ir.Load(source, at, old.dtype))
    return ir.Block(name, iters, tuple(ir.Var(f"{name}.{d}") for d in axes), TRUE, body)


def _looped(
    kernel: ir.Kernel, loop: ir.Loop, found: Halo, elements: Elements, block: ir.Block
) -> ir.Stmt:
    """The block in loops over the elements of the rank that runs an iteration of the loop."""
    names = tuple(f"{block.name}.{v.name}" for v in block.iters)
    above = (*ancestors(edit.tree(kernel), loop), loop)
    part = found.timed(block.name, names, loop.var, elements)
    return _tidied(generate([(part, block)], context(kernel, above), names))


def _tidied(stmt: ir.Stmt) -> ir.Stmt:
    """The same with terms of bounds gathered."""
    if not isinstance(stmt, ir.Loop):
        return stmt
    lower, upper = normal(stmt.lower), normal(stmt.upper)
    return replace(stmt, lower=lower, upper=upper, body=_tidied(stmt.body))
