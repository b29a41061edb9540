"""from_text(to_text(tree)) == tree, for drawn trees of every node type and for written ones."""

import ast
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen import language as spec
from gen.ir.algebra import TRUE
from gen.ir.inits import explicit_inits
from gen.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    BinaryOp,
    Block,
    Buffer,
    Call,
    Cast,
    Combiner,
    Const,
    Delinearize,
    Destination,
    Expr,
    Function,
    If,
    Init,
    Intent,
    IterKind,
    IterVar,
    Kernel,
    Load,
    Loop,
    LoopKind,
    Origin,
    Parameter,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    Unary,
    UnaryOp,
    Update,
    Var,
)
from gen.ir.rules.verify import verify
from gen.ir.text.parser import from_text
from gen.ir.text.print_expr import expr_to_text
from gen.ir.text.printer import stmt_to_text, to_text
from gen.ir.text.script_names import from_script
from gen.ir.types import INDEX, DType, Kind

SPECS = Path(__file__).parents[2] / "kernels_spec"
ARRAYS = {"x": DType.FLOAT32, "p": INDEX, "z": DType.COMPLEX64, "flags": DType.BOOL}
SCALARS = {"alpha": DType.FLOAT32, "small": DType.INT8}
VARIABLES = ("m", "n", "y.i", "y.j_0", "pass.j", "pass_.j", "if.init.None", "i", "in", *SCALARS)
EXTENTS = (Var("m"), Var("n"), Const(0, INDEX), Const(16, INDEX))


def _value(dtype: DType) -> st.SearchStrategy[bool | int | float | complex]:
    match dtype.kind:
        case Kind.BOOL:
            return st.booleans()
        case Kind.SIGNED | Kind.UNSIGNED:
            return st.integers(-(2**63), 2**63)
        case Kind.FLOAT:
            return st.floats(allow_nan=False) | st.integers(-3, 3)
        case Kind.COMPLEX:
            return st.complex_numbers(allow_nan=False) | st.just(complex(math.inf, -0.0))


@st.composite
def exprs(draw: st.DrawFn, arrays: dict[str, DType], depth: int = 3) -> Expr:
    """Any expression, ill-typed ones too: what is printed must be what is there."""
    below = exprs(arrays, depth - 1)
    kind = draw(st.integers(0, 7 if depth else 1))
    match kind:
        case 0:
            name = draw(st.sampled_from(VARIABLES))
            return Var(name, SCALARS.get(name, INDEX))
        case 1:
            dtype = draw(st.sampled_from(DType))
            return Const(draw(_value(dtype)), dtype)
        case 2:
            return Unary(draw(st.sampled_from(UnaryOp)), draw(below))
        case 3:
            return Binary(draw(st.sampled_from(BinaryOp)), draw(below), draw(below))
        case 4:
            return Select(draw(below), draw(below), draw(below))
        case 5:
            return Cast(draw(st.sampled_from(DType)), draw(below))
        case 6:
            args = draw(st.lists(below, min_size=1, max_size=3))
            return Call(draw(st.sampled_from(Function)), tuple(args))
        case _:
            name = draw(st.sampled_from(sorted(arrays)))
            return Load(name, tuple(draw(st.lists(below, max_size=2))), arrays[name])


@st.composite
def blocks(draw: st.DrawFn, arrays: dict[str, DType], loops: tuple[str, ...]) -> Block:
    expr = exprs(arrays, 2)
    bound = st.sampled_from(EXTENTS) | expr
    names = draw(
        st.lists(st.sampled_from(["i", "in", "in_", "where", "origin"]), unique=True, max_size=3)
    )
    iters = tuple(
        IterVar(name, draw(bound), draw(bound), draw(st.sampled_from(IterKind))) for name in names
    )
    binding = (st.sampled_from(loops).map(Var) if loops else expr) | expr
    own = Origin("y.b", tuple(Var(name) for name in names))
    other = st.builds(Origin, st.sampled_from(["e", "def"]), st.lists(expr, max_size=2).map(tuple))
    combiner = st.sampled_from(Combiner)
    count = draw(st.integers(1, 2))
    targets = tuple(
        Destination(draw(st.sampled_from(sorted(arrays))), tuple(draw(st.lists(expr, max_size=2))))
        for _ in range(count)
    )
    body = draw(
        st.builds(Store, st.just(targets[0]), expr)
        | st.builds(Init, combiner, st.just(targets))
        | st.builds(Update, combiner, st.just(targets), st.tuples(*[expr] * count))
    )
    return Block(
        "y.b",
        iters,
        tuple(draw(binding) for _ in iters),
        draw(st.just(TRUE) | expr),
        body,
        draw(st.booleans()),
        draw(st.just(own) | st.none() | other),
        draw(annotations),
    )


