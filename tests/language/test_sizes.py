"""Sizes that follow from others: interpreted and compiled, plain and scheduled, against NumPy."""

import itertools
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from gen.binding.entry import manifest_entry
from gen.errors import SpecError, TilesmithError
from gen.ir.interpret.evaluate import InterpError
from gen.ir.interpret.interp import run
from gen.ir.nodes import Intent
from gen.ir.text.parser import from_text
from gen.ir.text.print_expr import expr_to_text
from gen.ir.text.printer import to_text
from gen.language import KernelSpec, build, choices, least_sizes, load, loads, relations
from gen.lower.variants import suffix
from gen.pipeline import emit, schedule_to_emit
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.values.flow import plain_flow
from gen.targets.c import library
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.target import joined
from gen.trial import notebook
from gen.trial import run as trial
from gen.trial.sizes import edges
from tests.plain import without_steps

Array = np.ndarray[Any, Any]
SPECS = Path(__file__).parent / "sizes"
RNG = np.random.default_rng(11)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape)


# ---------------------------------------------------------------- what they should give


def valid(x: Array, w: Array) -> Array:
    return sliding_window_view(x, len(w), -1) @ w


def valid_2d(x: Array, f: Array) -> Array:
    return np.einsum("bhwpq,pq->bhw", sliding_window_view(x, f.shape, (1, 2)), f)


def max_pool(x: Array) -> Array:
    return sliding_window_view(x, (3, 3), (1, 2))[:, ::2, ::2].max((3, 4))


def padded(x: Array, pad: int) -> Array:
    return np.pad(x, [(0, 0), (pad, pad)])


