"""The emitted C under the address and undefined-behaviour sanitizers, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import numpy as np
from gen.targets.cpu.levels import Level
from tests.targets import kernels
from tests.targets.kernels import compiled

def heap(shape, dtype="f", fill=1):
    return np.full(shape, fill, dtype)

flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
w = 8
softmax = compiled(kernels.softmax(w).scheduled, Level.V3, flags=flags)
matmul = compiled(kernels.matmul(w).scheduled, Level.V3, flags=flags)
blur = compiled(kernels.blur(w).scheduled, Level.V3, flags=flags)
wide = compiled(kernels.wide(w), Level.V3, flags=flags)
sides = compiled(kernels.sides(w), Level.V3, flags=flags)
for n in (0, 1, w - 1, w, w + 1, 4 * w + 3):
    softmax({"x": heap((3, n)), "y": heap((3, n))})
    matmul({"a": heap((4, 5)), "b": heap((5, n)), "c": heap((4, n))})
    blur({"x": heap((3, n)), "y": heap((3, n))})
    sides({"x": heap(n), "y": heap(n)})
    i = heap(n, np.int32, 2**31 - 1)
    flag = heap(n, bool)
    y, z, big = heap(n, float), heap(n, np.int32), heap(n, bool)
    wide({"i": i, "x": heap(n), "flag": flag, "y": y, "z": z, "big": big}, {"shift": 4})
print("clean")
"""


def found(library: str) -> str:
    """The path of one of the compiler's libraries."""
    command = ["cc", f"-print-file-name={library}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    library, beside = map(found, ("libasan.so", "libstdc++.so"))
    if not Path(library).is_absolute():
        pytest.skip("the compiler has no address sanitizer")
    environment = {
        **os.environ,
        "LD_PRELOAD": f"{library} {beside}",  # isl's binding throws, which the sanitizer follows
        "ASAN_OPTIONS": "detect_leaks=0",
        "TILESMITH_CACHE": str(tmp_path),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("clean\n", 0), done.stderr
