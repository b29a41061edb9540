"""What follows from what is known of sizes and variables, and what does not."""

import pytest

from gen.ir.algebra import add, floordiv, index, maximum, minimum, mod, mul, sub
from gen.ir.index.facts import of_sizes
from gen.ir.index.linear import Linear, linear
from gen.ir.nodes import Binary, BinaryOp, Expr, If, Load, Loop, LoopKind, Seq, Var
from gen.ir.types import INDEX

P, N, M, S = Var("i"), Var("n"), Var("m"), Var("s")
SIZES = of_sizes(("n", "m"))
INSIDE = SIZES.inside(Loop("i", index(0), N, LoopKind.SERIAL, Seq(())))
LESS = Binary(BinaryOp.LT, P, M)


@pytest.mark.parametrize(
    ("goal", "known"),
    [
        (mul(N, M), True),
        (mul(N, add(mul(M, N), 1)), True),
        (mul(N, sub(M, 1)), False),
        (mul(N, S), False),  # of a scalar nothing is known
        (sub(mul(N, M), 1), False),
        (add(floordiv(N, 4), mod(S, 4)), True),
        (sub(N, floordiv(add(N, 3), 4)), True),
        (sub(N, floordiv(add(N, 4), 4)), False),
        (sub(maximum(N, M), minimum(N, M)), True),
        (sub(minimum(N, M), maximum(N, M)), False),
    ],
)
def test_what_follows_from_sizes(goal: Expr, known: bool) -> None:
    assert of_sizes(("n", "m"), (goal,)).holds(linear(goal)) is known


WHOLE = SIZES.where(Binary(BinaryOp.EQ, mod(M, 128), index(0)))
ODD = SIZES.where(Binary(BinaryOp.EQ, mod(N, 4), index(3)))


@pytest.mark.parametrize(
    ("goal", "known"),
    [
        (sub(M, mul(floordiv(add(M, 127), 128), 128)), True),
        (sub(mul(floordiv(M, 128), 128), M), True),
        (sub(M, mul(floordiv(add(M, 128), 128), 128)), False),
        (sub(M, mul(floordiv(add(M, 31), 32), 32)), True),
        (sub(M, mul(floordiv(add(M, 255), 256), 256)), False),
        (sub(mul(floordiv(mul(M, 2), 256), 256), mul(M, 2)), True),
        (sub(0, mod(M, 64)), True),
        (sub(N, mul(floordiv(add(N, 127), 128), 128)), False),
    ],
)
def test_what_a_remainder_says_of_tiles(goal: Expr, known: bool) -> None:
    assert WHOLE.holds(linear(goal)) is known
    assert not SIZES.holds(linear(goal))


def test_a_remainder_that_is_not_0() -> None:
    assert ODD.holds(linear(sub(mod(N, 4), 3)))
    assert ODD.holds(linear(sub(N, add(mul(floordiv(N, 4), 4), 3))))
    assert not ODD.holds(linear(sub(N, add(mul(floordiv(N, 4), 4), 4))))
    assert not ODD.holds(linear(sub(mod(N, 8), 3)))


def test_products_are_not_known_in_kernels() -> None:
    """Sets of the prover have none, and a clamp that they make superfluous would be refused."""
    assert not SIZES.holds(linear(mul(N, M)))


def test_a_bound_of_data_is_no_fact() -> None:
    """Its clamp stays: what is read may differ from one time to the next."""
    read = Load("p", (P,), INDEX)
    known = SIZES.inside(If(Binary(BinaryOp.GE, read, index(0)), Seq(())))
    assert not known.holds(linear(read))


def test_what_holds_inside_statements() -> None:
    assert INSIDE.holds(linear(sub(sub(N, 1), P))) and not SIZES.holds(linear(P))
    assert INSIDE.inside(If(LESS, Seq(()))).holds(linear(sub(sub(M, 1), P)))
    assert not INSIDE.holds(linear(sub(M, P)))
    assert INSIDE.inside(Seq(())) is INSIDE
    assert SIZES.within("k", linear(N), linear(M)).holds(linear(sub(Var("k"), N)))


def test_many_choices_end() -> None:
    """Each doubles the work: what needs more than a few of them is not known."""
    pairs = (maximum(Var(f"a{k}"), Var(f"b{k}")) for k in range(40))
    goal = sum((linear(pair) for pair in pairs), Linear())
    assert not of_sizes(()).holds(goal)


SECOND = minimum(1, N)  # which is 1 where there is any, and where a ring's first place ends
INNER = SIZES.where(Binary(BinaryOp.GE, N, index(1)))


def loop(lower: Expr, upper: Expr) -> Loop:
    return Loop("i", lower, upper, LoopKind.SERIAL, Seq(()))


def test_a_loop_that_runs_ends_where_the_larger_end_is_not_its_start() -> None:
    """So `x[(i + 1) % n]` is `x[i + 1]` in what `peel` leaves of a ring, of one place, too."""
    goal = linear(sub(sub(N, 2), P))
    assert INNER.inside(loop(SECOND, maximum(sub(N, 1), SECOND))).holds(goal)
    assert INNER.inside(loop(SECOND, maximum(SECOND, sub(N, 1)))).holds(goal)
    assert not INNER.inside(loop(index(0), maximum(sub(N, 1), SECOND))).holds(goal)
    assert not INNER.inside(loop(SECOND, maximum(sub(N, 1), M))).holds(goal)


def test_a_loop_over_vectors_ends_there_as_well() -> None:
    many = sub(maximum(sub(N, 1), SECOND), SECOND)
    lane = INNER.inside(loop(index(0), floordiv(many, 8))).within("l", Linear(), Linear({}, 7))
    place = linear(SECOND) + linear(P) * 8 + linear(Var("l"))
    assert lane.holds(linear(sub(N, 2)) - place) and not lane.holds(linear(sub(N, 3)) - place)
    assert lane.holds(linear(maximum(sub(N, 1), SECOND)) - place - 1)
