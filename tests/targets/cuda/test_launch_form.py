"""Launches in launch form, and what a GPU cannot run: each refusal with its words."""

import numpy as np
import pytest

from gen.errors import NoCode, TilesmithError
from gen.ir.interpret.interp import run
from gen.ir.rules.verify import verify
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.lower.loop_bounds import hoist_guards
from gen.targets.cuda.passes.guards import guards_as_bounds
from gen.targets.cuda.passes.launch_form import launch_form
from gen.targets.cuda.passes.lowering import LOWERING
from gen.targets.cuda.passes.types import within_types
from gen.targets.registry import TARGETS

from .made import lowered, written

SCALE = "y[i, j] = 2 * x[i, j]"


def test_what_no_loop_of_an_axis_is_around_runs_in_its_first_place() -> None:
    text = lowered(
        "t[i] = sum(x[i, j] for j in n)\ny[i, j] = x[i, j] * t[i]",
        "- compute_at: {block: t, loop: y.i}\n"
        "- set_scope: {buffer: t, scope: shared}\n"
        "- split: {loop: y.j, factors: [null, 32], as: [y.j0, y.j1]}\n"
        "- bind: {loop: y.i, axis: blockIdx.x}\n"
        "- sync_threads: {loop: y.j0}\n"
        "- bind: {loop: y.j1, axis: threadIdx.x}",
    )
    assert "if y.j1 == 0:" in text
    assert text.index("y.i in blockIdx.x(m)") < text.index("y.j1 in threadIdx.x(32)")
    assert text.index("threadIdx.x") < text.index("allocate(t=float32[1] @ shared)")


EMPTY = """
def k(m, x: float32[m], y: Out[float32[2, m]], z: Out[float32[2]]):
    for z.a in blockIdx.y(2):
        with block("z", a=spatial(z.a, 2)):
            z[a] = 1.0
        for y.b in blockIdx.x(m):
            with block("y", a=spatial(z.a, 2), b=spatial(y.b, m)):
                y[a, b] = x[b]
"""


@pytest.mark.parametrize("m", [0, 1, 3])
def test_an_axis_that_may_be_empty_has_a_place_for_what_is_outside_of_it(m: int) -> None:
    kernel = launch_form(from_text(EMPTY))
    text = to_text(kernel)
    assert "y.b in blockIdx.x(max(m, 1))" in text
    assert "where=y.b == 0" in text
    assert "where=y.b < m" in text
    x = np.arange(m, dtype=np.float32)
    got = run(kernel, {"x": x}, dims={"m": m})
    np.testing.assert_array_equal(got["z"], [1, 1])
    np.testing.assert_array_equal(got["y"], np.stack([x, x]))


def test_a_launch_of_one_thread_stays_one() -> None:
    text = lowered(
        SCALE, "- add_unit_loop: {loop: y.i, as: [y.one]}\n- bind: {loop: y.one, axis: threadIdx.x}"
    )
    assert "y.one in threadIdx.x(1)" in text


def test_a_launch_allocates_nothing_of_the_gpu() -> None:
    text = lowered(
        "t[i, j] = exp(x[i, j])\ny[i, j] = t[i, j] + x[i, j]",
        "- compute_at: {block: t, loop: y.i}\n"
        "- bind: {loop: y.i, axis: blockIdx.x}\n"
        "- set_scope: {buffer: t, scope: device}",
    )
    assert text.index("allocate(t=float32[m, n] @ device)") < text.index("blockIdx.x(m)")


def test_a_guard_that_a_condition_on_sizes_implies_is_gone() -> None:
    steps = (
        "- split: {loop: y.j, factors: [null, 128]}\n"
        "- bind: {loop: y.i, axis: blockIdx.y}\n"
        "- gpu: {loops: [y.j_0, y.j_1]}"
    )
    assert "where=" in lowered(SCALE, steps)
    assert "where=" not in lowered(SCALE, steps, when="n % 128 == 0")
    assert "where=" in lowered(SCALE, steps, when="n % 64 == 0")


