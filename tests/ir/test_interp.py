"""What kernels compute, and every wrong thing that the interpreter catches."""

import math
import re
import time

import numpy as np
import pytest

from gen.ir.interpret.interp import InterpError, dims_of, run
from gen.ir.interpret.special import lgamma
from gen.ir.rules.verify import IRError
from gen.ir.text.parser import from_text

SOFTMAX = """\
def softmax(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    with allocate(peak=float32[m], e=float32[m, n], total=float32[m]):
        for peak.i in range(m):
            for peak.j in range(n):
                with block("peak", i=spatial(peak.i), j=reduction(peak.j), initialises=True):
                    peak[i] = combine.max(peak[i], x[i, j])
        for e.i_0 in parallel((m + 1) // 2):
            for e.i_1 in range(2):
                for e.j in vectorized(n):
                    with block(
                        "e",
                        i=spatial(e.i_0 * 2 + e.i_1, m),
                        j=spatial(e.j),
                        where=e.i_0 * 2 + e.i_1 < m,
                    ):
                        e[i, j] = exp(x[i, j] - peak[i])
        for total.f in range(m * n + 3):
            with delinearize(total.f, m, n) as (total.i, total.j):
                with block("total.init", i=spatial(total.i), where=total.j == 0, origin=None):
                    total[i] = identity.sum
        for total.i2 in range(m):
            for total.k in range(n):
                with block("total", i=spatial(total.i2), j=reduction(total.k)):
                    total[i] = combine.sum(total[i], e[i, j])
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = e[i, j] / total[i]
"""


@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 3), (0, 4)])
def test_a_scheduled_kernel_computes_what_numpy_does(m: int, n: int) -> None:
    x = np.random.default_rng(0).normal(size=(m, n)).astype(np.float32)
    before = x.copy()
    y = run(from_text(SOFTMAX), {"x": x}, seed=3)["y"]
    e = np.exp(x - x.max(1, keepdims=True))
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(x, before)


def test_a_matmul_is_quick() -> None:
    kernel = from_text("""\
def f(m, n, p, a: float32[m, p], b: float32[p, n], c: Out[float32[m, n]]):
    for c.i in range(m):
        for c.j in range(n):
            for c.k in range(p):
                with block(
                    "c", i=spatial(c.i), j=spatial(c.j), k=reduction(c.k), initialises=True
                ):
                    c[i, j] = combine.sum(c[i, j], a[i, k] * b[k, j])
""")
    a = np.ones((12, 12), np.float32)
    start = time.perf_counter()
    np.testing.assert_array_equal(run(kernel, {"a": a, "b": a})["c"], a @ a)
    assert time.perf_counter() - start < 1.0


def _store(value: str, dtype: str = "float32", declarations: str = "", **given: object) -> object:
    """The one value that `y[()] = value` stores; `given` are arrays and scalars."""
    text = f"def f({declarations}{', ' if declarations else ''}y: Out[{dtype}[()]]):\n"
    kernel = from_text(text + f'    with block("y"):\n        y[()] = {value}\n')
    arrays = {k: v for k, v in given.items() if isinstance(v, np.ndarray)}
    scalars = {k: v for k, v in given.items() if isinstance(v, int | float)}
    return run(kernel, arrays, scalars)["y"][()]


