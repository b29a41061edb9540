"""Calls of compiled kernels: strides, broadcasting, dtypes, out=, axis=, overlap, sizes 0."""

import inspect
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from tests.runtime.conftest import OnGpu

RNG = np.random.default_rng(7)
DTYPES = (np.float32, np.float64)

on_the_processor = pytest.mark.parametrize("ts", ["NumPy"], indirect=True)


@pytest.fixture(params=["NumPy", "CuPy"], scope="module")
def ts(request: pytest.FixtureRequest, standin: ModuleType, on_gpu: OnGpu) -> ModuleType | OnGpu:
    """The stand-in's functions, as they are called with arrays of each."""
    return standin if request.param == "NumPy" else on_gpu


def _ratio(x: np.ndarray, axis: int = -1) -> np.ndarray:
    return x / x.sum(axis=axis, keepdims=True)


def _layouts(shape: tuple[int, ...], dtype: type) -> dict[str, np.ndarray]:
    """The same values in memory layouts that a kernel's code could get wrong."""
    x = RNG.uniform(1, 2, shape).astype(dtype)
    wide = np.zeros([2 * n for n in shape], dtype)
    every_other = wide[tuple(slice(None, None, 2) for _ in shape)]
    every_other[...] = x
    backwards = np.ascontiguousarray(x[tuple(slice(None, None, -1) for _ in shape)])
    record = np.zeros(shape, np.dtype([("tag", "i1"), ("value", dtype)]))
    record["value"] = x
    read_only = x.copy()
    read_only.flags.writeable = False
    return {
        "contiguous": x,
        "fortran": np.asfortranarray(x),
        "every other": every_other,
        "backwards": backwards[tuple(slice(None, None, -1) for _ in shape)],
        "swapped bytes": x.astype(x.dtype.newbyteorder("S")),
        "field of a record": record["value"],
        "read-only": read_only,
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 5), (33, 65), (2, 3, 0), (0, 3)])
def test_every_layout_gives_the_same_values(
    ts: ModuleType, shape: tuple[int, ...], dtype: type
) -> None:
    for layout, x in _layouts(shape, dtype).items():
        native = np.ascontiguousarray(x, dtype=dtype)
        for axis in range(-len(shape), len(shape)):
            got = ts.softmax(x, axis=axis)
            np.testing.assert_allclose(got, _ratio(native, axis), rtol=1e-6, err_msg=layout)
            total = ts.total(x, axis=axis)
            np.testing.assert_allclose(total, native.sum(axis=axis), rtol=1e-5, err_msg=layout)
        np.testing.assert_array_equal(ts.square(x), native * native, err_msg=layout)
        assert ts.square(x).dtype == dtype


@pytest.mark.parametrize("layout", ["fortran", "every other", "backwards", "swapped bytes"])
def test_out_in_every_layout(ts: ModuleType, layout: str) -> None:
    x = RNG.uniform(1, 2, (4, 5, 6))
    out = _layouts((4, 5, 6), np.float64)[layout]
    assert ts.softmax(x, out=out) is out
    np.testing.assert_allclose(out, _ratio(x))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_matmul_broadcasts_as_numpy_does(ts: ModuleType, data: st.DataObject) -> None:
    m, k, n = (data.draw(st.integers(0, 4)) for _ in range(3))
    lead = data.draw(st.lists(st.integers(0, 3), max_size=3))
    shapes = []
    for core in ((m, k), (k, n)):
        mine = [data.draw(st.sampled_from([size, 1])) for size in lead]
        shapes.append((*mine[data.draw(st.integers(0, len(mine))) :], *core))
    a, b = (RNG.uniform(size=shape) for shape in shapes)
    if data.draw(st.booleans()):
        a = np.asfortranarray(a)
    if data.draw(st.booleans()):
        b = b[..., ::-1]
    np.testing.assert_allclose(ts.matmul(a, b), np.matmul(a, b), atol=1e-12)


@on_the_processor
def test_leading_axes_collapse_and_slices_are_packed_only_for_their_strides(ts: ModuleType) -> None:
    x = RNG.uniform(1, 2, (6, 7, 8))
    for array, packed in ((x, False), (x[::2], False), (x[..., ::2], True), (x.T, True)):
        ts.softmax(array)
        assert ts.last_call()["packed"] is packed
        assert ts.last_call()["variant"] == "unit"
    ts.square(x.transpose(2, 0, 1))  # all axes are leading: any order will do
    level = ts.show_config("dicts")["level"]
    done = {"kernel": "square", "level": level, "variant": "unit"}
    assert ts.last_call() == done | {"packed": False, "copied": False}


