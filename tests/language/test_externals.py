"""External functions: read, interpreted by their formulas, compiled as they are."""

import numpy as np
import pytest
import scipy.special

from gen.errors import SpecError, TilesmithError
from gen.ir.interpret.interp import InterpError, run
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.ir.types import DType
from gen.language import KernelSpec, build, loads
from gen.language.declared.externals import python_functions
from gen.pipeline import emit, schedule
from gen.poly.prove import prove
from gen.targets.cpu import jit
from gen.targets.cpu.target import Cpu
from gen.targets.target import joined

J_ZERO = """
  j_zero:
    arguments: {x: T}
    result: T
    c: {float32: j0f, float64: j0}
    header: math.h
    oracle: scipy.special.j0(x)
"""
TIMES = """
  times:
    arguments: {x: T, k: int64}
    result: T
    c: {float32: times_f, float64: times_d}
    source: |
      static inline float times_f(float x, int64_t k) { return x * (float)k; }
      static inline double times_d(double x, int64_t k) { return x * (double)k; }
    oracle: x * k
"""
RECIPE = """recipes:
  - target: cpu
    variants:
      - steps:
          - vectorize: {loop: y.j, width: $lanes}
          - parallel: {loop: y.i}
"""


def spec(externals: str, value: str, rest: str = "") -> KernelSpec:
    return loads(
        "tilesmith: 1\nkernel: k\ndoc: d\nsignature: (n)->(n)\n"
        f"dtypes: {{T: [float32, float64]}}\nexternals:{externals}"
        'arguments:\n  x: {type: "T[m, n]"}\n  y: {type: "T[m, n]", intent: out}\n'
        f"compute: |\n  y[i, j] = {value}\n{rest}",
        "k.yaml",
    )


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64])
@pytest.mark.parametrize("recipe", ["", RECIPE], ids=["plain", "vectorized"])
def test_interpreted_and_compiled(recipe: str, dtype: DType) -> None:
    kernel = spec(J_ZERO + TIMES, "times(j_zero(x[i, j]), j + 1) + 1", recipe)
    x = np.linspace(-9, 9, 57).reshape(3, 19).astype(dtype.value)
    expected = scipy.special.j0(x.astype(float)) * np.arange(1, 20) + 1
    plain = build(kernel, {"T": dtype})
    result = run(plain, {"x": x}, externals=python_functions(kernel))["y"]
    np.testing.assert_allclose(result, expected, atol=1e-5)
    level = jit.native_level()
    variants = schedule(kernel, {"T": dtype}, Cpu(level), prove)
    code = joined(emit(kernel, {dtype.value: variants}, Cpu(level)))
    assert code.count("#include <math.h>") == code.count("static inline float times_f") == 1
    y = np.zeros_like(x)
    jit.load(kernel, {"T": dtype}, code, level).compiled({"x": x, "y": y}, {}, threads=2)
    np.testing.assert_allclose(y, expected, atol=1e-5)


def test_a_script_restores_the_functions() -> None:
    kernel = build(spec(J_ZERO + TIMES, "times(j_zero(x[i, j]), 2)"), {"T": DType.FLOAT32})
    assert from_text(to_text(kernel)) == kernel
    assert "    @external('j0f', header='math.h')\n" in to_text(kernel)


def test_the_interpreter_asks_for_them() -> None:
    kernel = build(spec(J_ZERO, "j_zero(x[i, j])"), {"T": DType.FLOAT64})
    with pytest.raises(InterpError, match="nothing stands for the external function 'j_zero'"):
        run(kernel, {"x": np.ones((1, 1))})


def test_what_no_header_declares_is_an_error_of_the_compiler() -> None:
    kernel = spec(
        J_ZERO.replace("math.h", "string.h").replace("float64: j0", "float64: j_none"),
        "j_zero(x[i, j])",
    )
    level, dtypes = jit.native_level(), {"T": DType.FLOAT64}
    code = joined(
        emit(kernel, {"float64": schedule(kernel, dtypes, Cpu(level), prove)}, Cpu(level))
    )
    with pytest.raises(TilesmithError, match="j_none"):
        jit.load(kernel, dtypes, code, level)


@pytest.mark.parametrize(
    ("externals", "value", "message"),
    [
        (J_ZERO, "j_zero(x[i, j], 1)", "'j_zero' takes 1 argument, not 2"),
        (J_ZERO, "T(j_zero(float64(x[i, j])))", "argument 1 of 'j_zero' is float32, not float64"),
        (J_ZERO, "x[i, j]", "the external function 'j_zero' is not used"),
        (J_ZERO.replace("float32: j0f, ", ""), "j_zero(x[i, j])", "'j_zero' has no C name"),
        (J_ZERO.replace("    header: math.h\n", ""), "j_zero(x[i, j])", "nothing says where"),
        (J_ZERO.replace("math.h", "<math.h>"), "j_zero(x[i, j])", "this is not the name of"),
        (J_ZERO.replace("j0f", "j0 f"), "j_zero(x[i, j])", "this is not the name of a C"),
        (J_ZERO.replace("j0(x)", "j0(z)"), "j_zero(x[i, j])", "unknown name 'z'"),
        (J_ZERO.replace("{x: T}", "{x: S}"), "j_zero(x[i, j])", "unknown type 'S'"),
        (J_ZERO.replace("{x: T}", "{}"), "j_zero(x[i, j])", "'j_zero' has no arguments"),
        (J_ZERO.replace("j_zero", "exp"), "exp(x[i, j])", "'exp' is a word of the language"),
    ],
)  # fmt: skip
def test_errors(externals: str, value: str, message: str) -> None:
    with pytest.raises(SpecError) as error:
        spec(externals, value)
    assert error.value.message.startswith(message)
    assert error.value.span is not None
