"""The rule for products: what it writes for each form that it takes, and that this is right.

Each spec is here; its recipe, and why other rules declined, is a golden. The compiled kernels are
compared with NumPy at sizes around vectors and tiles, and on either side of most conditions.
"""

from functools import cache

import pytest

from gen.display.choices import with_story, written
from gen.language import choices
from gen.language.model import KernelSpec
from gen.language.reader import loads
from gen.lower.variants import Plain
from gen.targets.cpu.target import Cpu
from gen.targets.recipes import ByRules
from tests.conftest import Golden
from tests.schedule.rules.compared import wrong
from tests.schedule.rules.support import ruled

V3 = Cpu.at("v3")
MOST_POINTS = 2**19

ARGUMENTS = {
    "product": (
        "(m,k),(k,n)->(m,n)",
        {"a": "T[m, k]", "b": "T[k, n]"},
        "y: T[m, n]",
        "y[i, j] = sum(a[i, l] * b[l, j] for l in k)",
        "np.matmul(a, b)",
    ),
    "dense": (  # a weight that lies along what is summed, and what is done to the results
        "(s,m,k),(n,k),(n)->(s,m,n)",
        {"x": "T[s, m, k]", "w": "T[n, k]", "bias": "T[n]"},
        "y: T[s, m, n]",
        "z[t, i, j] = sum(x[t, i, l] * w[j, l] for l in k)\n"
        "  y[t, i, j] = tanh(z[t, i, j] + bias[j])",
        "np.tanh(np.matmul(x, np.transpose(w)) + bias)",
    ),
    "distances": (  # no product, and of integers
        "(m,k),(n,k)->(m,n)",
        {"a": "T[m, k]", "b": "T[n, k]"},
        "y: T[m, n]",
        "y[i, j] = max(abs(a[i, l] - b[j, l]) for l in k)",
        "np.max(np.abs(np.expand_dims(a, 1) - b), axis=-1, initial=0)",
    ),
    "triangle": (
        "(m,m),(m,n)->(m,n)",
        {"a": "T[m, m]", "b": "T[m, n]"},
        "y: T[m, n]",
        "y[i, j] = b[i, j] + sum(a[i, l] * b[l, j] for l in range(i))",
        "b + np.matmul(np.tril(a, -1), b)",
    ),
    "tail": (  # terms that start where the row says
        "(m,m),(m)->(m)",
        {"a": "T[m, m]", "x": "T[m]"},
        "y: T[m]",
        "y[i] = sum(a[i, l] * x[l] for l in range(i, m))",
        "np.matmul(np.triu(a), x)",
    ),
    "band": (  # ... and end where the column does
        "(m,m),(m,m)->(m,m)",
        {"a": "T[m, m]", "b": "T[m, m]"},
        "y: T[m, m]",
        "y[i, j] = sum(a[i, l] * b[l, j] for l in range(i, j + 1))",
        "np.matmul(np.triu(a), np.triu(b))",
    ),
    "handed_on": (  # the upper triangle of an array's product with its transpose, and the lower
        "(k,m)->(m,m)",
        {"x": "T[k, m]"},
        "y: T[m, m]",
        "for i in range(m):\n"
        "      for j in range(i, m):\n"
        "          y[i, j] = sum(x[l, i] * x[l, j] for l in k) / 2\n"
        "          y[j, i] = y[i, j]",
        "np.matmul(np.transpose(x), x) / 2",
    ),
    "lower": (  # lines that end at different places, and whose vectors are columns
        "(m,k)->(m,m)",
        {"x": "T[m, k]"},
        "y: T[m, m]",
        "for i in range(m):\n"
        "      for j in range(m):\n"
        "          y[i, j] = 0\n"
        "      for j in range(i + 1):\n"
        "          y[i, j] += sum(x[i, l] * x[j, l] for l in k)",
        "np.tril(np.matmul(x, np.transpose(x)))",
    ),
    "doubled": (  # results that lie two apart, each part of them with a weight of its own
        "(k,n),(k,m,2)->(m,2*n)",
        {"x": "T[k, n]", "w": "T[k, m, 2]"},
        "y: T[m, 2 * n]",
        "for i in range(m):\n"
        "      for j in range(n):\n"
        "          for p in range(2):\n"
        "              y[i, 2 * j + p] = sum(w[l, i, p] * x[l, j] for l in k)",
        "np.reshape(np.einsum('kj,kip->ijp', x, w), (m, 2 * n))",
    ),
    "matvec": (
        "(m,k),(k)->(m)",
        {"a": "T[m, k]", "x": "T[k]"},
        "y: T[m]",
        "y[i] = sum(a[i, l] * x[l] for l in k)",
        "np.matmul(a, x)",
    ),
    "vecmat": (
        "(k,n),(k),(n)->(n)",
        {"a": "T[k, n]", "x": "T[k]", "z": "T[n]"},
        "y: T[n]",
        "y[j] = z[j] + 2 * sum(a[l, j] * x[l] for l in k)",
        "z + 2 * np.matmul(x, a)",
    ),
    "onward": (  # each step's result is the next one's operand: a sum of each iteration's own
        "(t,b,h),(h,h)->(t+1,b,h)",
        {"x": "T[t, b, h]", "w": "T[h, h]"},
        "y: T[t + 1, b, h]",
        "for i in range(b):\n"
        "      for u in range(h):\n"
        "          y[0, i, u] = 0\n"
        "  for s in range(t):\n"
        "      for i in range(b):\n"
        "          for u in range(h):\n"
        "              y[s + 1, i, u] = x[s, i, u] + sum(y[s, i, l] * w[l, u] for l in h) / 256",
        "",
    ),
    "steps": (  # a weight that is read again in each step of time
        "(t,b,h),(h,h)->(b,h)",
        {"x": "T[t, b, h]", "w": "T[h, h]"},
        "y: T[b, h]",
        "y[i, u] = 0\n"
        "  for s in range(t):\n"
        "      for i in range(b):\n"
        "          for u in range(h):\n"
        "              z[s, i, u] = sum(w[u, l] * y[i, l] for l in h)\n"
        "      for i in range(b):\n"
        "          for u in range(h):\n"
        "              y[i, u] = sin(0.01 * z[s, i, u] + x[s, i, u])",
        "",
    ),
    "attention": (  # a product of what is made, row by row, of another
        "(m,d),(n,d),(n,e)->(m,e)",
        {"q": "T[h, m, d]", "k": "T[h, n, d]", "v": "T[h, n, e]"},
        "y: T[h, m, e]",
        "score[b, i, j] = sum(q[b, i, l] * k[b, j, l] for l in d)\n"
        "  peak[b, i] = max(score[b, i, j] for j in n)\n"
        "  weight[b, i, j] = exp(score[b, i, j] - peak[b, i])\n"
        "  total[b, i] = sum(weight[b, i, j] for j in n)\n"
        "  part[b, i, c] = sum(weight[b, i, j] * v[b, j, c] for j in n)\n"
        "  y[b, i, c] = part[b, i, c] / total[b, i]",
        "np.matmul(scipy.special.softmax(np.matmul(q, np.swapaxes(k, -1, -2)), axis=-1), v)",
    ),
    "dense_softmax": (  # rows of a product that are walked again: a band of them at a time
        "(m,k),(k,n),(n)->(m,n)",
        {"x": "T[m, k]", "w": "T[k, n]", "bias": "T[n]"},
        "y: T[m, n]",
        "z[i, j] = sum(x[i, l] * w[l, j] for l in k) + bias[j]\n"
        "  peak[i] = max(z[i, j] for j in n)\n"
        "  weight[i, j] = exp(z[i, j] - peak[i])\n"
        "  total[i] = sum(weight[i, j] for j in n)\n"
        "  y[i, j] = weight[i, j] / total[i]",
        "scipy.special.softmax(np.matmul(x, w) + bias, axis=-1)",
    ),
    "nearest": (  # rows of a product that are reduced to a place, each group's rows for itself
        "(s,m,k),(s,n,k)->(s,m)",
        {"x": "T[s, m, k]", "z": "T[s, n, k]"},
        "y: int64[s, m]",
        "y[t, i] = argmin(sum((x[t, i, l] - z[t, j, l]) ** 2 for l in k) for j in n)",
        "",
    ),
    "window": (  # of a padded signal, which is computed a band at a time
        "(n),(k)->(n)",
        {"x": "T[m, n]", "w": "T[k]"},
        "y: T[m, n]",
        "for i in range(m):\n"
        "      for j in range(n + k):\n"
        "          wide[i, j] = x[i, min(max(j, 0), n - 1)] if j < n else 0\n"
        "  y[i, j] = sum(w[l] * wide[i, j + l] for l in k)",
        "np.matmul(np.lib.stride_tricks.sliding_window_view("
        "np.pad(x, [(0, 0), (0, k)]), k, axis=-1)[:, :n], w)",
    ),
    "stepped": (  # windows further apart than elements: their copy has phases
        "(c,n),(o,c,5)->(o,(n - 2) // 3)",
        {"x": "T[c, n]", "w": "T[o, c, 5]"},
        "y: T[o, (n - 2) // 3]",
        "y[k, j] = sum(w[k, m, l] * x[m, 3 * j + l] for m in c for l in range(5))",
        "np.einsum('kml,mjl->kj', w, np.lib.stride_tricks.sliding_window_view("
        "x, 5, axis=-1)[:, ::3])",
    ),
    "pooled": (  # windows without weights
        "(n)->(n)",
        {"x": "T[m, n]"},
        "y: T[m, n]",
        "y[i, j] = max(x[i, min(j + l, n - 1)] for l in range(3))",
        "np.max(np.lib.stride_tricks.sliding_window_view("
        "np.pad(x, [(0, 0), (0, 2)], mode='edge'), 3, axis=-1), axis=-1)",
    ),
    "correlated": (  # few results of many terms, or many of few
        "(n),(k)->(n - k + 1)",
        {"x": "T[m, n]", "w": "T[k]"},
        "y: T[m, n - k + 1]",
        "y[i, j] = sum(w[l] * x[i, j + l] for l in k)",
        "np.matmul(np.lib.stride_tricks.sliding_window_view(x, k, axis=-1), w)",
    ),
    "spread": (  # lanes across rows ask for rows that lie side by side, which others have not
        "(n),(k)->()",
        {"x": "T[m, n]", "w": "T[k]"},
        "y: T[m]",
        "y[i] = max(x[i, j] + w[l] for j in n for l in k)",
        "np.max(x, axis=-1) + np.max(w)",
    ),
}
CONSTRAINTS = {
    "window": "[k >= 1, n >= 1]",
    "attention": "[n >= 1]",
    "dense_softmax": "[n >= 1]",
    "nearest": "[n >= 1]",
    "stepped": "[n >= 5]",
    "pooled": "[n >= 1]",
    "correlated": "[1 <= k <= n]",
    "spread": "[k >= 1, n >= 1]",
}