@on_the_processor
def test_a_variant_for_the_strides_is_taken_rather_than_packing(ts: ModuleType) -> None:
    x = RNG.uniform(size=(9, 8))
    for array, variant, packed in (
        (x, "inner", False),
        (x.T, "outer", False),
        (x[::2, ::2], "inner", True),
        (x[:1], "inner", False),
        (x[:1, ::2], "inner", True),  # one row is no column of rows of one element
        (x[:, 0], "inner", True),
    ):
        np.testing.assert_allclose(ts.total(array, axis=-1), array.sum(axis=-1))
        assert (ts.last_call()["variant"], ts.last_call()["packed"]) == (variant, packed)
    x = RNG.uniform(size=(4, 4))
    ts.matmul(x, x.T)
    assert ts.last_call()["variant"] == "strided"


@on_the_processor
def test_a_block_gets_the_variant_for_its_size(ts: ModuleType) -> None:
    """Rows are packed in blocks; `when` refuses 5 rows, and 8 slices of 4 KB are a block of 16."""
    x = RNG.uniform(1, 2, (512, 21)).T
    np.testing.assert_allclose(ts.softmax(x), _ratio(x))
    x = RNG.uniform(1, 2, (2048, 21)).T
    np.testing.assert_allclose(ts.softmax(x), _ratio(x))
    assert ts.last_call()["packed"]


def test_weights_without_the_loop_dim(ts: ModuleType) -> None:
    """Axes along which w varies too run outside the loop; w is copied only for its strides."""
    x, w = RNG.uniform(size=(5, 2, 4)), RNG.uniform(size=(2, 3, 4))
    np.testing.assert_allclose(ts.affine(x, w), np.einsum("abk,bnk->abn", x, w))
    assert not ts.last_call()["copied"]
    for strided in (np.asfortranarray(w), np.repeat(w, 2, axis=2)[..., ::2]):
        np.testing.assert_allclose(ts.affine(x, strided), np.einsum("abk,bnk->abn", x, w))
        assert ts.last_call()["copied"]
        np.testing.assert_allclose(ts.affine(x[0], strided[0]), x[0] @ w[0].T)


def test_dtypes_follow_numpy(ts: ModuleType) -> None:
    assert ts.square([1, 2]).dtype == np.float64
    assert ts.square(np.int16(3)).dtype == np.float32
    assert ts.square(3) == 9.0 and isinstance(ts.square(3), np.float64)
    assert ts.matmul(np.ones((2, 2), np.float32), np.ones((2, 2))).dtype == np.float64
    assert ts.matmul(np.ones((2, 2), np.int64), np.ones((2, 2), np.float32)).dtype == np.float64
    assert ts.square(np.array(True)).dtype == np.float32
    assert ts.square(np.float16(3)).dtype == np.float32
    assert ts.matmul(np.ones((2, 2), np.float16), np.ones((2, 2))).dtype == np.float64


@pytest.mark.parametrize("dtype", ["complex128", "U3", "T", "longdouble"])
def test_other_dtypes_are_refused(ts: ModuleType, dtype: str) -> None:
    x = np.zeros(3, dtype)
    expected = f"square: argument x has dtype {x.dtype}; supported: float32, float64"
    with pytest.raises(TypeError) as caught:
        ts.square(x)
    assert str(caught.value) == expected


def test_arrays_of_other_kinds(ts: ModuleType) -> None:
    class Refuses:
        __array_ufunc__ = None

    class Subclass(np.ndarray):
        pass

    with pytest.raises(
        TypeError, match="square: argument x is a masked array, whose mask would be lost"
    ):
        ts.square(np.ma.masked_array([1.0, 2.0], [True, False]))
    with pytest.raises(TypeError, match="Refuses does not take part in NumPy's functions"):
        ts.square(Refuses())
    assert type(ts.square(np.ones(3).view(Subclass))) is np.ndarray
    assert ts.square((1.0, 2.0)).tolist() == [1.0, 4.0]


