"""The C of all kernels as this machine has built it is that of which the table has the digests."""

from pathlib import Path

import pytest

from tilesmith import _kernels

from ..conftest import Digests
from .support import SPECS

BUILT = Path(_kernels.__file__).parent  # the build's folder, where tilesmith is installed editable


@pytest.mark.parametrize("level", [path.suffixes[0][1:] for path in BUILT.glob("softmax.*.c")])
def test_digests(level: str, digests: Digests) -> None:
    digests(level, {name: (BUILT / f"{name}.{level}.c").read_text("utf-8") for name in SPECS})
