"""Schedules for GPUs: tiles in shared memory, cross-thread reductions, and what is refused."""

from functools import cache

import numpy as np
import pytest

from gen.errors import ScheduleError
from gen.ir.interpret.evaluate import InterpError
from gen.ir.interpret.interp import run
from gen.ir.nodes import Allocate, Barrier, Buffer, Kernel
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.ir.walk import walk
from gen.lower.lower import lower
from gen.schedule import examples
from gen.schedule.base import Step, StepContext
from gen.schedule.recipe import run as run_steps
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

from .support import assert_same, from_spec, inputs, schedule, start, steps

TILED = """
- tile: {loops: [c.i, c.j], sizes: [4, 2]}
- split: {loop: c.p, factors: [null, 3]}
- reorder: {loops: [c.i_0, c.j_0, c.p_0, c.i_1, c.j_1, c.p_1]}
- bind: {loop: c.i_0, axis: blockIdx.y}
- bind: {loop: c.j_0, axis: blockIdx.x}
- cache_write: {block: c, at: c.j_0, scope: local}
- decompose_reduction: {block: c, loop: c.p_0}
- bind: {loops: [c.init.i_1, c.i_1, c_cache.i], axis: threadIdx.y}
- bind: {loops: [c.init.j_1, c.j_1, c_cache.j], axis: threadIdx.x}
"""
CACHED = """
- cache_shared_at: {block: c, buffer: a, loop: c.p_0}
- cache_shared_at: {block: c, buffer: b, loop: c.p_0}
"""


@cache
def tiled() -> tuple[Step, ...]:
    return schedule(start(examples.MATMUL), TILED + CACHED)


def outline(kernel: Kernel) -> list[str]:
    """The loops, barriers and allocations of a tree."""
    lines = (line.strip() for line in to_text(kernel).splitlines())
    return [line for line in lines if line.startswith(("for ", "barrier", "with allocate"))]


def allocated(kernel: Kernel) -> list[Buffer]:
    return [b for n in walk(kernel.body) if isinstance(n, Allocate) for b in n.buffers]


def refusal(text: str, recipe: str) -> ScheduleError:
    with pytest.raises(ScheduleError) as refused:
        schedule(start(text), recipe)
    return refused.value


def test_matmul_in_shared_memory() -> None:
    kernel = tiled()[-1].state.kernel
    assert outline(kernel)[5:] == [
        "for c.p_0 in range((k + 2) // 3):",
        "with allocate(a_cache=float32[m, k] @ shared, b_cache=float32[k, n] @ shared):",
        "barrier()",
        "for a_cache.turn in range(2):",
        "for a_cache.y in threadIdx.y(4):",
        "for a_cache.x in threadIdx.x(2):",
        "for b_cache.turn in range(1):",
        "for b_cache.y in threadIdx.y(4):",
        "for b_cache.x in threadIdx.x(2):",
        "barrier()",
        "for c.i_1 in threadIdx.y(4):",
        "for c.j_1 in threadIdx.x(2):",
        "for c.p_1 in range(3):",
        "for c_cache.i in threadIdx.y(4):",
        "for c_cache.j in threadIdx.x(2):",
    ]
    assert_same(start(examples.MATMUL).kernel, kernel, sizes=(0, 5))


@pytest.mark.parametrize("which", [0, 1])
def test_each_barrier_is_needed(which: int) -> None:
    kernel = tiled()[-1].state.kernel
    text = to_text(kernel).splitlines(keepends=True)
    at = [k for k, line in enumerate(text) if line.strip() == "barrier()"][which]
    racing = from_text("".join(text[:at] + text[at + 1 :]))
    dims = {"m": 5, "n": 5, "k": 7}
    with pytest.raises(InterpError, match="which was never written"):
        run(racing, inputs(kernel, dims), dims=dims, seed=0)


def test_the_barriers_by_hand() -> None:
    """What cache_shared_at does, step by step, and the same with a barrier left out."""
    recipe = """
- split: {loop: y.i, factors: [null, 4]}
- bind: {loop: y.i_0, axis: blockIdx.x}
- cache_read: {block: y, buffer: t, at: y.i_0, scope: shared, as: s}
- split: {loop: s.d0, factors: [null, 4]}
"""
    threads = """
- bind: {loop: s.d0_1, axis: threadIdx.x}
- bind: {loop: y.i_1, axis: threadIdx.x}
"""
    sync = "- sync_threads: {loop: s.d0_0, where: after}\n"
    kernel = start(examples.BLUR)
    done = schedule(kernel, recipe + sync + threads.lstrip())[-1].state.kernel
    assert_same(kernel.kernel, done, sizes=(0, 1, 5, 9))
    refused = refusal(examples.BLUR, recipe + threads.lstrip())
    assert refused.message.startswith(
        "bind (loop s.d0_1): the proof was refused: threads have a race: s["
    )
    assert refused.hint == "a barrier orders them: `sync_threads: {loop: y.i_1, where: before}`"
    assert refused.span is not None and refused.span.line == 8
    assert refused.notes[0] == "for example: n=2"


