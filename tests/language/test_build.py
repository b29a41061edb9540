"""Plain schedules: their structure, and what they compute, against NumPy."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

from gen.ir.interpret.interp import run
from gen.ir.nodes import (
    Binary,
    BinaryOp,
    Block,
    Cast,
    Combiner,
    Const,
    Intent,
    IterKind,
    Kernel,
    Loop,
    Update,
    Var,
)
from gen.ir.rules.verify import verify
from gen.ir.text.printer import to_text
from gen.ir.types import DType
from gen.ir.walk import blocks, loops, walk
from gen.language import KernelSpec, build, choices, load, loads
from gen.poly.values.flow import plain_flow
from gen.poly.witness import Refused

SPECS = Path(__file__).parent / "specs"
Array = np.ndarray[Any, Any]


def kernel(name: str, dtype: DType = DType.FLOAT64) -> Kernel:
    return build(load(SPECS / f"{name}.yaml"), {"T": dtype})


def body(compute: str, arguments: str, signature: str, extra: str = "") -> KernelSpec:
    lines = "\n".join("  " + line for line in compute.splitlines())
    return loads(
        f"tilesmith: 1\nkernel: k\ndoc: d\nsignature: {signature}\ndtypes: {{T: [float32]}}\n"
        f"arguments: {{{arguments}}}\n{extra}compute: |\n{lines}\n",
        "k.yaml",
    )


def plain(compute: str, arguments: str, signature: str, extra: str = "") -> Kernel:
    built = build(body(compute, arguments, signature, extra), {"T": DType.FLOAT32})
    verify(built)
    return built


COPY = 'x: {type: "T[n]"}, y: {type: "T[n]", intent: out}'


def value(expression: str) -> str:
    """The text of the right side of `y[i] = expression`."""
    text = to_text(plain(f"y[i] = {expression}", COPY, "(n)->(n)"))
    return text.splitlines()[-1].strip().removeprefix("y[i] = ")


# ---------------------------------------------------------------- structure


@pytest.mark.parametrize("path", sorted(SPECS.glob("*.yaml")), ids=lambda p: p.stem)
def test_every_plain_schedule_verifies(path: Path) -> None:
    spec = load(path)
    for dtypes in choices(spec):
        verify(build(spec, dtypes))


def test_softmax_has_one_block_a_statement() -> None:
    assert (
        to_text(kernel("softmax", DType.FLOAT32))
        == """\
