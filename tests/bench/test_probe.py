"""The probes, written by hand: right at every edge, and absent for a reason."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from bench import native, peers
from bench.cases import Case
from bench.kernels import KERNELS
from bench.kernels.kernel import Dims
from bench.processes import Worker
from bench.worker import largest_error, placed

# Whole tiles and remains: of 16 lanes, 4 rows of images, 8 of matrices, blocks, softmax's buffer.
SIZES: dict[str, list[Dims]] = {
    "matmul": [
        *((1, 1, 1), (1, 5, 9), (7, 40, 17), (8, 64, 24), (8, 31, 3)),
        *((9, 33, 5), (15, 40, 17), (16, 64, 32), (131, 70, 20)),
    ],
    "exp": [(n,) for n in (1, 11, 12, 13, 28, 29, 1024, 2050)],
    "transpose": [(1, 1), (3, 50), (50, 3), (31, 32), (32, 31), (48, 33), (16, 700), (700, 16)],
    "blur": [
        *((1, 1), (1, 50), (50, 1), (4, 11), (4, 12), (5, 13), (9, 3)),
        *((3, 16), (7, 17), (7, 28), (6, 29), (5, 31), (4, 32), (8, 33), (6, 64), (6, 100)),
    ],
    "sum_first": [(1, 1), (3, 13), (8, 16), (17, 12), (24, 40)],
    **{
        name: [(1, 1), (2, 12), (3, 13), (5, 28), (7, 64), (4, 100), (3, 5001)]
        for name in ("softmax", "layer_norm", "cumsum")
    },
}
EVERY = [Case(KERNELS[name], dims, "given") for name, sizes in SIZES.items() for dims in sizes]
MARGIN = 32
UNTOUCHED = -77.0


@pytest.fixture(scope="module")
def probe() -> ModuleType:
    try:
        from bench.peers import probe
    except ImportError as error:
        pytest.skip(str(error))
    return probe


@pytest.fixture(params=["streamed", "through the caches"])
def stores(probe: ModuleType, request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "SMALLEST", 0)
        patch.setattr(probe, "_cache", 0 if request.param == "streamed" else 1 << 40)
        yield probe


def test_every_headline_kernel_has_a_probe(probe: ModuleType) -> None:
    assert set(SIZES) == set(probe.KERNELS) == {k.name for k in KERNELS.values() if k.headline}


@pytest.mark.parametrize("case", EVERY, ids=lambda case: str(case.label))
def test_right_at_every_edge(
    stores: ModuleType, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    given = case.arguments()
    expected = case.expected(given)
    for threads, offset in ((1, 16), (1, 0), (2, 16), (3, 60)):
        monkeypatch.setattr(stores, "_threads", threads)
        arguments = [placed(x.shape, x.dtype, offset) for x in given]
        for there, x in zip(arguments, given, strict=True):
            there[...] = x
        around = placed((expected.size + 2 * MARGIN,), np.float32, offset)
        around[:] = UNTOUCHED
        out = around[MARGIN:-MARGIN].reshape(expected.shape)
        call = stores.KERNELS[case.kernel.name](out, *arguments)
        assert largest_error(call(), expected) <= case.kernel.limit, (threads, offset)
        assert (around[:MARGIN] == UNTOUCHED).all() and (around[-MARGIN:] == UNTOUCHED).all()


@pytest.mark.parametrize("behind", [0, 64, 320, 384, 4032])
@pytest.mark.parametrize("name", ["exp", "layer_norm", "cumsum"])
def test_right_wherever_the_result_lies(stores: ModuleType, name: str, behind: int) -> None:
    """Rows whose stores would hold up loads take another way."""
    case = Case(KERNELS[name], (3000,) if name == "exp" else (3, 1000), "given")
    arguments = case.arguments()
    raw = np.empty(arguments[0].nbytes + 4096, np.uint8)
    start = (arguments[0].ctypes.data + behind - raw.ctypes.data) % 4096
    out = raw[start:][: arguments[0].nbytes].view(np.float32).reshape(arguments[0].shape)
    call = stores.KERNELS[name](out, *arguments)
    assert largest_error(call(), case.expected(arguments)) <= case.kernel.limit


def test_nothing_for_arrays_so_small_that_the_call_costs_most(probe: ModuleType) -> None:
    x = np.ones(8191, np.float32)
    assert probe.KERNELS["exp"](np.empty_like(x), x) is None
    x = np.ones(8192, np.float32)
    assert probe.KERNELS["exp"](np.empty_like(x), x) is not None


def test_a_yardstick_among_the_peers() -> None:
    assert [p.name for p in peers.PEERS.values() if p.yardstick] == ["probe"]


def test_absent_at_lower_levels() -> None:
    peer = peers.PEERS["probe"]
    held = Worker(["bench.worker", peer.module, "kept", "16"], peer.variables(1, "v3"))
    answer = held.answer()
    held.end()
    assert answer == {"status": "absent", "why": "the probes are for x86-64-v4 alone"}


def test_absent_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    source = Path(native.__file__).with_name("probes.c")
    with pytest.raises(native.CannotBuild, match=r"no C compiler: .*no-such-compiler"):
        native.library(source)


def test_absent_without_avx512(probe: ModuleType) -> None:
    with pytest.raises(native.CannotBuild, match="the probes need AVX-512"):
        native.library(probe.SOURCE, ("-mno-avx512f",))
