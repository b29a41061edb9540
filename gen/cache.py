"""Where what was made and proved is kept between runs."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Where libraries and proofs are kept: TILESMITH_CACHE, else the user's cache folder."""
    if own := os.environ.get("TILESMITH_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tilesmith"
