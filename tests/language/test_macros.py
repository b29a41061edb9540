"""Macros: what their uses come to, and every mistake with its place, both lines and a hint."""

import time
from collections.abc import Iterable
from textwrap import dedent

import pytest

from gen.errors import ScheduleError, SpecError, TilesmithError
from gen.language import loads
from gen.language.macros import MAX_MACROS, MAX_WRITTEN
from gen.language.model import KernelSpec
from gen.language.recipes import used
from gen.schedule.recipe import read
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.trial.tune.edit import with_values

HEAD = """tilesmith: 1
kernel: normalize
doc: Each row divided by its length.
signature: (n)->(n)
dtypes: {T: [float32]}
arguments:
  x: {type: "T[m, n]"}
  y: {type: "T[m, n]", intent: out}
compute: |
  square[i] = sum(x[i, j] ** 2 for j in n)
  y[i, j]   = x[i, j] / sqrt(square[i])
macros:
"""
FIRST = HEAD.count("\n") + 1
"""The line of a macros' first."""


def text(macros: str, steps: Iterable[str], params: str = "{}") -> str:
    lines = "".join(f"          - {step}\n" for step in steps)
    head = f"recipes:\n  - target: cpu\n    params: {params}\n    variants:\n      - steps:\n"
    return (
        HEAD + "".join(f"  {line}\n" for line in dedent(macros).strip().splitlines()) + head + lines
    )


def spec(macros: str, *steps: str, params: str = "{}") -> KernelSpec:
    return loads(text(macros, steps, params), "k.yaml")


def plain(loaded: KernelSpec) -> list[str]:
    """The steps as primitives, one a line."""
    return [str(step) for step in read(loaded.recipes[0], "v3", {"lanes": 8})[0].steps]


VECTORS = """
vectors:
  params: [loop, factors]
  steps:
    - split: {loop: $loop, factors: $factors, as: [$loop0, $loop_1]}
    - vectorize: {loop: $loop_1, width: $lanes}
"""


def test_parameters_are_whole_values_and_parts_of_names() -> None:
    use = "vectors: {loop: square.j, factors: [null, 8]}"
    assert plain(spec(VECTORS, use, use.replace("square", "y"))) == [
        f"{step}"
        for block in ("square", "y")
        for step in (
            f"split: {{loop: {block}.j, factors: [null, 8], as: [{block}.j0, {block}.j_1]}}",
            f"vectorize: {{loop: {block}.j_1, width: 8}}",
        )
    ]


def test_several_parameters_in_a_name() -> None:
    macro = """
    written:
      params: [block, index]
      steps:
        - unroll: {loop: $block.init.$index1}
    """
    (step,) = plain(spec(macro, "written: {block: total, index: j}"))
    assert step == "unroll: {loop: total.init.j1}"


def test_the_recipes_own_parameters_and_those_of_macros_keep_apart() -> None:
    """`$rows` is what the use gives where the macro has it, else the recipe's, whatever the macro
    around it has; what a use gives is not looked through again.
    """
    macros = """
    outer:
      params: [rows, loop]
      steps:
        - inner: {loop: $loop, by: $rows}
        - own
    inner:
      params: [loop, by]
      steps:
        - split: {loop: $loop, factors: [$rows, $by]}
    own:
      steps:
        - split: {loop: y.j, factors: [null, $rows]}
    """
    found = plain(spec(macros, "outer: {rows: $rows, loop: y.i}", params="{rows: 3}"))
    assert found == [
        "split: {loop: y.i, factors: [3, 3]}",
        "split: {loop: y.j, factors: [null, 3]}",
    ]
    found = plain(spec(macros, "outer: {rows: 5, loop: y.i}", params="{rows: 3}"))
    assert found[0] == "split: {loop: y.i, factors: [3, 5]}"


