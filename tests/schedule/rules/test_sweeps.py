"""The rule for sweeps: what it writes for steps of one block and of several, and that bands of
steps compute what steps one after the other do, to the last bit.
"""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from gen.language import KernelSpec, choices, loads
from gen.language.model import RecipeVariant
from gen.pipeline import load, schedule_to_emit
from gen.poly.prove import prove
from gen.targets.cpu.target import Cpu
from gen.targets.recipes import ByRules
from gen.targets.target import Runnable
from tests.conftest import Golden
from tests.schedule.rules.support import ruled

V3 = Cpu.at("v3")

SPECS = {
    "turns": (  # one block, which writes to the one half and the other in turn
        {"y": "T[2, h, w]"},
        """\
  for t in range(steps):
      for i in range(1, h - 1):
          for j in range(1, w - 1):
              y[(t + 1) % 2, i, j] = (
                  y[t % 2, i - 1, j] + y[t % 2, i + 1, j] + y[t % 2, i, j - 1] + y[t % 2, i, j + 1]
              ) / 4""",
    ),
    "pair": (  # there and back
        {"a": "T[h, w]", "b": "T[h, w]"},
        """\
  for t in range(steps):
      for i in range(1, h - 1):
          for j in range(1, w - 1):
              b[i, j] = (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]) / 4
      for i in range(1, h - 1):
          for j in range(1, w - 1):
              a[i, j] = (b[i - 1, j] + b[i + 1, j] + b[i, j - 1] + b[i, j + 1]) / 4""",
    ),
    "fields": (  # of which each is added to, beside a line of one of them
        {"p": "T[h, w]", "u": "T[h, w]", "v": "T[h, w]"},
        """\
  for t in range(steps):
      for j in w:
          u[0, j] = p[0, j] + 1
      for i in range(1, h):
          for j in w:
              u[i, j] += (p[i - 1, j] - p[i, j]) / 2
      for i in h:
          for j in range(1, w):
              v[i, j] += (p[i, j - 1] - p[i, j]) / 2
      for i in range(h - 1):
          for j in range(w - 1):
              p[i, j] += (u[i, j] - u[i + 1, j] + v[i, j] - v[i, j + 1]) / 2""",
    ),
    "planes": (  # a plane a tile
        {"y": "T[2, d, h, w]"},
        """\
  for t in range(steps):
      for k in range(1, d - 1):
          for i in range(h):
              for j in range(w):
                  y[(t + 1) % 2, k, i, j] = (y[t % 2, k - 1, i, j] + y[t % 2, k + 1, i, j]) / 2""",
    ),
    "far": (  # further than to the tile beside: no bands
        {"y": "T[2, h, w]"},
        """\
  for t in range(steps):
      for i in range(9, h):
          for j in range(w):
              y[(t + 1) % 2, i, j] = y[t % 2, i - 9, j] / 2""",
    ),
    "crossing": (  # from a row that is not near: threads over rows alone
        {"a": "T[h, w]", "b": "T[h, w]"},
        """\
  for t in range(steps):
      for i in range(h):
          for j in range(w):
              b[i, j] = a[h - 1 - i, j] / 2
      for i in range(h):
          for j in range(w):
              a[i, j] = b[i, j] + 1""",
    ),
}
BANDED = ("turns", "pair", "fields", "planes")


def spec(name: str) -> KernelSpec:
    arrays, compute = SPECS[name]
    lines = "".join(f'  {a}: {{type: "{t}", intent: inout}}\n' for a, t in arrays.items())
    shapes = ",".join(f"({t[2:-1].replace(' ', '')})" for t in arrays.values())
    return loads(
        f"tilesmith: 1\nkernel: {name}\ndoc: d\nsignature: {shapes}->{shapes}\n"
        f"dtypes: {{T: [float32]}}\narguments:\n{lines}"
        "scalars:\n  steps: {type: int64, default: 4}\nconstraints: [h >= 1]\n"
        f"compute: |\n{compute}\n",
        f"{name}.yaml",
    )


@cache
def chosen(name: str) -> ByRules:
    return ruled(spec(name), V3)


@pytest.mark.parametrize("name", SPECS)
def test_recipe(name: str, golden: Golden) -> None:
    text = chosen(name).text
    assert ("$cache" in text) is (name in BANDED)
    golden(f"rules/sweeps_{name}.yaml", text)


