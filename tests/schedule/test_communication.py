"""Copies between memories, and loops over ranks."""

import pytest

from gen.errors import ScheduleError
from gen.ir.nodes import LoopKind
from gen.ir.rules.verify import IRError, verify
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.ir.walk import loops
from gen.lower.lower import lower
from gen.schedule import examples
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

from .support import assert_same, schedule, start


def refusal(text: str, recipe: str) -> ScheduleError:
    with pytest.raises(ScheduleError) as refused:
        schedule(start(text), recipe)
    return refused.value


def test_there_and_back() -> None:
    """A matmul whose arrays are all copied to the GPU and from it."""
    recipe = """
- tile_gpu: {loops: [c.i, c.j], sizes: [2, 4]}
- host_to_device: {buffer: a}
- host_to_device: {buffer: b}
- device_to_host: {buffer: c}
"""
    plain = start(examples.MATMUL)
    kernel = schedule(plain, recipe)[-1].state.kernel
    text = to_text(kernel)
    assert "c_device[i, j] = combine.sum(c_device[i, j], a_device[i, p] * b_device[p, j])" in text
    assert "c[d0, d1] = c_device[d0, d1]" in text
    assert_same(plain.kernel, kernel, sizes=(0, 5))


def test_what_a_launch_changes_in_place() -> None:
    text = """\
def twice(n, x: InOut[float32[n]]):
    for x.i in range(n):
        with block("x", i=spatial(x.i)):
            x[i] = x[i] * 2.0
"""
    refused = refusal(text, "- bind: {loop: x.i, axis: blockIdx.x}\n- device_to_host: {buffer: x}")
    assert refused.message == (
        "device_to_host (buffer x): block 'x' reads what 'x' holds at the call"
    )


def test_only_part_of_a_buffer_is_written() -> None:
    """The copy out would take elements that nothing has written."""
    recipe = """
- peel: {loop: y.i, at: 1, as: [y.first, y.rest]}
- bind: {loop: y.rest, axis: blockIdx.x}
- device_to_host: {buffer: y}
"""
    assert refusal(examples.STENCIL, recipe).message == (
        "device_to_host (buffer y): block 'y_2' writes 'y' outside of launches, too"
    )


def test_the_host_does_not_compute_with_device_memory() -> None:
    with pytest.raises(IRError) as refused:
        verify(from_text(examples.TWICE.replace("t=float32[n]", "t=float32[n] @ device")))
    assert refused.value.message == (
        "block 't' computes with 't', device memory, outside of a launch"
    )


def test_ranks_share_out_rows() -> None:
    recipe = """
- split: {loop: y.i, factors: [null, 4]}
- distribute: {loop: y.i_0}
- compute_at: {block: t, loop: y.i_0}
"""
    plain = start(examples.STENCIL)
    kernel = schedule(plain, recipe)[-1].state.kernel
    assert loops(kernel.body)[0].kind is LoopKind.DISTRIBUTED
    assert_same(plain.kernel, kernel)  # each rank computes the halo itself


def test_ranks_that_wait_for_each_other() -> None:
    scan = """\
def scan(n, x: InOut[float32[n]]):
    for x.i in range(1, n):
        with block("x", i=spatial(x.i, 1, n)):
            x[i] = x[i - 1] + x[i]
"""
    assert "distributed loop 'x.i' has a race: x[i=1] writes 'x' and x[i=2] reads it" in (
        refusal(scan, "- distribute: {loop: x.i}").message
    )


HEAT = """\
def heat(s, n, x: float32[n], y: Out[float32[n]]):
    with allocate(u=float32[n], v=float32[n]):
        for u.i in range(n):
            with block("u", i=spatial(u.i)):
                u[i] = x[i]
        for v.t in range(s):
            for v.i in range(n):
                with block("v", t=spatial(v.t), i=spatial(v.i)):
                    v[i] = u[max(i - 1, 0)] + u[min(i + 1, n - 1)]
            for w.i in range(n):
                with block("w", t=spatial(v.t), i=spatial(w.i)):
                    u[i] = v[i]
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = u[i]
"""


