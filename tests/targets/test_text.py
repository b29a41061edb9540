"""C names, constants and layout, and what has no C form."""

import math
import re

import pytest

from gen.errors import TilesmithError
from gen.ir.algebra import index
from gen.ir.index.facts import Facts
from gen.ir.nodes import Binary, BinaryOp, Buffer, Var
from gen.ir.types import DType
from gen.targets.c.expr import literal
from gen.targets.c.layout import WIDTH, wrapped
from gen.targets.c.library import build
from gen.targets.c.names import Distinct
from gen.targets.c.views import Dense, element, plain_scalars, product
from gen.targets.cpu.jit import compile_kernel, compiler_command
from gen.targets.cpu.levels import Level

from .kernels import lowered


def test_names_are_distinct_and_no_words_of_c() -> None:
    names = Distinct().names(["double", "y.i", "y_i", "ts_x", "active", "x", "a b", "é", "1", ""])
    assert list(names.values()) == [
        *("v_double", "y_i", "v_y_i", "v_ts_x", "v_active", "x", "a_b", "v__", "v_1", "v_")
    ]


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, DType.FLOAT32, "0.1f"),
        (1 / 3, DType.FLOAT32, "0.33333334f"),
        (1 / 3, DType.FLOAT64, "0.3333333333333333"),
        (-0.0, DType.FLOAT64, "(-0.0)"),
        (math.inf, DType.FLOAT32, "__builtin_inff()"),
        (1e39, DType.FLOAT32, "__builtin_inff()"),
        (-(2**63), DType.INT64, "INT64_MIN"),
        (2**64 - 1, DType.UINT64, "(uint64_t)18446744073709551615u"),
        (True, DType.BOOL, "true"),
    ],
)
def test_literals(value: float, dtype: DType, text: str) -> None:
    assert literal(value, dtype) == text


@pytest.mark.parametrize("arguments", [20, 20_000])
def test_long_lines_are_broken_and_keep_their_tokens(arguments: int) -> None:
    line = (
        "    " + "call(" * 6 + ", ".join(f"argument_{k}" for k in range(arguments)) + ")" * 6 + ";"
    )
    parts = wrapped(line)
    assert max(map(len, parts)) <= WIDTH
    assert re.sub(r"\s", "", "".join(parts)) == re.sub(r"\s", "", line)


@pytest.mark.parametrize(
    ("update", "dtype", "words"),
    [
        ("y[i] = x[i // 2]", "bool", "block 'y', of bool, has no vector form on v3 in loop"),
        ("y[0] = combine.any(y[0], x[i])", "bool", "block 'y', of bool by 'any', has no vector"),
    ],
)
def test_a_vectorized_loop_is_never_scalar_code(update: str, dtype: str, words: str) -> None:
    kernel = lowered(f"""
def k(n, x: {dtype}[n], y: InOut[{dtype}[n]]):
    for y.c in range(n//8):
        for y.l in vectorized(8):
            with block("y", i={"reduction" if "any" in update else "spatial"}(y.c*8 + y.l, n)):
                {update}
""")
    with pytest.raises(TilesmithError, match=words):
        compile_kernel(kernel, Level.V3)


def test_the_compilers_words_are_passed_on() -> None:
    with pytest.raises(TilesmithError, match=r"(?s)compiler refused the kernel:.*no_such_thing"):
        build("int x = no_such_thing;\n", compiler_command(Level.V2, ()))


def test_names_of_arrays_do_not_meet_those_of_the_code() -> None:
    kernel = lowered("""
def k(active, value: float32[active], float: Out[float32[active]]):
    for l.i in range(active):
        with block("b", i=spatial(l.i)):
            float[i] = value[i]
""")
    assert compile_kernel(kernel, Level.V2, flags=("-Wshadow", "-Werror")).variants == 1


def test_numbers_of_an_index_are_not_ints() -> None:
    """C would compute what is made of numbers alone as an int, which is too small for them."""
    scalars = plain_scalars({"n": "n"}, {}, Facts((), ()))
    n, big = Var("n"), index(2**31 - 1)
    quotient = Binary(BinaryOp.FLOORDIV, n, Binary(BinaryOp.ADD, big, index(1)))
    assert scalars.index(quotient) == "ts_floordiv_i64_s(n, 2147483648)"
    assert scalars.index(index(-(2**63))) == "INT64_MIN"
    assert product(["70000", "70000"]) == "INT64_C(1) * 70000 * 70000"
    assert product(["70000", "n", "7000"]) == "70000 * n * 7000"
    assert product(["((n + 99999) / 100000)", "(m)"]) == "((n + 99999) / 100000) * (m)"
    view = Dense("t", Buffer("t", DType.INT8, (index(70000), index(70000))))
    place = element({"t": view}, scalars, "t", (index(69999), index(5)))
    assert place == "t[70000 * INT64_C(69999) + 5]"
