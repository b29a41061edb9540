"""What a step may not make of a tree: it would grow beyond what anything after it ends on."""

import pytest

from gen import language as spec
from gen.errors import ScheduleError, SpecError
from gen.poly.certificate import Scheduled
from gen.poly.values.flow import plain_flow
from gen.schedule import limits
from gen.schedule.base import StepContext
from gen.schedule.examples import SCALE, TWICE
from gen.schedule.limits import MOST_NESTED
from gen.schedule.recipe import run

from .support import start, steps

DEEP = "".join(f"- split: {{loop: y.a{k}, factors: [null, 2], as: [y.a{k + 1}, y.b{k}]}}\n"
               for k in range(MOST_NESTED))  # fmt: skip
PEELED = "".join(f"- peel: {{loop: y.i, at: 1, as: [y.a{k}, y.i]}}\n" for k in range(9))
SIXTEENS = """\
- split: {loop: y.i, factors: [null, 16, 16, 16, 16, 16]}
- unroll: {loop: y.i_1}
- unroll: {loop: y.i_2}
- unroll: {loop: y.i_3}
"""
WIDE = """\
- split: {loop: y.i, factors: [null, 32, 32, 32]}
- unroll: {loop: y.i_1}
- unroll: {loop: y.i_2}
- vectorize: {loop: y.i_3, width: 32}
"""


def tried(text: str, given: str) -> None:
    """The steps, neither verified nor proved, as `check` tries them."""
    state = start(text)
    run(state, steps(given), StepContext(state.kernel, None))


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        pytest.param(
            SIXTEENS,
            "unroll (loop y.i_3): unrolled loops would be written out as 4097 statements; the limit"
            " is 4096",
            "unroll fewer loops, or fewer iterations at a time",
            id="unrolled",
        ),
        pytest.param(
            WIDE,
            "vectorize (loop y.i_3): unrolled loops would be written out as 8193 statements; the"
            " limit is 4096",
            "unroll fewer loops, or fewer iterations at a time",
            id="vectors",
        ),
        pytest.param(
            "- split: {loop: y.i, factors: [null, 2], as: [y.a0, y.b]}\n" + DEEP,
            "split (loop y.a30): there would be 33 loops in each other; the limit is 32",
            "split less",
            id="nested",
        ),
        pytest.param(
            PEELED,
            "peel (loop y.i): there would be 11 blocks; the limit is 10",
            "peel or copy fewer loops",
            id="peeled",
        ),
        pytest.param(
            f"- split: {{loop: y.i, factors: [null{', 2' * 100}]}}",
            "split (loop y.i): 101 factors would be as many loops in each other; the limit is 32",
            None,
            id="factors",
        ),
        pytest.param(
            f"- cascade: {{block: s, loop: s.i, lengths: [{', '.join('2' * 40)}]}}",
            "cascade stands for split (loop s.i): 41 factors would be as many loops in each other;"
            " the limit is 32",
            None,
            id="lengths",
        ),
    ],
)
def test_a_step_that_multiplies_too_much(
    given: str, message: str, hint: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_BLOCKS", 10)  # fewer, for the test's time
    with pytest.raises(ScheduleError) as refused:
        tried(SUM if "cascade" in given else TWICE, given)
    assert (refused.value.message, refused.value.hint) == (message, hint)


SUM = """\
def total(n, x: float32[n], s: Out[float32[1]]):
    for s.i in range(n):
        with block("s", i=reduction(s.i), initialises=True):
            s[0] = combine.sum(s[0], x[i])
"""


def test_as_much_as_the_limit() -> None:
    tried(SCALE, "- tile: {loops: [y.i, y.j], sizes: [64, 64]}\n- unroll: {loop: y.i_1}\n"
          "- unroll: {loop: y.j_1}")  # fmt: skip


SPEC = """\
tilesmith: 1
kernel: k
doc: d.
signature: (n)->(n)
dtypes: {T: [float32]}
arguments:
  x: {type: "T[n]"}
  y: {type: "T[n]", intent: out}
compute: |
"""
DOUBLED = "  t0[i] = x[i] + 0\n" + "".join(
    f"  t{k}[i] = t{k - 1}[i] + t{k - 1}[i]\n" for k in range(1, 12)
)
CHAIN = "  t0[i] = x[i] + 0\n" + "".join(f"  t{k}[i] = t{k - 1}[i] + 1\n" for k in range(1, 30))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(DOUBLED + "  y[i] = t11[i]\n", "nodes; the limit is 2000", id="doubled"),
        pytest.param(CHAIN + "  y[i] = t29[i]\n", "nodes deep; the limit is 20", id="chain"),
    ],
)
def test_expressions_that_are_inlined_into_each_other(
    body: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_DEPTH", 20)
    monkeypatch.setattr(limits, "MOST_NODES", 2000)
    loaded = spec.loads(SPEC + body, "k.yaml")
    kernel = spec.build(loaded, spec.choices(loaded)[0])
    state = Scheduled(kernel, plain_flow(kernel))
    with pytest.raises(ScheduleError) as refused:
        run(state, steps("- inline_all: {}"), StepContext(kernel, None))
    assert refused.value.message.startswith("inline_all stands for compute_inline (block t")
    assert refused.value.message.endswith(message)
    assert refused.value.hint == "inline fewer blocks"


def test_loops_around_one_statement() -> None:
    body = "".join(f"{' ' * (k + 2)}for i{k} in range(n):\n" for k in range(33))
    with pytest.raises(SpecError) as refused:
        spec.loads(
            f"{SPEC}{body}{' ' * 40}y[i0] += x[i0]\n".replace(
                "intent: out", "intent: inout"
            ).replace("(n)->(n)", "(n),(n)->(n)"),
            "k.yaml",
        )
    assert refused.value.message == "more than 32 loops are around one statement"
    assert refused.value.span and refused.value.span.line == 10 + 32


def test_variants_of_a_recipe() -> None:
    variants = "".join(f"      - {{when: n > {k}, steps: []}}\n" for k in range(64, 0, -1))
    recipe = f"recipes:\n  - target: cpu\n    variants:\n{variants}      - steps: []\n"
    with pytest.raises(SpecError) as refused:
        spec.loads(f"{SPEC}  y[i] = x[i]\n{recipe}", "k.yaml")
    assert refused.value.message == "the recipe has 65 variants; the limit is 64"
    assert refused.value.span and refused.value.span.line == 10 + 4 + 64
