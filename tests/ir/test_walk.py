"""What is found in trees, and in what order."""

from gen.ir.nodes import Stmt
from gen.ir.text.parser import from_text
from gen.ir.walk import statements, walk
from gen.schedule.registry import PRIMITIVES


def test_statements_are_those_of_a_walk() -> None:
    examples = [example for primitive in PRIMITIVES for example in primitive.EXAMPLES]
    for text in {t for e in examples for t in (e.before, e.after) if t}:
        body = from_text(text).body
        assert [*map(id, statements(body))] == [id(n) for n in walk(body) if isinstance(n, Stmt)]