def spec(name: str) -> KernelSpec:
    signature, inputs, output, compute, oracle = ARGUMENTS[name]
    out, _, kind = output.partition(": ")
    lines = [f'  {a}: {{type: "{t}"}}' for a, t in inputs.items()]
    text = f"""\
tilesmith: 1
kernel: {name}
doc: A product.
signature: {signature}
dtypes: {{T: [float32]}}
arguments:
{chr(10).join(lines)}
  {out}: {{type: "{kind}", intent: out}}
constraints: {CONSTRAINTS.get(name, "[]")}
compute: |
  {compute}
{f"oracle: {oracle}" if oracle else ""}
accuracy: 1e-3
"""
    return loads(text, f"{name}.yaml")


LONG = {"triangle", "band", "tail"}  # of which the recipe's golden is enough where nobody waits


@cache
def chosen(name: str) -> ByRules:
    return ruled(spec(name), V3)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_recipe(name: str, golden: Golden) -> None:
    golden(f"rules/product_{name}.yaml", with_story(chosen(name)))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough if name in LONG else ())
        for name in ARGUMENTS
        if name not in ("product", "distances")
    ],
)
def test_right(name: str) -> None:
    sizes = [0, 1, 3, 8, 17, 49, 200]
    assert not list(wrong(spec(name), chosen(name), V3, sizes, draws=40, most=MOST_POINTS))


