"""The commands in build_tools/ that need no build."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

import pytest

from build_tools.digests import TABLE, written
from gen.project import TEMPLATES

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "build_tools"


def _check(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOLS / "check_kernel_list.py"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_kernel_list_is_the_folder() -> None:
    for folder in (ROOT / "kernels_spec", TEMPLATES / "kernels_spec"):
        done = _check(folder)
        assert done.returncode == 0, done.stderr


def test_a_wrong_kernel_list_is_told(tmp_path: Path) -> None:
    (tmp_path / "meson.build").write_text("kernels = [\n  'b',\n  'a',\n]\n")
    (tmp_path / "a.yaml").touch()
    (tmp_path / "c.yaml").touch()
    done = _check(tmp_path)
    assert done.returncode == 1
    place = tmp_path / "meson.build"
    assert done.stderr.splitlines() == [
        f"{place}: c.yaml is not in the list",
        f"{place}: b is in the list, but there is no b.yaml",
        f"{place}: the list is not sorted, or repeats a name",
    ]
    (tmp_path / "a.yaml").write_text("recipes:\n  - target: cuda\n")
    lists = "kernels = [\n  'a',\n  'c',\n]\ncuda_kernels = [\n  'd',\n  'c',\n]\n"
    (tmp_path / "meson.build").write_text(lists)
    assert _check(tmp_path).stderr.splitlines() == [
        f"{place}: a.yaml has a recipe for cuda and is not in `cuda_kernels`",
        f"{place}: `cuda_kernels` names d: no d.yaml",
        f"{place}: `cuda_kernels` is not sorted, or repeats a name",
    ]
    (tmp_path / "meson.build").write_text("names = []\n")
    assert f"{place}: there is no list `kernels = [...]`" in _check(tmp_path).stderr


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    match = re.search(r"version: '([^']*)'", (ROOT / "meson.build").read_text())
    assert match is not None and match[1] == project["version"]
    assert project["optional-dependencies"]["cuda"] == [f"tilesmith-cuda=={match[1]}"]


def test_difference_in_generated_code() -> None:
    code = (
        "from diff_generated import difference\n"
        "print(difference({'a.c': 'x\\ny\\n', 'b.c': '1\\n'}, {'a.c': 'x\\nz\\n', 'c.c': '2\\n'}))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=TOOLS, capture_output=True, text=True, check=True)
    changed, gone, new = (
        "--- a/a.c\n+++ b/a.c\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n",
        "--- a/b.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n",
        "--- /dev/null\n+++ b/c.c\n@@ -0,0 +1 @@\n+2\n",
    )
    assert done.stdout == changed + gone + new + "\n"


def test_a_difference_in_a_size_that_is_read() -> None:
    code = (
        "from diff_generated import difference, shortened\n"
        "old, new = {'a.c': 'x\\ny\\n', 'b.c': '--1\\n'}, {'a.c': 'x\\nz\\n', 'c.c': '2\\n'}\n"
        "print(shortened(difference(old, new), 3), end='')\n"
        "print(shortened(difference({}, {'a.c': 'x\\n'}), 9), end='')\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=TOOLS, capture_output=True, text=True, check=True)
    short = "a.c: +1 -1\nb.c: +0 -1\nc.c: +1 -0\n--- a/a.c\n+++ b/a.c\n@@ -1,2 +1,2 @@\n"
    whole = "a.c: +1 -0\n--- /dev/null\n+++ b/a.c\n@@ -0,0 +1 @@\n+x\n"
    assert done.stdout == f"{short}... and 11 lines more\n{whole}"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with this generator and one small kernel, in one commit."""
    for folder in ("gen", "build_tools"):
        copytree(ROOT / folder, tmp_path / folder, ignore=ignore_patterns("__pycache__"))
    copytree(TEMPLATES / "kernels_spec", tmp_path / "kernels_spec")
    _git(tmp_path, "init", "--quiet")
    _commit(tmp_path)
    return tmp_path


def _git(folder: Path, *arguments: str) -> None:
    names = ["-c", "user.name=test", "-c", "user.email=test"]
    subprocess.run(["git", "-C", str(folder), *names, *arguments], check=True)


def _commit(folder: Path) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "as it is now")


def _difference(checkout: Path, *commits: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "build_tools/diff_generated.py", *commits]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


