"""Bounds against all values of the variables, for small sizes."""

from itertools import product

import pytest

from gen.ir.algebra import add, floordiv, index, maximum, minimum, mod, mul, sub
from gen.ir.index.bounds import LoopRange, at_most, highest, larger, lowest, normal, smaller
from gen.ir.nodes import Binary, BinaryOp, Const, Expr, Unary, UnaryOp, Var

P, Q, N, M = Var("a.i"), Var("a.j"), Var("n"), Var("m")
OUTER = LoopRange("a.i", index(0), sub(N, 1))
TILE = LoopRange("a.i", index(0), sub(floordiv(add(N, 3), 4), 1))
INNER = LoopRange("a.j", P, add(P, 3))


def value(e: Expr, at: dict[str, int]) -> int:
    match e:
        case Var(name):
            return at[name]
        case Const(int(x)):
            return x
        case Unary(UnaryOp.NEG, x):
            return -value(x, at)
        case Binary(op, lhs, rhs):
            a, b = value(lhs, at), value(rhs, at)
            table = {
                BinaryOp.ADD: a + b,
                BinaryOp.SUB: a - b,
                BinaryOp.MUL: a * b,
                BinaryOp.MIN: min(a, b),
                BinaryOp.MAX: max(a, b),
                BinaryOp.FLOORDIV: a // b if b else 0,
                BinaryOp.MOD: a % b if b else 0,
            }
            return table[op]
    raise AssertionError(e)


def points(ranges: tuple[LoopRange, ...]) -> list[dict[str, int]]:
    found = [{"n": n, "m": m} for n, m in product(range(7), range(4))]
    for r in ranges:
        found = [
            {**at, r.var: k}
            for at in found
            for k in range(value(r.lower, at), value(r.upper, at) + 1)
        ]
    return found


EXPRESSIONS = [
    sub(index(10), P),  # a negative stride
    sub(Q, P),  # their difference is bounded although neither is
    maximum(sub(P, 1), 0),
    minimum(add(mul(P, 4), Q), sub(N, 1)),
    floordiv(sub(Q, mul(P, 3)), 2),
    mod(add(Q, 5), 3),
    sub(maximum(P, M), minimum(Q, N)),
]


@pytest.mark.parametrize("e", EXPRESSIONS, ids=str)
def test_bounds_hold(e: Expr) -> None:
    low, high = lowest(e, (OUTER, INNER)), highest(e, (OUTER, INNER))
    assert low is not None
    assert high is not None
    for at in points((OUTER, INNER)):
        assert value(low, at) <= value(e, at) <= value(high, at)


def test_bounds_are_tight() -> None:
    assert highest(sub(Q, P), (OUTER, INNER)) == index(3)
    assert lowest(sub(index(10), P), (OUTER,)) == normal(sub(index(11), N))
    assert highest(mul(P, N), (OUTER,)) is None


CLAMPS = [maximum(sub(P, 1), 0), P, minimum(add(P, 1), sub(N, 1)), N, index(0), mul(P, 4)]


@pytest.mark.parametrize("outer", [OUTER, TILE], ids=["row", "tile"])
@pytest.mark.parametrize(("a", "b"), list(product(CLAMPS, CLAMPS)))
def test_what_is_proved_holds(outer: LoopRange, a: Expr, b: Expr) -> None:
    proved = at_most(a, b, (outer,))
    holds = all(value(a, at) <= value(b, at) for at in points((outer,)))
    assert holds or not proved
    for at in points((outer,)):
        assert value(smaller(a, b, (outer,)), at) == min(value(a, at), value(b, at))
        assert value(larger(a, b, (outer,)), at) == max(value(a, at), value(b, at))


def test_what_a_stencil_needs_is_proved() -> None:
    below, above = CLAMPS[0], CLAMPS[2]
    assert at_most(below, P, (OUTER,))
    assert at_most(below, above, (OUTER,))  # needs that the range is not empty
    assert smaller(add(above, 1), N, (OUTER,)) == normal(minimum(add(P, 2), N))
    assert at_most(mul(TILE.upper, 4), sub(N, 1), ())
    assert normal(sub(add(P, N), P)) == N
