"""Which constants are one number."""

import math

import pytest

from gen.ir.nodes import Const
from gen.ir.types import INDEX, DType


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64, DType.COMPLEX64])
def test_zeros_have_signs(dtype: DType) -> None:
    assert Const(0.0, dtype) == Const(0, dtype) == Const(0.0, dtype)
    assert Const(0.0, dtype) != Const(-0.0, dtype) != Const(0, dtype)
    assert Const(-1.5, dtype) == Const(-1.5, dtype) != Const(1.5, dtype)
    assert len({Const(0.0, dtype), Const(0, dtype), Const(-0.0, dtype)}) == 2


def test_parts_of_complex_zeros_have_signs() -> None:
    parts = (0.0, -0.0)
    zeros = {Const(complex(a, b), DType.COMPLEX128) for a in parts for b in parts}
    assert len(zeros) == 4


def test_types_differ_and_a_nan_is_itself() -> None:
    assert Const(1, INDEX) == Const(1, INDEX) != Const(1, DType.INT32)
    assert Const(True, DType.BOOL) != Const(1, INDEX)
    assert Const(math.nan, DType.FLOAT32) == Const(math.nan, DType.FLOAT32)
    assert Const(1, INDEX) != 1
