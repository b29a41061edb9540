"""Element types of several widths in one kernel, beside NumPy: plain, and in parallel vectors."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gen import language as specs
from gen.cache import cache_folder
from gen.ir import storage
from gen.ir.interpret.evaluate import numpy_dtype
from gen.ir.types import DType
from gen.language.model import KernelSpec
from gen.lower.variants import suffix
from gen.pipeline import emit, schedule_to_emit
from gen.poly.cache import prover
from gen.targets.c.library import Loaded
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level, Processor
from gen.targets.cpu.target import Cpu
from gen.targets.target import joined
from gen.trial import comparison, inputs
from gen.trial.plain import Reference

from ..plain import without_steps
from .kernels import compiled

Array = NDArray[Any]
SPECS = Path(__file__).parent / "specs"
RNG = np.random.default_rng(7)


@cache
def kernels(name: str, level: Level, plain: bool) -> tuple[tuple[KernelSpec, DType, Loaded], ...]:
    """The kernel for each choice of T."""
    spec = specs.load(SPECS / f"{name}.yaml")
    if plain:
        spec = without_steps(spec)
    prove = prover(cache_folder() / "proofs")  # one for all types that are equal alike
    made = {suffix(d): schedule_to_emit(spec, d, Cpu(level), prove) for d in specs.choices(spec)}
    source = joined(emit(spec, made, Cpu(level)))
    return tuple((spec, d["T"], jit.load(spec, d, source, level)) for d in specs.choices(spec))


def sizes(level: Level, dtype: DType) -> Iterator[int]:
    lanes = Processor(level).lanes(dtype.computed)
    yield from sorted({0, 1, lanes - 1, lanes, lanes + 1, 3 * lanes + 2})


def integers(dtype: DType, *shape: int) -> Array:
    limits = np.iinfo(dtype.value)
    return RNG.integers(limits.min, limits.max, shape, dtype.value, endpoint=True)


both = pytest.mark.parametrize("plain", [True, False], ids=["plain", "vectors"])


@both
def test_sums_of_integers_in_their_type_and_a_wider_one(level: Level, plain: bool) -> None:
    for _, dtype, kernel in kernels("sums", level, plain):
        for n in sizes(level, dtype):
            x = integers(dtype, 3, n)
            own, least, most = (np.ones(3, x.dtype) for _ in range(3))
            wide = np.ones(3, np.int64)
            kernel({"x": x, "own": own, "wide": wide, "least": least, "most": most}, {})
            np.testing.assert_array_equal(own, x.sum(1, dtype=x.dtype))
            np.testing.assert_array_equal(wide, x.astype(np.int64).sum(1))
            limits = np.iinfo(x.dtype)
            np.testing.assert_array_equal(least, x.min(1, initial=limits.max))
            np.testing.assert_array_equal(most, x.max(1, initial=limits.min))


@both
def test_products_of_bytes_summed_in_int32(level: Level, plain: bool) -> None:
    for _, dtype, kernel in kernels("gemm", level, plain):
        for n in sizes(level, DType.INT32):
            for m, k in ((0, 3), (1, 1), (4, 0), (6, 9)):
                a, b, c = integers(dtype, m, k), integers(dtype, k, n), np.ones((m, n), np.int32)
                kernel({"a": a, "b": b, "c": c}, {})
                np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))


def test_the_tile_of_int32_is_in_registers() -> None:
    spec, _, kernel = kernels("gemm", Level.V3, False)[0]
    assert "ts_i32 tile[8]" in kernel.compiled.source
    assert "ts_mul_short_i32" in kernel.compiled.source
    assert spec.name == "gemm"


@both
def test_narrow_floats_are_summed_in_float32(level: Level, plain: bool) -> None:
    for spec, dtype, kernel in kernels("dot", level, plain):
        for n in sizes(level, dtype):
            given = inputs.random_arrays(spec, {"T": dtype}, {"m": 3, "n": n}, RNG)
            case = comparison.compare(
                Reference(spec, {"T": dtype}), kernel, given, {"m": 3, "n": n}
            )
            assert case.worst <= 1, case


def test_a_long_sum_does_not_stop_where_the_storage_would(level: Level) -> None:
    """Ones: in bfloat16 256 + 1 is 256."""
    for _, dtype, kernel in kernels("dot", level, False):
        ones = np.ones((1, 3000), numpy_dtype(dtype))
        c = np.zeros(1, ones.dtype)
        kernel({"a": ones, "b": ones, "c": c}, {})
        assert c.astype(float)[0] == np.asarray(3000.0, ones.dtype).astype(float)


VALUES = np.array(
    [0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 1e30, -7e4, 65519.0, 65520.0, 3e-8, 6e-8, 1e-40, 0.1]
)


@both
def test_each_store_rounds_once(level: Level, plain: bool) -> None:
    for _, dtype, kernel in kernels("halves", level, plain):
        t = numpy_dtype(dtype)
        for n in sizes(level, dtype):
            x = RNG.choice([*VALUES, *RNG.standard_normal(20)], (2, n)).astype("f")
            arrays = {k: np.ones((2, n), t) for k in ("once", "shifted", "copied")}
            twice = np.ones((2, n), "f")
            kernel({"x": x, "twice": twice, **arrays}, {})
            with np.errstate(all="ignore"):
                once = x.astype(t)
                product = once.astype("f") * np.float32(0.1)
                scaled = nearest(x.astype(float) * 0.1, dtype)
                before = once.astype("f")[:, np.maximum(np.arange(n) - 1, 0)]
                shifted = np.where(x > 0, before + scaled.astype("f"), np.float32(0.1)).astype(t)
                assert_same(arrays["once"], once)
                assert_same(twice, product.astype(t).astype("f"))
                assert_same(arrays["shifted"], shifted)
                assert_same(arrays["copied"], once[:, ::-1])


def nearest(values: Array, dtype: DType) -> Array:
    """float64 rounded once; ml_dtypes rounds to float32 on the way."""
    bits = [storage.bits(float(v), dtype) for v in values.ravel()]
    return np.array(bits, np.uint16).view(numpy_dtype(dtype)).reshape(values.shape)


def assert_same(a: Array, b: Array) -> None:
    """Equal bits, but that all NaNs are alike."""
    a, b = storage.computed(a), storage.computed(b)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0]))


def test_rounding_in_python_is_numpys() -> None:
    """Between neighbours, in the middle and beside it."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    middles = (halves[:-1] + halves[1:]) / 2
    for values in (halves, middles, np.nextafter(middles, 0), np.nextafter(middles, np.inf)):
        some = values[::13]
        expected = some.astype(np.float16).view(np.uint16)
        assert [storage.bits(float(v), DType.FLOAT16) for v in some] == expected.tolist()
    single = np.array([1, 1.0078125, 3.4e38, 1e-40, 0.1, -2.5], np.float32)
    for value in single:  # which ml_dtypes rounds once
        (expected_bits,) = np.array([value]).astype(numpy_dtype(DType.BFLOAT16)).view(np.uint16)
        assert storage.bits(float(value), DType.BFLOAT16) == expected_bits
    assert storage.bits(1 + 2.0**-8 + 2.0**-40, DType.BFLOAT16) == 0x3F81


