"""Maps in isl's notation: what is refused, what is left as it is, and what the flow becomes."""

import pytest

from gen.errors import ScheduleError
from gen.ir.text.printer import to_text
from gen.schedule.examples import PAIR, ROW_SUM, SCALE, SHARE, TRIANGLE, TWICE

from .recurrences import GAUSS_SEIDEL, SEIDEL
from .support import assert_same, schedule, start

RAGGED = """\
def ragged(n, count: int64[n], x: float32[n, n], y: Out[float32[n]]):
    for y.i in range(n):
        for y.j in range(min(max(count[y.i], 0), n)):
            with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                y[i] = combine.sum(y[i], x[i, j])
"""

REFUSALS = [
    (SCALE, "block: z", "{ z[i, j] -> [j, i] }", "there is no block 'z'"),
    (
        SCALE,
        "block: y",
        "{ z[i, j] -> [j, i] }",
        "the map names 'z', which is not among",
    ),
    (TWICE, "block: [t, y]", "{ t[i] -> [i] }", "the map says nothing of block 'y'"),
    (SCALE, "block: y", "{ y[i, j, k] -> [k] }", "takes 3 loops around block 'y', which has 2"),
    (SCALE, "block: y", "{ y[i, j] -> [i, j]; y[j] -> [j] }", "differ in their numbers of loops"),
    (SCALE, "block: y", "{ y[i, j] -> [i, j] : i < 3; y[i, j] -> [i, j] : i > 3 }", "no time"),
    (SCALE, "block: y", "{ y[i, j] -> [i, j, k] }", "some iterations of block 'y' several times"),
    (
        SCALE,
        "block: y",
        "{ y[i, j] -> [i * j, j] }",
        "`map` is not an affine map in isl's notation",
    ),
    (SCALE, "block: y", "y[i, j] -> [j, i]", "`map` is not an affine map in isl's notation"),
    (SCALE, "block: y, as: [y.a]", "{ y[i, j] -> [j, i] }", "`as` must give 2 names"),
    (SCALE, "block: y, as: [y.a, y]", "{ y[i, j] -> [j, i] }", "'y' cannot be the name of a loop"),
    (TWICE, "block: y, as: [t.i]", "{ y[i] -> [-i] }", "the name 't.i' is taken"),
    (TWICE, "block: [t, y]", "{ t[i] -> [i, 0]; y[i] -> [i] }", "2 for 't'; fill up with 0"),
    (
        TWICE,
        "block: [t, y]",
        "{ t[i] -> [i]; y[i] -> [i] }",
        "times that another block has",
    ),
    (PAIR, "block: [t, z]", "{ t[i] -> [i, 0]; z[i] -> [i, 1] }", "block 'y' is among them"),
    (
        TWICE,
        "block: [t, y]",
        "{ t[i] -> [i, 1]; y[i] -> [i, 0] }",
        "the proof was refused: y[i=0] reads 't' before t[i=0] computes it",
    ),
    (
        GAUSS_SEIDEL,
        "block: s",
        "{ s[i, j] -> [j - i, i] }",
        "the proof was refused",
    ),
    (RAGGED, "block: y", "{ y[i, j] -> [j, i] }", "which is not affine"),
]


@pytest.mark.parametrize(("text", "arguments", "mapped", "reason"), REFUSALS)
def test_refusals(text: str, arguments: str, mapped: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(text), f'- set_schedule: {{{arguments}, map: "{mapped}"}}')
    assert reason in refusal.value.message


def test_a_loop_that_is_not_serial() -> None:
    with pytest.raises(ScheduleError, match=r"loop 'y\.i' is parallel already"):
        schedule(
            start(SCALE),
            '- parallel: {loop: y.i}\n- set_schedule: {block: y, map: "{ y[i, j] -> [j, i] }"}',
        )


