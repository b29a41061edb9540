"""A new project of kernels: what `tilesmith init` writes.

Input: a name. Output: a folder from whose specs Meson builds a wheel, with a first kernel, tests
and CI. The texts are the files of `templates/`, in which `%name` stands for the project, `%package`
for what Python imports and `%version` for this generator's version.
"""

import keyword
import re
import string
import sys
from pathlib import Path

from .. import __version__
from ..errors import TilesmithError
from ..reference import schema
from ..targets.target import Registry

TEMPLATES = Path(__file__).parent / "templates"

FILES = {
    "README.md": "README.md",
    "pyproject.toml": "pyproject.toml.in",
    "meson.build": "meson.build",
    "meson.options": "meson.options",
    "kernels_spec/meson.build": "kernels_spec/meson.build",
    "kernels_spec/normalize.yaml": "kernels_spec/normalize.yaml",
    "src/%package/__init__.py": "package/__init__.py.in",
    "tests/test_kernels.py": "tests/test_kernels.py.in",
    ".github/workflows/ci.yml": "ci.yml",
    ".gitignore": "gitignore",
}
"""The template of each file of a project."""

CUDA = {
    "README.md": "cuda/README.md",
    "pyproject.toml": "cuda/pyproject.toml.in",
    "kernels_spec/meson.build": "cuda/meson.build",
    "kernels_spec/normalize.yaml": "cuda/recipe.yaml",
}
"""What files end with where kernels run on GPUs, too."""

_TAKEN = frozenset({"numpy", "tilesmith", "tests", "build", "dist", "kernels_spec"})


class _Template(string.Template):
    """Templates hold `$` of YAML, shells and Actions; `%` is theirs alone."""

    delimiter = "%"


def create(name: str, folder: Path, targets: Registry, *, cuda: bool = False) -> list[Path]:
    """Writes the project `name` into `folder`, which must not exist. Returns the files.

    The package is the name with underscores. targets: those that its recipes can be for. cuda:
    whether the first kernel is for GPUs, too, by a recipe of its own. Raises TilesmithError for a
    name that is none, and where the folder exists; OSError where it cannot be written.
    """
    package = package_name(name)
    if folder.exists():
        raise TilesmithError(f"{folder} exists already: init makes a new folder")
    words = {"name": name, "package": package, "version": __version__}
    texts = {
        _Template(path).substitute(words): _Template(_text(path, cuda)).substitute(words)
        for path in FILES
    }
    texts |= {f"src/{package}/py.typed": "", "tilesmith.schema.json": schema.text(targets)}
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return [folder / path for path in texts]


def package_name(name: str) -> str:
    """What Python imports of a project. Raises TilesmithError where the name is none."""
    if not re.fullmatch(r"[A-Za-z](?:[-_]?[A-Za-z0-9])*", name) or len(name) > 64:
        raise TilesmithError(
            f"{name[:64]!r} cannot be the name of a project: take letters, digits, and single"
            " hyphens or underscores between them"
        )
    package = name.replace("-", "_")
    if keyword.iskeyword(package) or package in sys.stdlib_module_names | _TAKEN:
        raise TilesmithError(f"Python or the build has another {package!r}: take another name")
    return package


def _text(path: str, cuda: bool) -> str:
    """The template of a file, whole."""
    return _read(FILES[path]) + (_read(CUDA[path]) if cuda and path in CUDA else "")


def _read(template: str) -> str:
    return (TEMPLATES / template).read_text("utf-8")
