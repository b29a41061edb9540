"""Kernels that the tests of notebooks call."""

from functools import cache
from pathlib import Path

import gen
from gen.trial.notebook import NotebookKernel

SHIPPED = Path(__file__).parents[2] / "kernels_spec"


@cache
def shipped(name: str) -> NotebookKernel:
    return gen.compile(SHIPPED / f"{name}.yaml", level="v2")


def of_text(folder: Path, text: str) -> NotebookKernel:
    path = folder / "spec.yaml"
    path.write_text(text)
    return gen.compile(path, level="v2")


ADD = """\
tilesmith: 1
kernel: add
doc: x + y.
signature: (),()->()
dtypes: {T: [float32, float64]}
arguments: {x: {type: "T[m]"}, y: {type: "T[m]"}, z: {type: "T[m]", intent: out}}
compute: z[i] = x[i] + y[i]
"""
