"""What a rewriting after the proof may change of a tree, and what is refused."""

from dataclasses import replace

import pytest

from gen.ir.nodes import (
    Binary,
    BinaryOp,
    Call,
    Const,
    Contraction,
    DefinedCombiner,
    Expr,
    Function,
    Kernel,
    Node,
    Update,
    Var,
)
from gen.ir.text.parser import from_text
from gen.ir.types import DType
from gen.ir.walk import map_children
from gen.poly.rewrites.equivalence import check_unchanged
from gen.poly.witness import Refused

HEAD = "def k(n, s, x: float32[n], a: float32[n], p: int64[n], y: InOut[float32[n + 64]]):\n"
SAME = [
    (
        "turns around a ring that are decided where the block runs",
        "for i in range(1, n - 1):\n"
        '  with block("b", t=spatial(i)):\n    y[t] = x[(t - 1) % n] + x[p[(t + 1) % n] % n]\n',
        'for i in range(1, n - 1):\n  with block("b"):\n    y[i] = x[i - 1] + x[p[i + 1] % n]\n',
    ),
    (
        "loops written out",
        "for i in range(n):\n"
        "  for u in unrolled(2):\n"
        "    for l in vectorized(4):\n"
        '      with block("b", t=spatial(i*8 + u*4 + l, n), where=i*8 + u*4 + l < n):\n'
        "        y[t] = x[t]\n",
        "for i in range(n):\n"
        "  for l in vectorized(4):\n"
        '    with block("b", where=i*8 + l < n):\n'
        "      y[i*8 + l] = x[i*8 + l]\n"
        '    with block("b", where=i*8 + 4 + l < n):\n'
        "      y[l + 4 + i*8] = x[i*8 + 4 + l]\n",
    ),
    (
        "loops that stay, in one that is written out",
        "for u in unrolled(2):\n"
        "  for v in unrolled(3):\n"
        '    with block("b", t=spatial(u*3 + v, n), where=u*3 + v < n):\n'
        "      y[t] = x[t]\n",
        "for v in unrolled(3):\n"
        '  with block("b", where=v < n):\n'
        "    y[v] = x[v]\n"
        "for v in unrolled(3):\n"
        '  with block("b", where=v + 3 < n):\n'
        "    y[3 + v] = x[v + 3]\n",
    ),
    (
        "a loop that stays, of what only numbers make affine",
        'for u in unrolled(2):\n  with block("b", t=spatial(u*n, n + 1)):\n    y[t + u] = x[t]\n',
        'for u in unrolled(2):\n  with block("b"):\n    y[u + n*u] = x[n*u]\n',
    ),
    (
        "a clamp that holds, and a remainder",
        "for i in range(n // 4):\n"
        "  for l in vectorized(4):\n"
        '    with block("b", t=spatial(i*4 + l, n), where=i*4 + l < n):\n'
        "      y[t % 4] = x[min(t, n - 1)]\n",
        "for i in range(n // 4):\n"
        "  for l in vectorized(4):\n"
        '    with block("b"):\n'
        "      y[l] = x[i*4 + l]\n",
    ),
    (
        "a clamped read as a selection, by unknown numbers",
        "for i in range(n):\n"
        '  with block("b", t=spatial(i)):\n'
        "    y[t] = x[min(max(t*s - p[t], 0), n - 1)]\n",
        "for i in range(n):\n"
        '  with block("b"):\n'
        "    y[i] = x[min(i*s - p[i], n - 1)] if i*s - p[i] >= 0 else x[min(0, n - 1)]\n",
    ),
    (
        "the side that is taken",
        "for i in range(n):\n"
        '  with block("b", t=spatial(i)):\n'
        "    y[t] = a[t] if p[t] > 2 else (x[t] if t >= 0 else 0.0)\n",
        'for i in range(n):\n  with block("b"):\n    y[i] = a[i] if p[i] > 2 else x[i]\n',
    ),
    (
        "a side that indices and data choose",
        "for i in range(n):\n"
        '  with block("b", t=spatial(i)):\n'
        "    y[t] = (x[max(t, 3)] if t >= 5 else x[t]) if t > 3 and a[t] > 2.0 else x[max(t, 3)]\n",
        "for i in range(n):\n"
        '  with block("b"):\n'
        "    y[i] = (x[i] if i >= 5 else x[i]) if i > 3 and a[i] > 2.0 else x[max(i, 3)]\n",
    ),
    (
        "an unknown number with itself in it",
        "for i in range(n):\n"
        '  with block("b", t=spatial(i)):\n'
        "    y[t] = x[min(max(~~(p[t] * p[t]), 0), n - 1)]\n",
        "for i in range(n):\n"
        '  with block("b"):\n'
        "    y[i] = x[max(min(~~(p[i] * p[i]), n - 1), 0)]\n",
    ),
    (
        "fused products",
        "for i in range(n):\n"
        '  with block("b", t=spatial(i)):\n'
        "    y[t] = (x[t]*a[t] - x[t]) + (a[t] - x[t]*x[t])\n",
        "for i in range(n):\n"
        '  with block("b"):\n'
        "    y[i] = fma(x[i], a[i], -x[i]) + fma(-x[i], x[i], a[i])\n",
    ),
    (
        "a guard of what is not written below",
        "for i in range(n):\n"
        "  if p[i] > 0:\n"
        '    with block("b", t=spatial(i), where=p[i] > 0):\n'
        "      y[t] = x[t]\n",
        'for i in range(n):\n  if p[i] > 0:\n    with block("b"):\n      y[i] = x[i]\n',
    ),
    (
        "a condition around a loop",
        "for i in range(n):\n"
        "  if i < s:\n"
        "    for j in range(i):\n"
        '      with block("b", t=spatial(j), where=j < s - 1):\n'
        "        y[t] = x[t]\n",
        "for i in range(n):\n"
        "  for j in range(i):\n"
        '    with block("b", where=i < s and j < s - 1):\n'
        "      y[j] = x[j]\n",
    ),
    (
        "a guard that follows from another",
        "for i in range(n):\n"
        '  with block("b", t=spatial(i), where=i < s and i < s + 1 and p[i] > 0):\n'
        "    y[t] = x[t]\n",
        'for i in range(n):\n  with block("b", where=i < s and p[i] > 0):\n    y[i] = x[i]\n',
    ),
    (
        "a sum of data, which may wrap around",
        "for i in range(n):\n"
        '  with block("b", t=spatial(i), where=p[i] > 2 and p[i] + 1 > 3):\n'
        "    y[t] = x[max(p[t] + 1, 0) % n] if p[t] < p[t] + 1 else a[2*p[t] // 2 % n]\n",
        "for i in range(n):\n"
        '  with block("b", where=p[i] > 2 and p[i] + 1 > 3):\n'
        "    y[i] = x[(p[i] + 1) % n] if p[i] < p[i] + 1 else a[2*p[i] // 2 % n]\n",
    ),
    (
        "a sum of small data, which does not",
        "for i in range(n):\n"
        '  with block("b", t=spatial(i), where=p[i] % 8 > 2 and p[i] % 8 + 1 > 3):\n'
        "    y[t] = x[t] if p[t] % 8 < p[t] % 8 + 1 else 0.0\n",
        'for i in range(n):\n  with block("b", where=p[i] % 8 > 2):\n    y[i] = x[i]\n',
    ),
]

