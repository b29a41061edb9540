"""The C of small kernels, as it is read in review."""

import pytest

from gen.emit.c import LoweredVariant, emit_file, emit_kernel
from gen.ir.nodes import Var
from gen.ir.walk import less
from gen.lower.target import Level

from ..conftest import Golden
from . import kernels
from .kernels import lowered


def emitted(text: str, *, packable: bool) -> str:
    kernel = lowered(text, Level.V3)
    variants = (
        LoweredVariant("0", kernel, less(Var("n"), 4096)),
        LoweredVariant("plain", kernel),
    )
    chosen = variants if packable else variants[1:]
    packed = [p.buffer.name for p in kernel.parameters] if packable else []
    part = emit_kernel(kernel.name, "float32", chosen, Level.V3, packed=packed)
    return emit_file(kernel.name, [part], Level.V3)


@pytest.mark.parametrize(
    ("name", "text", "packable"),
    [
        ("axpb", kernels.elementwise(8), True),
        ("columns", kernels.columns(8), False),
        ("argmax", kernels.argmax(8), True),
    ],
)
def test_golden(name: str, text: str, packable: bool, golden: Golden) -> None:
    golden(f"emit/{name}.v3.c", emitted(text, packable=packable))


def test_unit_axes_are_those_that_vectors_walk() -> None:
    assert "UINT64_C(10)" in emitted(kernels.elementwise(8), packable=True)  # x: 0, 1; y: 2, 3
    assert "UINT64_C(0)" in emitted(kernels.columns(8), packable=False)
