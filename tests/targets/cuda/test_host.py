"""The host side of launches, compiled by a C compiler and run without a GPU: what it launches."""

import ctypes
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gen.lower.variants import suffix
from gen.targets.c.library import compiler_command
from gen.targets.cuda.compilers import HEADERS

from .made import NAMES, TRIED, sources, variants

Grid = ctypes.c_uint32 * 3


class _Device(ctypes.Structure):
    _fields_ = (("launch", ctypes.c_void_p), ("reserve", ctypes.c_void_p))


class _Call(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("scalars", ctypes.c_void_p),
        ("threads", ctypes.c_int),
        ("stream_above", ctypes.c_double),
        ("prefetch_above", ctypes.c_double),
        ("device", ctypes.POINTER(_Device)),
    )


Launch = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint32),
    ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_void_p),
)  # fmt: skip
Reserve = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
Run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Call))

MEMORY = 1 << 40
"""Where the device's memory is said to be."""


@dataclass
class Launched:
    function: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    first: int  # of the parameters, as an index


@dataclass
class Host:
    """A compiled host side. number: of the parameter that `Launched.first` is; fails: what the
    device says of launches.
    """

    table: ctypes.Array[ctypes.c_char]
    number: int = 0
    fails: int = 0
    memory: int = MEMORY
    launched: list[Launched] = field(default_factory=list)
    reserved: list[int] = field(default_factory=list)

    def __call__(self, dims: list[int], strides: list[int], scalars: bytes = b"") -> int:
        @Launch
        def launch(_, function, grid, block, parameters) -> int:  # type: ignore[no-untyped-def]
            first = ctypes.cast(parameters[self.number], ctypes.POINTER(ctypes.c_int64))[0]
            name = function.decode()
            self.launched.append(Launched(name, tuple(grid[:3]), tuple(block[:3]), first))
            return self.fails

        @Reserve
        def reserve(_, size) -> int:  # type: ignore[no-untyped-def]
            self.reserved.append(size)
            return self.memory

        device = _Device(*(ctypes.cast(f, ctypes.c_void_p) for f in (launch, reserve)))
        call = _Call(
            (ctypes.c_void_p * 8)(*range(1 << 30, (1 << 30) + 8)),
            (ctypes.c_int64 * len(strides))(*strides),
            (ctypes.c_int64 * len(dims))(*dims),
            ctypes.cast(ctypes.create_string_buffer(scalars), ctypes.c_void_p),
            1, 0.0, 0.0, ctypes.pointer(device),
        )  # fmt: skip
        run = ctypes.cast(ctypes.cast(self.table, ctypes.POINTER(ctypes.c_void_p))[0], Run)
        self.launched, self.reserved = [], []
        return int(run(ctypes.pointer(call)))


def host(name: str, folder: Path) -> Host:
    source = folder / f"{name}.c"
    source.write_text(sources(name, 0)[1])
    strict = ("-O1", "-Wall", "-Wextra", "-Werror", *(f"-I{include}" for include in HEADERS))
    command = compiler_command((*strict, "-shared", str(source), "-o", str(folder / "host.so")))
    subprocess.run(command, check=True)
    plain, _ = variants(name)
    table = f"ts_{name}_{suffix(plain.dtypes)}_sm_90"
    return Host((ctypes.c_char * 32).in_dll(ctypes.CDLL(str(folder / "host.so")), table))


@pytest.mark.parametrize("name", NAMES)
def test_the_host_side_compiles_without_a_warning(name: str, tmp_path: Path) -> None:
    host(name, tmp_path)


def test_a_grid_covers_the_sizes_and_an_empty_one_is_not_launched(tmp_path: Path) -> None:
    gelu = host("gelu_gpu", tmp_path)
    assert gelu([1000], [1, 1]) == 0
    (only,) = gelu.launched
    assert only.function == "ts_gelu_gpu_float32_0_launch0_i32"
    assert (only.grid, only.block) == ((4, 1, 1), (256, 1, 1))
    assert gelu([0], [1, 1]) == 0
    assert not gelu.launched


def test_nothing_to_add_up_is_launched_all_the_same(tmp_path: Path) -> None:
    """Over no columns: the launch of partial sums has no blocks; the other one writes zeros."""
    two = host("sum_two", tmp_path)
    assert two([10, 0], [0, 1, 1, 1]) == 0
    assert [x.function for x in two.launched] == ["ts_sum_two_float32_0_launch1_i32"]


