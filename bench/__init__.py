"""The benchmark: kernels by peers by sizes by threads, side by side on one machine, in one run."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".cache" / "bench"  # what is built once: commits to compare, libraries of C


def prefer_installed() -> None:
    """Look in the checkout last: it has a folder `tilesmith` too, which is not what is measured."""
    if str(ROOT) in sys.path:
        sys.path.remove(str(ROOT))
        sys.path.append(str(ROOT))
