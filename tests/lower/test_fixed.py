"""The plain schedule under a variant's condition, against which all is proved."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from gen import language as specs
from gen.errors import ScheduleError
from gen.ir.algebra import add, sub
from gen.ir.index.linear import constant
from gen.ir.interpret.interp import run
from gen.ir.nodes import Loop, LoopKind
from gen.ir.walk import loops
from gen.language.model import KernelSpec
from gen.lower import specialize as fixed
from gen.lower.variants import Variant
from gen.pipeline import load, schedule
from gen.poly.prove import prove
from gen.poly.witness import Refused
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

CONV2D = Path(__file__).parents[2] / "kernels_spec" / "conv2d.yaml"
V3 = Cpu(Level.V3)

WINDOW = """
tilesmith: 1
kernel: correlate2d
doc: The sum of w's products with x, at each place where w lies within x.
signature: (h,n),(kh,kw)->(h - kh + 1,n - kw + 1)
dtypes: {T: [float32]}
arguments:
  x: {type: "T[m, h, n]"}
  w: {type: "T[kh, kw]"}
  y: {type: "T[m, h - kh + 1, n - kw + 1]", intent: out}
constraints: [1 <= kh <= h, 1 <= kw <= n]
compute: |
  y[b, i, j] = sum(w[p, q] * x[b, i + p, j + q] for p in kh for q in kw)
recipes:
  - target: cpu
    variants:
      - when: WHEN
        steps:
          - split: {loop: y.j, factors: [null, $lanes], as: [y.j0, y.j1]}
          - reorder: {loops: [y.j0, y.p, y.q, y.j1]}
          - cache_write: {block: y, at: y.j0, scope: register, as: tile}
          - decompose_reduction: {block: y, loop: y.p}
          - vectorize: {loop: y.init.j1, width: $lanes}
          - vectorize: {loop: y.j1, width: $lanes}
          - vectorize: {loop: tile.j, width: $lanes}
          - unroll: {loop: y.p}
          - unroll: {loop: y.q}
      - steps: []
"""

POOL = """
tilesmith: 1
kernel: pool
doc: The sum of each window of `size` pixels, `stride` apart; nothing is `padding` pixels outside.
signature: (n)->(count)
dtypes: {T: [float32]}
arguments:
  x: {type: "T[m, n]"}
  y: {type: "T[m, count]", intent: out}
scalars:
  size: {type: int64, default: 3}
  stride: {type: int64, default: 2}
  padding: {type: int64, default: 1}
sizes:
  window: size
  twice: window * stride
  count: (n + 2 * padding - size) // stride + 1
constraints: [size >= 1, stride >= 1, padding >= 0, n >= 1]
compute: |
  y[i, j] = sum(x[i, min(max(j * stride + k - padding, 0), n - 1)]
                if 0 <= j * stride + k - padding < n else 0
                for k in window) + sum(x[i, min(k, n - 1)] for k in twice)
recipes:
  - target: cpu
    variants:
      - when: size == 3 and stride == 2
        steps:
          - unroll: {loop: y_sum.k}
          - unroll: {loop: y_sum_1.k}
      - steps: []