annotations = st.just(()) | st.just((("grain", -3), ("a key", 'it\'s "so"')))


@st.composite
def stmts(
    draw: st.DrawFn, arrays: dict[str, DType], loops: tuple[str, ...] = (), depth: int = 4
) -> Stmt:
    bound = st.sampled_from(EXTENTS) | exprs(arrays, 1)
    name = draw(st.sampled_from(["y.i", "y.j_0", "pass.j", "pass_.j", "if.init.None"]))
    kind = draw(st.integers(0, 6)) if depth else 0
    match kind:
        case 0:
            return draw(blocks(arrays, loops))
        case 1:
            body = draw(stmts(arrays, (*loops, name), depth - 1))
            loop_kind = draw(st.sampled_from(LoopKind))
            return Loop(name, draw(bound), draw(bound), loop_kind, body, draw(annotations))
        case 2:
            parts = draw(st.sampled_from([("y.i",), ("y.i", "pass.j_0")]))
            body = draw(stmts(arrays, (*loops, *parts), depth - 1))
            return Delinearize(parts, tuple(draw(bound) for _ in parts), draw(bound), body)
        case 6:
            return Barrier()
        case 3:
            return If(draw(exprs(arrays)), draw(stmts(arrays, loops, depth - 1)))
        case 4:
            buffers = tuple(
                Buffer(
                    name,
                    draw(st.sampled_from(DType)),
                    tuple(draw(st.lists(bound, max_size=2))),
                    draw(st.sampled_from([s for s in Scope if s is not Scope.GLOBAL])),
                )
                for name in draw(
                    st.lists(st.sampled_from(["t", "with", "with_", "x"]), unique=True)
                )
            )
            inner = {**arrays, **{b.name: b.dtype for b in buffers}}
            return Allocate(buffers, draw(stmts(inner, loops, depth - 1)))
        case _:
            return Seq(tuple(draw(st.lists(stmts(arrays, loops, depth - 1), max_size=3))))


@st.composite
def kernels(draw: st.DrawFn) -> Kernel:
    parameters = tuple(
        Parameter(
            Buffer(
                name,
                dtype,
                draw(st.lists(st.sampled_from(EXTENTS), max_size=2).map(tuple)),
                Scope.GLOBAL,
            ),
            draw(st.sampled_from(Intent)),
        )
        for name, dtype in ARRAYS.items()
    )
    scalars = tuple(Var(name, dtype) for name, dtype in SCALARS.items())
    assumptions = tuple(draw(st.lists(exprs(ARRAYS, 2), max_size=2)))
    return Kernel("f", ("m", "n"), parameters, scalars, assumptions, draw(stmts(ARRAYS)))


@settings(max_examples=250, deadline=None, derandomize=True)
@given(kernels())
def test_drawn_trees_come_back(kernel: Kernel) -> None:
    text = to_text(kernel)
    assert from_text(text) == kernel, text


SOFTMAX = """\
def softmax(m, n, x: float32[m, n], y: Out[float32[m, n]], scale: float32):
    assume(n <= 16384)
    with allocate(peak=float32[m], e=float32[m, n] @ heap, total=float32[m] @ stack):
        for peak.i in parallel(m, annotations={'grain': 64}):
            for peak.j in range(n):
                with block("peak", i=spatial(peak.i), j=reduction(peak.j), initialises=True):
                    peak[i] = combine.max(peak[i], x[i, j])
        for e.f in range(m * n):
            with delinearize(e.f, m, n) as (e.i, e.j):
                with block("e", i=spatial(e.i), j=spatial(e.j)):
                    e[i, j] = exp((x[i, j] - peak[i]) * scale)
        for total.i in range(m):
            with block("total.init", i=spatial(total.i), origin=None):
                total[i] = identity.sum
            for total.j_0 in range((n + 3) // 4):
                for total.j_1 in vectorized(4):
                    with block(
                        "total",
                        i=spatial(total.i),
                        j=reduction(total.j_0 * 4 + total.j_1, n),
                        where=total.j_0 * 4 + total.j_1 < n,
                    ):
                        total[i] = combine.sum(total[i], e[i, j])
        for y.i in range(m):
            for y.j in range(1, n):
                with block("y", i=spatial(y.i), j=spatial(y.j, n), origin=y[i, j + 0]):
                    y[i, j] = 2.0 * e[i, j] / total[i] if -1 < j else float32("inf")
"""


