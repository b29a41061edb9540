"""Tensorized products of matrices beside NumPy: by the instruction, and by what stands for it."""

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from gen import jit
from gen import spec as specs
from gen.errors import TilesmithError
from gen.jit import Compiled, compile_kernel
from gen.lower.target import Level, Target
from gen.pipeline import prover, schedule

from .kernels import WARNINGS, compiled

Array = NDArray[Any]
SPEC = (Path(__file__).parent / "specs" / "dots.yaml").read_text("utf-8")
RNG = np.random.default_rng(11)


@dataclass(frozen=True)
class Case:
    """An intrinsic, the types of a, b and c, how many products a group has, and what computes one
    on v4."""

    intrinsic: str
    a: str
    b: str
    c: str
    group: int
    feature: str
    instruction: str

    def spec(self) -> str:
        text = SPEC.replace('"uint8[', f'"{self.a}[', 1).replace('"int8[k', f'"{self.b}[k', 1)
        text = text.replace("[int32]", f"[{self.c}]").replace("dot_4x_u8s8", self.intrinsic)
        return text.replace("[null, 4]", f"[null, {self.group}]")


MIXED = Case("dot_4x_u8s8", "uint8", "int8", "int32", 4, "avx512vnni", "vpdpbusd")
SIGNED = Case("dot_4x_s8s8", "int8", "int8", "int32", 4, "avx512vnni", "vpdpbusd")
TURNED = Case("dot_4x_s8u8", "int8", "uint8", "int32", 4, "avx512vnni", "vpdpbusd")
HALVES = Case("dot_2x_bf16", "bfloat16", "bfloat16", "float32", 2, "avx512bf16", "vdpbf16ps")
CASES = pytest.mark.parametrize("case", [MIXED, SIGNED, TURNED, HALVES], ids=lambda c: c.intrinsic)


@cache
def kernel(case: Case, level: Level, packed: tuple[str, ...] | None = None) -> Compiled:
    """packed: see `compile_kernel`."""
    spec = specs.loads(case.spec(), "dots.yaml")
    prove = prover(jit.cache_folder() / "proofs")
    (dtypes,) = specs.choices(spec)
    (variant,) = schedule(spec, dtypes, Target(level), prove, prove_steps=lambda plain, state: None)
    return compile_kernel(variant.lowered.kernel, level, packed=packed, flags=WARNINGS)


def numbers(dtype: str, *shape: int) -> Array:
    """Any bytes; of bfloat16, whole numbers so small that sums of their products are exact."""
    if dtype == "bfloat16":
        return RNG.integers(-99, 100, shape).astype(ml_dtypes.bfloat16)
    limits = np.iinfo(dtype)
    drawn = RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    largest = RNG.integers(0, 2, shape).astype(bool)
    return np.where(largest, limits.min if limits.min else limits.max, drawn).astype(dtype)


def features() -> frozenset[str]:
    flags = Path("/proc/cpuinfo").read_text("utf-8")
    return frozenset(f for f in ("avx512vnni", "avx512bf16") if f.replace("2", "2_", 1) in flags)


def names(made: Compiled) -> list[str]:
    table = made.source.split(f"const ts_variant {made.symbol}")[-1]
    return re.findall(r'"(\w+)"}', table)


def runnable(case: Case, level: Level) -> list[str]:
    """The variants that this machine runs."""
    return [n for n in names(kernel(case, level)) if n == "0" or n.removeprefix("0_") in features()]


@CASES
def test_products_are_exact_at_every_edge(case: Case, level: Level) -> None:
    if (level is Level.V2 and case is not SIGNED) or (level is Level.V3 and case is TURNED):
        pytest.skip("other cases have the same forms")
    lanes = Target(level).lanes(specs.loads(SPEC, "").dtypes[0].choices[0])
    ns, ks = (0, 1, lanes, 2 * lanes + 3), (0, 1, 3, 4, 21)
    for variant in runnable(case, level):
        for m, n, k in [(m, n, k) for m in (0, 1, 5) for n in ns for k in ks]:
            a, b, c = numbers(case.a, m, k), numbers(case.b, k, n), np.ones((m, n), case.c)
            kernel(case, level)({"a": a, "b": b, "c": c}, variant=variant)
            np.testing.assert_array_equal(c, a.astype(case.c) @ b.astype(case.c))


