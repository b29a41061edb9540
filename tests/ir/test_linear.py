"""Linear forms of index expressions."""

import pytest

from gen.ir.algebra import add, floordiv, index, maximum, minimum, mul, sub
from gen.ir.index.linear import Linear, constant, linear, same, tidy
from gen.ir.nodes import Binary, BinaryOp, Cast, Expr, Load, Unary, UnaryOp, Var
from gen.ir.text.print_expr import expr_to_text
from gen.ir.types import INDEX, DType
from gen.ir.wrapping import wraps

X, Y, N = Var("i"), Var("j"), Var("n")
P = Load("p", (X,), INDEX)
SHORT = Cast(INDEX, Load("q", (X,), DType.INT32))


def test_equal_sums_are_equal_forms_whatever_their_order() -> None:
    a, b = linear(add(mul(X, 4), sub(N, Y))), linear(sub(add(N, mul(X, 4)), Y))
    assert a == b and hash(a) == hash(b) and len({a, b}) == 1
    assert a != linear(add(mul(X, 4), add(N, Y)))


def test_no_coefficient_is_0() -> None:
    assert linear(sub(add(X, Y), add(Y, X))) == Linear()
    assert linear(X) * 0 == Linear() == linear(X) - linear(X)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (floordiv(add(mul(X, 8), 16), 8), "i + 2"),
        (floordiv(add(add(mul(X, 8), Y), 17), 8), "i + (j + 1) // 8 + 2"),
        (floordiv(add(mul(X, 8), -1), 8), "i - 1"),
        (add(index(3), sub(N, mul(X, 2))), "n - i * 2 + 3"),
        (sub(N, add(sub(N, X), minimum(X, Y))), "i - min(i, j)"),
        (mul(N, X), "n * i"),
    ],
)
def test_sums_as_expressions(expr: Expr, text: str) -> None:
    assert expr_to_text(linear(expr).expr()) == text


def test_what_forms_tell() -> None:
    form = linear(add(add(mul(X, 6), mul(Y, -2)), 7))
    assert (form.coefficient("i"), form.coefficient("n")) == (6, 0)
    assert form.modulo(4) == Linear({X: 2, Y: 2}, 3)
    assert form // 2 == Linear({X: 3, Y: -1}, 3)
    assert form.put("i", linear(Y)) == Linear({Y: 4}, 7)
    assert form.variables() == {"i", "j"}
    assert constant(sub(add(X, 3), X)) == 3 and constant(X) is None
    assert same(add(X, X), mul(2, X)) and not same(X, Y)


def test_minima_that_are_decided_are_dropped() -> None:
    assert tidy(minimum(add(N, 1), add(N, 2))) == add(N, 1)
    assert tidy(maximum(add(N, 1), add(N, 2))) == add(N, 2)
    assert tidy(minimum(X, Y)) == minimum(X, Y)


@pytest.mark.parametrize(
    ("expr", "may"),
    [
        (add(P, 1), True),
        (sub(N, P), True),
        (mul(P, 2), True),
        (Unary(UnaryOp.NEG, P), True),
        (add(minimum(P, N), 1), True),
        (add(maximum(minimum(P, N), 0), 1), False),
        (add(Binary(BinaryOp.BITAND, P, index(7)), X), False),
        (add(Binary(BinaryOp.BITAND, P, index(2**63 - 1)), 1), True),
        (add(Binary(BinaryOp.MOD, P, index(7)), X), False),
        (add(floordiv(P, 2), 1), True),
        (add(SHORT, mul(X, 2)), False),
        (mul(SHORT, 8), False),
        (mul(SHORT, 2**32), True),
        (mul(SHORT, N), True),
        (add(Cast(INDEX, Load("f", (X,), DType.FLOAT32)), 1), True),
        (add(Cast(INDEX, Load("u", (X,), DType.UINT64)), 1), True),
        (add(mul(N, X), 2**62), False),
        (P, False),
    ],
)
def test_what_may_wrap(expr: Expr, may: bool) -> None:
    assert wraps(expr) is may


def test_what_may_wrap_is_equal_to_itself_alone() -> None:
    above, twice = add(P, 1), mul(P, 2)
    assert linear(above) == Linear({above: 1}) and linear(twice) == Linear({twice: 1})
    assert linear(sub(above, P)) == Linear({sub(above, P): 1})
    assert linear(sub(above, above)) == Linear()
    assert tidy(minimum(P, above)) == minimum(P, above)
    assert linear(sub(add(SHORT, 1), SHORT)) == Linear({}, 1)


def test_numbers_are_gathered_while_they_fit() -> None:
    assert add(add(P, 2**62), 2**61) == add(P, 2**62 + 2**61)
    assert add(add(P, 2**62), 2**62) == Binary(BinaryOp.ADD, add(P, 2**62), index(2**62))
