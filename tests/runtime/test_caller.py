"""Calls by the capsule `_C_API`, as C makes them: through ctypes, which lets go of the GIL."""

import ctypes
import re
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p, cast
from types import ModuleType
from typing import Any

import numpy as np
import pytest

TS_OK, TS_NO_MEMORY, TS_WRONG_ARGUMENT, TS_NO_KERNEL = range(4)
RNG = np.random.default_rng(9)


class Array(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("ndim", c_int),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
    ]  # fmt: skip

    @classmethod
    def of(cls, array: np.ndarray, strides: bool = True) -> "Array":
        numbers = c_int64 * max(array.ndim, 1)
        return cls(
            array.ctypes.data,
            array.ndim,
            numbers(*array.shape),
            numbers(*array.strides) if strides else None,
        )


class Function(Structure):
    _fields_ = [("declaration", c_char_p), ("kernel", c_void_p)]


class Api(Structure):
    _fields_ = [
        ("version", c_int),
        ("find", ctypes.CFUNCTYPE(c_void_p, c_char_p)),
        ("call", ctypes.CFUNCTYPE(c_int, POINTER(Function), POINTER(POINTER(Array)),
                                  POINTER(c_void_p), c_int)),
        ("message", ctypes.CFUNCTYPE(c_char_p)),
    ]  # fmt: skip


class Caller:
    def __init__(self, module: ModuleType) -> None:
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = c_void_p, (ctypes.py_object, c_char_p)
        address = get(module._kernels._C_API, b"standin._kernels._C_API")
        self.api = cast(address, POINTER(Api)).contents

    def __call__(
        self, declaration: str, *given: Any, scalars: Sequence[Any] = (), threads: int = 0
    ) -> tuple[int, str]:
        function = Function(declaration.encode(), self.api.find(declaration.encode()))
        arrays = [Array.of(g) if isinstance(g, np.ndarray) else g for g in given]
        pointers = (POINTER(Array) * len(arrays))(
            *(POINTER(Array)() if a is None else ctypes.pointer(a) for a in arrays)
        )
        addresses = (c_void_p * max(len(scalars), 1))(*(ctypes.addressof(s) for s in scalars))
        status = self.api.call(byref(function), pointers, addresses, threads)
        return status, self.api.message().decode()


@pytest.fixture
def caller(ts: ModuleType) -> Caller:
    return Caller(ts)


SQUARE = "square(in float64 (), out float64 ())"
SOFTMAX = "softmax(in float64 (n), out float64 (n))"
MATMUL = "matmul(in float64 (m, k), in float64 (k, n), out float64 (m, n))"
CLAMP = "clamp(in float32 (), out float32 (), float32, float32, int32)"
PARTS = "parts(in float64 (), out float64 (), out float64 ())"
ADD_INTO = "add_into(inout float64 (n), in float64 (n))"
WINDOWS = "windows(in float64 (n), out float64 (count), float64, float64, int64)"
AFFINE = "affine(in float64 (k), in float64 (n, k), out float64 (n))"


def test_the_version_of_the_interface(caller: Caller) -> None:
    assert caller.api.version == 1


def test_results_are_those_of_calls_from_python(ts: ModuleType, caller: Caller) -> None:
    x = RNG.uniform(1, 2, (3, 40, 50))
    for array in (x, x.T, x[:, ::2, ::-1], np.broadcast_to(x[:, :, :1], x.shape)):
        y = np.full(array.shape, np.nan)
        assert caller(SOFTMAX, array, y)[0] == TS_OK
        np.testing.assert_array_equal(y, ts.softmax(array))
        strided = np.full((*array.shape[:-1], 2 * array.shape[-1]), np.nan)[..., ::2]
        assert caller(SOFTMAX, array, strided, threads=2)[0] == TS_OK
        np.testing.assert_array_equal(strided, y)
    a, b, c = x[:, :, :20], x[0, :20], np.empty((3, 40, 50))
    for left, right in ((a, b), (a, b[::-1]), (a[..., ::-1], np.asfortranarray(b))):
        assert caller(MATMUL, left, right, c)[0] == TS_OK
        np.testing.assert_array_equal(c, ts.matmul(left, right))


