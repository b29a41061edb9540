"""Messages between ranks: what the proof refuses, and that it is right where the interpreter is."""

import numpy as np
import pytest

from gen.ir.inits import explicit_inits
from gen.ir.interpret.interp import InterpError, run
from gen.ir.nodes import Kernel
from gen.poly.certificate import Scheduled, Source
from gen.poly.decisions import parts
from gen.poly.prove import prove
from gen.poly.sets.extract import outline
from gen.poly.witness import Refused
from gen.poly.workbench import Workbench

from .script import accept, block, certificate, kernel, nest, refusal

PLAIN = kernel(
    "p, x: float32[p], y: Out[float32[p]]",
    nest("for t.r in range(p)", block("t", "r=t.r", "t[r] = x[r] * 2.0")),
    nest("for y.r in range(p)", block("y", "r=y.r", "y[r] = t[r] + t[max(r - 1, 0)]")),
    temporaries="t=float32[p]",
)
FLOW = {
    "m_0": Source(("t",)),
    "m_in_0": Source(("m",)),
    "y_0": Source(("t", "m_in")),
    "y_1": Source(("t", "m_in")),
}
PACK = block("m", "r=y.r", "m[r] = t[r]", "origin=None")
TAKE = block("m_in", "r:p=y.r - 1", "t[r] = m[r]", "where=y.r > 0, origin=None")
USE = block("y", "r=y.r", "y[r] = t[r] + t[max(r - 1, 0)]")
SEND, RECEIVE = "send(m, to=y.r + 1)", "receive(m, source=y.r - 1)"


def ranks(*body: str, loop: str = "for y.r in distributed(p)", more: str = "") -> Kernel:
    return kernel(
        "p, x: float32[p], y: Out[float32[p]]",
        nest("for t.r in distributed(p)", block("t", "r=t.r", "t[r] = x[r] * 2.0")),
        nest(loop, "\n".join(body)),
        temporaries=f"t=float32[p] @ rank, m=float32[p] @ message{more}",
    )


@pytest.mark.parametrize("notes", ["", ", synchronous=True", ", blocking=False"])
def test_a_chain_of_ranks(notes: str) -> None:
    wait = ("wait(m)",) if "blocking" in notes else ()
    send = SEND.replace(")", f"{notes})")
    accept(PLAIN, ranks(PACK, send, RECEIVE, TAKE, USE, *wait), **FLOW)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ((PACK, SEND, "receive(m, source=y.r - 2)", TAKE, USE),
         "m_in[r=0] copies from 'm', but rank -1 does not send it to rank 1"),
        ((PACK, SEND, "receive(m, source=y.r - 2)", USE.replace("max(r - 1, 0)", "r")),
         "rank 0 sends 'm' to rank 1, which does not receive it from there"),
        ((PACK, "send(m, to=p)", RECEIVE, USE.replace("max(r - 1, 0)", "r")),
         "rank 1 receives 'm' from rank 0, which does not send it"),
        ((PACK, SEND, RECEIVE, USE),
         "y[r=1] needs t[0] from 't', but rank 1 has neither computed nor received it"),
        ((PACK, SEND, RECEIVE, USE, TAKE),
         "y[r=1] reads 't' before m_in[r=0] computes it"),
        ((PACK, "send(m, to=y.r * p)", RECEIVE, TAKE, USE),
         "block 'm' depends on `y.r * p`, which is not affine"),
        ((PACK, "send(m, to=y.r)", "receive(m, source=y.r)", USE.replace("max(r - 1, 0)", "r")),
         "ranks wait for each other: rank 0 in the send of 'm', and rank 0 in the send of 'm'"),
    ],
)  # fmt: skip
def test_refusals(body: tuple[str, ...], reason: str) -> None:
    plain = (
        PLAIN
        if "max" in body[-1] + body[-2]
        else kernel(
            "p, x: float32[p], y: Out[float32[p]]",
            nest("for t.r in range(p)", block("t", "r=t.r", "t[r] = x[r] * 2.0")),
            nest("for y.r in range(p)", block("y", "r=y.r", "y[r] = t[r] + t[r]")),
            temporaries="t=float32[p]",
        )
    )
    flow = FLOW
    if not any(s is TAKE for s in body):
        flow = {k: Source(("t",)) for k in ("m_0", "y_0", "y_1")}
    tree = ranks(*body)
    assert refusal(plain, tree, **flow).reason == reason
    with pytest.raises(InterpError):
        run(tree, {"x": np.ones(3, np.float32)})


def test_it_is_proved_whole() -> None:
    """No part becomes known, and none is taken as known."""
    bench, plain = Workbench(), PLAIN
    prove(plain, Scheduled(ranks(PACK, SEND, RECEIVE, TAKE, USE), certificate(plain, FLOW)), bench)
    assert not bench.proved(plain)
    wrong = ranks(PACK, SEND, RECEIVE, USE, TAKE)
    state = Scheduled(wrong, certificate(plain, FLOW))
    found = parts(outline(explicit_inits(wrong)), state).all
    bench.learn(plain, frozenset(part.digest for part in found))
    with pytest.raises(Refused, match=r"before m_in\[r=0\] computes it"):
        prove(plain, state, bench)


ALONE = kernel(
    "p, x: float32[p], y: Out[float32[p]]",
    nest("for t.r in range(p)", block("t", "r=t.r", "t[r] = x[r] * 2.0")),
    nest("for y.r in range(p)", block("y", "r=y.r", "y[r] = t[r]")),
    temporaries="t=float32[p]",
)


