"""Specs that the tests of the command line write to a folder, with a recipe of one step."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SOFTMAX = ROOT / "tests" / "commands" / "softmax.yaml"
NOT_PROVED = "1 spec without errors (not proved: tilesmith prove does that)\n"
"""What `check` and `show` say last."""

SPEC = """\
tilesmith: 1
kernel: k
doc: A kernel of these tests.
signature: {signature}
dtypes: {{T: [float32]}}
arguments:
  {arguments}
compute: |
{compute}
oracle: {oracle}
accuracy: 8 * ulp(y{element})
recipes:
  - target: cpu
    variants:
      - steps:
          - {step}
"""
MATRIX = "x: {type: 'T[m, n]'}\n  y: {type: 'T[m, n]', intent: out}"


def spec(
    folder: Path,
    step: str,
    compute: str,
    signature: str = "(n)->(n)",
    arguments: str = MATRIX,
    oracle: str = "x",
    element: str = "[i, j]",
) -> Path:
    path = folder / "k.yaml"
    body = "\n".join(f"  {line}" for line in compute.splitlines())
    text = SPEC.format(
        signature=signature,
        arguments=arguments,
        compute=body,
        oracle=oracle,
        element=element,
        step=step,
    )
    path.write_text(text, encoding="utf-8")
    return path


def row_sums(folder: Path, step: str) -> Path:
    return spec(
        folder,
        step,
        "y[i] = sum(x[i, j] for j in n)",
        "(n)->()",
        "x: {type: 'T[m, n]'}\n  y: {type: 'T[m]', intent: out}",
        "np.sum(x, axis=-1)",
        "[i]",
    )


def diagonal_sums(folder: Path, step: str) -> Path:
    return spec(
        folder,
        step,
        "for i in range(1, m):\n  for j in range(n - 1):\n    y[i, j] = y[i - 1, j + 1] + y[i, j]",
        "(m,n)->(m,n)",
        "y: {type: 'T[m, n]', intent: inout}",
        "y",
    )


def neighbours(folder: Path, step: str) -> Path:
    return spec(
        folder,
        step,
        "t[i] = x[i] * 2\n"
        "for i in range(n - 1):\n"
        "  y[i] = t[i] + t[i + 1]\n"
        "if n > 0:\n"
        "  y[n - 1] = t[n - 1]",
        arguments="x: {type: 'T[n]'}\n  y: {type: 'T[n]', intent: out}",
        element="[i]",
    )


def prefix_sums(folder: Path, step: str) -> Path:
    return spec(
        folder,
        step,
        "for i in m:\n"
        "  if n > 0:\n"
        "    y[i, 0] = x[i, 0]\n"
        "  for j in range(1, n):\n"
        "    y[i, j] = y[i, j - 1] + x[i, j]",
        oracle="np.cumsum(x, axis=-1)",
    )


def shares(folder: Path, step: str) -> Path:
    return spec(
        folder,
        step,
        "s[i] = sum(x[i, j] for j in n)\ny[i, j] = x[i, j] / s[i]",
        oracle="x / np.sum(x, axis=-1, keepdims=True)",
    )
