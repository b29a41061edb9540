"""Located nodes, and their decoding into dataclasses."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import pytest

from gen.errors import Span, SpecError
from gen.language import yaml


class Colour(Enum):
    RED = "red"
    GREEN = "green"


@dataclass(frozen=True)
class Inner:
    name: str


@dataclass(frozen=True)
class Split:
    loop: str
    span: Span
    factors: tuple[int | None, ...] = ()
    as_: tuple[str, ...] | None = None
    width: int | str = "$lanes"
    ratio: float = 1.0
    tail: Literal["mask", "overlap"] = "mask"
    colour: Colour = Colour.RED
    inner: Inner | None = None
    table: dict[str, int] | None = None
    raw: yaml.Node | None = None


def decode(text: str) -> Split:
    return yaml.decode(yaml.parse(text, "k.yaml"), Split, "split")


def test_decode() -> None:
    split = decode(
        "{loop: y.j, factors: [null, 8], as: [a, b], width: 4, ratio: 2, tail: overlap,"
        " colour: green, inner: {name: no}, table: {a: 1}, raw: [x]}"
    )
    assert split == Split(
        "y.j", Span("k.yaml", 1, 1), (None, 8), ("a", "b"), 4, 2.0, "overlap", Colour.GREEN,
        Inner("no"), {"a": 1}, split.raw,
    )  # fmt: skip
    assert isinstance(split.ratio, float) and isinstance(split.raw, yaml.List)
    assert decode("{loop: x}").width == "$lanes"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("x: {type: T[m, n], intent: out}", 'quote it: "T[m, n]"'),
        ("x: {intent: out, type: real(T)[m]}", 'quote it: "real(T)[m]"'),
        ('x: {type: "T[m, n]", intent: out', None),
    ],
)
def test_brackets_in_braces_are_to_be_quoted(text: str, hint: str | None) -> None:
    with pytest.raises(SpecError, match="not YAML: ") as info:
        yaml.parse(text, "k.yaml")
    assert info.value.hint == hint


@pytest.mark.parametrize(
    ("text", "value", "hint"),
    [
        ("{k: max(h, 1)}", "max(h", 'quote it: "max(h, 1)"'),
        ("{k: 2 * max(h, (a + 1) // 2) + 1, l: 2}", "2 * max(h",
         'quote it: "2 * max(h, (a + 1) // 2) + 1"'),
        ("[null, max(a, b, 1)]", "max(a", 'quote it: "max(a, b, 1)"'),
        ("{k: max(h, 1}", "max(h", None),
    ],
)  # fmt: skip
def test_commas_between_parentheses_are_to_be_quoted(
    text: str, value: str, hint: str | None
) -> None:
    with pytest.raises(SpecError) as info:
        yaml.parse(text, "k.yaml")
    assert str(info.value).startswith(
        f"k.yaml:1:{text.index(value) + 1}: error: '{value}' ends at a comma:"
    )
    assert info.value.hint == hint


def test_what_is_quoted_may_have_any_parentheses() -> None:
    yaml.parse('{k: "max(h", l: 1}', "k.yaml")
    yaml.parse("- max(h, 1", "k.yaml")


@pytest.mark.parametrize(
    ("text", "message", "hint", "column"),
    [
        ("{lop: x}", "unknown key 'lop' in split", "did you mean 'loop'?", 2),
        ("{loop: x, zzz: 1}", "unknown key 'zzz' in split",
         "its keys are loop, factors, as, width, ratio, tail, colour, inner, table, raw", 11),
        ("{factors: []}", "split needs the key 'loop'", None, 1),
        ("{loop: 1}", "'loop' of split must be a string, not '1'", None, 8),
        ("{loop: x, factors: 8}", "'factors' of split must be a list, not '8'", None, 20),
        ("{loop: x, factors: [a]}",
         "'factors' of split must be an integer or nothing, not 'a'", None, 21),
        ("{loop: x, factors: [true]}",
         "'factors' of split must be an integer or nothing, not 'true'", None, 21),
        ("{loop: x, tail: maks}", "'tail' of split must be one of mask, overlap, not 'maks'",
         "did you mean 'mask'?", 17),
        ("{loop: x, colour: gren}", "'colour' of split must be one of red, green, not 'gren'",
         "did you mean 'green'?", 19),
        ("{loop: x, inner: {nam: y}}", "unknown key 'nam' in 'inner' of split",
         "did you mean 'name'?", 19),
        ("{loop: [x]}", "'loop' of split must be a string, not a list", None, 8),
        ("{loop: {x: y}}", "'loop' of split must be a string, not a map", None, 8),
        ("{loop: }", "'loop' of split must be a string, not nothing", None, 7),
        ("{loop: x, as_: [a]}", "unknown key 'as_' in split", "did you mean 'as'?", 11),
        ("[x]", "split must be a map, not a list", None, 1),
    ],
)  # fmt: skip
def test_errors(text: str, message: str, hint: str | None, column: int) -> None:
    with pytest.raises(SpecError) as info:
        decode(text)
    assert (info.value.message, info.value.hint) == (message, hint)
    assert info.value.span is not None and info.value.span.column == column


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"), ("on", "on"), ("1:30", "1:30"), ("1e-5", 1e-5), ("-.5", -0.5), ("012", 12),
        ("-.inf", -math.inf),
        ("true", True), ("~", None), ("'1'", "1"), ('"true"', "true"), ("0x10", "0x10"),
        ("2020-01-01", "2020-01-01"), ("18446744073709551615", 2**64 - 1), ("y.j", "y.j"),
    ],
)  # fmt: skip
def test_scalars_are_yaml_1_2(text: str, value: object) -> None:
    node = yaml.parse(f"a: {text}", "k.yaml")
    assert isinstance(node, yaml.Map)
    scalar = node.entries[0][1]
    assert isinstance(scalar, yaml.Scalar)
    assert scalar.value == value and type(scalar.value) is type(value)


def test_nodes_that_say_the_same_are_equal() -> None:
    assert yaml.parse("{a: [1, b]}", "one") == yaml.parse("a:\n- 1\n- 'b'\n", "two")
