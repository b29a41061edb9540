"""`tilesmith.gen.compile`: a spec's file as a function."""

import pydoc
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gen
from gen.errors import TilesmithError
from tests.runtime.stub_libraries import DeviceNDArray, HostTensor, Sharded, Tensor

KERNELS = Path(__file__).parents[1] / "kernels_spec"


@cache
def shipped(name: str) -> Any:
    return gen.compile(KERNELS / f"{name}.yaml", level="v2")


def test_leading_axes_are_the_loop_dim() -> None:
    softmax = gen.compile(KERNELS / "softmax.yaml", level="v2")
    x = np.random.default_rng(0).standard_normal((3, 2, 21))
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    np.testing.assert_allclose(softmax(x), e / e.sum(axis=-1, keepdims=True), rtol=1e-14)
    np.testing.assert_allclose(softmax(x[0, 0]), softmax(x)[0, 0], rtol=0)
    assert softmax(np.zeros((0, 5), np.float32)).shape == (0, 5)


def test_an_array_without_the_loop_dim_may_be_shared_or_not() -> None:
    norm = gen.compile(KERNELS / "layer_norm.yaml", level="v2")
    rng = np.random.default_rng(1)
    x, weight = rng.standard_normal((2, 3, 9)), rng.standard_normal((2, 1, 9))
    each = norm(x, weight, np.zeros(9))
    for k in range(2):
        np.testing.assert_array_equal(each[k], norm(x[k], weight[k, 0], np.zeros(9)))


PRODUCT = """\
tilesmith: 1
kernel: matmul
doc: A matrix product in the order of its spec, which is compiled sooner than the shipped one.
signature: (m,k),(k,n)->(m,n)
dtypes: {T: [float64]}
arguments:
  a: {type: "T[m, k]"}
  b: {type: "T[k, n]"}
  c: {type: "T[m, n]", intent: out}
compute: |
  c[i, j] = sum(a[i, l] * b[l, j] for l in k)
recipes: [{target: cpu, variants: [{steps: []}]}]
"""


@cache
def product() -> Any:
    return gen.compile(PRODUCT)


def test_problems_without_a_loop_dim_run_one_by_one() -> None:
    matmul = product()
    a = np.random.default_rng(2).standard_normal((2, 3, 4))
    b = np.random.default_rng(3).standard_normal((4, 5))
    np.testing.assert_allclose(matmul(a, b), a @ b, rtol=1e-14)


NO_AXES = """\
tilesmith: 1
kernel: total
doc: A weighted sum, and what it comes to with another.
signature: (n),(),()->(),()
dtypes: {T: [float64]}
arguments:
  x: {type: "T[n]"}
  w: {type: "T[]"}
  y: {type: "T[]", intent: out}
  z: {type: "T[]", intent: inout}
compute: |
  y = w * sum(x[j] for j in n)
  z += y
"""
BY_ROWS = """\
tilesmith: 1
kernel: rows
doc: The weighted sum of each row.
signature: (n),()->()
dtypes: {T: [float64]}
arguments:
  x: {type: "T[m, n]"}
  w: {type: "T[]"}
  y: {type: "T[m]", intent: out}
compute: |
  y[i] = w * sum(x[i, j] for j in n)
"""


def test_results_without_axes(tmp_path: Path) -> None:
    path = tmp_path / "total.yaml"
    path.write_text(NO_AXES)
    total = gen.compile(path, level="v2")
    assert total([1.0, 2.0, 3.0], 2.0, 1.0) == (12.0, 13.0)
    each = total(np.ones((2, 3)), [2.0, 3.0], 1.0)
    assert [x.tolist() for x in each] == [[6.0, 9.0], [7.0, 10.0]]
    path.write_text(BY_ROWS)
    rows = gen.compile(path, level="v2")
    assert rows([1.0, 2.0, 3.0], 2.0) == 12.0
    assert rows(np.ones((2, 3)), [2.0, 3.0]).tolist() == [6.0, 9.0]


