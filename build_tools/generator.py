"""`tilesmith build`, from the source tree: what Meson calls before tilesmith is installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.dont_write_bytecode = True  # the source tree may be read-only, and is installed as it is

from gen.build import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
