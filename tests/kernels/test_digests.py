"""The C of all kernels as this machine has built it is that of which the table has the digests."""

from pathlib import Path

import pytest

from gen.targets.cpu.levels import LEVELS
from tilesmith import _kernels

from ..conftest import Digests
from .support import SPECS

BUILT = Path(_kernels.__file__).parent  # the build's folder, where tilesmith is installed editable


@pytest.mark.parametrize(
    "level", [level for level in LEVELS if (BUILT / f"softmax.{level}.c").exists()]
)
def test_digests(level: str, digests: Digests) -> None:
    digests(level, {name: (BUILT / f"{name}.{level}.c").read_text("utf-8") for name in SPECS})