def test_scalars(ts: ModuleType) -> None:
    x = np.array([-1.0, 0.5, 3.0])
    assert ts.clamp(x, 0).tolist() == [0, 0.5, 3]
    assert ts.clamp(x, np.float32(0), high=2.0, factor=np.int8(3)).tolist() == [0, 1.5, 6]
    with pytest.raises(TypeError, match="clamp: scalar low must convert to float64, got str"):
        ts.clamp(x, "0")
    with pytest.raises(TypeError, match="clamp: scalar factor must convert to int32, got float"):
        ts.clamp(x, 0, factor=1.0)
    with pytest.raises(OverflowError, match="clamp: scalar factor: must fit int32, got 2147483648"):
        ts.clamp(x, 0, factor=2**31)
    with pytest.raises(TypeError, match="takes at least 2 positional arguments"):
        ts.clamp(x)


def test_python_integers_must_fit(ts: ModuleType) -> None:
    """They have no dtype of their own, and would else be cut to that of the argument."""
    x = np.ones(2, np.float32)
    assert ts.scaled(x, -128).tolist() == [-128, -128]
    with pytest.raises(OverflowError) as caught:
        ts.scaled(x, 300)
    assert str(caught.value) == ("scaled: argument by: Python integer 300 out of bounds for int8")
    with pytest.raises(OverflowError, match="clamp: scalar low: int too large to convert to float"):
        ts.clamp(x, 10**400)


def test_axis_is_checked_on_every_rank(ts: ModuleType) -> None:
    x, w = np.ones((2, 3)), np.ones(3)
    for shape in ((3,), (2, 3), (2, 3, 4)):
        for axis in (len(shape), -len(shape) - 1, 2**31 - 1, 2**40):
            with pytest.raises(np.exceptions.AxisError, match=f"axis {axis} is out of bounds"):
                ts.softmax(np.ones(shape), axis=axis)
    with pytest.raises(np.exceptions.AxisError) as caught:
        ts.total(w, axis=1)
    assert (caught.value.axis, caught.value.ndim) == (1, 1)
    for function in (ts.add_into,):  # b has its core axis alone: it is there for any axis of a
        a = x.copy()
        function(a, w, axis=1)
        assert (a == 2).all()
        with pytest.raises(np.exceptions.AxisError, match="argument a: axis 2 is out of bounds"):
            function(a, w, axis=2)


def test_shape_errors_name_everything(ts: ModuleType) -> None:
    a = np.ones((2, 3))
    cases = [
        (lambda: ts.matmul(a, a), "matmul: argument b: dim k (axis 0) must be 3, as in the "
         "arguments before it, got 2"),
        (lambda: ts.matmul(a, np.ones(3)), "matmul: argument b must have the axes (k, n) at its "
         "end, got shape (3,); [:, None] makes a vector a column, [None, :] a row"),
        (lambda: ts.matmul(a, 1.0), "matmul: argument b must have the axes (k, n) at its end, got "
         "shape ()"),
        (lambda: ts.softmax(3.0), "softmax: argument x must have the axes (n,) at its end, got "
         "shape ()"),
        (lambda: ts.grey(3.0), "grey: argument x must have the axes (3,) at its end, got shape ()"),
        (lambda: ts.affine(np.ones((5, 4)), np.ones((3, 2))), "affine: argument w: dim k (axis 1) "
         "must be 4, as in the arguments before it, got 2"),
        (lambda: ts.add_into(np.ones((2, 3)), np.ones((3, 3))), "add_into: argument b: axis 0 with "
         "extent 3 does not broadcast with 2, the extent in the arguments before it"),
        (lambda: ts.grey(np.ones((5, 4))), "grey: argument x: axis 1 must have extent 3, got 4"),
        (lambda: ts.softmax(a, axis=2), "softmax: argument x: axis 2 is out of bounds for array of "
         "dimension 2"),
        (lambda: ts.softmax(a, axis=-3), "softmax: argument x: axis -3 is out of bounds for array "
         "of dimension 2"),
        (lambda: ts.max(np.ones((2, 0))), "max: dim n must be at least 1, got 0"),
        (lambda: ts.square(a, out=np.ones(3)), "square: out (y) must have shape (2, 3), got (3,)"),
        (lambda: ts.square(a, out=(a, a)), "square: out must be an array or a tuple of 1, got a "
         "tuple of 2"),
        (lambda: ts.parts(a, out=a), "parts: out must be a tuple of 2, got a tuple of 1"),
        (lambda: ts.parts(a, out=(a[:1], None)), "parts: out (whole) must have shape (2, 3), "
         "got (1, 3)"),
    ]  # fmt: skip
    for call, message in cases:
        with pytest.raises(ValueError) as caught:
            call()
        assert str(caught.value) == message


