"""Scalars that are words of a list: read, refused, run with each, and as callers give them."""

from pathlib import Path

import numpy as np
import pytest

from gen.binding.cython import docstring, parameters
from gen.binding.entry import manifest_entry
from gen.binding.manifest import entry_from_json, entry_to_json
from gen.binding.stubs import stubs
from gen.cli import main
from gen.errors import SpecError
from gen.language import build, choices, loads
from gen.language.syntax.members import in_words
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.values.flow import plain_flow
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.trial import notebook
from gen.trial.run import run

TEXT = """\
tilesmith: 1
kernel: bent
doc: x, bent.
signature: ()->()
dtypes: {T: [float32, float64]}
arguments:
  x: {type: "T[n]"}
  y: {type: "T[n]", intent: out}
scalars:
  shape: {type: [none, relu, square], default: relu}
compute: |
  y[i] = (max(x[i], 0) if shape == "relu" else x[i] * x[i] if "square" == shape
          else x[i])
oracle: np.maximum(x, 0) if shape == "relu" else x if shape != "square" else x * x
accuracy: eps * x[i] * x[i] if shape == "square" else 0
recipes:
  - target: cpu
    variants:
      - when: shape == "relu" and n >= 8
        steps:
          - vectorize: {loop: y.i, width: $lanes}
      - steps: []
"""


def test_what_is_read() -> None:
    spec = loads(TEXT, "k.yaml")
    (scalar,) = spec.scalars
    assert (scalar.members, scalar.default) == (("none", "relu", "square"), 1)


def test_each_word_is_tried() -> None:
    """`run` compares with the oracle for every word, and says which a variant ran for."""
    spec = loads(TEXT, "k.yaml")
    report = run(spec, spec.dtypes and {"T": spec.dtypes[0].choices[0]}, Cpu(Level.V2), {})
    tried = {case.scalars.get("shape", "relu") for case in (*report.edges, *report.others)}
    assert tried == {"relu", "none", "square"}
    assert all(case.worst <= 1 for case in (*report.edges, *report.others))


def test_calls(tmp_path: Path) -> None:
    path = tmp_path / "k.yaml"
    path.write_text(TEXT)
    bent = notebook.compile(path)
    x = np.array([-2.0, 3.0])
    assert bent(x).tolist() == [0, 3]
    assert bent(x, shape="none").tolist() == [-2, 3]
    assert bent(x, shape="square").tolist() == [4, 9]
    known = "'none' or 'relu' or 'square'"
    with pytest.raises(ValueError, match=f"^bent: shape must be {known}, got 'cube'$"):
        bent(x, shape="cube")
    with pytest.raises(TypeError, match=f"^bent: shape must be {known}, got int$"):
        bent(x, shape=1)


def test_the_binding() -> None:
    entry = manifest_entry(loads(TEXT, "k.yaml"), ["v2"], {})
    assert entry_from_json(entry_to_json(entry)) == entry
    assert "shape='relu'" in parameters(entry)
    assert "shape : 'none' or 'relu' or 'square'" in docstring(entry)
    assert "shape: Literal['none', 'relu', 'square'] = ..." in stubs([entry])


