"""A package with one kernel of its own."""

from . import _kernels
from ._kernels import *  # noqa: F403

__all__ = _kernels.__all__
