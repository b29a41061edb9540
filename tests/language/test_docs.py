"""The examples of docs/language.md: each is loaded, built, proved and compared with its oracle."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gen.ir.interpret.interp import run
from gen.ir.interpret.sizes import value
from gen.ir.nodes import Intent
from gen.ir.rules.verify import verify
from gen.ir.types import DType
from gen.language import build, choices, loads
from gen.language.build import Dtypes
from gen.language.formulas import oracle
from gen.language.model import Argument
from gen.language.shapes import extent
from gen.language.syntax import grammar as language
from gen.pipeline import schedule
from gen.poly.prove import prove
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.trial.drawn import draw
from gen.trial.kinds import InputKind

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
NAMES = [re.findall(r"^kernel: (\w+)$", text, re.MULTILINE)[0] for text in EXAMPLES]
SIZES = {"m": 4, "n": 7, "k": 5, "d": 3}


def given(a: Argument, dtypes: Dtypes, rng: np.random.Generator) -> NDArray[Any]:
    """As it is drawn; else floats of every kind, integers that may be positions, and some that are
    outside.
    """
    shape = tuple(value(extent(s), SIZES) for s in a.shape)
    dtype = dtypes[a.element] if a.element in dtypes else DType(a.element)
    if a.drawn is not None:
        return draw(a.drawn, shape, dtype, SIZES, InputKind.RANDOM, rng)
    if dtype.is_complex:
        parts = rng.standard_normal((2, *shape))
        return (parts[0] + 1j * parts[1]).astype(dtype.value)
    if dtype.is_float:
        return rng.standard_normal(shape).astype(dtype.value)
    return rng.integers(-2, 9, shape).astype(a.element)


@pytest.mark.parametrize("text", EXAMPLES, ids=NAMES)
def test_example(text: str) -> None:
    spec = loads(text, "language.md")
    rng = np.random.default_rng(3)
    for dtypes in choices(spec):
        built = build(spec, dtypes)
        verify(built)
        assert schedule(spec, dtypes, Cpu(Level.V3), prove)
        arrays = {
            a.name: given(a, dtypes, rng) for a in spec.arguments if a.intent is not Intent.OUT
        }
        scalars = {s.name: s.default for s in spec.scalars if s.default is not None}
        exposed = oracle.expose(built, oracle.needed_temporaries(spec))
        values = run(exposed, arrays, scalars, dims=oracle.sizes(spec, arrays, scalars))
        expected = oracle.evaluate(spec, arrays, scalars)
        bounds = oracle.accuracy_bound(spec, {**arrays, **values}, scalars)
        assert expected.keys() == bounds.keys()
        for name, bound in bounds.items():
            assert (np.abs(values[name] - expected[name]) <= bound).all(), name


def test_the_page_names_the_whole_language() -> None:
    grammar = re.findall(
        r"^```text\nbody .*?^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    words = set(re.findall(r"\w+", grammar[0]))
    assert {*language.FUNCTIONS, *language.COMBINERS, *language.CONSTANTS, "select"} <= words


def test_the_page_of_examples_shows_specs_of_the_corpus_and_names_all() -> None:
    """`tests/test_corpus.py` proves and runs them. The gallery has a page of its own."""
    folder = Path(__file__).parent
    gallery = folder / "corpus" / "gallery"
    page = (PAGE.parent / "examples.md").read_text("utf-8")
    corpus = [p for p in (folder / "corpus").rglob("*.yaml") if gallery not in p.parents]
    specs = {p.relative_to(folder).with_suffix(""): p for p in corpus}
    shown = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    texts = {path.read_text("utf-8"): name for name, path in specs.items()}
    assert shown and all(text in texts for text in shown)
    named = {Path(name) for name in re.findall(r"^\| `([\w/]+)` \|", page, re.MULTILINE)}
    assert named >= specs.keys() - {texts[text] for text in shown}
    assert all((folder / f"{name}.yaml").is_file() for name in named)