# Around vectors, tiles of rows, and bands of steps.
STEPS = (0, 1, 2, 7, 16, 17, 35)
ROWS = (1, 2, 3, 8, 9, 10, 19, 40)
LINES = (0, 1, 2, 3, 9, 17, 18, 40)


@pytest.mark.parametrize("name", SPECS)
def test_right(name: str) -> None:
    """Each variant runs for all sizes here; the plain schedule says what is right."""
    recipe = chosen(name).recipe
    plain = kernel(name, replace(recipe.variants[-1], steps=()))
    assert len(recipe.variants) == 1 + (name in BANDED)
    rng = np.random.default_rng(5)
    for variant in recipe.variants:
        swept = kernel(name, replace(variant, when=None))
        for _ in range(60):
            sizes = {"h": rng.choice(ROWS), "w": rng.choice(LINES), "d": rng.choice(ROWS)}
            dims = {dim: int(sizes[dim]) for dim in spec(name).dims}
            steps = {"steps": int(rng.choice(STEPS))}
            before = {a: rng.random(shape(t, dims), "f") for a, t in SPECS[name][0].items()}
            wanted, got = ({a: x.copy() for a, x in before.items()} for _ in range(2))
            plain.bound(wanted, dims, steps)()
            swept.bound(got, dims, steps, threads=3)()
            for array, values in wanted.items():
                np.testing.assert_array_equal(got[array], values, f"{array} {dims} {steps}")


def kernel(name: str, variant: RecipeVariant) -> Runnable:
    given = replace(spec(name), recipes=(replace(chosen(name).recipe, variants=(variant,)),))
    (dtypes,) = choices(given)
    return load(given, dtypes, schedule_to_emit(given, dtypes, V3, prove), V3)


def shape(declared: str, dims: Mapping[str, int]) -> list[int]:
    return [dims.get(axis, 2) for axis in declared[2:-1].split(", ")]


@pytest.mark.parametrize(
    ("shape", "compute", "reason"),
    [
        ("h", "y[i] = y[i] / 2", "no loop over steps is around its own"),
        (
            "h,w,2",
            "for i in range(1, h):\n      for j in w:\n          y[i, j, k] = y[i - 1, j, k]",
            "loop 'y.i' goes along what it writes",
        ),
        (
            "h",
            "for t in range(3):\n      for i in h:\n          y[i] = y[i] / 2",
            "it has no rows",
        ),
        (
            "h,h",
            "for t in range(3):\n      for i in range(h):\n          for j in range(h):\n"
            "              y[i, j] = y[j, i] / 2",
            "it walks 'y' along another axis than its last",
        ),
        (
            "h,w",
            "for t in range(3):\n      for i in h:\n          for j in w:\n"
            "              y[i, j] = sum(y[i, k] for k in w)",
            "block 'y_sum' has no loops of its own in 'y_sum.t'",
        ),
    ],
)
def test_declines(shape: str, compute: str, reason: str) -> None:
    given = loads(
        f"tilesmith: 1\nkernel: k\ndoc: d\nsignature: ({shape})->({shape})\n"
        f'dtypes: {{T: [float32]}}\narguments: {{y: {{type: "T[{shape}]", intent: inout}}}}\n'
        f"compute: |\n  {compute}\n",
        "k.yaml",
    )
    (block, *_) = ruled(given, V3).chosen[0].taken
    assert dict(block.declined)["sweeps"] == reason


def test_many_blocks_have_no_bands() -> None:
    """Of nine, three steps would be in the caches at once, and the proof takes long."""
    step = """
      for i in range(1, n):
          for j in range(n):
              {to}[i, j] = {of}[i - 1, j]"""
    turns = ("a", "b") * 5
    steps = "".join(step.format(of=of, to=to) for of, to in itertools.pairwise(turns))
    given = loads(
        "tilesmith: 1\nkernel: k\ndoc: d\nsignature: (n,n),(n,n)->(n,n),(n,n)\n"
        "dtypes: {T: [float32]}\narguments:\n"
        '  a: {type: "T[n, n]", intent: inout}\n  b: {type: "T[n, n]", intent: inout}\n'
        "scalars:\n  steps: {type: int64, default: 4}\n"
        f"compute: |\n  for t in range(steps):{steps}\n",
        "k.yaml",
    )
    found = ruled(given, V3)
    assert {taken.rule for taken in found.chosen[0].taken} == {"sweeps"}
    assert "$cache" not in found.text
