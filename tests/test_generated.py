"""What the shipped kernels' sources are: five goldens, digests of all, and the same bytes every
time.

The levels that this machine builds are compared in `kernels/test_digests.py`, as they were built;
what is for GPUs, in `kernels/test_on_gpus.py`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from build_tools import digests as table
from build_tools.check_kernel_list import for_gpus
from build_tools.digests import GPUS, changed, read, written
from gen import language as specs
from gen.errors import ScheduleError
from gen.lower.variants import suffix
from gen.pipeline import emit, generate, schedule
from gen.poly.prove import prove
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.target import joined

from .conftest import GOLDEN, Digests, Golden
from .turns import today

ROOT = Path(__file__).parents[1]
KERNELS = sorted(path.stem for path in (ROOT / "kernels_spec").glob("*.yaml"))
READ = ("argmax", "blur", "cumsum", "max", "softmax")  # by reviewers: different, and not long

SHOWN = 3  # choices of dtypes: those after them differ in the names of types


def source(kernel: str) -> str:
    """The C file on v3; what proves it is `test_proofs.py`."""
    spec = specs.load(ROOT / "kernels_spec" / f"{kernel}.yaml")
    variants = {
        suffix(dtypes): schedule(spec, dtypes, Cpu(Level.V3), lambda *_: None)
        for dtypes in specs.choices(spec)[:SHOWN]
    }
    return joined(emit(spec, variants, Cpu(Level.V3)))


@pytest.mark.parametrize("kernel", READ)
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
        generate(specs.load(wrong), [Cpu(Level.V2)], prove)
    assert "parallel loop 'path.i' has a race" in refused.value.message
    assert refused.value.span and "parallel" in refused.value.span.text


def test_digests_on_neon(digests: Digests, request: pytest.FixtureRequest) -> None:
    """Nothing is proved here: `test_proofs.py` does that. Of all kernels where they are written or
    the run is thorough; else of every twenty-fourth, other ones each day, since no build here has
    made them.
    """
    options = ("--update-golden", "--thorough")
    chosen = KERNELS if any(map(request.config.getoption, options)) else KERNELS[today(24) :: 24]
    files = {
        name: generate(
            specs.load(ROOT / "kernels_spec" / f"{name}.yaml"), [Cpu(Level.NEON)], lambda *_: None
        ).c_files[f"{name}.neon.c"]
        for name in chosen
    }
    digests("neon", files, of=chosen)


def test_the_table_has_every_kernel_and_level() -> None:
    text = (GOLDEN / "digests.txt").read_text("utf-8")
    rows = read(text)
    assert [*rows] == KERNELS and text == written(rows)
    assert all(set(row) - {*GPUS} == {level.value for level in Level} for row in rows.values())
    on_gpus = [name for name, row in rows.items() if row.keys() >= {*GPUS}]
    assert on_gpus == for_gpus(ROOT / "kernels_spec")
    assert sorted(path.name.split(".")[0] for path in (GOLDEN / "kernels").glob("*")) == [*READ]


def test_a_change_is_told_with_the_command_that_shows_it() -> None:
    old = {"a": {"v2": "1", "v3": "1"}, "b": {"v2": "1", "v3": "1"}, "d": {"neon": "1"}}
    new = {"a": {"v2": "1", "v3": "2"}, "b": {"v2": "1", "v3": "1"}, "c": {"v2": "1"}}
    found = changed(old, new)
    assert found == {"a": ("v3",), "c": ("v2",), "d": ("neon",)}
    assert read(written(new)) == new and changed(new, read(written(new))) == {}
    assert table.put(new, "v3", {"d": "4"}) == {
        "a": {"v2": "1"}, "b": {"v2": "1"}, "c": {"v2": "1"}, "d": {"v3": "4"}
    }  # fmt: skip
    assert table.put({"a": {"v3": "1"}}, "v3", {}) == {}
    assert table.put(old, "v2", {"a": "4"}, of=["a"]) == old | {"a": {"v2": "4", "v3": "1"}}
    assert table.told("v3", {"a": ("v3",), "c": ("v3",)}).splitlines() == [
        "on v3 the C of 2 kernels is not that of tests/golden/digests.txt: a, c",
        "this shows what has changed since a commit:",
        "    python build_tools/diff_generated.py HEAD --levels v3 --kernels a,c",
        "and this writes the table: pytest --update-golden",
    ]


def test_the_same_bytes_whatever_the_hash_seed() -> None:
    code = (
        "from tests.test_generated import source\n"
        "print(''.join(source(k) for k in ('blur', 'gaussian')))"
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
