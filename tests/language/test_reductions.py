"""Reductions that a spec defines: read, tried for their laws, proved, interpreted and compiled."""

from typing import Any

import numpy as np
import pytest

from gen.errors import SpecError
from gen.ir.interpret.interp import run
from gen.ir.nodes import Update
from gen.ir.rules.verify import IRError, verify
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.ir.types import DType
from gen.ir.walk import blocks
from gen.language import KernelSpec, build, loads
from gen.pipeline import emit, schedule
from gen.poly.prove import prove
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.target import joined

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)

LOG_SUM = """
  log_sum:
    doc: Exponentials summed in multiples of the largest one.
    parts: {peak: T, total: T}
    identity: {peak: -inf, total: 0}
    combine: |
      peak = max(a.peak, b.peak)
      total = (a.total * (1 if a.peak == peak else exp(a.peak - peak))
          + b.total * (1 if b.peak == peak else exp(b.peak - peak)))
"""
MOMENTS = """
  moments:
    parts: {count: T, mean: T, square: T}
    identity: {count: 0, mean: 0, square: 0}
    combine: |
      count = a.count + b.count
      mean = a.mean + (b.mean - a.mean) * (b.count / max(count, 1))
      square = a.square + b.square + (b.mean - a.mean) ** 2 * (a.count * b.count / max(count, 1))
"""
FIRST_LEAST = """
  first_least:
    parts: {value: T, at: int64}
    identity: {value: inf, at: 2 ** 3 * 0 + 9223372036854775807}
    combine: |
      value = min(a.value, b.value)
      at = (min(a.at, b.at) if a.value == b.value else a.at if a.value < b.value else b.at)
"""
LARGEST = """
  largest:
    parts: {size: T}
    identity: {size: 0}
    combine: |
      size = max(a.size, b.size)
"""
VECTORIZED = """recipes:
  - target: cpu
    variants:
      - steps:
          - vectorize: {{loop: {block}.j, width: $lanes, accumulators: 2}}
          - parallel: {{loop: {block}.i}}
"""
OUTER = """recipes:
  - target: cpu
    variants:
      - steps:
          - split: {{loop: {block}.i, factors: [null, $lanes], as: [{block}.i0, {block}.i1]}}
          - reorder: {{loops: [{block}.i0, {block}.j, {block}.i1]}}
          - decompose_reduction: {{block: {block}, loop: {block}.j}}
          - vectorize: {{loop: {block}.init.i1, width: $lanes}}
          - vectorize: {{loop: {block}.i1, width: $lanes}}
"""


def spec(reduction: str, compute: str, outputs: str, rest: str = "") -> KernelSpec:
    lines = "\n".join("  " + line for line in compute.strip().splitlines())
    shapes = ",".join("()" for _ in outputs.split(";"))
    declared = "".join(f"  {o}, intent: out}}\n" for o in outputs.split(";"))
    return loads(
        f"tilesmith: 1\nkernel: k\ndoc: d\nsignature: (n)->{shapes}\n"
        f"dtypes: {{T: [float32, float64]}}\nreductions:{reduction}"
        f'arguments:\n  x: {{type: "T[m, n]"}}\n{declared}compute: |\n{lines}\n{rest}',
        "k.yaml",
    )


def log_sum(rest: str = "") -> KernelSpec:
    compute = "peak[i], total[i] = log_sum((x[i, j], 1) for j in n)\ny[i] = peak[i] + log(total[i])"
    return spec(LOG_SUM, compute, 'y: {type: "T[m]"', rest)


def moments(rest: str = "") -> KernelSpec:
    compute = """count[i], mean[i], square[i] = moments((1, x[i, j], 0) for j in n)
mu[i] = mean[i]
var[i] = square[i] / n"""
    return spec(MOMENTS, compute, 'mu: {type: "T[m]";var: {type: "T[m]"', rest)


def first_least(rest: str = "") -> KernelSpec:
    compute = "value[i], at[i] = first_least((x[i, j], j) for j in n)"
    return spec(FIRST_LEAST, compute, 'value: {type: "T[m]";at: {type: "int64[m]"', rest)


def largest(rest: str = "") -> KernelSpec:
    compute = "y[i] = largest(abs(x[i, j]) for j in n if x[i, j] < 2) + 1"
    return spec(LARGEST, compute, 'y: {type: "T[m]"', rest)


def expected(x: Array) -> dict[str, dict[str, Array]]:
    x = x.astype(np.float64)
    peak = x.max(axis=1)
    return {
        "log_sum": {"y": peak + np.log(np.exp(x - peak[:, None]).sum(axis=1))},
        "moments": {"mu": x.mean(axis=1), "var": x.var(axis=1)},
        "first_least": {"value": x.min(axis=1), "at": x.argmin(axis=1)},
        "largest": {"y": np.abs(np.where(x < 2, x, 0)).max(axis=1) + 1},
    }


