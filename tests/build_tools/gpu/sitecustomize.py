"""An installed tilesmith is found before folders on the path: here it is not to be."""

import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
