"""Kernels with recipes for GPUs under the emulator: right beside their oracles, at sizes around
their tiles, on all kinds of inputs, with indices of 32 bits and of 64.
"""

import mmap
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from gen.cli import main
from gen.errors import TilesmithError
from gen.ir.nodes import Intent
from gen.language import choices
from gen.pipeline import load, schedule
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.cuda.emulator import library
from gen.targets.cuda.emulator.counts import AccessCount
from gen.targets.cuda.emulator.emulated import Emulated
from gen.targets.cuda.emulator.library import Array, Settings
from gen.targets.cuda.target import Cuda
from gen.trial.comparison import compare
from gen.trial.inputs import Arrays, kinds, strided
from gen.trial.kinds import InputKind
from gen.trial.sizes import kernel_dims

from .emulated_kernels import EMULATED, Subject, calls, of_all_dtypes, sizes_of, subject, tiles
from .made import AS_BUILT, SHIPPED, SPECS, TRIED, variants

each = of_all_dtypes(EMULATED)


def test_sizes_are_around_tiles() -> None:
    """A recipe of another form may not be emulated at small sizes alone."""
    found = {name: tiles(subject(name)) for name in EMULATED}
    assert {32, 8} <= {*found["transpose"]}
    assert {64, 16} <= {*found["matmul"]}
    assert {256, 32, 16} <= {*found["sum"]}
    assert all(max(numbers) >= 32 for numbers in found.values())
    around = {d: {sizes[d] for sizes in sizes_of(subject("matmul"))} for d in "mnk"}
    assert all({0, 1, 15, 16, 17, 63, 64, 65} <= sizes for sizes in around.values())
    assert {65535, 65536, 65537} & {sizes["n"] for sizes in sizes_of(subject("sum"))}


def wrong(of: Subject, sizes: dict[str, int], seed: int, arrays: dict[str, Array]) -> bool:
    """Every other time with indices of 64 bits; threads run in another order each time."""
    kernel = replace((of.kernel, of.wide)[seed % 2], settings=Settings(seed))
    return not compare(of.reference, kernel, arrays, sizes).worst <= 1


@of_all_dtypes([*EMULATED, *AS_BUILT])
def test_right_at_sizes_around_tiles(name: str, number: int) -> None:
    of, ran = subject(name, number), set()
    for seed, sizes in enumerate(sizes_of(of)):
        for order in "CF" if len(of.variants) > 1 else "C":
            arrays = {n: np.array(x, order=order) for n, x in of.arrays(sizes, seed).items()}
            ran.add(of.kernel.variant(arrays, kernel_dims(of.spec, sizes)))
            assert not wrong(of, sizes, seed, arrays), (sizes, order)
    if name in AS_BUILT:
        return  # some variants take long calls, or other scalars
    for variant, arrays, dims in calls(of):
        ran.add(variant)
        assert not wrong(of, {d: dims[d] for d in of.spec.dims}, 1, arrays), variant
    assert len(ran) == len(of.variants)


@of_all_dtypes(SHIPPED)
def test_right_on_all_kinds_of_inputs(name: str, number: int) -> None:
    """Ties, the smallest numbers and the largest, NaN and infinities; other strides."""
    of, plain = subject(name, number), variants(name, number)[0].under(None)
    sizes = max(sizes_of(of), key=lambda sizes: min(sizes.values()))
    for seed, kind in enumerate((*kinds(plain), InputKind.STRIDED, InputKind.STRIDED)):
        arrays, rng = of.arrays(sizes, seed, kind), np.random.default_rng(seed)
        kernel = (of.kernel, of.wide)[seed % 2]
        called = strided(of.spec, kernel, rng) if kind is InputKind.STRIDED else kernel
        assert compare(of.reference, called, arrays, sizes, kind).worst <= 1, kind


def widths(counts: Sequence[AccessCount]) -> set[str]:
    """Of the launches' indices."""
    return {count.launch.rpartition("_")[2] for count in counts}


@each
def test_both_widths_of_indices_give_the_same_bits(name: str, number: int) -> None:
    of = subject(name, number)
    for _, arrays, dims in calls(of):
        found = []
        for kernel, width in ((of.kernel, "i32"), (of.wide, "i64")):
            given = {n: x.copy(order="K") for n, x in arrays.items()}
            counts = kernel.counts(given, dims)
            assert widths(counts) == {width}
            found.append([x.tobytes() for x in given.values()])
        assert found[0] == found[1]


# ---------------------------------------------------------------- far apart

PAST = 2**31 + 5
NARROW = 2146435072  # TS_NARROW of ts_launch.h


def apart(shape: tuple[int, ...], axis: int, stride: int, dtype: np.dtype) -> Array:
    """An array whose elements are so far apart along an axis, and side by side along the others.
    What lies between is memory that nothing touches, and the system gives none for it.
    """
    others = [n for k, n in enumerate(shape) if k != axis]
    steps = [int(np.prod(others[k:])) for k in range(1, len(others) + 1)]
    steps.insert(axis, stride)
    reach = (stride * (shape[axis] - 1) + int(np.prod(others))) * dtype.itemsize
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
    space = np.frombuffer(mmap.mmap(-1, reach + 4096, flags=flags), dtype, 1)
    strides = [step * dtype.itemsize for step in steps]
    return np.lib.stride_tricks.as_strided(space, shape, strides, writeable=True)


