"""What is found in trees, and in what order."""

from gen.ir.nodes import Stmt
from gen.ir.text.parser import from_text
from gen.ir.walk import statements, walk
from gen.reference.primitives import after
from gen.schedule.registry import PRIMITIVES


def test_statements_are_those_of_a_walk() -> None:
    examples = [example for primitive in PRIMITIVES for example in primitive.EXAMPLES]
    trees = (after(e) for e in examples if not e.refused)
    for text in {*(e.before for e in examples), *trees}:
        body = from_text(text).body
        assert [*map(id, statements(body))] == [id(n) for n in walk(body) if isinstance(n, Stmt)]
