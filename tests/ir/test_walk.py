"""What is found in trees, and in what order."""

import pytest

from gen.ir.algebra import index, sub
from gen.ir.index.facts import Facts, map_inside, of_kernel
from gen.ir.index.linear import linear
from gen.ir.nodes import If, Loop, Seq, Stmt, Var
from gen.ir.text.parser import from_text
from gen.ir.walk import blocks, loads, map_nested, nested, statements, substitute, walk
from gen.reference.primitives import after
from gen.schedule.registry import PRIMITIVES


def test_statements_are_those_of_a_walk() -> None:
    examples = [example for primitive in PRIMITIVES for example in primitive.EXAMPLES]
    trees = (after(e) for e in examples if not e.refused)
    for text in {*(e.before for e in examples), *trees}:
        body = from_text(text).body
        assert [*map(id, statements(body))] == [id(n) for n in walk(body) if isinstance(n, Stmt)]


TREE = from_text("""
def k(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i, n)):
                t[i] = x[i]
        for y.i in range(n):
            if y.i >= 2:
                with block("y", i=spatial(y.i, n)):
                    y[i] = t[i]
""")


def test_what_does_not_change_stays_the_same() -> None:
    assert map_nested(TREE.body, lambda s: s) is TREE.body
    block = blocks(TREE.body)[0]
    assert map_nested(block, lambda _: Seq(())) is block and nested(block) == ()


LOADED = ("x[i, j] - x[i, j]", "min(x[i, j], x[i, j])", "x[i, j] * (j - 2)")


@pytest.mark.parametrize("text", LOADED)
def test_what_is_substituted_loads_as_before(text: str) -> None:
    """A block's reads are known by their numbers; what loads nothing is made simpler."""
    tree = from_text(f"""
def k(n, x: int64[n, n], y: Out[int64[n]]):
    for y.i in range(n):
        for y.j in range(n):
            with block("y", i=spatial(y.i, n), j=reduction(y.j, n), initialises=True):
                y[i] = combine.sum(y[i], {text})
""")
    (block,) = blocks(tree.body)
    new = substitute(block.body, {"j": index(2)})
    assert new != block.body and len(loads(new)) == len(loads(block.body))
    assert substitute(sub(Var("j"), 2), {"j": index(2)}) == index(0)


def test_sequences_are_flattened() -> None:
    def bodies(s: Stmt) -> Stmt:
        new = map_nested(s, bodies)
        return new.body if isinstance(new, Loop | If) else new

    assert nested(bodies(TREE.body)) == (Seq(blocks(TREE.body)),)


def test_facts_are_those_of_the_place() -> None:
    found: list[bool] = []

    def visit(s: Stmt, facts: Facts) -> Stmt:
        if s in blocks(TREE.body):
            found.append(facts.holds(linear(Var("y.i")) - 1))
        return map_inside(s, facts, visit)

    assert visit(TREE.body, of_kernel(TREE)) is TREE.body
    assert found == [False, True]
