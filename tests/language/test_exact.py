"""uint64 data where it meets indices, sizes and signed data: at the ends of its range and of
theirs, against Python's integers, in the interpreter, the evaluator, and compiled on every level.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from build_tools import evaluator
from gen.errors import SpecError
from gen.ir.interpret.interp import run
from gen.ir.types import DType
from gen.language import build, loads
from gen.pipeline import emit, schedule
from gen.poly.prove import prove
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.target import joined

Array = np.ndarray[Any, Any]

A = (0, 1, 3, 2**63 - 1, 2**63, 2**64 - 1)
B = (-(2**63), -1, 0, 2, 3, 2**63 - 1)
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
DTYPES = {"T": DType.INT32}


def bits(lhs: str, rhs: str) -> str:
    """Which comparisons hold, as a number."""
    tests = enumerate(OPERATORS)
    return " + ".join(f"({1 << k} if {lhs} {op} {rhs} else 0)" for k, op in tests)


COMPARED = f"""
tilesmith: 1
kernel: compared
doc: Integers of different types, compared.
signature: (n),(n),(n)->(n),(n),(n),(n),(n),(n)
dtypes: {{T: [int32]}}
arguments:
  a: {{type: "uint64[n]"}}
  b: {{type: "int64[n]"}}
  c: {{type: "int8[n]"}}
  wide: {{type: "T[n]", intent: out}}
  slim: {{type: "T[n]", intent: out}}
  turned: {{type: "T[n]", intent: out}}
  index: {{type: "T[n]", intent: out}}
  least: {{type: "int64[n]", intent: out}}
  most: {{type: "uint64[n]", intent: out}}
compute: |
  wide[i] = {bits("a[i]", "b[i]")}
  slim[i] = {bits("a[i]", "c[i]")}
  turned[i] = {bits("b[i]", "a[i]")}
  index[i] = {bits("a[i]", "i - 3")}
  least[i] = min(a[i], i - 3)
  most[i] = max(i - 3, a[i])
"""

POSITIONS = """
tilesmith: 1
kernel: positions
doc: Positions, bounds and conditions from uint64 data.
signature: (n),(m)->(n),(n),(n),(n),(n),(n),(m)
dtypes: {T: [int32]}
arguments:
  a: {type: "uint64[n]"}
  x: {type: "T[m]"}
  below: {type: "T[n]", intent: out}
  both: {type: "T[n]", intent: out}
  ring: {type: "T[n]", intent: out}
  moved: {type: "T[n]", intent: out}
  before: {type: "T[n]", intent: out}
  after: {type: "T[n]", intent: out}
  hits: {type: "T[m]", intent: out}
constraints: [m >= 1]
compute: |
  below[i] = x[min(a[i], m - 1)]
  both[i] = x[min(max(a[i], 2), m - 1)]
  ring[i] = x[a[i] % m]
  moved[i] = x[max(min(a[i], i - 3, m - 1), 0)]
  for i in n:
      before[i] = sum(x[k] for k in range(a[i]))
      after[i] = sum(x[k] for k in range(a[i], m))
  for j in m:
      hits[j] = 0
  for i in n:
      hits[a[i]] += 1