def test_a_macro_may_be_defined_after_its_use_in_another() -> None:
    macros = "a: {steps: [b]}\nb: {steps: [parallel: {loop: y.i}]}"
    assert plain(spec(macros, "a", "b")) == ["parallel: {loop: y.i}"] * 2


def test_an_expanded_step_is_the_step() -> None:
    """Equal to the one that is written by hand, but for its place."""
    macro = "rows: {params: [block], steps: [parallel: {loop: $block.i}]}"
    expanded = spec(macro, "rows: {block: y}").recipes[0].variants
    by_hand = HEAD.replace("macros:\n", "") + text("", ["parallel: {loop: y.i}"])[len(HEAD) :]
    assert expanded == loads(by_hand, "k.yaml").recipes[0].variants


def test_tune_finds_and_writes_the_parameters_that_macros_use() -> None:
    """In the recipe's `params`; the macros stay as they are."""
    macro = "rows: {params: [block], steps: [split: {loop: $block.i, factors: [null, $count]}]}"
    given = text(macro, USED, "{count: 4}")
    loaded = loads(given, "k.yaml")
    assert used(loaded.recipes[0].variants[0]) == {"count"}
    tuned = with_values(given, "k.yaml", "cpu", Cpu(Level.V3), {"count": 8})
    assert tuned == given.replace("{count: 4}", "{count: {v2: 4, v3: 8, v4: 4, neon: 4}}")
    assert loads(tuned, "k.yaml").recipes[0].variants == loaded.recipes[0].variants


# ---------------------------------------------------------------- refusals

ROWS = "rows: {params: [block], steps: [parallel: {loop: $block.i}]}"
USED = ("rows: {block: y}",)

