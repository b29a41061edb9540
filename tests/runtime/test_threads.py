"""Parallel loops and workspace by themselves: the pool under the sanitizers and without; OpenMP."""

import subprocess
from pathlib import Path

import pytest

from gen.targets.runtime import RUNTIME


@pytest.mark.parametrize("option", ["sanitize=address,undefined", "sanitize=thread", "", "openmp"])
def test_parallel_loops_and_workspace(option: str, tmp_path: Path) -> None:
    program = tmp_path / "test_threads"
    sources = [Path(__file__).with_suffix(".c"), *(RUNTIME / f"ts_{n}.c" for n in _PARTS)]
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pthread"]
    if option:
        flags.append(f"-f{option}")
    if "sanitize" in option:
        flags.append("-fno-sanitize-recover=all")
    subprocess.run(["cc", *flags, f"-I{RUNTIME}", *map(str, sources), "-o", program], check=True)
    environment = {
        "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=0",
        "TSAN_OPTIONS": "die_after_fork=0:allocator_may_return_null=1",
        "OMP_WAIT_POLICY": "passive",  # many callers, each with threads that would spin
    }
    done = subprocess.run([program], capture_output=True, text=True, env=environment, timeout=300)
    assert (done.stdout, done.returncode) == ("", 0), done.stdout + done.stderr


_PARTS = ("openmp", "pool", "threads", "workspace")
