"""What kernels tried out copy: right for inputs in any layout, and nothing that need not be."""

import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from numpy.typing import NDArray

from gen import language as specs
from gen.targets.cuda.target import Cuda
from gen.targets.target import ArrayLayout
from gen.trial.notebook import NotebookKernel, kernel, plan
from gen.trial.notebook.given import taken

from .kernels import ADD, SHIPPED, of_text, shipped

Array = NDArray[Any]


def numbers(*shape: int, dtype: str = "f4") -> Array:
    """Whole ones, whose sums are exact in any order."""
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(dtype)


def misaligned(x: Array) -> Array:
    place = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    place[...] = x
    assert not place.flags.aligned
    return place


def field(x: Array) -> Array:
    """In packed records, whose size is no whole number of elements."""
    records = np.zeros(x.shape, np.dtype([("tag", "i1"), ("x", x.dtype)]))
    records["x"] = x
    return records["x"]


def every_other(x: Array) -> Array:
    wide = np.full([2 * n for n in x.shape], 99, x.dtype)[
        tuple(slice(None, None, 2) for _ in x.shape)
    ]
    wide[...] = x
    return wide


def reversed_(x: Array) -> Array:
    return np.flip(np.flip(x).copy())


def read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C order": np.copy,
    "Fortran order": lambda x: x.copy("F"),
    "first axis innermost": lambda x: np.moveaxis(np.moveaxis(x, 0, -1).copy(), -1, 0),
    "negative strides": reversed_,
    "every other element": every_other,
    "misaligned": misaligned,
    "packed records": field,
    "read-only": read_only,
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
}
CALLS: dict[str, tuple[Array, ...]] = {
    "sum": (numbers(2, 3, 21),),
    "argmax": (numbers(3, 2, 19),),
    "cumsum": (numbers(2, 2, 13),),
    "matmul": (numbers(2, 5, 9), numbers(9, 7)),
    "transpose": (numbers(4, 6, 9),),
    "layer_norm": (numbers(3, 2, 17), numbers(17), numbers(17)),
    "axpby": (numbers(3, 5), numbers(4, 3, 5)),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_layouts_change_no_result(name: str, layout: str) -> None:
    called, given = shipped(name), CALLS[name]
    lying = [LAYOUTS[layout](x) for x in given]
    for _ in range(2):  # the second time by the plan of the first
        np.testing.assert_allclose(called(*lying), called(*given), rtol=2e-6, atol=2e-6)
    for x, y in zip(given, lying, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    "x",
    [
        numbers(4, 3, 5).transpose(1, 0, 2),  # no single axis
        numbers(4, 3, 5)[:, ::2],
        np.broadcast_to(numbers(3, 5), (4, 3, 5)),
        np.broadcast_to(numbers(4, 1, 5), (4, 3, 5)),
        np.broadcast_to(numbers(4, 3, 1), (4, 3, 5)),
        sliding_window_view(numbers(9), 4),
        as_strided(numbers(9), (3, 3), (4, 4)),
        numbers(5),
        numbers(0, 5),
        numbers(4, 0),
        numbers(3, 0, 4),
        numbers(1, 1, 6)[::-1, ::-1],
    ],
    ids=str,
)  # fmt: skip
def test_leading_axes_in_any_layout(x: Array) -> None:
    np.testing.assert_array_equal(shipped("sum")(x), x.sum(axis=-1))
    np.testing.assert_array_equal(shipped("cumsum")(x), x.cumsum(axis=-1))


def test_leading_axes_broadcast(tmp_path: Path) -> None:
    add = of_text(tmp_path, ADD)
    x, y = numbers(4, 1, 3), numbers(5, 1)
    assert add(x, y).shape == (4, 5, 3)
    np.testing.assert_array_equal(add(x, y), x + y)
    np.testing.assert_array_equal(add(x.T, y[::-1]), x.T + y[::-1])
    np.testing.assert_array_equal(add(x, np.float32(2)), x + 2)
    assert add(numbers(0, 3), numbers(3)).shape == (0, 3)
    a, b = numbers(3, 1, 2, 4), numbers(5, 4, 2)
    np.testing.assert_array_equal(shipped("matmul")(a, b), a @ b)


def test_inputs_may_overlap(tmp_path: Path) -> None:
    add, x = of_text(tmp_path, ADD), numbers(40)
    for a, b in [(x, x), (x[1:], x[:-1]), (x, x[::-1]), (x[::2], x[1::2])]:
        want = a + b
        got = add(a, b)
        np.testing.assert_array_equal(got, want)
        assert not np.may_share_memory(got, x)
    square = numbers(6, 6)
    np.testing.assert_array_equal(shipped("matmul")(square, square.T), square @ square.T)


BIG = np.ones((512, 1024), np.float32)


@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        ("sum", (BIG,)),
        ("sum", (BIG.T,)),
        ("sum", (BIG[::-1],)),
        ("sum", (BIG[:, 512:],)),
        ("sum", (BIG.reshape(16, 32, 1024),)),
        ("sum", (read_only(BIG),)),
        ("sum", (np.broadcast_to(BIG[0], (500, 1024)),)),
        ("matmul", (BIG[:8], BIG.T)),
        ("matmul", (BIG.T[:8], BIG[:, :8])),
        ("matmul", (np.broadcast_to(BIG[:8], (3, 8, 1024)), BIG.T[:, :8])),
    ],
)
def test_nothing_is_copied_that_the_kernel_takes(name: str, arrays: tuple[Array, ...]) -> None:
    called = shipped(name)
    called(*arrays)
    tracemalloc.start()
    try:
        result = called(*arrays)
        assert tracemalloc.get_traced_memory()[1] < result.nbytes + 50_000
    finally:
        tracemalloc.stop()