def test_a_reduction_across_threads() -> None:
    recipe = """
- split: {loop: y.j, factors: [null, 4]}
- reorder: {loops: [y.j_1, y.j_0]}
- rfactor: {block: y, loop: y.j_1, as: [part, y.r]}
- set_scope: {buffer: part, scope: shared}
- bind: {loop: y.i, axis: blockIdx.x}
- sync_threads: {loop: y.r}
- bind: {loops: [y.j_1], axis: threadIdx.x}
"""
    rows = start(examples.ROW_SUM)
    assert_same(rows.kernel, schedule(rows, recipe)[-1].state.kernel, sizes=(0, 1, 3, 9))
    unordered = recipe.replace("- sync_threads: {loop: y.r}\n", "")
    assert "y[i=0, r=3] reads it in another thread" in refusal(examples.ROW_SUM, unordered).message


def test_a_reduction_loop_is_factored_first() -> None:
    refused = refusal(examples.ROW_SUM, "- bind: {loop: y.j, axis: threadIdx.x}")
    assert refused.hint == ("rfactor: {block: y, loop: y.j}; then bind the loop of the partials")


def test_a_shorter_loop_gets_a_guard() -> None:
    recipe = """
- set_scope: {buffer: t, scope: shared}
- barrier_at: {block: y, loop: y.i}
- bind: {loop: y.i, axis: blockIdx.x}
- peel: {loop: y.j, at: 1, as: [y.first, y.rest]}
- bind: {loop: t.j, axis: threadIdx.x}
- bind: {loop: y.rest, axis: threadIdx.x}
"""
    rows = start(examples.REVERSED)
    done = schedule(rows, recipe)[-1].state.kernel
    assert "for y.rest in threadIdx.x(4):" in outline(done)
    assert "where=y.rest < 3" in to_text(done)
    assert_same(rows.kernel, done)


def test_loops_of_one_axis_that_cannot_be_alike() -> None:
    rows = examples.ROW_SQUARES.replace("y.j in range(n)", "y.j in range(n + 1)")
    rows = rows.replace("j=reduction(y.j)", "j=reduction(y.j, n)")
    rows = rows.replace(", initialises=True", ", where=y.j < n, initialises=True")
    refused = refusal(
        rows,
        "- rfactor: {block: y, loop: y.j, as: [part, y.r]}\n"
        "- merge: {loops: [t.i, y.i], as: [r.i]}\n"
        "- bind: {loop: r.i, axis: blockIdx.x}\n- bind: {loops: [t.j, y.j], axis: threadIdx.x}",
    )
    assert refused.message == (
        "bind (loops [t.j, y.j]): loop 't.j' has extent `n`, and loop 'y.j' on threadIdx.x of the"
        " same launch `n + 1`"
    )
    assert refused.hint == "split one of them by the other's extent"


def test_blocks_hand_each_other_nothing() -> None:
    refused = refusal(
        examples.REVERSED,
        "- bind: {loop: y.i, axis: blockIdx.y}\n- bind: {loops: [t.j, y.j], axis: blockIdx.x}",
    )
    assert "t[i=0, j=0] writes 't' and y[i=0, j=3] reads it in another block" in refused.message
    assert refused.hint is None


def test_a_barrier_that_threads_pass_differently_often() -> None:
    refused = refusal(
        examples.RUNNING_SUM,
        "- bind: {loop: y.j, axis: threadIdx.x}\n- sync_threads: {block: y}",
    )
    assert refused.message == (
        "sync_threads (block y): not all threads of a block reach a barrier:"
        " the bounds of loop 'y.k' differ from thread to thread"
    )


def test_c_code_has_no_launches() -> None:
    state = schedule(start(examples.SCALE), "- bind: {loop: y.i, axis: blockIdx.x}")[-1].state
    with pytest.raises(ScheduleError) as refused:
        lower(state, Cpu(Level.V3).lowering)
    assert refused.value.message == (
        "loop 'y.i' is bound to blockIdx.x, and C code has no launches"
    )


def test_c_code_leaves_barriers_out() -> None:
    state = schedule(start(examples.REVERSED), "- sync_threads: {loop: y.j}")[-1].state
    lowered = lower(state, Cpu(Level.V3).lowering).kernel
    assert not any(isinstance(n, Barrier) for n in walk(lowered))
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(run(lowered, {"x": x})["y"], 2 * x[:, ::-1])


