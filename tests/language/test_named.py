"""Named sizes: what calls work out of dims and scalars, interpreted and compiled, against NumPy."""

import itertools
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.signal
from numpy.lib.stride_tricks import sliding_window_view

from gen.binding.entry import manifest_entry
from gen.errors import SpecError
from gen.ir.interpret.evaluate import InterpError
from gen.ir.interpret.interp import run
from gen.ir.interpret.sizes import SizeError, value
from gen.ir.nodes import Intent
from gen.ir.text.parser import from_text
from gen.ir.text.print_expr import expr_to_text
from gen.ir.text.printer import to_text
from gen.language import (
    KernelSpec,
    build,
    choices,
    load,
    loads,
    with_named,
)
from gen.language.formulas import oracle
from gen.lower.variants import suffix
from gen.pipeline import emit, schedule_to_emit
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.values.flow import plain_flow
from gen.poly.witness import Refused
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
SPECS = Path(__file__).parent / "named"
RNG = np.random.default_rng(12)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape)


# ---------------------------------------------------------------- what they should give


def windows(x: Array, size: int, stride: int, padding: int, border: float) -> Array:
    wide = np.pad(x, [(0, 0), *[(padding, padding)] * 2], constant_values=border)
    return sliding_window_view(wide, (size, size), (1, 2))[:, ::stride, ::stride]


def max_pool2d(x: Array, size: int, stride: int, padding: int) -> Array:
    return windows(x, size, stride, padding, -np.inf).max((3, 4))


def average_pool2d(x: Array, size: int, stride: int, padding: int) -> Array:
    return windows(x, size, stride, padding, 0.0).mean((3, 4))


def conv_transpose2d(x: Array, weight: Array, stride: int, padding: int) -> Array:
    n, c, h, w = x.shape
    apart = np.zeros((n, c, (h - 1) * stride + 1, (w - 1) * stride + 1))
    apart[:, :, ::stride, ::stride] = x
    full = [
        [sum(scipy.signal.convolve(apart[b, m], weight[m, k]) for m in range(c))
         for k in range(weight.shape[1])]
        for b in range(n)
    ]  # fmt: skip
    end = -padding or None
    return np.array(full)[:, :, padding:end, padding:end]


