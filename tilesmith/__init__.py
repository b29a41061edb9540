"""Proved, fast kernels for NumPy arrays.

Every function broadcasts over leading axes, takes `out=` and `num_threads=`, and is documented by
its own docstring; `kernels()` tells what is known of each, `show_config()` how this machine runs
them.
"""

from . import _kernels
from ._kernels import *  # noqa: F403
from ._kernels import __version__ as __version__

__all__ = _kernels.__all__
