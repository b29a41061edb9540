"""Whether results depend on where along the core axis an element is."""

import pytest

from gen.language import is_ordered, loads

TEXT = """\
tilesmith: 1
kernel: k
doc: d
signature: (n)->()
dtypes: {{T: [float64]}}
arguments:
  x: {{type: "T[m, n]"}}
  y: {{type: "T[m]", intent: out}}
compute: |
  {}
"""


@pytest.mark.parametrize(
    ("compute", "ordered"),
    [
        ("y[i] = sum(x[i, j] for j in n)", False),
        ("y[i] = sum(x[i, j] for j in n) / n", False),
        ("y[i] = max(abs(x[i, j]) for j in n if x[i, j] < 0)", False),
        ("mean[i] = sum(x[i, j] for j in n) / n\n  d[i, j] = x[i, j] - mean[i]\n"
         "  y[i] = sum(d[i, j] * d[i, j] for j in n)", False),
        ("y[i] = sum(x[i, j] * j for j in n)", True),
        ("y[i] = sum(x[i, n - 1 - j] for j in n)", True),
        ("y[i] = sum(x[i, j] for j in range(1, n))", True),
        ("y[i] = sum(x[i, j] for j in n if j % 2 == 0)", True),
        ("y[i] = sum(x[i, j] for j in n if x[i, j] > j)", True),
        ("y[i] = sum(x[i, j] * x[i, k] for j in n for k in range(j))", True),
        ("y[i] = sum(x[i, j] for j in range(n // 2))", True),
        ("p[i] = argmax(x[i, j] for j in n)\n  y[i] = T(p[i])", True),
        ("y[i] = x[i, 0] if n > 0 else 0.0", True),
        ("for j in n:\n      y[0] = x[0, j]", True),
    ],
)  # fmt: skip
def test_ordered(compute: str, ordered: bool) -> None:
    try:
        spec = loads(TEXT.format(compute), "k.yaml")
    except Exception as error:
        pytest.fail(str(error))
    assert is_ordered(spec) is ordered
