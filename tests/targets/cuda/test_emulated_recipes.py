"""Recipes for GPUs under the emulator: right beside their oracles, and every barrier is needed."""

import mmap
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gen.cli import main
from gen.errors import KernelFault, TilesmithError
from gen.ir.nodes import Intent
from gen.language import Dtypes, choices
from gen.language.model import KernelSpec
from gen.lower.variants import Variant, suffix
from gen.pipeline import emit, load, schedule
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.cuda.emulator import library
from gen.targets.cuda.emulator.emulated import Emulated
from gen.targets.cuda.emulator.library import Array, Settings, build
from gen.targets.cuda.target import Cuda
from gen.targets.registry import TARGETS
from gen.trial.comparison import compare
from gen.trial.inputs import InputKind, random_arrays, strided
from gen.trial.plain import Reference
from gen.trial.sizes import allowed, kernel_dims

from .test_shipped import ELEMENTWISE

SHIPPED = {
    path.stem: path
    for path in sorted((Path(__file__).parents[3] / "kernels_spec").glob("*.yaml"))
    if "- target: cuda" in path.read_text("utf-8")
}
SPECS = {path.stem: path for path in sorted((Path(__file__).parent / "specs").glob("*.yaml"))}
del SPECS["triangle_gpu"]  # a launch a row, for the host's side: test_host.py calls it
SPECS |= SHIPPED
TARGET = Cuda.at("sm_90").emulating()

# Around the tiles of each recipe, dim by dim; sizes are taken from these lists side by side.
SIZES: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "blur_gpu": ((1, 7, 8, 9, 20), (33, 32, 31, 1, 70)),
    "gelu_gpu": ((1, 255, 256, 257, 1000),),
    "gemv_gpu": ((1, 3, 4, 5, 9), (33, 32, 31, 1, 70)),
    "heat_gpu": ((3, 9, 10, 11, 20), (33, 34, 35, 3, 70)),
    "layer_gpu": ((1, 3, 2, 1, 2), (1, 255, 256, 257, 600)),
    "matmul_gpu": ((1, 127, 128, 129, 5), (8, 7, 9, 1, 17), (129, 1, 127, 128, 3)),
    "softmax_gpu": ((1, 3, 2, 1, 2), (1, 255, 256, 257, 600)),
    "softmax_online": ((1, 3, 2, 1, 2), (1, 255, 256, 257, 600)),
    "sum_two": ((1, 255, 256, 257, 3), (257, 256, 255, 1, 600)),
    "transpose_gpu": ((1, 31, 32, 33, 70), (33, 32, 31, 1, 65)),
}
AS = {  # whose sizes a shipped kernel is tried at
    **dict.fromkeys(ELEMENTWISE, "gelu_gpu"),
    **{"blur": "blur_gpu", "layer_norm": "layer_gpu", "matmul": "matmul_gpu", "matvec": "gemv_gpu"},
    **{"softmax": "softmax_gpu", "sum": "softmax_gpu", "transpose": "transpose_gpu"},
}


def proved_elsewhere(*_: object) -> None:
    """In test_recipes.py."""


def dtypes_of(spec: KernelSpec) -> Dtypes:
    return choices(spec)[spec.name in SHIPPED]


@cache
def made(name: str) -> tuple[KernelSpec, tuple[Variant, ...], Emulated, str]:
    """A spec, its variants, the kernel, and its device text. Of a shipped kernel for float64, since
    the others are for float32.
    """
    spec = TARGETS.load(SPECS[name])
    dtypes = dtypes_of(spec)
    variants = schedule(spec, dtypes, TARGET, proved_elsewhere, each_step=False)
    kernel = load(spec, dtypes, variants, TARGET)
    assert isinstance(kernel, Emulated)
    sources = emit(spec, {suffix(dtypes): variants}, TARGET)
    return spec, variants, kernel, next(t for file, t in sources.items() if file.endswith(".cu"))


def sizes_of(name: str) -> list[dict[str, int]]:
    spec, *_ = made(name)
    of_dims = zip(*SIZES[AS.get(name, name)], strict=True)
    zeros = ({d: 0 if d == zero else 3 for d in spec.dims} for zero in spec.dims)
    found = [*zeros, *(dict(zip(spec.dims, sizes, strict=True)) for sizes in of_dims)]
    return [sizes for sizes in found if allowed(spec, sizes)]


def test_all_recipes_are_here() -> None:
    assert {*SIZES, *AS} == SPECS.keys()