# ---------------------------------------------------------------- every pair

NUMBERS = [d for d in DType if d.is_integer] + [DType.FLOAT32, DType.FLOAT64]
CASTS = [(a, b) for a in NUMBERS for b in NUMBERS if a is not b]


def casting(pairs: list[tuple[DType, DType]], width: int) -> str:
    """Each cast in vectors of memory (`y`), and of what is computed, under a mask (`z`)."""
    arrays = [f"x_{d.value}: {d.value}[n]" for d in dict.fromkeys(a for a, _ in pairs)]
    results = [f"{y}_{a.value}_{b.value}" for y in "yz" for a, b in pairs]
    outs = [f"{r}: InOut[{r.split('_')[2]}[n]]" for r in results]
    lines = [f"def casts(n, {', '.join(arrays + outs)}):"]
    for a, b in pairs:
        for y in "yz":
            name, x = f"{y}_{a.value}_{b.value}", f"x_{a.value}[j]"
            value = x if y == "y" else f"{x} + {x}"
            where = f"{name}.c*{width} + {name}.l < n"
            mask = "" if y == "y" else f" and x_{a.value}[{name}.c*{width} + {name}.l] != 3"
            lines += [
                f"    for {name}.c in range((n + {width - 1})//{width}):",
                f"        for {name}.l in vectorized({width}):",
                f'            with block("{name}", j=spatial({name}.c*{width} + {name}.l, n),',
                f"                       where={where}{mask}):",
                f"                {name}[j] = {b.value}({value})",
            ]
    return "\n".join([*lines, ""])


