"""What tensorize and blockize refuse, with the reason, and what may follow them."""

import pytest

from gen.errors import ScheduleError
from gen.ir.nodes import Kernel
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.ir.walk import loops
from gen.schedule.examples import BYTES
from gen.schedule.intrinsics import FOLDER, lookup, names
from gen.schedule.nests import TENSORIZED, mark

from .support import assert_same, schedule, start

MATMUL = """\
def matmul(m, n, k, a: uint8[m, k], b: int8[k, n], c: Out[int32[m, n]]):
    for c.i in range(m):
        for c.j in range(n):
            for c.l in range(k):
                with block("c", i=spatial(c.i), j=spatial(c.j), l=reduction(c.l), initialises=True):
                    c[i, j] = combine.sum(c[i, j], int32(a[i, l]) * int32(b[l, j]))
"""
TILED = """\
- split: {loop: c.j, factors: [null, 4], as: [c.j0, c.j1]}
- split: {loop: c.l, factors: [null, 4], as: [c.l0, c.l1]}
- reorder: {loops: [c.i, c.j0, c.l0, c.j1, c.l1]}
"""
PACKED = """\
- cache_read: {block: c, buffer: b, as: packed}
- transform_layout: {buffer: packed, axis: 0, factors: [null, 4], order: [0, 2, 1]}
"""
DOT = "- tensorize: {loop: c.j1, intrinsic: dot_4x_u8s8}\n"


def after(steps: str, text: str = MATMUL) -> Kernel:
    return schedule(start(text), steps)[-1].state.kernel


def refused(steps: str, text: str = MATMUL) -> str:
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(text), steps)
    assert refusal.value.message.startswith(("tensorize", "blockize")) or "apart" in str(refusal)
    return refusal.value.message


def tensorized(kernel: Kernel) -> list[str]:
    return [loop.var for loop in loops(kernel.body) if mark(loop, TENSORIZED)]


def test_guards_of_tails_are_no_part_of_the_pattern() -> None:
    kernel = after(TILED + PACKED + DOT)
    assert tensorized(kernel) == ["c.j1"]
    assert from_text(to_text(kernel)) == kernel
    assert_same(from_text(MATMUL), kernel, sizes=(0, 1, 5))


def test_factors_may_change_places() -> None:
    text = MATMUL.replace("int32(a[i, l]) * int32(b[l, j])", "int32(b[l, j]) * int32(a[i, l])")
    assert tensorized(after(TILED + PACKED + DOT, text)) == ["c.j1"]
    assert "'b', which is 'b' of" in refused(TILED + DOT, text)
    both = text.replace("uint8", "int8")
    assert tensorized(after(TILED + PACKED + DOT.replace("u8s8", "s8s8"), both)) == ["c.j1"]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            TILED.replace("loop: c.l, factors: [null, 4]", "loop: c.l, factors: [null, 8]"),
            "loop 'c.l1' runs 8 times, and that of 'dot_4x_u8s8' 4",
        ),
        (
            TILED.replace("c.j1, c.l1]}", "c.l1, c.j1]}"),
            "what is in loop 'c.j1' is not that",
        ),
        (TILED, "'b', which is 'b' of 'dot_4x_u8s8', moves with 'c.l1' along axis 0"),
        (
            TILED + "- cache_read: {block: c, buffer: b, as: packed}\n",
            "'packed', which is 'b' of 'dot_4x_u8s8', moves with 'c.l1' along axis 0, whose stride",
        ),
        (
            TILED + PACKED.replace("order: [0, 2, 1]", "order: [0, 1, 2]"),
            "moves with 'c.l1' along axis 1, whose stride is not a constant",
        ),
        (
            TILED + PACKED.replace("[null, 4]", "[null, 8]"),
            "'packed', which is 'b' of 'dot_4x_u8s8', is at (c.l0 * 4 + c.l1) // 8",
        ),
        (TILED + PACKED + "- parallel: {loop: c.j1}\n", "loop 'c.j1' is parallel already"),
        (TILED + PACKED + DOT, "loop 'c.j1' is tensorized already: 'dot_4x_u8s8'"),
    ],
)
def test_what_is_not_the_pattern(steps: str, message: str) -> None:
    assert message in refused(steps + DOT)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("combine.sum(c", "combine.max(c", "block 'c' is a max, and 'dot_4x_u8s8' a sum"),
        (") * int32(", ") - int32(", "and 'dot_4x_u8s8' adds int32(a["),
        ("a: uint8", "a: int8", "'a', which is 'a' of 'dot_4x_u8s8', is of int8, not of uint8"),
        ("b: int8", "b: uint8", "is of uint8, not of int8"),
        ("int32", "int64", "and 'dot_4x_u8s8' adds int32(a["),
        (
            "a[i, l]",
            "a[l, i]",
            "'a', which is 'a' of 'dot_4x_u8s8', moves with 'c.l1' along axis 0",
        ),
    ],
)
def test_another_computation(old: str, new: str, message: str) -> None:
    text = MATMUL.replace("a: uint8[m, k]", "a: uint8[k, m]") if new == "a[l, i]" else MATMUL
    assert message in refused(TILED + PACKED + DOT, text.replace(old, new))


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (
            {"packed=int8[8, 4]": "packed=int8[4, 8]", "packed[i, j]": "packed[j, i]"},
            "'packed', which is 'b' of 'dot_4x_u8s8', moves with 'c.i' by 1 elements",
        ),
        (
            {"uint8[4]": "uint8[7]", "a[j]": "a[2 * j]"},
            "moves with 'c.j' by 2 elements, and has to by 1",
        ),
        (
            {"int32[8]": "int32[15]", "c[i]": "c[2 * i]"},
            "'c', which is 'c' of 'dot_4x_u8s8', moves with 'c.i' by 2 elements",
        ),
        (
            {"uint8[4]": "uint8[8]", "a[j]": "a[i]"},
            "'a', which is 'a' of 'dot_4x_u8s8', moves with 'c.i' by 1 elements",
        ),
        (
            {
                "int8[8, 4]": "int8[32]",
                "b[i, j]": "b[4 * i + j]",
                "packed[i, j]": "packed[4 * i + j]",
            }
            | {"int32(packed": "int32(b"},
            "'b', which is 'b' of 'dot_4x_u8s8', is an argument",
        ),
    ],
)
def test_other_places(edits: dict[str, str], message: str) -> None:
    text = BYTES
    for old, new in edits.items():
        text = text.replace(old, new)
    assert message in refused("- tensorize: {loop: c.i, intrinsic: dot_4x_u8s8}\n", text)