@pytest.mark.parametrize("name", SPECS)
def test_right_at_sizes_around_tiles(name: str) -> None:
    spec, _, kernel, _ = made(name)
    reference, rng = Reference(spec, dtypes_of(spec)), np.random.default_rng(0)
    assert len(sizes_of(name)) > 4
    for seed, sizes in enumerate(sizes_of(name)):
        ordered = replace(kernel, settings=Settings(seed))
        arrays = random_arrays(spec, reference.dtypes, sizes, rng)
        assert compare(reference, ordered, arrays, sizes).worst <= 1, sizes
    for variant, arrays, dims in calls(name):
        sizes = {d: dims[d] for d in spec.dims}
        assert compare(reference, kernel, arrays, sizes).worst <= 1, variant
    for sizes in sizes_of(name)[-2:]:
        laid = strided(spec, kernel, rng)
        arrays = random_arrays(spec, reference.dtypes, sizes, rng)
        assert compare(reference, laid, arrays, sizes, InputKind.STRIDED).worst <= 1, sizes


@pytest.mark.parametrize("name", SPECS)
def test_right_in_place(name: str) -> None:
    """Where it is proved that an output may be an input."""
    spec, variants, kernel, _ = made(name)
    rng, sizes = np.random.default_rng(0), sizes_of(name)[-1]
    for pair in variants[0].in_place:
        arrays = random_arrays(spec, dtypes_of(spec), sizes, rng)
        apart = {n: x.copy() for n, x in arrays.items()}
        kernel(apart, kernel_dims(spec, sizes))
        given, output = sorted(pair, key=lambda n: n not in "xab")
        kernel({**arrays, output: arrays[given]}, kernel_dims(spec, sizes))
        assert np.array_equal(arrays[given], apart[output], equal_nan=True)


def calls(name: str) -> Iterator[tuple[str, dict[str, Array], dict[str, int]]]:
    """For each variant one that runs it: arrays in C's order, in Fortran's, and long ones."""
    spec, variants, kernel, _ = made(name)
    asked, long = {variant.name for variant in variants}, dict.fromkeys(spec.dims, 2)
    near, long[spec.dims[-1]] = dict.fromkeys(spec.dims, 64), 66_000
    for sizes, order in ((near, "C"), (near, "F"), (long, "C")):
        if not asked:
            return
        drawn = random_arrays(spec, dtypes_of(spec), sizes, np.random.default_rng(0))
        arrays = {n: np.array(x, order=order) for n, x in drawn.items()}
        dims = kernel_dims(spec, sizes)
        if (variant := kernel.variant(arrays, dims)) in asked:
            asked.remove(variant)
            yield variant, arrays, dims
    assert not asked


@pytest.mark.parametrize("name", SPECS)
def test_every_barrier_is_needed(name: str) -> None:
    """Each one that threads pass as if it were not there is found; the prover's part of this is in
    test_recipes.py.
    """
    *_, kernel, text = made(name)
    left = {int(number) for number in re.findall(r"ts_barrier\((\d+)\)", text)}
    for _, arrays, dims in calls(name):
        for barrier in sorted(left):
            try:
                replace(kernel, settings=Settings(off=frozenset({barrier})))(arrays, dims)
            except KernelFault as fault:
                assert re.search("no barrier between|nothing has written", fault.message)
                left.remove(barrier)
    assert not left


@pytest.mark.parametrize("name", sorted(SHIPPED.keys() - {"blur"}))
def test_shipped_kernels_ask_for_what_they_need(name: str) -> None:
    """Each variant, where rows are whole sectors long, and so is a transpose's every column; and
    none adds up in an output. A stencil reads what lies beside its tiles.
    """
    spec, _, kernel, _ = made(name)
    outputs = {argument.name for argument in spec.arguments if argument.intent is Intent.OUT}
    for variant, arrays, dims in calls(name):
        counts = kernel.counts(arrays, dims)
        assert not [c for c in counts if c.array in outputs and not c.write], variant
        for count in (c for c in counts if not c.shared):
            assert count.asked <= 1.1 * count.needed, (variant, count)
        assert not sum(c.conflicts for c in counts), variant