def test_a_call_runs_at_the_level_that_was_chosen(ts: ModuleType, caller: Caller) -> None:
    assert caller(SQUARE, np.ones(3), np.ones(3))[0] == TS_OK
    assert ts.last_call() == {
        "kernel": "square", "level": ts.show_config("dicts")["level"], "variant": "unit",
        "packed": False, "copied": False,
    }  # fmt: skip


def test_arrays_without_strides_are_contiguous(caller: Caller) -> None:
    x, y = RNG.uniform(size=(4, 5)), np.zeros((4, 5))
    assert caller(SQUARE, Array.of(x, False), Array.of(y, False))[0] == TS_OK
    np.testing.assert_array_equal(y, x * x)


def test_copies_of_what_no_variant_takes(ts: ModuleType, caller: Caller) -> None:
    """Weights without the loop dim: strided, and misaligned."""
    x, w, y = RNG.uniform(size=(5, 4)), RNG.uniform(size=(3, 4)), np.zeros((5, 3))
    bytes_ = np.zeros(w.nbytes + 1, np.uint8)
    misaligned = bytes_[1:].view(np.float64).reshape(w.shape)
    misaligned[...] = w
    for weights in (np.asfortranarray(w), misaligned):
        y[...] = 0
        assert caller(AFFINE, x, weights, y)[0] == TS_OK
        assert ts.last_call()["copied"]
        np.testing.assert_allclose(y, x @ w.T)


def test_scalars(caller: Caller) -> None:
    x, y = np.array([-1, 0.5, 3], "f4"), np.zeros(3, "f4")
    scalars = ctypes.c_float(0), ctypes.c_float(2), ctypes.c_int32(3)
    assert caller(CLAMP, x, y, scalars=scalars)[0] == TS_OK
    assert y.tolist() == [0, 1.5, 6]


def windows_scalars(seconds: float, rate: float = 2.0, step: int = 1) -> tuple[Any, ...]:
    return ctypes.c_double(seconds), ctypes.c_double(rate), ctypes.c_int64(step)


