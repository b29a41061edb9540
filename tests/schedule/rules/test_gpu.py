"""Rules for GPUs: the recipe for each form that they take, and that it is right under the emulator.

A golden has the recipe, and why the rules before declined. Each recipe is proved as it is chosen.
What runs, runs at sizes around tiles and threads: with none, with one, and with two of them.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from gen.display.choices import with_story, written
from gen.language import choices
from gen.language.model import KernelSpec
from gen.language.reader import loads
from gen.lower.variants import Plain
from gen.targets.cuda.target import Cuda
from gen.targets.recipes import ByRules
from gen.targets.registry import TARGETS
from gen.trial.comparison import tried
from gen.trial.inputs import random_arrays
from gen.trial.plain import Reference
from gen.trial.run import compiled
from tests.conftest import Golden
from tests.targets.cuda.made import ROOT, TRIED

from .support import ruled

GPU = Cuda.at("sm_90")

SPECS = {
    "recurrence": """\
signature: (t,n)->(t,n)
arguments: {x: {type: "T[t, n]"}, y: {type: "T[t, n]", intent: out}}
compute: |
  for s in range(t):
      for i in range(n):
          y[s, i] = x[s, i] + (0 if s == 0 else 0.5 * y[max(s - 1, 0), n - 1 - i])
""",
    "scan": """\
signature: (n)->(n)
arguments: {x: {type: "T[n]"}, y: {type: "T[n]", intent: out}}
compute: |
  for i in range(n):
      y[i] = x[i] + (0 if i == 0 else 0.5 * y[max(i - 1, 0)])
""",
    "steps": """\
signature: (n)->(n)
arguments: {x: {type: "T[n]"}, y: {type: "T[n]", intent: out}}
temporaries: {u: "T[n]"}
compute: |
  for i in range(n):
      u[i] = x[i]
  for s in range(3):
      total = sum(u[i] for i in n) / (n + 1)
      for i in range(n):
          u[i] = 0.5 * u[i] + total
  y[i] = u[i]
""",
    "own_line": """\
signature: (m,n)->(m)
arguments: {x: {type: "T[m, n]"}, y: {type: "T[m]", intent: out}}
temporaries: {u: "T[n]"}
compute: |
  for i in range(m):
      for j in range(n):
          u[j] = x[i, j] if j == 0 else 0.5 * u[max(j - 1, 0)] + x[i, j]
      y[i] = u[n - 1] + u[0]
constraints: [n >= 1]
""",
    "triangle": """\
signature: (n)->(n,n)
arguments: {x: {type: "T[n]"}, y: {type: "T[n, n]", intent: out}}
compute: |
  for i in range(n):
      for j in range(i):
          y[i, j] = x[i] * x[j]
      for j in range(i, n):
          y[i, j] = x[j]
""",
    "triangle_sum": """\
signature: (m,m),(m)->(m)
arguments: {x: {type: "T[m, m]"}, v: {type: "T[m]"}, y: {type: "T[m]", intent: out}}
compute: |
  y[i] = v[i] - sum(x[i, k] for k in range(i + 1))
""",
    "columns": """\
signature: (m,n)->(n)
arguments: {x: {type: "T[m, n]"}, y: {type: "T[n]", intent: out}}
compute: "y[j] = sum(abs(x[i, j]) for i in m)"
""",
    "turned": """\
signature: (s,m,n)->(n,s,m)
arguments: {x: {type: "T[s, m, n]"}, y: {type: "T[n, s, m]", intent: out}}
compute: "y[j, t, i] = x[t, i, j]"
""",
    "long_rows": """\
signature: (m,n)->(m)
arguments: {x: {type: "T[m, n]"}, y: {type: "T[m]", intent: out}}
compute: "y[i] = max(abs(x[i, j]) for j in n)"
""",
    "weighted": """\
signature: (m,n)->(m)
arguments: {x: {type: "T[m, n]"}, y: {type: "T[m]", intent: out}}
temporaries: {w: "T[n]"}
compute: |
  for j in range(n):
      w[j] = exp(-T(j) / 100)
  total = sum(w[j] for j in n)
  y[i] = sum(x[i, j] * w[j] for j in n) / total
""",
    "spread": """\
