"""`tilesmith build`, from the source tree: what Meson calls before tilesmith is installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

# Bytecode is kept beside what is generated, for all the runs of a build: the source tree may be
# read-only, and is installed as it is.
sys.dont_write_bytecode = "--output-dir" not in sys.argv
if not sys.dont_write_bytecode:
    folder = sys.argv[sys.argv.index("--output-dir") + 1]
    sys.pycache_prefix = str(Path(folder, "bytecode").resolve())

from gen.commands.build import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
