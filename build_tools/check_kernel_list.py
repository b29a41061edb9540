"""Checks that kernels_spec/meson.build lists exactly the specs in its folder, in order, and of
those that are for GPUs, too, at least the ones with a recipe for them.

Input: the folder (by default kernels_spec/). Output: nothing, or what differs and exit status 1.
"""

import re
import sys
from pathlib import Path


def listed(folder: Path) -> list[str]:
    """The names in the list `kernels` of the folder's meson.build."""
    names = _names(folder, "kernels")
    if names is None:
        raise SystemExit(f"{folder / 'meson.build'}: there is no list `kernels = [...]`")
    return names


def for_gpus(folder: Path) -> list[str]:
    """The names in its list `cuda_kernels`; none where there is no such list."""
    there = (folder / "meson.build").exists()
    return (_names(folder, "cuda_kernels") if there else None) or []


def _names(folder: Path, name: str) -> list[str] | None:
    text = (folder / "meson.build").read_text("utf-8")
    match = re.search(rf"^{name} = \[(.*?)\]", text, re.DOTALL | re.MULTILINE)
    return None if match is None else re.findall(r"'([^']*)'", match[1])


def differences(folder: Path) -> list[str]:
    """What is wrong with the list, a line each."""
    names, files = listed(folder), sorted(path.stem for path in folder.glob("*.yaml"))
    missing = [f"{name}.yaml is not in the list" for name in files if name not in names]
    gone = [
        f"{name} is in the list, but there is no {name}.yaml" for name in names if name not in files
    ]
    order = ["the list is not sorted, or repeats a name"] if names != sorted(set(names)) else []
    return missing + gone + order + _differences_of_gpus(folder)


def _differences_of_gpus(folder: Path) -> list[str]:
    has_recipe = re.compile(r"^\s*(- )?target: *cuda\b", re.MULTILINE)
    files = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    names = for_gpus(folder)
    missing = [
        f"{name}.yaml has a recipe for cuda and is not in `cuda_kernels`"
        for name, path in files.items()
        if name not in names and has_recipe.search(path.read_text("utf-8"))
    ]
    gone = [f"`cuda_kernels` names {name}: no {name}.yaml" for name in names if name not in files]
    order = names != sorted(set(names))
    return missing + gone + ["`cuda_kernels` is not sorted, or repeats a name"] * order


def main() -> int:
    root = Path(__file__).resolve().parents[1]
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else root / "kernels_spec"
    problems = differences(folder)
    for problem in problems:
        print(f"{folder / 'meson.build'}: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
