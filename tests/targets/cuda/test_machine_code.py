"""Machine code that is kept, what it may not do, and how full a GPU it makes."""

import json
from pathlib import Path

import pytest

from gen.errors import TilesmithError
from gen.targets.cuda import machine_code
from gen.targets.cuda.architectures import Architecture
from gen.targets.cuda.compilers import FLAGS, Resources, nvcc
from gen.targets.cuda.machine_code import later
from gen.targets.cuda.occupancy import occupancy

ENTRY = 'extern "C" __global__ void __launch_bounds__(256)\nts_a_i32(int n)\n{\n}\n'

SHARED = """
template <typename index_t> TS_DEVICE void turned(ts_global<float> x)
{
    TS_SHARED(float, s, 32);
    s[threadIdx.x] = x[threadIdx.x];
    ts_barrier(0);
    x[threadIdx.x] = s[31 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(32)
ts_b_i32(float *x)
{
    turned<int32_t>(x);
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.sm_90.cu"
    path.write_text(ENTRY)
    return path


def _compiler(monkeypatch: pytest.MonkeyPatch, spilled: int, calls: list[tuple[str, ...]]) -> None:
    """One that writes what it is asked for."""

    def run(source: Path, options: tuple[str, ...], headers: object) -> tuple[Resources, ...]:
        calls.append(options)
        Path(options[-1]).write_bytes(b"code")
        return (Resources("ts_a_i32", "sm_90", 64, spilled, 16, 2048),)

    monkeypatch.setattr(machine_code, "run", run)
    monkeypatch.setattr(machine_code, "required", lambda: "true")


def test_code_is_kept_by_what_it_is_made_of(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []
    _compiler(monkeypatch, 0, calls)
    headers, to = tmp_path / "headers", tmp_path / "a.fatbin"
    headers.mkdir()
    (headers / "ts_cuda.h").write_text("// one\n")

    def make(architecture: str = "sm_90") -> int:
        found = machine_code.machine_code(source, architecture, to, tmp_path / "kept", [headers])
        figures = {"registers": 64, "spilled": 0, "stack": 16, "shared": 2048, "occupancy": 0.5}
        assert (found, to.read_bytes()) == ({"ts_a_i32": {"sm_90": figures}}, b"code")
        return len(calls)

    assert [make(), make()] == [1, 1]
    assert calls[0][:2] == ("-gencode", "arch=compute_90,code=[sm_90,sm_100,sm_120,compute_90]")
    (headers / "ts_cuda.h").write_text("// two\n")
    assert make() == 2
    source.write_text(f"{ENTRY}// another\n")
    assert make() == 3
    assert make("sm_80") == 4
    monkeypatch.setattr(machine_code, "FLAGS", (*FLAGS, "-G"))
    assert make() == 5
    monkeypatch.setattr(machine_code, "required", lambda: "echo")
    assert make() == 6


def test_what_spills_is_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _compiler(monkeypatch, 24, [])
    with pytest.raises(TilesmithError) as caught:
        machine_code.machine_code(source, "sm_90", tmp_path / "a.fatbin", tmp_path / "kept")
    assert str(caught.value) == (
        "error: a.sm_90.cu: ts_a_i32 needs more registers than a thread of 256 has on sm_90: 24 "
        "bytes spill\n  hint: take smaller tiles a thread, or fewer threads a block"
    )
    assert not (tmp_path / "a.fatbin").exists() and not list((tmp_path / "kept").iterdir())


def test_what_spills_is_compiled_again_with_all_registers(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It alone: other functions would have fewer threads at once for nothing."""
    texts: list[str] = []

    def run(source: Path, options: tuple[str, ...], headers: object) -> tuple[Resources, ...]:
        texts.append(source.read_text())
        Path(options[-1]).write_bytes(b"code")
        spilled = 8 * ("(256, 1)" not in texts[-1])
        other = Resources("ts_b_i32", "sm_90", 32, 0, 0, 0)
        return (Resources("ts_a_i32", "sm_90", 44, spilled, 0, 2048), other)

    monkeypatch.setattr(machine_code, "run", run)
    monkeypatch.setattr(machine_code, "required", lambda: "true")
    source.write_text(ENTRY + ENTRY.replace("ts_a_i32", "ts_b_i32"))
    found = machine_code.machine_code(source, "sm_90", tmp_path / "a.fatbin", tmp_path / "kept")
    assert found["ts_a_i32"]["sm_90"]["spilled"] == 0
    assert texts[1] == ENTRY.replace("(256)", "(256, 1)") + ENTRY.replace("ts_a_i32", "ts_b_i32")


@pytest.mark.skipif(nvcc() is None, reason="there is no nvcc: pip install --group cuda brings it")
def test_two_folders_and_caches_give_the_same_bytes(tmp_path: Path) -> None:
    made = []
    for name in ("one", "somewhere else"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "a.sm_90.cu").write_text(f'#include "ts_cuda.h"\n{SHARED}{ENTRY}')
        to = folder / "a.fatbin"
        found = machine_code.machine_code(folder / "a.sm_90.cu", "sm_120", to, folder)
        made.append((to.read_bytes(), json.dumps(found)))
    assert made[0] == made[1]


def test_an_architecture_is_for_all_later_ones() -> None:
    assert later("sm_89") == ("sm_89", "sm_90", "sm_100", "sm_120")
    assert later("sm_120") == ("sm_120",)


@pytest.mark.parametrize(
    ("architecture", "threads", "registers", "shared", "share"),
    [  # as CUDA's occupancy calculator has it
        (Architecture.SM_90, 256, 32, 0, 1),
        (Architecture.SM_90, 256, 33, 0, 0.75),
        (Architecture.SM_90, 256, 64, 0, 0.5),
        (Architecture.SM_90, 1024, 64, 0, 0.5),
        (Architecture.SM_90, 256, 255, 0, 0.125),
        (Architecture.SM_90, 32, 16, 0, 0.5),
        (Architecture.SM_90, 256, 32, 48 * 1024, 0.5),
        (Architecture.SM_86, 256, 40, 0, 1),
        (Architecture.SM_86, 1024, 32, 0, 2 / 3),
        (Architecture.SM_75, 256, 64, 0, 1),
        (Architecture.SM_75, 256, 64, 48 * 1024, 0.25),
    ],
)
def test_occupancy(
    architecture: Architecture, threads: int, registers: int, shared: int, share: float
) -> None:
    assert occupancy(architecture, threads, registers, shared) == pytest.approx(share)
