"""What the shipped kernels' sources are: goldens on one level, and the same bytes every time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gen import language as specs
from gen.errors import ScheduleError
from gen.pipeline import emit, generate, schedule, suffix
from gen.poly.prove import prove
from gen.targets.cpu.levels import Level, Target

from .conftest import GOLDEN, Golden

ROOT = Path(__file__).parents[1]
KERNELS = sorted(path.stem for path in (ROOT / "kernels_spec").glob("*.yaml"))


SHOWN = 3  # choices of dtypes: those after them differ in the names of types


def source(kernel: str) -> str:
    """The C file on v3; what proves it is `test_proofs.py`."""
    spec = specs.load(ROOT / "kernels_spec" / f"{kernel}.yaml")
    variants = {
        suffix(dtypes): schedule(spec, dtypes, Target(Level.V3), lambda plain, state: None)
        for dtypes in specs.choices(spec)[:SHOWN]
    }
    return emit(spec, variants, Level.V3)


@pytest.mark.parametrize("kernel", KERNELS)
def test_golden(kernel: str, golden: Golden) -> None:
    golden(f"kernels/{kernel}.v3.c", source(kernel))


def test_a_build_refuses_a_wrong_step_and_names_it(tmp_path: Path) -> None:
    """It proves what it would emit, and the steps where that is refused."""
    text = (ROOT / "tests/language/corpus/polybench/floyd_warshall.yaml").read_text("utf-8")
    wrong = tmp_path / "floyd_warshall.yaml"
    steps = "recipes:\n  - target: cpu\n    variants:\n      - steps:\n"
    wrong.write_text(
        f"{text.partition('recipes:')[0]}{steps}          - parallel: {{loop: path.i}}\n"
    )
    with pytest.raises(ScheduleError) as refused:
        generate(wrong, ["v2"], prove)
    assert "parallel loop 'path.i' has a race" in refused.value.message
    assert refused.value.span and "parallel" in refused.value.span.text


def test_no_golden_without_a_kernel() -> None:
    kept = {path.name.split(".")[0] for path in (GOLDEN / "kernels").glob("*")}
    assert kept == set(KERNELS)


def test_the_same_bytes_whatever_the_hash_seed() -> None:
    code = (
        "from tests.test_generated import source\n"
        "print(''.join(source(k) for k in ('softmax', 'argmax', 'blur')))"
    )
    made = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(made) == 1