signature: (n)->()
arguments: {x: {type: "T[m, n]"}, y: {type: "T[m]", intent: out}}
compute: |
  mean[i] = sum(x[i, j] for j in n) / (n + 1)
  y[i] = sum((x[i, j] - mean[i]) ** 2 for j in n) / (n + 1)
""",
    "deep": """\
signature: (m,n)->(n)
arguments: {x: {type: "T[m, n]"}, y: {type: "T[n]", intent: out}}
compute: |
  peak[j] = max(x[i, j] for i in m)
  y[j] = sum(x[i, j] - peak[j] for i in m) / m
constraints: [m >= 1]
""",
    "around": """\
signature: (c,h,w)->(c,h,w)
arguments: {x: {type: "T[c, h, w]"}, y: {type: "T[c, h, w]", intent: out}}
compute: |
  for a in range(c):
      for i in range(h):
          for j in range(w):
              down[a, i, j] = x[a, max(i - 1, 0), j] + x[a, i, j] + x[a, min(i + 1, h - 1), j]
  for a in range(c):
      for i in range(h):
          for j in range(w):
              y[a, i, j] = down[a, i, max(j - 1, 0)] - 0.5 * down[a, i, min(j + 1, w - 1)]
""",
    "softmax": """\
signature: (n)->(n)
arguments: {x: {type: "T[m, n]"}, y: {type: "T[m, n]", intent: out}}
compute: |
  peak[i]  = max(x[i, j] for j in n)
  e[i, j]  = exp(x[i, j] - peak[i])
  total[i] = sum(e[i, j] for j in n)
  y[i, j]  = e[i, j] / total[i]
""",
    "groups": """\
signature: (g,n)->(g,n)
arguments: {x: {type: "T[m, g, n]"}, y: {type: "T[m, g, n]", intent: out}}
compute: |
  most[i, a] = max(abs(x[i, a, j]) for j in n)
  y[i, a, j] = x[i, a, j] / (1 + most[i, a])
""",
    "padded": """\
signature: (n),(3)->(n)
arguments: {x: {type: "T[n]"}, w: {type: "T[3]"}, y: {type: "T[n]", intent: out}}
compute: |
  for i in range(n + 2):
      wide[i] = x[min(max(i - 1, 0), n - 1)] if 1 <= i < n + 1 else 0
  for i in range(n):
      total[i] = sum(w[l] * wide[min(max(i + l, 0), n + 1)] for l in range(3))
  y[i] = total[i] / (1 + i)
constraints: [n >= 1]
""",
    "prefix": """\
signature: (n)->(n)
arguments: {x: {type: "T[m, n]"}, y: {type: "T[m, n]", intent: out}}
compute: "y[i, j] = sum(x[i, k] for k in range(j + 1))"
""",
    "dense": """\
signature: (s,m,k),(n,k),(n)->(s,m,n)
arguments:
  x: {type: "T[s, m, k]"}
  w: {type: "T[n, k]"}
  b: {type: "T[n]"}
  y: {type: "T[s, m, n]", intent: out}
compute: |
  z[t, i, j] = sum(x[t, i, l] * w[j, l] for l in k)
  y[t, i, j] = tanh(z[t, i, j] + b[j])