WRONG = [
    (
        "loops written out",
        "i*8 + 4 + l]",
        "i*8 + 5 + l]",
        "is emitted with `x\\[i \\* 8 \\+ 5 \\+ l\\]` where",
    ),
    (
        "loops written out",
        "y[l + 4 + i*8]",
        "a[l + 4 + i*8]",
        "with `a\\[.*\\]` where `y\\[.*\\]` is proved",
    ),
    (
        "loops written out",
        "where=i*8 + 4 + l < n",
        "where=i*8 + l < n",
        "under `i \\* 8 \\+ l < n`, which",
    ),
    (
        "loops written out",
        ", where=i*8 + 4 + l < n",
        "",
        "emitted without the guard `i \\* 8 \\+ 4",
    ),
    (
        "loops written out",
        "in range(n)",
        "in range(n - 1)",
        r"serial loop 'i' over \(0, n - 1\) is emitted",
    ),
    ("loops written out", "vectorized(4)", "vectorized(2)", "vectorized loop 'l' over"),
    ("a clamp that holds, and a remainder", "y[l]", "y[i]", "with `y\\[i\\]` where"),
    (
        "a clamp that holds, and a remainder",
        "x[i*4 + l]",
        "x[min(i*4 + l, n - 2)]",
        "is emitted with",
    ),
    ("a clamped read as a selection, by unknown numbers", ">= 0", ">= -1", "is emitted with"),
    (
        "a clamped read as a selection, by unknown numbers",
        "min(0, n",
        "min(1, n",
        "is emitted with",
    ),
    (
        "a clamped read as a selection, by unknown numbers",
        "x[min(i*s -",
        "x[min(i*n -",
        "emitted with",
    ),
    ("the side that is taken", "else x[i]", "else a[i]", "is emitted with"),
    ("the side that is taken", "a[i] if p[i] > 2", "x[i] if p[i] > 2", "is emitted with"),
    ("the side that is taken", "a[i] if p[i] > 2 else x[i]", "a[i]", "is emitted with `a"),
    ("a side that indices and data choose", "else x[max(i, 3)]", "else x[i]", "is emitted with"),
    ("a side that indices and data choose", "(x[i] if", "(x[i - 1] if", "is emitted with"),
    ("a side that indices and data choose", "i > 3 and a", "i > 2 and a", "is emitted with"),
    ("an unknown number with itself in it", "~~(p", "~(p", "is emitted with"),
    ("an unknown number with itself in it", "~~(p", "~~~~(p", "is emitted with"),
    (
        "turns around a ring that are decided where the block runs",
        "x[i - 1]",
        "x[i]",
        "emitted with",
    ),
    (
        "turns around a ring that are decided where the block runs",
        "p[i + 1]",
        "p[i]",
        "emitted with",
    ),
    ("fused products", "-x[i])", "x[i])", "is emitted with"),
    ("fused products", "fma(-x[i], x[i], a[i])", "fma(x[i], x[i], -a[i])", "is emitted with"),
    ("fused products", "fma(x[i], a[i]", "fma(x[i], x[i]", "is emitted with"),
    ("a guard that follows from another", "i < s and ", "", "without the guard `i < s`"),
    ("a condition around a loop", "i < s and ", "", "without the guard `i < s`"),
    ("a condition around a loop", "i < s and ", "i <= s and ", "under `i <= s`, which"),
    ("a guard that follows from another", " and p[i] > 0", "", "without the guard `p.i. > 0`"),
    (
        "a guard that follows from another",
        "y[i] = x[i]",
        "y[i] = -x[i]",
        "with `-x.i.` where `x.i.`",
    ),
    ("a sum of data, which may wrap around", " and p[i] + 1 > 3", "", "without the guard `p"),
    ("a sum of data, which may wrap around", "(p[i] + 1) %", "(1 + p[i] + n) %", "emitted with"),
    ("a sum of data, which may wrap around", "2*p[i] // 2", "p[i]", "is emitted with"),
    (
        "a sum of data, which may wrap around",
        " if p[i] < p[i] + 1 else a[2*p[i] // 2 % n]",
        "",
        "is emitted with",
    ),
    (
        "a clamped read as a selection, by unknown numbers",
        "i*s - p[i] >= 0",
        "i*s >= p[i]",
        "is emitted with",
    ),
    (
        "loops that stay, in one that is written out",
        "y[3 + v] = x[v + 3]",
        "y[3 + v] = x[3]",
        "is emitted with",
    ),
    (
        "loops that stay, in one that is written out",
        'for v in unrolled(3):\n  with block("b", where=v + 3',
        'for v in unrolled(2):\n  with block("b", where=v + 3',
        "nothing is emitted where",
    ),
    (
        "a loop that stays, of what only numbers make affine",
        "y[u + n*u]",
        "y[u + n]",
        "is emitted with",
    ),
    ("a guard that follows from another", 'block("b"', 'block("c"', "'b' is emitted as 'c'"),
]
CASES = {name: (before, after) for name, before, after in SAME}


