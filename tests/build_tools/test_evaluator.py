"""The evaluator, which reads the language by its page alone, against the interpreter: on all specs
of the project, and on what the page promises of numbers.
"""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from build_tools import evaluator
from gen import language as specs
from gen.ir.interpret.interp import run
from gen.ir.interpret.sizes import value
from gen.trial.sizes import kernel_dims

Array = NDArray[Any]

ROOT = Path(__file__).parents[2]
FOLDERS = ("kernels_spec", "tests/language", "docs/examples")
BLOCK = re.compile(r"^```yaml\n(tilesmith: 1\nkernel: (\w+)\n.*?)^```$", re.DOTALL | re.MULTILINE)
LARGER = {"harris"}  # without results at sizes as small as these here
FOUND = [p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.yaml"))]
PATHS = [p for p in FOUND if p.stem not in LARGER]
TEXTS = {str(p.relative_to(ROOT)): p.read_text("utf-8") for p in PATHS} | {
    f"{page}:{kernel}": text
    for page in ("authors", "examples", "language")
    for text, kernel in BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text("utf-8"))
}
SIZES = ((0, 0), (1, 0), (2, 1), (4, -1))  # the first, and how much more each other one is
MOST = 3000  # elements of all dims together, so that none of the specs takes a second


@pytest.mark.parametrize("name", TEXTS)
def test_the_interpreter_computes_what_the_page_says(name: str) -> None:
    spec, document = specs.loads(TEXTS[name], name), evaluator.read(TEXTS[name])
    compared = 0
    choices = specs.choices(spec)
    for choice in choices if len(document.dims) < 3 else (choices[0], choices[-1]):
        kernel = specs.build(spec, choice)
        chosen = {v: t.value for v, t in choice.items() if v in document.dtypes}
        for dims, scalars in _calls(document):
            known = evaluator.numbers(document, dims, scalars)
            arrays = _arrays(document, chosen, known, sum(dims.values()))
            try:
                wanted = evaluator.evaluate(document, chosen, arrays, scalars, dims)
            except evaluator.Unspecified:
                continue
            sizes = kernel_dims(spec, dims, scalars)
            if not all(value(c, {**scalars, **sizes}) for c in spec.constraints):
                continue  # nothing to take the max of: a call says so, whatever else it has
            outside = {x: _external(document, x) for x in document.externals}
            got = run(kernel, arrays, scalars, dims=sizes, externals=outside)
            for output, found in got.items():
                _alike(found, wanted[output])
                compared += found.size
    assert compared


def _calls(document: evaluator.Document) -> Iterator[tuple[dict[str, int], dict[str, Any]]]:
    """Sizes, all alike or each one more or less than the one before, with small scalars."""
    for size, step in SIZES:
        dims = {d: size + k * step for k, d in enumerate(document.dims)}
        scalars = {n: s.default for n, s in document.scalars.items()}
        for n, s in document.scalars.items():
            if s.default is None or (s.element == "int64" and 4 < s.default < 1 << 60):
                scalars[n] = size
        fits = min(dims.values(), default=0) >= 0 and math.prod(dims.values()) <= MOST
        if fits and evaluator.allows(document, dims, scalars):
            yield dims, scalars


def _arrays(
    document: evaluator.Document, chosen: Mapping[str, str], sizes: Mapping[str, Any], seed: int
) -> dict[str, Array]:
    """Inputs: floats of every kind; integers of which some are positions outside."""
    rng, given = np.random.default_rng(seed), {}
    for name, array in document.arrays.items():
        if array.intent not in ("in", "inout"):
            continue
        dtype = evaluator.dtype(document.element(array.element, chosen))
        shape = evaluator.shape_of(document, name, sizes)
        if dtype.kind in "biu":
            given[name] = rng.integers(-2 if dtype.kind == "i" else 0, 9, shape).astype(dtype)
        elif dtype.kind == "c":
            parts = rng.standard_normal((2, *shape))
            given[name] = (parts[0] + 1j * parts[1]).astype(dtype)
        else:
            given[name] = rng.standard_normal(shape).astype(dtype)
    return given


