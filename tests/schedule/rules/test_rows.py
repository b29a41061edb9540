"""The rules for rows and columns: what they write for each form that they take, and that it is
right: reductions, several passes, running reductions, transposes.

Each spec is here; its recipe is a golden. The compiled kernels are
compared with NumPy at sizes around vectors, blocks and strips.
"""

import itertools
from functools import cache

import pytest

from gen.language import choices
from gen.language.model import KernelSpec
from gen.language.reader import loads
from gen.lower.variants import Plain
from gen.schedule.base import StepContext
from gen.schedule.rules.parts.draft import Declined, Draft
from gen.schedule.rules.parts.nest import nest_of
from gen.targets.cpu.target import Cpu
from gen.targets.recipes import ByRules
from tests.conftest import Golden
from tests.schedule.rules.compared import wrong, wrong_at
from tests.schedule.rules.support import ruled

V3 = Cpu.at("v3")
MOST_POINTS = 2**17

SPECS = {
    "row": (  # callers may give columns
        "(n)->()",
        "float32",
        {"x": "T[m, n]", "y": "T[m]"},
        "y[i] = sum(x[i, j] for j in n) / n",
        "np.sum(x, axis=-1) / np.float64(n)",
    ),
    "place": (  # a value and where it is
        "(n)->()",
        "float64",
        {"x": "T[m, n]", "y": "int64[m]"},
        "y[i] = argmin(x[i, j] for j in n)",
        "np.argmin(x, axis=-1)",
    ),
    "several": (  # rows of rows; no columns, since no axis of the caller's has them
        "(b,c)->()",
        "float32",
        {"x": "T[m, b, c]", "y": "T[m]"},
        "y[i] = sum(x[i, j, k] ** 2 for j in b for k in c)",
        "np.sum(x * x, axis=(-2, -1))",
    ),
    "tail": (  # each row from its diagonal on
        "(n,n)->(n)",
        "float32",
        {"x": "T[n, n]", "y": "T[n]"},
        "y[i] = sum(x[i, j] for j in range(i, n))",
        "np.sum(np.triu(x), axis=-1)",
    ),
    "whole": (  # in pieces, for threads
        "(a)->()",
        "float32",
        {"x": "T[a]", "y": "T[]"},
        "y = sum(abs(x[i]) for i in a)",
        "np.sum(np.abs(x))",
    ),
    "middle": (  # columns, and of integers, whose sums need no blocks
        "(b,c)->(c)",
        "int32",
        {"x": "T[m, b, c]", "y": "T[m, c]"},
        "y[i, k] = sum(x[i, j, k] for j in b)",
        "np.sum(x, axis=-2)",
    ),
    "outer": (  # two axes of columns
        "(a,b,c)->(c)",
        "float32",
        {"x": "T[a, b, c]", "y": "T[c]"},
        "y[k] = sqrt(sum(x[i, j, k] ** 2 for i in a for j in b))",
        "np.sqrt(np.sum(x * x, axis=(0, 1)))",
    ),
    "passes": (  # softmax's; two of the passes share one
        "(n)->(n)",
        "float32",
        {"x": "T[m, n]", "y": "T[m, n]"},
        "peak[i] = max(x[i, j] for j in n)\n"
        "  e[i, j] = exp(x[i, j] - peak[i])\n"
        "  y[i, j] = e[i, j] / sum(e[i, k] for k in n)",
        "scipy.special.softmax(x, axis=-1)",
    ),
    "norm": (  # over channels; passes over columns
        "(k,n)->(k,n)",
        "float32",
        {"x": "T[m, k, n]", "y": "T[m, k, n]"},
        "mean[i, j] = sum(x[i, c, j] for c in k) / k\n  y[i, c, j] = x[i, c, j] - mean[i, j]",
        "x - np.sum(x, axis=-2, keepdims=True) / np.float64(k)",
    ),
    "running": (
        "(n)->(n)",
        "float64",
        {"x": "T[m, n]", "y": "T[m, n]"},
        "y[i, j] = sum(x[i, k] for k in range(j + 1))",
        "np.cumsum(x, axis=-1)",
    ),
    "before": (  # no term for the first
        "(n)->(n)",
        "float32",
        {"x": "T[m, n]", "y": "T[m, n]"},
        "y[i, j] = sum(x[i, k] for k in range(j))",
        "np.cumsum(x, axis=-1) - x",
    ),
    "onward": (  # from the last to the first
        "(n)->(n)",
        "int64",
        {"x": "T[m, n]", "y": "T[m, n]"},
        "y[i, j] = sum(x[i, k] for k in range(j, n))",
        "np.flip(np.cumsum(np.flip(x, -1), axis=-1), -1)",
    ),
    "after": (  # a product, and down columns
        "(k,n)->(k,n)",
        "float64",
        {"x": "T[m, k, n]", "y": "T[m, k, n]"},
        "y[i, c, j] = prod(1 + x[i, b, j] / 64 for b in range(c + 1, k))",
        "np.flip(np.cumprod(np.flip(1 + x / 64, -2), axis=-2), -2) / (1 + x / 64)",
    ),
    "shifted": (  # rows that another statement shares
        "(n)->(n)",
        "float32",
        {"x": "T[m, n]", "y": "T[m, n]"},
        "for i in m:\n"
        "      if n > 0:\n"
        "          y[i, 0] = 0\n"
        "      for j in range(n - 1):\n"
        "          y[i, j + 1] = sum(x[i, k] for k in range(j + 1))",
        "np.cumsum(x, axis=-1) - x",
    ),
    "some": (  # no operator combines two of its vectors
        "(n)->(n)",
        "int32",
        {"x": "T[m, n]", "y": "bool[m, n]"},
        "y[i, j] = any(x[i, k] > 100 for k in range(j + 1))",
        "np.cumsum(x > 100, axis=-1) > 0",
    ),
    "down": (
        "(k,n)->(k,n)",
        "int64",
        {"x": "T[m, k, n]", "y": "T[m, k, n]"},
        "y[i, c, j] = sum(x[i, b, j] for b in range(c + 1))",
        "np.cumsum(x, axis=-2)",
    ),
    "permuted": (
        "(a,b,c)->(c,b,a)",
        "float64",
        {"x": "T[a, b, c]", "y": "T[c, b, a]"},
        "y[k, j, i] = x[i, j, k]",
        "np.transpose(x, (2, 1, 0))",
    ),
}