def test_sums_wrap_around_as_those_of_loops_do(level: Level) -> None:
    """No product or sum is clipped: 80,001 of the largest products are more than 2^31."""
    if level is Level.V2:
        pytest.skip("the forms that v2 shares with v3")
    a, b = np.full((1, 80_001), 255, np.uint8), np.full((80_001, 1), -128, np.int8)
    for variant in runnable(MIXED, level):
        c = np.zeros((1, 1), np.int32)
        kernel(MIXED, level)({"a": a, "b": b, "c": c}, variant=variant)
        np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))


def test_arrays_with_strides() -> None:
    a, b, c = numbers("uint8", 22, 40), numbers("int8", 40, 70), np.zeros((11, 70), np.int32)
    for variant in runnable(MIXED, Level.V3):
        kernel(MIXED, Level.V3, ())({"a": a[::2, ::2], "b": b[::-2], "c": c}, variant=variant)
        np.testing.assert_array_equal(c, a[::2, ::2].astype(np.int32) @ b[::-2].astype(np.int32))


def test_bfloat16_is_as_accurate_as_float32(level: Level) -> None:
    if level is Level.V2:
        pytest.skip("the forms that v2 shares with v3")
    a, b = (RNG.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((9, 501), (501, 37)))
    exact, most = (f(a).astype(float) @ f(b).astype(float) for f in (np.asarray, np.abs))
    for variant in runnable(HALVES, level):
        c = np.zeros((9, 37), np.float32)
        kernel(HALVES, level)({"a": a, "b": b, "c": c}, variant=variant)
        assert (np.abs(c - exact) <= 503 * np.finfo("f").eps / 2 * most).all()


LOOPS = """\
def dots(k, c: InOut[int32[{n}]], a: uint8[k, 4], b: int8[{n}, 4]):
    with allocate(packed=int8[{n}, 4]):
        for packed.i in range({n}):
            for packed.j in range(4):
                with block("packed", i=spatial(packed.i), j=spatial(packed.j)):
                    packed[i, j] = b[i, j]
        for c.k in range(k):
            for c.i in vectorized({n}, annotations={{'tensorize': 'dot_4x_u8s8'}}):
                for c.j in unrolled(4):
                    with block("c", i=spatial(c.i), l=reduction(c.k), j=reduction(c.j){guard}):
                        c[i] = combine.sum(c[i], int32(a[l, j]) * int32(packed[i, j]))
"""


@pytest.mark.parametrize(
    ("n", "guard", "message"),
    [
        (12, "", "has 12 lanes, no multiple of 8, those of a vector"),
        (8, ", where=c.j < 3", "guards leave out some of each group, everywhere"),
        (8, ", where=c.i + c.j < 9", "guards leave out some of each group, everywhere"),
        (8, ", where=c.i > c.k", "guards leave out some of each group, everywhere"),
    ],
)
def test_a_nest_that_the_intrinsic_never_computes_is_an_error(
    n: int, guard: str, message: str
) -> None:
    with pytest.raises(TilesmithError) as refusal:
        compiled(LOOPS.format(n=n, guard=guard), Level.V3)
    assert "loop 'c.i' is tensorized by 'dot_4x_u8s8', and" in refusal.value.message
    assert message in refusal.value.message


def test_the_first_lanes_of_several_vectors() -> None:
    """An accumulator in memory, of which guards leave out the last lanes."""
    for n in (8, 24):
        kernel_ = compiled(LOOPS.format(n=n, guard=", where=c.i + c.k < 21"), Level.V3)
        assert "ts_dot_u8_i8" in kernel_.source
        for k in (0, 1, 9, 30):
            a, b, c = numbers("uint8", k, 4), numbers("int8", n, 4), np.ones(n, np.int32)
            on = np.add.outer(np.arange(n), np.arange(k)) < 21
            wanted = c + (on * (b.astype(np.int32) @ a.T.astype(np.int32))).sum(1)
            kernel_({"a": a, "b": b, "c": c})
            np.testing.assert_array_equal(c, wanted)


@CASES
def test_the_instruction_is_there_and_runs_where_the_machine_has_it(case: Case) -> None:
    found = kernel(case, Level.V4)
    assert names(found) == [f"0_{case.feature}", "0"]
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(found.library)], capture_output=True, text=True
    ).stdout
    by_function = dict(re.findall(r"<(ts_\w+)[^>]*>:\n((?:.+\n)+)", text))
    own = [body for name, body in by_function.items() if "0_avx512" in name]
    others = [body for name, body in by_function.items() if "0_avx512" not in name]
    assert any(case.instruction in body for body in own)
    assert not any("vpdp" in body or "vdpbf16" in body for body in others)