KERNELS = {"log_sum": log_sum, "moments": moments, "first_least": first_least, "largest": largest}
BLOCKS = {"log_sum": "peak", "moments": "count", "first_least": "value", "largest": "y_largest"}


def numbers(m: int, n: int, dtype: DType) -> Array:
    """Rows with ties."""
    x = RNG.normal(size=(m, n)).round(1) + RNG.integers(0, 2, size=(m, n))
    return x.astype(dtype.value)


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64])
@pytest.mark.parametrize("name", KERNELS)
def test_interpreted(name: str, dtype: DType) -> None:
    x = numbers(3, 21, dtype)
    kernel = build(KERNELS[name](), {"T": dtype})
    result = run(kernel, {"x": x}, seed=3)
    for output, value in expected(x)[name].items():
        np.testing.assert_allclose(result[output], value, rtol=1e-4)


@pytest.mark.parametrize("recipe", ["", VECTORIZED, OUTER], ids=["plain", "vectorized", "outer"])
@pytest.mark.parametrize("name", KERNELS)
def test_proved_and_compiled(name: str, recipe: str) -> None:
    kernel = KERNELS[name](recipe.format(block=BLOCKS[name]))
    for dtype, level in ((DType.FLOAT64, Level.V2), (DType.FLOAT32, jit.native_level())):
        variants = schedule(kernel, {"T": dtype}, Cpu(level), prove)
        code = joined(emit(kernel, {dtype.value: variants}, Cpu(level)))
        loaded = jit.load(kernel, {"T": dtype}, code, level)
        for m, n in ((1, 1), (3, 15), (17, 16), (18, 33), (5, 200)):
            x = numbers(m, n, dtype)
            wanted = expected(x)[name]
            given = {o: np.zeros(m, v.dtype if o == "at" else x.dtype) for o, v in wanted.items()}
            loaded.compiled({"x": x, **given}, {}, threads=2)
            for output, value in wanted.items():
                np.testing.assert_allclose(given[output], value, rtol=2e-4, atol=1e-5)


def test_nothing_gives_the_identity() -> None:
    result = run(build(moments(), {"T": DType.FLOAT64}), {"x": np.zeros((2, 0))})
    np.testing.assert_array_equal(result["mu"], [0, 0])


def test_a_script_restores_the_combiner() -> None:
    for make in KERNELS.values():
        kernel = build(make(), {"T": DType.FLOAT32})
        assert from_text(to_text(kernel)) == kernel
    text = to_text(build(log_sum(), {"T": DType.FLOAT32}))
    assert '    @combiner(peak=float32("-inf"), total=float32(0.0))\n' in text
    assert "        c.peak = max(a.peak, b.peak)\n" in text


def test_verify_knows_the_types_of_parts() -> None:
    text = to_text(build(log_sum(), {"T": DType.FLOAT32}))
    wrong = text.replace("total=float32[", "total=float64[").replace(
        "(x[i, j], 1.0)", "(x[i, j], float64(1))"
    )
    with pytest.raises(IRError) as refused:
        verify(from_text(wrong))
    assert refused.value.message == (
        "'total' of 'log_sum' is float32, its target in block 'peak' float64"
    )


def test_updates_of_an_integer_part_wrap() -> None:
    """Integers of a tuple are data, not indices: what overflows is as NumPy has it."""
    kernel = spec(
        """
  totals:
    parts: {s: int64}
    identity: {s: 0}
    combine: |
      s = a.s + b.s
""",
        "s[i] = totals(int64(x[i, j]) * 2 for j in n)",
        's: {type: "int64[m]"',
    )
    (block,) = blocks(build(kernel, {"T": DType.FLOAT64}))
    assert isinstance(block.body, Update)
    level = jit.native_level()
    variants = schedule(kernel, {"T": DType.FLOAT64}, Cpu(level), prove)
    loaded = jit.load(
        kernel, {"T": DType.FLOAT64}, joined(emit(kernel, {"float64": variants}, Cpu(level))), level
    )
    x, s = np.full((1, 5), 2.0**61), np.zeros(1, np.int64)
    loaded.compiled({"x": x, "s": s}, {}, threads=1)
    with np.errstate(over="ignore"):
        assert s[0] == (np.full(5, 2**61) * 2).sum()


# ---------------------------------------------------------------- errors