def text_of(signature: str, inputs: str, compute: str, more: str = "") -> KernelSpec:
    return loads(
        f"""\
tilesmith: 1
kernel: k
doc: A kernel.
signature: {signature}
dtypes: {{T: [float32]}}
arguments:
{inputs}
  y: {{type: "T[m, n]", intent: out}}
{more}compute: |
  {compute}
""",
        "k.yaml",
    )


@pytest.mark.parametrize(
    ("compute", "reason"),
    [
        ("y[i, j] = sum(a[i, j] for l in range(3))", "it reads nothing twice"),
        ("y[i, j] = 2 * a[i, j]", "it reads no sum"),
        ("y[i, j] = sum(a[i, l] * a[l, j] for l in range(min(m, n)))", ""),
    ],
)
def test_declines(compute: str, reason: str) -> None:
    loaded = text_of("(m,n)->(m,n)", '  a: {type: "T[m, n]"}', compute)
    story = written(Plain(loaded, choices(loaded)[0]), V3)
    assert f"not product: {reason}" in story if reason else "y: product" in story


def test_inner_products_of_each_iteration_stay_with_the_rules_for_rows() -> None:
    loaded = text_of(
        "(m,n),(n,n)->(m,n)",
        '  a: {type: "T[m, n]"}\n  w: {type: "T[n, n]"}',
        "for u in range(n):\n"
        "      y[0, u] = 0\n"
        "  for s in range(1, m):\n"
        "      for u in range(n):\n"
        "          y[s, u] = a[s, u] + sum(w[u, l] * y[s - 1, l] for l in n)",
        "constraints: [m >= 1]\n",
    )
    story = written(Plain(loaded, choices(loaded)[0]), V3)
    assert "not product: its results are a row of each iteration of a loop around other" in story


def test_scalars_at_their_defaults() -> None:
    """The stride, without which vectors are gathered; not the padding, which moves nothing."""
    at = "min(max(j * stride + l - padding, 0), s - 1)"
    compute = f"y[i, j] = sum(w[l] * a[i, {at}] for l in k) + z[j]"
    inputs = '  a: {type: "T[m, s]"}\n  w: {type: "T[k]"}\n  z: {type: "T[n]"}'
    more = (
        "scalars:\n  stride: {type: int64, default: 1}\n  padding: {type: int64, default: 0}\n"
        "constraints: [s >= 1]\n"
    )
    loaded = text_of("(s),(k),(n)->(n)", inputs, compute, more)
    whens = [chosen.draft.when for chosen in ruled(loaded, V3).chosen]
    fixed = [when for when in whens if "stride == 1" in when]
    assert fixed and whens[: len(fixed)] == fixed and len(whens) > len(fixed)
    assert not any("stride" in text for when in whens[len(fixed) :] for text in when)
    assert not any("padding" in text for when in whens for text in when)