def test_types_are_chosen_and_scalars_have_defaults() -> None:
    clamp = gen.compile(KERNELS / "clamp.yaml", level="v2")
    assert clamp(np.array([-1, 2], np.float32)).dtype == np.float32
    assert clamp([-1, 2], high=1).tolist() == [0.0, 1.0]


WIDE_FIRST = """\
tilesmith: 1
kernel: add
doc: x + y.
signature: (),()->()
dtypes: {T: [int64, int32, float64], S: {of: T, int64: float64}}
arguments: {x: {type: "T[m]"}, y: {type: "S[m]"}, z: {type: "T[m]", intent: out}}
compute: z[i] = x[i] + T(y[i])
"""


def test_of_types_that_hold_the_arrays_their_own_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "add.yaml").write_text(WIDE_FIRST)
    add = gen.compile(tmp_path / "add.yaml", level="v2")
    for given, chosen in [("i4 i4", "i4"), ("i8 f8", "i8"), ("i4 f8", "i8"), ("i2 i2", "i8"),
                          ("u4 f4", "i8"), ("f4 f4", "f8"), ("f4 i4", "f8")]:  # fmt: skip
        x, y = (np.ones(3, dtype) for dtype in given.split())
        assert add(x, y).dtype == chosen, given


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda k: k(np.ones((2, 3))), TypeError, "matmul takes 2 arrays (a, b), not 1"),
        (
            lambda k: k(np.ones((2, 3)), np.ones((2, 3))),
            ValueError,
            "matmul: core axis 0 of b (k) has size 2, expected 3",
        ),
        (lambda k: k(np.ones(3), np.ones((3, 2))), ValueError,
         "matmul: a has 1 axes, its core is (m, k)"),
        (lambda k: k(np.eye(2), np.eye(2), gain=2), TypeError, "matmul has no scalar 'gain'"),
        (
            lambda k: k(np.eye(2, dtype=complex), np.eye(2)),
            TypeError,
            "matmul has no version for a: complex128, b: float64",
        ),
    ],
)  # fmt: skip
def test_wrong_calls(call, error, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error) as caught:
        call(product())
    assert str(caught.value) == message


ALONE = (
    ": a kernel tried out takes arrays, scalars and num_threads= alone; the functions of a built"
    " package have axis=, out= and keepdims="
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda k: k(np.ma.masked_array([1.0, 2.0], [True, False])),
            "sum: argument x is a masked array, whose mask would be lost;"
            " pass its .data or .filled(...)",
        ),
        (lambda k: k(None), "sum: argument x is None, not an array"),
        (lambda k: k([1.0], axis=0), f"sum has no scalar 'axis'{ALONE}"),
        (lambda k: k([1.0], out=np.empty(())), f"sum has no scalar 'out'{ALONE}"),
        (lambda k: k([1.0], keepdims=True), f"sum has no scalar 'keepdims'{ALONE}"),
    ],
)
def test_what_a_kernel_tried_out_does_not_take(call, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TypeError) as caught:
        call(shipped("sum"))
    assert str(caught.value) == message


@pytest.mark.parametrize("kind", [Tensor, Sharded, DeviceNDArray])
def test_nothing_is_copied_from_a_device(kind: Any) -> None:
    total = shipped("sum")
    with pytest.raises(TypeError) as caught:
        total(kind([1.0]))
    assert str(caught.value) == (
        f"sum: argument x is a {kind.__name__} that is not in the processor's memory; pass NumPy's"
        " array, also to a kernel for a GPU, which copies it there and back"
    )
    assert total(HostTensor([1.0, 2])) == 3


def test_what_it_says_of_itself() -> None:
    path = KERNELS / "sum.yaml"
    total = shipped("sum")
    assert repr(total) == f"<kernel sum (n)->() of {path}, v2>"
    assert total.__doc__ == total.spec.doc and total.__name__ == "sum"
    assert total.spec.doc.split(".")[0] in pydoc.render_doc(total, renderer=pydoc.plaintext)


@pytest.mark.parametrize("path", ["", KERNELS], ids=["nothing", "folder"])
def test_a_folder_is_no_spec(path: str | Path) -> None:
    with pytest.raises(
        TilesmithError, match="is no spec: give a file's path, or a text of several"
    ):
        gen.compile(path)