@pytest.mark.parametrize(
    ("value", "dtype", "result"),
    [
        ("-7 // 2 * 100 + -7 % 2", "int64", -399),
        ("int64(7) % int64(-2)", "int64", -1),
        ("int8(127) + 1", "int8", -128),
        ("-int8(-128)", "int8", -128),
        ("uint8(3) - 4", "uint8", 255),
        ("(int8(100) + 100) // 2 + 100 * (int8(3) + 1)", "int8", 116),
        ("(int8(100) + 100) * (int8(100) - -100)", "int8", 64),
        ("max(int8(127) + 1, int8(-1))", "int8", -1),
        ("uint8(255) * 255 * 255 // 2", "uint8", 127),
        ("~uint8(1)", "uint8", 254),
        ("int32(1) << 31", "int32", -(2**31)),
        ("int8(-8) >> 1", "int8", -4),
        ("6 & 3 | 8 ^ 1", "int64", 11),
        ("uint8(int64(-1) + 0)", "uint8", 255),
        ("int32(float64(2.5) * -1.0)", "int32", -2),
        ("0.1 + 0.2", "float32", np.float32(0.1) + np.float32(0.2)),
        ("1.0 / 0.0", "float32", math.inf),
        ("-7.0 // 2.0 * 10.0 + -7.0 % 2.0", "float64", -39.0),
        ("min(float64('nan'), 1.0)", "float64", math.nan),
        ("max(1.0, float64('nan'))", "float64", math.nan),
        ("max(1, 2) - min(1, 2)", "int64", 1),
        ("erf(0.5)", "float64", math.erf(0.5)),
        ("rsqrt(4.0) + sqrt(4.0) + abs(-1.0)", "float32", 3.5),
        ("fma(2.0, 3.0, 4.0) + floor(-0.5) * ceil(1.5)", "float32", 8.0),
        ("fma(complex64(1, 2), complex64(0, 1), complex64(1, 1))", "complex64", -1 + 2j),
        ("log(exp(1.0)) + tanh(0.0)", "float64", 1.0),
        ("sigmoid(-800.0) + sigmoid(800.0) + sigmoid(0.0)", "float64", 1.5),
        ("sigmoid(-100.0)", "float32", np.exp(np.float32(-100))),
        ("log1p(expm1(1e-20)) + sin(0.0) * cos(1.0)", "float64", 1e-20),
        ("sin(0.5)", "float32", np.sin(np.float32(0.5))),
        ("cos(0.5)", "float64", math.cos(0.5)),
        ("isnan(0.0 / 0.0) and not 1 < 0", "bool", True),
        ("isinf(1.0 / 0.0) and not isfinite(1.0 / 0.0)", "bool", True),
        ("isfinite(1.0) and not isinf(0.0 / 0.0) and not isfinite(0.0 / 0.0)", "bool", True),
        ("isinf(complex(0.0, float64('inf'))) and isfinite(complex(0.0, 1.0))", "bool", True),
        ("round(2.5) + trunc(-1.5) + sign(-3.0) * copysign(4.0, -1.0)", "float32", 5.0),
        ("exp2(3.0) + log2(8.0) + log10(100.0) + cbrt(27.0) + fmod(-7.5, 4.0)", "float64", 12.5),
        ("sinh(0.5)", "float32", np.sinh(np.float32(0.5))),
        ("cosh(1.0) + tan(1.0)", "float64", np.cosh(1.0) + np.tan(1.0)),
        ("atan2(1.0, -1.0) + atan(1.0)", "float64", np.arctan2(1.0, -1.0) + np.arctan(1.0)),
        ("asin(0.5) + acos(0.25)", "float64", np.arcsin(0.5) + np.arccos(0.25)),
        ("asinh(0.5) + acosh(2.5)", "float64", np.arcsinh(0.5) + np.arccosh(2.5)),
        ("atanh(0.5) + hypot(3.0, 4.0)", "float64", np.arctanh(0.5) + 5.0),
        ("erfc(2.0)", "float64", math.erfc(2.0)),
        ("erfinv(1.0)", "float64", math.inf),
        ("erfinv(-2.0)", "float64", math.nan),
        ("lgamma(0.0) + lgamma(-3.0) + lgamma(-1.0 / 0.0)", "float64", math.inf),
        ("lgamma(5e37)", "float32", math.inf),
        ("lgamma(0.5)", "float32", np.float32(0.5723649429247001)),
        ("True & False | ~False", "bool", True),
        ("1 if 0 == 0 or 1 // 0 == 0 else 1 // 0", "int64", 1),
        ("complex64(1, 2) * complex64(0, 1)", "complex64", -2 + 1j),
        ("complex64(1, 2) / complex64(0, 2) + complex(1.0, 0.5)", "complex64", 2 + 0j),
        ("real(complex128(1, 2)) * 8.0 + imag(complex128(1, 2))", "float64", 10.0),
        ("abs(conj(complex64(3, -4)))", "float32", np.float32(5)),
        ("complex(float64('inf'), -0.0)", "complex128", complex(math.inf, -0.0)),
        ("isnan(complex(0.0, float64('nan')))", "bool", True),
        ("float32(int64(16777217) + 0)", "float32", 16777216.0),
        ("bool(float64(0.5))", "bool", True),
        (
            "float16(float32(1.0) / float32(3.0))",
            "float16",
            np.float16(np.float32(1) / np.float32(3)),
        ),
    ],
)
def test_arithmetic_is_that_of_the_nodes_type(value: str, dtype: str, result: object) -> None:
    stored = _store(value, dtype)
    assert stored.dtype == dtype  # type: ignore[attr-defined]
    np.testing.assert_array_equal(stored, result)


