"""What the parser refuses, and where it points."""

import pytest

from gen.ir.nodes import Binary, Block, Const, Loop, Store
from gen.ir.text.parser import ScriptError, from_text
from gen.ir.types import DType

PLAIN = """\
def f(n, x: float32[n], y: Out[float32[n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = x[i] * 2
"""


def test_a_bare_literal_takes_its_neighbours_type() -> None:
    """Even where that is not what the statement stores: that is for `verify` to see."""
    for text in (PLAIN, PLAIN.replace("Out[float32", "Out[float64")):
        loop = from_text(text).body
        assert isinstance(loop, Loop) and isinstance(loop.body, Block)
        assert isinstance(loop.body.body, Store) and isinstance(loop.body.body.value, Binary)
        assert loop.body.body.value.rhs == Const(2.0, DType.FLOAT32)


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("range(n):", "range(n)", "2:24", "expected ':'"),
        ("def f(", "x = 1\ndef f(", "1:1", "a script is one 'def'"),
        ("float32[n]]", "float32[n]], *z", "1:1", "a kernel's arguments have no stars and no"),
        (
            "x: float32[n]",
            "x: real[n]",
            "1:13",
            "expected a type as in 'float32[n]', got 'real",
        ),
        ("range(n)", "range(n, 1, 2)", "2:16", "expected one bound or two"),
        ("range(n)", "range(n, step=2)", "2:16", "a loop's bounds take one keyword: 'annotations'"),
        ("range(n)", "range(n, annotations=2)", "2:37", "annotations are a dict"),
        (
            "range(n)",
            "range(n, annotations={'a': 1.5})",
            "2:43",
            "annotations are strings or integers, named by strings",
        ),
        ("for y.i in range(n)", "while n", "2:5", "expected a statement of the IR: a 'for', 'if'"),
        ("with block(", "with blok(", "3:14", "cannot read 'blok('y', i=spatial(y.i))' here"),
        ("spatial(y.i)", "spatial(y.i + 1)", "3:25", "'i' needs a domain: it is not bound to one"),
        ("spatial(y.i)", "serial(y.i)", "3:25", "a block takes no 'i=serial(y.i)'"),
        ("y[i] = x[i] * 2", "y[i] += x[i]", "4:13", "a block's body is one assignment"),
        ("y[i] = x[i]", "z[i] = x[i]", "4:13", "no array 'z' is declared here"),
        ("y[i] = x[i]", "y[i] = z[i]", "4:20", "no array 'z' is declared here"),
        ("y[i] = x[i]", "y = x[i]", "4:13", "expected a place as in 'a[i]', got 'y'"),
        ("y[i] = x", "y[i], y[0] = x", "4:13", "a store has one target"),
        (
            "x[i] * 2",
            "combine.sum(y[0], x[i])",
            "4:32",
            "an update combines the places that it writes",
        ),
        ("x[i] * 2", "combine.sum(y[i], (x[i], i))", "4:38", "1 places take 1 values"),
        ("x[i] * 2", "0 < i < n", "4:20", "'0 < i < n' is not an expression of the IR"),
        ("x[i] * 2", "cot(x[i])", "4:20", "'cot(x[i])' is not an expression of the IR"),
        ("x[i] * 2", "x[1.5]", "4:22", "'1.5' stands where int64 is expected"),
        ("x[i] * 2", "float32(1, 2)", "4:20", "a constant of type float32 has one part, not two"),
        ("x[i] * 2", "(1)[i]", "4:21", "expected a name, got '1'"),
    ],
)
def test_what_cannot_be_read_is_refused_where_it_stands(
    old: str, new: str, place: str, message: str
) -> None:
    assert old in PLAIN
    with pytest.raises(ScriptError) as refusal:
        from_text(PLAIN.replace(old, new), "f.ir")
    assert message in refusal.value.message
    assert str(refusal.value.span) == f"f.ir:{place}"


def test_the_parts_of_a_fused_loop_have_an_extent_each() -> None:
    text = "def f(n):\n    with delinearize(n, n, n) as (a,):\n        pass\n"
    with pytest.raises(ScriptError, match="1 parts take 1 extents"):
        from_text(text)


def test_a_kernel_has_a_body() -> None:
    with pytest.raises(ScriptError, match="kernel 'f' has no body"):
        from_text("def f(n):\n    assume(n > 0)\n")