def _external(document: evaluator.Document, name: str) -> Any:
    import scipy.special

    external = document.externals[name]
    code = compile(external.oracle, name, "eval")

    def called(*values: Any) -> Any:
        names = dict(zip(external.arguments, values, strict=True))
        return eval(code, {"np": np, "scipy": scipy}, names)

    return called


def _alike(value: Array, wanted: Array) -> None:
    """Exactly, but for what a sum's order and the last bits of functions change."""
    assert value.dtype == wanted.dtype and value.shape == wanted.shape
    if value.dtype.kind in "biu":
        np.testing.assert_array_equal(value, wanted)
        return
    wide = np.complex128 if value.dtype.kind == "c" else np.float64
    eps = {2: 2.0**-8, 4: 2.0**-23, 8: 2.0**-52}[
        value.dtype.itemsize // (1 + (wide is np.complex128))
    ]
    a, b = value.astype(wide), wanted.astype(wide)
    size = 64 * eps * float(np.abs(b[np.isfinite(b)]).max(initial=1))
    np.testing.assert_allclose(a, b, rtol=0, atol=size)


# ---------------------------------------------------------------- what the page promises of numbers

LOW, HIGH = -(2**63), 2**63 - 1
NAN, INF = float("nan"), float("inf")
PROMISES: list[tuple[str, str, str, list[Any], list[Any]]] = [
    ("wraps", "int8", "y[i] = x[i] * 2", [100, -100], [-56, 56]),
    ("wraps back", "int64", "y[i] = x[i] - 1 + x[i]", [LOW, HIGH], [-1, -3]),
    ("negates the least", "int64", "y[i] = -x[i]", [LOW, 3], [LOW, -3]),
    ("is the least", "int64", "y[i] = abs(x[i])", [LOW, -3], [LOW, 3]),
    ("is without a sign", "uint8", "y[i] = abs(x[i])", [200, 3], [200, 3]),
    ("negates without a sign", "uint8", "y[i] = -x[i]", [1, 0], [255, 0]),
    ("minus minus", "float32", "y[i] = x[i] - -x[i]", [3, -1], [6, -2]),
    ("divides downwards", "int32", "y[i] = x[i] // 4", [-5, 5], [-2, 1]),
    ("has the divisor's sign", "int32", "y[i] = x[i] % -3", [-5, 5], [-2, -1]),
    ("divides the least", "int32", "y[i] = x[i] // -1", [-(2**31), 5], [-(2**31), -5]),
    ("shifts signs in", "int16", "y[i] = x[i] >> 3", [-9, 9], [-2, 1]),
    ("shifts out", "int16", "y[i] = x[i] << 3", [2**13, 9], [0, 72]),
    ("is left by a size", "int8", "y[i] = int8(x[i] % (n + 998))", [-1, 5], [-25, 5]),
    ("is divided by a size", "int8", "y[i] = int8(x[i] // (n + 255))", [-1, 5], [-1, 0]),
    ("is less than a size", "int8", "y[i] = int8(min(x[i], n + 254))", [100, -3], [100, -3]),
    ("divides by 0", "int8", "y[i] = x[i] // (x[i] - x[i])", [3, -3], [0, 0]),
    ("is a rest of 0", "uint16", "y[i] = x[i] % (x[i] - x[i])", [3, 4], [0, 0]),
    ("shifts by all its bits", "int8", "y[i] = x[i] >> x[i]", [9, -9], [0, -1]),
    ("shifts by less than 0", "int8", "y[i] = x[i] << -x[i]", [9, -1], [0, -2]),
    ("is the largest of none", "int8", "y[i] = max(x[j] for j in n if x[j] > 9)", [3], [-128]),
    ("is the least of none", "float32", "y[i] = min(x[j] for j in n if x[j] > 9)", [3], [INF]),
    ("casts around", "int32", "y[i] = int32(int8(x[i]))", [300, -129], [44, 127]),
    ("compares chains", "int32", "y[i] = 1 if 0 <= x[i] < 3 else 0", [2, 3], [1, 0]),
    ("is NaN", "float32", "y[i] = min(x[i], 1)", [NAN, 3], [NAN, 1]),
    ("is NaN of all", "float32", "y[i] = max(x[j] for j in n)", [NAN, 3], [NAN, NAN]),
    ("is the first NaN", "float32", "y[i] = T(argmax(x[j] for j in n))", [INF, NAN, NAN], [1] * 3),
    ("is the first", "float32", "y[i] = T(argmin(x[j] for j in n))", [3, 1, 1], [1] * 3),
    ("takes the operand's type", "float32", "y[i] = x[i] * 0.1", [3],
     [np.float32(3) * np.float32(0.1)]),
    ("is rounded once", "bfloat16", "y[i] = x[i] * 1.00390625", [1.0], [1.0]),
    ("rounds ties to even", "bfloat16", "y[i] = x[i] * 1.01171875", [1.0], [1.015625]),
    ("fuses", "float64", "y[i] = fma(x[i], x[i], -x[i])", [1 + 2.0**-52], [2.0**-52 + 2.0**-104]),
    ("fuses, rounding once", "float32", "y[i] = fma(x[i], x[i], 3.308722450212111e-24)",
     [1 + 2.0**-12], [1 + 2.0**-11 + 2.0**-23]),
    ("parts", "complex64", "y[i] = conj(x[i]) * x[i]", [1 + 2j], [5]),
    ("does not count", "int64", "for i in n:\n    y[i] = sum(x[k] for k in range(x[i], x[i] + 2))",
     [1, 2, -1], [1, -1, 1]),
    ("runs downwards", "int64",
     "for i in reversed(range(n)):\n    y[i] = x[i] + (y[i + 1] if i + 1 < n else 0)",
     [1, 2, 3], [6, 5, 3]),
]  # fmt: skip