@pytest.mark.parametrize(("op", "result"), [("+", 301), ("|", 1), ("// 1 +", 301)])
def test_expressions_may_be_deep(op: str, result: int) -> None:
    assert _store("a" + f" {op} 1" * 300, "int64", "a: int64", a=1) == result


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("1 // 0", 0),
        ("1 % 0", 0),
        ("1 << 64", 0),
        ("1 >> -1", 0),
        ("-5 >> 70", -1),
        ("-5 << -1", 0),
    ],
)
def test_what_c_leaves_undefined_is_as_in_numpy(value: str, result: int) -> None:
    assert _store(value, "int64") == result


def test_scalars_have_their_declared_type() -> None:
    assert _store("a + a", declarations="a: float32", a=0.1) == np.float32(0.1) * 2
    assert _store("k + 1", "int8", "k: int8", k=127) == -128


@pytest.mark.parametrize(
    ("combiner", "x", "result"),
    [
        ("sum", [], 0.0),
        ("sum", [1, 2, 4], 7.0),
        ("prod", [], 1.0),
        ("prod", [2, 3], 6.0),
        ("min", [], math.inf),
        ("min", [3, 1, math.nan], math.nan),
        ("max", [], -math.inf),
        ("max", [3, 1], 3.0),
    ],
)
def test_reductions_of_floats(combiner: str, x: list[float], result: float) -> None:
    text = f"""\
def f(n, x: float32[n], y: Out[float32[()]]):
    for y.j in range(n):
        with block("y", j=reduction(y.j), initialises=True):
            y[()] = combine.{combiner}(y[()], x[j])
"""
    y = run(from_text(text), {"x": np.array(x, np.float32)})["y"]
    np.testing.assert_array_equal(y, np.float32(result))


@pytest.mark.parametrize("x", [[], [True, False], [True], [False]])
def test_any_and_all(x: list[bool]) -> None:
    given = np.array(x, bool)
    for combiner, expected in (("any", given.any()), ("all", given.all())):
        text = f"""\
def f(n, x: bool[n], y: Out[bool[()]]):
    for y.j in range(n):
        with block("y", j=reduction(y.j), initialises=True):
            y[()] = combine.{combiner}(y[()], x[j])
"""
        assert run(from_text(text), {"x": given})["y"] == expected


@pytest.mark.parametrize(
    "x", [[3, 1, 2], [2, 5, 5, 1, 1], [1, math.nan, 0, math.nan], [math.inf], [-math.inf, 0]]
)
def test_argmin_and_argmax_break_ties_as_numpy(x: list[float]) -> None:
    """In any order of the iterations: the combination commutes."""
    given = np.array(x, np.float32)
    for combiner, expected in (("argmin", given.argmin()), ("argmax", given.argmax())):
        text = f"""\
def f(n, x: float32[n], y: Out[float32[()]], k: Out[int64[()]]):
    for y.j in vectorized(n):
        with block("y", j=reduction(y.j), initialises=True):
            y[()], k[()] = combine.{combiner}((y[()], k[()]), (x[j], j))
"""
        for seed in (None, 0, 1, 2):
            out = run(from_text(text), {"x": given}, seed=seed)
            assert out["k"] == expected
            np.testing.assert_array_equal(out["y"], given[expected])


