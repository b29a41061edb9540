"""compute_inline of what loops around both blocks compute anew: proved, or refused, never wrong."""

from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen.errors import ScheduleError
from gen.ir.text.printer import to_text
from gen.ir.walk import blocks

from .support import assert_same, schedule, start


def steps_in_time(rate: str, value: str, first: str = "range(n)", again: str = "range(n)") -> str:
    return f"""\
def decay(n, steps: int64, x: InOut[float32[n]]):
    assume(n >= 1)
    with allocate(rate=float32[n]):
        for rate.t in range(steps):
            for rate.i in {first}:
                with block("rate", t=spatial(rate.t), i=spatial(rate.i)):
                    rate[i] = {rate}
            for x.i in {again}:
                with block("x", t=spatial(rate.t), i=spatial(x.i)):
                    x[i] = {value}
"""


INLINE = "- compute_inline: {block: rate}"


@pytest.mark.parametrize(
    ("rate", "value", "inlined"),
    [
        ("0.5 * x[i]", "x[i] - rate[i]", "x[i] - 0.5 * x[i]"),
        ("float32(t)", "x[i] + rate[i] * rate[0]", "x[i] + float32(t) * float32(t)"),
        ("x[i] + float32(t + i)", "rate[i]", "x[i] + float32(t + i)"),
    ],
)
def test_what_is_read_in_its_own_step(rate: str, value: str, inlined: str) -> None:
    state = start(steps_in_time(rate, value))
    kernel = schedule(state, INLINE)[-1].state.kernel
    assert f"x[i] = {inlined}\n" in to_text(kernel)
    assert [b.name for b in blocks(kernel)] == ["x"]
    assert_same(state.kernel, kernel, (1, 2, 5), {"steps": 3})


@pytest.mark.parametrize(
    ("rate", "value", "reason"),
    [
        ("x[max(i - 1, 0)]", "x[i] - rate[i]", "but x[t=1, i=0] overwrites it in between"),
        ("x[i]", "x[i] + rate[min(i + 1, n - 1)] + rate[0]", "the proof was refused"),
    ],
)
def test_values_that_are_gone_when_they_are_read(rate: str, value: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as raised:
        schedule(start(steps_in_time(rate, value)), INLINE)
    assert "compute_inline (block rate): the proof was refused: " in str(raised.value)
    assert reason in str(raised.value)


def test_what_a_loop_around_it_alone_computes() -> None:
    text = """\
def last(n, steps: int64, x: float32[n], y: Out[float32[n]]):
    assume(steps >= 1)
    with allocate(rate=float32[n]):
        for rate.t in range(steps):
            for rate.i in range(n):
                with block("rate", t=spatial(rate.t), i=spatial(rate.i)):
                    rate[i] = float32(t) * x[i]
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = rate[i]
"""
    with pytest.raises(ScheduleError) as raised:
        schedule(start(text), INLINE)
    assert str(raised.value).splitlines() == [
        "recipe.yaml:4:9: error: compute_inline (block rate): block 'rate' writes each place once"
        " an iteration of 'rate.t', which is not around block 'y' alike",
        "          - compute_inline: {block: rate}",
        "            ^",
        "  hint: merge the loops, or give the temporary an axis for that index",
    ]


def test_what_is_read_a_step_later() -> None:
    """The value of the step before is another than that of the reader's own."""
    text = steps_in_time("x[i]", "rate[i]").replace("range(steps)", "range(1, steps)")
    ahead = text.replace("allocate(rate=float32[n])", "allocate(rate=float32[steps, n])")
    ahead = ahead.replace("rate[i] = x[i]", "rate[t, i] = float32(t)")
    ahead = ahead.replace("x[i] = rate[i]", "x[i] = rate[max(t - 1, 1), i]")
    kernel = schedule(start(ahead), INLINE)[-1].state.kernel
    assert "x[i] = float32(max(t - 1, 1))" in to_text(kernel)


OFFSETS = st.integers(-1, 1)


@settings(max_examples=25, deadline=None)
@given(OFFSETS, OFFSETS, OFFSETS, st.booleans())
def test_any_neighbours(a: int, b: int, c: int, again: bool) -> None:
    """What is not refused does the same."""

    def at(offset: int) -> str:
        return f"min(max(i + {offset}, 0), n - 1)" if offset else "i"

    value = f"x[{at(b)}] - rate[{at(c)}]" + " + rate[i]" * again
    state = start(steps_in_time(f"0.5 * x[{at(a)}]", value))
    try:
        kernel = schedule(state, INLINE)[-1].state.kernel
    except ScheduleError as refused:
        assert "the proof was refused" in cast(str, refused.message)
        assert (a, c) != (0, 0)
        return
    assert_same(state.kernel, kernel, (1, 2, 4), {"steps": 2})
