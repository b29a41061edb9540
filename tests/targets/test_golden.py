"""The C of small kernels, as it is read in review."""

import pytest

from gen.ir.algebra import less
from gen.ir.nodes import Var
from gen.targets.cpu.emit import emit_file, emit_kernel
from gen.targets.cpu.levels import Level
from tests.conftest import Golden

from . import kernels
from .kernels import finished, lowered


def emitted(text: str, *, packable: bool) -> str:
    kernel = lowered(text, Level.V3)
    variants = (
        finished(kernel, Level.V3, "0", less(Var("n"), 4096)),
        finished(kernel, Level.V3, "plain"),
    )
    chosen = variants if packable else variants[1:]
    packed = [p.buffer.name for p in kernel.parameters] if packable else []
    part = emit_kernel(kernel.name, "float32", chosen, Level.V3, packed=packed)
    return emit_file(kernel.name, [part], Level.V3)


KERNELS = (
    ("axpb", kernels.elementwise(8), True),
    ("columns", kernels.columns(8), False),
    ("argmax", kernels.argmax(8), True),
    ("parts", kernels.parts(16), False),
)


@pytest.mark.parametrize(("name", "text", "packable"), KERNELS)
def test_golden(name: str, text: str, packable: bool, golden: Golden) -> None:
    golden(f"targets/{name}.v3.c", emitted(text, packable=packable))


def test_unit_axes_are_those_that_vectors_walk() -> None:
    assert "UINT64_C(10)" in emitted(kernels.elementwise(8), packable=True)  # x: 0, 1; y: 2, 3
    assert "UINT64_C(0)" in emitted(kernels.columns(8), packable=False)


def test_a_variant_asks_for_the_unit_stride_of_columns_and_the_last_takes_any() -> None:
    """Of an array that nobody packs, walked down its columns alone."""
    kernel = lowered(
        """
def turn(m, n, x: float32[m, n], y: Out[float32[n, m]]):
    for y.i in range(n):
        for y.j_0 in range((m + 7)//8):
            for y.j_1 in vectorized(8):
                with block(
                    "y", i=spatial(y.i), j=spatial(y.j_0*8 + y.j_1, m), where=y.j_0*8 + y.j_1 < m
                ):
                    y[i, j] = x[j, i] * 2.0
""",
        Level.V3,
    )
    variants = [
        finished(kernel, Level.V3, name, None if name == "2" else less(Var("n"), 9))
        for name in "012"
    ]
    text = emit_kernel("turn", "float32", variants, Level.V3, packed=())
    masks = [line.split(", ")[-2] for line in text.splitlines() if "UINT64_C" in line]
    assert masks == ["UINT64_C(1)", "UINT64_C(1)", "UINT64_C(0)"]  # x: axes 0 and 1
    packed = emit_kernel("turn", "float32", variants, Level.V3, packed=("x", "y"))
    masks = [line.split(", ")[-2] for line in packed.splitlines() if "UINT64_C" in line]
    assert masks == ["UINT64_C(8)", "UINT64_C(9)", "UINT64_C(9)"]


SCALED = """
def scaled(m, n, x: float32[m, n], w: float32[{shape}], y: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j_0 in range(n//8):
            for y.j_1 in {kind}(8):
                with block("y", i=spatial(y.i), j=spatial(y.j_0*8 + y.j_1, n)):
                    y[i, j] = x[i, j] * w[{index}]
"""


@pytest.mark.parametrize(
    ("shape", "last", "packed", "mask"),
    [
        ("n", "vectorized", ("x", "y"), 2 + 4 + 16),  # w: axis 2
        ("n", "range", ("x", "y"), 2 + 16),  # a variant takes w as it is
        ("n", "vectorized", ("y",), 16),  # x would be copied with it
        ("m, n", "vectorized", ("x", "y"), 2 + 32),  # as large as x
    ],
)
def test_a_vector_beside_packed_arrays_has_a_unit_stride(
    shape: str, last: str, packed: tuple[str, ...], mask: int
) -> None:
    """The caller copies it where no variant takes it, so that the code is not there twice."""
    variants = []
    for name, kind in (("0", "vectorized"), ("1", last)):
        index = "j" if shape == "n" else "i, j"
        kernel = lowered(SCALED.format(shape=shape, kind=kind, index=index), Level.V3)
        when = less(Var("n"), 9) if name == "0" else None
        variants.append(finished(kernel, Level.V3, name, when))
    text = emit_kernel("scaled", "float32", variants, Level.V3, packed=packed)
    first = next(line for line in text.splitlines() if "UINT64_C" in line)
    assert f"UINT64_C({mask})" in first
    assert ("const bool unit" in text) == (not mask & 4)