def test_a_sequence_runs_in_order_and_a_parallel_loop_does_not() -> None:
    text = """\
def f(n, x: InOut[int64[n]]):
    for x.i in {}(1, n):
        with block("x", i=spatial(x.i)):
            x[i] = x[i] + x[i - 1]
"""
    ones = np.ones(9, np.int64)
    in_order = np.arange(1, 10)
    np.testing.assert_array_equal(
        run(from_text(text.format("range")), {"x": ones}, seed=1)["x"], in_order
    )
    for kind in ("parallel", "vectorized"):
        kernel = from_text(text.format(kind))
        first, again, other = (run(kernel, {"x": ones}, seed=s)["x"] for s in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert list(first) != list(in_order) and list(first) != list(other)
        np.testing.assert_array_equal(run(kernel, {"x": ones})["x"], in_order)


BASE = """\
def f(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i]
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i]
"""
X = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("t[i] = x[i]", "t[i] = x[i + 1]", "block 't' at (i=3): accesses x[4], out of bounds"),
        ("t[i] = x[i]", "t[i] = x[i - 1]", "block 't' at (i=0): accesses x[-1], out of bounds"),
        ("t[i] = x", "t[i + 1] = x", "block 't' at (i=3): accesses t[4], out of bounds: its shape"),
        (
            "t.i in range(n)",
            "t.i in range(1, n)",
            "block 'y' at (i=0): reads t[0], which was",
        ),
        ("y.i in range(n)", "y.i in range(n - 1)", "element [3] of 'y' is never written"),
        ("spatial(y.i)", "spatial(y.i, n - 1)", "block 'y' at (i=3): 'i' is outside its domain"),
        ("spatial(y.i)", "spatial(y.i), where=y.i < 2", "element [2] of 'y' is never written"),
        ("t=float32[n]", "t=float32[n - 5]", "block 't' at (i=0): accesses t[0], out of bounds"),
        ("Out[float32[n]]", "Out[float32[n - 5]]", "the shape of 'y' is (-1,)"),
    ],
)
def test_what_a_correct_kernel_never_does_is_refused(old: str, new: str, message: str) -> None:
    assert old in BASE
    with pytest.raises(InterpError) as refusal:
        run(from_text(BASE.replace(old, new)), {"x": X})
    assert message in refusal.value.message


def test_an_output_without_axes_that_is_never_written_is_refused() -> None:
    text = """\
def f(n, y: Out[float32[()]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i), where=y.i > 0):
            y[()] = 1.0
"""
    with pytest.raises(InterpError, match=r"element \[\] of 'y' is never written"):
        run(from_text(text), {}, dims={"n": 1})


def test_unchecked_runs_show_poison() -> None:
    text = BASE.replace("t.i in range(n)", "t.i in range(1, n)")
    y = run(
        from_text(text.replace("y.i in range(n)", "y.i in range(n - 1)")), {"x": X}, check=False
    )
    np.testing.assert_array_equal(y["y"], [math.nan, 1, 2, math.nan])


def test_a_temporary_of_a_size_below_0_has_no_elements() -> None:
    """Lowering makes it as large as what loops use of it: `n - 2` for `range(1, n - 1)`."""
    text = BASE.replace("float32[n]):\n        for", "float32[n - 2]):\n        for")
    assert "allocate(t=float32[n - 2])" in text
    assert run(from_text(text), {"x": X[:0]})["y"].shape == (0,)


def test_an_allocation_is_new_at_each_entry() -> None:
    text = """\
def f(n, y: Out[float32[n]]):
    for y.i in range(n):
        with allocate(t=float32[()]):
            with block("t", i=spatial(y.i), where=y.i == 0):
                t[()] = 1.0
            with block("y", i=spatial(y.i)):
                y[i] = t[()]
"""
    with pytest.raises(InterpError, match=re.escape("block 'y' at (i=1): reads t[], which was")):
        run(from_text(text), {}, dims={"n": 2})
    assert run(from_text(text), {}, dims={"n": 1})["y"] == 1


def test_parts_of_a_negative_value_are_refused() -> None:
    text = "def f(n):\n    with delinearize(n - 5, n, n) as (a, b):\n        pass\n"
    with pytest.raises(InterpError, match="-1 has no parts a, b"):
        run(from_text(text), {}, dims={"n": 4})