def test_what_vectors_need_side_by_side_is_copied() -> None:
    """One that is not: the code for rows asks for neighbours."""
    softmax, x = shipped("softmax"), numbers(4, 64)[:, ::2]
    np.testing.assert_array_equal(softmax(x), softmax(x.copy()))
    (*_, last) = softmax._plans.values()
    assert isinstance(last.sources[0], plan.AsGiven)  # of the copy
    (*_, first, _) = softmax._plans.values()
    assert isinstance(first.sources[0], plan.Copied)


COLUMNS = """\
tilesmith: 1
kernel: columns
doc: The sum of each column, where vectors walk the columns' elements.
signature: (k,n)->(n)
dtypes: {T: [float32]}
arguments:
  x: {type: "T[m, k, n]"}
  y: {type: "T[m, n]", intent: out}
compute: |
  y[i, j] = sum(x[i, l, j] for l in k)
recipes:
  - target: cpu
    variants:
      - steps:
          - reorder: {loops: [y.l, y.j]}
          - decompose_reduction: {block: y, loop: y.l}
          - vectorize: {loop: y.j, width: $lanes}
          - vectorize: {loop: y.init.j, width: $lanes}
"""


def test_core_axes_in_any_order(tmp_path: Path) -> None:
    columns = of_text(tmp_path, COLUMNS)
    x = numbers(3, 4, 17)
    for order in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0), (2, 0, 1), (1, 2, 0)]:
        lying = x.transpose(order).copy().transpose(np.argsort(order))
        np.testing.assert_array_equal(columns(lying), x.sum(axis=1))
        np.testing.assert_array_equal(columns(lying[:, ::-1, ::-1]), x.sum(axis=1)[:, ::-1])
        np.testing.assert_array_equal(columns(lying[0]), x[0].sum(axis=0))


DOWN = """\
tilesmith: 1
kernel: down
doc: The sum of each row; of long ones by vectors of as many rows.
signature: (n)->()
dtypes: {T: [float32]}
arguments:
  x: {type: "T[m, n]"}
  y: {type: "T[m]", intent: out}
compute: |
  y[i] = sum(x[i, j] for j in n)
recipes:
  - target: cpu
    variants:
      - when: n <= 4
        steps: []
      - steps:
          - split: {loop: y.i, factors: [null, $lanes], as: [y.i0, y.i1]}
          - reorder: {loops: [y.i0, y.j, y.i1]}
          - decompose_reduction: {block: y, loop: y.j}
          - vectorize: {loop: y.i1, width: $lanes}
          - vectorize: {loop: y.init.i1, width: $lanes}
"""


def test_the_leading_axis_may_be_the_one_that_vectors_walk(tmp_path: Path) -> None:
    down = of_text(tmp_path, DOWN)
    for shape in [(11, 9), (11, 3), (2, 3, 9), (9,), (1, 9)]:
        for x in (numbers(*shape), numbers(*shape[::-1]).T):
            np.testing.assert_array_equal(down(x), x.sum(axis=-1))
    np.testing.assert_array_equal(down(numbers(11, 9).astype("i2")), numbers(11, 9).sum(axis=-1))


REAL = """\
tilesmith: 1
kernel: power
doc: The squares of the absolute values.
signature: ()->()
dtypes: {T: [complex64, complex128]}
arguments: {x: {type: "T[m]"}, y: {type: "T[m]", intent: out}}
compute: y[i] = x[i] * conj(x[i])
"""


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_strides_of_half_an_element(dtype: str, tmp_path: Path) -> None:
    """As complex numbers have, which begin at any real one."""
    power, x = of_text(tmp_path, REAL), numbers(6) + 1j * numbers(6)[::-1]
    real = np.dtype(dtype).type(0).real.dtype
    records = np.zeros(6, np.dtype([("weight", real), ("x", dtype)]))
    records["x"] = x
    assert records["x"].flags.aligned
    np.testing.assert_array_equal(power(records["x"]), x * x.conj())


def test_kernels_get_aligned_elements() -> None:
    x = misaligned(numbers(3, 4))
    for given in (x, x[0], x.view(np.matrix)):
        found = taken("sum", "x", given)
        assert isinstance(found, np.ndarray) and found.flags.aligned
        np.testing.assert_array_equal(found, given)


