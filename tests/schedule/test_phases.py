"""reverse_compute_at through quotients and remainders: outputs whose phases are computed apart."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen.errors import ScheduleError
from gen.ir.text.printer import to_text

from .support import assert_same, schedule, start


def phases(loops: str, place: str = "i % 2, i // 2", count: int = 2, extent: str = "2*n") -> str:
    """z's phases in two loops, f and i, outermost first; then y of them."""
    bounds = {"f": f"range({count})", "i": "range(n)"}
    outer, inner = loops
    return f"""\
def phases(n, x: float32[n + 1], y: Out[float32[{extent}]]):
    with allocate(z=float32[{count}, n]):
        for z.{outer} in {bounds[outer]}:
            for z.{inner} in {bounds[inner]}:
                with block("z", f=spatial(z.f), i=spatial(z.i)):
                    z[f, i] = x[i + min(f, 1)] + float32(f)
        for y.i in range({extent}):
            with block("y", i=spatial(y.i)):
                y[i] = z[{place}] * 2.0
"""


SPLIT = "- split: {loop: z.i, factors: [null, 4], as: [z.i0, z.i1]}\n"


@pytest.mark.parametrize(
    ("text", "steps", "said"),
    [
        (phases("if"), SPLIT + "- reverse_compute_at: {block: y, loop: z.i0}",
         "i=spatial(z.i0 * 8 + y.i"),
        (phases("if"), "- reverse_compute_at: {block: y, loop: z.i}", "for y.i in range(2)"),
        (phases("if"), "- reverse_compute_at: {block: y, loop: z.f}", "i=spatial(z.i * 2 + z.f"),
        (phases("fi"), "- reverse_compute_at: {block: y, loop: z.i}", "i=spatial(z.i * 2 + z.f"),
        (phases("if", "0, (i + 1) // 2", extent="2*n - 1"),
         SPLIT + "- reverse_compute_at: {block: y, loop: z.i0}", "for y.i in"),
        (phases("if", "i % 3, n - 1 - i // 3", 3, "3*n"),
         SPLIT + "- reverse_compute_at: {block: y, loop: z.i0}", "for y.i in"),
    ],
)  # fmt: skip
def test_each_tile_runs_the_outputs_of_its_phases(text: str, steps: str, said: str) -> None:
    state = start(text)
    kernel = schedule(state, steps)[-1].state.kernel
    assert said in to_text(kernel)
    assert_same(state.kernel, kernel, (1, 2, 4, 7))


def test_outputs_of_one_phase_are_no_interval() -> None:
    with pytest.raises(ScheduleError) as raised:
        schedule(start(phases("fi")), "- reverse_compute_at: {block: y, loop: z.f}")
    assert "reads 'z' before z[f=1, i=0] computes it" in str(raised.value)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(["fi", "if"]),
    st.sampled_from(["z.i0", "z.i1", "z.f"]),
    st.integers(1, 4),
    st.integers(0, 2),
    st.sampled_from(["i", "i + 1", "n - 1 - i"]),
)
def test_any_phases(loops: str, loop: str, count: int, phase: int, place: str) -> None:
    """What is not refused does the same."""
    shown = f"(i + {phase}) % {count}" if phase else f"i % {count}"
    at = (
        place.replace("i", f"i // {count}")
        if place != "i + 1"
        else f"max((i + 1) // {count} - 1, 0)"
    )
    state = start(phases(loops, f"{shown}, {at}", count, f"{count}*n"))
    try:
        kernel = schedule(state, SPLIT + f"- reverse_compute_at: {{block: y, loop: {loop}}}")
    except ScheduleError as refused:
        assert "the proof was refused" in refused.message
        return
    assert_same(state.kernel, kernel[-1].state.kernel, (1, 3, 4))