def nearest(x: Array, size: int) -> Array:
    return x[:, np.arange(size) * x.shape[1] // size]


def rectified(x: Array, w: Array) -> Array:
    if len(w) > x.shape[1]:
        return np.zeros((len(x), 0))
    return np.maximum(valid(x, w), 0)


def padded_windows(x: Array, w: Array, pad: int) -> Array:
    return valid(padded(x, pad), w)


def lagged(x: Array, lag: int) -> Array:
    n = x.shape[1]
    later = np.zeros_like(x)
    for j in range(n):
        later[:, j] = x[:, j + lag] if 0 <= j + lag < n else 0
    return x - later


def sparse(start: Array, column: Array, value: Array, x: Array) -> Array:
    rows = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return np.bincount(rows, value * x[column], len(start) - 1).astype(float)


def rows(m: int, n: int) -> tuple[Array, ...]:
    kept = RNG.random((m, n)) < 0.3
    start = np.concatenate([[0], np.cumsum(kept.sum(1))]).astype("i4")
    return start, np.nonzero(kept)[1].astype("i4"), normal(int(kept.sum())), normal(n)


def tridiagonal(e: Array, d: Array, x: Array) -> Array:
    return x @ (np.diag(d) + np.diag(e, 1) + np.diag(e, -1))


Case = tuple[str, Callable[..., Array], list[tuple[tuple[Array, ...], dict[str, int]]]]
CASES: list[Case] = [
    ("valid", valid, [((normal(3, n), normal(k)), {})
                      for n, k in [(5, 5), (5, 1), (8, 1), (9, 2), (40, 7), (1, 1)]]),
    ("valid_2d", valid_2d, [((normal(2, h, w), normal(p, q)), {})
                            for h, w, p, q in [(3, 3, 3, 3), (6, 20, 2, 3), (4, 9, 1, 2)]]),
    ("max_pool", max_pool, [((normal(2, h, w).astype("f4"),), {})
                            for h, w in [(3, 3), (4, 4), (5, 19), (9, 40)]]),
    ("sparse", sparse, [(rows(m, n), {}) for m, n in [(0, 1), (1, 5), (7, 9), (33, 20)]]),
    ("tridiagonal", tridiagonal, [((normal(n - 1), normal(n), normal(3, n)), {})
                                  for n in (1, 2, 9, 30)]),
    ("differences", lambda x: np.diff(x), [((normal(3, n),), {}) for n in (1, 2, 9, 30)]),
    ("padded", padded, [((normal(3, n),), {"pad": p}) for n in (0, 1, 17) for p in (0, 1, 3)]),
    ("nearest", nearest, [((normal(3, n),), {"size": s}) for n in (1, 7) for s in (0, 1, 7, 19)]),
    ("rectified", rectified, [((normal(3, n), normal(k)), {})
                              for n, k in [(0, 1), (1, 1), (5, 5), (9, 2), (40, 7)]]),
    ("padded_windows", padded_windows, [((normal(3, n), normal(k)), {"pad": p})
                                        for n, k, p in [(0, 1, 1), (1, 3, 1), (2, 2, 0), (0, 2, 1),
                                                        (9, 4, 3), (40, 7, 2)]]),
    ("lagged", lagged, [((normal(3, n),), {"lag": s})
                        for n in (0, 1, 9, 30) for s in (0, 1, -1, 8, -8, 31, -40)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected", "given"), CASES, ids=[c[0] for c in CASES])
@pytest.mark.parametrize("scheduled", [False, True], ids=["plain", "scheduled"])
def test_values(
    name: str,
    scheduled: bool,
    expected: Callable[..., Array],
    given: list[tuple[tuple[Array, ...], dict[str, int]]],
) -> None:
    written = load(SPECS / f"{name}.yaml")
    spec = written if scheduled else without_steps(written)
    dtypes = choices(spec)[-1]
    for level in {Level.V2, jit.native_level()}:
        variants = schedule_to_emit(spec, dtypes, Cpu(level), prove)
        loaded = jit.load(
            spec, dtypes, joined(emit(spec, {suffix(dtypes): variants}, Cpu(level))), level
        )
        for arrays, scalars in given:
            check(spec, loaded, [v.lowered.kernel for v in variants], arrays, scalars, expected)


def check(
    spec: KernelSpec,
    loaded: library.Loaded,
    lowered: list[Any],
    arrays: tuple[Array, ...],
    scalars: Mapping[str, int],
    expected: Callable[..., Array],
) -> None:
    inputs = [a.name for a in spec.arguments if a.intent is not Intent.OUT]
    (output,) = [a.name for a in spec.arguments if a.intent is Intent.OUT]
    named = dict(zip(inputs, arrays, strict=True))
    result = expected(*arrays, **scalars)
    tolerance = 1e-5 if result.dtype == np.float32 else 1e-12
    for kernel in (build(spec, choices(spec)[-1]), *lowered):
        assert from_text(to_text(kernel)) == kernel
        got = run(kernel, named, scalars)[output]
        assert got.shape == result.shape
        np.testing.assert_allclose(got, result, rtol=tolerance, atol=tolerance)
    for threads in (1, 2):
        given = {**named, output: np.full(result.shape, np.nan, result.dtype)}
        loaded.compiled(given, scalars, threads=threads)
        np.testing.assert_allclose(given[output], result, rtol=tolerance, atol=tolerance)


# ---------------------------------------------------------------- calls of a notebook, `run`


def test_a_notebook_finds_and_checks_sizes() -> None:
    compiled = notebook.compile(SPECS / "valid.yaml")
    x, w = normal(2, 3, 9), normal(4)
    np.testing.assert_allclose(compiled(x, w), valid(x, w), rtol=1e-12)
    with pytest.raises(ValueError, match=r"^valid: needs k <= n, got n = 9, k = 10$"):
        compiled(x, normal(10))
    with pytest.raises(ValueError, match=r"^valid: dim k is 0, it must be at least 1$"):
        compiled(x, normal(0))
    padded_ = notebook.compile(SPECS / "padded.yaml")
    np.testing.assert_array_equal(padded_(normal(2, 3) * 0, pad=2), np.zeros((2, 7)))
    with pytest.raises(ValueError, match=r"^padded: needs pad >= 0, got pad = -1$"):
        padded_(x, pad=-1)
    sparse_ = notebook.compile(SPECS / "sparse.yaml")
    start, *others = rows(4, 3)
    np.testing.assert_allclose(sparse_(start, *others), sparse(start, *others), rtol=1e-12)
    message = r"^sparse: core axis 0 of start \(m \+ 1\) has size 0, expected at least 1$"
    with pytest.raises(ValueError, match=message):
        sparse_(start[:0], *others)
    message = r"^tridiagonal: core axis 0 of e \(n - 1\) has size 5, expected 4$"
    with pytest.raises(ValueError, match=message):
        notebook.compile(SPECS / "tridiagonal.yaml")(normal(5), normal(5), normal(5))
    with pytest.raises(ValueError, match=r"^differences: the size n - 1 is negative for n = 0$"):
        notebook.compile(SPECS / "differences.yaml")(normal(2, 0))


def test_run_draws_sizes_that_are_allowed() -> None:
    spec = load(SPECS / "valid_2d.yaml")
    drawn = list(edges(spec, 8))
    assert len(drawn) > 40
    assert all(e["p"] <= e["h"] and e["q"] <= e["w"] for e in drawn)
    assert any(e["p"] < e["h"] and e["q"] == e["w"] for e in drawn)
    for name in ("differences", "padded"):
        spec = load(SPECS / f"{name}.yaml")
        report = trial.run(spec, choices(spec)[0], Cpu(jit.native_level()), {})
        assert report.right and len(report.edges) > 5
    spec = loads(PLAIN + "constraints: [n > k, k > 0]\n", "k.yaml")
    report = trial.run(spec, choices(spec)[0], Cpu(Level.V2), {})
    assert dict(report.case.sizes) == {"n": 64, "k": 32}
    spec = loads(PLAIN + "constraints: [k < n, k > 0]\n", "k.yaml")
    with pytest.raises(TilesmithError, match="k: give sizes for which k >= 1 and k < n and n - k"):
        trial.run(spec, choices(spec)[0], Cpu(Level.V2), {"n": 1, "k": 1})


def test_run_needs_defaults() -> None:
    spec = load(SPECS / "nearest.yaml")
    with pytest.raises(TilesmithError, match="nearest: the scalar 'size' has no default to run"):
        trial.run(spec, choices(spec)[0], Cpu(Level.V2), {})


def test_the_interpreter_checks_what_is_assumed() -> None:
    spec = load(SPECS / "differences.yaml")
    kernel = build(spec, choices(spec)[0])
    with pytest.raises(InterpError, match=r"the kernel assumes n - 1 >= 0"):
        run(kernel, {"x": normal(2, 0)})


# ---------------------------------------------------------------- what the reader says

PLAIN = """\
tilesmith: 1
kernel: k
doc: d
signature: (n),(k)->(n - k + 1)
dtypes: {T: [float64]}
arguments:
  x: {type: "T[n]"}
  w: {type: "T[k]"}
  y: {type: "T[n - k + 1]", intent: out}
compute: |
  y[i] = sum(x[i + l] * w[l] for l in k)
oracle: np.correlate(x, w, mode='valid')
"""


def edited(old: str, new: str) -> str:
    assert PLAIN.count(old) == 1, old
    return PLAIN.replace(old, new)


SCALED = edited("compute:", "scalars: {s: {type: int64}, f: {type: float64}}\ncompute:")
ERRORS = [
    (edited('"T[n - k + 1]"', '"T[n - q + 1]"'), "no input tells the size 'q'", 9, 16),
    (edited('"T[n]"', '"T[n // 2]"'), "no input tells the size 'n'", 7, 16),
    (edited('"T[n - k + 1]"', '"T[n * k]"'), "a product of sizes needs a number", 9, 16),
    (edited('"T[n - k + 1]"', '"T[n // k]"'), "sizes are divided by positive numbers alone", 9, 16),
    (edited('"T[n - k + 1]"', '"T[n % 0]"'), "sizes are divided by positive numbers alone", 9, 16),
    (edited('"T[n - k + 1]"', '"T[-1]"'), "'-1' is not a dim or a size", 9, 16),
    (edited('"T[n - k + 1]"', '"T[k - k - 1]"'), "'-1' is not a dim or a size", 9, 16),
    (edited('"T[n - k + 1]"', '"T[n / 2]"'),
     "this is not an integer expression over dims and indices", 9, 16),
    (edited('"T[n - k + 1]"', '"T[x[0]]"'), "an array cannot be read here", 9, 16),
    (edited('"T[n - k + 1]"', '"T[n -]"'), "not an expression or statement: invalid syntax", 9, 19),
    (edited('"T[n - k + 1]"', '"T[n][k]"'), "this is not an expression of the language", 9, 14),
    (edited('"T[n - k + 1]"', '"T[n__k]"'), "'n__k' is not a dim or a size", 9, 16),
    (SCALED.replace('"T[n - k + 1]"', '"T[n * s]"'), "a product of sizes needs a number", 9, 16),
    (SCALED.replace('"T[n - k + 1]"', '"T[n + f]"'),
     "the scalar 'f' is float64: sizes are of int64", 9, 20),
    (edited("->(n - k + 1)", "->(n - k)"),
     "the signature gives 'y' the core axes (n - k), its shape is (n - k + 1)", 9, 3),
    (edited("->(n - k + 1)", "->((n - k + 1)"),
     "'(n),(k)->((n - k + 1)' is not a signature", 4, 12),
    (edited("->(n - k + 1)", "->(n - k + 1"), "'(n),(k)->(n - k + 1' is not a signature", 4, 12),
    (edited("(n),(k)->", "(n)(k)->"), "'(n)(k)->(n - k + 1)' is not a signature", 4, 12),
    (edited("(n),(k)->", "(),(k)->"), "the leading axes must be one dim of its own, not n", 4, 12),
    (edited("->(n - k + 1)", "->()"),
     "the leading axes must be one dim of its own, not n - k + 1", 4, 12),
    (PLAIN + "constraints: [k + n]\n", "this is not a condition over dims and indices", 13, 15),
    (PLAIN + "constraints: [k < n or n > 3]\n",
     "a constraint must be a comparison of sizes", 13, 15),
    (PLAIN + "constraints: [1 < 2]\n", "a constraint must be a comparison of sizes", 13, 15),
    (PLAIN + "constraints: [q < n]\n",
     "'q' is not a dim, an index or an integer parameter here", 13, 15),
    (SCALED + "constraints: [f > 0]\n", "the scalar 'f' is float64: sizes are of int64", 14, 15),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "line", "column"), ERRORS)
def test_errors(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(SpecError) as info:
        loads(text, "k.yaml")
    assert info.value.message == message
    assert info.value.span is not None
    assert (info.value.span.line, info.value.span.column) == (line, column)


# ---------------------------------------------------------------- shapes that are one


def shapes(spec: KernelSpec) -> dict[str, tuple[str, ...]]:
    return {t.name: tuple(map(expr_to_text, t.shape)) for t in spec.program.temporaries}


FILTERED = """\
tilesmith: 1
kernel: k
doc: d
signature: (n),(k)->(n - k + 1)
dtypes: {T: [float64]}
arguments:
  x: {type: "T[n]"}
  w: {type: "T[k]"}
  y: {type: "T[n - k + 1]", intent: out}
scalars: {s: {type: int64, default: 1}}
temporaries: {t: "T[n - k + 1]"}
compute: |
  t[i] = sum(x[i + l] * w[l] for l in k)
  y[i] = t[i] + s
"""


def filtered(shape: str, *constraints: str) -> KernelSpec:
    text = FILTERED.replace('{t: "T[n - k + 1]"}', f'{{t: "T[{shape}]"}}')
    return loads(f"{text}constraints: [{', '.join(constraints)}]\n", "k.yaml")


@pytest.mark.parametrize(
    ("shape", "constraints"),
    [
        ("n - k + 1", ()),  # an argument has it, so that a call raises where it is negative
        ("1 + n - k", ("1 <= k <= n",)),
        ("max(n - k, -1) + 1", ("k <= n",)),
        ("max(n - k + 1, 0)", ()),
        ("min(n, n - k + 1)", ("k >= 1",)),
        ("s - k + 1", ("s == n",)),
    ],
)
def test_a_shape_that_calls_make_that_of_an_argument_is_that(
    shape: str, constraints: tuple[str, ...]
) -> None:
    spec = filtered(shape, *constraints)
    kernel = build(spec, choices(spec)[0])
    prove(kernel, Scheduled(kernel, plain_flow(kernel)))
    x, w = normal(9), normal(4)
    got = run(kernel, {"x": x, "w": w}, {"s": 9})["y"]
    np.testing.assert_allclose(got, valid(x, w) + 9, rtol=1e-12)


@pytest.mark.parametrize(
    ("shape", "constraints", "has"),
    [
        ("n - k", (), "max(n - k, 0)"),
        ("n + s - k + 1", ("s >= 0",), "n + s - k + 1"),
        ("n + s - k + 1", (), "max(n + s - k + 1, 0)"),
        ("min(n, n - k + 1)", (), "min(n, n - k + 1)"),
        ("n - k + 1 + s % 2", (), "n + s % 2 - k + 1"),
        ("s - k + 1", ("s * 1 // n == n",), "max(s - k + 1, 0)"),  # which calls alone check
    ],
)
def test_a_shape_that_may_be_another_is_not(
    shape: str, constraints: tuple[str, ...], has: str
) -> None:
    message = f"index 'i' runs over n - k + 1 but axis 0 of 't' has size {has}"
    with pytest.raises(SpecError) as info:
        filtered(shape, *constraints)
    assert info.value.message == message


def test_only_what_a_call_checks_makes_a_shape_plain() -> None:
    """A temporary's own shape says nothing: one below 0 counts as 0."""
    text = FILTERED.replace('"T[n - k + 1]", intent', '"T[max(n - k + 1, 0)]", intent')
    text = text.replace("->(n - k + 1)", "->(max(n - k + 1, 0))")
    assert shapes(loads(text, "k.yaml")) == {"t": ("max(n - k + 1, 0)",)}


def test_a_temporary_has_the_axis_as_the_argument_has_it() -> None:
    spec = load(SPECS / "rectified.yaml")
    assert shapes(spec) == {"t": ("m", "n - k + 1")}
    spec = load(SPECS / "padded_windows.yaml")
    assert shapes(spec) == {"wide": ("m", "n + 2 * pad")}
    assert shapes(load(SPECS / "lagged.yaml")) == {"later": ("m", "max(n - lag, 0)")}


def test_a_scalar_that_only_a_temporary_has_is_used() -> None:
    text = FILTERED.replace('"T[n - k + 1]"}', '"T[n + max(s, 1)]"}').replace("+ s\n", "\n")
    text = text.replace("  t[i] =", "  for i in range(n - k + 1):\n      t[i] =")
    text = text.replace("  y[i] =", "  for i in range(n - k + 1):\n      y[i] =")
    assert shapes(loads(text, "k.yaml")) == {"t": ("n + max(s, 1)",)}


def test_a_negative_size_is_still_an_error() -> None:
    rectified_ = notebook.compile(SPECS / "rectified.yaml")
    message = r"^rectified: the size n - k \+ 1 is negative for n = 2, k = 5$"
    with pytest.raises(ValueError, match=message):
        rectified_(normal(2, 2), normal(5))
    assert rectified_(normal(2, 4), normal(5)).shape == (2, 0)


def test_a_size_that_leaves_64_bits_is_an_error() -> None:
    windows = notebook.compile(SPECS / "padded_windows.yaml")
    for pad in (2**62, 2**63 - 1):
        message = rf"n \+ 2 \* pad - k \+ 1: {2 * pad} is not an int64"
        with pytest.raises(ValueError, match=message):
            windows(normal(2, 3), normal(2), pad=pad)
    with pytest.raises(ValueError, match=r"scalar lag must be at least -\d+, or indices would"):
        notebook.compile(SPECS / "lagged.yaml")(normal(2, 3), lag=-(2**63))


def test_many_constraints_take_no_time_to_read() -> None:
    """What follows from hundreds is the prover's to find, whose time is limited."""
    dims = [f"d{k}" for k in range(10)]
    arguments = "".join(f'  a{k}: {{type: "T[{d}]"}}\n' for k, d in enumerate(dims))
    related = "".join(
        f"  - {k} * {a} <= {k + 1} * {b} + {k}\n"
        for a, b in itertools.permutations(dims, 2)
        for k in range(1, 5)
    )
    text = FILTERED.partition("signature")[0] + (
        f"signature: {','.join(f'({d})' for d in dims)}->(d0)\ndtypes: {{T: [float64]}}\n"
        f'arguments:\n{arguments}  y: {{type: "T[d0]", intent: out}}\n'
        'temporaries: {t: "T[d1 - d2 + d3 - 7 * d4 - d9]"}\n'
        f"constraints:\n{related}compute: |\n  t[i] = 1\n  y[i] = "
        + " + ".join(f"a{k}[0]" for k in range(10))
        + " + t[0]\n"
    )
    start = time.process_time()
    assert shapes(loads(text, "k.yaml")) == {"t": ("max(d1 + d3 - d2 - 7 * d4 - d9, 0)",)}
    assert time.process_time() - start < 5


def test_a_constraint_is_not_on_the_loop_dim() -> None:
    text = (SPECS / "differences.yaml").read_text() + "constraints: [m >= 2]\n"
    with pytest.raises(SpecError, match="no constraint can be on the loop dim 'm'"):
        loads(text, "differences.yaml")


def test_constraints_are_least_sizes_and_relations() -> None:
    spec = loads(PLAIN + "constraints: [2 <= k <= n, n > 4, n % 4 == 0]\n", "k.yaml")
    assert least_sizes(spec) == {"k": 2, "n": 5}
    entry = manifest_entry(spec, ["v2"], {})
    assert len(relations(spec)) == 2 and entry.constraints == ("k <= n", "n % 4 == 0")
    assert [a.core for a in entry.arguments] == [("n",), ("k",), ("n - k + 1",)]


def test_terms_are_gathered() -> None:
    spec = loads(edited('"T[n - k + 1]"', '"T[1 - k + n]"'), "k.yaml")
    assert str(spec.signature) == "(n),(k)->(n - k + 1)"
    spec = loads(edited('x: {type: "T[n]"}', 'x: {type: "T[2 + n - 2]"}'), "k.yaml")
    assert spec.arguments[0].shape == ("n",)