def kernel(body: str) -> Kernel:
    return from_text(HEAD + "".join(f"  {line}\n" for line in body.splitlines()))


@pytest.mark.parametrize("name", CASES)
def test_what_may_change(name: str) -> None:
    before, after = map(kernel, CASES[name])
    check_unchanged(before, before)
    check_unchanged(before, after)


@pytest.mark.parametrize(("name", "old", "new", "message"), WRONG)
def test_what_may_not(name: str, old: str, new: str, message: str) -> None:
    before, after = CASES[name]
    assert old in after
    with pytest.raises(Refused, match=message):
        check_unchanged(kernel(before), kernel(after.replace(old, new)))


@pytest.mark.parametrize("around", ["if p[i] > 0", "for j in range(p[i])"])
def test_a_condition_may_cease_to_hold(around: str) -> None:
    """What is around a block held as it was entered; a statement of it may have written since."""
    guard = "p[i] > 0" if around.startswith("if") else "j < p[i]"

    def tree(write: str, where: str) -> Kernel:
        return from_text(
            f"{HEAD}  for i in range(n):\n    {around}:\n"
            f'      with block("a"):\n        {write}\n'
            f'      with block("b"{where}):\n        a[i] = x[i]\n'
        )

    check_unchanged(tree("y[i] = 0.0", f", where={guard}"), tree("y[i] = 0.0", ""))
    with pytest.raises(Refused, match="block 'b' is emitted without the guard"):
        check_unchanged(tree("p[i] = 0", f", where={guard}"), tree("p[i] = 0", ""))


def test_an_answer_is_of_the_guards_that_it_was_asked_under() -> None:
    """Two blocks in one place ask the same of an index, and run in other iterations."""

    def tree(first: str, then: str) -> Kernel:
        blocks = (
            f'  with block("{name}", where=i < {most}):\n    y[i] = x[{read}]\n'
            for name, most, read in (("a", 1, first), ("b", 2, then))
        )
        return kernel("for i in range(n):\n" + "".join(blocks))

    check_unchanged(tree("i", "i"), tree("0", "i"))
    with pytest.raises(Refused, match="block 'b' is emitted with"):
        check_unchanged(tree("i", "i"), tree("0", "0"))