def spec(name: str) -> KernelSpec:
    signature, dtype, arguments, compute, oracle = SPECS[name]
    return loads(
        f"""\
tilesmith: 1
kernel: {name}
doc: A kernel.
signature: {signature}
dtypes: {{T: [{dtype}]}}
arguments:
  x: {{type: "{arguments["x"]}"}}
  y: {{type: "{arguments["y"]}", intent: out}}
compute: |
  {compute}
oracle: >-
  {oracle}
accuracy: {0 if "int" in "".join(arguments.values()) + dtype else "1e-3"}
""",
        f"{name}.yaml",
    )


@cache
def chosen(name: str) -> ByRules:
    return ruled(spec(name), V3)


@pytest.mark.parametrize("name", SPECS)
def test_recipe(name: str, golden: Golden) -> None:
    golden(f"rules/{name}.yaml", chosen(name).text)


@pytest.mark.parametrize(
    ("dtype", "compute", "rule", "reason"),
    [
        ("float32", "y[i, j] = 2 * x[i, j]", "passes", "it reads no reduction of its row"),
        ("float32", "y[i, j] = 2 * x[i, j]", "transpose", "what it reads lies along what"),
        ("float32", "y[i, j] = sum(x[k, j] for k in m)", "passes", "the terms of 'y' do not lie"),
        (
            "float32",
            "y[i, j] = sum(x[i, min(j + k, n - 1)] for k in n)",
            "passes",
            "the rows of 'y' are windows",
        ),
        ("bool", "y[i, j] = any(x[i, k] for k in n)", "passes", "the values of 'y' are bool"),
        ("float32", "y[i, j] = max(x[i, k] for k in n)", "running", "its terms do not end where"),
        ("float32", "y[i, j] = max(x[i, k] for k in n)", "whole", "it is no reduction to one"),
        ("float32", "y[i, j] = max(x[i, k] for k in n)", "columns", "what 'y' reads does not"),
    ],
)
def test_declines(dtype: str, compute: str, rule: str, reason: str) -> None:
    loaded = loads(
        f"""tilesmith: 1
kernel: k
doc: A kernel.
signature: (m,n)->(m,n)
dtypes: {{T: [{dtype}]}}
arguments:
  x: {{type: "T[m, n]"}}
  y: {{type: "T[m, n]", intent: out}}
constraints: [m >= 1, n >= 1]
compute: |
  {compute}
""",
        "k.yaml",
    )
    plain = Plain(loaded, choices(loaded)[0])
    start = Draft(
        plain.bench.start(plain.under(None)),
        StepContext(plain.under(None), None, plain.bench),
        V3.parameters(plain.dtypes),
    )
    apply = next(each.apply for each in V3.rules.rules if each.name == rule)
    with pytest.raises(Declined, match=reason):
        apply(start, nest_of(start.kernel, "y"))


@pytest.mark.parametrize("name", ["row", "place"])
def test_long_rows_are_in_pieces(name: str) -> None:
    """Around the length of pieces, and from which on there are any: the longest in several."""
    assert "pieces.rows" in chosen(name).text
    lengths = (65535, 65536, 65537, 98303, 98304, 98305, 200_000)
    cases = [{"m": m, "n": n} for m, n in zip(itertools.cycle((1, 3, 0, 2)), lengths, strict=False)]
    assert not list(wrong_at(spec(name), chosen(name), V3, cases))


@pytest.mark.parametrize("name", SPECS)
def test_right(name: str) -> None:
    loaded = spec(name)
    sizes = [1 if loaded.requires else 0, 1, 3, 8, 17, 35, 330, 700]
    assert not list(wrong(loaded, chosen(name), V3, sizes, draws=16, most=MOST_POINTS))
