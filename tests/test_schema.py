"""The JSON Schema of specs: it takes what ships, and refuses what the reader refuses."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from gen.cli import main
from gen.errors import TilesmithError
from gen.language import choices, loads
from gen.pipeline import schedule
from gen.reference import schema
from gen.schedule.registry import PRIMITIVES
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.registry import TARGETS

ROOT = Path(__file__).parents[1]
SPECS = sorted(
    path
    for folder in ("kernels_spec", "tests/language/specs", "tests/language/sizes",
                   "tests/language/named", "docs/examples", "gen/project/templates/kernels_spec")
    for path in (ROOT / folder).glob("*.yaml")
)  # fmt: skip
PAGE = (ROOT / "docs" / "language.md").read_text("utf-8")
TEMPLATE = ROOT / "gen" / "project" / "templates" / "kernels_spec" / "normalize.yaml"
NORMALIZE = (
    TEMPLATE.read_text("utf-8")
    + """\
recipes:
  - target: cpu
    variants:
      - steps:
          - compute_at: {block: square, loop: y.i}
          - vectorize: {loop: square.j, width: $lanes, accumulators: 4}
          - vectorize: {loop: y.j, width: $lanes}
          - parallel: {loop: y.i}
"""
)

VALIDATOR = jsonschema.Draft7Validator(schema.schema(TARGETS))


def parsed(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def test_it_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(schema.schema(TARGETS))


@pytest.mark.parametrize("path", SPECS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_specs_are_valid(path: Path) -> None:
    VALIDATOR.validate(parsed(path.read_text("utf-8")))


@pytest.mark.parametrize("text", re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.S | re.M))
def test_examples_of_the_language_are_valid(text: str) -> None:
    VALIDATOR.validate(parsed(text))


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda p: p.name)
def test_examples_of_a_primitive_are_valid(primitive: Any) -> None:
    """Those steps, too, that are refused: what refuses them is the tree."""
    variant = {"$schema": "", **VALIDATOR.schema, "$ref": "#/definitions/variant"}
    for example in primitive.EXAMPLES:
        jsonschema.Draft7Validator(variant).validate({"steps": parsed(example.steps)})


def test_what_may_be_left_empty() -> None:
    text = NORMALIZE[: NORMALIZE.index("recipes:")] + "recipes:\nscalars:\noracle: 1\n"
    text = text.replace("oracle: x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True))\n", "")
    loads(text.replace("oracle: 1", "oracle: x"), "k.yaml")
    VALIDATOR.validate(parsed(text))


def test_external_functions() -> None:
    entry = "{arguments: {x: T}, result: T, header: math.h, oracle: scipy.special.j0(x)}"
    text = f"externals:\n  bessel: {entry}\n"
    body = NORMALIZE.replace("x[i, j] / sqrt(square[i])", "bessel(x[i, j]) / sqrt(square[i])")
    loads(f"{body}{text}", "k.yaml")
    VALIDATOR.validate(parsed(f"{body}{text}"))
    for wrong in (text.replace("result: T, ", ""), text.replace("{x: T}", "{}")):
        with pytest.raises(TilesmithError):
            loads(f"{body}{wrong}", "k.yaml")
        assert not VALIDATOR.is_valid(parsed(f"{body}{wrong}"))


@pytest.mark.parametrize(
    ("how", "fits"),
    [
        ("{below: n, sorted: true}", True), ("{from: -0.5, below: 1}", True),
        ("probabilities", True), ("probability", False), ("{}", False), ("{to: 1}", False),
        ("{sorted: 1}", False),
    ],
)  # fmt: skip
def test_how_an_argument_is_drawn(how: str, fits: bool) -> None:
    text = NORMALIZE.replace('x: {type: "T[m, n]"}', f'x: {{type: "T[m, n]", drawn: {how}}}')
    assert text != NORMALIZE and VALIDATOR.is_valid(parsed(text)) is fits
    if fits:
        loads(text, "k.yaml")
    else:
        with pytest.raises(TilesmithError):
            loads(text, "k.yaml")


def test_a_parameter_stands_for_any_value() -> None:
    text = NORMALIZE.replace("accumulators: 4}", "accumulators: $acc}")
    text = text.replace("    variants:", "    params: {acc: {v4: 8, v3: 4}}\n    variants:")
    loads(text, "k.yaml")
    VALIDATOR.validate(parsed(text))


MISTAKES = {
    "an unknown key": ("oracle:", "oracel:"),
    "a missing key": ("signature: (n)->(n)\n", ""),
    "another version": ("tilesmith: 1", "tilesmith: 2"),
    "a bad name": ("kernel: normalize", "kernel: 2d"),
    "an unknown element type": ("float64]", "float46]"),
    "an element type twice": ("float64]", "float32]"),
    "an unknown intent": ("intent: out", "intent: output"),
    "an unknown key of an argument": ("intent: out", "intend: out"),
    "an argument without a type": ('{type: "T[m, n]", intent: out}', "{intent: out}"),
    "constraints that are no list": ("oracle:", "constraints: n >= 1\noracle:"),
    "an unknown primitive": ("- parallel:", "- paralel:"),
    "an unknown argument": ("- parallel: {loop:", "- parallel: {loops:"),
    "a missing argument": ("{block: square, loop: y.i}", "{block: square}"),
    "an ill-typed argument": ("accumulators: 4", "accumulators: four"),
    "an unknown choice": ("width: $lanes, accumulators: 4", "width: $lanes, tail: peel"),
    "two primitives in a step": ("- parallel: {loop: y.i}\n",
                                 "- parallel: {loop: y.i}\n            unroll: {loop: y.j}\n"),
    "a recipe without variants": ("    variants:", "    params: {a: 1}\n    variant:"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_by_schema_and_reader(mistake: str) -> None:
    old, new = MISTAKES[mistake]
    assert NORMALIZE.count(old) == 1
    text = NORMALIZE.replace(old, new)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(parsed(text))
    with pytest.raises(TilesmithError):
        _read(text)


def _read(text: str) -> None:
    """The spec with the steps of its recipes."""
    spec = loads(text, "k.yaml")
    schedule(spec, choices(spec)[0], Cpu(Level.V3), lambda *_: None)


MACROS = NORMALIZE.replace(
    "recipes:\n",
    """\
