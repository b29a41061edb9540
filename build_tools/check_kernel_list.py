"""Checks that kernels_spec/meson.build lists exactly the specs in its folder, in order.

Input: the folder (by default kernels_spec/). Output: nothing, or what differs and exit status 1.
"""

import re
import sys
from pathlib import Path


def listed(folder: Path) -> list[str]:
    """The names in the list `kernels` of the folder's meson.build."""
    text = (folder / "meson.build").read_text("utf-8")
    match = re.search(r"^kernels = \[(.*?)\]", text, re.DOTALL | re.MULTILINE)
    if match is None:
        raise SystemExit(f"{folder / 'meson.build'}: there is no list `kernels = [...]`")
    return re.findall(r"'([^']*)'", match[1])


def differences(folder: Path) -> list[str]:
    """What is wrong with the list, a line each."""
    names, files = listed(folder), sorted(path.stem for path in folder.glob("*.yaml"))
    missing = [f"{name}.yaml is not in the list" for name in files if name not in names]
    gone = [
        f"{name} is in the list, but there is no {name}.yaml" for name in names if name not in files
    ]
    order = ["the list is not sorted, or repeats a name"] if names != sorted(set(names)) else []
    return missing + gone + order


def main() -> int:
    root = Path(__file__).resolve().parents[1]
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else root / "kernels_spec"
    problems = differences(folder)
    for problem in problems:
        print(f"{folder / 'meson.build'}: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