def test_a_copy_outside_of_launches_is_launched() -> None:
    text = lowered(
        "t[i, j] = x[i, j]\ny[i, j] = t[j % m, i % n]",
        "- set_scope: {buffer: t, scope: device}\n"
        "- split: {loop: y.j, factors: [null, 128]}\n"
        "- bind: {loop: y.i, axis: blockIdx.y}\n"
        "- gpu: {loops: [y.j_0, y.j_1]}",
    )
    assert "for t.i in blockIdx.y(m):" in text
    assert "for t.j_block in blockIdx.x((n + 255) // 256):" in text
    assert "for t.j_thread in threadIdx.x(256):" in text


WAITING = """
def k(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.b in blockIdx.x((m + 31) // 32):
        for y.t in threadIdx.x(32):
            with allocate(s=float32[32] @ shared):
                for y.j in range(n):
                    with block("s", i=spatial(y.b * 32 + y.t, m), t=spatial(y.t), j=spatial(y.j),
                               where=GUARD, origin=None):
                        s[t] = x[i, j]
                    barrier()
                    with block("y", i=spatial(y.b * 32 + y.t, m), t=spatial(y.t), j=spatial(y.j),
                               where=GUARD):
                        y[i, j] = s[t]
                    barrier()
"""


@pytest.mark.parametrize("guard", ["y.b * 32 + y.t < m", "y.j + y.t < n"])
def test_guards_stay_with_blocks_where_threads_wait_for_each_other(guard: str) -> None:
    kernel = from_text(WAITING.replace("GUARD", guard))
    after = hoist_guards(guards_as_bounds(kernel))
    verify(after, lowered=True)
    assert to_text(after).count(f"where={guard}") == 2


# ---------------------------------------------------------------- refusals


def test_what_is_in_no_launch_has_no_code() -> None:
    missing = written(SCALE, "- reorder: {loops: [y.j, y.i]}").emitted
    assert isinstance(missing, NoCode)
    assert missing.message == "block 'y' is in no launch, and a GPU runs nothing else"
    assert (
        missing.hint == "bind the loops around it in a recipe for cuda: `gpu`, `tile_gpu`, `bind`"
    )
    assert missing.span is not None


CENTERED = "t[i] = sum(x[i, k] for k in range(n))\ny[i, j] = x[i, j] - t[i]"
IN_TURN = """\
- split: {loop: y.i, factors: [null, 4], as: [y.b, y.t]}
- compute_at: {block: t, loop: y.t}
- bind: {loop: y.b, axis: blockIdx.x}
- bind: {loop: y.t, axis: threadIdx.y}
- cross_thread_reduction: {block: t, loop: t.k, threads: 8, fan: 8}"""


def test_the_step_that_brought_the_reason_is_told() -> None:
    """Of the plain schedule, which is in no launch, there is no code either."""
    missing = written(CENTERED, IN_TURN).emitted
    assert isinstance(missing, NoCode) and missing.span is not None
    assert missing.message.startswith("'t' belongs to some threads of a block together")
    first = written(CENTERED, "- parallel: {loop: y.i}").emitted
    assert isinstance(first, NoCode) and first.span is not None
    assert missing.span.line > first.span.line + len(IN_TURN.splitlines())


def test_complex_numbers_have_no_code() -> None:
    text = WAITING.replace("GUARD", "y.b * 32 + y.t < m").replace("float32", "complex64")
    kernel = from_text(text)
    with pytest.raises(NoCode) as refused:
        within_types(kernel)
    assert refused.value.message == "there is no code for complex64 on a GPU yet"


def test_a_loop_over_ranks_has_no_code() -> None:
    missing = written(SCALE, "- distribute: {loop: y.i}").emitted
    assert isinstance(missing, NoCode)
    assert missing.message == (
        "loop 'y.i' is distributed, and there is no code for ranks with GPUs"
    )


