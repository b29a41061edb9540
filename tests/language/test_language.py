"""The body's syntax: what it refuses, and where the errors point in any style of YAML scalar."""

import pytest

from gen.errors import SpecError
from gen.language import yaml
from gen.language.syntax import grammar as language
from gen.language.syntax.nodes import Assign, For, If, Power, Range


def scalar(text: str) -> yaml.Scalar:
    root = yaml.parse(text, "k.yaml")
    assert isinstance(root, yaml.Map)
    value = root.entries[-1][1]
    assert isinstance(value, yaml.Scalar)
    return value


def refused(text: str) -> SpecError:
    with pytest.raises(SpecError) as info:
        language.statements(scalar(text), language.Words(frozenset({"T"})))
    return info.value


@pytest.mark.parametrize(
    ("statement", "message", "column"),
    [
        ("y = ", "not an expression or statement: invalid syntax", 6),
        ("import os", "this is not a statement of the language", 3),
        ("y[i] = z = x[i]", "this is not a statement of the language", 3),
        ("while x[0]: y[0] = 1", "a 'while' says how many iterations it has at most", 9),
        ("y[i] **= 2", "this is not a statement of the language", 3),
        ("y.a = 1", "the left side must be an element of an array, such as a[i, j]", 3),
        ("y[i][j] = 1", "the left side must be an element of an array, such as a[i, j]", 3),
        ("y[1:2] = 1", "slices are not part of the language", 5),
        ("y[i] = x[:, 0]", "slices are not part of the language", 12),
        ("y[i] = x[i].T", "this is not an expression of the language", 10),
        ("y[i] = 'a'", "this is not a number of the language", 10),
        ("y[i] = 1e999j", "the number is too large", 10),
        ("y[i] = x[i] in z", "'is' and 'in' are not part of the language", 10),
        ("y[i] = x[i] ** 0.5", "this is a square root", 18),
        ("y[i] = pow(x[i])", "'pow' takes 2 arguments, not 1", 10),
        ("y[i] = cot(x[i])", "unknown function 'cot'", 10),
        ("y[i] = atan2(x[i])", "'atan2' takes 2 arguments, not 1", 10),
        ("y[i] = round(x[i], 2)", "'round' takes 1 argument, not 2", 10),
        ("y[i] = exp(x[i], 2)", "'exp' takes 1 argument, not 2", 10),
        ("y[i] = fma(x[i], 2)", "'fma' takes 3 arguments, not 2", 10),
        ("y[i] = sum(x[i])", "'sum' needs a reduction", 10),
        ("y[i] = max(x[i])", "'max' needs a reduction", 10),
        ("y[i] = sum(x[i] for i, j in n)", "the index of a 'for' must be a name", 23),
        ("y[i] = sum(x[j] for j in range(0, n, 2))", "a range has no step", 40),
        ("for i in range(n, 0, -1): y[i] = 1", "a range has no step", 24),
        ("for i in reversed(range(0, n, 2)): y[i] = 1", "a range has no step", 33),
        ("y[i] = sum(x[j] for j in [1, 2])",
         "a 'for' runs over a dim, a range or a range reversed", 28),
        ("for i in reversed(n): y[i] = 1",
         "a 'for' runs over a dim, a range or a range reversed", 12),
        ("y[i] = sum(x[j] for j in reversed(range(n)))", "a reduction has no order", 10),
        ("y[i] = f(a=1)", "this is not an expression of the language", 10),
    ],
)  # fmt: skip
def test_errors(statement: str, message: str, column: int) -> None:
    error = refused(f"compute: |\n  {statement}\n")
    assert error.message == message
    assert error.span is not None and (error.span.line, error.span.column) == (2, column)


def test_else_is_refused() -> None:
    error = refused("compute: |\n  if n > 2:\n    y[i] = 1\n  else:\n    y[i] = 2\n")
    assert error.message == "'else' is not part of the language"
    assert error.span is not None and error.span.line == 5


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("compute: y[i] = cot(x[i])\n", 1, 17),
        ("compute: 'y[i] = cot(x[i])'\n", 1, 18),
        ('compute: "y[i] = cot(x[i])"\n', 1, 18),
        ("compute: |\n\n    y[i] = x[i]\n    y[i] = cot(x[i])\n", 4, 12),
        ("compute: |-\n  y[i] = (1 +\n          cot(x[i]))\n", 3, 11),
        ("compute: |  # a note\n  y[i] = cot(x[i])  # cot\n", 2, 10),
        ("compute: >-\n  y[i] =\n  cot(x[i])\n", 3, 3),
        ("compute: y[i] =\n    cot(x[i])\n", 2, 5),
        ("compute: |\n  y[i] = 1  # é é\n  y[i] = cot(x[i])\n", 3, 10),
    ],
)
def test_places_in_every_style(text: str, line: int, column: int) -> None:
    span = refused(text).span
    assert span is not None and (span.line, span.column, span.length) == (line, column, 9)


def test_statements() -> None:
    text = "compute: |\n  for i in n:\n    if i > 1:\n      y[i] += x[i] ** 2\n"
    (loop,) = language.statements(scalar(text))
    assert isinstance(loop, For) and isinstance(loop.over, Range) and loop.over.whole
    (test,) = loop.body
    assert isinstance(test, If)
    (assign,) = test.body
    assert isinstance(assign, Assign) and isinstance(assign.value, Power)
    assert assign.value.exponent == 2 and assign.value.span.column == 15