""",
}

SIZES: Mapping[str, tuple[dict[str, int], ...]] = {
    "recurrence": ({"t": 3, "n": 5}, {"t": 1, "n": 257}, {"t": 0, "n": 3}),
    "scan": ({"n": 0}, {"n": 1}, {"n": 40}),
    "steps": ({"n": 0}, {"n": 1}, {"n": 300}),
    "own_line": ({"m": 0, "n": 1}, {"m": 33, "n": 70}),
    "triangle": ({"n": 0}, {"n": 1}, {"n": 35}),
    "triangle_sum": ({"m": 0}, {"m": 1}, {"m": 35}, {"m": 600}),
    "columns": ({"m": 0, "n": 3}, {"m": 1, "n": 33}, {"m": 35, "n": 40}),
    "turned": ({"s": 2, "m": 0, "n": 3}, {"s": 2, "m": 33, "n": 40}),
    "long_rows": ({"m": 2, "n": 1}, {"m": 7, "n": 65}, {"m": 1, "n": 65537}),
    "weighted": ({"m": 0, "n": 3}, {"m": 3, "n": 40}),
    "spread": ({"m": 0, "n": 3}, {"m": 9, "n": 33}, {"m": 2, "n": 513}, {"m": 1, "n": 65537}),
    "deep": ({"m": 1, "n": 1}, {"m": 33, "n": 34}, {"m": 1025, "n": 3}),
    "around": (
        {"c": 2, "h": 0, "w": 3},
        {"c": 1, "h": 1, "w": 70},
        {"c": 3, "h": 33, "w": 31},
        {"c": 1, "h": 65, "w": 33},
    ),
    "softmax": ({"m": 2, "n": 0}, {"m": 1, "n": 1}, {"m": 2, "n": 300}),
    "groups": ({"m": 2, "g": 0, "n": 3}, {"m": 34, "g": 3, "n": 40}),
    "padded": ({"n": 1}, {"n": 300}),
    "prefix": ({"m": 2, "n": 0}, {"m": 3, "n": 100}),
    "dense": (
        {"s": 2, "m": 0, "k": 2, "n": 3},
        {"s": 1, "m": 33, "k": 0, "n": 33},
        {"s": 1, "m": 33, "k": 9, "n": 33},
        {"s": 2, "m": 65, "k": 33, "n": 66},
        {"s": 1, "m": 64, "k": 32, "n": 64},
    ),
}


# What rules once failed at, where they should have declined.
FAILED = {
    "difference": """\
signature: (n,n)->(n)
arguments: {x: {type: "T[n, n]"}, y: {type: "T[n]", intent: out}}
temporaries: {t: "T[n, n]"}
compute: |
  t[i, j] = max(x[i, j] - x[i, j], x[i, j])
  y[j] = sum(t[i, j] - 3 for i in n)
""",
    "columns_of_neither": """\
signature: (m,n),(m)->(n,m)
arguments: {x: {type: "T[m, n]"}, v: {type: "T[m]"}, y: {type: "T[n, m]", intent: out}}
temporaries: {t: "T[n, m]"}
compute: |
  t[i, j] = x[j, i] - v[j]
  y[i, j] = sum(t[i, k] for k in range(j))
""",
    "pythons_names": """\
signature: (None_,in_)->(None_)
arguments: {x: {type: "T[None_, in_]"}, y: {type: "T[None_]", intent: out}}
compute: |
  y[i] = sum(x[i, j] for j in in_)
""",
}


def spec(name: str, dtype: str = "float32") -> KernelSpec:
    text = (SPECS | FAILED)[name]
    text = f"tilesmith: 1\nkernel: {name}\ndoc: A test.\ndtypes: {{T: [{dtype}]}}\n{text}"
    return loads(f"{text}accuracy: 1e-4\n", f"{name}.yaml")


@pytest.mark.parametrize("dtype", ["int64", "float32"])
@pytest.mark.parametrize("name", FAILED)
def test_rules_decline_and_do_not_fail(name: str, dtype: str) -> None:
    found = ruled(spec(name, dtype), GPU)
    assert not [fault for each in found.chosen for fault in each.faults]


@cache
def chosen(name: str) -> ByRules:
    return ruled(spec(name), GPU)


@pytest.mark.parametrize("name", SPECS)
def test_recipes(name: str, golden: Golden) -> None:
    golden(f"rules/gpu_{name}.yaml", with_story(chosen(name)))


@pytest.mark.parametrize("name", TRIED)
def test_recipes_of_shipped_kernels(name: str, golden: Golden) -> None:
    """`tests/targets/cuda` tries these for all that the kernels are given."""
    kernel = replace(TARGETS.load(ROOT / f"{name}.yaml"), recipes=())
    golden(f"rules/cuda/{name}.yaml", written(Plain(kernel, choices(kernel)[0]), GPU))


@pytest.mark.parametrize("name", SPECS)
def test_results(name: str) -> None:
    kernel, rng = spec(name), np.random.default_rng(0)
    dtypes = choices(kernel)[0]
    made = compiled(replace(kernel, recipes=(chosen(name).recipe,)), dtypes, GPU.emulating())
    for sizes in SIZES[name]:
        arrays = random_arrays(kernel, dtypes, sizes, rng)
        found = tried(Reference(kernel, dtypes), made, arrays, sizes, rng)
        assert found.worst <= 1, (sizes, found)