def test_inputs_are_updated_in_place_in_a_copy() -> None:
    text = BASE.replace("y: Out", "y: InOut").replace("y.i in range(n)", "y.i in range(1, n)")
    y = np.full(4, 7, np.float32)
    np.testing.assert_array_equal(run(from_text(text), {"x": X, "y": y})["y"], [7, 1, 2, 3])
    assert (y == 7).all()


ARGUMENTS = """\
def f(m, n, x: float32[m, n + 1], y: float32[n], a: float32):
    assume(n <= 4)
    pass
"""


@pytest.mark.parametrize(
    ("x", "y", "scalars", "message"),
    [
        ((2,), (3,), {"a": 1}, "'x' has 1 axes, expected 2"),
        ((2, 3), (3,), {"a": 1}, "'x' has shape (2, 3), not (2, 4)"),
        ((2, 4), (3,), {}, "scalar 'a' is missing"),
        ((2, 4), (3,), {"a": 1, "b": 1}, "scalar 'b' is not a parameter of the kernel"),
        ((2, 6), (5,), {"a": 1}, "the kernel assumes n <= 4"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    x: tuple[int, ...], y: tuple[int, ...], scalars: dict[str, float], message: str
) -> None:
    kernel = from_text(ARGUMENTS)
    arrays = {"x": np.zeros(x, np.float32), "y": np.zeros(y, np.float32)}
    with pytest.raises(InterpError) as refusal:
        run(kernel, arrays, scalars)
    assert refusal.value.message == message


def test_arrays_of_other_types_or_names_are_refused() -> None:
    kernel = from_text(BASE)
    with pytest.raises(InterpError, match="'x' has type float64, expected float32"):
        run(kernel, {"x": X.astype(np.float64)})
    with pytest.raises(InterpError, match="array 'x' is missing"):
        run(kernel, {}, dims={"n": 4})
    with pytest.raises(InterpError, match="array 'z' is not a parameter of the kernel"):
        run(kernel, {"x": X, "z": X})


def test_dims_are_read_off_the_shapes() -> None:
    kernel = from_text(ARGUMENTS)
    x, y = np.zeros((2, 4)), np.zeros(3)
    assert dims_of(kernel, {"x": x, "y": y}) == {"m": 2, "n": 3}
    assert dims_of(kernel, {"y": y}, {"m": 5}) == {"m": 5, "n": 3}
    with pytest.raises(InterpError, match="no array gives the size of 'm'"):
        dims_of(kernel, {"y": y})
    with pytest.raises(InterpError, match="axis 0 of 'y' is 3, but n is 7"):
        dims_of(kernel, {"y": y}, {"n": 7})


def test_a_tree_that_breaks_the_rules_does_not_run() -> None:
    with pytest.raises(IRError, match="no variable 'k' is bound here"):
        run(from_text(BASE.replace("t[i] = x[i]", "t[i] = x[k]")), {"x": X})


def test_bfloat16_needs_ml_dtypes() -> None:
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        with pytest.raises(InterpError, match="bfloat16 needs the package ml_dtypes"):
            _store("1.0", "bfloat16")
    else:
        assert float(_store("bfloat16(float64(1.0) + float64(0.001))", "bfloat16")) == 1.0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "value"),
    [
        (1 + 2**-40, -5.2497458900760178148e-13),
        (1 - 2**-30, 5.3757397985785731679e-10),
        (2 - 2**-45, -1.2016253523894931002e-14),
        (-1.5, 0.86004701537648101451),
        (1.4, -0.11961291417237129319),
        (1.9, -0.038984275923083361674),
        (3.7, 1.4280723266653881292),
        (30.5, 72.953471184169408324),
        (1e300, 6.8977552789821374147e302),
        (5e-324, 744.44007192138126),
        (1.0, 0.0),
        (2.0, 0.0),
        (-7.0, math.inf),
        (1e306, math.inf),
    ],
)
def test_lgamma_is_right_beside_its_zeros_too(x: float, value: float) -> None:
    assert lgamma(x) == pytest.approx(value, rel=1e-15, abs=0)
