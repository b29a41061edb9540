"""Oracles and accuracy bounds."""

from pathlib import Path

import numpy as np
import pytest

from gen.errors import SpecError
from gen.ir.interpret.interp import run
from gen.ir.nodes import Intent
from gen.ir.types import DType
from gen.language import build, load, loads
from gen.language.formulas import oracle

SPECS = Path(__file__).parent / "specs"
NAMES = [p.stem for p in sorted(SPECS.glob("*.yaml")) if "oracle:" in p.read_text()]
SIZES = {"m": 4, "n": 5, "k": 6, "h": 4, "w": 5}


def text(oracle_text: str, accuracy: str = "ulp(y[i])") -> str:
    return (
        "tilesmith: 1\nkernel: k\ndoc: d\nsignature: (n)->(n)\n"
        "dtypes: {T: [float16, float32, float64]}\n"
        'arguments: {x: {type: "T[n]"}, y: {type: "T[n]", intent: out}}\n'
        "scalars: {c: {type: T, default: 0.1}}\n"
        f"compute: y[i] = x[i] * c\noracle: {oracle_text}\naccuracy: {accuracy}\n"
    )


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64])
@pytest.mark.parametrize("name", NAMES)
def test_kernels_keep_their_promise(name: str, dtype: DType) -> None:
    """The plain schedule is within the accuracy of the oracle, and a wrong result is not."""
    spec = load(SPECS / f"{name}.yaml")
    rng = np.random.default_rng(3)
    arrays = {
        a.name: rng.standard_normal([SIZES[str(s)] for s in a.shape]).astype(dtype.value)
        for a in spec.arguments
        if a.intent is not Intent.OUT
    }
    if name == "cholesky":
        arrays["a"] = (arrays["a"] @ arrays["a"].T + 5 * np.eye(5)).astype(dtype.value)
    scalars = {s.name: s.default for s in spec.scalars if s.default is not None}
    built = oracle.expose(build(spec, {"T": dtype}), oracle.needed_temporaries(spec))
    values = run(built, arrays, scalars)
    expected = oracle.evaluate(spec, arrays, scalars)
    bounds = oracle.accuracy_bound(spec, {**arrays, **values}, scalars)
    for output, bound in bounds.items():
        error = np.abs(values[output] - expected[output])
        assert bound.shape == error.shape and (error <= bound).all()
        spoiled = values[output] + np.asarray(1, values[output].dtype)
        assert (np.abs(spoiled - expected[output]) > bound).all()


def test_oracles_run_one_precision_up() -> None:
    spec = loads(text("x * c"), "k.yaml")
    for dtype, wider in ((np.float16, np.float64), (np.float32, np.float64),
                         (np.float64, np.longdouble)):  # fmt: skip
        x = np.array([1, 3], dtype)
        computed = np.float32 if dtype is np.float16 else dtype
        result = oracle.evaluate(spec, {"x": x})["y"]
        assert result.dtype == wider
        np.testing.assert_array_equal(result, x.astype(wider) * wider(computed(0.1)))


def test_functions_without_long_double_run_in_double() -> None:
    spec = loads(text("np.linalg.solve(np.eye(n), x)"), "k.yaml")
    assert oracle.evaluate(spec, {"x": np.ones(3)})["y"].dtype == np.float64


def test_bounds_use_indices_eps_and_ulp_of_the_kernels_type() -> None:
    spec = loads(text("x", "i * eps + ulp(y[i]) + n + c"), "k.yaml")
    values = {"x": np.ones(3, np.float32), "y": np.array([1, 2, -4], np.float32)}
    bound = oracle.accuracy_bound(spec, values)["y"]
    eps = 2.0**-23
    c = float(np.float32(0.1))
    np.testing.assert_array_equal(bound, [eps + 3 + c, eps + 2 * eps + 3 + c,
                                          2 * eps + 4 * eps + 3 + c])  # fmt: skip


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("np.nothing(x)", "'np.nothing' is not a function that a formula may call"),
        ("np.meann(x)", "'np.meann' is not a function that a formula may call"),
        ("[1] * 3", "this is not a number or an array"),
        ("2 ** 100", "the exponent is larger than 64"),
        ("np.sum(**x)", "'**' is not allowed in a formula"),
        ("0 < x < 1", "this is not part of a formula"),
        (
            "scipy.special.nothing(x)",
            "'scipy.special.nothing' is not a function that a formula may call",
        ),
        ("y", "unknown name 'y'"),
    ],
)
def test_errors(formula: str, message: str) -> None:
    with pytest.raises(SpecError) as info:
        oracle.evaluate(loads(text(f'"{formula}"'), "k.yaml"), {"x": np.ones(2)})
    assert info.value.message == message
    assert info.value.span is not None and info.value.span.line == 9
