"""Complex numbers in the language: types beside NumPy's, values, and what is refused."""

import operator
from typing import Any

import numpy as np
import pytest

from gen.errors import SpecError
from gen.ir.interpret.interp import run
from gen.ir.types import DType
from gen.language.build import build, choices
from gen.language.reader import loads
from gen.language.values.types import Weak, promote

WEAK = {Weak.INT: 2, Weak.FLOAT: 2.5, Weak.COMPLEX: 2j}


@pytest.mark.parametrize("weak", WEAK)
def test_numbers_promote_as_numpys(weak: Weak) -> None:
    for dtype in DType:
        if not dtype.only_stores:
            expected = (np.ones(1, dtype.value) * WEAK[weak]).dtype
            for found in (promote(weak, dtype), promote(dtype, weak)):
                assert isinstance(found, DType) and found.value == expected
    assert promote(weak, Weak.COMPLEX) is Weak.COMPLEX


def test_types_promote_as_numpys() -> None:
    for a in DType:
        for b in (DType.COMPLEX64, DType.COMPLEX128):
            if not a.only_stores:
                assert promote(a, b).value == np.promote_types(a.value, b.value)  # type: ignore[union-attr]


def test_the_type_of_the_parts() -> None:
    """real(T) follows T, in a spec that uses it."""
    for out, names in (("T", ["T"]), ("real(T)", ["T", "real(T)"])):
        spec = loads(SPEC.format(value="0", out=out, dtype="float32, complex128"), "k.yaml")
        found = [{name: dtype.value for name, dtype in chosen.items()} for chosen in choices(spec)]
        expected = (
            {"T": t, "real(T)": r} for t, r in (("float32",) * 2, ("complex128", "float64"))
        )
        assert found == [{name: row[name] for name in names} for row in expected]


SPEC = """\
tilesmith: 1
kernel: k
doc: For tests.
signature: (n)->(n),(n)
dtypes: {{T: [{dtype}]}}
arguments:
  z: {{type: "T[n]"}}
  y: {{type: "{out}[n]", intent: out}}
  copy: {{type: "T[n]", intent: out}}
compute: |
  y[i] = {value}
  copy[i] = z[i]
"""


def value_of(value: str, out: str, z: Any) -> Any:
    spec = loads(SPEC.format(value=value, out=out, dtype=z.dtype.name), "k.yaml")
    (chosen,) = choices(spec)
    return run(build(spec, chosen), {"z": z})["y"]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_values_are_numpys(dtype: str) -> None:
    z = np.array([1 + 2j, -0.5j, 3, 2 - 1j], dtype)
    i = np.arange(4)
    for value, out, expected in (
        ("2.5j * z[i] - 1", "T", 2.5j * z - 1),
        ("-1j / (z[i] + i)", "T", -1j / (z + i)),
        ("z[i] ** 3", "T", z * z * z),
        ("conj(z[i]) + real(z[i]) * 1j", "T", z.conj() + z.real * 1j),
        ("real(z[i]) * imag(z[i])", "real(T)", z.real * z.imag),
        ("abs(z[i])", "real(T)", abs(z)),
        ("real(T(i))", "real(T)", i),
        ("exp(z[i])", "T", np.exp(z)),
        ("sqrt(z[i]) + log(z[i])", "T", np.sqrt(z) + np.log(z)),
        ("sqrt(-4 + 0j) + log(1j)", "T", np.full(4, 2j + 0.5j * np.pi)),
        ("z[i] ** -1 + z[i] ** -3", "T", 1 / z + 1 / z**3),
        ("pow(z[i], 2) + 2j ** -2", "T", z * z - 0.25),
        ("z[i] ** 1.5 + z[i] ** 0", "T", z**1.5 + 1),
        ("z[i] ** z[i]", "T", z**z),
        ("2 ** z[i] + (-2) ** z[i]", "T", 2**z + (-2 + 0j) ** z),
        ("pow(z[i], -17) + pow(z[i], real(z[i]))", "T", 1 / z**17 + z ** z.real.astype(z.dtype)),
        ("1j ** 1j + (z[i] - z[i]) ** (z[i] - z[i])", "T", np.full(4, 1 + 1j**1j)),
        ("complex(imag(z[i]), 2)", "T", z.imag + 2j),
        ("complex(i, -i)", "T", i - 1j * i),
        ("exp(1j * pi) + abs(3 - 4j) + real(2j) + conj(1j) + complex(1, 2)", "T",
         np.full(4, 5 + 1j)),
        ("z[i] if z[i] == 3 or z[i] != z[i] else -z[i]", "T", np.where(z == 3, z, -z)),
        ("real(i) + conj(i) + imag(i)", "int64", 2 * i),
        ("isnan(z[i] * nan)", "bool", np.full(4, True)),
        ("isinf(complex(imag(z[i]), inf)) and not isfinite(complex(inf, 0) * z[i])", "bool",
         np.full(4, True)),
        ("isfinite(z[i]) and not isinf(z[i])", "bool", np.full(4, True)),
        ("bool(z[i] - 3)", "bool", z != 3),
        ("complex128(z[i]) * 2", "complex128", z * 2),
        ("complex64(z[i])", "complex64", z),
    ):  # fmt: skip
        got = value_of(value, out, z)
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-6, err_msg=value)


