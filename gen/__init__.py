"""The generator: kernels written as algebra in YAML become proved C sources.

`compile(spec)` gives a spec's kernel as a Python function, to try it out; in IPython,
`%load_ext tilesmith.gen` adds the cell magic `%%tilesmith`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .trial.notebook import compile as compile
    from .trial.notebook.magic import Shell

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`compile` is imported when it is asked for: a build needs the version alone, and quickly."""
    if name == "compile":
        from .trial.notebook import compile

        return compile
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(ipython: "Shell") -> None:
    """What `%load_ext tilesmith.gen` calls."""
    from .trial.notebook.magic import register

    register(ipython)
