"""The emulator: right kernels run right, and each fault that it claims to find is found."""

import re
from pathlib import Path

import numpy as np
import pytest

from gen.errors import KernelFault, TilesmithError
from gen.ir.types import DType
from gen.language import choices
from gen.targets.cpu.levels import Level
from gen.targets.cuda.emulator.library import Emulator, Settings, build, pieces
from gen.targets.registry import TARGETS
from gen.trial.inputs import random_arrays, strided

from ..conftest import has
from ..kernels import compiled
from ..test_run import FUNCTIONS, FUNCTIONS_OF_TWO, functions
from .emulated import emulator, launched

ROOT = Path(__file__).parents[3]
RNG = np.random.default_rng(0)


def softmax(x: np.ndarray, symbol: str = "softmax_i32", **settings: object) -> np.ndarray:
    wide = np.int64 if symbol.endswith("64") else np.int32
    y = np.zeros(x.shape, np.float32)
    arguments = {"n": wide(x.shape[1]), "x": x, "x_s0": wide(x.strides[0] // 4), "y": y}
    launched(
        emulator("softmax"), symbol, (len(x), 1, 1), (64, 1, 1), arguments,
        settings=Settings(**settings),
    )  # fmt: skip
    return y


def softmax_of(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(float) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# ---------------------------------------------------------------- what is right


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elementwise(n: int, dtype: str) -> None:
    x, wide = RNG.standard_normal(n).astype(dtype), dtype == "float64"
    y = np.zeros_like(x)
    symbol = "elementwise_float64_i64" if wide else "elementwise_float32_i32"
    size = np.int64(n) if wide else np.int32(n)
    arguments = {"n": size, "x": x, "y": y}
    launched(emulator("elementwise"), symbol, (n // 64 + 1, 1, 1), (64, 1, 1), arguments)
    assert np.array_equal(y, x * 2 + 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_have_the_bits_of_a_processor_with_fma(dtype: str) -> None:
    """Special values, large angles and quotients, too; which NaN it is may differ."""
    if not has(Level.V3):
        pytest.skip("this machine has no v3")
    ends = (-np.inf, -1e30, -1.0, -0.0, 0.0, 1e-30, 0.5, 1.0, 20.5, 1e6, 3e9, np.inf, np.nan)
    x = np.append(np.repeat(ends, len(ends)), RNG.uniform(-30, 30, 500)).astype(dtype)
    z = np.append(np.tile(ends, len(ends)), RNG.uniform(-30, 30, 500)).astype(dtype)
    count = len(FUNCTIONS) + len(FUNCTIONS_OF_TWO)
    y, right = (np.zeros((count, x.size), dtype) for _ in range(2))
    compiled(functions(DType(dtype), 8), Level.V3)({"x": x, "z": z, "y": right})
    lists = {"OF_ONE(X)": FUNCTIONS, "OF_TWO(X)": FUNCTIONS_OF_TWO}
    defines = {key: " ".join(f"X({name})" for name in names) for key, names in lists.items()}
    arguments = {"n": np.int32(x.size), "x": x, "z": z, "y": y}
    symbol = f"functions_f{8 * x.itemsize}"
    blocks = (x.size // 64 + 1, 1, 1)
    launched(emulator("functions", **defines), symbol, blocks, (64, 1, 1), arguments)
    np.testing.assert_array_equal(y, right)
    numbers = ~np.isnan(y)
    np.testing.assert_array_equal(np.signbit(y[numbers]), np.signbit(right[numbers]))


@pytest.mark.parametrize("symbol", ["softmax_i32", "softmax_i64"])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 300])
def test_softmax(n: int, symbol: str) -> None:
    x = RNG.standard_normal((3, n)).astype(np.float32)
    for rows in (x, np.repeat(x, 2, 0)[::2], x[::-1]):
        assert np.allclose(softmax(rows, symbol), softmax_of(rows), rtol=1e-6, atol=0)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (32, 32), (31, 65), (70, 33)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transpose(m: int, n: int, dtype: str) -> None:
    x, y = RNG.standard_normal((m, n)).astype(dtype), np.zeros((n, m), dtype)
    arguments = {"m": np.int32(m), "n": np.int32(n), "x": x, "y": y}
    grid = (-(-n // 32), -(-m // 32), 1)
    launched(emulator("transpose"), f"transpose_{dtype}_i32", grid, (32, 8, 1), arguments)
    assert np.array_equal(y, x.T)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (32, 32, 8), (33, 40, 17), (5, 70, 0)])
def test_matmul(m: int, n: int, k: int) -> None:
    a = RNG.standard_normal((m, k)).astype(np.float32)
    b, c = RNG.standard_normal((k, n)).astype(np.float32), np.zeros((m, n), np.float32)
    sizes = {"m": np.int32(m), "n": np.int32(n), "k": np.int32(k)}
    grid = (-(-n // 32), -(-m // 32), 1)
    arguments = {**sizes, "a": a, "b": b, "c": c}
    launched(emulator("matmul"), "matmul_i32", grid, (8, 8, 1), arguments, ["c"])
    assert np.allclose(c, a @ b, rtol=1e-5, atol=1e-5)


def test_what_is_not_watched_runs_as_well() -> None:
    x = RNG.standard_normal((2, 100)).astype(np.float32)
    assert np.array_equal(softmax(x, watched=False), softmax(x))


def test_the_system_s_own_switch_of_fibers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on machines that the engine has no switch for."""
    x = RNG.standard_normal((2, 100)).astype(np.float32)
    expected, usual = softmax(x), emulator("softmax")
    monkeypatch.setenv("CXX", "c++ -DTS_UCONTEXT")
    assert emulator("softmax") != usual
    assert np.array_equal(softmax(x), expected)
    arguments = {"n": np.int32(64), "y": np.zeros(64, np.float32)}
    assert "waits at barrier 7" in fault("faults", "one_is_gone", arguments)


def test_threads_run_in_an_order_that_differs_by_interval_and_by_seed() -> None:
    orders = []
    for seed in (0, 0, 1):
        y = np.zeros(128, np.float32)
        arguments = {"n": np.int32(0), "y": y}
        settings = Settings(seed)
        faults = emulator("faults")
        launched(faults, "order_of_threads", (1, 1, 1), (64, 1, 1), arguments, settings=settings)
        orders.append(y)
    first, again, other = orders
    assert sorted(first[:64]) == sorted(first[64:]) == [*range(64)]
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert not np.array_equal(first[:64], first[64:])


# ---------------------------------------------------------------- what is wrong

T, B = r"thread \(\d+, 0, 0\)", r"block \(\d+, 0, 0\)"
NONE = "with no barrier between"
FAULTS = {
    "unwritten": rf"{B}, {T} reads the shared array part\[5\] at line 11:\d+, which nothing has",
    "read_after_write": rf"{T} (reads|writes) the shared array part\[\d+\] at line \d+:\d+, which"
    rf" {T} (wrote|read) at line \d+:\d+ {NONE}",
    "both_write": rf"{T} writes the shared array part\[\d+\] at line 28:\d+, which {T} wrote at"
    rf" line 28:\d+ {NONE}",
    "past_shared": r"thread \(63, 0, 0\) writes the shared array part\[64\] at line 37:\d+, which"
    " has 64 elements",
    "before_shared": r"reads the shared array part\[-\d+\] at line 47:\d+, which has 64 elements",
    "past_global": r"writes y\[\d+\] at line 53:\d+, which has 64 elements",
    "different_barriers": rf"block \(0, 0, 0\): {T} waits at barrier [01] \(line \d+:\d+\), {T} at"
    r" barrier [01] \(line \d+:\d+\)",
    "one_is_gone": rf"block \(0, 0, 0\): {T} waits at barrier 7 \(line 68:15\), thread"
    r" \(63, 0, 0\) has ended",
    "blocks_write": rf"block \(1, 0, 0\), {T} writes y\[\d+\] at line 74:\d+, which block"
    r" \(0, 0, 0\) wrote at line 74:\d+ in the same launch",
    "blocks_read": rf"block \(1, 0, 0\), {T} reads y\[\d+\] at line \d+:\d+, which block"
    r" \(0, 0, 0\) wrote",
    "blocks_read_first": rf"block \(2, 0, 0\), {T} writes y\[\d+\] at line \d+:\d+, which block"
    r" \([01], 0, 0\) read",
    "block_writes_what_others_read": rf"block \(2, 0, 0\), {T} writes y\[\d+\] at line \d+:\d+,"
    r" which block \([01], 0, 0\) read",
    "threads_of_a_block": rf"{T} (reads|writes) y\[\d+\] at line .* {NONE}",
    "past_local": rf"{T} takes element 4 of an array of its own that has less, at line 131:\d+",
    "too_large": rf"{T} multiplies to more than fits at line 137:\d+",
    "by_nothing": rf"{T} divides by 0, or the least by -1, at line 143:\d+",
    "nowhere": "reads through a pointer into no array, at line ",
}


def fault(
    name: str, symbol: str, arguments: dict, grid: int = 1, block: int = 64, **defines: object
) -> str:
    with pytest.raises(KernelFault) as found:
        launched(emulator(name, **defines), symbol, (grid, 1, 1), (block, 1, 1), arguments)
    return found.value.message


@pytest.mark.parametrize("symbol", FAULTS)
def test_faults(symbol: str) -> None:
    size = 64 * 3 if symbol.startswith("block") else 64
    written = symbol.startswith("block") and "read" in symbol
    for seed in range(3):
        y, grid = np.zeros(size, np.float32), size // 64
        arguments = {"n": np.int32(66 if symbol == "past_local" else 64), "y": y}
        with pytest.raises(KernelFault) as found:
            launched(
                emulator("faults"), symbol, (grid, 1, 1), (64, 1, 1), arguments,
                [] if written else ["y"], Settings(seed),
            )  # fmt: skip
        assert re.search(FAULTS[symbol], found.value.message), found.value.message
        assert found.value.message.startswith(f"{symbol}: ")


def test_blocks_may_go_on_after_a_barrier() -> None:
    y = np.zeros(128, np.float32)
    arguments = {"n": np.int32(64), "y": y}
    launched(emulator("faults"), "blocks_in_order", (2, 1, 1), (64, 1, 1), arguments, [])
    assert np.array_equal(y, np.full(128, 2))


def test_a_race_is_found_whoever_comes_first() -> None:
    found = set()
    for seed in range(8):
        y = np.zeros(64, np.float32)
        with pytest.raises(KernelFault) as fault:
            launched(
                emulator("faults"), "one_writes_what_others_read", (1, 1, 1), (64, 1, 1),
                {"n": np.int32(64), "y": y}, settings=Settings(seed),
            )  # fmt: skip
        said = re.search(
            r"(reads|writes) the shared array part\[63\] .* which thread \((0|63), .* "
            f"(wrote|read) at .* {NONE}",
            fault.value.message,
        )
        assert said, fault.value.message
        found.add(said.groups())
    assert found == {("reads", "0", "wrote"), ("writes", "63", "read")}


def test_launches_come_one_after_another() -> None:
    y = np.zeros(64, np.float32)
    kernel, block = emulator("faults"), (64, 1, 1)
    with kernel.memory({"y": y}, ["y"], Settings()):
        for _ in range(2):
            kernel.launch("blocks_write", (1, 1, 1), block, [np.int32(64), y])
        with pytest.raises(KernelFault):
            kernel.launch("blocks_write", (2, 1, 1), block, [np.int32(64), y])


def test_a_fault_is_no_reason_to_try_other_strides() -> None:
    spec, called = TARGETS.load(ROOT / "kernels_spec" / "softmax.yaml"), []

    def faulty(arrays: object, sizes: object) -> None:
        called.append(sizes)
        raise KernelFault("a race")

    arrays = random_arrays(spec, choices(spec)[0], {"m": 2, "n": 3}, RNG)
    with pytest.raises(KernelFault):
        strided(spec, faulty, RNG)(arrays, {"m": 2, "n": 3})
    assert len(called) == 1


def test_a_missing_guard() -> None:
    x = np.zeros(100, np.float32)
    arguments = {"n": np.int32(100), "x": x, "y": np.zeros_like(x)}
    said = fault("elementwise", "elementwise_float32_i32", arguments, 2, GUARD=0)
    assert re.search(
        r"thread \(\d+, 0, 0\) reads x\[1\d\d\] at line .* which has 100 elements", said
    )


def test_a_wrong_thread_index() -> None:
    x = np.ones(128, np.float32)
    arguments = {"n": np.int32(128), "x": x, "y": np.zeros_like(x)}
    said = fault("elementwise", "elementwise_float32_i32", arguments, 2, THREAD="threadIdx.x/2")
    assert re.search(r"writes y\[\d+\] at line .*, which thread .* wrote at line .* barrier", said)
    symbol = "elementwise_float32_i32"
    other = emulator("elementwise", THREAD="threadIdx.y")
    launched(other, symbol, (2, 1, 1), (1, 1, 1), arguments)
    assert np.isnan(arguments["y"]).sum() == 126  # what is not written is seen


def test_a_read_of_an_output_that_nothing_wrote() -> None:
    y = np.zeros(128, np.float32)
    with pytest.raises(
        KernelFault, match=r"reads y\[\d+\] at line \d+:\d+, which nothing has written"
    ):
        arguments = {"n": np.int32(64), "y": y}
        launched(emulator("faults"), "blocks_in_order", (2, 1, 1), (64, 1, 1), arguments)


@pytest.mark.parametrize("barrier", [0, 1, 2, 3])
def test_each_barrier_of_softmax_is_needed(barrier: int) -> None:
    x = RNG.standard_normal((2, 300)).astype(np.float32)
    with pytest.raises(KernelFault, match=r"with no barrier between|which nothing has written"):
        softmax(x, off=frozenset({barrier}))
    softmax(x)  # and they are back


@pytest.mark.parametrize("barrier", [0, 1])
def test_each_barrier_of_matmul_is_needed(barrier: int) -> None:
    a, c = np.ones((32, 32), np.float32), np.zeros((32, 32), np.float32)
    sizes = dict.fromkeys("mnk", np.int32(32))
    arguments, settings = {**sizes, "a": a, "b": a, "c": c}, Settings(off=frozenset({barrier}))
    with pytest.raises(KernelFault, match=r"with no barrier between|which nothing has written"):
        launched(emulator("matmul"), "matmul_i32", (1, 1, 1), (8, 8, 1), arguments, ["c"], settings)


@pytest.mark.parametrize(
    ("grid", "block", "said"),
    [
        ((1, 1, 1), (128, 1, 1), r"its launch bounds are 64 threads, not \(128, 1, 1\)"),
        ((1, 1, 1), (64, 32, 1), r"a block has 1 to 1024 threads, not \(64, 32, 1\)"),
        ((1, 1, 1), (0, 1, 1), r"a block has 1 to 1024 threads, not \(0, 1, 1\)"),
        ((1, 65536, 1), (64, 1, 1), r"a grid has 1 to 2147483647, 65535 and 65535 blocks, not "),
        ((0, 1, 1), (64, 1, 1), "a grid has 1 to "),
    ],
)
def test_launches_that_a_gpu_refuses(grid: tuple, block: tuple, said: str) -> None:
    arguments = {"n": np.int32(0), "y": np.zeros(64, np.float32)}
    with pytest.raises(KernelFault, match=said):
        launched(emulator("faults"), "one_is_gone", grid, block, arguments)


def test_a_kernel_that_is_not_there() -> None:
    with pytest.raises(KernelFault, match="there is no kernel nothing"):
        launched(emulator("faults"), "nothing", (1, 1, 1), (1, 1, 1), {})


def test_what_the_compiler_says_is_told() -> None:
    with pytest.raises(TilesmithError, match=r"refused what the emulator is to run:\n(?s:.*)oops"):
        build({"a.cu": "int f() { return oops; }"})


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(
        TilesmithError, match="there is no C\\+\\+ compiler 'no-such-compiler', which"
    ):
        build({"a.cu": ""})


# ---------------------------------------------------------------- memory


def test_what_strides_leave_out_is_out_of_bounds() -> None:
    x = np.ones(128, np.float32)[::2]
    kernel, symbol = emulator("elementwise", STEP=2), "elementwise_float32_i32"
    arguments = {"n": np.int32(64), "x": x, "y": np.zeros(64, np.float32)}
    launched(kernel, symbol, (1, 1, 1), (64, 1, 1), arguments)
    assert np.array_equal(arguments["y"], np.full(64, 3))
    with pytest.raises(KernelFault, match=r"reads x\[\d*[13579]\] at .* which is between the ele"):
        launched(emulator("elementwise"), symbol, (1, 1, 1), (64, 1, 1), arguments)
    y = np.zeros((8, 16), np.float32)[:, ::-2]
    arguments = {"n": np.int32(64), "x": np.ones(64, np.float32), "y": y.T}
    with pytest.raises(KernelFault, match=r"writes y\[\d*[13579]\] at .* which is between the ele"):
        launched(emulator("elementwise"), symbol, (1, 1, 1), (64, 1, 1), arguments)


def test_arrays_that_overlap_are_one_piece() -> None:
    base = np.zeros(20, np.float32)
    x, y, z = base[:10], base[5:15], np.zeros(4)
    told = {p.name: p for p in pieces({"x": x, "z": z, "y": y}, ["y", "z"])}
    assert {n: (p.bytes, p.item, p.written) for n, p in told.items()} == {
        "z": (32, 8, False),
        "x/y": (60, 4, True),
    }


def test_a_library_has_no_state_between_calls() -> None:
    x = np.zeros(10, np.float32)
    arguments = {"n": np.int32(10), "x": x, "y": np.zeros(5, np.float32)}
    for _ in range(2):
        said = fault("elementwise", "elementwise_float32_i32", arguments)
        assert re.search(r"writes y\[\d\] at", said)
    launched(
        emulator("elementwise"), "elementwise_float32_i32", (1, 1, 1), (64, 1, 1),
        {**arguments, "y": np.zeros(10, np.float32)},
    )  # fmt: skip
    assert Emulator(emulator("elementwise").path).error == ""
