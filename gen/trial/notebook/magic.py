"""`%load_ext tilesmith.gen`: the cell magic `%%tilesmith`, whose cell is a spec.

IPython is not imported: it gives itself.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from .kernel import NotebookKernel, of_text


class Shell(Protocol):
    """What is used of IPython's InteractiveShell."""

    def register_magic_function(
        self, func: Callable[[str, str], object], magic_kind: str, magic_name: str
    ) -> None: ...

    def push(self, variables: Mapping[str, object]) -> None: ...


def register(shell: Shell) -> None:
    """Adds the magic to an IPython."""

    def tilesmith(line: str, cell: str) -> NotebookKernel:
        """`%%tilesmith [LEVEL]`: the cell is a spec. Its kernel is a function then, of its name,
        for this machine or for LEVEL. An error points into the cell.
        """
        kernel = of_text(cell, line.strip() or None)
        shell.push({kernel.spec.name: kernel})
        return kernel

    shell.register_magic_function(tilesmith, magic_kind="cell", magic_name="tilesmith")
