"""The examples of docs/language.md: each is loaded, built, proved and compared with its oracle."""

import re
from pathlib import Path

import numpy as np
import pytest

from gen.ir.interp import run
from gen.ir.nodes import Intent
from gen.ir.verify import verify
from gen.lower.target import Level, Target
from gen.pipeline import schedule
from gen.poly.prove import prove
from gen.spec import build, choices, language, loads, oracle

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
NAMES = [re.findall(r"^kernel: (\w+)$", text, re.MULTILINE)[0] for text in EXAMPLES]
SIZES = {"m": 4, "n": 5}


@pytest.mark.parametrize("text", EXAMPLES, ids=NAMES)
def test_example(text: str) -> None:
    spec = loads(text, "language.md")
    rng = np.random.default_rng(3)
    for dtypes in choices(spec):
        built = build(spec, dtypes)
        verify(built)
        assert schedule(spec, dtypes, Target(Level.V3), prove)
        arrays = {
            a.name: rng.standard_normal([SIZES[str(s)] for s in a.shape]).astype(dtypes["T"].value)
            for a in spec.arguments
            if a.intent is not Intent.OUT
        }
        scalars = {s.name: s.default for s in spec.scalars if s.default is not None}
        exposed = oracle.expose(built, oracle.needed_temporaries(spec))
        values = run(exposed, arrays, scalars)
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
