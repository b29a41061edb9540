"""Sizes that follow from others, through a built extension: results, `out=`, strides and errors."""

import importlib
import sys
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from .author import ROOT, Author, package

SPECS = ROOT / "tests" / "language" / "sizes"
NAMED = ROOT / "tests" / "language" / "named"
NAMED_SPECS = [NAMED / "max_pool2d.yaml", NAMED / "window.yaml"]
RNG = np.random.default_rng(4)


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory, author: Author) -> ModuleType:
    """The specs of tests/language/sizes, and two of named sizes, as a package, by way of a new
    project's meson.build.
    """
    folder = tmp_path_factory.mktemp("sized")
    source = package(folder, [*sorted(SPECS.glob("*.yaml")), *NAMED_SPECS])
    built = folder / "sized"
    printed = author.run("python", "-m", "mesonbuild.mesonmain", "setup", built, source)
    printed += author.run("ninja", "-C", built)
    assert "ts_sizes.c:" not in printed  # no warnings
    (built / "__init__.py").write_text("from ._kernels import *\n")
    sys.path.insert(0, str(folder))
    return importlib.import_module("sized")


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def test_results(sized: ModuleType) -> None:
    x, w = normal(2, 5, 40), normal(7)
    expected = sliding_window_view(x, 7, -1) @ w
    np.testing.assert_allclose(sized.valid(x, w), expected, rtol=1e-12)
    np.testing.assert_allclose(
        sized.valid(x.transpose(1, 0, 2)[::-1], w), expected.transpose(1, 0, 2)[::-1], rtol=1e-12
    )
    strided = np.asfortranarray(x)
    np.testing.assert_allclose(sized.valid(strided, w), expected, rtol=1e-12)
    assert sized.valid(x[..., :7], w).shape == (2, 5, 1)
    assert sized.valid(x[:0], w).shape == (0, 5, 34)
    f = normal(3, 2)
    np.testing.assert_allclose(
        sized.valid_2d(x, f),
        np.einsum("bhwpq,pq->bhw", sliding_window_view(x, (3, 2), (1, 2)), f),
        rtol=1e-12,
    )
    np.testing.assert_array_equal(
        sized.max_pool(x.astype("f4")),
        sliding_window_view(x.astype("f4"), (3, 3), (1, 2))[:, ::2, ::2].max((3, 4)),
    )
    np.testing.assert_array_equal(sized.padded(x, pad=3), np.pad(x, [(0, 0), (0, 0), (3, 3)]))
    np.testing.assert_array_equal(sized.nearest(x, size=5), x[..., ::8])
    assert sized.nearest(x, size=0).shape == (2, 5, 0)


def test_a_row_start_has_one_more(sized: ModuleType) -> None:
    start = np.array([0, 2, 2, 3], "i4")
    column, value = np.array([0, 2, 1], "i4"), np.array([1.0, 2.0, 3.0])
    y = sized.sparse(start, column, value, np.array([1.0, 10.0, 100.0]))
    assert y.tolist() == [201.0, 0.0, 30.0]
    assert sized.sparse(start[:1], column, value, np.ones(3)).shape == (0,)


def test_an_axis_of_so_many_times_a_dim(sized: ModuleType) -> None:
    x = normal(3, 15)
    np.testing.assert_allclose(sized.moduli(x), np.hypot(x[:, 1::2], x[:, 2::2]), rtol=1e-12)
    assert sized.moduli(x[:, :1]).shape == (3, 0)
    out = np.empty((7, 3)).T
    assert sized.moduli(x[::-1, ::-1], out=out) is out
    np.testing.assert_allclose(out, np.hypot(x[::-1, -2::-2], x[::-1, -3::-2]), rtol=1e-12)


def test_an_axis_before_the_dim_that_it_follows(sized: ModuleType) -> None:
    e, d, x = normal(4), normal(5), normal(3, 5)
    expected = x @ (np.diag(d) + np.diag(e, 1) + np.diag(e, -1))
    np.testing.assert_allclose(sized.tridiagonal(e, d, x), expected, rtol=1e-12)


def test_axis_of_an_array_and_one_that_follows(sized: ModuleType) -> None:
    x = normal(6, 5, 9)
    for axis in (0, 1, 2, -1):
        np.testing.assert_array_equal(sized.differences(x, axis=axis), np.diff(x, axis=axis))
    assert sized.differences(x[:1], axis=0).shape == (0, 5, 9)


def test_named_sizes(sized: ModuleType) -> None:
    x = normal(2, 3, 9, 40)
    for stride in (1, 2, 3):
        wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
        expected = sliding_window_view(wide, (3, 3), (2, 3))[:, :, ::stride, ::stride].max((4, 5))
        got = sized.max_pool2d(x, size=3, stride=stride, padding=1)
        np.testing.assert_array_equal(got, expected)
        out = np.empty(expected.shape[::-1]).T
        assert sized.max_pool2d(x, size=3, stride=stride, padding=1, out=out) is out
        np.testing.assert_array_equal(out, expected)
    y = sized.window(normal(2, 9) * 0 + 1, seconds=2.0, rate=1.5, parts=3)
    assert y.tolist() == [[3.0] * 7] * 2
    assert sized.window(normal(2, 3), seconds=2.0).shape == (2, 0)