def test_a_pipelined_matmul() -> None:
    """Tiles of the next step are fetched into the other half of the buffers, one barrier a step."""
    ahead = """
- double_buffer: {buffer: a_cache, loop: c.p_0}
- double_buffer: {buffer: b_cache, loop: c.p_0}
- pipeline: {loop: c.p_0, blocks: [a_cache, b_cache]}
"""
    plain = start(examples.MATMUL)
    context = StepContext(plain.kernel)
    states = run_steps(tiled()[-1].state, steps(ahead), context)
    kernel = states[-1].state.kernel
    lines = outline(kernel)
    assert "a_cache=float32[2, m, 3] @ shared" in to_text(kernel)
    assert "b_cache=float32[2, 3, n] @ shared" in to_text(kernel)
    inside = lines[lines.index("for c.p_0 in range((k + 2) // 3):") :]
    assert inside[1] == "barrier()" and inside.count("barrier()") == 1
    assert_same(plain.kernel, kernel, sizes=(7,))


def test_rows_of_either_of_two_buffers_are_as_far_apart() -> None:
    recipe = (
        "- storage_align: {buffer: a_cache, axis: 0, factor: 4, offset: 1}\n"
        "- double_buffer: {buffer: a_cache, loop: c.p_0}\n"
    )
    after = schedule(start(examples.MATMUL), TILED + CACHED + recipe)[-1].state.kernel
    (buffer,) = (b for b in allocated(after) if b.name == "a_cache")
    assert [(a.axis, a.factor, a.offset) for a in buffer.aligned] == [(1, 4, 1)]


def test_rows_of_threads_that_reduce() -> None:
    """Barriers in the loop of the rows' threads, and shared memory of which each row has a part."""
    recipe = """
- split: {loop: y.i, factors: [null, 2]}
- bind: {loop: y.i_0, axis: blockIdx.x}
- bind: {loop: y.i_1, axis: threadIdx.y}
- cross_thread_reduction: {block: y, loop: y.j, threads: 3}
"""
    rows = start(examples.ROW_SUM)
    kernel = schedule(rows, recipe)[-1].state.kernel
    assert outline(kernel)[1:3] == [
        "for y.i_1 in threadIdx.y(2):",
        "with allocate(y_rf=float32[m, 3] @ shared):",
    ]
    assert_same(rows.kernel, kernel, sizes=(1, 5))


def test_an_argmax_of_threads() -> None:
    recipe = """
- bind: {loop: y.i, axis: blockIdx.x}
- cross_thread_reduction: {block: y, loop: y.j, threads: 4, fan: 2}
"""
    _, state = from_spec("argmax")
    assert_same(state.kernel, schedule(state, recipe)[-1].state.kernel, sizes=(1, 9))


def test_fission_at_a_barrier() -> None:
    parted = "- sync_threads: {loop: t.j, where: after}\n- fission: {loop: y.i, as: [t.i, y.i]}"
    lines = outline(schedule(start(examples.REVERSED), parted)[-1].state.kernel)
    assert lines == [
        "with allocate(t=float32[m, 4]):",
        "for t.i in range(m):",
        "for t.j in range(4):",
        "barrier()",
        "for y.i in range(m):",
        "for y.j in range(4):",
    ]


@pytest.mark.parametrize(
    "recipe",
    [
        "- vectorize: {loop: y.j, width: 4}\n- bind: {loop: y.i, axis: threadIdx.x}",
        "- bind: {loop: y.i, axis: blockIdx.x}\n- vectorize: {loop: y.j, width: 4}",
    ],
)
def test_a_barrier_in_a_vector(recipe: str) -> None:
    """Whichever of the two steps comes last says why there can be no such tree."""
    refused = refusal(examples.SCALE, f"- sync_threads: {{block: y}}\n{recipe}")
    assert refused.message.partition("): ")[2] == (
        "not all threads of a block reach a barrier: it is in vectorized loop 'y.j_1'"
    )
    assert refused.hint == "put the barrier where every thread comes by"


def test_one_element_is_copied_by_one_thread() -> None:
    kernel = start("""\
def scale(m, n, x: float32[m, n], a: float32[m], y: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j in range(n):
            with block("y", i=spatial(y.i), j=spatial(y.j)):
                y[i, j] = x[i, j] * a[i]
""")
    recipe = """
- bind: {loop: y.i, axis: blockIdx.x}
- split: {loop: y.j, factors: [null, 4]}
- bind: {loop: y.j_1, axis: threadIdx.x}
- cache_shared_at: {block: y, buffer: a, loop: y.i}
"""
    done = schedule(kernel, recipe)[-1].state.kernel
    assert "where=a_cache.turn * 4 + a_cache.x < 1" in to_text(done)
    assert_same(kernel.kernel, done, sizes=(0, 1, 5, 9))
