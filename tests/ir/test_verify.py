"""Every rule of the IR has a tree that breaks it, and says so."""

import re
from dataclasses import replace

import pytest

from gen.ir.nodes import (
    Allocate,
    Block,
    Combiner,
    Const,
    Delinearize,
    Destination,
    Init,
    Kernel,
    Load,
    Scope,
    Seq,
    Stmt,
    Store,
    Update,
    Var,
)
from gen.ir.rules.verify import IRError, verify, verify_any
from gen.ir.text.parser import from_text
from gen.ir.types import INDEX, DType
from gen.ir.walk import map_children

GOOD = """\
def f(m, n, x: float32[m, n], p: int64[n], y: Out[float32[m]], w: Out[int64[m]], a: float32):
    assume(n <= 64)
    with allocate(t=float32[n]):
        for t.i in range(p[0], n):
            with block("t", i=spatial(t.i, n), where=t.i < n):
                t[i] = a * x[0, p[i]]
        for y.i in parallel(m):
            for y.j in vectorized(n):
                with block("y", i=spatial(y.i), j=reduction(y.j), initialises=True):
                    y[i], w[i] = combine.argmax((y[i], w[i]), (x[i, j] + t[j], j))
"""


def test_a_good_tree_passes() -> None:
    verify(from_text(GOOD))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # names
        ("def f(m, n", "def f(m, n, a", "'a' is declared twice"),
        ("t=float32[n]", "t=float32[n], x=float32[n]", "'x' is declared twice"),
        ("t=float32[n]", "t=float32[n], n=float32[n]", "'n' is declared twice"),
        ('block("t"', 'block("y"', "there are two blocks 'y'"),
        ("t.i", "y.i", "there are two loops 'y.i'"),
        ("y.j", "y.i", "loop 'y.i' is nested within itself"),
        ("t.i", "m", "loop 'm' has the name of a dim or scalar"),
        ("i=spatial(t.i, n)", "n=spatial(t.i, n)", "'n' of block 't' hides another variable"),
        # variables and buffers in scope
        ("assume(n <= 64)", "assume(k <= 64)", "no variable 'k' is bound here"),
        ("float32[m, n]", "float32[m, k]", "no variable 'k' is bound here"),
        ("where=t.i < n", "where=i < n", "no variable 'i' is bound here"),
        ("x[0, p[i]]", "x[0, p[t.i]]", "no variable 't.i' is bound here"),
        ("spatial(y.i), j", "spatial(y.i, j), j", "no variable 'j' is bound here"),
        ("range(p[0], n)", "range(p[t.i], n)", "no variable 't.i' is bound here"),
        # ranks and types
        ("x[0, p[i]]", "x[p[i]]", "'x' has 2 axes, but 1 indices"),
        ("x[0, p[i]]", "x[0, t[i]]", "an index of 'x' is 't[i]' of type float32, not int64"),
        ("range(p[0], n)", "range(a, n)", "the lower bound of loop 't.i' is 'a' of type float32"),
        ("range(p[0], n)", "range(a)", "the upper bound of loop 't.i' is 'a' of type float32"),
        ("t=float32[n]", "t=float32[a]", "an extent of 't' is 'a' of type float32, not int64"),
        ("assume(n <= 64)", "assume(n)", "an assumption is 'n' of type int64, not bool"),
        ("where=t.i < n", "where=t.i", "the predicate of block 't' is 't.i' of type int64"),
        (
            "spatial(t.i, n)",
            "spatial(a, n)",
            "the value of 'i' of block 't' is 'a' of type float32",
        ),
        (
            "spatial(t.i, n)",
            "spatial(t.i, a)",
            "a bound of 'i' of block 't' is 'a' of type",
        ),
        ("spatial(t.i, n)", "spatial(t.i, n), origin=t[a]", "the origin of block 't' is 'a' of"),
        ("t[i] = a * x", "t[i] = i * x", "the operands of 'i * x[0, p[i]]' are int64 and float32"),
        (
            "t[i] = a * x",
            "t[i] = i if a else a * x",
            "a condition is 'a' of type float32",
        ),
        ("t[i] = a * ", "t[i] = float64(a) + 0 * 0 if i < 0 else ", "are float64 and float32"),
        ("t[i] = a *", "t[i] = a &", "'&' takes no float32: 'a & x[0, p[i]]'"),
        ("t[i] = a *", "t[i] = ~", "'~' takes no float32: '~x[0, p[i]]'"),
        ("a * x[0, p[i]]", "exp(i)", "'exp' takes floats, not int64"),
        ("a * x[0, p[i]]", "exp(a, a)", "'exp' takes 1 arguments, not 2"),
        ("a * x[0, p[i]]", "fma(a, a)", "'fma' takes 3 arguments, not 2"),
        ("a * x[0, p[i]]", "hypot(a)", "'hypot' takes 2 arguments, not 1"),
        ("a * x[0, p[i]]", "tanh(complex(a, a))", "'tanh' takes floats, not complex64"),
        ("a * x[0, p[i]]", "real(a)", "'real' takes complex numbers, not float32"),
        ("a * x[0, p[i]]", "real(complex(float16(a), float16(a)))", "takes floats, not float16"),
        ("a * x[0, p[i]]", "complex(a)", "'complex' takes 2 arguments, not 1"),
        ("a * x[0, p[i]]", "conj(complex(a, a))", "of type complex64, not float32"),
        ("a * x[0, p[i]]", "float32(complex64(a))", "'float32(complex64(a))' drops an imaginary"),
        ("a * x[0, p[i]]", "float32(int8(300))", "the constant 300 does not fit int8"),
        ("a * x[0, p[i]]", "float64(a)", "what block 't' stores is 'float64(a)' of type float64"),
        # blocks
        ("t[i] = a", "x[0, i] = a", "block 't' writes 'x', an input"),
        (
            "(x[i, j] + t[j], j)",
            "(j, j)",
            "what block 'y' combines is 'j' of type int64",
        ),
        ("argmax((y[i], w[i]), (x[i, j] + t[j], j))", "sum((y[i], w[i]), (a, j))", "has 2 targets"),
        ("int64[m]]", "int32[m]]", "the index of block 'y' is int32, not int64"),
        ("y: Out[float32", "y: Out[complex64", "'argmax' of block 'y' takes no complex64"),
        ("j=reduction", "j=spatial", "block 'y' owns an init, but is not a reduction"),
        (", w[i]", ", w[j]", "block 'y' reduces over 'j', which its target uses"),
        # loop kinds
        ("parallel(m)", "vectorized(m)", "vectorized loop 'y.j' is inside vectorized loop 'y.i'"),
    ],
)
def test_a_broken_rule_is_named(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(IRError) as refusal:
        verify(from_text(GOOD.replace(old, new)))
    assert message in refusal.value.message
    assert refusal.value.span is not None


def _change(kernel: Kernel, name: str, **changes: object) -> Kernel:
    """The kernel with fields of one block replaced."""

    def go(stmt: object) -> object:
        if isinstance(stmt, Block):
            return replace(stmt, **changes) if stmt.name == name else stmt  # type: ignore[arg-type]
        return map_children(stmt, go) if isinstance(stmt, Stmt) else stmt

    return replace(kernel, body=go(kernel.body))  # type: ignore[arg-type]


i, n = Var("i"), Var("n")
t_i = Destination("t", (i,))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (Store(Destination("q", (i,)), i), "no buffer 'q' is in scope"),
        (Store(t_i, Load("q", (i,), INDEX)), "no buffer 'q' is in scope"),
        (Store(t_i, Load("t", (i,), INDEX)), "a load of 't' is int64, not float32"),
        (Store(t_i, Var("a", INDEX)), "variable 'a' is float32, not int64"),
        (Store(t_i, Const(True, DType.FLOAT32)), "the constant True does not fit float32"),
        (Store(t_i, Const(1.5, INDEX)), "the constant 1.5 does not fit int64"),
        (Init(Combiner.ANY, (t_i,)), "'any' of block 't' takes no float32"),
        (Init(Combiner.ARGMIN, (t_i,)), "'argmin' of block 't' has 1 targets"),
        (Init(Combiner.ARGMIN, (t_i, t_i)), "the targets of block 't' are one place"),
        (Update(Combiner.SUM, (t_i,), ()), "block 't' has 0 values for 1 targets"),
    ],
)
def test_a_body_that_no_script_has_is_refused(body: object, message: str) -> None:
    with pytest.raises(IRError, match=re.escape(message)):
        verify(_change(from_text(GOOD), "t", body=body))


