"""`python -m gen` from the source tree, `python -m tilesmith.gen` where it is installed."""

import sys

from .cli import main

sys.exit(main())