IN_PLACE = """\
tilesmith: 1
kernel: accumulate
doc: Adds x to y.
signature: (n),(n)->(n)
dtypes: {T: [float32, float64]}
arguments:
  x: {type: "T[m, n]"}
  y: {type: "T[m, n]", intent: inout}
compute: y[i, j] += x[i, j]
"""


def test_what_is_changed_is_a_copy(tmp_path: Path) -> None:
    accumulate, x, y = of_text(tmp_path, IN_PLACE), numbers(3, 5), numbers(3, 5)
    for given in (y, y.copy("F"), read_only(y), np.broadcast_to(y[0], (3, 5)), y[0]):
        kept, want = given.copy(), x + given
        np.testing.assert_array_equal(accumulate(x, given), want)
        np.testing.assert_array_equal(given, kept)
    np.testing.assert_array_equal(accumulate(x[0], y), x[0] + y)
    np.testing.assert_array_equal(accumulate(y, y), 2 * y)


def test_results_are_new_each_time(tmp_path: Path) -> None:
    add, x = of_text(tmp_path, ADD), numbers(4)
    first, second = add(x, x), add(x + 1, x)
    np.testing.assert_array_equal(first, 2 * x)
    np.testing.assert_array_equal(second, 2 * x + 1)
    assert first.flags.writeable and not np.may_share_memory(first, second)


# ---------------------------------------------------------------- plans


def test_calls_of_a_known_form_plan_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, x = of_text(tmp_path, ADD), numbers(4)
    add(x, x)
    monkeypatch.delattr(kernel, "planned")
    np.testing.assert_array_equal(add(x + 1, x), 2 * x + 1)
    for other in (numbers(5), numbers(8)[::2], numbers(4, dtype="f8"), numbers(1, 4)):
        with pytest.raises(NameError):
            add(other, other)
    with pytest.raises(NameError):
        add(x, x, num_threads=2)


SCALED = """\
tilesmith: 1
kernel: window
doc: Each element of a window of every `step`-th, times `by`.
signature: (n)->(count)
dtypes: {T: [float32, float64]}
arguments:
  x: {type: "T[m, n]"}
  y: {type: "T[m, count]", intent: out}
scalars:
  by: {type: T, default: 2}
  step: {type: int64, default: 2}
  share: {type: float64, default: 1.0}
sizes: {count: "min(n // step, int64(share * 8.0))"}
constraints: [step >= 1, n >= 1]
compute: |
  y[i, j] = by * x[i, min(max(j * step, 0), n - 1)]
"""


def test_scalars_that_decide_sizes_are_of_the_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, x = of_text(tmp_path, SCALED), np.arange(12, dtype="f4")
    assert window(x).tolist() == [0, 4, 8, 12, 16, 20]
    assert window(x, step=5).tolist() == [0, 10]
    assert window(x, share=0.25).tolist() == [0, 4]
    with pytest.raises(ValueError, match="window: needs step >= 1, got step = 0"):
        window(x, step=0)
    monkeypatch.delattr(kernel, "planned")
    for by in (3, 0.5, -1):
        assert window(x, by=by, step=5).tolist() == [0, 5 * by]
        assert window(x, by=np.float32(by), share=0.25).tolist() == [0, 2 * by]
    with pytest.raises(NameError):
        window(x, step=3)


def test_forms_are_kept_up_to_a_number(tmp_path: Path) -> None:
    add = of_text(tmp_path, ADD)
    for n in range(kernel._MOST_PLANS + 40):
        assert add(np.ones(n), np.ones(n)).shape == (n,)
    assert len(add._plans) == 40


def test_threads_may_call_one_kernel(tmp_path: Path) -> None:
    add, wrong = of_text(tmp_path, ADD), []

    def called(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(200):
            x = rng.standard_normal(rng.integers(1, 400))
            if not np.array_equal(add(x, x[::-1]), x + x[::-1]):
                wrong.append(seed)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=called, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong


# ---------------------------------------------------------------- other targets


def test_kernels_for_gpus_get_the_same_arrays() -> None:
    """Under the emulator: it sees each access."""
    spec = specs.load(SHIPPED / "matmul.yaml")
    matmul = NotebookKernel(spec, Cuda.at("sm_75").emulating())
    a, b = numbers(2, 5, 9), numbers(9, 7)
    for x, y in [
        (a, b),
        (a[:, ::-1], b[::-1, ::-1]),
        (a[:, :, ::2], b[::2]),
        (a.copy("F"), b.T.copy().T),
    ]:
        np.testing.assert_array_equal(matmul(x, y), x @ y)
        np.testing.assert_array_equal(matmul(x, y), x @ y)


@pytest.mark.parametrize(
    "x", [numbers(3, 4), numbers(3, 4)[::-1, ::-2], numbers(3, 4).T, numbers(0, 3), numbers(5)[2]]
)
def test_a_layout_is_all_of_an_array_but_its_place(x: Array) -> None:
    x = np.asarray(x)
    there = ArrayLayout(x.dtype, x.shape, x.strides).at(x.ctypes.data)
    np.testing.assert_array_equal(there, x)
    assert not x.size or np.shares_memory(there, x)
