"""Tensorized products of matrices beside NumPy: by the instruction, and by what stands for it."""

import ctypes
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from gen import language as specs
from gen.cache import cache_folder
from gen.errors import TilesmithError
from gen.pipeline import schedule
from gen.poly.cache import prover
from gen.targets.c.library import Compiled
from gen.targets.cpu.emit import emit_file, emit_kernel
from gen.targets.cpu.jit import compile_kernel
from gen.targets.cpu.levels import Level, Processor
from gen.targets.cpu.target import Cpu
from tests.conftest import Golden

from .conftest import has
from .kernels import WARNINGS, compiled, finished, lowered

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
HALVES = Case("dot_2x_bf16", "bfloat16", "bfloat16", "float32", 2, "avx512bf16", "vdpbf16ps")


def case_at(case: Case, level: Level, *marks: pytest.MarkDecorator) -> Any:
    return pytest.param(case, level, id=f"{case.intrinsic}-{level.value}", marks=marks)


OFTEN = ((MIXED, Level.V4), (SIGNED, Level.V3), (HALVES, Level.V4))
SELDOM = [(c, v) for c in (MIXED, SIGNED, HALVES) for v in Level if v is not Level.NEON]
CASES = pytest.mark.parametrize(
    ("case", "level"),
    [case_at(*c) for c in OFTEN]
    + [case_at(*c, pytest.mark.thorough) for c in SELDOM if c not in OFTEN],
)


@cache
def kernel(case: Case, level: Level, packed: tuple[str, ...] | None = None) -> Compiled:
    """packed: see `compile_kernel`."""
    spec = specs.loads(case.spec(), "dots.yaml")
    prove = prover(cache_folder() / "proofs")
    (dtypes,) = specs.choices(spec)
    (variant,) = schedule(spec, dtypes, Cpu(level), prove, each_step=False)
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
    if not has(level):
        pytest.skip(f"this machine has no {level.value}")
    return [n for n in names(kernel(case, level)) if n == "0" or n.removeprefix("0_") in features()]


@CASES
def test_products_are_exact_at_every_edge(case: Case, level: Level) -> None:
    lanes = Processor(level).lanes(specs.loads(SPEC, "").dtypes[0].choices[0])
    ns, ks = (0, 1, lanes, 2 * lanes + 3), (0, 1, 3, 4, 21)
    for variant in runnable(case, level):
        for m, n, k in [(m, n, k) for m in (0, 1, 5) for n in ns for k in ks]:
            a, b, c = numbers(case.a, m, k), numbers(case.b, k, n), np.ones((m, n), case.c)
            kernel(case, level)({"a": a, "b": b, "c": c}, variant=variant)
            np.testing.assert_array_equal(c, a.astype(case.c) @ b.astype(case.c))


def test_sums_wrap_around_as_those_of_loops_do() -> None:
    """No product or sum is clipped: 80,001 of the largest products are more than 2^31."""
    a, b = np.full((1, 80_001), 255, np.uint8), np.full((80_001, 1), -128, np.int8)
    for variant in runnable(MIXED, Level.V4):
        c = np.zeros((1, 1), np.int32)
        kernel(MIXED, Level.V4)({"a": a, "b": b, "c": c}, variant=variant)
        np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))


def test_a_call_takes_the_instruction_where_the_processor_has_it() -> None:
    made, first = kernel(MIXED, Level.V4), runnable(MIXED, Level.V4)[0]
    library = ctypes.CDLL(str(made.library))
    for feature in ("avx512vnni", "avx512bf16"):
        assert bool(library[f"ts_cpu_has_{feature}"]() & 1) is (feature in features())
    assert first == ("0_avx512vnni" if "avx512vnni" in features() else "0")
    a, b, c = numbers("uint8", 3, 9), numbers("int8", 9, 35), np.zeros((3, 35), np.int32)
    made({"a": a, "b": b, "c": c})
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))


def test_arrays_with_strides() -> None:
    a, b, c = numbers("uint8", 22, 40), numbers("int8", 40, 70), np.zeros((11, 70), np.int32)
    for variant in runnable(MIXED, Level.V3):
        kernel(MIXED, Level.V3, ())({"a": a[::2, ::2], "b": b[::-2], "c": c}, variant=variant)
        np.testing.assert_array_equal(c, a[::2, ::2].astype(np.int32) @ b[::-2].astype(np.int32))


def test_bfloat16_is_as_accurate_as_float32() -> None:
    a, b = (RNG.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((9, 501), (501, 37)))
    exact, most = (f(a).astype(float) @ f(b).astype(float) for f in (np.asarray, np.abs))
    for variant in runnable(HALVES, Level.V4):
        c = np.zeros((9, 37), np.float32)
        kernel(HALVES, Level.V4)({"a": a, "b": b, "c": c}, variant=variant)
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


@pytest.mark.parametrize(
    ("intrinsic", "a_type", "b_type"),
    [("dot_4x_u8s8", "uint8", "int8"), ("dot_4x_s8u8", "int8", "uint8")],
)
def test_the_first_lanes_of_several_vectors(intrinsic: str, a_type: str, b_type: str) -> None:
    """An accumulator in memory, of which guards leave out the last lanes."""
    types = {"uint8[k": f"{a_type}[k", "int8[{": f"{b_type}[{{", "dot_4x_u8s8": intrinsic}
    text = re.sub("|".join(map(re.escape, types)), lambda found: types[found[0]], LOOPS)
    for n in (8, 24):
        kernel_ = compiled(text.format(n=n, guard=", where=c.i + c.k < 21"), Level.V3)
        assert "ts_dot_u8_i8" in kernel_.source
        for k in (0, 1, 9, 30):
            a, b, c = numbers(a_type, k, 4), numbers(b_type, n, 4), np.ones(n, np.int32)
            on = np.add.outer(np.arange(n), np.arange(k)) < 21
            wanted = c + (on * (b.astype(np.int32) @ a.T.astype(np.int32))).sum(1)
            kernel_({"a": a, "b": b, "c": c})
            np.testing.assert_array_equal(c, wanted)


def test_golden(golden: Golden) -> None:
    kernel_ = lowered(LOOPS.format(n=16, guard=""), Level.V4)
    part = emit_kernel("dots", "int32", [finished(kernel_, Level.V4)], Level.V4, packed=["a"])
    golden("targets/dots.v4.c", emit_file("dots", [part], Level.V4))


@pytest.mark.parametrize("case", [MIXED, HALVES], ids=lambda c: c.intrinsic)
def test_the_instruction_is_there(case: Case) -> None:
    if shutil.which("objdump") is None or not has(Level.V4):
        pytest.skip("no objdump, or no v4")
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
