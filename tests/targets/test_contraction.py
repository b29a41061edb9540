"""`contraction: none`: products that are added are rounded by themselves, in all code alike."""

import re
from pathlib import Path

import numpy as np
import pytest

from gen import compile as compiled
from gen import language as specs
from gen.errors import TilesmithError
from gen.ir.interpret.interp import run
from gen.ir.types import DType
from gen.language import Dtypes
from gen.language.model import KernelSpec
from gen.lower.variants import limits_of
from gen.pipeline import made, schedule
from gen.poly.prove import prove
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.cuda.target import Cuda
from gen.targets.target import Target, joined

ROOT = Path(__file__).parents[2]
SPEC = """\
tilesmith: 1
kernel: sums
doc: Products that are added, by the lane, in sums, and in a sum of one's own.
signature: (m,n),(m,n)->(m,n),(n),()
dtypes: {T: [float32, complex128]}
arguments:
  x: {type: "T[m, n]"}
  z: {type: "T[m, n]"}
  y: {type: "T[m, n]", intent: out}
  total: {type: "T[n]", intent: out}
  first: {type: "T[]", intent: out}
scalars: {a: {type: T, default: 0.3}}
constraints: [n >= 1]
contraction: none
compute: |
  y[i, j] = a * x[i, j] + z[i, j]
  total[j] = sum(x[i, j] * z[i, j] for i in m)
  first = sum(x[i, 0] * z[i, 0] for i in m)
recipes:
  - target: cpu
    variants:
      - steps:
          - vectorize: {loop: y.j, width: $lanes}
          - reorder: {loops: [total.i, total.j]}
          - decompose_reduction: {block: total, loop: total.i}
          - vectorize: {loop: total.j, width: $lanes}
"""
FLOAT32 = SPEC.replace("[float32, complex128]", "[float32]")
FUSED = FLOAT32.replace("contraction: none\n", "")


def spec_of(text: str) -> tuple[KernelSpec, Dtypes]:
    spec = specs.loads(text, "sums.yaml")
    return spec, specs.choices(spec)[-1]


def source(text: str, target: Target) -> str:
    spec, dtypes = spec_of(text)
    return joined(made(spec, dtypes, target, prove)[1])


def drawn(dtype: str, n: int = 35) -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    x, z = random.standard_normal((2, 5, n, 2)).view("c16")[..., 0]
    return (
        {"x": x, "z": z} if dtype == "c16" else {"x": x.real.astype("f"), "z": z.real.astype("f")}
    )


def expected(x: np.ndarray, z: np.ndarray) -> dict[str, np.ndarray]:
    """Each operation rounded, the terms in the order of i."""
    total = np.zeros_like(x[0])
    for row in x * z:
        total = total + row
    return {"y": x.dtype.type(0.3) * x + z, "total": total, "first": total[0]}


@pytest.mark.parametrize("n", [1, 35])
def test_results_have_the_bits_of_each_operation_rounded(level: Level, n: int) -> None:
    """In whole vectors, in a tail and in scalar code; by the interpreter, too."""
    spec, dtypes = spec_of(FLOAT32)
    given = drawn("f", n)
    want = expected(**given)
    variants, sources = made(spec, dtypes, Cpu(level), prove)
    signature = specs.build(spec, dtypes)
    function = Cpu(level).load(signature, "float32", sources, limits_of(variants), {"a": 0.3})
    got = {**given, **{name: np.zeros_like(v) for name, v in want.items()}}
    function(got, {"m": 5, "n": n})
    interpreted = run(variants[0].lowered.kernel, given, {"a": 0.3}, dims={"m": 5, "n": n})
    for name, value in want.items():
        np.testing.assert_array_equal(got[name], value, name)
        np.testing.assert_array_equal(interpreted[name], value, name)


def test_what_is_compiled_at_once_has_them_too() -> None:
    given = drawn("f")
    want = expected(**given)
    for name, got in zip(want, compiled(FLOAT32)(*given.values()), strict=True):
        np.testing.assert_array_equal(got, want[name])
    fused = compiled(FUSED)(*given.values())
    if Cpu.here() != (Level.V2,):  # which has no fused multiply-add
        assert any((got != want[name]).any() for name, got in zip(want, fused, strict=True))


@pytest.mark.parametrize("target", [*map(Cpu, Level), Cuda.at("sm_75")], ids=lambda t: t.level)
def test_code_has_no_fused_multiply_add(target: Target) -> None:
    text = source(SPEC if target.has_code_for(DType.COMPLEX128) else FLOAT32, target)
    assert not re.search(r"\w*fma\w*\(", text)
    assert len(re.findall(r"ts_fma_\w+\(", source(FUSED, target))) >= 3


def test_compilers_are_told_to_fuse_nothing_themselves() -> None:
    """Every command line by which generated code is compiled."""
    for name, flag in {
        "meson.build": "'-ffp-contract=off'",
        "gen/project/templates/meson.build": "'-ffp-contract=off'",
        "gen/targets/c/library.py": '"-ffp-contract=off"',
        "gen/targets/cuda/emulator/library.py": '"-ffp-contract=off"',
        "gen/targets/cuda/compilers.py": '"--fmad=false"',
        "gen/targets/cpu/runtime/ts_gpu.pxi": '"--fmad=false"',
    }.items():
        assert flag in (ROOT / name).read_text(encoding="utf-8"), name


def test_an_instruction_that_fuses_is_refused() -> None:
    spec, dtypes = spec_of("""\
tilesmith: 1
kernel: dots
doc: Products of narrow numbers.
signature: (k),(n,k),(n)->(n)
dtypes: {T: [bfloat16]}
arguments:
  a: {type: "T[k]"}
  b: {type: "T[n, k]"}
  c: {type: "float32[n]", intent: inout}
contraction: none
compute: |
  for i in range(n):
      for j in range(k):
          c[i] += float32(a[j]) * float32(b[i, j])
recipes:
  - target: cpu
    variants:
      - steps:
          - split: {loop: c.j, factors: [null, 2]}
          - split: {loop: c.i, factors: [null, 16]}
          - reorder: {loops: [c.i_0, c.j_0, c.i_1, c.j_1]}
          - tensorize: {loop: c.i_1, intrinsic: dot_2x_bf16}
""")
    with pytest.raises(TilesmithError) as raised:
        schedule(spec, dtypes, Cpu(Level.V3), prove, each_step=False)
    assert str(raised.value).splitlines()[0] == (
        "sums.yaml:22:13: error: tensorize (loop c.i_1): 'dot_2x_bf16' adds products fused, and the"
        " spec says contraction: none"
    )


def test_a_word_that_it_is_not() -> None:
    with pytest.raises(TilesmithError) as raised:
        specs.loads(SPEC.replace("contraction: none", "contraction: off"), "sums.yaml")
    assert str(raised.value).startswith("sums.yaml:14:14: error: ")
    assert "fused" in str(raised.value) and "none" in str(raised.value)
