from pathlib import Path

import numpy as np
import pytest

from bench import cases, worker
from bench.cases import Case, UnknownName
from bench.kernels import KERNELS
from bench.peers import tilesmith

SPECS = Path(__file__).parents[2] / "kernels_spec"
HEADLINE = [kernel for kernel in KERNELS.values() if kernel.headline]
EVERY = [
    Case(k, dims, kind) for k in KERNELS.values() for kind in k.sizes for dims in k.sizes[kind]
]


def plain(name: str) -> str:
    return name.removesuffix("_first").removesuffix("_last")


def tiny(name: str) -> Case:
    kernel = KERNELS[name]
    count = len(kernel.sizes["main"][0])
    return Case(kernel, (5, 7, 6, 9, 4, 2)[:count] if count < 7 else (2, 3, 5, 6, 7, 4, 2), "given")


def test_every_shipped_kernel_has_its_rows() -> None:
    # Rows of matmul and matvec that other kernels' peers have, too, and what has no peer.
    more = {"matmul_tn", "matmul_nt", "matmul_batch", "matmul_tall", "vecmat"}
    less = {"group_norm", "masked_attention"}
    shipped = {path.stem for path in SPECS.glob("*.yaml")}
    assert {plain(name) for name in KERNELS} == shipped - less | more
    for kernel in KERNELS.values():
        few, full = {"main", "small"}, {"main", "odd", "L1", "L2", "L3"}
        assert set(kernel.sizes) == (full if kernel.headline else few)


def test_the_headline_is_eight_kernels() -> None:
    assert {k.name for k in HEADLINE} == {
        "matmul", "softmax", "exp", "layer_norm", "transpose", "blur", "cumsum", "sum_first",
    }  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_references_agree_with_tilesmith(name: str) -> None:
    case = tiny(name)
    arguments = case.arguments()
    expected = case.expected(arguments)
    out = np.full(case.kernel.result(*case.dims), -1, case.kernel.dtype)
    call = tilesmith.KERNELS[name](out, *arguments)
    assert call is not None
    assert worker.largest_error(call(), expected) <= case.kernel.limit
    assert expected.dtype == (np.int64 if case.kernel.dtype is np.int64 else np.float64)
    assert worker.largest_error(call() + 1, expected) > case.kernel.limit


@pytest.mark.parametrize("case", EVERY, ids=lambda case: f"{case.label} {case.kind}")
def test_sizes_are_of_their_kind(case: Case) -> None:
    moved = case.bytes_read + case.bytes_written
    match case.kind:
        case "main":
            assert moved > 4 << 20
        case "odd":
            assert all(dim % 2 for dim in case.dims)
        case _:
            most = {"L1": 32 << 10, "L2": 1 << 20, "L3": 16 << 20, "small": 1 << 20}[case.kind]
            assert most / 16 < moved <= most


def test_bytes_and_operations() -> None:
    case = Case(KERNELS["matmul"], (2, 3, 5), "given")
    assert (case.bytes_read, case.bytes_written, case.operations) == (4 * 25, 4 * 6, 60)
    case = Case(KERNELS["argmax_last"], (2, 3), "given")
    assert (case.bytes_read, case.bytes_written) == (24, 16)


def test_arguments_are_the_same_every_time() -> None:
    one, other = tiny("layer_norm").arguments(), tiny("layer_norm").arguments()
    assert [x.shape for x in one] == [(5, 7), (7,), (7,)]
    assert all(
        np.array_equal(x, y) and x.dtype == np.float32 for x, y in zip(one, other, strict=True)
    )
    assert not np.array_equal(one[1], one[2])


def test_choosing() -> None:
    assert [c.label for c in cases.choose(["matmul", "exp"], ["L1"])] == [
        "matmul 48x48x48", "matmul 8x64x96", "exp 3072",
    ]  # fmt: skip
    assert [(c.label, c.kind) for c in cases.choose(["blur", "exp"], ["9x11"])] == [
        ("blur 9x11", "given")
    ]
    assert len(cases.choose([], [])) == len(EVERY)


@pytest.mark.parametrize(
    ("names", "sizes", "message"),
    [
        (["soft"], [], "no kernel 'soft'; there are matmul, transpose, linear"),
        ([], ["huge"], "no size 'huge'; sizes are main, odd, L1, L2, L3, small, or dims such as"),
        (["gelu"], ["odd"], "none of the kernels has a size odd"),
        (["matmul"], ["4x4"], "none of the kernels has a size 4x4"),
    ],
)
def test_unknown_names(names: list[str], sizes: list[str], message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        cases.choose(names, sizes)