@pytest.mark.parametrize(("element", "compute", "given", "wanted"), [p[1:] for p in PROMISES],
                         ids=[p[0] for p in PROMISES])  # fmt: skip
def test_numbers(element: str, compute: str, given: list[Any], wanted: list[Any]) -> None:
    """By the evaluator, and by the interpreter."""
    body = "\n".join(f"  {line}" for line in compute.splitlines())
    text = f"""\
tilesmith: 1
kernel: promise
doc: One promise.
signature: (n){",(n)" if "y[i + 1]" in compute else ""}->(n)
dtypes: {{T: [{element}]}}
arguments:
  x: {{type: "T[n]"}}
  y: {{type: "T[n]", intent: {"inout" if "y[i + 1]" in compute else "out"}}}
constraints: [n >= 1]
compute: |
{body}
"""
    dtype = evaluator.dtype(element)
    arrays = {"x": np.array(given).astype(dtype), "y": np.zeros(len(given), dtype)}
    expected = np.array(wanted).astype(dtype)
    document, dims = evaluator.read(text), {"n": len(given)}
    np.testing.assert_array_equal(
        evaluator.evaluate(document, {"T": element}, arrays, {}, dims)["y"], expected
    )
    spec = specs.loads(text, "promise.yaml")
    inputs = {n: a for n, a in arrays.items() if document.arrays[n].intent != "out"}
    got = run(specs.build(spec, specs.choices(spec)[0]), inputs, {}, dims=dims)
    np.testing.assert_array_equal(got["y"], expected)


def test_what_the_page_does_not_say_is_told() -> None:
    text = TEXTS["language:quantize"]
    document = evaluator.read(text)
    arrays = {"x": np.array([[1e30, 1.0]], np.float32)}
    evaluator.evaluate(document, {"T": "float32"}, arrays, {}, {"m": 1, "n": 2})
    broken = evaluator.read(text.replace("/ scale[i] + 0.5", "* 1e30 + 0.5"))
    with pytest.raises(evaluator.Unspecified):
        evaluator.evaluate(broken, {"T": "float32"}, arrays, {}, {"m": 1, "n": 2})


def test_it_shares_no_code_with_the_generator() -> None:
    for path in Path(evaluator.__file__).parent.glob("*.py"):
        assert not re.search(r"^\s*(from|import) gen\b", path.read_text("utf-8"), re.MULTILINE), (
            path
        )


def test_reads_before_writes_are_errors() -> None:
    text = TEXTS["language:box"].replace("wide[i, 0] = x[i, 0]", "wide[i, 1] = x[i, 0]")
    arrays = {"x": np.ones((1, 2), np.float32)}
    with pytest.raises(IndexError, match="before it is written"):
        evaluator.evaluate(evaluator.read(text), {"T": "float32"}, arrays, {}, {"m": 1, "n": 2})
