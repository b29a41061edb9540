"""Bounds, positions and conditions that depend on data: interpreted and compiled, against NumPy."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from gen.ir.interpret.interp import run
from gen.ir.nodes import Intent, Kernel, Var
from gen.ir.text.printer import to_text
from gen.ir.types import DType
from gen.language import KernelSpec, build, loads
from gen.pipeline import emit, schedule
from gen.poly.prove import prove
from gen.poly.witness import Refused
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.target import joined

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]
RNG = np.random.default_rng(5)


PLAIN = "recipes: [{target: cpu, variants: [{steps: []}]}]\n"


def spec(compute: str, signature: str, arguments: str, rest: str = "") -> KernelSpec:
    """Scheduled as it is written, if `rest` has no recipe."""
    rest += "" if "recipes:" in rest else PLAIN
    lines = "\n".join("  " + line for line in compute.strip().splitlines())
    return loads(
        f"tilesmith: 1\nkernel: k\ndoc: d\nsignature: {signature}\ndtypes: {{T: [float64]}}\n"
        f"arguments: {{{arguments}}}\n{rest}compute: |\n{lines}\n",
        "k.yaml",
    )


def source(kernel: KernelSpec, level: Level) -> str:
    dtypes = {"T": DType.FLOAT64}
    variants = schedule(kernel, dtypes, Cpu(level), prove)
    return joined(emit(kernel, {"float64": variants}, Cpu(level)))


def dims(kernel: Kernel, arrays: Arrays) -> dict[str, int]:
    sizes = ((p.buffer.shape, arrays[p.buffer.name].shape) for p in kernel.parameters)
    pairs = ((d, n) for shape, given in sizes for d, n in zip(shape, given, strict=True))
    return {d.name: n for d, n in pairs if isinstance(d, Var)}


def check(
    kernel: KernelSpec, arrays: Arrays, expected: Arrays, scalars: Mapping[str, int] | None = None
) -> None:
    """In the interpreter, and compiled on the lowest level and the best."""
    given_scalars = dict(scalars or {})
    dtypes = {"T": DType.FLOAT64}
    built = build(kernel, dtypes)
    outputs = {p.buffer.name for p in built.parameters if p.intent is Intent.OUT}
    inputs = {n: a for n, a in arrays.items() if n not in outputs}
    result = run(built, inputs, given_scalars, dims=dims(built, arrays))
    for name, value in expected.items():
        np.testing.assert_allclose(result[name], value, rtol=1e-12)
    for level in {Level.V2, jit.native_level()}:
        loaded = jit.load(kernel, dtypes, source(kernel, level), level)
        for threads in (1, 2):
            given = {n: a.copy() for n, a in arrays.items()}
            loaded.compiled(given, given_scalars, threads=threads)
            for name, value in expected.items():
                np.testing.assert_allclose(given[name], value, rtol=1e-12)


# ---------------------------------------------------------------- bounds read from arrays

CSR = """
y[i] = sum(value[e] * x[min(max(column[e], 0), n - 1)] for e in range(start[i], stop[i]))
"""
CSR_ARGUMENTS = (
    'start: {type: "int32[m]"}, stop: {type: "int32[m]"}, column: {type: "int64[k]"},'
    ' value: {type: "T[k]"}, x: {type: "T[n]"}, y: {type: "T[m]", intent: out}'
)
CSR_RECIPE = """recipes:
  - target: cpu
    variants:
      - steps:
"""


def csr(steps: str = "") -> KernelSpec:
    lines = "".join(f"          - {s}\n" for s in steps.splitlines())
    recipe = CSR_RECIPE + lines if steps else ""
    return spec(CSR, "(m),(m),(k),(k),(n)->(m)", CSR_ARGUMENTS, f"constraints: [n >= 1]\n{recipe}")


def csr_case(m: int, n: int, density: float) -> tuple[dict[str, Array], Array]:
    dense = RNG.standard_normal((m, n)) * (RNG.random((m, n)) < density)
    rows, columns = np.nonzero(dense)
    ends = np.searchsorted(rows, np.arange(m + 1)).astype("i4")
    x = RNG.standard_normal(n)
    arrays = {
        "start": ends[:-1].copy(), "stop": ends[1:].copy(), "column": columns.astype("i8"),
        "value": dense[rows, columns], "x": x, "y": np.zeros(m),
    }  # fmt: skip
    return arrays, dense @ x


@pytest.mark.parametrize(
    "steps",
    [
        "",
        "parallel: {loop: y.i}",
        "reorder: {loops: [y.e, y.i]}",
        "split: {loop: y.e, factors: [null, 4], as: [y.e0, y.e1]}",
        "vectorize: {loop: y.e, width: $lanes}",
    ],
)
@pytest.mark.parametrize(("m", "n", "density"), [(0, 1, 0.5), (1, 1, 1.0), (37, 53, 0.1)])
def test_rows_of_a_sparse_matrix(steps: str, m: int, n: int, density: float) -> None:
    arrays, expected = csr_case(m, n, density)
    check(csr(steps), arrays, {"y": expected})


def test_bounds_that_lie() -> None:
    """Rows that overlap, run backwards, or begin or end outside: only what is there counts."""
    arrays, _ = csr_case(9, 11, 0.6)
    k = len(arrays["value"])
    arrays["start"][:] = [0, -5, 3, k, k + 9, 7, -(2**31), 2**31 - 1, 0]
    arrays["stop"][:] = [k, 4, 3, 2, k + 12, 2**31 - 1, 2**31 - 1, 5, -1]
    terms = arrays["value"] * arrays["x"][arrays["column"]]
    pairs = zip(arrays["start"], arrays["stop"], strict=True)
    check(csr(), arrays, {"y": np.array([terms[max(a, 0) : max(b, 0)].sum() for a, b in pairs])})


def test_the_loop_runs_over_the_row_alone() -> None:
    text = source(csr(), Level.V4)
    assert "y_e = ts_max_i64_s(0, (int64_t)start[start_s0 * y_i])" in text
    assert "y_e_end = ts_min_i64_s(k, (int64_t)stop[stop_s0 * y_i])" in text
    assert "<= y_e" not in text and "?" not in text


EMPTY = [  # no iteration reads start where it has no such element
    ("y[i] = u[i] + sum(v[e] for e in n if e >= start[0])", "start[0]", "n"),
    ("y[i] = sum(v[e] for e in range(i + 1, n) if e >= start[i + 1]) + u[i]", "start[", "y_sum_i"),
]


@pytest.mark.parametrize(("compute", "bound", "guard"), EMPTY)
def test_no_bound_is_read_for_a_loop_that_runs_nothing(
    compute: str, bound: str, guard: str
) -> None:
    kernel = spec(
        compute,
        "(n),(n),(n)->(n)",
        'start: {type: "int32[n]"}, v: {type: "T[n]"}, u: {type: "T[n]"},'
        ' y: {type: "T[n]", intent: out}',
    )
    before = source(kernel, Level.V2).split(bound)[0].splitlines()
    guards = [line.strip() for line in before if line.strip().startswith("if (")]
    assert guards and guard in guards[-1] and guards[-1].endswith("< n) {")


@pytest.mark.parametrize("condition", ["e < a[i] - b[i]", "e + b[i] < a[i]"])
def test_large_bounds_are_not_held_one_by_one(condition: str) -> None:
    """2^61 + 3 - 2^61 is 3, whatever each of them is held at."""
    kernel = spec(
        f"y[i] = sum(v[e] for e in n if {condition})",
        "(m),(m),(n)->(m)",
        'a: {type: "int64[m]"}, b: {type: "int64[m]"}, v: {type: "T[n]"},'
        ' y: {type: "T[m]", intent: out}',
    )
    a, b = np.array([2**61 + 3, 2**62 + 5, 4]), np.array([2**61, 2**62, 2])
    arrays = {"a": a, "b": b, "v": np.ones(9), "y": np.zeros(3)}
    check(kernel, arrays, {"y": np.array([3.0, 5.0, 2.0])})


def test_a_loop_around_statements() -> None:
    kernel = spec(
        """
