"""Recipes for one architecture; and the same bytes in each folder and each run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gen.language import choices, loads
from gen.lower.variants import suffix
from gen.pipeline import emit, schedule
from gen.poly.prove import prove
from gen.targets.cuda.target import Cuda
from gen.targets.registry import TARGETS

from .made import SPEC

ROOT = Path(__file__).parents[3]
STEPS = """\
          - split: {{loop: y.j, factors: [null, {0}]}}
          - bind: {{loop: y.i, axis: blockIdx.y}}
          - gpu: {{loops: [y.j_0, y.j_1]}}
"""
TEXT = SPEC.format(body="y[i, j] = 2 * x[i, j]", steps=STEPS.format(256))
OF_ONE = "  - target: cuda.sm_90\n    variants:\n      - steps:\n" + STEPS.format(64)
OTHER = TEXT.partition("recipes:\n")[2]


@pytest.mark.parametrize("recipes", [OTHER + OF_ONE, OF_ONE + OTHER], ids=["the last", "the first"])
def test_the_most_specific_recipe_wins(recipes: str) -> None:
    spec = loads(TEXT.replace(OTHER, recipes), "k.yaml")
    TARGETS.check(spec.recipes)
    dtypes = choices(spec)[0]
    threads = {}
    for level in ("sm_80", "sm_90", "sm_100"):
        target = Cuda.at(level)
        variants = schedule(spec, dtypes, target, prove)
        texts = emit(spec, {suffix(dtypes): variants}, target)
        assert sorted(texts) == [f"k.{level}.c", f"k.{level}.cu"]
        bounds = texts[f"k.{level}.cu"].partition("__launch_bounds__(")[2]
        threads[level] = int(bounds.partition(")")[0])
    assert threads == {"sm_80": 256, "sm_90": 64, "sm_100": 256}


def test_the_same_bytes_in_each_folder_and_each_run(tmp_path: Path) -> None:
    made = []
    for seed in ("1", "2"):
        folder = tmp_path / ("in" * int(seed)) / seed
        folder.mkdir(parents=True)
        spec = folder / "k.yaml"
        spec.write_text(TEXT)
        subprocess.run(
            [sys.executable, "-m", "gen", "generate", str(spec), "-o", "out"],
            cwd=folder,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
        )
        made.append({path.name: path.read_bytes() for path in (folder / "out").iterdir()})
    assert {"k.json"} < made[0].keys() and any(name.endswith(".cu") for name in made[0])
    assert made[0] == made[1]
