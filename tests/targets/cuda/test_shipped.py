"""The shipped kernels that have recipes for GPUs: proved, emitted, compiled where there is nvcc."""

import re
from functools import cache
from pathlib import Path

import pytest

from gen.language import choices
from gen.lower.variants import Plain, suffix
from gen.pipeline import emit, schedule_to_emit
from gen.poly.prove import prove
from gen.targets.cuda.architectures import Architecture
from gen.targets.cuda.compilers import FLAGS, HEADERS, compiled, nvcc
from gen.targets.registry import TARGETS

from .made import TARGET
from .test_compile import nvrtc

ROOT = Path(__file__).parents[3] / "kernels_spec"
ELEMENTWISE = (
    *("clamp", "cos", "exp", "expm1", "gelu", "gelu_tanh", "log", "log1p", "multiply_add"),
    *("sigmoid", "silu", "sin", "softplus", "tanh"),
)
OTHERS = ("blur", "layer_norm", "matmul", "matvec", "softmax", "sum", "transpose")
SHIPPED = (*ELEMENTWISE, *OTHERS)
TOGETHER = {"elementwise": ELEMENTWISE, **{name: (name,) for name in OTHERS}}
DTYPES = 2  # of each: float32 and float64


@cache
def sources(name: str) -> tuple[str, str]:
    spec = TARGETS.load(ROOT / f"{name}.yaml")
    made = {}
    for dtypes in choices(spec)[:DTYPES]:
        plain = Plain(spec, dtypes)
        made[suffix(dtypes)] = schedule_to_emit(spec, dtypes, TARGET, prove, plain)
    device, host = emit(spec, made, TARGET).values()
    return device, host


def test_these_are_all() -> None:
    texts = {path.stem: path.read_text("utf-8") for path in ROOT.glob("*.yaml")}
    assert {name for name, text in texts.items() if "target: cuda" in text} == {*SHIPPED}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_kernel_has_code_for_gpus(name: str) -> None:
    device, host = sources(name)
    assert f"ts_{name}_float32" in device
    assert f"ts_{name}_float64" in device
    assert host.count("extern const ts_variant") == DTYPES


@pytest.mark.parametrize("name", TOGETHER)
@pytest.mark.skipif(nvcc() is None, reason="there is no nvcc")
def test_it_compiles_without_spills(name: str, tmp_path: Path) -> None:
    """Elementwise kernels in one file: what they include takes most of the time."""
    source = tmp_path / f"{name}.cu"
    source.write_text("".join(sources(kernel)[0] for kernel in TOGETHER[name]))
    for entry in compiled(source, Architecture.SM_90, tmp_path / "out.cubin"):
        assert entry.spilled == 0, entry
        # Large angles are a function that is called, and a call has a frame.
        assert entry.stack == 0 or re.match("ts_(sin|cos)_", entry.name), entry


@pytest.mark.parametrize("name", TOGETHER)
def test_nvrtc_takes_it_too(name: str) -> None:
    """Large angles are of 128 bits, which is said to it."""
    library = nvrtc()
    if library is None:
        pytest.skip("there is no NVRTC")
    flags = ("--gpu-architecture=sm_90", "--device-int128", *FLAGS)
    options = [*flags, *(f"-I{folder}" for folder in HEADERS)]
    text = "".join(sources(kernel)[0] for kernel in TOGETHER[name])
    assert library.log(text, options) == (0, "")


def test_variants_before_the_last_are_for_the_strides_that_they_are_quick_with() -> None:
    rows = re.findall(r"UINT64_C\((\d+)\), \"(\d)\"", sources("sum")[1])
    assert rows[:3] == [("2", "0"), ("2", "1"), ("0", "2")]  # x has stride 1 along n


def test_tiles_of_a_matrix_product_have_no_guards_inside() -> None:
    """Past the ends there are zeros to read, and sums that nothing takes."""
    device, _ = sources("matmul")
    assert "float acc[64];" in device
    inner = device.partition("ts_barrier(0);")[2].partition("for (index_t c_lr")[2]
    inner = inner.partition("for (index_t acc_ir")[0]
    assert "ts_fma_f32_s(" in inner
    assert re.findall(r"if \((.*)\)", inner) == ["c_lb * 8 + c_lr < k"]