def test_a_grid_that_is_too_large_is_launched_in_parts(tmp_path: Path) -> None:
    transpose = host("transpose_gpu", tmp_path)
    transpose.number = 3  # first_y, behind m, n and first_x
    n = 32 * (2 * 65535 + 7)
    assert transpose([1, n], [n, 1, 1, 1]) == 0
    assert [x.grid for x in transpose.launched] == [(1, 65535, 1), (1, 65535, 1), (1, 7, 1)]
    assert [x.first for x in transpose.launched] == [0, 65535, 2 * 65535]


def test_a_batch_that_the_spec_has_is_an_axis_of_one_launch(tmp_path: Path) -> None:
    batch = host("batch_gpu", tmp_path)
    assert batch([1000, 8, 8], [64, 8, 1, 64, 8, 1]) == 0
    (only,) = batch.launched
    assert only.grid == (1, 1, 1000)


@pytest.mark.parametrize(
    ("size", "stride", "wide"),
    [
        (2**31 - 2**21, 1, False),
        (2**31 - 1, 1, True),  # what the last block's threads reach
        (2**31 + 1, 1, True),
        (2**20, 2**10, False),
        (2**20, 2**11, True),
        (2**20, -(2**11), True),
        (2**31, 0, True),
        (1, 2**40, True),  # never followed, but no int32 has it
    ],
)
def test_indices_have_64_bits_where_32_are_not_enough(
    size: int, stride: int, wide: bool, tmp_path: Path
) -> None:
    gelu = host("gelu_gpu", tmp_path)
    assert gelu([size], [stride, 1 if abs(stride) > 1 else stride]) == 0
    names = {x.function.rpartition("_")[2] for x in gelu.launched}
    assert names == {"i64" if wide else "i32"}


@pytest.mark.parametrize("name", [*TRIED, *NAMES])
@pytest.mark.parametrize(("size", "width"), [(1000, "i32"), (2**17, "i64")])
def test_large_arrays_have_indices_of_64_bits(
    name: str, size: int, width: str, tmp_path: Path
) -> None:
    """Matrices that lie as usual; of vectors alone elements are far apart."""
    plain, _ = variants(name)
    kernel = plain.under(None)
    ranks = [len(p.buffer.shape) for p in kernel.parameters]
    far = 2**15 if max(ranks) < 2 else 1
    strides = [far * size**k for rank in ranks for k in reversed(range(rank))]
    scalars = bytes(range(1, 2)) + bytes(63)
    made = host(name, tmp_path)
    assert made([size] * len(kernel.dims), strides, scalars) == 0
    assert {x.function.rpartition("_")[2] for x in made.launched} == {width}


def test_temporaries_are_reserved_in_one_piece(tmp_path: Path) -> None:
    two = host("sum_two", tmp_path)
    assert two([10, 5000], [5000, 1, 1, 1]) == 0
    assert two.reserved == [256]  # 10 rows of 2 numbers, rounded up
    two.memory = 0
    assert two([10, 5000], [5000, 1, 1, 1]) == 1  # TS_NO_MEMORY
    assert not two.launched


def test_a_launch_that_fails_ends_the_call(tmp_path: Path) -> None:
    two = host("sum_two", tmp_path)
    two.fails = 4
    assert two([10, 5000], [5000, 1, 1, 1]) == 4
    assert len(two.launched) == 1


def test_a_loop_of_the_host_launches_again(tmp_path: Path) -> None:
    heat = host("heat_gpu", tmp_path)
    steps, alpha = (5).to_bytes(8, "little"), bytes(8)
    assert heat([64, 64], [64, 1, 64, 1], steps + alpha) == 0
    names = [x.function.split("launch")[1] for x in heat.launched]
    assert names == ["0_i32", *["1_i32"] * 5, "2_i32"]


def test_extents_follow_the_loops_of_the_host(tmp_path: Path) -> None:
    """Host text calls scalar functions of integers, too: `%` of a condition."""
    triangle = host("triangle_gpu", tmp_path)
    assert "ts_mod_i64_s(n, 4)" in sources("triangle_gpu")[1]
    assert triangle([40], [1, 1, 40, 1, 1]) == 0
    upper = [-(-(40 - t) // 32) for t in range(40)]
    lower = [-(-t // 32) for t in range(40)]
    rows = [x for pair in zip(upper, lower, strict=True) for x in pair if x]
    assert [x.grid[0] for x in triangle.launched] == [*rows, 10]