def test_every_iteration_variable_has_a_binding() -> None:
    with pytest.raises(IRError, match="block 't' has 1 iteration variables, but 0 bindings"):
        verify(_change(from_text(GOOD), "t", bindings=()))


def test_sums_of_truth_values_are_refused() -> None:
    text = """def f(y: Out[bool[()]]):
    with block("y"):
        y[()] = combine.sum(y[()], True)
"""
    with pytest.raises(IRError, match="'sum' of block 'y' takes no bool"):
        verify(from_text(text))


def test_scopes_of_arguments_and_temporaries_differ() -> None:
    kernel = from_text(GOOD)
    x = kernel.parameters[0]
    stack = replace(x, buffer=replace(x.buffer, scope=Scope.STACK))
    with pytest.raises(IRError, match="argument 'x' has scope stack"):
        verify(replace(kernel, parameters=(stack, *kernel.parameters[1:])))
    assert isinstance(kernel.body, Allocate)
    t = replace(kernel.body.buffers[0], scope=Scope.GLOBAL)
    with pytest.raises(IRError, match="temporary 't' has the scope of an argument"):
        verify(replace(kernel, body=replace(kernel.body, buffers=(t,))))


def test_a_fused_loop_has_an_extent_a_part() -> None:
    with pytest.raises(IRError, match="1 parts with 2 extents"):
        verify(Kernel("f", ("n",), (), (), (), Delinearize(("a",), (n, n), n, Seq(()))))
    value = Delinearize(("a",), (n,), Var("b"), Seq(()))
    with pytest.raises(IRError, match="no variable 'b' is bound here"):
        verify(Kernel("f", ("n",), (), (), (), value))


