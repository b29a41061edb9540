"""Kernels that are proved to run in place do so without a copy; the others take a temporary."""

import numpy as np
import pytest

import tilesmith as ts

IN_PLACE = {
    *("exp", "gelu", "clamp", "softmax", "layer_norm", "cumsum", "log", "log1p", "expm1", "tanh"),
    *("sin", "cos", "sigmoid", "silu", "gelu_tanh", "softplus", "log_softmax", "rms_norm"),
}
ADDED = ("add_layer_norm", "add_rms_norm")


def test_the_manifest_names_the_inputs() -> None:
    shared = {
        name: {a["name"]: a["in_place"] for a in kernel["arguments"] if a["in_place"]}
        for name, kernel in ts.kernels().items()
    }
    expected = {name: {"y": ["x"]} if name in IN_PLACE else {} for name in shared}
    others = {
        **{name: {"y": ["x", "residual"], "total": ["x", "residual"]} for name in ADDED},
        "axpby": {"z": ["x", "y"]},
        "cumprod": {"y": ["x"]},
        "group_norm": {"y": ["x"]},
        "heat2d": {"y": ["u"]},
        "lstm": {"c": ["h0", "c0"]},
        "multiply_add": {"r": ["x", "y", "z"]},
        "reverse_cumsum": {"y": ["x"]},
        "triangular_solve": {"x": ["b"]},
        "trmm": {"c": ["b"]},
    }
    assert shared == expected | others
    assert shared.keys() >= IN_PLACE | {"transpose", "blur", "sobel", "matmul"}


def test_what_may_be_one_array_on_gpus_is_said_apart() -> None:
    """A launch's threads write while others read: of `trmm` no element may be written early."""
    on_gpus = {
        name: {a["name"]: a["in_place_on_gpus"] for a in kernel["arguments"]}
        for name, kernel in ts.kernels().items()
    }
    assert on_gpus["multiply_add"]["r"] == ["x", "y", "z"] and on_gpus["trmm"]["c"] == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (64, 1000)])
@pytest.mark.parametrize("name", sorted(IN_PLACE))
def test_nothing_is_copied(name: str, shape: tuple[int, int], dtype: type) -> None:
    x = np.random.default_rng(5).standard_normal(shape).astype(dtype)
    more = {
        "clamp": (-0.5, 0.5),
        "layer_norm": (np.ones(shape[-1], dtype), np.zeros(shape[-1], dtype)),
        "rms_norm": (np.ones(shape[-1], dtype),),
    }.get(name, ())
    expected = getattr(ts, name)(x, *more)
    assert getattr(ts, name)(x, *more, out=x) is x
    assert not ts.last_call()["copied"]
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["softmax", "cumsum"])
def test_any_axis_and_strides(name: str, axis: int) -> None:
    """Slices that are packed for their strides are unpacked into the same array."""
    memory = np.random.default_rng(6).standard_normal((90, 140))
    x = memory[::2, ::-2]
    expected = getattr(ts, name)(x, axis=axis)
    assert getattr(ts, name)(x, axis=axis, out=x) is x
    assert not ts.last_call()["copied"]
    np.testing.assert_array_equal(x, expected)


def test_a_kernel_that_reads_around_takes_a_temporary() -> None:
    x = np.random.default_rng(5).standard_normal((50, 50)).astype(np.float32)
    expected = ts.blur(x)
    assert ts.blur(x, out=x) is x
    assert ts.last_call()["copied"]
    np.testing.assert_array_equal(x, expected)