"""


def spec(text: str, when: str = "") -> KernelSpec:
    return specs.loads(text.replace("WHEN", when), "k.yaml")


def first(loaded: KernelSpec) -> Variant:
    return schedule(loaded, specs.choices(loaded)[0], V3, prove)[0]


def _extent(loop: Loop) -> int | None:
    return constant(sub(loop.upper, loop.lower))


def test_what_a_condition_settles_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = specs.load(CONV2D)
    plain = specs.build(spec, specs.choices(spec)[0])
    condition = next(v.when for r in spec.recipes for v in r.variants if v.when is not None)
    fixed.where(plain, condition, spec.sizes)
    monkeypatch.setattr(fixed, "resolve", lambda index, facts: add(index, 1))
    with pytest.raises(
        Refused, match=r"block 'patch' is emitted with `phase.* \+ 1.*` where `phase"
    ):
        fixed.where(plain, condition, spec.sizes)


@pytest.mark.parametrize("when", ["kh == 2 and kw == 3", "3 == kw and h >= 2 and 2 == kh"])
def test_a_dim_that_a_condition_fixes_is_a_number(when: str) -> None:
    """Loops over it are unrolled, and the variant computes what the spec says there."""
    loaded = spec(WINDOW, when)
    variant = first(loaded)
    start = {loop.var: loop for loop in loops(variant.start.kernel.body)}
    assert (_extent(start["y.p"]), _extent(start["y.q"])) == (2, 3)
    unrolled = [x for x in loops(variant.scheduled.kernel.body) if x.kind is LoopKind.UNROLLED]
    assert [loop.var for loop in unrolled] == ["y.p", "y.q"]
    plain = specs.build(loaded, specs.choices(loaded)[0])
    for m, h, n in product((1, 2), (2, 5), (3, 10, 19)):
        dims = {"m": m, "h": h, "n": n, "kh": 2, "kw": 3}
        arrays = _arrays(dims)
        wanted = run(plain, arrays, {}, dims=dims)["y"]
        for kernel in (variant.start.kernel, variant.scheduled.kernel, variant.lowered.kernel):
            np.testing.assert_array_equal(run(kernel, arrays, {}, dims=dims)["y"], wanted)


def _arrays(dims: dict[str, int]) -> dict[str, np.ndarray]:
    """Small integers, so that sums in any order are equal."""
    rng = np.random.default_rng(2)
    shapes = {"x": [dims[d] for d in ("m", "h", "n")], "w": [dims[d] for d in ("kh", "kw")]}
    return {name: rng.integers(-8, 9, s).astype(np.float32) for name, s in shapes.items()}


def test_calls_take_the_variant_where_its_condition_holds_alone() -> None:
    """Compiled, by windows of the size that it is for, and of all others around it."""
    loaded = spec(WINDOW, "kh == 2 and kw == 3")
    dtypes = specs.choices(loaded)[0]
    target = Cpu.at(Cpu.here()[-1])
    kernel = load(loaded, dtypes, schedule(loaded, dtypes, target, prove), target)
    plain = specs.build(loaded, dtypes)
    for kh, kw in product((1, 2, 3), (2, 3, 4)):
        dims = {"m": 2, "h": 4, "n": 21, "kh": kh, "kw": kw}
        arrays = _arrays(dims)
        wanted = run(plain, arrays, {}, dims=dims)["y"]
        arrays["y"] = np.empty_like(wanted)
        assert kernel.variant(arrays, dims) == ("0" if (kh, kw) == (2, 3) else "plain")
        kernel(arrays, dims)
        np.testing.assert_array_equal(arrays["y"], wanted)


def test_sizes_that_follow_are_numbers_too() -> None:
    """The window is `size`, and so has 3 elements; `twice`, which is not affine, is 6. Positions
    are affine.
    """
    loaded = spec(POOL)
    variant = first(loaded)
    found = [loop for loop in loops(variant.lowered.kernel.body) if loop.var.endswith(".k")]
    assert [_extent(loop) for loop in found] == [3, 6]
    plain = specs.build(loaded, specs.choices(loaded)[0])
    for n, padding in product((1, 2, 3, 8), (0, 1, 2)):
        count = (n + 2 * padding - 3) // 2 + 1
        if count < 0:
            continue
        dims = {"m": 2, "n": n, "window": 3, "twice": 6, "count": count}
        arrays = {"x": np.arange(2.0 * n, dtype=np.float32).reshape(2, n)}
        scalars = {"size": 3, "stride": 2, "padding": padding}
        wanted, got = (
            run(kernel, arrays, scalars, dims=dims)["y"]
            for kernel in (plain, variant.lowered.kernel)
        )
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("when", "loop", "hint"),
    [
        ("kw <= 3 and kh == 2", "y.q", "kw == 3"),
        ("kw == 3 and kh >= 2", "y.p", "kh == 3"),
        ("kh == 2 or kw == 3", "y.p", "kh == 3"),
        ("kh == kw", "y.p", "kh == 3"),
    ],
)
def test_a_dim_that_no_condition_fixes(when: str, loop: str, hint: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        first(spec(WINDOW, when))
    reason = f"unroll (loop {loop}): the extent of loop '{loop}' is not constant; give a factor"
    assert refusal.value.message == reason
    assert refusal.value.hint == f"`when: {hint}` makes a variant in which it is a number"


def test_no_condition_makes_a_loop_over_data_a_number() -> None:
    """Nor one whose bounds are other loops."""
    text = WINDOW.replace("for q in kw", "for q in range(min(kw, p + 1))")
    with pytest.raises(ScheduleError) as refusal:
        first(spec(text, "kh == 2 and kw == 3"))
    assert "the extent of loop 'y.q' is not constant" in refusal.value.message
    assert refusal.value.hint is None


def test_a_scalar_that_no_condition_fixes() -> None:
    text = POOL.replace("for k in window", "for k in range(size)").replace("size == 3", "size >= 3")
    with pytest.raises(ScheduleError) as refusal:
        first(spec(text))
    assert refusal.value.hint == "`when: size == 3` makes a variant in which it is a number"