def softmax(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    with allocate(peak=float32[m], e=float32[m, n], total=float32[m]):
        for peak.i in range(m):
            for peak.j in range(n):
                with block("peak", i=spatial(peak.i), j=reduction(peak.j), initialises=True):
                    peak[i] = combine.max(peak[i], x[i, j])
        for e.i in range(m):
            for e.j in range(n):
                with block("e", i=spatial(e.i), j=spatial(e.j)):
                    e[i, j] = exp(x[i, j] - peak[i])
        for total.i in range(m):
            for total.j in range(n):
                with block("total", i=spatial(total.i), j=reduction(total.j), initialises=True):
                    total[i] = combine.sum(total[i], e[i, j])
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = e[i, j] / total[i]
"""
    )


def test_explicit_loops_are_shared_and_named_after_their_first_block() -> None:
    built = kernel("cholesky")
    assert [loop.var for loop in loops(built)] == ["a.i", "a.j", "a.k", "a_2.k"]
    assert [block.name for block in blocks(built)] == ["a", "a_1", "a_2", "a_3"]
    update = blocks(built)[0]
    assert isinstance(update.body, Update) and not update.initialises
    assert [i.kind for i in update.iters] == [IterKind.SPATIAL] * 2 + [IterKind.REDUCTION]
    assert update.iters[2].upper == Var("j")
    inner = loops(built)[2]
    assert inner.upper == Var("a.j")


def test_blocks_name_their_own_instances_and_places() -> None:
    for name in ("softmax", "cholesky", "argmax"):
        for block in blocks(kernel(name)):
            assert block.origin is not None and block.origin.block == block.name
            assert block.origin.at == tuple(Var(i.name) for i in block.iters)
            assert block.span is not None and block.span.path.endswith(f"{name}.yaml")


def test_reductions_inside_an_expression_become_blocks() -> None:
    built = kernel("layer_norm")
    assert [b.name for b in blocks(built)] == ["mean_sum", "mean", "variance_sum", "variance", "y"]


def test_nested_reductions_keep_the_indices_that_they_use() -> None:
    built = plain(
        "y[i] = sum(max(x[k] * x[j] for k in range(j + 1)) for j in n) + x[i]", COPY, "(n)->(n)"
    )
    inner, outer, last = blocks(built)
    assert (inner.name, outer.name, last.name) == ("y_max", "y_sum", "y")
    assert [i.name for i in inner.iters] == ["j", "k"]
    assert [i.name for i in outer.iters] == ["j"]


def test_a_reduction_depends_on_the_indices_of_its_bounds_too() -> None:
    built = plain("y[i] = x[i] * sum(T(1) for j in range(i + 1))", COPY, "(n)->(n)")
    assert [i.name for i in blocks(built)[0].iters] == ["i", "j"]


def test_a_loop_downwards_runs_upwards_and_binds_its_index() -> None:
    built = plain(
        "for i in reversed(range(1, n)):\n    for j in range(i, n):\n        y[i, j] = x[i, j]",
        'x: {type: "T[n, n]"}, y: {type: "T[n, n]", intent: inout}',
        "(n,n),(n,n)->(n,n)",
    )
    assert """
    for y.i in range(1, n):
        for y.j in range(n - y.i, n):
            with block("y", i=spatial(n - y.i, 1, n), j=spatial(y.j, i, n)):
""" in to_text(built)


UPDATES = """
for k in range(n):
    z[i] -= x[k]
    for i in range(n):
        y[i] += z[i] * x[k]
    for l in range(n):
        y[k] *= x[l]
"""


def test_an_update_keeps_the_order_of_a_for_that_uses_its_array_elsewhere() -> None:
    """So do z, which y reads, and y, which is updated twice, over k; over l nothing tells."""
    arguments = (
        'x: {type: "T[n]"}, y: {type: "T[n]", intent: inout}, z: {type: "T[n]", intent: inout}'
    )
    built = plain(UPDATES, arguments, "(n),(n),(n)->(n),(n)")
    kinds = {b.name: {i.name: i.kind for i in b.iters} for b in blocks(built)}
    spatial, reduction = IterKind.SPATIAL, IterKind.REDUCTION
    assert kinds == {
        "z": {"k": spatial, "i": spatial},
        "y": {"k": spatial, "i": spatial},
        "y_1": {"k": spatial, "l": reduction},
    }


def test_a_recurrence_needs_no_first_statement() -> None:
    """What it reads is what it defined before; the prover sees to it that it did."""
    built = plain(
        "for i in range(n):\n    y[i] = x[i] + (y[i - 1] if i > 0 else 0)", COPY, "(n)->(n)"
    )
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(run(built, {"x": x})["y"], np.cumsum(x))
    later = "for i in range(n):\n    y[i] = x[i] + (y[i + 1] if i < n - 1 else 0)"
    with pytest.raises(Refused, match=r"y\[i=0\] reads 'y' before it is written"):
        plain_flow(plain(later, COPY, "(n)->(n)"))


def test_argmax_updates_a_value_and_an_index() -> None:
    block = blocks(kernel("argmax", DType.FLOAT32))[0]
    assert isinstance(block.body, Update) and block.body.combiner is Combiner.ARGMAX
    assert [t.buffer for t in block.body.targets] == ["y_value", "y"]


def test_names_are_unique() -> None:
    built = plain(
        "y_sum[i] = x[i]\ny_1[i] = x[i]\ny[i] = sum(x[j] for j in n) + y_sum[i] + y_1[i]\n"
        "y[i] = y[i] * sum(x[j] for j in n)",
        COPY,
        "(n)->(n)",
    )
    assert [b.name for b in blocks(built)] == ["y_sum", "y_1", "y_sum_1", "y", "y_sum_2", "y_2"]


@pytest.mark.parametrize(
    ("compute", "shape"),
    [
        ("for i in range(1, n - 1):\n    e[i] = x[i]", "max(n - 1, 0)"),
        ("for i in range(n):\n    e[i + 2] = x[i]", "n + 2"),
        ("for i in range(n):\n    e[n - 1 - i] = x[i]", "n"),
        ("for i in range(n):\n    e[2 * i] = x[i]", "max(2 * n - 1, 0)"),
        ("for i in range(n):\n    for j in range(i + 1):\n        e[j] = x[i]", "n"),
        ("e[0] = x[0]\nfor i in range(1, n + 1):\n    e[i] = x[i - 1]", "n + 1"),
        ("for i in range(min(n, 8)):\n    e[i] = x[i]", "min(n, 8)"),
        (
            "for i in range(n):\n    e[i + 1] = x[i]\nfor i in range(min(n, 1)):\n"
            "    e[i] = x[i]\n    e[n + 1 + i] = x[i]",
            "n + min(n, 1) + 1",
        ),
        (
            "for i in range(n - 2):\n    e[i] = x[i]\nfor i in range(n - 1):\n    e[i] = x[i]",
            "max(n - 1, 0)",
        ),
        (
            "for i in range(n - 2):\n    e[i] = x[i]\nfor i in range(3):\n    e[i] = x[i]",
            "max(n - 2, 3)",
        ),
        ("for i in range(max(n, 3) - min(n, 2)):\n    e[i] = x[i]", "max(n, 3) - min(n, 2)"),
        ("for i in range(min(n, 3) - 1):\n    e[i] = x[i]", "max(min(n, 3) - 1, 0)"),
        ("for i in range(n):\n    e[i % 3 + 1] = x[i]", "4"),
        ("for i in range(n * n // 2):\n    e[i] = x[0]", "n * n // 2"),
    ],
)
def test_the_shapes_of_temporaries(compute: str, shape: str) -> None:
    built = plain(f"{compute}\ny[i] = e[0] + x[i]", COPY, "(n)->(n)")
    text = to_text(built)
    assert f"allocate(e=float32[{shape}])" in text


@pytest.mark.parametrize(
    ("declared", "shape"),
    [
        ("T[n + 2]", "float32[n + 2]"),
        ("float64[max(n, 4)]", "float64[max(n, 4)]"),
        ("T[n - 1]", "float32[max(n - 1, 0)]"),
        ("T[3 + 2*n]", "float32[2 * n + 3]"),
    ],
)
def test_the_declared_shape_of_a_temporary_is_taken(declared: str, shape: str) -> None:
    built = plain(
        "for i in range(n):\n    e[i] = x[i]\ny[i] = T(e[0]) + x[i]",
        COPY,
        "(n)->(n)",
        f'temporaries: {{e: "{declared}"}}\n',
    )
    assert f"allocate(e={shape})" in to_text(built)


def test_a_declared_shape_may_hold_what_cannot_be_told() -> None:
    built = plain(
        "for i in range(n):\n    e[i % 2] = x[i]\n    y[i] = e[i % 2]",
        COPY,
        "(n)->(n)",
        'temporaries: {e: "T[2]"}\n',
    )
    assert "allocate(e=float32[2])" in to_text(built)


def test_a_temporary_without_axes_may_be_declared() -> None:
    built = plain(
        "e = sum(x[j] for j in n)\ny[i] = e + x[i]", COPY, "(n)->(n)", 'temporaries: {e: "T[]"}\n'
    )
    assert "allocate(e=float32[()])" in to_text(built)


def test_implicit_indices_run_over_a_declared_shape() -> None:
    built = plain(
        "e[i] = 2 * x[0]\nfor i in range(n):\n    y[i] = e[i + 1]",
        COPY,
        "(n)->(n)",
        'temporaries: {e: "T[n + 2]"}\n',
    )
    assert loops(built)[0].upper == Binary(BinaryOp.ADD, Var("n"), Const(2, DType.INT64))


def test_conditions_are_predicates() -> None:
    built = plain(
        "for i in range(n):\n    if i != 2 and i < n - 1:\n        y[i] = x[i]", COPY, "(n)->(n)"
    )
    assert "where=y.i != 2 and y.i < n - 1" in to_text(built)
    built = plain("y[i] = sum(x[j] for j in n if j != 0)", 'x: {type: "T[n]"}, y: {type: "T[n]", '
                  "intent: out}", "(n)->(n)")  # fmt: skip
    assert "where=y.j != 0" in to_text(built)


# ---------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x[i] * 2", "x[i] * 2.0"),
        ("x[i] ** 3", "x[i] * x[i] * x[i]"),
        ("-x[i]", "-x[i]"),
        ("x[i] * (n - i)", "x[i] * float32(n - i)"),
        ("x[i] + 1 / n", "x[i] + float32(1.0 / float64(n))"),
        ("x[i] * sqrt(4 / 1)", "x[i] * 2.0"),
        ("max(x[i], 0, -1)", "max(max(x[i], 0.0), -1.0)"),
        ("x[i] if 0 <= i < 3 else -inf", 'x[i] if 0 <= i and i < 3 else float32("-inf")'),
        ("x[i] + min(1, nan)", 'x[i] + float32("nan")'),
        ("x[i] + max(2, inf, nan)", 'x[i] + float32("nan")'),
        ("x[i] + max(nan, inf)", 'x[i] + float32("nan")'),
        ("x[i] + min(0.0, -0.0)", "x[i] + -0.0"),
        ("x[i] + max(-0.0, 0.0)", "x[i] + 0.0"),
        ("x[i] + min(0.5, 2)", "x[i] + 0.5"),
        ("select(i < 3, x[i], nan)", 'x[i] if i < 3 else float32("nan")'),
        ("float32(int32(x[i]) // 2)", "float32(int32(x[i]) // 2)"),
        ("x[i] + T(i % 2)", "x[i] + float32(i % 2)"),
        ("T(abs(int32(x[i])))", "float32(max(int32(x[i]), -int32(x[i])))"),
        ("x[max(i - 1, 0)]", "x[max(i - 1, 0)]"),
        ("x[int32(x[i])]", "x[int64(int32(x[i]))]"),
        ("T(float64(x[i]) + x[i])", "float32(float64(x[i]) + float64(x[i]))"),
        ("fma(x[i], 2, x[i])", "fma(x[i], 2.0, x[i])"),
        ("x[i] * pi", "x[i] * 3.141592653589793"),
        ("x[i] * sigmoid(-800)", "x[i] * 0.0"),
        ("x[i] * (sigmoid(0) + log1p(0) + expm1(0) + sin(0) + cos(0))", "x[i] * 1.5"),
        ("sin(x[i]) + sigmoid(log1p(x[i]))", "sin(x[i]) + sigmoid(log1p(x[i]))"),
        ("x[i] + (round(2.5) + trunc(-1.5) + sign(-3.5) + copysign(4, -1.0))", "x[i] + -4.0"),
        ("x[i] + (exp2(3) + log2(8) + log10(100) + cbrt(27.0) + fmod(-7.5, 4))", "x[i] + 12.5"),
        ("x[i] + (sinh(0) + cosh(0) + tan(0) + atan(0) + asin(0) + acos(1))", "x[i] + 1.0"),
        ("x[i] + (asinh(0) + acosh(1) + atanh(0) + hypot(3, 4) + erfc(0))", "x[i] + 6.0"),
        ("x[i] * atan2(0.0, 1)", "x[i] * 0.0"),
        ("x[i] + lgamma(1) + lgamma(0.5)", "x[i] + 0.0 + 0.5723649429247001"),
        ("x[i] + erfinv(0) + erfinv(-0.5)", "x[i] + 0.0 + -0.4769362762044698"),
        ("x[i] * acosh(0.5)", "x[i] * float32(acosh(0.5))"),
        ("x[i] * round(i) * trunc(n)", "x[i] * float32(i) * float32(n)"),
        ("T(sign(int32(x[i])))", "float32(max(min(int32(x[i]), 1), -1))"),
        ("T(sign(uint8(x[i])))", "float32(min(uint8(x[i]), 1))"),
        ("x[max(sign(i - 1), 0)]", "x[max(max(min(i - 1, 1), -1), 0)]"),
        ("hypot(x[i], 2) + atan2(i, x[i])", "hypot(x[i], 2.0) + atan2(float32(i), x[i])"),
        ("T(hypot(int32(x[i]), 1))", "float32(hypot(float64(int32(x[i])), 1.0))"),
        (
            "x[i] if isfinite(x[i]) and not isinf(x[i]) else 0",
            "x[i] if isfinite(x[i]) and not isinf(x[i]) else 0.0",
        ),
    ],
)
def test_types_and_casts(expression: str, expected: str) -> None:
    assert value(expression) == expected


def test_numbers_are_constants_of_the_other_operands_type() -> None:
    built = plain("y[i] = x[i] * 3", COPY, "(n)->(n)")
    (number,) = (c for c in walk(built) if isinstance(c, Const) and c.dtype is DType.FLOAT32)
    assert number.value == 3.0 and isinstance(number.value, float)


def test_a_stated_type_of_a_temporary_is_its_accumulators() -> None:
    args = 'x: {type: "T[n]"}, y: {type: "T[]", intent: out}'
    extra = "temporaries: {s: float64}\n"
    built = plain("s = sum(x[j] for j in n)\ny = T(s)", args, "(n)->()", extra)
    update = blocks(built)[0].body
    assert isinstance(update, Update)
    assert isinstance(update.values[0], Cast) and update.values[0].dtype is DType.FLOAT64


def test_promotion_of_arrays_is_numpys() -> None:
    args = ('a: {type: "int32[n]"}, x: {type: "T[n]"}, '
            'y: {type: "float64[n]", intent: out}')  # fmt: skip
    compute = "t[i] = a[i] * x[i]\ny[i] = t[i] + a[i] / 2 + a[i] * 0.5 + a[i] * 3"
    built = plain(compute, args, "(n),(n)->(n)")
    text = to_text(built)
    assert "allocate(t=float64[n])" in text
    assert "y[i] = t[i] + float64(a[i]) / 2.0 + float64(a[i]) * 0.5 + float64(a[i] * 3)" in text


def test_requires_names_the_dims_that_a_maximum_runs_over() -> None:
    assert load(SPECS / "softmax.yaml").requires == ("n",)
    assert load(SPECS / "sum.yaml").requires == ()


def test_a_power_that_explodes_is_refused() -> None:
    with pytest.raises(Exception, match="the power expands to too large a product"):
        value("(((x[i] ** 16) ** 16) ** 16) ** 16")


# ---------------------------------------------------------------- values


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def border(x: Array) -> Array:
    return np.pad(np.diff(x, 2, axis=-1), [(0, 0), (1, 1)])


def layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias


def blur(x: Array) -> Array:
    p = np.pad(x, 1, mode="edge")
    rows = 0.25 * p[:-2] + 0.5 * p[1:-1] + 0.25 * p[2:]
    return 0.25 * rows[:, :-2] + 0.5 * rows[:, 1:-1] + 0.25 * rows[:, 2:]


CASES: list[tuple[str, Callable[..., Array], list[tuple[int, ...]]]] = [
    ("softmax", lambda x: scipy.special.softmax(x, axis=-1), [(3, 5)]),
    ("matmul", np.matmul, [(3, 4), (4, 5)]),
    ("sum", lambda x: np.sum(x, axis=-1), [(3, 0)]),
    ("sum", lambda x: np.sum(x, axis=-1), [(3, 7)]),
    ("cumsum", lambda x: np.cumsum(x, axis=-1), [(3, 6)]),
    ("cumsum", lambda x: np.cumsum(x, axis=-1), [(3, 0)]),
    ("trmm", lambda a, b: np.tril(a) @ b, [(4, 4), (4, 3)]),
    ("border", border, [(2, 6)]),
    ("border", border, [(2, 2)]),
    ("layer_norm", layer_norm, [(3, 6), (6,), (6,)]),
    ("blur", blur, [(4, 5)]),
    ("blur", blur, [(1, 1)]),
]


@pytest.mark.parametrize(("name", "reference", "shapes"), CASES, ids=lambda v: str(v)[:20])
def test_values(name: str, reference: Callable[..., Array], shapes: list[tuple[int, ...]]) -> None:
    built = kernel(name)
    inputs = [p.buffer.name for p in built.parameters if p.intent is Intent.IN]
    arrays = [random(*shape, seed=k) for k, shape in enumerate(shapes)]
    scalars = {"epsilon": 1e-5} if name == "layer_norm" else {}
    (result,) = run(built, dict(zip(inputs, arrays, strict=True)), scalars).values()
    np.testing.assert_allclose(result, reference(*arrays), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "row", [[1, 3, 3, 2], [2, np.nan, 9, np.nan], [-np.inf, -np.inf], [5], [0.0, -0.0]]
)
def test_argmax_takes_the_first_of_equals_and_a_nan(row: list[float]) -> None:
    x = np.array([row], np.float64)
    assert run(kernel("argmax"), {"x": x})["y"] == np.argmax(x, axis=-1)


def test_cholesky_in_place() -> None:
    g = random(5, 5)
    a = g @ g.T + np.eye(5)
    result = run(kernel("cholesky"), {"a": a})["a"]
    np.testing.assert_allclose(np.tril(result), np.linalg.cholesky(a), rtol=1e-12)
    np.testing.assert_array_equal(np.triu(result, 1), np.triu(a, 1))


def test_seidel_uses_what_the_sweep_already_wrote() -> None:
    a = random(6, 6)
    expected = a.copy()
    for _ in range(3):
        for i in range(1, 5):
            for j in range(1, 5):
                expected[i, j] = expected[i - 1 : i + 2, j - 1 : j + 2].sum() / 9
    np.testing.assert_allclose(run(kernel("seidel_2d"), {"a": a}, {"steps": 3})["a"], expected)


def test_jacobi_goes_there_and_back() -> None:
    a, b = random(6, 6), random(6, 6, seed=1)
    expected = [a.copy(), b.copy()]
    for k in range(6):
        old, new = expected[k % 2], expected[1 - k % 2]
        new[1:-1, 1:-1] = (
            old[1:-1, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:] + old[2:, 1:-1] + old[:-2, 1:-1]
        ) / 5
    result = run(kernel("jacobi_2d"), {"a": a, "b": b}, {"steps": 3})
    np.testing.assert_allclose(result["a"], expected[0])
    np.testing.assert_allclose(result["b"], expected[1])


def test_update_in_place_adds_a_whole_sum() -> None:
    built = plain(
        "y[i] += sum(x[j] for j in n)\ny[i] *= 2\ny[i] /= 4",
        'x: {type: "T[n]"}, y: {type: "T[n]", intent: inout}',
        "(n),(n)->(n)",
    )
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    np.testing.assert_array_equal(run(built, {"x": x, "y": y})["y"], np.full(4, 3.5, np.float32))


def test_a_reduction_of_the_array_that_it_defines_reads_the_old_values() -> None:
    built = plain(
        "for i in n:\n    y[i] = sum(y[j] for j in n)",
        'x: {type: "T[n]"}, y: {type: "T[n]", intent: inout}'.replace('x: {type: "T[n]"}, ', ""),
        "(n)->(n)",
    )
    y = np.array([1, 2, 4], np.float32)
    np.testing.assert_array_equal(run(built, {"y": y})["y"], np.array([7, 13, 24], np.float32))


def test_an_implicit_index_may_read_another_explicit_part() -> None:
    built = plain(
        "u[0, i] = x[i]\nfor t in range(1, 4):\n    u[t, i] = u[t - 1, n - 1 - i] + x[i]\n"
        "y[i] = u[3, i]",
        COPY,
        "(n)->(n)",
    )
    x = np.array([1, 2, 4], np.float32)
    u = x
    for _ in range(3):
        u = u[::-1] + x
    np.testing.assert_array_equal(run(built, {"x": x})["y"], u)


def test_loops_hold_blocks_in_the_specs_order() -> None:
    built = kernel("jacobi_2d")
    assert isinstance(built.body, Loop) and built.body.var == "b.t"
    assert [b.name for b in walk(built.body) if isinstance(b, Block)] == ["b", "a"]