for i in m:
    low[i] = 0
    y[i] = 1
    for e in range(start[i], stop[i]):
        low[i] += value[e]
        y[i] *= value[e]
""",
        "(m),(m),(k)->(m),(m)",
        'start: {type: "int64[m]"}, stop: {type: "int64[m]"}, value: {type: "T[k]"},'
        ' low: {type: "T[m]", intent: out}, y: {type: "T[m]", intent: out}',
    )
    value = RNG.uniform(0.5, 1.5, 20)
    start, stop = np.array([0, 5, 2**63 - 1, -(2**63)]), np.array([5, 9, 2**63 - 1, 3])
    parts = [value[a:b] for a, b in ((0, 5), (5, 9), (0, 0), (0, 3))]
    check(
        kernel,
        {"start": start, "stop": stop, "value": value, "low": np.zeros(4), "y": np.zeros(4)},
        {
            "low": np.array([p.sum() for p in parts]),
            "y": np.array([p.prod() for p in parts]),
        },
    )


# ---------------------------------------------------------------- positions read from arrays


def test_histogram() -> None:
    kernel = spec(
        "count[b] = 0\nfor i in n:\n    count[x[i]] += 1",
        "(n)->(300)",
        'x: {type: "uint8[n]"}, count: {type: "int64[300]", intent: out}',
    )
    for n in (0, 1, 1000):
        x = RNG.integers(0, 256, n).astype("u1")
        expected = np.bincount(x, minlength=300)
        check(kernel, {"x": x, "count": np.zeros(300, "i8")}, {"count": expected})
    text = source(kernel, Level.V4)
    assert text.count("for (") == 3 and "?" not in text


def test_rows_added_where_an_array_says() -> None:
    """The gradient of an embedding; positions outside are left out."""
    kernel = spec(
        "for i in n:\n    for j in d:\n        g[x[i], j] -= dy[i, j]",
        "(n),(n,d),(v,d)->(v,d)",
        'x: {type: "int64[n]"}, dy: {type: "T[n, d]"}, g: {type: "T[v, d]", intent: inout}',
    )
    x = np.array([3, 0, 3, -1, 7, 2**63 - 1, -(2**63), 6])
    dy, g = RNG.standard_normal((8, 5)), RNG.standard_normal((7, 5))
    expected = g.copy()
    inside = (x >= 0) & (x < 7)
    np.subtract.at(expected, x[inside], dy[inside])
    check(kernel, {"x": x, "dy": dy, "g": g}, {"g": expected})


def test_two_positions() -> None:
    kernel = spec(
        "for i in n:\n    c[a[i], b[i] + 1] += w[i]",
        "(n),(n),(n),(p,q)->(p,q)",
        'a: {type: "int32[n]"}, b: {type: "uint16[n]"}, w: {type: "T[n]"},'
        ' c: {type: "T[p, q]", intent: inout}',
    )
    a, b, w = RNG.integers(-1, 5, 40).astype("i4"), RNG.integers(0, 4, 40).astype("u2"), np.ones(40)
    expected = np.zeros((4, 5))
    inside = (a >= 0) & (a < 4)
    np.add.at(expected, (a[inside], b[inside].astype(int) + 1), w[inside])
    check(kernel, {"a": a, "b": b, "w": w, "c": np.zeros((4, 5))}, {"c": expected})


# ---------------------------------------------------------------- conditions on data


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("sum(x[i, j] for j in n if x[i, j] > 0)", lambda x: np.where(x > 0, x, 0).sum(1)),
        ("prod(x[i, j] for j in n if x[i, j] > 1)", lambda x: np.where(x > 1, x, 1).prod(1)),
        ("max(x[i, j] for j in n if x[i, j] < 0)", lambda x: np.where(x < 0, x, -np.inf).max(1)),
        ("min(x[i, j] for j in range(1, n) if 0 <= x[i, j - 1] < 1)",
         lambda x: np.where((x >= 0) & (x < 1), np.roll(x, -1, 1), np.inf)[:, :-1].min(1)),
    ],
)  # fmt: skip
def test_reductions(reduction: str, expected: Callable[[Array], Array]) -> None:
    kernel = spec(
        f"y[i] = {reduction}", "(n)->()",
        'x: {type: "T[m, n]"}, y: {type: "T[m]", intent: out}', "constraints: [n >= 2]\n",
    )  # fmt: skip
    x = RNG.standard_normal((6, 19))
    check(kernel, {"x": x, "y": np.zeros(6)}, {"y": expected(x)})


def test_a_statement_keeps_what_it_does_not_change() -> None:
    kernel = spec(
        "if x[i] > 0: y[i] = x[i]\nif x[i] < 0: y[i] /= 2",
        "(n),(n)->(n)",
        'x: {type: "T[n]"}, y: {type: "T[n]", intent: inout}',
    )
    x, y = RNG.standard_normal(30), RNG.standard_normal(30)
    check(kernel, {"x": x, "y": y}, {"y": np.where(x > 0, x, y / 2)})


def test_an_index_is_compared_as_it_is() -> None:
    """Not in the element type, which has no 256."""
    kernel = spec(
        "y[i] = sum(1.0 for j in n if x[j] == i)",
        "(n),(m)->(m)",
        'x: {type: "uint8[n]"}, y: {type: "T[m]", intent: inout}',
    )
    x = RNG.integers(0, 5, 50).astype("u1")
    check(kernel, {"x": x, "y": np.ones(600)}, {"y": np.bincount(x, minlength=600).astype(float)})


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("p[k] <= k", lambda p, k: p <= k),
        ("2 * k < p[0]", lambda p, k: 2 * k < p[0]),
        ("3 * k >= p[0] and k != p[1]", lambda p, k: (3 * k >= p[0]) & (k != p[1])),
        ("k - 2 > p[0] or k == p[1]", lambda p, k: (k - 2 > p[0]) | (k == p[1])),
        ("p[0] - k >= 2 and -k < -p[1]", lambda p, k: (p[0] - k >= 2) & (-k < -p[1])),
        ("not (k < p[2])", lambda p, k: ~(k < p[2])),
    ],
)
def test_conditions_of_every_form(condition: str, holds: Callable[[Array, Array], Array]) -> None:
    kernel = spec(
        f"y = sum(x[k] for k in n if {condition})", "(n),(n)->()",
        'p: {type: "int64[n]"}, x: {type: "T[n]"}, y: {type: "T[]", intent: out}',
        "constraints: [n >= 3]\n",
    )  # fmt: skip
    x, k = RNG.standard_normal(23), np.arange(23)
    for p in (RNG.integers(-3, 30, 23), RNG.integers(5, 9, 23), np.full(23, 11)):
        expected = np.where(holds(p, k), x, 0).sum()
        check(kernel, {"p": p, "x": x, "y": np.zeros(())}, {"y": expected})


@pytest.mark.parametrize(
    "steps",
    [
        "fuse: {loops: [g.i, g.j], as: g.ij}",
        "reorder: {loops: [g.at, g.i, g.j]}",
        "split: {loop: g.at, factors: [null, 3], as: [g.a0, g.a1]}",
        "vectorize: {loop: g.j, width: $lanes}",
    ],
)
def test_scatters_in_other_orders(steps: str) -> None:
    recipe = f"recipes:\n  - target: cpu\n    variants:\n      - steps:\n          - {steps}\n"
    kernel = spec(
        "for i in n:\n    for j in d:\n        g[x[i], j] += dy[i, j]",
        "(n),(n,d),(v,d)->(v,d)",
        'x: {type: "int32[n]"}, dy: {type: "T[n, d]"}, g: {type: "T[v, d]", intent: inout}',
        recipe,
    )
    x = RNG.integers(-1, 8, 29).astype("i4")
    dy, g = RNG.standard_normal((29, 11)), RNG.standard_normal((7, 11))
    expected, inside = g.copy(), (x >= 0) & (x < 7)
    np.add.at(expected, x[inside], dy[inside])
    check(kernel, {"x": x, "dy": dy, "g": g}, {"g": expected})


# ---------------------------------------------------------------- positions that are read


@pytest.mark.parametrize(
    ("position", "type_", "held"),
    [
        ("x[i]", "uint8", True),
        ("x[i]", "int8", False),
        ("x[i] + 1", "uint8", True),  # wraps
        ("x[i] - 1", "int16", False),
        ("min(x[i], 255)", "uint16", True),
        ("min(x[i], 255)", "uint64", True),
        ("max(x[i], 5)", "uint64", False),
        ("x[i] % 200", "uint64", True),
        ("min(max(x[i], 0), 255)", "int32", True),
        ("min(max(x[i], 0), 255)", "int64", True),
        ("min(x[i], 255)", "int64", False),
        ("max(min(x[i], 255), -1)", "int16", False),
        ("x[i] & 255", "int64", True),
        ("0x7f & x[i]", "int8", True),
        ("x[i] & 256", "uint64", False),
        ("x[i] & -1", "int64", False),
    ],
)
def test_positions_are_held_inside(position: str, type_: str, held: bool) -> None:
    """By clamps, remainders and the element type, or the kernel is refused."""
    kernel = spec(
        f"y[i] = t[{position}]",
        "(n),(256)->(n)",
        f'x: {{type: "{type_}[n]"}}, t: {{type: "T[256]"}}, y: {{type: "T[n]", intent: out}}',
    )
    dtypes = {"T": DType.FLOAT64}
    if held:
        assert schedule(kernel, dtypes, Cpu(Level.V3), prove)
    else:
        with pytest.raises(Refused, match="may read 't', by an index that is not affine, outside"):
            schedule(kernel, dtypes, Cpu(Level.V3), prove)


@pytest.mark.parametrize("type_", ["int8", "uint8", "int32", "uint64"])
def test_positions_around_a_size(type_: str) -> None:
    """A size counts whole, however narrow the data: 300 is more than an int8 holds."""
    kernel = spec(
        "y[i] = t[x[i] % n]\nz[i] = t[min(max(x[i], 0), n - 1)]\nq[i] = int64(x[i] // n)",
        "(k),(n)->(k),(k),(k)",
        f'x: {{type: "{type_}[k]"}}, t: {{type: "T[n]"}}, y: {{type: "T[k]", intent: out}},'
        ' z: {type: "T[k]", intent: out}, q: {type: "int64[k]", intent: out}',
        "constraints: [n >= 1]\n",
    )
    limits = np.iinfo(type_)
    x = np.array([limits.min, limits.min + 1, 0, 1, 77, limits.max - 1, limits.max], type_)
    n, exact = 300, [int(v) for v in x]
    t = RNG.standard_normal(n)
    expected = {
        "y": t[[v % n for v in exact]],
        "z": t[[min(max(v, 0), n - 1) for v in exact]],
        "q": np.array([v // n for v in exact]),
    }
    outputs = {name: np.zeros_like(value) for name, value in expected.items()}
    check(kernel, {"x": x, "t": t, **outputs}, expected)


def test_indices_of_large_numbers_wrap_as_numpys_do() -> None:
    """And are held inside all the same: no signed overflow, which a compiler may rule out."""
    kernel = spec(
        "y[i] = t[min(max(x[i] + 4 - 3 * w[i], 0), 255)]",
        "(n),(n),(256)->(n)",
        'x: {type: "int64[n]"}, w: {type: "int64[n]"}, t: {type: "T[256]"},'
        ' y: {type: "T[n]", intent: out}',
    )
    x = np.array([2**63 - 1, -(2**63), 100, 5, 2**62])
    w = np.array([0, 1, 20, 2**62, -(2**61)])
    t = RNG.standard_normal(256)
    with np.errstate(over="ignore"):
        expected = t[np.clip(x + 4 - 3 * w, 0, 255)]
    check(kernel, {"x": x, "w": w, "t": t, "y": np.zeros(5)}, {"y": expected})
    assert "ts_add_i64_s(" in source(kernel, Level.V2)


# ---------------------------------------------------------------- conditions on scalars of a call

SPREAD = """
y[i] = sum(w[q] * x[min(max((i + pad - q) // stride, 0), n - 1)] for q in k
           if (i + pad - q) % stride == 0 and 0 <= i + pad - q and i + pad - q < n * stride)
"""
SPREAD_REST = """\
scalars: {stride: {type: int64}, pad: {type: int64}}
sizes: {size: (n - 1) * stride - 2 * pad + k}
constraints: [stride >= 1, pad >= 0, n >= 1]
recipes:
  - target: cpu
    variants:
      - when: stride == 2
        steps: [{vectorize: {loop: y.i, width: 4}}]
      - steps: []
"""


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_transposed_convolution_by_a_stride_of_the_call(stride: int) -> None:
    """No domain has a remainder by a scalar; so the condition says which terms count."""
    kernel = spec(
        SPREAD,
        "(n),(k)->(size)",
        'x: {type: "T[n]"}, w: {type: "T[k]"}, y: {type: "T[size]", intent: out}',
        SPREAD_REST,
    )
    x, w, pad = RNG.standard_normal(9), RNG.standard_normal(4), 1
    whole = np.zeros(8 * stride + 4)
    for t, v in enumerate(x):
        whole[t * stride : t * stride + 4] += v * w
    wanted = whole[pad:-pad]
    arrays = {"x": x, "w": w, "y": np.full_like(wanted, np.nan)}
    check(kernel, arrays, {"y": wanted}, {"stride": stride, "pad": pad})


def test_an_update_under_a_product_of_indices_and_scalars() -> None:
    kernel = spec(
        "for i in m:\n    for j in n:\n        if i * s + j < n:\n            y[i] += x[j]",
        "(m),(n)->(m)",
        'y: {type: "T[m]", intent: inout}, x: {type: "T[n]"}',
        "scalars: {s: {type: int64}}\n" + PLAIN,
    )
    x, y = RNG.standard_normal(10), RNG.standard_normal(5)
    wanted = [v + x[: max(10 - 3 * i, 0)].sum() for i, v in enumerate(y)]
    check(kernel, {"x": x, "y": y}, {"y": np.array(wanted)}, {"s": 3})


def test_a_domain_stays_one_where_it_is_affine() -> None:
    """A remainder by a number, or by a dim, is known exactly: no value is computed in vain."""
    kernel = spec(
        "y[i] = sum(x[j] for j in n if (i + j) % 2 == 0 and (i + 1) % n > 0)",
        "(n)->(n)",
        'x: {type: "T[n]"}, y: {type: "T[n]", intent: out}',
        "constraints: [n >= 1]\n",
    )
    text = to_text(build(kernel, {"T": DType.FLOAT64}))
    assert "where=(y.i + y.j) % 2 == 0 and (y.i + 1) % n > 0" in text


def test_a_statement_under_a_remainder_by_a_scalar_is_told_what_to_write() -> None:
    kernel = spec(
        "for i in n:\n    y[i] = 0\n    if i % s == 0:\n        y[i] = x[i]",
        "(n)->(n)",
        'x: {type: "T[n]"}, y: {type: "T[n]", intent: out}',
        "scalars: {s: {type: int64}}\nconstraints: [s >= 1]\n" + PLAIN,
    )
    with pytest.raises(Refused) as raised:
        source(kernel, Level.V2)
    assert str(raised.value) == (
        "k.yaml:14:11: error: block 'y_1' runs where `y.i % s == 0`, which is neither affine nor a"
        " condition on inputs\n              y[i] = x[i]\n              ^^^^^^^^^^^\n"
        "  hint: say it as a value, `y[i] = a if ... else b`, or in the condition of a reduction;"
        " or fix what it divides by with `when`"
    )
