"""Arrays of bool that say which lanes count are loaded as masks: at each place of a row, at every
second one, from behind, and in reductions; and masks are stored as them. None of it is done an
element at a time.
"""

import re
import shutil

import numpy as np
import pytest

from gen import language as specs
from gen.ir.types import DType
from gen.language.model import KernelSpec
from gen.pipeline import made
from gen.poly.prove import prove
from gen.targets.cpu import jit
from gen.targets.cpu.assembly import assembly
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.target import joined
from gen.trial.run import checks

SPEC = specs.loads(
    """\
tilesmith: 1
kernel: masked
doc: What masks leave of rows.
signature: (n),(n),(2 * n)->(n),(n),()
dtypes: {T: [float32, float64, float16, int64, uint8]}
arguments:
  x: {type: "T[m, n]"}
  a: {type: "bool[m, n]"}
  b: {type: "bool[m, 2 * n]"}
  y: {type: "T[m, n]", intent: out}
  z: {type: "T[m, n]", intent: out}
  s: {type: "T[m]", intent: out}
compute: |
  y[i, j] = x[i, j] if a[i, j] and not b[i, 2 * j] else 1
  z[i, j] = x[i, j] if a[i, n - 1 - j] or b[i, 2 * j + 1] else x[i, n - 1 - j]
  s[i] = max((x[i, j] if a[i, j] else 0) for j in range(n))
constraints: [n >= 1]
""",
    "masked.yaml",
)


@pytest.mark.parametrize("dtype", [dtype.value for dtype in SPEC.dtypes[0].choices])
def test_masks_of_bytes(level: Level, dtype: str) -> None:
    text = _right(SPEC, dtype, level)
    assert not re.search(r"lanes\d+\[", text)  # of values that are made one by one


WEIGHTED = specs.loads(
    """\
tilesmith: 1
kernel: weighted
doc: A weighted sum of what a mask leaves.
signature: (n),(n),(n)->()
dtypes: {T: [float32, float64]}
arguments:
  x: {type: "T[m, n]"}
  w: {type: "T[n]"}
  a: {type: "bool[m, n]"}
  y: {type: "T[m]", intent: out}
compute: |
  y[i] = sum(x[i, j] * w[j] for j in range(n) if a[i, j])
""",
    "weighted.yaml",
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_term_that_a_mask_leaves_out_costs_no_instruction(dtype: str) -> None:
    """With masks in registers of their own, a product and the selection of it are one."""
    dtypes = {"T": DType(dtype)}
    _, files = made(WEIGHTED, dtypes, Cpu(Level.V4), prove)
    if shutil.which("objdump") is None:
        pytest.skip("needs objdump")
    code = [i.text for f in assembly(joined(files), Level.V4) for i in f.instructions]
    assert any(re.match(r"vmulp[sd] .*\{%k\d\}", text) for text in code)


FLAGS = specs.loads(
    """\
tilesmith: 1
kernel: flags
doc: What is asked of rows, answered by bools.
signature: (n),(n)->(n),(n),(n),(n)
dtypes: {T: [float32, float64, float16, int64, int16, uint8, complex64, complex128]}
arguments:
  x: {type: "T[m, n]"}
  a: {type: "bool[m, n]"}
  p: {type: "bool[m, n]", intent: out}
  q: {type: "bool[m, n]", intent: out}
  r: {type: "bool[m, n]", intent: out}
  u: {type: "bool[m, n]", intent: out}
compute: |
  p[i, j] = x[i, j] == x[i, n - 1 - j]
  q[i, j] = (a[i, j] & ~a[i, n - 1 - j]) ^ (x[i, j] != x[0, j] or a[0, j])
  r[i, n - 1 - j] = x[i, j] != x[i, 0] and a[i, j]
  u[i, j] = i < j or a[0, j]
recipes:
  - target: cpu
    variants:
      - steps:
          - vectorize: {loop: p.j, width: $lanes}
          - vectorize: {loop: q.j, width: $lanes}
          - vectorize: {loop: r.j, width: $lanes}
          - vectorize: {loop: u.j, width: $lanes}
""",
    "flags.yaml",
)


@pytest.mark.parametrize("dtype", [dtype.value for dtype in FLAGS.dtypes[0].choices])
def test_bools_are_stored_from_masks(level: Level, dtype: str) -> None:
    text = _right(FLAGS, dtype, level)
    assert len(re.findall(r"ts_store\w*_u8\(", text)) >= 8
    assert not re.search(r"\b[pqru]\[[^]]*\] = ", text)


SOME = specs.loads(
    """\
tilesmith: 1
kernel: some
doc: Of two elements in three of a row, whether they are large.
signature: (n),(n),(n)->(n)
dtypes: {T: [float32, float64, int8]}
arguments:
  x: {type: "T[m, n]"}
  a: {type: "bool[m, n]"}
  p: {type: "bool[m, n]", intent: inout}
compute: |
  for i in range(m):
      for j in range(n):
          if (j + 2 * i) % 3 != 1:
              p[i, j] = x[i, j] > 1 or a[i, j]
""",
    "some.yaml",
)


@pytest.mark.parametrize("dtype", [dtype.value for dtype in SOME.dtypes[0].choices])
def test_bools_that_a_mask_leaves_out_stay(level: Level, dtype: str) -> None:
    assert "ts_store_mask_u8(" in _right(SOME, dtype, level)


BETWEEN = specs.loads(
    """\
tilesmith: 1
kernel: between
doc: Which elements are above one other and not another, by a temporary of bools.
signature: (n),(n)->(n)
dtypes: {T: [float32, int8]}
arguments:
  x: {type: "T[m, n]"}
  y: {type: "T[m, n]"}
  p: {type: "bool[m, n]", intent: out}
compute: |
  t[i, j] = x[i, j] > y[i, j]
  p[i, j] = t[i, j] ^ (x[i, j] > y[0, j])
recipes:
  - target: cpu
    variants:
      - steps:
          - set_scope: {buffer: t, scope: register}
          - split: {loop: p.j, factors: [null, $lanes]}
          - compute_at: {block: t, loop: p.j_0}
          - vectorize: {loop: t.j, width: $lanes}
          - vectorize: {loop: p.j_1, width: $lanes}
""",
    "between.yaml",
)


@pytest.mark.parametrize("dtype", [dtype.value for dtype in BETWEEN.dtypes[0].choices])
def test_a_temporary_of_bools_is_an_array(level: Level, dtype: str) -> None:
    """Whatever scope is asked for: bools have no vectors in registers."""
    assert re.search(r"\bbool t\[", _right(BETWEEN, dtype, level))


def _right(spec: KernelSpec, dtype: str, level: Level) -> str:
    """What is emitted for the type, if it is right for all sizes that are tried."""
    dtypes = {"T": DType(dtype)}
    _, files = made(spec, dtypes, Cpu(level), prove)
    text = joined(files)
    kernel = jit.load(spec, dtypes, text, level, flags=["-O0"])
    found = [*checks(spec, dtypes, Cpu(level), kernel, np.random.default_rng(0))]
    assert any(c.compared for c in found)
    assert [c for c in found if not c.worst <= 1] == []
    return text
