"""Proved, fast kernels for NumPy arrays.

Every function broadcasts over leading axes, takes `out=` and `num_threads=`, and is documented by
its own docstring; `kernels()` tells what is known of each, `show_config()` how this machine runs
them.
"""

try:
    from . import _kernels
except ImportError as failed:
    from importlib.util import find_spec

    if find_spec(f"{__name__}._kernels"):
        raise
    raise ImportError("the kernels are not built here; `make install` builds them") from failed
from ._kernels import *  # noqa: F403
from ._kernels import __version__ as __version__

__all__ = _kernels.__all__