@pytest.mark.parametrize(
    ("transfers", "reason"),
    [
        (("send(m, to=y.r + 1, blocking=False)", "send(o, to=y.r - 1)",
          "receive(m, source=y.r - 1)", "wait(m)", "receive(o, source=y.r + 1)"),
         "rank 0 in the wait of 'm', and rank 1 in the send of 'o'"),
        (("send(o, to=y.r - 1)", "send(m, to=y.r - 1, blocking=False)",
          "receive(m, source=y.r + 1)", "receive(o, source=y.r + 1)", "wait(m)"),
         "rank 0 in the receive of 'm', and rank 1 in the send of 'o'"),
    ],
)  # fmt: skip
def test_ranks_wait_in_all_that_blocks(transfers: tuple[str, ...], reason: str) -> None:
    pack = [block(m, "r=y.r", f"{m}[r] = t[r]", "origin=None") for m in "mo"]
    tree = ranks(
        *pack, *transfers, block("y", "r=y.r", "y[r] = t[r]"), more=", o=float32[p] @ message"
    )
    flow = {k: Source(("t",)) for k in ("m_0", "o_0", "y_0")}
    assert refusal(ALONE, tree, **flow).reason == f"ranks wait for each other: {reason}"
    with pytest.raises(InterpError, match="ranks wait for each other"):
        run(tree, {"x": np.ones(3, np.float32)})


def test_a_message_holds_nothing_of_the_one_before() -> None:
    """Sent full in the first round, and empty in the second, in which it is read."""
    pack = block("m", "r=y.r", "m[r] = t[r]", "where=s.k == 0, origin=None")
    take = block("m_in", "r:p=y.r - 1", "t[r] = m[r]", "where=y.r > 0 and s.k == 1, origin=None")
    rounds = nest("for s.k in range(2)", "\n".join((pack, SEND, RECEIVE, take)))
    tree = ranks(rounds, USE)
    assert refusal(PLAIN, tree, **FLOW).reason == (
        "m_in[r=0] copies from 'm', but rank 0 does not send it to rank 1"
    )
    with pytest.raises(InterpError, match="which rank 1 has neither computed nor received"):
        run(tree, {"x": np.ones(3, np.float32)})


def test_ranks_in_a_circle_of_three() -> None:
    """Two waiting for each other are found, and three are no order that the proof knows."""

    def to(shift: int) -> str:
        parts = " else ".join(f"{(r + shift) % 3} if y.r == {r}" for r in range(2))
        return f"({parts} else {(2 + shift) % 3})"

    plain = kernel(
        "p, y: Out[int64[3]]", nest("for y.r in range(3)", block("y", "r=y.r", "y[r] = r"))
    )
    body = (
        block("m", "r=y.r", "m[r] = k[r]", "origin=None"),
        f"send(m, to={to(1)})",
        f"receive(m, source={to(2)})",
    )
    tree = kernel(
        "p, y: Out[int64[3]]",
        nest("for y.r in distributed(3)", "\n".join((block("y", "r=y.r", "y[r] = r"), *body[1:]))),
        temporaries="m=int64[3] @ message",
    )
    found = refusal(plain, tree)
    assert found.reason == (
        "ranks may wait for each other: the proof knows no order in which 'm' would be done"
    )
    assert found.hint == "with `blocking: false` ranks wait when all of them have sent"
    with pytest.raises(InterpError, match="ranks wait for each other: rank 0 waits for rank 1"):
        run(tree, {}, dims={"p": 0})


RING = kernel(
    "p, x: float32[p], y: Out[float32[p]]",
    nest("for t.r in range(p)", block("t", "r=t.r", "t[r] = x[r] * 2.0")),
    nest("for y.r in range(p)", block("y", "r=y.r", "y[r] = t[r] + t[(r - 1) % p]")),
    temporaries="t=float32[p]",
)


def ring(to: str, source: str, taken: str, notes: str = ", blocking=False") -> Kernel:
    wait = ("wait(m)",) if notes else ()
    take = block("m_in", f"r:p={taken}", "t[r] = m[r]", "origin=None")
    use = block("y", "r=y.r", "y[r] = t[r] + t[(r - 1) % p]")
    send, receive = f"send(m, to={to}{notes})", f"receive(m, source={source})"
    return ranks(PACK, send, receive, take, use, *wait)


def test_a_ring_of_ranks() -> None:
    """Of any number of them; of one, which sends to itself, too."""
    tree = ring("(y.r + 1) % p", "(y.r - 1) % p", "(y.r + p - 1) % p")
    accept(RING, tree, **FLOW)
    for p in range(4):
        x = np.arange(p, dtype=np.float32)
        y = run(tree, {"x": x}, seed=p)["y"]
        np.testing.assert_array_equal(y, 2 * x + 2 * np.roll(x, 1))


@pytest.mark.parametrize(
    ("to", "source", "taken", "notes", "reason"),
    [
        ("(y.r + 1) % p", "(y.r - 2) % p", "(y.r - 1) % p", ", blocking=False",
         "m_in[r=1] copies from 'm', but rank 0 does not send it to rank 0"),
        ("y.r + 1", "(y.r - 1) % p", "(y.r - 1) % p", ", blocking=False",
         "m_in[r=0] copies from 'm', but rank 0 does not send it to rank 0"),
        ("(y.r + 1) % p", "(y.r - 1) % p", "(y.r - 1) % p", "",
         "ranks wait for each other: rank 0 in the send of 'm', and rank 0 in the send of 'm'"),
        ("(y.r + 18) % p", "(y.r - 18) % p", "(y.r - 1) % p", ", blocking=False",
         "block 'm' depends on `(y.r + 18) % p`, which is not affine"),
    ],
)  # fmt: skip
def test_rings_that_do_not_close(to: str, source: str, taken: str, notes: str, reason: str) -> None:
    assert refusal(RING, ring(to, source, taken, notes), **FLOW).reason == reason
