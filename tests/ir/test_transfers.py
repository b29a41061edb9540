"""Messages between ranks: their notation, their rules, and what the interpreter does with them."""

import numpy as np
import pytest

from gen.ir.interpret.interp import InterpError, run
from gen.ir.nodes import Kernel
from gen.ir.rules.verify import IRError, verify
from gen.ir.text.parser import ScriptError, from_text
from gen.ir.text.printer import to_text

HALO = """\
def halo(p, x: float32[p], y: Out[float32[p]]):
    with allocate(t=float32[p] @ rank, m=float32[p] @ message):
        for t.r in distributed(p):
            with block("t", r=spatial(t.r)):
                t[r] = x[r] * 2.0
        for y.r in distributed(p):
            with block("m", r=spatial(y.r), origin=None):
                m[r] = t[r]
            send(m, to=y.r + 1)
            receive(m, source=y.r - 1)
            with block("m_in", r=spatial(y.r - 1, p), where=y.r > 0, origin=None):
                t[r] = m[r]
            with block("y", r=spatial(y.r)):
                y[r] = t[r] + t[max(r - 1, 0)]
"""
NONBLOCKING = HALO.replace("r + 1)", "r + 1, synchronous=True, blocking=False)").replace(
    "r - 1)\n", "r - 1, blocking=False)\n            wait(m)\n", 1
)


def changed(text: str, *changes: tuple[str, str]) -> Kernel:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return from_text(text)


@pytest.mark.parametrize("text", [HALO, NONBLOCKING])
@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_what_a_rank_reads_it_has_computed_or_received(text: str, seed: int | None) -> None:
    kernel = from_text(text)
    verify(kernel)
    assert to_text(kernel) == text
    for p in range(5):
        x = np.arange(p, dtype=np.float32)
        want = 2 * x + 2 * np.concatenate([x[:1], x[:-1]])
        assert run(kernel, {"x": x}, seed=seed)["y"].tolist() == want.tolist()