@pytest.mark.thorough
def test_difference_between_commits_and_the_working_tree(checkout: Path) -> None:
    spec = checkout / "kernels_spec" / "normalize.yaml"
    spec.write_text(spec.read_text().replace("x[i, j] / sqrt", "2 * x[i, j] / sqrt"))
    done = _difference(checkout, "HEAD")
    assert done.returncode == 1, done.stderr
    assert "--- a/normalize.v3.c\n+++ b/normalize.v3.c\n" in done.stdout
    assert "_kernels.pyx" not in done.stdout  # the signature is as it was
    _commit(checkout)
    assert _difference(checkout, "HEAD~1", "HEAD").stdout == done.stdout
    done = _difference(checkout, "HEAD")
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


@pytest.mark.thorough
def test_the_difference_in_what_the_tables_say_has_changed(checkout: Path) -> None:
    table, spec = checkout / TABLE, checkout / "kernels_spec" / "normalize.yaml"
    table.parent.mkdir(parents=True)
    table.write_text(written({"normalize": {"v2": "1", "v3": "1"}, "other": {"v2": "1"}}))
    _commit(checkout)
    spec.write_text(spec.read_text().replace("x[i, j] / sqrt", "2 * x[i, j] / sqrt"))
    done = _difference(checkout, "HEAD", "--changed")
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
    table.write_text(written({"normalize": {"v2": "2", "v3": "1"}, "other": {"v2": "1"}}))
    done = _difference(checkout, "HEAD", "--changed", "--lines", "2")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(
        "normalize: another C on v2\nThe difference in normalize on v2:\nnormalize.v2.c: +"
    )
    assert done.stdout.splitlines()[-3:-1] == ["--- a/normalize.v2.c", "+++ b/normalize.v2.c"]
    assert _difference(checkout, "HEAD", "--kernels", "other").stdout == ""


FOR_GPUS = """\
recipes:
  - target: cuda
    variants:
      - steps:
          - compute_at: {block: square, loop: y.i}
          - set_scope: {buffer: square, scope: local}
          - split: {loop: y.i, factors: [null, 256], as: [y.block, y.thread]}
          - gpu: {loops: [y.block, y.thread]}
"""


@pytest.mark.thorough
def test_the_difference_in_a_gpus_code(checkout: Path) -> None:
    spec = checkout / "kernels_spec" / "normalize.yaml"
    spec.write_text(spec.read_text() + FOR_GPUS)
    _commit(checkout)
    spec.write_text(spec.read_text().replace("factors: [null, 256]", "factors: [null, 128]"))
    table = checkout / TABLE
    table.parent.mkdir(parents=True)
    table.write_text(written({"normalize": {"v3": "1", "sm_75": "1"}}))
    _commit(checkout)
    table.write_text(written({"normalize": {"v3": "1", "sm_75": "2"}}))
    done = _difference(checkout, "HEAD~1", "--levels", "sm_75")
    assert done.returncode == 1, done.stderr
    assert "+++ b/normalize.sm_75.cu\n" in done.stdout and "normalize.v3.c" not in done.stdout
    done = _difference(checkout, "HEAD", "--changed")
    assert done.stdout.startswith("normalize: another C on sm_75\n"), done.stderr


def test_a_commit_that_cannot_be_generated_is_told(checkout: Path) -> None:
    spec = checkout / "kernels_spec" / "normalize.yaml"
    spec.write_text(spec.read_text().replace("sqrt(square[i])", "sqrt(sqare[i])"))
    done = _difference(checkout, "HEAD")
    assert (done.returncode, done.stdout) == (2, "")
    assert "sqare" in done.stderr and "this failed: " in done.stderr


def test_costs_of_a_kernel() -> None:
    spec = TEMPLATES / "kernels_spec" / "normalize.yaml"
    command = [sys.executable, str(TOOLS / "costs.py"), str(spec), "--levels", "v2"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    kernel, total = (line.split() for line in lines[1:])
    assert (kernel[0], total[0]) == ("normalize", "total")
    assert kernel[1:] == total[1:]
    assert all(float(figure) > 0 for figure in kernel[1:])


def test_a_checkout_that_is_not_built_says_so(tmp_path: Path) -> None:
    (tmp_path / "tilesmith").mkdir()
    copy(ROOT / "tilesmith" / "__init__.py", tmp_path / "tilesmith")
    command = [sys.executable, "-S", "-c", "import tilesmith"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.endswith(
        "ImportError: the kernels are not built here; `make install` builds them\n"
    )