@pytest.mark.parametrize(
    ("text", "time"), [(ROW_SUM, "j // 4, i, j"), (TRIANGLE, "i, i - j")], ids=["rows", "triangle"]
)
def test_the_init_of_a_sum_goes_outside_of_it_first(text: str, time: str) -> None:
    step = f'set_schedule: {{block: y, map: "{{ y[i, j] -> [{time}] }}"}}'
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(text), f"- {step}")
    first = "decompose_reduction: {block: y, loop: y.i}"
    assert refusal.value.hint == f"legal in place of this step: {first}, then {step}"
    after = schedule(start(text), f"- {first}\n- {step}")[-1].state.kernel
    assert_same(start(text).kernel, after)


MAPS = {
    "rows in pairs": (SCALE, "y", "y[i, j] -> [i // 2, i % 2, j]"),
    "every fourth iteration": (SCALE, "y", "y[i, j] -> [4 * (i // 4), j, i]"),
    "backwards": (SCALE, "y", "y[i, j] -> [n - 1 - j, -i]"),
    "times that nothing has": (SCALE, "y", "y[i, j] -> [2 * i + 3 * j, j]"),
    "a piece a half": (SCALE, "y", "y[i, j] -> [0, i, j] : i < 3; y[i, j] -> [1, j, i] : i >= 3"),
    "one loop of two": (SCALE, "y", "y[j] -> [j % 3, j]"),
    "no loop at all": (SHARE, "t", "t[] -> [0]"),
    "a triangle": (TRIANGLE, "y", "y[i, j] -> [i, -j]"),
    "blocks in turn": (PAIR, "[t, y, z]", "t[i] -> [i, 0]; y[i] -> [i, 1]; z[i] -> [i + 2, 2]"),
    "blocks at other speeds": (TWICE, "[t, y]", "t[i] -> [i, 0]; y[i] -> [2 * i + 1, 1]"),
}


@pytest.mark.parametrize("name", MAPS)
def test_maps(name: str) -> None:
    text, block, pieces = MAPS[name]
    state = start(text)
    step = f'- set_schedule: {{block: {block}, map: "{{ {pieces} }}"}}'
    assert_same(state.kernel, schedule(state, step)[-1].state.kernel, sizes=(0, 1, 3, 6))


def test_what_one_tile_alone_uses_stays_in_its_loop() -> None:
    """The loops that both blocks run in at one time are known, so the temporary is local."""
    steps = (
        "- merge: {loops: [t.i, y.i], as: [z.i]}\n"
        "- set_schedule: {block: [t, y], as: [z.o, z.k, z.i],"
        ' map: "{ t[i] -> [i // 4, 0, i]; y[i] -> [i // 4, 1, i] }"}'
    )
    state = schedule(start(TWICE), steps)[-1].state
    assert state.flow["y", 0].shared == ("z.o",)
    assert (
        to_text(state.kernel)
        == """\
def twice(n, x: float32[n], y: Out[float32[n]]):
    for z.o in range((n + 3) // 4):
        with allocate(t=float32[n]):
            for z.i in range(z.o * 4, min(n, z.o * 4 + 4)):
                with block("t", i=spatial(z.i, n)):
                    t[i] = x[i] * 2.0
            for z.i_2 in range(z.o * 4, min(n, z.o * 4 + 4)):
                with block("y", i=spatial(z.i_2, n)):
                    y[i] = t[i] + 1.0
"""
    )


def test_loops_that_the_map_leaves_out_stay() -> None:
    state = schedule(
        start(SEIDEL), '- set_schedule: {block: a, map: "{ a[i, j] -> [2*i + j, i] }"}'
    )[-1].state
    assert to_text(state.kernel).splitlines()[1] == "    for a.t in range(steps):"


def test_code_that_the_ir_has_no_form_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def generate(*_: object) -> None:
        raise NotImplementedError("isl's code has the operation 99")

    monkeypatch.setattr("gen.schedule.primitives.set_schedule.generate", generate)
    step = '- set_schedule: {block: y, map: "{ y[i, j] -> [j, i] }"}'
    with pytest.raises(ScheduleError, match="the operation 99, which has no form in the IR"):
        schedule(start(SCALE), step)
