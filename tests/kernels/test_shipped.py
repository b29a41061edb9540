"""Every shipped kernel, through the public package, on the level that this process runs at.

`test_levels.py` runs this file again at the other levels that the machine has.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilesmith as ts
from gen.ir.nodes import Intent
from gen.ir.types import DType
from gen.language.model import KernelSpec
from gen.trial.inputs import random_arrays

from .support import (
    CASES,
    SPECS,
    assert_right,
    call,
    case_name,
    far,
    outputs,
    sizes_from,
    sizes_of,
)

Array = NDArray[Any]
Dtypes = Mapping[str, DType]
every_case = pytest.mark.parametrize(("name", "dtypes"), CASES, ids=case_name)


@every_case
def test_sizes_around_tiles_and_vectors(name: str, dtypes: Dtypes) -> None:
    spec, rng = SPECS[name], np.random.default_rng(1)
    for sizes in sizes_of(spec, dtypes):
        arrays = random_arrays(spec, dtypes, sizes, rng)
        assert_right(spec, dtypes, arrays, call(spec, arrays))


def _middle(name: str, dtypes: Dtypes) -> dict[str, Array]:
    spec = SPECS[name]
    sizes = sizes_from(spec, 37, 16)
    return random_arrays(spec, dtypes, sizes, np.random.default_rng(2))


def _read_only(a: Array) -> Array:
    a = a.copy()
    a.flags.writeable = False
    return a


def _every_second(a: Array) -> Array:
    if a.ndim == 0:
        return a
    wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    wide[..., ::2] = a
    return wide[..., ::2]


def _reversed(a: Array) -> Array:
    return np.ascontiguousarray(a[..., ::-1])[..., ::-1] if a.ndim else a


def _misaligned(a: Array) -> Array:
    buffer = np.zeros(a.nbytes + 1, np.uint8)
    view = buffer[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    assert a.size == 0 or a.itemsize == 1 or not view.flags.aligned
    return view


def _big_endian(a: Array) -> Array:
    """The values with their bytes turned around; bfloat16, which has no such dtype, as it is."""
    return a if a.dtype.kind == "V" else a.astype(a.dtype.newbyteorder(">"))


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "Fortran order": np.asfortranarray,
    "every second": _every_second,
    "reversed": _reversed,
    "read-only": _read_only,
    "misaligned": _misaligned,
    "big-endian": _big_endian,
    "one element off": lambda a: np.concatenate([a.ravel()[:1], a.ravel()])[1:].reshape(a.shape),
}


@every_case
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_inputs(name: str, dtypes: Dtypes, layout: str) -> None:
    spec, arrays = SPECS[name], _middle(name, dtypes)
    laid_out = {
        a.name: LAYOUTS[layout](arrays[a.name]) for a in spec.arguments if a.intent is Intent.IN
    }
    assert_right(spec, dtypes, arrays, call(spec, {**arrays, **laid_out}))


@every_case
@pytest.mark.parametrize("layout", ["Fortran order", "every second", "reversed"])
def test_layouts_of_out(name: str, dtypes: Dtypes, layout: str) -> None:
    spec, arrays = SPECS[name], _middle(name, dtypes)
    outs = _outs(name, arrays, layout)
    results = call(spec, arrays, out=outs)
    assert all(result is out for result, out in zip(results, outs, strict=True))
    assert_right(spec, dtypes, arrays, results)


def _outs(name: str, arrays: Mapping[str, Array], layout: str) -> tuple[Array, ...]:
    return tuple(LAYOUTS[layout](np.zeros_like(arrays[out])) for out in outputs(SPECS[name]))


@every_case
@pytest.mark.parametrize("order", ["C", "F"])
def test_out_does_not_change_a_bit(name: str, dtypes: Dtypes, order: str) -> None:
    """The layout of what is read may choose the variant; that of what is written may not."""
    spec = SPECS[name]
    sizes = sizes_from(spec, far(spec, 200), 31)
    arrays = random_arrays(spec, dtypes, sizes, np.random.default_rng(4))
    given = {a.name: np.asarray(arrays[a.name], order=order) for a in spec.arguments}
    expected = call(spec, given)
    for layout in ("every second", "reversed", "Fortran order"):
        results = call(spec, given, out=_outs(name, arrays, layout))
        for result, same in zip(results, expected, strict=True):
            assert result.tobytes() == same.tobytes()


@every_case
def test_the_same_bits_on_any_number_of_threads(name: str, dtypes: Dtypes) -> None:
    spec = SPECS[name]
    sizes = sizes_from(spec, far(spec, 300) if len(spec.dims) > 1 else 100_000, 0)
    arrays = random_arrays(spec, dtypes, sizes, np.random.default_rng(3))
    one = call(spec, arrays, num_threads=1)
    for threads in (2, 3):
        for a, b in zip(one, call(spec, arrays, num_threads=threads), strict=True):
            assert a.tobytes() == b.tobytes()


def _last(spec: KernelSpec, out: Any) -> tuple[Any, ...]:
    """`out=` for the last result alone."""
    return (*[None] * (len(outputs(spec)) - 1), out)


@every_case
def test_out_may_be_the_input(name: str, dtypes: Dtypes) -> None:
    spec, arrays = SPECS[name], _middle(name, dtypes)
    first, out = spec.arguments[0], spec.arguments[-1]
    if arrays[first.name].shape != arrays[out.name].shape or first.element != out.element:
        return  # no array can be both
    expected = call(spec, arrays)[-1]
    both = arrays[first.name].copy()
    call(spec, {**arrays, first.name: both}, out=_last(spec, both))
    assert both.tobytes() == expected.tobytes()


@every_case
def test_out_may_overlap_the_input(name: str, dtypes: Dtypes) -> None:
    spec, arrays = SPECS[name], _middle(name, dtypes)
    first, out = spec.arguments[0], spec.arguments[-1]
    x = arrays[first.name]
    if x.shape != arrays[out.name].shape or first.element != out.element:
        return
    expected = call(spec, arrays)[-1]
    memory = np.zeros(x.size + 5, x.dtype)
    source, target = memory[: x.size].reshape(x.shape), memory[5:].reshape(x.shape)
    source[...] = x
    call(spec, {**arrays, first.name: source}, out=_last(spec, target))
    assert target.tobytes() == expected.tobytes()


@every_case
def test_leading_axes_broadcast(name: str, dtypes: Dtypes) -> None:
    """A stack of problems gives what the problems give one by one; other inputs are shared."""
    spec, arrays = SPECS[name], _middle(name, dtypes)
    first = spec.arguments[0].name
    x = arrays[first]
    stack = np.stack([x, x[::-1], np.roll(x, 1)])
    together = call(spec, {**arrays, first: stack})[0]
    for k, one in enumerate(stack):
        assert together[k].tobytes() == call(spec, {**arrays, first: one})[0].tobytes()


def test_the_level_is_the_one_asked_for() -> None:
    import os

    asked = os.environ.get("TILESMITH_CPU_LEVEL")
    ts.exp(np.ones(3))
    assert asked is None or ts.last_call()["level"] == asked


def test_the_negative_control() -> None:
    """A kernel that is off by more than it promises does fail `assert_right`."""
    spec = SPECS["exp"]
    arrays = random_arrays(spec, {"T": DType.FLOAT32}, {"m": 40}, np.random.default_rng(0))
    good = call(spec, arrays)[0]
    bad = good.copy()
    bad[39] = np.nextafter(np.nextafter(bad[39], np.inf, dtype=bad.dtype), np.inf, dtype=bad.dtype)
    assert_right(spec, {"T": DType.FLOAT32}, arrays, (good,))
    with pytest.raises(AssertionError, match="largest error"):
        assert_right(spec, {"T": DType.FLOAT32}, arrays, (bad,))


@pytest.mark.parametrize("name", ["sum", "mean", "cumsum"])
def test_the_direction_and_the_axes_of_out_have_no_say(name: str) -> None:
    function, x = getattr(ts, name), np.random.default_rng(5).standard_normal((255, 65)).astype("f")
    wide = np.broadcast_to(x[:, :, None], (255, 65, 5))
    fresh = function(x[:, ::-1], axis=0)
    out = np.empty_like(fresh)[..., ::-1]
    np.testing.assert_array_equal(function(x[:, ::-1], axis=0, out=out), fresh)
    fresh = function(wide, axis=0)
    np.testing.assert_array_equal(
        function(wide, axis=0, out=np.empty_like(fresh, order="F")), fresh
    )


def test_a_result_without_elements_takes_no_time() -> None:
    """However many columns of nothing there are."""
    nothing = np.empty((0, 2**47), "f")
    assert ts.cumsum(nothing, axis=0).shape == nothing.shape
