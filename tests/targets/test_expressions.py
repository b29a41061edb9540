"""Emitted expressions: C's own grammar reads the tree that they were made from."""

from collections.abc import Collection

import pytest

from gen.ir.algebra import dtype_of
from gen.ir.index.facts import Facts
from gen.ir.nodes import Destination, Expr, Load, Var
from gen.ir.types import DType
from gen.ir.walk import variables, walk
from gen.targets.c.expr import Scalars
from gen.targets.cpu.vectors.expr import Vectors
from gen.targets.cpu.vectors.forms import VECTOR_TYPES, by_lane, maskable
from gen.targets.cpu.vectors.masks import All, Shape
from gen.targets.cpu.vectors.prelude import Prelude

from .expressions import chosen, deeper, in_lanes, loads, nested, normal, read_all

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


@pytest.mark.parametrize("bits", [32, 64])
def test_vector_text_means_the_expression(bits: int) -> None:
    """The same of vectors, whose operators are calls, and whose conditions are masks."""
    types = [d for d in DType if d in VECTOR_TYPES and d.bits == bits and not d.is_complex]
    before = Prelude()
    elements = [load for dtype in types for load in loads(dtype)]
    before.kept = {Destination(x.buffer, (Var("l"),)): (f"{x.buffer}[0]",) for x in elements}
    code = Vectors(SCALARS, {}, "l", Shape(256 // bits, 256), All(), before)
    trees = [
        tree for tree in map(in_lanes, (*nested(types), *chosen(types))) if in_vectors(tree, types)
    ]
    texts = [text for tree in trees for text in code.parts(tree)]
    assert len(trees) == len(texts) > 900 and not before.lines
    pairs = zip(texts, trees, read_all(texts), strict=True)
    wrong = [text for text, tree, meant in pairs if normal(meant) != normal(tree)]
    assert not wrong, wrong[:20]


def in_vectors(tree: Expr, types: Collection[DType]) -> bool:
    """Whether all of it is computed in vectors of these types, or as masks."""
    nodes = [n for n in walk(tree) if isinstance(n, Expr) and not isinstance(n, Var)]
    return (
        dtype_of(tree) in types
        and all(
            (maskable(n, "l") and not isinstance(n, Load))  # of bytes in memory: see `test_masks`
            if dtype_of(n) is DType.BOOL
            else dtype_of(n) in types
            for n in nodes
            if "l" in variables(n)
        )
        and not any(dtype_of(n) in types and by_lane(n, "l") for n in nodes if "l" in variables(n))
    )
