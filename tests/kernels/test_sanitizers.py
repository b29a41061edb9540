"""Kernels and the calling engine under the address, leak and undefined-behaviour sanitizers.

Every array is an allocation of exactly its size, so that an access one element beyond it is found.
"""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import tilesmith as ts
from gen.ir.types import DType
from gen.language.build import choices
from gen.targets.cpu.levels import Level

from . import driver
from .support import SPECS, assert_right

SUPPORTED = ts.show_config("dicts")["levels_supported"]
LEVELS = [level for level in (Level.V3, Level.V4, Level.NEON) if level.value in SUPPORTED]
FLOAT32 = {"T": DType.FLOAT32}
SLOW = {"argmax", "blur", "cumsum", "softmax", "trmm"}


@pytest.fixture(autouse=True, scope="module")
def sanitizers() -> None:
    command = ["cc", "-print-file-name=libasan.so"]
    library = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(library).is_absolute():
        pytest.skip("the compiler has no address sanitizer")


# Every kind of statement on the best level; those that compile for long seldom on the others, and
# matmul, of whose tiles trmm has a few, seldom at all.
SANITIZED = [
    pytest.param(
        kernel,
        level,
        marks=pytest.mark.thorough
        if kernel == "matmul" or (kernel in SLOW and level != LEVELS[-1])
        else (),
    )
    for kernel in ("argmax", "blur", "cumsum", "grey", "matmul", "softmax", "trmm")
    for level in LEVELS
]


@pytest.mark.parametrize(("kernel", "level"), SANITIZED, ids=lambda x: getattr(x, "value", x))
def test_sanitizers_find_nothing(kernel: str, level: Level, tmp_path: Path) -> None:
    """Also with slices that are packed, and with threads, in one process."""
    program, spec = driver.build(kernel, level, tmp_path, flags=driver.SANITIZE), SPECS[kernel]
    for dtypes in choices(spec):
        calls = driver.edge_calls(kernel, dtypes, level)
        if spec.loop_dim is not None:
            calls += [
                {name: driver.spread(array) for name, array in arrays.items()} for arrays in calls
            ]
        for threads in (1, 2):
            results = program(dtypes, calls, threads)
            for arrays, got in zip(calls, results, strict=True):
                assert_right(spec, dtypes, arrays, got)


def _overread(text: str) -> str:
    return re.sub(r"ts_load_first_f32\((&x\[[^\]]*\]),\s+active\)", r"ts_load_f32(\1)", text)


def _overwrite(text: str) -> str:
    return re.sub(r"ts_store_first_f32\((.*?),\s+active\);", r"ts_store_f32(\1);", text, flags=re.S)


def _leak(text: str) -> str:
    return re.sub(r"ts_workspace_release\(\w+\);", ";", text)


def _overflow(text: str) -> str:
    return text.replace("call->threads)", "call->threads + INT32_MAX)")


PLANTED: list[tuple[str, Callable[[str], str], str]] = [
    ("exp", _overread, "AddressSanitizer: heap-buffer-overflow"),
    ("clamp", _overwrite, "AddressSanitizer: heap-buffer-overflow"),
    ("softmax", _leak, "LeakSanitizer: detected memory leaks"),
    ("exp", _overflow, "signed integer overflow"),
]


@pytest.mark.parametrize(("kernel", "corrupt", "found"), PLANTED)
def test_what_is_planted_is_found(
    kernel: str, corrupt: Callable[[str], str], found: str, tmp_path: Path
) -> None:
    level = LEVELS[0]
    program = driver.build(kernel, level, tmp_path, corrupt=corrupt, flags=driver.SANITIZE)
    with pytest.raises(AssertionError, match=found):
        program(FLOAT32, driver.edge_calls(kernel, FLOAT32, level))