def test_out(sized: ModuleType) -> None:
    x, w = normal(3, 9), normal(2)
    out = np.empty((8, 3)).T
    assert sized.valid(x, w, out=out) is out
    np.testing.assert_allclose(out, sliding_window_view(x, 2, -1) @ w, rtol=1e-12)
    expected = np.diff(x)
    assert np.array_equal(sized.differences(x, out=x[:, :-1]), expected)  # they overlap


NOT_OUT = "valid: out (y) must have shape (3, 8), got (3, 9)"
START, INDEX = np.zeros(3, "i4"), np.zeros(4, "i4")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.valid(np.ones(3), np.ones(4)), "valid: needs k <= n, got k = 4, n = 3"),
        (lambda s: s.valid(np.ones(3), np.ones(0)), "valid: dim k must be at least 1, got 0"),
        (lambda s: s.valid(np.ones((3, 9)), np.ones(2), out=np.ones((3, 9))), NOT_OUT),
        (lambda s: s.valid_2d(np.ones((2, 3)), np.ones((1, 4))),
         "valid_2d: needs q <= w, got q = 4, w = 3"),
        (lambda s: s.differences(np.ones((2, 0))),
         "differences: the size n - 1 is negative, -1, for n = 0"),
        (lambda s: s.max_pool(np.ones((9, 0), "f4")),
         "max_pool: dim w must be at least 3, got 0"),
        (lambda s: s.padded(np.ones(3), pad=-1), "padded: needs pad >= 0, got pad = -1"),
        (lambda s: s.padded(np.ones(3), pad=2**62),
         f"padded: n + 2 * pad is too large for n = 3, pad = {2**62}"),
        (lambda s: s.nearest(np.ones(3), size=-2),
         "nearest: the size size is negative, -2, for size = -2"),
        (lambda s: s.sparse(START[:0], INDEX, np.ones(4), np.ones(2)),
         "sparse: argument start: axis 0 must have extent m + 1, at least 1, got 0"),
        (lambda s: s.moduli(np.ones(0)),
         "moduli: argument x: axis 0 must have extent 2 * n + 1, at least 1, got 0"),
        (lambda s: s.moduli(np.ones((2, 8))),
         "moduli: argument x: axis 1 must have extent 2 * n + 1 = 7 for n = 3, got 8"),
        (lambda s: s.tridiagonal(np.ones(5), np.ones(5), np.ones((2, 5))),
         "tridiagonal: argument e: axis 0 must have extent n - 1 = 4 for n = 5, got 5"),
        (lambda s: s.tridiagonal(np.ones(0), np.ones(0), np.ones(0)),
         "tridiagonal: dim n must be at least 1, got 0"),
        (lambda s: s.max_pool2d(np.ones((4, 5)), stride=0),
         "max_pool2d: needs stride >= 1, got stride = 0"),
        (lambda s: s.max_pool2d(np.ones((4, 5)), size=9, padding=1),
         "max_pool2d: the size oh is negative, -1, for h = 4, padding = 1, size = 9, stride = 2"),
        (lambda s: s.max_pool2d(np.ones((4, 5)), size=2**62, padding=2**62),
         f"max_pool2d: 2 * padding <= size is too large for padding = {2**62}, size = {2**62}"),
        (lambda s: s.max_pool2d(np.ones((4, 5)), out=np.ones((2, 3))),
         "max_pool2d: out (y) must have shape (2, 2), got (2, 3)"),
        (lambda s: s.window(np.ones((4, 5)), parts=0),
         "window: step has a divisor that is not positive, for length = 3, parts = 0"),
        (lambda s: s.window(np.ones((4, 5)), seconds=0.1),
         "window: needs length >= 1, got length = 0"),
        (lambda s: s.window(np.ones((4, 5)), seconds=np.inf),
         "window: length is too large for seconds = inf, rate = 2.0"),
        (lambda s: s.sparse(np.int32(3), INDEX, np.ones(4), np.ones(2)),
         "sparse: argument start must have the axes (m + 1,) at its end, got shape ()"),
    ],
)  # fmt: skip
def test_errors(sized: ModuleType, call: Callable[[ModuleType], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        call(sized)
    assert str(caught.value) == message


def test_documentation(sized: ModuleType) -> None:
    assert "Signature: (n),(k)->(n - k + 1); leading axes broadcast.\n" in sized.valid.__doc__
    assert "\nSizes: k >= 1, k <= n.\n" in sized.valid.__doc__
    assert "\nSizes: h >= 1, w >= 1, size >= 1, stride >= 1, " in sized.max_pool2d.__doc__
    assert ", oh = (h + 2 * padding - size) // stride + 1, ow = " in sized.max_pool2d.__doc__
    assert sized.kernels()["window"]["sizes"]["length"] == "int64(seconds * rate + 0.5)"
    assert sized.kernels()["sparse"]["arguments"][0]["core"] == ["m + 1"]