def test_what_is_printed_is_what_is_read() -> None:
    """The text itself: everything that can be left out is, and nothing else."""
    kernel = from_text(SOFTMAX)
    assert to_text(kernel) == SOFTMAX
    ast.parse(SOFTMAX)


def test_the_parser_says_where_each_node_stands() -> None:
    kernel = from_text(SOFTMAX, "softmax.ir")
    assert kernel.assumptions[0].span is not None
    assert str(kernel.assumptions[0].span) == "softmax.ir:2:12"


ONE = Const(1, INDEX)
x = Load("x", (Var("i"),), DType.FLOAT32)
i, j = Var("i"), Var("j")


def _f32(value: float) -> Const:
    return Const(value, DType.FLOAT32)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Binary(BinaryOp.SUB, i, Binary(BinaryOp.SUB, j, i)), "i - (j - i)"),
        (Binary(BinaryOp.SUB, Binary(BinaryOp.SUB, i, j), i), "i - j - i"),
        (Binary(BinaryOp.MUL, Binary(BinaryOp.ADD, i, j), i), "(i + j) * i"),
        (Binary(BinaryOp.LT, Binary(BinaryOp.LT, i, j), i), "(i < j) < i"),
        (Binary(BinaryOp.MAX, i, Const(-1, INDEX)), "max(i, -1)"),
        (Binary(BinaryOp.MUL, x, _f32(2.0)), "x[i] * 2.0"),
        (Binary(BinaryOp.MUL, x, Const(2.0, DType.FLOAT64)), "x[i] * float64(2.0)"),
        (Unary(UnaryOp.NEG, Const(1, INDEX)), "-int64(1)"),
        (Unary(UnaryOp.NOT, Binary(BinaryOp.EQ, i, j)), "not i == j"),
        (Unary(UnaryOp.NOT, Binary(BinaryOp.LT, ONE, Const(2, INDEX))), "not 1 < 2"),
        (Binary(BinaryOp.EQ, Unary(UnaryOp.NOT, i), j), "(not i) == j"),
        (Cast(DType.FLOAT32, Const(1, INDEX)), "float32(int64(1))"),
        (_f32(1.0), "float32(1.0)"),
        (_f32(math.nan), 'float32("nan")'),
        (Const(1 - 2j, DType.COMPLEX64), "complex64(1.0, -2.0)"),
        (Load("s", (), DType.FLOAT32), "s[()]"),
        (Select(Select(i, i, j), i, Select(i, i, j)), "i if (i if i else j) else i if i else j"),
    ],
)
def test_expressions_print_with_no_more_than_they_need(expr: Expr, text: str) -> None:
    assert expr_to_text(expr) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pass.j", "pass_.j"),
        ("pass_.j", "pass__.j"),
        ("y.lambda", "y.lambda_"),
        ("passing.i_", "passing.i_"),
        ("_pass.match", "_pass.match"),
    ],
)
def test_words_that_python_keeps_get_an_underscore(name: str, text: str) -> None:
    assert expr_to_text(Var(name)) == text
    assert from_script(text) == name


def test_a_part_of_a_tree_prints_without_its_surroundings() -> None:
    block = Block(
        "b", (IterVar("i", Const(0, INDEX), Var("m")),), (Var("b.i"),), TRUE,
        Store(Destination("y", (i,)), _f32(1.0)), origin=Origin("b", (i,)),
    )  # fmt: skip
    assert stmt_to_text(block) == 'with block("b", i=spatial(b.i, m)):\n    y[i] = float32(1.0)'


@pytest.mark.parametrize("name", ["argmax", "cumsum", "layer_norm", "softmax", "unsharp"])
def test_shipped_kernels_come_back(name: str) -> None:
    """Before and after their inits are written out; both obey the rules."""
    loaded = spec.load(SPECS / f"{name}.yaml")
    for choice in spec.choices(loaded):
        plain = spec.build(loaded, choice)
        for kernel in (plain, explicit_inits(plain)):
            verify(kernel)
            assert from_text(to_text(kernel)) == kernel


def test_nan_comes_back() -> None:
    kernel = from_text(
        'def f(y: Out[float32[()]]):\n    with block("b"):\n        y[()] = float32("nan")'
    )
    again = from_text(to_text(kernel))
    assert isinstance(again.body, Block) and isinstance(again.body.body, Store)
    assert isinstance(again.body.body.value, Const) and math.isnan(again.body.body.value.value)