def test_messages_come_in_the_order_in_which_they_were_sent() -> None:
    """In each step a rank hands its number on; after p steps each has its own again, plus p."""
    kernel = from_text("""\
def ring(p, y: Out[int64[p]]):
    with allocate(t=int64[()] @ rank, m=int64[()] @ message):
        for y.r in distributed(p):
            with block("t", r=spatial(y.r)):
                t[()] = r
            for s.k in range(p):
                with block("m", k=spatial(s.k), origin=None):
                    m[()] = t[()]
                send(m, to=(y.r + 1) % p, blocking=False)
                receive(m, source=(y.r + p - 1) % p)
                with block("m_in", k=spatial(s.k), origin=None):
                    t[()] = m[()] + 1
                wait(m)
            with block("y", r=spatial(y.r)):
                y[r] = t[()]
""")
    verify(kernel)
    for seed in range(4):
        assert run(kernel, {}, dims={"p": 4}, seed=seed)["y"].tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("t.r in distributed(p)", "t.r in range(p)")],
         "block 't' accesses 't', which each rank has for itself, in no distributed loop"),
        ([("            send(m, to=y.r + 1)\n", "")],
         "a message is sent, received, and waited for at most once, in this order; of 'm' there is"
         " receive"),
        ([("to=y.r + 1", "to=y.r + 1, blocking=False")], "nothing waits for 'm'"),
        ([("source=y.r - 1)", "source=y.r - 1)\n            wait(m)")],
         "there is nothing to wait for of 'm'"),
        ([("            send(", "            for s.k in range(2):\n                send(")],
         "what is done with 'm' does not stand in one sequence"),
        ([("y.r in distributed(p)", "y.r in range(p)"), ("t=float32[p] @ rank", "t=float32[p]")],
         "'m' is sent in no distributed loop, or is allocated inside of it: two ranks must have"
         " it"),
        ([("y.r + 1", "x[y.r]")], "no buffer 'x' is in scope"),
        ([("t[r] + t[max", "m[r] + t[max"), ("source=y.r - 1", "source=y.r - 1, blocking=False"),
          ("max(r - 1, 0)]\n", "max(r - 1, 0)]\n            wait(m)\n")],
         "block 'm_in' reads 'm' where it is not received"),
        ([("y[r] = t[r]", "m[r] = t[r]")], "block 'y' stores in 'm' where it is not sent after"),
        ([("m[r] = t[r]", "m[r] = combine.sum(m[r], t[r])")],
         "block 'm' does more to 'm' than to store"),
        ([("m=float32[p] @ message", "m=float32[p]")],
         "'m' is sent or received, but no message in scope"),
        ([("t.r in distributed", "t.r in threadIdx.x"), ("                t[r] = x[r] * 2.0\n",
           "                t[r] = x[r] * 2.0\n            wait(m)\n")],
         "'m' is sent or received in a launch, by no rank"),
    ],
)  # fmt: skip
def test_rules(changes: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(IRError) as refused:
        verify(changed(HALO, *changes))
    assert refused.value.message == message


def test_a_message_is_not_sent_by_threads() -> None:
    head, loop, body = HALO.partition("        for y.r in distributed(p):\n")
    inside = "".join(f"    {line}\n" for line in body.splitlines())
    with pytest.raises(IRError) as refused:
        verify(from_text(f"{head}{loop}            for y.k in parallel(1):\n{inside}"))
    assert refused.value.message == "'m' is sent in parallel loop 'y.k'"


@pytest.mark.parametrize(
    "line", ["send(m)", "receive(m, to=1)", "wait(m, to=1)", "send(m, to=1, x=2)"]
)
def test_what_the_parser_cannot_read(line: str) -> None:
    with pytest.raises(ScriptError) as refused:
        changed(HALO, ("send(m, to=y.r + 1)", line))
    assert refused.value.message == f"cannot read '{line}' here"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("where=y.r > 0", "where=y.r > 1")],
         "block 'y' at (r=1): reads t[0], which rank 1 has neither computed nor received"),
        ([("max(r - 1, 0)", "min(r + 1, p - 1)")],
         "block 'y' at (r=0): reads t[1], which rank 0 has neither computed nor received"),
        ([("m[r] = t[r]", "m[max(r - 1, 0)] = t[r]"), ("to=y.r + 1", "to=y.r + 1, blocking=False"),
          ("max(r - 1, 0)]\n", "max(r - 1, 0)]\n            wait(m)\n")],
         "block 'm_in' at (r=1): reads m[1], which rank 2 has neither computed nor received"),
        ([("to=y.r + 1", "to=(y.r + 1) % p"), ("source=y.r - 1", "source=(y.r + p - 1) % p")],
         "ranks wait for each other: rank 0 waits for rank 1 to receive 'm', rank 1 waits for"
         " rank 2 to receive 'm', rank 2 waits for rank 0 to receive 'm'"),
        ([("y.r - 1)\n", "p)\n"), ("where=y.r > 0", "where=y.r > p"),
          ("max(r - 1, 0)", "r")], "rank 1 waits for rank 2 to receive 'm', which has ended"),
    ],
)  # fmt: skip
def test_what_goes_wrong_names_the_ranks(changes: list[tuple[str, str]], message: str) -> None:
    kernel = changed(HALO, *changes)
    verify(kernel)
    with pytest.raises(InterpError) as wrong:
        run(kernel, {"x": np.ones(3, np.float32)})
    assert wrong.value.message.startswith(message)


def test_where_nothing_comes_there_is_nothing() -> None:
    """The second time a rank receives from one that is not there."""
    head, sent, body = HALO.partition('            with block("m"')
    body, used, end = f"{sent}{body}".partition('            with block("y"')
    again = "".join(f"    {line}\n" for line in body.splitlines())
    again = again.replace("to=y.r + 1", "to=y.r + 1 + s.k * p").replace(
        "source=y.r - 1", "source=y.r - 1 - s.k * p"
    )
    kernel = from_text(f"{head}            for s.k in range(2):\n{again}{used}{end}")
    verify(kernel)
    with pytest.raises(InterpError, match="which rank 1 has neither computed nor received"):
        run(kernel, {"x": np.ones(2, np.float32)})


def test_a_message_that_nobody_takes() -> None:
    kernel = changed(
        HALO, ("y.r - 1)\n", "p)\n"), ("y.r > 0", "y.r > p"), (" + t[max(r - 1, 0)]", "")
    )
    messages = set()
    for seed in range(8):  # an asynchronous send may be done before
        with pytest.raises(InterpError) as wrong:
            run(kernel, {"x": np.ones(2, np.float32)}, seed=seed)
        messages.add(wrong.value.message)
    assert messages == {
        "rank 0 sends 'm' to rank 1, which never receives it",
        "rank 0 waits for rank 1 to receive 'm', which has ended",
    }