def distributed(*blocks: str) -> str:
    return "".join(
        f"- split: {{loop: {b}.i, factors: [null, 4]}}\n- distribute: {{loop: {b}.i_0}}\n"
        for b in blocks
    )


def test_ranks_hand_on_their_edges_in_each_time_step() -> None:
    plain = start(HEAT)
    recipe = distributed("u", "v", "w", "y") + (
        "- send: {buffer: u, loop: v.i_0, to: [1, -1], as: [right, left]}\n"
        "- set_scope: {buffer: v, scope: rank}\n"
    )
    kernel = schedule(plain, recipe)[-1].state.kernel
    text = to_text(kernel)
    assert "u=float32[n] @ rank" in text and "v=float32[n] @ rank" in text
    assert text.index("for v.t") < text.index("right=float32[n] @ message")  # new in each step
    assert_same(plain.kernel, kernel, sizes=(3, 9))


def test_rows_and_what_is_further_away() -> None:
    plain = start("""\
def rows(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    with allocate(t=float32[m, n]):
        for t.i in range(m):
            for t.j in range(n):
                with block("t", i=spatial(t.i), j=spatial(t.j)):
                    t[i, j] = x[i, j] * 2.0
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = t[max(i - 5, 0), j] + t[i, max(j - 1, 0)]
""")
    recipe = distributed("t", "y") + "- send: {buffer: t, loop: y.i_0, to: [1, 2], blocking: false}"
    kernel = schedule(plain, recipe)[-1].state.kernel
    assert_same(plain.kernel, kernel, sizes=(0, 5, 9))


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("send: {buffer: t, loop: y.i_1, to: [1]}", "loop 'y.i_1' is serial, and not distributed"),
        ("send: {buffer: t, loop: t.i_0, to: [1]}", "loop 't.i_0' does not read 't'"),
        ("send: {buffer: t, loop: y.i_0, to: [1, 1]}",
         "`to` has the distances to other ranks, each once: [1] is the next"),
        ("send: {buffer: t, loop: y.i_0, to: [1], as: [a, b]}",
         "`as` names 2 messages, and there are 1"),
        ("send: {buffer: t, loop: y.i_0, to: [1], as: [y]}",
         "the name 'y' is taken; give another one with `as`"),
        ("receive: {buffer: t, before: y}", "'t' is not a message"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent(step: str, reason: str) -> None:
    message = refusal(examples.RANKS, f"- {step}").message
    assert message.partition("): ")[2] == reason


@pytest.mark.parametrize(
    ("first", "step", "reason"),
    [
        ("", "send: {buffer: t, loop: y.i_0, to: [1]}", "each rank has a 't' already"),
        ("", "receive: {buffer: t_sent, before: t_sent}",
         "'t_sent' stands before 't_sent' is sent"),
        ("", "receive: {buffer: t_sent, before: t_sent_in}", "'t_sent_in' is what takes 't_sent'"),
        ("", "set_scope: {buffer: t_sent, scope: heap}",
         "'t_sent' is a message, which ranks send and receive"),
        ("", "after: {block: t_sent_in, other: t}",
         "block 't_sent_in' reads 't_sent' where it is not received"),
        ("", "after: {block: t_sent, other: y, loop: y.i_0}",
         "block 't_sent' stores in 't_sent' where it is not sent after"),
        ("", "compute_inline: {block: t_sent}",
         "'t_sent' is sent or received, but no message in scope"),
        ("", "fission: {loop: y.i_0}", "ranks hand each other messages in loop 'y.i_0'"),
        ("- receive: {buffer: t_sent, before: y, blocking: false}\n",
         "receive: {buffer: t_sent, before: y}", "'t_sent' is received without blocking already"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_with_a_message(first: str, step: str, reason: str) -> None:
    recipe = f"- send: {{buffer: t, loop: y.i_0, to: [1]}}\n{first}- {step}"
    assert refusal(examples.RANKS, recipe).message.partition("): ")[2] == reason


def test_who_has_it_must_be_there_to_send_it() -> None:
    """One element more is computed than is read at once: by one rank more."""
    recipe = distributed("t", "y") + "- send: {buffer: t, loop: y.i_0, to: [-1]}"
    assert refusal(examples.BLUR, recipe).message == (
        "send (loop y.i_0, buffer t): rank 1 has computed what rank 0 needs of 't', but is not in"
        " loop 'y.i_0' to send it, for example where n=3"
    )


def test_all_that_computes_it_is_distributed() -> None:
    recipe = distributed("y") + "- send: {buffer: t, loop: y.i_0, to: [-1]}"
    assert refusal(examples.BLUR, recipe).message == (
        "send (loop y.i_0, buffer t): block 't' accesses 't' in no distributed loop, or in one that"
        " is fused or runs over parts of a symbolic size"
    )


def test_neighbours_around_a_ring() -> None:
    """Of one rank, of two, of which each is both neighbours of the other, and of more."""
    text = examples.NEIGHBOURS.replace("max(i - 1, 0)", "(i - 1) % n")
    plain = start(text.replace("min(i + 1, n - 1)", "(i + 1) % n"))
    send = "send: {buffer: t, loop: y.i_0, to: [1, -1], blocking: false"
    kernel = schedule(plain, f"- {send}, periodic: true}}")[-1].state.kernel
    assert "send(t_sent_2, to=(y.i_0 - 1) % ((n + 3) // 4), blocking=False)" in to_text(kernel)
    assert_same(plain.kernel, kernel, sizes=(0, 1, 4, 5, 7, 8, 9, 13))
    with pytest.raises(ScheduleError, match="but rank 0 has neither computed nor received it"):
        schedule(plain, f"- {send}}}")


@pytest.mark.parametrize(
    ("first", "to", "reason"),
    [
        ("", 17, "17 may be more than a few times around the ranks of loop 'y.r'"),
        ("- peel: {loop: y.r, at: 1, as: [y.a, y.b]}\n- distribute: {loop: y.b}\n", 1,
         "the ranks of loop 'y.b' do not start at 0, so they are not a ring"),
    ],
)  # fmt: skip
def test_what_is_no_ring(first: str, to: int, reason: str) -> None:
    text, loop = examples.RING, "y.r"
    if first:
        text, loop = text.replace("y.r in distributed(p)", "y.r in range(p)"), "y.b"
    step = f"send: {{buffer: t, loop: {loop}, to: [{to}], blocking: false, periodic: true}}"
    assert refusal(text, f"{first}- {step}").message.partition("): ")[2] == reason


def test_one_wait_is_for_both_ends() -> None:
    recipe = (
        "- send: {buffer: t, loop: y.i_0, to: [1], blocking: false}\n"
        "- receive: {buffer: t_sent, before: y, blocking: false}"
    )
    plain = start(examples.RANKS)
    kernel = schedule(plain, recipe)[-1].state.kernel
    text = to_text(kernel)
    assert text.count("blocking=False") == 2 and text.count("wait(t_sent)") == 1
    assert text.index("wait(t_sent)") < text.index('with block("t_sent_in"')
    assert_same(plain.kernel, kernel, sizes=(0, 9))


def test_c_code_has_no_messages() -> None:
    recipe = "- send: {buffer: t, loop: y.i_0, to: [1]}"
    state = schedule(start(examples.RANKS), recipe)[-1].state
    with pytest.raises(ScheduleError) as refused:
        lower(state, Cpu(Level.V3).lowering)
    assert refused.value.message == "loop 't.i_0' is distributed, and C code has no ranks"
    assert refused.value.hint == (
        "code for MPI comes later: leave `distribute` to recipes of another target"
    )
    assert refused.value.span is not None


def test_c_code_has_no_ranks() -> None:
    state = schedule(start(examples.SCALE), "- distribute: {loop: y.i}")[-1].state
    with pytest.raises(ScheduleError) as refused:
        lower(state, Cpu(Level.V3).lowering)
    assert refused.value.message == "loop 'y.i' is distributed, and C code has no ranks"