ERRORS = [
    ('shape == "relu" else x[i] * x[i]', 'shape == "rleu" else x[i] * x[i]',
     "'shape' is 'none', 'relu' or 'square', never 'rleu'", "did you mean 'relu'?"),
    ('shape == "relu" else x[i] * x[i]', 'shape < "relu" else x[i] * x[i]',
     "'shape' is 'none', 'relu' or 'square', and can be compared with these alone",
     "write shape == 'none'"),
    ("max(x[i], 0)", "x[i] * shape",
     "'shape' is 'none', 'relu' or 'square', and can be compared with these alone",
     "write shape == 'none'"),
    ('shape != "square"', "shape == 2",
     "'shape' is 'none', 'relu' or 'square', and can be compared with these alone",
     "write shape == 'none'"),
    ('shape == "relu" and', 'shape == "" and',
     "'shape' is 'none', 'relu' or 'square', never ''", None),
    ('x[i] if shape == "square" else 0', 'x[i] if shape == "squared" else 0',
     "'shape' is 'none', 'relu' or 'square', never 'squared'", "did you mean 'square'?"),
    ("default: relu", "default: rel",
     "the default of 'shape' must be 'none', 'relu' or 'square'", "did you mean 'relu'?"),
    ("default: relu", "default: 1",
     "the default of 'shape' must be 'none', 'relu' or 'square'", None),
    ("[none, relu, square]", "[none, relu, relu]", "'shape' has the word 'relu' twice", None),
    ("[none, relu, square]", "[relu]", "'shape' must have 2 to 64 words", None),
    ("[none, relu, square]", "[relu, 1, square]", "this is not a word",
     "quote what YAML reads as a number, true, false or null"),
    ("[none, relu, square]", '[relu, "a b"]',
     "a word begins with an ASCII letter, and has letters, digits and underscores", None),
    ("T[n]\", intent", "T[n + shape]\", intent", "no input tells the size 'shape'",
     "an input needs an axis shape, or one such as 4 * shape + 1; or give it under 'sizes'"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message", "hint"), ERRORS)
def test_errors(old: str, new: str, message: str, hint: str | None) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(SpecError) as info:
        loads(TEXT.replace(old, new), "k.yaml")
    assert info.value.message == message
    assert info.value.hint == hint
    assert info.value.span is not None


def test_what_a_call_establishes() -> None:
    """A scalar is one of its words: the prover knows it, and callers of C are told."""
    body = """\
  if shape == "none":
      y[i] = x[i]
  if shape == "relu":
      y[i] = max(x[i], 0)
  if shape == "square":
      y[i] = x[i] * x[i]
"""
    start, end = TEXT.index("  y[i] = "), TEXT.index("oracle:")
    head = TEXT[: TEXT.index("recipes:")]
    spec = loads(head[:start] + body + head[end:], "k.yaml")
    kernel = build(spec, choices(spec)[0])
    prove(kernel, Scheduled(kernel, plain_flow(kernel)))
    entry = manifest_entry(spec, ["v2"], {})
    assert entry.constraints == ("shape >= 0", "shape < 3")
    assert entry.size_rules == ()  # these are no sizes


SHIFT = """\
tilesmith: 1
kernel: shifted
doc: x, or x one place on.
signature: (n)->(n)
dtypes: {T: [float64]}
arguments:
  x: {type: "T[n]"}
  y: {type: "T[n]", intent: out}
scalars:
  mode: {type: [same, back], default: same}
compute: |
  for i in n:
      if mode == "same":
          y[i] = x[i]
      if mode == "back" and i > 0:
          y[i] = x[i - 1]
"""


def test_a_counterexample_says_the_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Proofs know its number alone; messages of `prove`, and of each step, have the word."""
    path = tmp_path / "shifted.yaml"
    path.write_text(SHIFT)
    assert main(["prove", "--levels", "v3", str(path)]) == 1
    said = "the spec leaves element [0] of 'y' unwritten (for example: n=1, mode='back'; element"
    assert said in capsys.readouterr().out
    parallel = "recipes: [{target: cpu, variants: [{steps: [{parallel: {loop: y.i}}]}]}]\n"
    kept = '          y[i] = x[i]\n      if mode == "back":\n          y[i] = y[max(i - 1, 0)]\n'
    before, _, _ = SHIFT.partition("          y[i] = x[i]\n")
    path.write_text(before.replace('if mode == "same":', "if n > 0:") + kept + parallel)
    assert main(["prove", "--levels", "v3", str(path)]) == 1
    printed = capsys.readouterr().out
    assert "parallel (loop y.i): " in printed and "mode='back'" in printed
    assert "mode=1" not in printed
    assert main(["show", "--steps", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "mode='back'" in printed and "mode=1" not in printed


def test_numbers_of_other_things_stay() -> None:
    text = "for example: m=1, mode=1, x.mode=1, amode=0; where `mode == 0 and mode != 1`, mode=17"
    assert in_words(text, {"mode": ("same", "back")}) == (
        "for example: m=1, mode='back', x.mode=1, amode=0;"
        " where `mode == 'same' and mode != 'back'`, mode=17"
    )
