"""Halide with schedules by hand, compiled for the very shape, into a buffer that is given."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import halide as hl

from ..worker import Array, Call, Maker

VERSION = version("halide")

ROWS, COLUMNS, LANES = 6, 64, 16  # of the matrix product's tile in registers
STRIP = 32  # rows of an image that a thread does at a time
GROUP = 4  # of them at once, so that each row is loaded once for three results

_x, _y = hl.Var("x"), hl.Var("y")


def _matmul(out: Array | None, a: Array, b: Array) -> Call | None:
    """All of k for one tile of registers; a panel of b's columns stays in L2 for all rows."""
    (m, k), n = a.shape, b.shape[1]
    if m < ROWS or n < COLUMNS:
        return None
    left, right = hl.Buffer(a), hl.Buffer(b)
    xo, yo, xi, yi = (hl.Var(name) for name in ("xo", "yo", "xi", "yi"))
    r = hl.RDom([(0, k)])
    total, product = hl.Func("total"), hl.Func("product")
    total[_x, _y] = hl.f32(0)
    total[_x, _y] += left[r.x, _y] * right[_x, r.x]
    product[_x, _y] = total[_x, _y]
    product.tile(_x, _y, xo, yo, xi, yi, COLUMNS, ROWS).reorder(xi, yi, yo, xo)
    product.vectorize(xi, LANES).unroll(xi).unroll(yi).parallel(xo)
    total.compute_at(product, yo).vectorize(_x, LANES).unroll(_x).unroll(_y)
    total.update().reorder(_x, _y, r.x).vectorize(_x, LANES).unroll(_x).unroll(_y)
    return _realized(product, out)


def _blurred(image: Any) -> Any:
    column = image[_x, _y - 1] + image[_x, _y] + image[_x, _y + 1]
    rows = hl.Func("rows")
    rows[_x, _y] = column
    return (rows[_x - 1, _y] + rows[_x, _y] + rows[_x + 1, _y]) * hl.f32(1 / 9)


def _unsharp(image: Any) -> Any:
    return 2 * image[_x, _y] - _blurred(image)


def _sobel(image: Any) -> Any:
    smooth, slope = hl.Func("smooth"), hl.Func("slope")
    smooth[_x, _y] = image[_x, _y - 1] + 2 * image[_x, _y] + image[_x, _y + 1]
    slope[_x, _y] = image[_x, _y - 1] - image[_x, _y + 1]
    across = smooth[_x - 1, _y] - smooth[_x + 1, _y]
    along = slope[_x - 1, _y] + 2 * slope[_x, _y] + slope[_x + 1, _y]
    return hl.sqrt((across * across + along * along) * hl.f32(1 / 32))


def _stencil(value: Callable[[Any], Any]) -> Maker:
    """All inlined, four rows at a time in registers, strips of rows over threads."""

    def make(out: Array | None, x: Array) -> Call | None:
        if x.shape[0] < STRIP or x.shape[1] < LANES:
            return None
        image = hl.BoundaryConditions.repeat_edge(hl.Buffer(x))
        result = hl.Func("result")
        strip, row, group, within = (hl.Var(name) for name in ("strip", "row", "group", "within"))
        result[_x, _y] = value(image)
        result.split(_y, strip, row, STRIP).split(row, group, within, GROUP)
        result.reorder(within, _x, group, strip).unroll(within)
        result.vectorize(_x, LANES).parallel(strip)
        return _realized(result, out)

    return make


def _realized(function: Any, out: Array | None) -> Call:
    assert out is not None, "the function fills a buffer that it is given"
    function.compile_jit()
    buffer = hl.Buffer(out)

    def call() -> Array:
        function.realize(buffer)
        return out

    return call


KERNELS = {
    "matmul": _matmul,
    "blur": _stencil(_blurred),
    "unsharp": _stencil(_unsharp),
    "sobel": _stencil(_sobel),
}
