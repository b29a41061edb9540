import pytest

from gen.errors import ScheduleError, SpecError
from gen.ir.text.parser import from_text
from gen.ir.text.print_expr import spec_text
from gen.ir.text.printer import to_text
from gen.language.model import Recipe
from gen.lower.variants import plans_of
from gen.schedule.base import StepContext
from gen.schedule.recipe import apply, choose, read, run
from tests.conftest import Golden

from .support import assert_same, from_spec, recipe, steps

TWO_LEVELS = """
- target: cpu
  params: {acc: {v4: 4, v3: 2}, chunk: 16}
  variants:
  - steps:
    - split: {loop: y.j, factors: [null, $chunk]}
    - vectorize: {loop: y.j_1, width: $lanes, accumulators: $acc}
"""


def test_parameters_by_level() -> None:
    (v4,) = read(recipe(TWO_LEVELS), "v4", {"lanes": 16})
    (v3,) = read(recipe(TWO_LEVELS), "v3", {"lanes": 8})
    assert [str(p) for p in v4.steps] == [
        "split: {loop: y.j, factors: [null, 16]}",
        "vectorize: {loop: y.j_1, width: 16, accumulators: 4}",
    ]
    assert str(v3.steps[1]) == "vectorize: {loop: y.j_1, width: 8, accumulators: 2}"


def test_what_the_level_says_itself() -> None:
    given = (
        "- target: cpu\n  variants:\n  - steps:\n    - split: {loop: y.j, factors: [null, $line]}"
    )
    (variant,) = read(recipe(given), "v3", {"lanes": 8, "line": 16})
    assert [str(step) for step in variant.steps] == ["split: {loop: y.j, factors: [null, 16]}"]


CONDITION = """
- target: cpu
  params: {acc: 3, word: mask}
  variants:
  - when: WHEN
    steps: [vectorize: {loop: y.j, width: $acc, tail: $word}]
  - steps: []
"""


def condition(when: str) -> Recipe:
    return recipe(CONDITION.replace("WHEN", when), "m", "n")


def test_a_parameter_in_a_condition() -> None:
    first, last = read(condition("n <= $acc * $lanes and m >= 8"), "v3", {"lanes": 8})
    assert first.when is not None and last.when is None
    assert spec_text(first.when) == "n <= 24 and m >= 8"


def test_a_variant_that_parameters_rule_out_has_no_plan() -> None:
    given = condition("$lanes > 4 and n <= $acc")
    plans = [plans_of(given, "v3", {"lanes": lanes}) for lanes in (8, 4)]
    assert [[plan.name for plan in found] for found in plans] == [["0", "plain"], ["plain"]]


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("n <= $accs", "there is no parameter '$accs'"),
        ("n <= $word", "the parameter '$word' is no number"),
    ],
)
def test_a_parameter_refused_in_a_condition(when: str, message: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        read(condition(when), "v3", {"lanes": 8})
    assert refusal.value.message == message
    assert refusal.value.span is not None


@pytest.mark.parametrize(
    ("when", "column"), [("n <= 4 $acc", 18), ("n <= $acc * k", 23), ("n <= $", 16), ("$4 > n", 11)]
)
def test_a_condition_refused_at_its_column(when: str, column: int) -> None:
    with pytest.raises(SpecError) as refusal:
        condition(when)
    assert refusal.value.span is not None
    assert (refusal.value.span.line, refusal.value.span.column) == (5, column)


def test_choose_prefers_the_level() -> None:
    general = recipe("- target: cpu\n  variants: [{steps: []}]")
    special = recipe("- target: cpu.v3\n  variants: [{steps: []}]")
    assert choose([general, special], "cpu", "v3") is special
    assert choose([general, special], "cpu", "v4") is general
    assert choose([special], "cpu", "v4") is None


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("acc: {v4: 4, v3: 2}", "the parameter '$acc' has no value on v2", 7),
        ("lanes: 4, acc: 1", "'$lanes' is the target's own: a parameter cannot be named so", 3),
        ("acc: 1, more: 2", "nothing uses the parameter '$more'", 3),
        ("act: 1", "there is no parameter '$acc'", 7),
    ],
)
def test_parameters_refused(text: str, message: str, line: int) -> None:
    given = TWO_LEVELS.replace("acc: {v4: 4, v3: 2}, chunk: 16", f"{text}, chunk: 16")
    with pytest.raises(ScheduleError) as refusal:
        read(recipe(given), "v2", {"lanes": 4})
    assert refusal.value.message == message
    assert refusal.value.span is not None
    assert refusal.value.span.line == line


