"""Emitted expressions: C's own grammar reads the tree that they were made from."""

from gen.emit.expr import Scalars
from gen.lower.facts import Facts

from .expressions import deeper, nested, normal, read_all

SCALARS = Scalars({"i": "i", "n": "n"}, lambda name, at, facts: f"{name}[0]", Facts((), ()))


def test_scalar_text_means_the_expression() -> None:
    """Each operator in each place of each other, with all types, and with extreme constants."""
    trees = [*nested(), *deeper(2000)]
    texts = list(map(SCALARS.value, trees))
    wrong = [
        text
        for text, tree, meant in zip(texts, trees, read_all(texts), strict=True)
        if normal(meant) != normal(tree)
    ]
    assert not wrong, wrong[:20]