def window(x: Array, seconds: float, rate: float, parts: int) -> Array:
    long = int(seconds * rate + 0.5)
    step = max(long // parts, 1)
    if x.shape[1] < long:
        return np.zeros((len(x), 0))
    return sliding_window_view(x, long, 1)[:, ::step].sum(2)


def correlate(x: Array, w: Array) -> Array:
    if len(w) > x.shape[1]:
        return np.zeros((len(x), 0))
    return np.maximum(sliding_window_view(x, len(w), -1) @ w, 0)


def halves(x: Array) -> Array:
    return np.add.reduceat(x, np.arange(0, x.shape[1], 2), 1) if x.size else x


def upsample(x: Array, pad: int) -> Array:
    return np.pad(x, [(0, 0), (pad, pad)], mode="edge").repeat(2, 1)


POOLED = [
    ((normal(2, h, w),), {"size": size, "stride": stride, "padding": padding})
    for h, w in ((3, 4), (7, 37))
    for size, stride, padding in ((1, 1, 0), (2, 2, 1), (3, 2, 1), (3, 1, 0), (2, 3, 0))
]
CASES: list[tuple[str, Callable[..., Array], list[tuple[tuple[Array, ...], dict[str, Any]]]]] = [
    ("max_pool2d", max_pool2d, POOLED),
    ("average_pool2d", average_pool2d, POOLED),
    ("conv_transpose2d", conv_transpose2d,
     [((normal(2, 3, h, w), normal(3, 2, p, q)), {"stride": stride, "padding": padding})
      for h, w, p, q in ((1, 1, 2, 2), (4, 19, 3, 2))
      for stride, padding in ((1, 0), (2, 0), (3, 0), (1, 1), (2, 1)) if h > 1 or not padding]),
    ("window", window,
     [((normal(2, n),), {"seconds": s, "rate": 2.0, "parts": parts})
      for n in (1, 5, 40) for s, parts in ((0.3, 1), (1.5, 2), (2.2, 5))]),
    ("correlate", correlate,
     [((normal(3, h), normal(k)), {})
      for h, k in ((0, 1), (1, 1), (5, 5), (4, 5), (9, 2), (40, 7))]),
    ("first_half_max", lambda x: x[:, : x.shape[1] // 2].max(1),
     [((normal(3, n).astype("f4"),), {}) for n in (2, 3, 17, 40)]),
    ("halves", halves, [((normal(3, n),), {}) for n in (0, 1, 2, 3, 8, 41)]),
    ("upsample", upsample,
     [((normal(3, n).astype("f4"),), {"pad": p}) for n in (1, 2, 9) for p in (0, 1, 5)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected", "given"), CASES, ids=[c[0] for c in CASES])
@pytest.mark.parametrize("scheduled", [False, True], ids=["plain", "scheduled"])
def test_values(
    name: str,
    scheduled: bool,
    expected: Callable[..., Array],
    given: list[tuple[tuple[Array, ...], dict[str, Any]]],
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
            check(spec, loaded, arrays, scalars, expected(*arrays, **scalars))
    arrays, scalars = given[-2]
    interpret(spec, variants[-1].lowered.kernel, arrays, scalars, expected(*arrays, **scalars))
    interpret(spec, build(spec, dtypes), arrays, scalars, expected(*arrays, **scalars))


def named_arrays(
    spec: KernelSpec, arrays: tuple[Array, ...], scalars: Mapping[str, Any]
) -> tuple[dict[str, Array], dict[str, int]]:
    inputs = [a.name for a in spec.arguments if a.intent is not Intent.OUT]
    named = dict(zip(inputs, arrays, strict=True))
    return named, oracle.sizes(spec, named, scalars)


def check(
    spec: KernelSpec,
    loaded: library.Loaded,
    arrays: tuple[Array, ...],
    scalars: Mapping[str, Any],
    result: Array,
) -> None:
    named, sizes = named_arrays(spec, arrays, scalars)
    for threads in (1, 2):
        given = {**named, "y": np.full(result.shape, np.nan, result.dtype)}
        loaded.compiled(given, scalars, dims=sizes, threads=threads)
        np.testing.assert_allclose(given["y"], result, rtol=1e-12, atol=1e-12)


def interpret(
    spec: KernelSpec,
    kernel: Any,
    arrays: tuple[Array, ...],
    scalars: Mapping[str, Any],
    result: Array,
) -> None:
    assert from_text(to_text(kernel)) == kernel
    named, sizes = named_arrays(spec, arrays, scalars)
    got = run(kernel, named, scalars, dims=sizes)["y"]
    assert got.shape == result.shape
    np.testing.assert_allclose(got, result, rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------- what a call may do


def test_a_notebook_works_sizes_out_and_checks_them() -> None:
    pool = notebook.compile(SPECS / "max_pool2d.yaml")
    x = normal(2, 2, 6, 5)
    expected = max_pool2d(x.reshape(4, 6, 5), 3, 2, 1).reshape(2, 2, 3, 3)
    np.testing.assert_array_equal(pool(x, size=3, padding=1), expected)
    with pytest.raises(ValueError, match=r"^max_pool2d: needs stride >= 1, got stride = 0$"):
        pool(x, stride=0)
    message = r"^max_pool2d: the size oh is negative for size = 9, stride = 2, padding = 0, h = 6$"
    with pytest.raises(ValueError, match=message):
        pool(x, size=9)
    spec = window_spec("length >= 1", "n >= 0")
    message = r"^window: step: a divisor is not positive, for parts = 0, length = 3$"
    with pytest.raises(ValueError, match=message):
        notebook.NotebookKernel(spec, Cpu(Level.V2))(normal(2, 9), parts=0)
    message = r"^window: length: inf is not an int64, for seconds = inf, "
    with pytest.raises(ValueError, match=message):
        notebook.NotebookKernel(spec, Cpu(Level.V2))(normal(2, 9), seconds=np.inf)


def window_spec(old: str, new: str) -> KernelSpec:
    text = (SPECS / "window.yaml").read_text()
    assert text.count(old) == 1
    return loads(text.replace(old, new), "window.yaml")


def test_a_max_over_a_named_size_needs_one_that_is_not_0() -> None:
    """The dims over which a max runs are least sizes; what a call works out is a constraint."""
    largest = notebook.compile(SPECS / "first_half_max.yaml")
    np.testing.assert_array_equal(largest(np.arange(10.0, dtype="f4").reshape(2, 5)), [1, 6])
    with pytest.raises(ValueError, match=r"^first_half_max: needs half >= 1, got half = 0$"):
        largest(np.ones((2, 1), "f4"))
    entry = manifest_entry(largest.spec, ["v2"], {})
    assert entry.constraints == ("half >= 1",) and dict(entry.requires) == {}
    drawn = list(edges(largest.spec, 8))
    assert drawn and all(e["n"] >= 2 for e in drawn)


def test_run_draws_sizes_that_are_allowed() -> None:
    spec = load(SPECS / "max_pool2d.yaml")
    drawn = list(edges(spec, 8))
    assert len(drawn) > 20 and all(e["h"] >= 1 for e in drawn)
    window_ = load(SPECS / "window.yaml")
    assert trial.run(window_, choices(window_)[0], Cpu(Level.V2), {"m": 3, "n": 50}).right


def test_what_the_manifest_says() -> None:
    entry = manifest_entry(load(SPECS / "window.yaml"), ["v2"], {})
    assert dict(entry.named) == {
        "length": "int64(seconds * rate + 0.5)",
        "step": "max(length // parts, 1)",
        "count": "max((n - length) // step + 1, 0)",
    }
    assert entry.sizes == ("length", "step", "count") and entry.constraints == ("length >= 1",)


# ---------------------------------------------------------------- what is known of them

DEFINED = """\
tilesmith: 1
kernel: k
doc: d
signature: (n)->(p)
dtypes: {T: [float64]}
arguments:
  x: {type: "T[n]"}
  y: {type: "T[p]", intent: out}
scalars: {s: {type: int64, default: 1}}
sizes: {SIZES}
constraints: [CONSTRAINTS]
compute: |
  y[i] = s
  for i in range(REACH):
      y[i] += x[i]
"""


def defined(sizes: str, constraints: str, reach: str) -> KernelSpec:
    text = DEFINED.replace("SIZES", sizes).replace("CONSTRAINTS", constraints)
    return loads(text.replace("REACH", reach), "k.yaml")


def prove_plain(spec: KernelSpec) -> None:
    kernel = build(spec, choices(spec)[0])
    prove(kernel, Scheduled(kernel, plain_flow(kernel)))


PROVED = [  # sizes, constraints, how many elements of x are added to as many of y
    ("p: n // 2", "", "n // 2"),
    ("p: n // 2", "", "p"),
    ("p: n // 2", "", "(n - 1) // 2"),
    ("p: n - 3", "", "n - 3"),
    ("p: n - 3", "", "min(3, n, p)"),  # a call has p >= 0, and so n >= 3
    ("p: n % 4", "", "p"),
    ("q: n % 4, p: n - q", "", "n // 4 * 4"),
    ('p: "max(min(n, 7) - 2, 0)"', "", "min(n, 7) - 2"),
    ("p: n + 2 * s", "s >= 0", "n"),
    ("p: n + 2 * s", "s >= -3", "n - 6"),
    ("p: s", "s <= n", "p"),
    ("q: n // s, p: 3 * q + 1", "s >= 1, 3 * q < n", "3 * q"),  # q alone is not known
]
REFUSED = [
    ("p: n // 2", "", "n - n // 2", "n=1, p=0, s=0"),
    ("p: n - 3", "", "n - 2", "n=3, p=0, s=0"),
    ("p: n + 2 * s", "", "n", "n=2, p=0, s=-1"),
    ("p: n // s", "s >= 1", "n // 2", "n=2, p=0, s=1"),  # which is not affine
    ("q: n // s, p: q + 1", "s >= 1, q < n", "q + 2", "n=1, q=0, p=1, s=1"),
]


@pytest.mark.parametrize(("sizes", "constraints", "reach"), PROVED)
def test_the_prover_knows_what_an_affine_size_is(sizes: str, constraints: str, reach: str) -> None:
    spec = defined(sizes, constraints, reach)
    prove_plain(spec)
    called = notebook.NotebookKernel(spec, Cpu(Level.V2))
    for n in range(12):
        x = normal(n)
        try:
            known = with_named(spec, {"n": n, "s": 1})
        except SizeError:
            continue
        if known["p"] < 0:
            with pytest.raises(ValueError, match=r"^k: the size p is negative for n = "):
                called(x)
        elif all(value(c, known) for c in spec.constraints):
            added = np.zeros(int(known["p"]))
            count = max(eval(reach, {"min": min}, dict(known)), 0)
            added[:count] = x[:count]
            np.testing.assert_array_equal(called(x), added + 1)


@pytest.mark.parametrize(("sizes", "constraints", "reach", "example"), REFUSED)
def test_the_prover_assumes_no_more(sizes: str, constraints: str, reach: str, example: str) -> None:
    with pytest.raises(Refused) as info:
        prove_plain(defined(sizes, constraints, reach))
    assert f"(for example: {example};" in str(info.value)


def test_the_interpreter_checks_what_a_size_is() -> None:
    spec = defined("p: n // 2", "", "p")
    kernel = build(spec, choices(spec)[0])
    assert [expr_to_text(a) for a in kernel.assumptions] == ["p == n // 2"]
    with pytest.raises(InterpError, match="the kernel assumes p == n // 2"):
        run(kernel, {"x": normal(6)}, {"s": 1}, dims={"p": 4})
    assert len(run(kernel, {"x": normal(6)}, {"s": 1}, dims={"p": 3})["y"]) == 3


def test_a_size_that_leaves_64_bits_is_an_error() -> None:
    """Of an int64 that wraps it would not be true that p >= n, which is proved here."""
    called = notebook.NotebookKernel(defined("p: n + 2 * s", "s >= 0", "n"), Cpu(Level.V2))
    for s in (2**62, 2**63 - 1):
        with pytest.raises(
            ValueError, match=rf"^k: p: {2 * s} is not an int64, for s = {s}, n = 3$"
        ):
            called(normal(3), s=s)


def test_a_named_size_is_not_the_loop_dim() -> None:
    """A call may run the loop dim in parts, and has any number of leading axes."""
    text = DEFINED.replace("SIZES", "r: n + 1, p: n").replace("CONSTRAINTS", "")
    text = text.replace('"T[p]", intent', '"T[r, p]", intent').replace("y[i]", "y[b, i]")
    text = text.replace("range(REACH):\n", "range(n):\n      for b in r:\n  ")
    with pytest.raises(SpecError) as info:
        loads(text, "k.yaml")
    assert info.value.message == "the leading axes must be one dim of its own, not the size 'r'"
    assert info.value.span is not None and info.value.span.line == 4


def test_the_name_and_what_it_is_are_one_size() -> None:
    """So loops over both have one bound, and any step may put them together."""
    spec = load(SPECS / "correlate.yaml")
    (t,) = spec.program.temporaries
    assert [expr_to_text(e) for e in t.shape] == ["m", "oh"]
    lowered = schedule_to_emit(spec, choices(spec)[0], Cpu(Level.V2), prove)[-1].lowered.kernel
    assert "min(" not in to_text(lowered)
    wrong = (SPECS / "correlate.yaml").read_text().replace("h - k + 1]", "h - k + 2]")
    with pytest.raises(SpecError) as info:
        loads(wrong, "correlate.yaml")
    assert info.value.message == "index 'i' runs over oh but axis 1 of 't' has size h - k + 2"


def test_named_sizes_that_hold_each_other_many_times_take_no_time() -> None:
    names = [f"p{k}" for k in range(12)] + ["p"]
    sizes = ["p0: n % 3"] + [
        f"{new}: {' + '.join(f'max({old} % {k}, {k})' for k in range(2, 10))}"
        for old, new in itertools.pairwise(names)
    ]
    start = time.process_time()
    spec = defined(
        ", ".join(f'{s.partition(":")[0]}: "{s.partition(":")[2]}"' for s in sizes), "", "0"
    )
    assert time.process_time() - start < 5 and len(spec.sizes) == 13


# ---------------------------------------------------------------- scalars that a variant fixes


def test_a_variant_takes_scalars_for_the_numbers_that_they_are() -> None:
    spec = load(SPECS / "conv_transpose2d.yaml")
    fixed, general = schedule_to_emit(spec, choices(spec)[0], Cpu(Level.V2), prove)
    assert "stride" not in to_text(fixed.start.kernel).partition("with")[2]
    assert "// stride" in to_text(general.start.kernel)
    assumed = [expr_to_text(a) for a in fixed.start.kernel.assumptions]
    assert "oh == h + kh - padding * 2 - 1" in assumed
    assert "oh" not in "".join(expr_to_text(a) for a in general.start.kernel.assumptions)


def test_clamps_that_a_fixed_scalar_makes_superfluous_are_gone() -> None:
    spec = load(SPECS.parents[2] / "kernels_spec" / "depthwise_conv2d.yaml")
    dtypes = choices(spec)[0]
    when = spec.recipes[0].variants[1].when
    assert when is not None and expr_to_text(when) == "stride == 1 and dilation == 1"
    plain = to_text(build(spec, dtypes))
    fixed = to_text(schedule_to_emit(spec, dtypes, Cpu(Level.V2), lambda *_: None)[1].start.kernel)
    assert "wide[b, m, min(max(i * stride + p * dilation, 0), h + 2 * padding - 1)" in plain
    assert "wide[b, m, i + p, j + q]" in fixed


# ---------------------------------------------------------------- what the reader says

PLAIN = """\
tilesmith: 1
kernel: k
doc: d
signature: (n)->(m)
dtypes: {T: [float64]}
arguments:
  x: {type: "T[r, n]"}
  y: {type: "T[r, m]", intent: out}
scalars: {s: {type: int64}, f: {type: float64, default: 1.5}}
sizes:
  m: (n - 1) // s + int64(2 * f)
constraints: [n >= 1]
compute: |
  y[i, j] = x[i, min(max(j * s, 0), n - 1)]
"""

SIZE = "  m: (n - 1) // s + int64(2 * f)\n"
ERRORS = [
    (SIZE, "  m: (q - 1) // s\n", "'q' is not a dim, an index or an integer parameter here", 11, 7),
    (SIZE, "  m: n // 0\n", "sizes are divided by positive numbers alone", 11, 11),
    (SIZE, "  m: n * f\n", "the scalar 'f' is float64: sizes are of int64", 11, 10),
    (SIZE, "  m: int64(n * f)\n",
     "int64 is of a sum or product of float64 scalars and numbers here", 11, 12),
    (SIZE, "  m: [n]\n", "the size 'm' must be an expression", 11, 6),
    (SIZE, "  m: r // s\n", "the size 'm' is of the loop dim 'r'", 11, 3),
    (SIZE, "  m: m // s\n", "'m' is not a dim, an index or an integer parameter here", 11, 6),
    (SIZE, SIZE + "  p: n // s\n", "the size 'p' is not used", 12, 3),
    (SIZE, SIZE + "  s: n // 2\n", "'s' is a size already", 9, 11),
    (SIZE, SIZE + "  n: 3\n", "'n' is not a dim, an index or an integer parameter here", 11, 7),
    (SIZE, SIZE + "  a__b: n // s\n", "'a__b' is not a name", 12, 3),
    ("[n >= 1]", "[n // -2 >= 1]", "sizes are divided by positive numbers alone", 12, 15),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message", "line", "column"), ERRORS)
def test_errors(old: str, new: str, message: str, line: int, column: int) -> None:
    assert PLAIN.count(old) == 1
    with pytest.raises(SpecError) as info:
        loads(PLAIN.replace(old, new), "k.yaml")
    assert info.value.message == message
    assert info.value.span is not None
    assert (info.value.span.line, info.value.span.column) == (line, column)


def test_the_prover_is_told_what_is_affine() -> None:
    spec = loads(PLAIN.replace("[n >= 1]", "[n >= 1, n * s >= 3, m >= 1]"), "k.yaml")
    kernel = build(spec, choices(spec)[0])
    assert [expr_to_text(a) for a in kernel.assumptions] == ["n >= 1", "m >= 1"]
    assert kernel.dims == ("r", "n", "m")