def test_bits_are_those_of_a_cpu() -> None:
    spec, _, kernel, _ = made("gelu_gpu")
    dtypes, rng = dtypes_of(spec), np.random.default_rng(0)
    arrays = random_arrays(spec, dtypes, {"m": 2000}, rng)
    arrays["x"] *= 3
    cpu = Cpu(Level.V3)
    other = load(spec, dtypes, schedule(spec, dtypes, cpu, proved_elsewhere), cpu)
    here = {n: x.copy() for n, x in arrays.items()}
    other(here, {"m": 2000})
    kernel(arrays, {"m": 2000})
    assert arrays["y"].tobytes() == here["y"].tobytes()


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """Device text with one thing wrong, and the line that is wrong: each thread takes the place of
    the next, or each block; what a guard leaves out runs; an array of shared memory is too short.
    """
    wrong = {
        r"\(index_t\)(thread|block)Idx\.\w": lambda m: f"({m[0]} + 1)",
        r"if \(": lambda m: "if (true || ",
        r"(TS_SHARED\(.*), (\d+)\)": lambda m: f"{m[1]}, {int(m[2]) // 2})",
    }
    body, mark, entries = text.partition('extern "C"')
    for pattern, change in wrong.items():
        for m in re.finditer(pattern, body):
            changed = body[: m.start()] + change(m) + body[m.end() :]
            yield changed + mark + entries, changed.splitlines()[body[: m.start()].count("\n")]


@pytest.mark.parametrize("name", ["blur_gpu", "gelu_gpu", "softmax_gpu", "transpose_gpu"])
def test_wrong_text_is_found(name: str) -> None:
    """All mutants are one library, in which each is a kernel with a name of its own."""
    spec, variants, kernel, text = made(name)
    texts = emit(spec, {suffix(dtypes_of(spec)): variants}, TARGET)
    host = next(t for file, t in texts.items() if file.endswith(".c"))
    planted = [*mutants(text)]
    together = build(
        {
            "k.cu": "".join(t.replace(name, f"m{k}") for k, (t, _) in enumerate(planted)),
            "k.c": "".join(host.replace(name, f"m{k}") for k in range(len(planted))),
        }
    )
    for k, (_, line) in enumerate(planted):
        symbol = kernel.compiled.symbol.replace(name, f"m{k}")
        wrong = replace(kernel.compiled, library=together, symbol=symbol)
        assert found(name, replace(kernel, compiled=wrong)) or "_turn *" in line, line


def found(name: str, kernel: Emulated) -> bool:
    """Whether the kernel does what it may not, or is not right; guards of what a block's threads
    copy may be true of every turn (`_turn *`)."""
    spec, *_ = made(name)
    reference, rng = Reference(spec, dtypes_of(spec)), np.random.default_rng(0)
    for sizes in sizes_of(name):
        arrays = random_arrays(spec, reference.dtypes, sizes, rng)
        try:
            if not compare(reference, kernel, arrays, sizes).worst <= 1:
                return True
        except KernelFault:
            return True
    return False


@pytest.mark.parametrize(("far", "width"), [(2**31 + 5, "i64"), (1_073_200_000, "i32")])
@pytest.mark.parametrize("name", ["softmax_gpu", "transpose_gpu"])
def test_rows_far_apart(name: str, far: int, width: str) -> None:
    """So far that only 64 bits have their offsets, and as far as 32 bits are taken for. Between the
    rows is memory that nothing touches, and the system gives none for it.
    """
    spec, _, kernel, _ = made(name)
    sizes = {"m": 2, "n": 40}
    arrays = random_arrays(spec, dtypes_of(spec), sizes, np.random.default_rng(0))
    near = {n: x.copy() for n, x in arrays.items()}
    kernel(near, sizes)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
    space = np.frombuffer(mmap.mmap(-1, far * 4 + 4096, flags=flags), np.float32)
    x = np.lib.stride_tricks.as_strided(space, (2, 40), (far * 4, 4), writeable=True)
    x[...] = arrays["x"]
    counts = kernel.counts({**arrays, "x": x}, sizes)
    assert np.array_equal(arrays["y"], near["y"])
    assert {c.launch.rpartition("_")[2] for c in counts} == {width}


def test_a_gpu_is_not_here() -> None:
    said = r"there is no GPU .*: `tilesmith run --target cuda --emulate` runs it on the processor"
    with pytest.raises(TilesmithError, match=said):
        Cuda.here()
    spec, variants, *_ = made("gelu_gpu")
    with pytest.raises(TilesmithError, match=said):
        load(spec, dtypes_of(spec), variants, Cuda.at("sm_90"))
    with pytest.raises(
        TilesmithError, match="kernels for cpu run as they are: there is nothing to emulate"
    ):
        Cpu(Level.V3).emulating()


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(SPECS["transpose_gpu"])
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
    path = str(SPECS["transpose_gpu"])
    assert main(["run", path, "--target", "cuda", "--emulate", "--size", "m=65"]) == 1
    printed = "".join(capsys.readouterr())
    assert re.search(
        r"error: transpose_gpu at m=65 n=64: ts_transpose_gpu_float32_0_launch0_i32: block"
        r" \(2, 0, 0\), thread \(\d+, \d, 0\) (reads|writes) (the shared array tile|y)\[\d+\] at",
        printed,
    ), printed
