"""Copies between memories, and loops over ranks."""

import pytest

from gen.errors import ScheduleError
from gen.ir.nodes import LoopKind
from gen.ir.parser import from_text
from gen.ir.printer import to_text
from gen.ir.verify import IRError, verify
from gen.ir.walk import loops
from gen.lower.lower import lower
from gen.lower.target import Level, Target
from gen.schedule import examples

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


def test_c_code_has_no_ranks() -> None:
    state = schedule(start(examples.SCALE), "- distribute: {loop: y.i}")[-1].state
    with pytest.raises(ScheduleError) as refused:
        lower(state, Target(Level.V3))
    assert refused.value.message == "loop 'y.i' is distributed, and C code has no ranks"