LOWERED = """def f(n, y: Out[float32[n]]):
    for y.i_0 in range(n // 8):
        for y.i_1 in vectorized(8):
            with block("y", i=spatial(y.i_0 * 8 + y.i_1, n)):
                y[i] = 1.0
    for y.i_0 in range(n // 8, n // 8 + 1):
        for y.i_1 in vectorized(8):
            if y.i_0 * 8 + y.i_1 < n:
                with block("y", i=spatial(y.i_0 * 8 + y.i_1, n)):
                    y[i] = 1.0
"""


def test_lowered_trees_copy_blocks_and_loops() -> None:
    verify(from_text(LOWERED), lowered=True)
    verify_any(from_text(LOWERED))
    with pytest.raises(IRError, match=re.escape("there are two loops 'y.i_0'")):
        verify(from_text(LOWERED))
    nested = LOWERED.replace("for y.i_1 in vectorized(8)", "for y.i_0 in range(8)")
    with pytest.raises(IRError, match=re.escape("loop 'y.i_0' is nested within itself")):
        verify(from_text(nested), lowered=True)


def test_an_iteration_variable_has_the_name_of_no_other_loop_around() -> None:
    with pytest.raises(IRError, match="'i' of block 'y' hides a loop of that name"):
        verify(from_text(GOOD.replace("y.j", "i")))
    verify(from_text(GOOD.replace("y.j", "j")))  # the very same number
    verify(from_text(GOOD.replace("t.i", "j")))  # a loop elsewhere


def test_a_guard_is_a_predicate_until_lowering() -> None:
    text = "def f(n):\n    if n > 0:\n        pass\n"
    verify(from_text(text), lowered=True)
    with pytest.raises(IRError, match="an 'if' stands in a tree that is not lowered"):
        verify(from_text(text))
    with pytest.raises(IRError, match="the condition of an 'if' is 'n' of type int64, not bool"):
        verify(from_text(text.replace("n > 0", "n")), lowered=True)


def test_lowered_trees_imply_nothing() -> None:
    for bounds in ("n", "1, 8"):
        text = LOWERED.replace("vectorized(8)", f"vectorized({bounds})")
        with pytest.raises(
            IRError, match=r"vectorized loop 'y\.i_1' of a lowered tree is not over"
        ):
            verify(from_text(text), lowered=True)
    with pytest.raises(IRError, match="block 'y' of a lowered tree owns its init"):
        verify(from_text(GOOD.replace("vectorized(n)", "range(n)")), lowered=True)


def test_parallel_loops_stay_outside_vectorized_ones() -> None:
    text = GOOD.replace("parallel(m)", "vectorized(m)").replace("vectorized(n)", "parallel(n)")
    with pytest.raises(IRError, match=r"parallel loop 'y\.j' is inside vectorized loop 'y\.i'"):
        verify(from_text(text))


def test_buffers_have_names_of_their_own_until_lowering() -> None:
    text = """\
def f(n):
    with allocate(t=float32[n]):
        pass
    with allocate(t=float32[n]):
        pass
"""
    verify(from_text(text), lowered=True)
    with pytest.raises(IRError, match="there are two buffers 't'"):
        verify(from_text(text))


def test_what_is_emitted_alone_has_loops_variables_in_its_blocks() -> None:
    """The interpreter takes such a tree; no stage up to lowering does."""
    text = """
def f(n, a: float32, y: Out[float32[n]]):
    for i in range(n):
        with block("y"):
            y[i] = a
"""
    verify_any(from_text(text))
    for lowered in (False, True):
        with pytest.raises(IRError, match="the body of block 'y' uses 'i', a loop's variable"):
            verify(from_text(text), lowered=lowered)