LARGE = "code counts in 64 bits, and what is made of larger ones may not fit"


@pytest.mark.parametrize(
    ("step", "message", "hint"),
    [
        ("- splot: {loop: y.i}", "there is no primitive 'splot'", "did you mean 'split'?"),
        ("- parallel: {loup: y.i}", "unknown key 'loup' in parallel", "did you mean 'loop'?"),
        (
            "- scan: {loop: y.i}",
            "unknown key 'loop' in scan",
            "its keys are block, width, as, tested",
        ),
        (
            "- gpu_blocks: {loop: y.i}",
            "there is no primitive 'gpu_blocks'",
            "`bind` takes the axis, as in bind: {loop: y.i, axis: blockIdx.x}",
        ),
        (
            "- fuse_loops: {loops: [y.i, y.j]}",
            "there is no primitive 'fuse_loops'",
            "`merge` makes one loop of siblings, `fuse` of loops in one another",
        ),
        ("- parallel: {}", "parallel needs the key 'loop'", None),
        ("- set_scope: {buffer: e, scope: heat}", None, "did you mean 'heap'?"),
        ("- split: {loop: y.i, factors: [4.5]}", None, None),
        (
            "- shift: {loop: y.j, by: 9223372036854775807}",
            "9223372036854775807 is too large: the integers of a recipe are at most 2**31",
            LARGE,
        ),
        (
            "- skew: {loops: [y.i, y.j], factor: -2147483649}",
            "2147483649 is too large: the integers of a recipe are at most 2**31",
            LARGE,
        ),
        (
            "- set_schedule: {block: y, at: [i, j + 0x100000000]}",
            "0x100000000 is too large: the integers of a recipe are at most 2**31",
            LARGE,
        ),
    ],
)
def test_steps_refused(step: str, message: str | None, hint: str | None) -> None:
    with pytest.raises((ScheduleError, SpecError)) as refusal:
        steps(step)
    assert message in (None, refusal.value.message)
    assert refusal.value.hint == hint
    assert refusal.value.span is not None
    assert refusal.value.span.line == 4


@pytest.mark.parametrize(
    ("step", "written"),
    [
        ("parallel: y.i", "parallel: {loop: y.i}"),
        ("ComputeAt: y", "ComputeAt: {block: y, loop: ...}"),
        ("split: 8", "split: {loop: 8, factors: ...}"),
        ("fuse: [y.i, y.j]", "fuse: {loops: ...}"),
    ],
)
def test_a_step_without_a_map(step: str, written: str) -> None:
    given = recipe(f"- target: cpu\n  variants:\n  - steps:\n    - {step}")
    with pytest.raises(SpecError) as refusal:
        read(given, "v3", {})
    assert refusal.value.message == "a step is one primitive with a map of arguments"
    assert refusal.value.hint == f"write '- {written}'"


def test_a_refused_step_is_located() -> None:
    _, start = from_spec("softmax")
    with pytest.raises(ScheduleError) as refusal:
        run(
            start,
            steps("- parallel: {loop: y.i}\n- parallel: {loop: y.k}"),
            StepContext(start.kernel),
        )
    assert str(refusal.value) == (
        "recipe.yaml:5:9: error: parallel (loop y.k): there is no loop 'y.k'\n"
        "          - parallel: {loop: y.k}\n"
        "            ^\n"
        "  hint: did you mean 'y.j'?"
    )


def test_softmax_step_by_step(golden: Golden) -> None:
    """The IR after each step of the recipe: the first thing to read about schedules."""
    recipes, start = from_spec("softmax")
    chosen = choose(recipes, "cpu", "v3")
    assert chosen is not None
    primitives, plain = (variant.steps for variant in read(chosen, "v3", {"lanes": 8}))
    assert plain == ()
    context = StepContext(start.kernel)
    text, state = "# the plain schedule\n" + to_text(start.kernel), start
    for primitive in primitives:
        state = apply(state, [primitive], context)[-1]
        script = to_text(state.kernel)
        assert from_text(script) == state.kernel
        text += f"\n# {primitive}\n{script}"
    golden("softmax.steps.txt", text)
    assert_same(start.kernel, state.kernel, sizes=(1, 3, 33))