def test_named_sizes(ts: ModuleType, caller: Caller) -> None:
    x = RNG.uniform(size=(3, 10))
    for step in (1, 2, 3):
        y = np.full((3, (10 - 4) // step + 1), np.nan)
        assert caller(WINDOWS, x, y, scalars=windows_scalars(2.0, 1.9, step))[0] == TS_OK
        expected = np.lib.stride_tricks.sliding_window_view(x, 4, -1)[:, ::step].sum(-1)
        np.testing.assert_allclose(y, expected)
        np.testing.assert_array_equal(y, ts.windows(x, seconds=2.0, rate=1.9, step=step))


@pytest.mark.parametrize(
    ("scalars", "message"),
    [
        (windows_scalars(0.1), "needs length >= 1, got length = 0"),
        (windows_scalars(3.0, 3.5), "the size count is negative, -1, for n = 9, length = 11, "
         "step = 1"),
        (windows_scalars(1.5, 2.0, 0), "count has a divisor that is not positive, for n = 9, "
         "length = 3, step = 0"),
        (windows_scalars(1.5, 2.0, 10), "needs step <= n, got step = 10, n = 9"),
        (windows_scalars(1e300, 1e300), "length is too large for seconds = 1e+300, rate = 1e+300"),
        (windows_scalars(-np.inf, 0.1), "length is too large for seconds = -inf, rate = 0.1"),
        (windows_scalars(np.nan, 2.5e-7), "length is too large for seconds = nan, rate = 2.5e-07"),
        (windows_scalars(1.5), "argument y must have shape (2, 7), got (2, 3)"),
    ],
)  # fmt: skip
def test_wrong_named_sizes_are_told(
    ts: ModuleType, caller: Caller, scalars: tuple[Any, ...], message: str
) -> None:
    """By calls from Python in the same words."""
    x, y = np.ones((2, 9)), np.ones((2, 3))
    assert caller(WINDOWS, x, y, scalars=scalars) == (TS_WRONG_ARGUMENT, f"windows: {message}")
    seconds, rate, step = (s.value for s in scalars)
    with pytest.raises(ValueError, match=re.escape(message.replace("argument y", "out (y)"))):
        ts.windows(x, seconds=seconds, rate=rate, step=step, out=y)


def test_complex_scalars(ts: ModuleType, caller: Caller) -> None:
    for kind, dtype, part in (("c8", "complex64", "float32"), ("c16", "complex128", "float64")):
        x, w = np.array([1 + 2j, -3j], kind), np.array([0.5, 2], part)
        y, imaginary = np.zeros_like(x), np.zeros_like(w)
        number = ctypes.c_float if kind == "c8" else ctypes.c_double
        scalars = (number * 2)(2, -1), number(3)
        declaration = (
            f"turn(in {dtype} (), in {part} (), out {dtype} (), out {part} (), {dtype}, {part})"
        )
        assert caller(declaration, x, w, y, imaginary, scalars=scalars)[0] == TS_OK
        for got, expected in zip((y, imaginary), ts.turn(x, w, 2 - 1j, 3), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_in_place(caller: Caller) -> None:
    x = RNG.uniform(size=(4, 6))
    expected = x * x
    assert caller(SQUARE, x, x)[0] == TS_OK
    np.testing.assert_array_equal(x, expected)
    a, b = RNG.uniform(size=(4, 6)), RNG.uniform(size=6)
    expected = a + b
    assert caller(ADD_INTO, a, b)[0] == TS_OK
    np.testing.assert_array_equal(a, expected)


def test_sizes_0(caller: Caller) -> None:
    nothing = Array(None, 1, (c_int64 * 1)(0), None)
    assert caller(SQUARE, nothing, nothing)[0] == TS_OK
    total = "max(in float64 (n), out float64 ())"
    assert caller(total, np.ones((0, 0)), np.ones(0))[0] == TS_OK
    assert caller(total, np.ones((2, 0)), np.ones(2)) == (
        TS_WRONG_ARGUMENT, "max: dim n must be at least 1, got 0",
    )  # fmt: skip


A, MEMORY = np.ones((2, 3)), np.arange(40.0)
SHAPE = (c_int64 * 2)(2, 3)


@pytest.mark.parametrize(
    ("declaration", "arrays", "message"),
    [
        (SQUARE, (A, None), "square: argument y is NULL"),
        (SQUARE, (A, Array(None, 2, SHAPE, None)), "square: argument y has no data"),
        (SQUARE, (A, Array(8, 2, None, None)), "square: argument y has no shape"),
        (SQUARE, (A, Array(8, 65, SHAPE, None)), "square: argument y: ndim must be from 0 to 64, "
         "got 65"),
        (SQUARE, (Array(8, 2, (c_int64 * 2)(2, -3), None), A),
         "square: argument x: axis 1 has the negative extent -3"),
        (SQUARE, (A, np.ones(3)), "square: argument y must have shape (2, 3), got (3,)"),
        (SQUARE, (A, np.ones(())), "square: argument y must have shape (2, 3), got ()"),
        (SOFTMAX, (np.ones(()), A), "softmax: argument x must have the axes (n,) at its end, got "
         "shape ()"),
        (MATMUL, (A, A, A), "matmul: argument b: dim k (axis 0) must be 3, as in the arguments "
         "before it, got 2"),
        (SQUARE, (MEMORY[:9], MEMORY[1:10]), "square: argument y is written and shares memory with "
         "argument x"),
        (SOFTMAX, (A, A), "softmax: argument y is written and shares memory with argument x"),
        (PARTS, (A[0], MEMORY[:3], MEMORY[2:5]),
         "parts: argument whole is written and shares memory with argument rest"),
        (SQUARE, (np.ones(3), np.broadcast_to(1.0, 3)),
         "square: argument y is written and has several elements in one place"),
        (ADD_INTO, (np.ones(3), np.ones((2, 3))),
         "add_into: argument a must have shape (2, 3), got (3,)"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_told(
    caller: Caller, declaration: str, arrays: tuple[Any, ...], message: str
) -> None:
    before = MEMORY.copy(), A.copy()
    assert caller(declaration, *arrays) == (TS_WRONG_ARGUMENT, message)
    np.testing.assert_array_equal(MEMORY, before[0])
    np.testing.assert_array_equal(A, before[1])


@pytest.mark.parametrize("threads", [-1, 1025])
def test_wrong_numbers_of_threads(caller: Caller, threads: int) -> None:
    assert caller(SQUARE, A, np.ones((2, 3)), threads=threads) == (
        TS_WRONG_ARGUMENT,
        f"square: num_threads must be from 0, the default, to 1024, got {threads}",
    )


def test_no_memory(caller: Caller) -> None:
    greedy = "greedy(in float64 (), out float64 ())"
    assert caller(greedy, np.ones(3), np.ones(3)) == (
        TS_NO_MEMORY, "greedy: no memory for the kernel's workspace",
    )  # fmt: skip


def test_a_kernel_that_is_not_there(caller: Caller) -> None:
    """Another declaration is another kernel: what was compiled against it must not run."""
    for declaration in ("cube(in float64 (), out float64 ())", SQUARE.replace("64", "16")):
        assert caller(declaration, A, A) == (
            TS_NO_KERNEL, f"the installed package has no kernel {declaration}",
        )  # fmt: skip


# ---------------------------------------------------------------- overlap


def test_overlap_is_exact_where_arrays_lie_between_each_other(caller: Caller) -> None:
    """Halves of rows, channels, other rows: written at once from one memory."""
    image = np.arange(240.0).reshape(4, 10, 6)
    pairs = [
        (image[..., :3], image[..., 3:]), (image[..., 0], image[..., 5]), (image[::2], image[1::2]),
        (image[:, ::2], image[:, 1::2]), (image[:, :5, 1:], image[:, 5:, :5]),
        (image[:, 3:0:-1], image[:, 9:6:-1]), (image[1, :, 2], image[2, :, 2]),
    ]  # fmt: skip
    for x, y in pairs:
        assert not np.shares_memory(x, y)
        expected = x * x
        assert caller(SQUARE, x, y) == (TS_OK, caller.api.message().decode())
        np.testing.assert_array_equal(y, expected)


def test_overlap_is_never_missed(caller: Caller) -> None:
    """Random views of one memory: what shares an element is refused."""
    memory, refused, taken = np.zeros(400), 0, 0
    for _ in range(3000):
        shape = tuple(RNG.integers(1, 5, RNG.integers(1, 4)))
        views = []
        for _ in range(2):
            steps = RNG.choice([-13, -7, -6, -3, -2, -1, 1, 2, 3, 6, 7, 12, 13, 24], len(shape))
            low = sum(min(0, s * (n - 1)) for s, n in zip(steps, shape, strict=True))
            start = RNG.integers(0, 60) - low
            views.append(
                np.lib.stride_tricks.as_strided(memory[start:], shape, [8 * int(s) for s in steps])
            )
        x, y = views
        status, _ = caller(PARTS, np.ones(shape), x, y)
        shares = np.shares_memory(x, y)
        alone = all(len(np.unique(_addresses(view))) == view.size for view in views)
        assert not (status == TS_OK and (shares or not alone))
        refused, taken = refused + (status != TS_OK), taken + (status == TS_OK)
    assert refused > 300 and taken > 300


def _addresses(view: np.ndarray) -> np.ndarray:
    places = np.zeros(view.shape, np.int64)
    for axis, (extent, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        places += (np.arange(extent) * stride).reshape(-1, *[1] * (view.ndim - axis - 1))
    return places