macros:
  line:
    params: [block, loops, width]
    steps:
      - reorder: {loops: $loops}
      - vectorize: {loop: $block.j, width: $width}
      - set_scope: {buffer: $block, scope: $width}
  both:
    steps:
      - line: {block: y, loops: [y.i, y.j], width: 8}
      - inline_all
recipes:
""",
).replace(
    "- parallel: {loop: y.i}",
    "- line: {block: y, loops: [y.i, y.j], width: $lanes}\n          - both",
)


def test_macros_are_valid() -> None:
    loads(MACROS, "k.yaml")
    VALIDATOR.validate(parsed(MACROS))


MISTAKES_IN_MACROS = {
    "a macro without steps": ("    steps:\n      - line: {block: y, loops: [y.i, y.j], width: 8}\n"
                              "      - inline_all\n", "    params: []\n"),
    "an unknown key of a macro": ("params:", "parameters:"),
    "a parameter with a digit": ("[block, loops, width]", "[block2, loops, width]"),
    "an unknown argument": ("{loops: $loops}", "{loop: $loops}"),
    "an ill-typed argument": ("{loops: $loops}", "{loops: 4}"),
    "a map for a parameter": ("y.j], width: $lanes}", "y.j], width: {a: 1}}"),
    "no parameters for a primitive": ("- inline_all", "- vectorize"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES_IN_MACROS)
def test_a_mistake_in_macros_is_refused(mistake: str) -> None:
    old, new = MISTAKES_IN_MACROS[mistake]
    assert MACROS.count(old) == 1
    text = MACROS.replace(old, new)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(parsed(text))
    with pytest.raises(TilesmithError):
        _read(text)


def test_without_macros_a_step_is_a_primitive() -> None:
    text = NORMALIZE.replace("- parallel:", "- paralel:")
    assert not VALIDATOR.is_valid(parsed(text))
    assert VALIDATOR.is_valid(parsed(text + "macros: {paralel: {steps: [inline_all]}}"))


def test_every_key_is_explained_as_on_the_page() -> None:
    keys = schema.schema(TARGETS)["properties"]
    table = PAGE.partition("\n## Keys\n")[2].partition("\n## ")[0]
    assert [*keys] == re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert all("description" in value for value in keys.values())


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed) == schema.schema(TARGETS)