def test_real_numbers_have_parts() -> None:
    x = np.array([1.5, -2.0], np.float32)
    for value in ("conj(x)", "real(x)", "x + imag(x)"):
        got = value_of(value.replace("x", "z[i]"), "real(T)", x)
        assert got.dtype == np.float32 and operator.eq(got, x).all()


ORDER = "compare abs(...) or real(...)"
PARTS = "take real(...), imag(...) or abs(...) first"
UNORDERED = "needs numbers that have an order, not complex64"
CAST = "write complex64(...) if that is meant"
MEANT = "write real(...), imag(...) or abs(...) if that is meant"


@pytest.mark.parametrize(
    ("value", "out", "message", "column", "hint"),
    [
        ("z[i] < 2", "bool", f"'<' {UNORDERED}", 10, ORDER),
        ("max(z[i], 0)", "T", f"'max' {UNORDERED}", 10, ORDER),
        ("max(z[j] for j in n)", "T", f"'max' {UNORDERED}", 14, ORDER),
        ("argmin(z[j] for j in n)", "int64", f"'argmin' {UNORDERED}", 17, ORDER),
        ("tanh(z[i])", "T", "'tanh' has no complex form", 10, PARTS),
        ("round(z[i])", "T", "'round' has no complex form", 10, PARTS),
        ("hypot(z[i], 1)", "T", "'hypot' has no complex form", 10, PARTS),
        ("floor(2j)", "T", "'floor' has no complex form", 10, PARTS),
        ("fma(z[i], z[i], 1)", "T", "'fma' has no complex form", 10, "write a * b + c"),
        ("z[i]", "float32", "the value is complex64 but 'y' is float32", 3, MEANT),
        ("1j", "real(T)", "the value is complex128 but 'y' is float32", 3, MEANT),
        ("complex128(z[i])", "T", "the value is complex128 but 'y' is complex64", 3, CAST),
        ("float32(z[i])", "float32", "a cast to float32 would drop an imaginary part", 10, PARTS),
        ("z[i] // 2", "T", "'//' needs integers, not complex64", 10, None),
        ("complex(z[i], 1)", "T", "'complex' needs two real numbers, not complex64", 10, None),
        ("real(z[i] == 1)", "T", "'real' needs a number, not bool", 10, None),
        ("z[i] if z[i] else 0", "T", "a condition must be a bool, not complex64", 18, None),
        ("z[1j]", "T", "an index must be an integer, not complex128", 12, None),
        ("complex(1)", "T", "'complex' takes 2 arguments, not 1", 10, None),
    ],
)  # fmt: skip
def test_errors(value: str, out: str, message: str, column: int, hint: str | None) -> None:
    with pytest.raises(SpecError) as caught:
        loads(SPEC.format(value=value, out=out, dtype="complex64"), "k.yaml")
    error = caught.value
    assert error.span is not None
    assert (error.message, error.span.line, error.span.column, error.hint) == (
        message, 11, column, hint,
    )  # fmt: skip


def test_parts_are_of_type_variables() -> None:
    with pytest.raises(SpecError, match=r"unknown type 'real\(U\)'"):
        loads(SPEC.format(value="0", out="real(U)", dtype="complex64"), "k.yaml")


def test_external_functions_are_of_real_numbers() -> None:
    entry = "externals:\n  f: {arguments: {x: T}, result: T, oracle: x, header: math.h}\n"
    text = SPEC.format(value="f(z[i])", out="T", dtype="complex64")
    text = text.replace("arguments:", f"{entry}arguments:", 1)
    with pytest.raises(SpecError, match="'f' has a complex64, which C functions do not share") as e:
        loads(text, "k.yaml")
    assert e.value.hint == "give and take the parts, real(...) and imag(...)"
