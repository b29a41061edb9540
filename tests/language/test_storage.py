"""float16 and bfloat16 in specs: where values are cast, what is refused, what is computed."""

import numpy as np
import pytest

from gen.errors import SpecError
from gen.ir.interpret.evaluate import numpy_dtype
from gen.ir.interpret.interp import run
from gen.ir.nodes import Kernel
from gen.ir.rules.verify import IRError, verify
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.ir.types import DType
from gen.language import KernelSpec, build, loads
from gen.lower.lower import lower
from gen.poly.certificate import Scheduled
from gen.targets.cpu.jit import compile_kernel
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

NARROW = [DType.FLOAT16, DType.BFLOAT16]


def spec(compute: str, arguments: str, signature: str = "(n)->(n)", extra: str = "") -> KernelSpec:
    lines = "\n".join("  " + line for line in compute.splitlines())
    return loads(
        f"tilesmith: 1\nkernel: k\ndoc: d\nsignature: {signature}\n"
        f"dtypes: {{T: [float32, float16, bfloat16]}}\narguments: {{{arguments}}}\n{extra}"
        f"compute: |\n{lines}\n",
        "k.yaml",
    )


def plain(compute: str, arguments: str, dtype: DType, **more: str) -> Kernel:
    built = build(spec(compute, arguments, **more), {"T": dtype})
    verify(built)
    return built


COPY = 'x: {type: "T[n]"}, y: {type: "T[n]", intent: out}'
INOUT = COPY.replace("out", "inout")


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("x[i]", "x[i]"),
        ("T(x[i])", "x[i]"),
        ("x[i] + 1", "T(float32(x[i]) + 1.0)"),
        ("T(x[i] * 2) + x[0]", "T(float32(T(float32(x[i]) * 2.0)) + float32(x[0]))"),
        ("T(float64(x[i]) * pi)", "T(float64(float32(x[i])) * 3.141592653589793)"),
        ("T(n) + x[i]", "T(float32(T(float32(n))) + float32(x[i]))"),
    ],
)
def test_where_values_are_cast(dtype: DType, value: str, stored: str) -> None:
    built = plain(f"y[i] = {value}", COPY, dtype)
    assert f"y[i] = {stored.replace('T(', dtype.value + '(')}\n" in to_text(built)


@pytest.mark.parametrize(("dtype", "bits"), [(DType.FLOAT16, 0x2E66), (DType.BFLOAT16, 0x3DCD)])
def test_a_number_is_stored_rounded(dtype: DType, bits: int) -> None:
    built = plain(
        "for i in range(n):\n    y[i] = x[i] if i > 0 else 1\n    y[0] = 0.1", COPY, dtype
    )
    x = np.ones(3, numpy_dtype(dtype))
    assert run(built, {"x": x})["y"].view(np.uint16)[0] == bits
    compiled = compile_kernel(lower(Scheduled(built, {}), Cpu(Level.V2).lowering).kernel, Level.V2)
    compiled({"x": x, "y": (y := np.zeros_like(x))})
    assert y.view(np.uint16)[0] == bits


def test_scalars_and_temporaries_are_float32_unless_they_are_declared() -> None:
    text = to_text(
        plain(
            "t[i] = x[i] * c\nu[i] = t[i]\ny[i] = u[i]",
            COPY,
            DType.BFLOAT16,
            extra="scalars: {c: {type: T}}\ntemporaries: {u: T}\n",
        )
    )
    assert "c: float32" in text
    assert "t=float32[n], u=bfloat16[n]" in text


@pytest.mark.parametrize("dtype", [DType.FLOAT32, *NARROW])
def test_a_reduction_has_a_block_of_its_own_for_every_type(dtype: DType) -> None:
    arguments = 'x: {type: "T[m, n]"}, y: {type: "T[m]", intent: out}'
    text = to_text(plain("y[i] = sum(x[i, j] for j in n)", arguments, dtype, signature="(n)->()"))
    assert "allocate(y_sum=float32[m])" in text
    assert "y_sum[i] = combine.sum(y_sum[i], " in text


def test_an_update_of_one_element_is_a_store() -> None:
    built = plain("y[i] += x[i]", INOUT, DType.FLOAT16, signature="(n),(n)->(n)")
    assert "y[i] = float16(float32(y[i]) + float32(x[i]))" in to_text(built)


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (
            "for i in range(n):\n    y[0] += x[i]",
            "'y' may be of a type narrower than float32, in which nothing is combined",
        ),
        (
            "for i in n:\n    if x[i] > 0:\n        y[i] += x[i]",
            "'y' may be of a type narrower than float32, in which nothing is combined",
        ),
        ("y[i] = float64(x[i])", "the value is float64 but 'y' is float32"),
    ],
)
def test_refused(compute: str, message: str) -> None:
    with pytest.raises(SpecError) as error:
        spec(compute, INOUT, "(n),(n)->(n)")
    assert error.value.message == message
    assert error.value.span is not None and error.value.hint


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ("x[i] + x[i]", "'+' takes no float16: 'x[i] + x[i]'"),
        ("sqrt(x[i])", "'sqrt' takes floats, not float16"),
        ("float16(i)", "no cast leads from int64 to float16 at once"),
        ("float16(bfloat16(float32(x[i])))", "no cast leads from bfloat16 to float16 at once"),
        ("float16(float64(x[i]))", "no cast leads from float16 to float64 at once"),
        ("combine.sum(y[i], x[i])", "'sum' of block 'y' takes no float16"),
    ],
)
def test_the_ir_has_no_arithmetic_of_storage(stored: str, message: str) -> None:
    kernel = from_text(f"""
def k(n, x: float16[n], y: InOut[float16[n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = {stored}
""")
    with pytest.raises(IRError) as error:
        verify(kernel)
    assert error.value.message == message


def test_the_ir_has_no_scalars_of_storage() -> None:
    with pytest.raises(IRError, match="scalar 'a' is bfloat16, which only stores"):
        verify(from_text("def k(a: bfloat16, y: Out[float32[1]]):\n    pass\n"))


@pytest.mark.parametrize("dtype", NARROW)
def test_the_interpreter_computes_in_float32(dtype: DType) -> None:
    built = plain("y[i] = x[i] * 1.001 + x[0]", COPY, dtype)
    x = np.random.default_rng(0).standard_normal(50).astype(numpy_dtype(dtype))
    wide = x.astype("f")
    expected = (wide * np.float32(1.001) + wide[0]).astype(x.dtype)
    np.testing.assert_array_equal(run(built, {"x": x})["y"].astype("f"), expected.astype("f"))
