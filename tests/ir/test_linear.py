"""Linear forms of index expressions."""

import pytest

from gen.ir.algebra import add, floordiv, index, maximum, minimum, mul, sub
from gen.ir.linear import Linear, constant, linear, same, tidy
from gen.ir.nodes import Expr, Var
from gen.ir.print_expr import expr_to_text

I, J, N = Var("i"), Var("j"), Var("n")


def test_equal_sums_are_equal_forms_whatever_their_order() -> None:
    a, b = linear(add(mul(I, 4), sub(N, J))), linear(sub(add(N, mul(I, 4)), J))
    assert a == b and hash(a) == hash(b) and len({a, b}) == 1
    assert a != linear(add(mul(I, 4), add(N, J)))


def test_no_coefficient_is_0() -> None:
    assert linear(sub(add(I, J), add(J, I))) == Linear()
    assert linear(I) * 0 == Linear() == linear(I) - linear(I)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (floordiv(add(mul(I, 8), 16), 8), "i + 2"),
        (floordiv(add(add(mul(I, 8), J), 17), 8), "i + (j + 1) // 8 + 2"),
        (floordiv(add(mul(I, 8), -1), 8), "i - 1"),
        (add(index(3), sub(N, mul(I, 2))), "n - i * 2 + 3"),
        (sub(N, add(sub(N, I), minimum(I, J))), "i - min(i, j)"),
        (mul(N, I), "n * i"),
    ],
)
def test_sums_as_expressions(expr: Expr, text: str) -> None:
    assert expr_to_text(linear(expr).expr()) == text


def test_what_forms_tell() -> None:
    form = linear(add(add(mul(I, 6), mul(J, -2)), 7))
    assert (form.coefficient("i"), form.coefficient("n")) == (6, 0)
    assert form.modulo(4) == Linear({I: 2, J: 2}, 3)
    assert form // 2 == Linear({I: 3, J: -1}, 3)
    assert form.put("i", linear(J)) == Linear({J: 4}, 7)
    assert form.variables() == {"i", "j"}
    assert constant(sub(add(I, 3), I)) == 3 and constant(I) is None
    assert same(add(I, I), mul(2, I)) and not same(I, J)


def test_minima_that_are_decided_are_dropped() -> None:
    assert tidy(minimum(add(N, 1), add(N, 2))) == add(N, 1)
    assert tidy(maximum(add(N, 1), add(N, 2))) == add(N, 2)
    assert tidy(minimum(I, J)) == minimum(I, J)