REFUSED = {  # macros, steps, message, line of the macros from 0 or text at the caret, hint
    "another kind": ("rows: 4", USED, "the macro 'rows' must be a map, not '4'", "4", None),
    "no steps": ("rows: {steps: []}", ("rows",), "the macro 'rows' has no steps", "rows", None),
    "a missing key": (
        "rows: {params: [a]}", USED, "the macro 'rows' needs the key 'steps'", "{params", None,
    ),
    "an unknown key": (
        "rows: {parms: [a], steps: [a]}", USED, "unknown key 'parms' in the macro 'rows'", "parms",
        "did you mean 'params'?",
    ),
    "steps of another kind": (
        "rows: {steps: 4}", USED, "'steps' of the macro 'rows' must be a list, not '4'", "4", None,
    ),
    "a step of another kind": (
        "rows: {steps: [4]}", USED, "a step is one primitive with a map of arguments", "4",
        "write '- split: {loop: y.j, factors: [8]}'",
    ),
    "a name that is none": (
        "4rows: {steps: [a]}", USED, "'4rows' is not a name", "4rows",
        "a name is letters, digits and single underscores",
    ),
    "a parameter with a digit": (
        "rows: {params: [row1], steps: [a]}", USED, "'row1' is not a name", "row1",
        "a macro's parameter is letters and single underscores: $loop0 is $loop and a 0",
    ),
    "a parameter twice": (
        "rows: {params: [a, b, a], steps: [x: {a: $a, b: $b}]}", USED,
        "the parameter 'a' is there twice", "a], steps", None,
    ),
    "a parameter that is not used": (
        "rows: {params: [block, loop], steps: [x: {loop: $block.i}]}", USED,
        "nothing uses the parameter '$loop'", "loop]", None,
    ),
    "a parameter that is not there": (
        "rows: {params: [block], steps: [x: {loop: $blok.i, b: $block}]}", USED,
        "the macro 'rows' has no parameter '$blok'", "$blok", "did you mean 'block'?",
    ),
    "itself": (
        "rows: {steps: [rows]}", ("rows",), "the macro 'rows' uses itself", "rows]",
        "a macro is made of primitives and other macros, and has no primitive's name",
    ),
    "itself by others": (
        "a: {steps: [b]}\nb: {steps: [c: {}]}\nc: {steps: [b]}", ("a",),
        "the macro 'b' uses itself, by way of 'c'", "c: {}",
        "a macro is made of primitives and other macros, and has no primitive's name",
    ),
    "no use": (
        ROWS, ("parallel: {loop: y.i}",), "nothing uses the macro 'rows'", "rows: {params", None,
    ),
    "no use but in one that has none": (
        f"{ROWS}\nall: {{steps: [rows: {{block: y}}]}}", ("parallel: {loop: y.i}",),
        "nothing uses the macro 'all'", "all:", None,
    ),
    "a use without a map": (
        ROWS, ("rows: y",), "a macro is used with a map of its parameters", "rows: y",
        "write '- rows: {block: ...}'",
    ),
    "a use without a parameter": (
        ROWS, ("rows",), "the macro 'rows' needs the parameter 'block'", "rows\n", None,
    ),
    "a use with an unknown parameter": (
        ROWS, ("rows: {blok: y}",), "the macro 'rows' has no parameter 'blok'", "blok",
        "did you mean 'block'?",
    ),
    "a use with a parameter that is like none": (
        ROWS, ("rows: {block: y, tested: true}",), "the macro 'rows' has no parameter 'tested'",
        "tested", "its parameters are block",
    ),
    "a use with a parameter where there is none": (
        "rows: {steps: [parallel: {loop: y.i}]}", ("rows: {block: y}",),
        "the macro 'rows' has no parameter 'block'", "block", "it has none",
    ),
    "a map for a parameter": (
        ROWS, ("rows: {block: {a: 1}}",),
        "'block' of the macro 'rows' must be a word, a number or a list of these", "{a: 1}", None,
    ),
    "a list of lists for a parameter": (
        ROWS, ("rows: {block: [[y]]}",),
        "'block' of the macro 'rows' must be a word, a number or a list of these", "[[y]]", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", REFUSED)
def test_refused_when_read(mistake: str) -> None:
    macros, steps, message, place, hint = REFUSED[mistake]
    given = text(macros, steps)
    with pytest.raises(SpecError) as refusal:
        loads(given, "k.yaml")
    error = refusal.value
    assert (error.message, error.hint) == (message, hint)
    assert error.span is not None
    line = given.splitlines(keepends=True)[error.span.line - 1]
    assert line[error.span.column - 1 :].startswith(place)
    assert str(error).splitlines()[2].index("^") == error.span.column + 3


IN_A_MACRO = {
    "a list in a name": (
        ROWS, "rows: {block: [y]}",
        "'$block' is a list here: a part of a name is a word or an integer", None,
    ),
    "nothing in a name": (
        ROWS, "rows: {block: null}",
        "'$block' is 'null' here: a part of a name is a word or an integer", None,
    ),
    "an unknown primitive": (
        "rows: {params: [block], steps: [paralel: {loop: $block.i}]}", USED[0],
        "there is no primitive or macro 'paralel'", "did you mean 'parallel'?",
    ),
    "an unknown argument": (
        "rows: {params: [block], steps: [parallel: {loup: $block.i}]}", USED[0],
        "unknown key 'loup' in parallel", "did you mean 'loop'?",
    ),
    "an argument of a wrong type": (
        "rows: {params: [block], steps: [vectorize: {loop: y.i, width: $block}]}", USED[0],
        "'width' of vectorize must be an integer, not 'y'", None,
    ),
    "an unknown parameter": (
        "rows: {params: [block], steps: [parallel: {loop: $blok, tested: $block}]}", USED[0],
        "there is no parameter '$blok'", "did you mean 'block'?",
    ),
    "a number that is too large": (
        "rows: {params: [block], steps: [vectorize: {loop: y.i, width: $block}]}",
        "rows: {block: 4294967296}",
        "4294967296 is too large: the integers of a recipe are at most 2**31",
        "code counts in 64 bits, and what is made of larger ones may not fit",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", IN_A_MACRO)
def test_refused_in_an_expanded_step(mistake: str) -> None:
    """With the line of the macro and the line of its use."""
    macros, use, message, hint = IN_A_MACRO[mistake]
    with pytest.raises(TilesmithError) as refusal:
        plain(spec(macros, use))
    error = refusal.value
    assert (error.message, error.hint) == (message, hint)
    told = str(error).splitlines()
    assert told[0].startswith(f"k.yaml:{FIRST}:")
    assert told[1] == f"      {macros}"
    assert told[3] == f"k.yaml:{FIRST + 6}:13: in the macro 'rows', used here"
    assert told[4:6] == [f"              - {use}", "                ^"]


def test_all_uses_are_shown() -> None:
    macros = f"{ROWS}\nall: {{params: [b], steps: [rows: {{block: $b}}]}}"
    with pytest.raises(ScheduleError) as refusal:
        plain(spec(macros.replace("parallel", "paralel"), "all: {b: y}"))
    error = str(refusal.value)
    assert [line for line in error.splitlines() if line.startswith("k.yaml")] == [
        f"k.yaml:{FIRST}:35: error: there is no primitive or macro 'paralel'",
        f"k.yaml:{FIRST + 1}:30: in the macro 'rows', used here",
        f"k.yaml:{FIRST + 7}:13: in the macro 'all', used here",
    ]


def test_a_misspelt_use_is_told_the_macro() -> None:
    with pytest.raises(ScheduleError) as refusal:
        plain(spec(ROWS, *USED, "row: {block: y}"))
    assert refusal.value.message == "there is no primitive or macro 'row'"
    assert refusal.value.hint == "did you mean 'rows'?"


@pytest.mark.parametrize("name", ["parallel", "ComputeAt", "interchange"])
def test_a_macro_with_a_primitives_name(name: str) -> None:
    macros = f"{name}: {{steps: [fuse: {{loops: [y.i, y.j]}}]}}"
    with pytest.raises(ScheduleError) as refusal:
        plain(spec(macros, name))
    assert refusal.value.message == f"'{name}' is a primitive: a macro cannot be named so"
    assert refusal.value.span is not None
    assert (refusal.value.span.line, refusal.value.span.column) == (FIRST, 3)


# ---------------------------------------------------------------- limits


def test_what_macros_come_to_has_a_limit() -> None:
    """Macros that use each other twice, 40 deep, end at once."""
    levels = [f"m{k}: {{steps: [m{k + 1}, m{k + 1}]}}" for k in range(40)]
    macros = "\n".join([*levels, "m40: {steps: [parallel: {loop: y.i}]}"])
    begin = time.perf_counter()
    with pytest.raises(SpecError) as refusal:
        spec(macros, "parallel: {loop: y.i}", "m0")
    assert time.perf_counter() - begin < 5
    found = f"macros come to more than {MAX_WRITTEN} characters in this variant"
    assert refusal.value.message == found
    assert refusal.value.span is not None
    assert refusal.value.span.text.strip() == "- m0"


def test_a_text_that_doubles_has_a_limit() -> None:
    levels = [f"m{k}: {{params: [a], steps: [m{k + 1}: {{a: $a$a}}]}}" for k in range(40)]
    macros = "\n".join([*levels, "m40: {params: [a], steps: [parallel: {loop: $a}]}"])
    with pytest.raises(SpecError, match="comes to more than 2000 characters"):
        spec(macros, "m0: {a: y.i}")


def test_so_many_macros() -> None:
    macros = "\n".join(f"m{k}: {{steps: [parallel: {{loop: y.i}}]}}" for k in range(MAX_MACROS + 1))
    with pytest.raises(SpecError) as refusal:
        spec(macros, "m0")
    assert refusal.value.message == "the file has 65 macros; the limit is 64"
    assert refusal.value.span is not None
    assert refusal.value.span.line == FIRST + MAX_MACROS