WRONG = [
    (
        LARGEST.replace("{size: 0}", "{size: 1}"),
        "y[i] = largest(x[i, j] for j in n)",
        "'largest' has no neutral identity: (size=1) and (size=",
        "x[i, j]",
    ),
    (
        LARGEST.replace("max(a.size, b.size)", "a.size - b.size"),
        "y[i] = largest(x[i, j] for j in n)",
        "'largest' has no neutral identity: ",
        "x[i, j]",
    ),
    (
        LARGEST.replace("max(a.size, b.size)", "a.size + 2 * b.size * (a.size != 0)"),
        "y[i] = largest(x[i, j] for j in n)",
        "'largest' ",
        "x[i, j]",
    ),
    (
        LARGEST.replace("max(a.size, b.size)", "abs(a.size - b.size)").replace(
            "abs(a.size - b.size)",
            "(a.size + b.size) / 2 if a.size * b.size != 0 else a.size + b.size",
        ),
        "y[i] = largest(x[i, j] for j in n)",
        "'largest' is not associative: (size=",
        "x[i, j]",
    ),
    (
        LARGEST.replace("b.size", "b.siz"),
        "y[i] = largest(x[i, j] for j in n)",
        "this is not an expression of the language",
        "b.siz",
    ),
    (
        LARGEST.replace("b.size", "w"),
        "y[i] = largest(x[i, j] for j in n)",
        "unknown name 'w'",
        "w",
    ),
    (
        LARGEST.replace("b.size", "x[0, 0]"),
        "y[i] = largest(x[i, j] for j in n)",
        "a combination has no arrays and no reductions",
        "x[0, 0]",
    ),
    (
        LARGEST.replace("size = max", "sise = max"),
        "y[i] = largest(x[i, j] for j in n)",
        "expected 'size = ...'",
        "sise",
    ),
    (
        LARGEST.replace("identity: {size: 0}", "identity: {}"),
        "y[i] = largest(x[i, j] for j in n)",
        "the identity lacks 'size'",
        "{}",
    ),
    (
        LARGEST.replace("identity: {size: 0}", "identity: {sice: 0}"),
        "y[i] = largest(x[i, j] for j in n)",
        "'sice' is not a part",
        "sice",
    ),
    (
        LARGEST.replace("{size: T}", "{size: float31}"),
        "y[i] = largest(x[i, j] for j in n)",
        "'size' must be a type",
        "float31",
    ),
    (
        LARGEST.replace("{size: 0}", "{size: 0.5}").replace("{size: T}", "{size: int32}"),
        "y[i] = T(largest(int32(x[i, j]) for j in n))",
        "the value is float64 but 'size' is int32",
        "0.5",
    ),
    (
        LOG_SUM.replace("      total = (a", "      total = (b"),
        "y[i] = log_sum((x[i, j], 1) for j in n)",
        "there is one target, and this gives 2 values",
        "log_sum((x[i, j], 1) for j in n)",
    ),
    (
        LOG_SUM,
        "p[i], y[i] = log_sum(x[i, j] for j in n)",
        "'log_sum' takes 2 values, not 1",
        "x[i, j]",
    ),
    (
        LOG_SUM,
        "p[i], y[i] = sum(x[i, j] for j in n)",
        "there are 2 targets, and this gives one value",
        "sum(x[i, j] for j in n)",
    ),
    (
        LOG_SUM,
        "y[i], y[i] = log_sum((x[i, j], 1) for j in n)",
        "'y' is a target twice",
        "y[i]",
    ),
    (
        LOG_SUM,
        "p[j], y[i] = log_sum((x[i, j], 1) for j in n)",
        "'y' has other indices than 'p'",
        "y[i]",
    ),
    (
        LOG_SUM,
        "if x[0, 0] > 0:\n    p[i], y[i] = log_sum((x[i, j], 1) for j in n)",
        "a statement with several targets stands under a condition on data",
        "p[i], y[i] = log_sum((x[i, j], 1) for j in n)",
    ),
    (
        LOG_SUM,
        "y[i] = sum(x[i, j] for j in n)",
        "the reduction 'log_sum' is not used",
        "log_sum",
    ),
    (
        LARGEST.replace("largest", "sum"),
        "y[i] = sum(x[i, j] for j in n)",
        "'sum' is a word of the language already",
        "sum",
    ),
]


@pytest.mark.parametrize(("reduction", "compute", "message", "place"), WRONG)
def test_errors(reduction: str, compute: str, message: str, place: str) -> None:
    with pytest.raises(SpecError) as error:
        spec(reduction, compute, 'y: {type: "T[m]"')
    assert error.value.message.startswith(message)
    span = error.value.span
    assert span is not None
    found = span.text[span.column - 1 :][: span.length]
    assert found.startswith(place[: span.length]) or place in span.text
