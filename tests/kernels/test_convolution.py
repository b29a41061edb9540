"""Convolutions with all their scalars, the image kernels and heat2d over time, beside SciPy."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal

import tilesmith as ts
from gen.ir.types import DType

from .support import SPECS, Array, assert_right, call

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
RNG = np.random.default_rng(7)


def normal(dtype: Any, *shape: int) -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def compare(name: str, arrays: Mapping[str, Array], **scalars: float) -> None:
    """The public function beside the oracle."""
    spec = SPECS[name]
    y = call(spec, arrays, **scalars)
    dtype = next(iter(arrays.values())).dtype
    assert_right(spec, {"T": DType(dtype.name)}, arrays, y, scalars)


def correlated(x: Array, weight: Array, stride: int, padding: int, dilation: int) -> Array:
    """One output channel of one image, by scipy.signal."""
    p, q = weight.shape[1:]
    apart = np.zeros((len(weight), dilation * (p - 1) + 1, dilation * (q - 1) + 1))
    apart[:, ::dilation, ::dilation] = weight
    wide = np.pad(x.astype(float), [(0, 0), (padding, padding), (padding, padding)])
    return scipy.signal.correlate(wide, apart, "valid")[0, ::stride, ::stride]


# stride, padding, dilation, groups
SCALARS = [(1, 0, 1, 1), (1, 1, 1, 1), (1, 2, 2, 1), (2, 1, 1, 1), (2, 0, 2, 1), (3, 1, 1, 1),
           (1, 1, 1, 3), (2, 2, 1, 3), (3, 1, 2, 3)]  # fmt: skip


@DTYPES
@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), SCALARS)
def test_conv2d(dtype: Any, stride: int, padding: int, dilation: int, groups: int) -> None:
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    for h, w, o, kh, kw in ((5, 7, 9, 3, 2), (9, 75, 18, 3, 3), (6, 33, 3, 1, 1)):
        x, weight = normal(dtype, 2, 6, h, w), normal(dtype, o, 6 // groups, kh, kw)
        bias = normal(dtype, o)
        compare("conv2d", {"x": x, "weight": weight, "bias": bias}, **options)
    y = ts.conv2d(x, weight, bias, **options)
    for k in range(o):
        first = k // (o // groups) * (6 // groups)
        of_group = x[1, first : first + 6 // groups]
        expected = correlated(of_group, weight[k], stride, padding, dilation) + bias[k]
        np.testing.assert_allclose(y[1, k], expected, rtol=2e-4, atol=2e-5)
    assert ts.conv2d(x[0], weight, bias, **options).shape == y.shape[1:]


@DTYPES
@pytest.mark.parametrize(("stride", "padding", "dilation"), sorted({s[:3] for s in SCALARS}))
def test_depthwise_conv2d(dtype: Any, stride: int, padding: int, dilation: int) -> None:
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    shapes = ((3, 7, 6, 3, 2), (2, 30, 75, 3, 3), (16, 9, 7, 3, 3), (35, 8, 19, 2, 5))
    for c, h, w, kh, kw in (*shapes, (3, 5, 5, 1, 1)):
        x, weight, bias = normal(dtype, 2, c, h, w), normal(dtype, c, kh, kw), normal(dtype, c)
        compare("depthwise_conv2d", {"x": x, "weight": weight, "bias": bias}, **options)
    y = ts.depthwise_conv2d(x, weight, bias, **options)
    expected = correlated(x[1, 2:], weight[2:], stride, padding, dilation) + bias[2]
    np.testing.assert_allclose(y[1, 2], expected, rtol=2e-4, atol=2e-5)


def transposed(x: Array, weight: Array, stride: int, padding: int, more: int) -> Array:
    """One image: each element adds the weight, times it, to the output."""
    (h, w), (o, p, q) = x.shape[1:], weight.shape[1:]
    y = np.zeros((o, (h - 1) * stride + p + more, (w - 1) * stride + q + more))
    for i in range(h):
        for j in range(w):
            at = np.s_[:, i * stride : i * stride + p, j * stride : j * stride + q]
            y[at] += np.einsum("c,ckpq->kpq", x[:, i, j], weight)
    return y[:, padding : y.shape[1] - padding, padding : y.shape[2] - padding]


@DTYPES
@pytest.mark.parametrize(
    ("stride", "padding", "output_padding"),
    [(1, 0, 0), (1, 1, 0), (2, 0, 0), (2, 1, 1), (2, 2, 0), (3, 0, 2), (3, 1, 0), (4, 2, 1)],
)
def test_conv_transpose2d(dtype: Any, stride: int, padding: int, output_padding: int) -> None:
    options = {"stride": stride, "padding": padding, "output_padding": output_padding}
    for h, w, o, kh, kw in ((5, 7, 9, 3, 2), (6, 37, 18, 4, 4), (5, 33, 3, 1, 1)):
        x, weight, bias = normal(dtype, 2, 6, h, w), normal(dtype, 6, o, kh, kw), normal(dtype, o)
        compare("conv_transpose2d", {"x": x, "weight": weight, "bias": bias}, **options)
        y = ts.conv_transpose2d(x, weight, bias, **options, activation="relu")
        expected = transposed(x[1], weight, stride, padding, output_padding) + bias[:, None, None]
        np.testing.assert_allclose(y[1], np.maximum(expected, 0), rtol=2e-4, atol=2e-5)


@DTYPES
@pytest.mark.parametrize(("stride", "padding", "dilation"), sorted({s[:3] for s in SCALARS}))
def test_conv3d(dtype: Any, stride: int, padding: int, dilation: int) -> None:
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    for d, h, w, o, kd, kh, kw in ((3, 5, 7, 9, 1, 3, 2), (5, 5, 37, 10, 2, 2, 3)):
        x, bias = normal(dtype, 2, 3, d, h, w), normal(dtype, o)
        weight = normal(dtype, o, 3, kd, kh, kw)
        compare("conv3d", {"x": x, "weight": weight, "bias": bias}, **options)
    flat = ts.conv3d(x[:, :, :1], weight[:, :, :1], bias, stride=stride, dilation=dilation)
    same = ts.conv2d(x[:, :, 0], weight[:, :, 0], bias, stride=stride, dilation=dilation)
    np.testing.assert_allclose(flat[:, :, 0], same, rtol=2e-4, atol=2e-5)


@DTYPES
@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.3, 2.0, 7.5])
def test_gaussian(dtype: Any, sigma: float) -> None:
    for h, w in ((1, 1), (3, 40), (25, 130)):
        compare("gaussian", {"x": normal(dtype, h, w)}, sigma=sigma)
        compare("gaussian", {"x": normal(dtype, h, w)}, sigma=sigma, truncate=2.5)


def test_gaussian_of_no_width_is_the_image() -> None:
    x = normal(np.float64, 5, 6)
    np.testing.assert_array_equal(ts.gaussian(x, sigma=0.0), x)
    assert ts.gaussian(x[:0]).shape == (0, 6) and ts.gaussian(x[:, :0]).shape == (5, 0)


@DTYPES
@pytest.mark.parametrize(("height", "width"), [(0, 4), (1, 1), (5, 70), (37, 9), (12, 33)])
def test_resize(dtype: Any, height: int, width: int) -> None:
    for h, w in ((1, 1), (12, 33), (40, 5)):
        compare("resize", {"x": normal(dtype, h, w)}, height=height, width=width)


def test_resize_to_the_same_size_is_the_image() -> None:
    x = normal(np.float32, 12, 33)
    np.testing.assert_array_equal(ts.resize(x, height=12, width=33), x)
    twice = scipy.ndimage.zoom(x.astype(float), 2, order=1, mode="nearest", grid_mode=True)
    np.testing.assert_allclose(ts.resize(x, height=24, width=66), twice, atol=1e-6)


@DTYPES
@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_heat2d(dtype: Any, steps: int) -> None:
    for h, w in ((1, 3), (2, 2), (3, 3), (20, 70)):
        compare("heat2d", {"u": normal(dtype, h, w)}, steps=steps, alpha=0.2)


IMAGE, WEIGHT, BIAS = np.ones((2, 4, 5)), np.ones((3, 2, 2, 2)), np.ones(3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: ts.conv2d(IMAGE, WEIGHT, BIAS, stride=0),
         "conv2d: needs stride >= 1, got stride = 0"),
        (lambda: ts.conv2d(IMAGE, WEIGHT, BIAS, groups=2),
         "conv2d: needs o % groups == 0, got o = 3, groups = 2"),
        (lambda: ts.conv2d(IMAGE[:1], WEIGHT, BIAS),
         "conv2d: argument x: axis 0 must have extent channels = 2 for groups = 1, cg = 2, got 1"),
        (lambda: ts.conv2d(IMAGE, WEIGHT, BIAS, dilation=4),
         "conv2d: needs dilation * (kh - 1) < h + 2 * padding, got dilation = 4, kh = 2, h = 4,"
         " padding = 0"),
        (lambda: ts.conv2d(IMAGE, WEIGHT, BIAS, padding=2**62),
         f"conv2d: dilation * (kh - 1) < h + 2 * padding is too large for dilation = 1,"
         f" kh = 2, h = 4, padding = {2**62}"),
        (lambda: ts.conv2d(IMAGE, WEIGHT, BIAS, groups=2**62),
         f"conv2d: needs o % groups == 0, got o = 3, groups = {2**62}"),
        (lambda: ts.conv2d(IMAGE, WEIGHT, np.ones(4)),
         "conv2d: argument bias: dim o (axis 0) must be 3, as in the arguments before it, got 4"),
        (lambda: ts.conv_transpose2d(IMAGE, WEIGHT[:2], BIAS[:2], stride=2, output_padding=2),
         "conv_transpose2d: needs output_padding < stride, got output_padding = 2, stride = 2"),
        (lambda: ts.conv_transpose2d(IMAGE[:, :3, :4], WEIGHT[:2], BIAS[:2], padding=2),
         "conv_transpose2d: needs oh >= 1, got oh = 0"),
        (lambda: ts.conv3d(np.ones((1, 3, 4, 5)), np.ones((3, 1, 2, 2, 2)), BIAS, dilation=4),
         "conv3d: needs dilation * (kd - 1) < d + 2 * padding, got dilation = 4, kd = 2, d = 3,"
         " padding = 0"),
        (lambda: ts.gaussian(IMAGE, sigma=-1.0),
         "gaussian: the size radius is negative, -3, for truncate = 4.0, sigma = -1.0"),
        (lambda: ts.gaussian(IMAGE, sigma=np.inf),
         "gaussian: radius is too large for truncate = 4.0, sigma = inf"),
        (lambda: ts.resize(IMAGE, height=-1, width=3),
         "resize: needs height >= 0, got height = -1"),
    ],
)  # fmt: skip
def test_errors(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        wrong()
    assert str(caught.value) == message


def test_sizes_are_documented() -> None:
    assert "oh = (h + 2 * padding - dilation * (kh - 1) - 1) // stride + 1" in ts.conv2d.__doc__
    assert ts.kernels()["gaussian"]["sizes"] == {"radius": "int64(truncate * sigma + 0.5)"}