def narrowest(shape: tuple[int, ...], axis: int) -> int:
    """The greatest distance along an axis with which 32 bits are enough."""
    others = [n for k, n in enumerate(shape) if k != axis]
    rest = sum(n * int(np.prod(others[k + 1 :])) for k, n in enumerate(others))
    return (NARROW - rest) // shape[axis]


def counted(
    kernel: Emulated, counts: list[AccessCount], arrays: Arrays, dims: Mapping[str, int]
) -> None:
    counts += kernel.counts(arrays, dims)


def axes(name: str) -> Iterator[tuple[str, int]]:
    for argument in subject(name).spec.arguments:
        for axis in range(len(argument.shape)):
            yield argument.name, axis


@pytest.mark.parametrize("name", EMULATED)
def test_elements_far_apart(name: str) -> None:
    """Each axis of each array: so far apart that only 64 bits have the offsets, and just as far as
    32 bits are taken for, in which the emulator would see an overflow, and one element further.
    """
    of = subject(name)
    sizes = dict.fromkeys(of.spec.dims, 3)
    for array, axis in axes(name):
        arrays = of.arrays(sizes)
        shape = arrays[array].shape
        most = narrowest(shape, axis)
        for stride, width in ((PAST, "i64"), (most, "i32"), (most + 1, "i64")):
            laid = apart(shape, axis, stride, arrays[array].dtype)
            laid[...] = arrays[array]
            given, counts = {**arrays, array: laid}, list[AccessCount]()
            run = partial(counted, of.kernel, counts)
            assert compare(of.reference, run, given, sizes).worst <= 1, (array, axis, stride)
            assert widths(counts) == {width}, (array, axis, stride)


# ---------------------------------------------------------------- what they ask of memory


@pytest.mark.parametrize("name", [name for name in TRIED if name != "blur"])
@pytest.mark.parametrize("number", [0, 1])
def test_shipped_kernels_ask_for_what_they_need(name: str, number: int) -> None:
    """Each variant, where rows are whole sectors long, and so is a transpose's every column; rows
    of what sums are first added up to, in the workspace, are as long as they come. None adds up in
    an output. A stencil reads what lies beside its tiles.
    """
    of = subject(name, number)
    outputs = {argument.name for argument in of.spec.arguments if argument.intent is Intent.OUT}
    for variant, arrays, dims in calls(of):
        counts = of.kernel.counts(arrays, dims)
        assert not [c for c in counts if c.array in outputs and not c.write], variant
        for count in (c for c in counts if c.array in arrays):
            assert count.asked <= 1.1 * count.needed, (variant, count)
        assert not sum(c.conflicts for c in counts), variant


def test_bits_are_those_of_a_cpu() -> None:
    of = subject("gelu")
    sizes = {"m": 20, "n": 100}
    arrays = of.arrays(sizes)
    arrays["x"] *= 3
    cpu = Cpu(Level.V3)
    other = load(of.spec, of.dtypes, schedule(of.spec, of.dtypes, cpu, lambda *_: None), cpu)
    here = {n: x.copy() for n, x in arrays.items()}
    other(here, sizes)
    of.kernel(arrays, sizes)
    assert arrays["y"].tobytes() == here["y"].tobytes()


# ---------------------------------------------------------------- the command


def test_a_gpu_is_not_here() -> None:
    said = r"there is no GPU .*: `tilesmith run --target cuda --emulate` runs it on the processor"
    with pytest.raises(TilesmithError, match=said):
        Cuda.here()
    of = subject("gelu_gpu")
    with pytest.raises(TilesmithError, match=said):
        load(of.spec, choices(of.spec)[0], of.variants, Cuda.at("sm_90"))
    with pytest.raises(
        TilesmithError, match="kernels for cpu run as they are: there is nothing to emulate"
    ):
        Cpu(Level.V3).emulating()


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(SPECS / "transpose_gpu.yaml")
    assert main(["run", path, "--target", "cuda", "--emulate", "--size", "m=64"]) == 0
    printed = capsys.readouterr().out
    assert "transpose_gpu float32 sm_90  m=64 n=64" in printed
    assert "ms under the emulator, which says nothing of the machine" in printed
    assert re.search(r"0 wrong\n  memory\n {10,}instructions  idle lanes  sectors asked", printed)
    assert re.search(r" read x +128 +0\.0% +512 +512\n", printed)
    assert re.search(r" read tile \(shared\) +128 +0\.0% +0\n", printed)
    assert main(["run", path, "--target", "cuda"]) == 1
    assert "there is no GPU" in "".join(capsys.readouterr())


def test_the_command_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of the emulator, after the sizes."""
    told = library.with_entries
    broken = ("if (blockIdx_x * 32 + threadIdx_x < m)", "if (true)")
    monkeypatch.setattr(library, "with_entries", lambda text: told(text.replace(*broken)))
    path = str(SPECS / "transpose_gpu.yaml")
    assert main(["run", path, "--target", "cuda", "--emulate", "--size", "m=65"]) == 1
    printed = "".join(capsys.readouterr())
    assert re.search(
        r"error: transpose_gpu at m=65 n=64: ts_transpose_gpu_float32_0_launch0_i32: block"
        r" \(2, 0, 0\), thread \(\d+, \d, 0\) (reads|writes) (the shared array tile|y)\[\d+\] at",
        printed,
    ), printed