LATER = [pytest.param(part, marks=pytest.mark.thorough) for part in (1, 2, 3)]


@pytest.mark.parametrize("part", [0, *LATER])
def test_casts_between_all_widths(level: Level, part: int) -> None:
    """Integers wrap as in NumPy; floats hold what the integers can."""
    pairs = CASTS[part::4]
    width = Processor(level).lanes(DType.INT16 if part % 2 else DType.FLOAT32)
    kernel = compiled(casting(pairs, width), level)
    for n in (width - 1, 2 * width + 3):
        x = {a: values(a, n) for a, _ in pairs}
        given = {f"x_{a.value}": array for a, array in x.items()}
        made = {f"{y}_{a.value}_{b.value}": np.full(n, 5, b.value) for y in "yz" for a, b in pairs}
        kernel({**given, **made})
        for a, b in pairs:
            name = f"{a.value}_{b.value}"
            np.testing.assert_array_equal(made[f"y_{name}"], x[a].astype(b.value), name)
            doubled = np.where(x[a] != 3, (x[a] + x[a]).astype(b.value), 5)
            np.testing.assert_array_equal(made[f"z_{name}"], doubled, name)


def values(dtype: DType, n: int) -> Array:
    if dtype.is_integer:
        x = integers(dtype, n)
        x[::3] = 3
        return x
    return RNG.integers(0, 60, n).astype(dtype.value) + np.asarray(0.25, dtype.value)


def there_and_back(width: int) -> str:
    """Floats cast to each integer and back, in vectors (`y`) and one by one (`z`)."""
    pairs = [(f, i) for f in ("float32", "float64") for i in NUMBERS if i.is_integer]
    results = {f"{y}_{f}_{i.value}": (f, i.value) for f, i in pairs for y in "yz"}
    arrays = [*(f"x_{f}: {f}[n]" for f in ("float32", "float64"))]
    outs = [f"{name}: Out[{f}[n]]" for name, (f, _) in results.items()]
    lines = [f"def casts(n, {', '.join(arrays + outs)}):"]
    for name, (f, i) in results.items():
        kind = "vectorized" if name.startswith("y") else "range"
        lines += [
            f"    for {name}.c in range((n + {width - 1})//{width}):",
            f"        for {name}.l in {kind}({width}):",
            f'            with block("{name}", j=spatial({name}.c*{width} + {name}.l, n),',
            f"                       where={name}.c*{width} + {name}.l < n):",
            f"                {name}[j] = {f}({i}(x_{f}[j]))",
        ]
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("wide", [False, True])
def test_an_integer_s_zero_has_no_sign(level: Level, wide: bool) -> None:
    """gcc takes a cast there and back for a float that is rounded, where nothing traps."""
    width = Processor(level).lanes(DType.INT16 if wide else DType.FLOAT32)
    source = there_and_back(width)
    kernel = compiled(source, level)
    x = np.resize([-0.5, -0.0, 0.5, 1.5, 0.0, -0.25, 3.75], 2 * width + 3)
    names = re.findall(r"([yz]_float\d\d_u?int\d+):", source)
    made = {name: np.full(len(x), 5, name.split("_")[1]) for name in names}
    kernel({"x_float32": x.astype("f"), "x_float64": x, **made})
    for name, result in made.items():
        np.testing.assert_array_equal(result, np.trunc(x) + 0.0, name)
        assert not np.signbit(result).any(), name
