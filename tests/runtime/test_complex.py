"""Calls with complex arrays and scalars."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

X = np.array([1 + 2j, -3j, 0.5, 4 - 1j])


def check(ts: ModuleType, x: Any, w: Any = 0, by: Any = 2 - 1j, **options: Any) -> None:
    y, imaginary = ts.turn(x, w, by, **options)
    np.testing.assert_allclose(y, np.asarray(x) * by + w, rtol=1e-6)
    np.testing.assert_allclose(imaginary, np.broadcast_to(np.imag(x), imaginary.shape))


def test_types_follow_numpy(ts: ModuleType) -> None:
    """A real input promotes; so does one where the parts of T stand, and T follows it."""
    for x, w, expected in (
        ("c8", "f4", "c8"), ("c16", "f8", "c16"), ("c8", "f8", "c16"), ("c16", "f4", "c16"),
        ("f4", "f4", "c8"), ("f8", "f4", "c16"), ("i8", "f4", "c16"), ("i2", "f4", "c8"),
        ("?", "i1", "c8"), (">c8", "f4", "c8"), ("c8", ">f8", "c16"),
    ):  # fmt: skip
        y, imaginary = ts.turn(np.ones(3, x), np.ones(3, w), 1j)
        assert (y.dtype, imaginary.dtype) == (np.dtype(expected), y.real.dtype)
        np.testing.assert_array_equal(y, np.full(3, 1 + 1j))
    y, _ = ts.turn(np.ones(2, np.complex64), 1.0, 1j)
    assert y.dtype == np.complex64  # a Python number has no type of its own
    y, _ = ts.turn([1, 2j], 0, 1j)
    assert y.dtype == np.complex128 and y.tolist() == [1j, -2]
    assert ts.turn(1j, 0, 1j)[0] == -1


def test_layouts(ts: ModuleType) -> None:
    for dtype in (np.complex64, np.complex128):
        x = X.astype(dtype)
        check(ts, x[::-2])
        check(ts, np.broadcast_to(x, (3, 4)).T)
        check(ts, x.astype(x.dtype.newbyteorder(">")), np.arange(4.0).astype(">f4"))
        buffer = np.zeros(x.nbytes + 1, np.uint8)
        misaligned = buffer[1:].view(x.dtype)
        misaligned[:] = x
        check(ts, misaligned)
        check(ts, np.array([(0, *x[:2])], [("a", "u1"), ("p", x.dtype), ("q", x.dtype)])["q"])
        check(ts, x.reshape(2, 2), np.arange(2.0), num_threads=2)
        check(ts, x[:0])
        out = np.zeros(8, dtype)[::2]
        ts.turn(x, 0, 2, out=(out, None))
        np.testing.assert_array_equal(out, 2 * x)


def test_scalars_are_anything_that_complex_takes(ts: ModuleType) -> None:
    for by in (2, 2.5, 1j, np.complex64(1 - 1j), np.float32(3), np.array(2j), True):
        check(ts, X, by=by)
    check(ts, X, 3.0, gain=1)


OF_T, OF_PARTS = "supported: complex64, complex128", "supported: float32, float64"


@pytest.mark.parametrize(
    ("x", "w", "options", "message"),
    [
        (np.ones(2, np.clongdouble), 0, {}, f"turn: argument x has dtype complex256; {OF_T}"),
        (X, 1j * np.ones(4), {}, f"turn: argument w has dtype complex128; {OF_PARTS}"),
        (X, 0, {"by": "1j+"}, "turn: scalar by must convert to complex128, got str"),
        (X, 0, {"gain": 1j}, "turn: scalar gain must convert to float64, got complex"),
    ],
)  # fmt: skip
def test_errors(ts: ModuleType, x: Any, w: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        ts.turn(x, w, **{"by": 1, **options})
    assert str(caught.value) == message


def test_the_signature_and_the_stub_say_so(ts: ModuleType, standin_site: Any) -> None:
    assert "w : array of float32 or float64" in ts.turn.__doc__
    stub = (standin_site / "standin" / "_kernels.pyi").read_text()
    gpus = " | _DLPack | _CudaArray"  # what stands in for the package has all on GPUs
    assert f"by: complex{gpus},\n    gain: float{gpus} = ...," in stub