def test_an_answer_is_of_the_signs_of_zeros() -> None:
    """Trees are equal in Python where zeros have other signs, and these are other elements."""

    def tree(first: str, then: str) -> Kernel:
        blocks = (
            f'  with block("{name}"):\n    y[i] = x[{read}]\n'
            for name, read in (("a", first), ("b", then))
        )
        return kernel("for i in range(n):\n" + "".join(blocks))

    before = "min(max(int64(a[i] / {zero}), 0), n - 1)"
    after = "max(min(int64(a[i] / {zero}), n - 1), 0)"
    old, new, wrong = before.format(zero="0.0"), after.format(zero="0.0"), after.format(zero="-0.0")
    check_unchanged(tree(old, old), tree(new, new))
    with pytest.raises(Refused, match="block 'b' is emitted with"):
        check_unchanged(tree(old, old), tree(new, wrong))


def test_a_condition_that_reads_is_no_guard_of_each_iteration() -> None:
    """What the loop writes may change it, after the loop was entered."""
    block = 'with block("b"{}):\n{}p[j] = 0\n'
    before = "for i in range(n):\n  if p[i] > 0:\n    for j in range(n):\n      "
    after = "for i in range(n):\n  for j in range(n):\n    "
    with pytest.raises(Refused, match=r"serial loop 'j' .* where a condition `p.i. > 0` is proved"):
        check_unchanged(
            kernel(before + block.format("", " " * 8)),
            kernel(after + block.format(", where=p[i] > 0", " " * 6)),
        )


def test_statements_that_are_gone_are_missed() -> None:
    """So are those that are more, in another order, or of another kind."""
    one = 'for i in range(n):\n  with block("b", t=spatial(i)):\n    y[t] = x[t]\n'
    two = one.replace('"b"', '"c"')
    for before, after, message in (
        (one + two, one, "nothing is emitted where serial loop 'i' over .0, n. is proved"),
        (one, one + two, "serial loop 'i' over .0, n. is emitted where nothing is proved"),
        (one + two, two + one, "block 'b' is emitted as 'c'"),
        (
            one,
            one.replace("y[t] = x[t]", "y[t] = combine.sum(y[t], x[t])"),
            "a statement of another",
        ),
        (
            one,
            one.replace("range", "parallel"),
            "parallel loop 'i' over .* is emitted where serial",
        ),
    ):
        with pytest.raises(Refused, match=message):
            check_unchanged(kernel(before), kernel(after))


def test_an_unrolled_loop_of_more_iterations_is_another() -> None:
    text = 'for u in unrolled(2):\n  with block("b", t=spatial(u)):\n    y[t] = x[t]\n'
    with pytest.raises(Refused, match="block 'b' is emitted where nothing is proved"):
        check_unchanged(kernel(text), kernel(text.replace("2", "3")))


def test_a_zero_is_another_with_another_sign() -> None:
    text = 'for i in range(n):\n  with block("b", t=spatial(i)):\n    y[t] = 0.0\n'
    with pytest.raises(Refused, match=r"with `float32\(-0.0\)` where `float32\(0.0\)`"):
        check_unchanged(kernel(text), kernel(text.replace("0.0", "-0.0")))


def test_what_a_spec_defines_is_compared_too() -> None:
    a, b = Var("a.v", DType.FLOAT32), Var("b.v", DType.FLOAT32)
    square = Binary(BinaryOp.MUL, b, b)
    added = '  with block("b", t=reduction(i)):\n    y[0] = combine.sum(y[0], x[t])\n'
    text = f"for i in range(n):\n{added}"

    def combined(by: Expr) -> Kernel:
        far = DefinedCombiner("far", ("v",), (Const(0.0, DType.FLOAT32),), (by,))

        def go(node: Node) -> Node:
            new = map_children(node, go)
            return replace(new, combiner=far) if isinstance(new, Update) else new

        return map_children(kernel(text), go)

    proved = combined(Binary(BinaryOp.ADD, a, square))
    check_unchanged(proved, combined(Call(Function.FMA, (b, b, a))))
    with pytest.raises(Refused, match="'b' is emitted as a statement of another kind"):
        check_unchanged(proved, combined(Call(Function.FMA, (b, a, a))))


def test_a_kernel_without_contraction_has_no_product_fused() -> None:
    before, after = (
        replace(kernel(body), contraction=Contraction.NONE)
        for name, *bodies in SAME
        if name == "fused products"
        for body in bodies
    )
    with pytest.raises(Refused, match="block 'b' is emitted with"):
        check_unchanged(before, after)
    with pytest.raises(Refused, match="other arguments"):
        check_unchanged(before, replace(after, contraction=Contraction.FUSED))