def test_type_errors_name_everything(ts: ModuleType) -> None:
    a = np.ones((2, 3))
    cases = [
        (lambda: ts.softmax(a, axis=1.0), "softmax: axis must be an integer, got float"),
        (lambda: ts.softmax(a, axis=None), "softmax: axis must be an integer, got NoneType"),
        (lambda: ts.square(a, foo=1), "square() got an unexpected keyword argument 'foo'"),
        (lambda: ts.square(), "square() takes exactly 1 positional argument (0 given)"),
        (lambda: ts.square(None), "square: argument x is None, not an array"),
        (lambda: ts.square(np.array([None])), "square: argument x has dtype object; convert it "
         "first, for example by np.asarray(..., dtype=np.float64)"),
        (lambda: ts.softmax(a, axis=True), "softmax: axis must be an integer, got bool"),
        (lambda: ts.square(a, out=[1]), "square: out (y) must be an ndarray, got list"),
        (lambda: ts.square(a, out=a.astype("f4")), "square: out (y) must have dtype float64, "
         "got float32"),
        (lambda: ts.add_into(np.ones(3, "f4"), a), "add_into: argument a has dtype float32; "
         "supported: float64"),
    ]  # fmt: skip
    for call, message in cases:
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == message


@on_the_processor
def test_a_list_cannot_be_changed_in_place(ts: ModuleType) -> None:
    with pytest.raises(TypeError) as caught:
        ts.add_into([1.0], np.ones((2, 3)))
    assert str(caught.value) == (
        "add_into: argument a is changed in place and must be an ndarray, got list"
    )


@on_the_processor
def test_num_threads_is_checked(ts: ModuleType) -> None:
    cases = [
        (0, ValueError, "square: num_threads must be from 1 to 1024, got 0"),
        (True, TypeError, "square: num_threads must be an integer, got bool"),
        ("2", TypeError, "square: num_threads must be an integer, got str"),
    ]
    for count, error, message in cases:
        with pytest.raises(error) as caught:
            ts.square(np.ones((2, 3)), num_threads=count)
        assert str(caught.value) == message


def test_a_ragged_list_is_told_as_numpy_does(ts: ModuleType) -> None:
    with pytest.raises(ValueError) as numpys:
        np.asarray([[1.0, 2.0], [3.0]])
    with pytest.raises(ValueError) as ours:
        ts.square([[1.0, 2.0], [3.0]])
    assert str(ours.value) == f"square: argument x: {numpys.value}"


def test_empty_reductions_with_nothing_to_compute(ts: ModuleType) -> None:
    assert ts.max(np.ones((0, 0)), axis=-1).shape == (0,)
    assert ts.total(np.ones((2, 0)), axis=-1).tolist() == [0, 0]


def test_strides_of_empty_arrays_do_not_matter(ts: ModuleType) -> None:
    """No copy can mend them: an array without elements is contiguous whatever they are."""
    empty = as_strided(np.ones(1), (0, 4), (8, 24))
    assert ts.affine(np.ones((5, 4)), empty).shape == (5, 0)
    assert not ts.last_call()["copied"] and not ts.last_call()["packed"]


def test_new_outputs_take_the_inputs_memory_order(ts: ModuleType) -> None:
    x = np.asfortranarray(RNG.uniform(size=(3, 4, 5)))
    assert ts.square(x).strides == np.square(x).strides
    assert ts.softmax(x, axis=0).strides == x.strides


# ---------------------------------------------------------------- overlap


def test_in_place_where_it_is_proved_and_temporaries_elsewhere(ts: ModuleType) -> None:
    x = RNG.uniform(1, 2, 100)
    expected = x * x
    assert ts.square(x, out=x) is x
    np.testing.assert_array_equal(x, expected)
    y = RNG.uniform(1, 2, (5, 5))
    expected = _ratio(y)  # the stand-in's entry does not say that softmax runs in place
    np.testing.assert_allclose(ts.softmax(y, out=y), expected)
    square = RNG.uniform(size=(6, 6))
    expected = square @ square
    np.testing.assert_allclose(ts.matmul(square, square, out=square), expected)