"""
VECTORIZED = "recipes: [{target: cpu, variants: [{steps: [%s]}]}]\n"


def inputs() -> dict[str, Array]:
    pairs = [(a, b) for a in A for b in B]
    return {
        "a": np.array([a for a, _ in pairs], np.uint64),
        "b": np.array([b for _, b in pairs], np.int64),
        "c": np.array([max(-128, min(b, 127)) for _, b in pairs], np.int8),
        "x": np.array([2, 3, 5, 7, 11], np.int32),
    }


def wanted() -> dict[str, Array]:
    """In Python's integers."""
    given = {name: [int(v) for v in values] for name, values in inputs().items()}
    a, b, c, x = (given[name] for name in "abcx")
    i, last = range(len(a)), len(x) - 1

    def held(pairs: Any) -> list[int]:
        return [sum(f(p, q) << k for k, f in enumerate(OPERATORS.values())) for p, q in pairs]

    return {
        "wide": np.array(held(zip(a, b, strict=True))),
        "slim": np.array(held(zip(a, c, strict=True))),
        "turned": np.array(held(zip(b, a, strict=True))),
        "index": np.array(held((p, k - 3) for p, k in zip(a, i, strict=True))),
        "least": np.array([min(p, k - 3) for p, k in zip(a, i, strict=True)]),
        "most": np.array([max(p, k - 3) for p, k in zip(a, i, strict=True)], np.uint64),
        "below": np.array([x[min(p, last)] for p in a]),
        "both": np.array([x[min(max(p, 2), last)] for p in a]),
        "ring": np.array([x[p % len(x)] for p in a]),
        "moved": np.array([x[max(min(p, k - 3, last), 0)] for p, k in zip(a, i, strict=True)]),
        "before": np.array([sum(x[: min(p, len(x))]) for p in a]),
        "after": np.array([sum(x[min(p, len(x)) :]) for p in a]),
        "hits": np.array([a.count(k) for k in range(len(x))]),
    }


def check(found: Mapping[str, Array], outputs: list[str]) -> None:
    expected = wanted()
    for name in outputs:
        np.testing.assert_array_equal(found[name], expected[name], name)


@pytest.mark.parametrize("text", [COMPARED, POSITIONS], ids=["compared", "positions"])
def test_interpreter_and_evaluator_know_uint64(text: str) -> None:
    spec, document = loads(text, "k.yaml"), evaluator.read(text)
    arrays = {n: v for n, v in inputs().items() if n in document.arrays}
    dims = {"n": len(A) * len(B)} | ({"m": 5} if "x" in arrays else {})
    outputs = [n for n, a in document.arrays.items() if a.intent == "out"]
    check(run(build(spec, DTYPES), arrays, dims=dims), outputs)
    check(evaluator.evaluate(document, {"T": "int32"}, arrays, {}, dims), outputs)


@pytest.mark.parametrize("text", [COMPARED, POSITIONS], ids=["compared", "positions"])
def test_compiled_code_knows_uint64(text: str) -> None:
    """Vectorized on every level that this machine runs, and lane by lane."""
    outputs = [n for n, a in evaluator.read(text).arrays.items() if a.intent == "out"]
    blocks = [n for n in outputs if n not in ("before", "after", "hits")]
    steps = (f"{{vectorize: {{loop: {n}.i, width: $lanes}}}}" for n in blocks)
    vectorized = text + VECTORIZED % ", ".join(steps)
    levels = list(Level)
    first, last = map(levels.index, (jit.lowest_level(), jit.native_level()))
    compiled(text, levels[first], outputs)
    for level in levels[first : last + 1]:
        compiled(vectorized, level, outputs)


def compiled(text: str, level: Level, outputs: list[str]) -> None:
    spec, document = loads(text, "k.yaml"), evaluator.read(text)
    scheduled = {"int32": schedule(spec, DTYPES, Cpu(level), prove)}
    loaded = jit.load(
        spec, DTYPES, joined(emit(spec, scheduled, Cpu(level))), level, flags=("-O1",)
    )
    given = {n: v for n, v in inputs().items() if n in document.arrays}
    for name in outputs:
        element = document.element(document.arrays[name].element, {"T": "int32"})
        given[name] = np.zeros(wanted()[name].shape, evaluator.dtype(element))
    loaded.compiled(given, {})
    check(given, outputs)


def test_a_number_has_to_fit() -> None:
    text = COMPARED.replace("wide[i] = ", "wide[i] = (1 if a[i] > -1 else 0) + ")
    with pytest.raises(SpecError, match="-1 does not fit in uint64"):
        build(loads(text, "k.yaml"), DTYPES)