PARTLY = """
def k(x: float32[4], y: Out[float32[4]]):
    for y.a in threadIdx.y(2):
        with allocate(t=float32[2]):
            for t.b in threadIdx.x(2):
                with block("t", a=spatial(y.a, 2), b=spatial(t.b, 2)):
                    t[b] = x[a * 2 + b]
            barrier()
            for y.b in threadIdx.x(2):
                with block("y", a=spatial(y.a, 2), b=spatial(y.b, 2)):
                    y[a * 2 + b] = t[1 - b]
"""


def test_memory_of_some_threads_of_a_block_has_no_code() -> None:
    with pytest.raises(NoCode) as refused:
        launch_form(from_text(PARTLY))
    assert refused.value.message == (
        "'t' belongs to some threads of a block together, and GPUs have memory for all of a block"
        " or for one thread alone"
    )
    assert refused.value.hint == "say where it lives: `set_scope: {buffer: t, scope: shared}`"


TILE = (
    "- split: {{loop: y.i, factors: [null, {rows}], as: [y.i0, y.i1]}}\n"
    "- split: {{loop: y.j, factors: [null, {columns}], as: [y.j0, y.j1]}}\n"
    "- reorder: {{loops: [y.i0, y.j0, y.i1, y.j1]}}\n"
    "- bind: {{loop: y.i0, axis: blockIdx.y}}\n"
    "- bind: {{loop: y.j0, axis: blockIdx.x}}\n"
    "- bind: {{loop: y.j1, axis: threadIdx.x}}\n"
)
LOCAL = (
    "- split: {loop: y.i, factors: [null, 64], as: [y.i0, y.i1]}\n"
    "- split: {loop: y.j, factors: [null, 32, 128], as: [y.j0, y.j1, y.j2]}\n"
    "- reorder: {loops: [y.i0, y.j0, y.j1, y.i1, y.j2]}\n"
    "- bind: {loop: y.i0, axis: blockIdx.y}\n"
    "- gpu: {loops: [y.j0, y.j1]}\n"
    "- cache_read: {block: y, buffer: x, at: y.j1, scope: local, as: tile}"
)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (TILE.format(rows=128, columns=128)
         + "- cache_shared_at: {block: y, buffer: x, loop: y.j0, as: tile}",
         "the launch of loop 'y.i0' takes 65536 bytes of shared memory, more than the 49152 that a"
         " block has without asking for more: 'tile' 65536"),
        (LOCAL,
         "the launch of loop 'y.i0' takes 32768 bytes of local memory, more than the 16384 that a"
         " thread should have of its own: 'tile' 32768"),
        (TILE.format(rows=4, columns=2048),
         "bind (loop y.j1): 2048 along threadIdx.x is more than 1024"),
        (TILE.format(rows=64, columns=64) + "- bind: {loop: y.i1, axis: threadIdx.y}",
         "bind (loop y.i1): 4096 threads of a block are more than 1024"),
        ("- bind: {loop: y.j, axis: threadIdx.x}",
         "`n`, the threads along threadIdx.x, is no number: a block has at most 1024 threads,"
         " whatever the sizes are"),
        ("- bind: {loop: y.i, axis: blockIdx.x}\n"
         "- cache_read: {block: y, buffer: x, at: y.i, scope: shared, as: row}",
         "'row' cannot be shared memory: what is used of it has the shape [1, n], and its size must"
         " be a number: a block uses 64 elements along axis 1 where all sizes are 64, and 128 where"
         " they are 128"),
    ],
    ids=["shared", "local", "axis", "threads", "symbolic threads", "symbolic shared"],
)  # fmt: skip
def test_what_a_gpu_does_not_have_is_refused_with_the_numbers(steps: str, message: str) -> None:
    with pytest.raises(TilesmithError) as refused:
        written(SCALE, steps)
    assert refused.value.message == message


def test_the_passes_have_names_of_their_own() -> None:
    names = [lowering.name for lowering in LOWERING]
    assert len(set(names)) == len(names)


def test_recipes_have_the_threads_of_a_warp() -> None:
    steps = "- split: {loop: y.j, factors: [null, $warp]}\n- gpu: {loops: [y.j_0, y.j_1]}"
    assert "threadIdx.x(32)" in lowered(SCALE, steps)
    assert "cuda.sm_90" in TARGETS.of_recipes