def test_a_block_with_marks_of_its_own() -> None:
    ahead = "- prefetch: {block: c, buffer: a, ahead: {l: 8}}\n"
    message = "block 'c' is marked by 'prefetch a'"
    assert message in refused(TILED + PACKED + ahead + DOT)
    assert message in refused(TILED + PACKED + DOT + ahead)


def test_a_first_value_inside_the_nest_is_no_part_of_the_pattern() -> None:
    text = """\
def dots(n, a: uint8[4], b: int8[n, 4], c: Out[int32[n]]):
    for c.i in range(n):
        for c.j in range(4):
            with block("c", i=spatial(c.i), j=reduction(c.j), initialises=True):
                c[i] = combine.sum(c[i], int32(a[j]) * int32(b[i, j]))
"""
    tiled = (
        "- cache_read: {block: c, buffer: b, as: packed}\n"
        "- split: {loop: c.i, factors: [null, 8]}\n"
    )
    dot = "- tensorize: {loop: c.i_1, intrinsic: dot_4x_u8s8}\n"
    assert "block 'c' stores its first value in the nest" in refused(tiled + dot, text)
    split = "- decompose_reduction: {block: c, loop: c.i_1}\n"
    assert tensorized(after(tiled + split + dot, text)) == ["c.i_1"]


def test_an_unknown_intrinsic() -> None:
    assert "there is no intrinsic 'dot_4x_u8'" in refused(TILED + DOT.replace("u8s8", "u8"))
    assert "no loop or nested block 'c.j2'" in refused(TILED + DOT.replace("c.j1", "c.j2"))


@pytest.mark.parametrize(
    "step",
    [
        "- transform_layout: {buffer: packed, order: [0, 2, 1]}\n",
        "- transform_layout: {buffer: packed, order: [1, 0, 2]}\n",
        "- cache_read: {block: c, buffer: a, at: c.j1}\n",
    ],
)
def test_steps_that_take_the_nest_apart(step: str) -> None:
    assert "it takes apart the nest 'dot_4x_u8s8'" in refused(TILED + PACKED + DOT + step)


def test_a_nest_is_scheduled_on() -> None:
    steps = """\
- split: {loop: c.i, factors: [null, 2]}
- reorder: {loops: [c.j0, c.i_0, c.l0, c.i_1]}
- cache_write: {block: c, at: c.i_0, scope: register, as: tile}
- decompose_reduction: {block: c, loop: c.l0}
- peel: {loop: c.l0, at: 1}
- unroll: {loop: c.i_1}
- parallel: {loop: c.j0}
"""
    kernel = after(TILED + PACKED + DOT + steps)
    assert tensorized(kernel)
    assert_same(from_text(MATMUL), kernel, sizes=(0, 1, 5))


def test_a_nested_block_is_named_and_whole() -> None:
    block = "- blockize: {loop: c.j1, as: dot}\n"
    named = DOT.replace("c.j1", "dot")
    assert after(TILED + PACKED + block + named) == after(TILED + PACKED + DOT)
    for step in (
        "- split: {loop: c.l1, factors: [2, 2]}\n",
        "- reorder: {loops: [c.l1, c.j1]}\n",
        "- unroll: {loop: c.l1}\n",
        "- vectorize: {loop: c.j1, width: 4}\n",
    ):
        assert "it takes apart the nest 'dot'" in refused(TILED + PACKED + block + step)
    assert "is a nested block already: 'dot'" in refused(TILED + block + block)
    assert "named 'dot' already" in refused(TILED + block + block.replace("c.j1", "c.i"))


@pytest.mark.parametrize("name", names())
def test_an_intrinsic_is_named_as_its_file_and_pattern(name: str) -> None:
    intrinsic = lookup(name)
    assert intrinsic.name == intrinsic.pattern.name == name
    assert (FOLDER / f"{name}.yaml").exists() and intrinsic.promise.endswith(".")
    assert intrinsic.pattern.dims == ("n",) and len(intrinsic.nest) == 2