@pytest.mark.parametrize("shift", [1, 3, -1, -2])
def test_partial_overlap(ts: ModuleType, shift: int) -> None:
    memory = RNG.uniform(size=3000)
    source = memory[10:-10]
    target = memory[10 + shift : len(memory) - 10 + shift]
    expected = source * source
    ts.square(source, out=target)
    np.testing.assert_array_equal(target, expected)


def test_transposed_overlap(ts: ModuleType) -> None:
    x = RNG.uniform(size=(40, 40))
    expected = (x * x).copy()
    np.testing.assert_array_equal(ts.square(x, out=x.T), expected)


def test_out_that_cannot_hold_the_result(ts: ModuleType) -> None:
    x = np.ones(4)
    with pytest.raises(ValueError, match=r"square: out \(y\) has several elements in one place"):
        ts.square(x, out=as_strided(np.ones(1), (4,), (0,)))
    with pytest.raises(ValueError, match="parts: two arrays of out overlap"):
        ts.parts(x, out=(x, x))


@on_the_processor
def test_what_is_written_may_not_be_read_only(ts: ModuleType) -> None:
    read_only = np.ones(4)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match=r"square: out \(y\) is read-only"):
        ts.square(np.ones(4), out=read_only)
    with pytest.raises(
        ValueError, match="add_into: argument a is changed in place and is read-only"
    ):
        ts.add_into(np.broadcast_to(1.0, 3), np.ones(3))


@on_the_processor
def test_weights_in_another_order_of_bytes(ts: ModuleType) -> None:
    x, w = RNG.uniform(size=(5, 2, 4)), RNG.uniform(size=(2, 3, 4))
    np.testing.assert_allclose(ts.affine(x, w.astype(">f8")), np.einsum("abk,bnk->abn", x, w))
    assert ts.last_call()["copied"]


def test_inout(ts: ModuleType) -> None:
    a, b = RNG.uniform(size=(4, 6)), RNG.uniform(size=6)
    for layout in (a.copy(), np.asfortranarray(a), a.astype(">f8")):
        assert ts.add_into(layout, b) is None
        np.testing.assert_allclose(layout, a + b)
    memory = RNG.uniform(size=10)
    expected = memory[1:] + memory[:-1]
    ts.add_into(memory[1:], memory[:-1])
    np.testing.assert_allclose(memory[1:], expected)
    for a in (np.ones(3), np.ones((1, 3))):
        with pytest.raises(ValueError) as caught:
            ts.add_into(a, np.ones((2, 3)))
        assert str(caught.value) == (
            f"add_into: argument a is changed in place and must have shape (2, 3), got {a.shape}"
        )


def test_several_outputs(ts: ModuleType) -> None:
    whole, rest = ts.parts(np.array([1.25, 2.5]))
    assert (whole.tolist(), rest.tolist()) == ([1, 2], [0.25, 0.5])
    mine = np.empty(2)
    assert ts.parts(np.array([1.25, 2.5]), out=(None, mine))[1] is mine
    assert mine.tolist() == [0.25, 0.5]


# ---------------------------------------------------------------- the functions themselves


def test_signature_and_documentation(ts: ModuleType) -> None:
    assert str(inspect.signature(ts.clamp)) == (
        "(x, low, high=inf, factor=1, *, out=None, num_threads=None, workspace=None)"
    )
    assert "axis=-1" in str(inspect.signature(ts.softmax))
    assert "workspace" not in str(inspect.signature(ts.limits))  # which has no code for GPUs
    assert ts.softmax.__name__ == "softmax"
    assert "x : array of float32 or float64" in ts.softmax.__doc__
    assert "\nworkspace : an array on the GPU for what a call" in ts.softmax.__doc__


def test_no_memory_is_an_error_of_the_call(ts: ModuleType) -> None:
    assert ts.greedy(np.ones(2)).tolist() == [1, 1]
    with pytest.raises(MemoryError, match="greedy: no memory for the kernel's workspace"):
        ts.greedy(np.ones(3))
    assert ts.greedy(np.ones(2)).tolist() == [1, 1]
