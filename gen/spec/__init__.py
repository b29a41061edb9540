"""The spec: what a kernel computes and how to run it, read from YAML, and its plain schedule."""

from .build import Dtypes, build, choices
from .model import KernelSpec
from .named import with_named
from .order import is_ordered
from .reader import load, loads, read
from .shapes import least_sizes, relations

__all__ = [
    "Dtypes",
    "KernelSpec",
    "build",
    "choices",
    "is_ordered",
    "least_sizes",
    "load",
    "loads",
    "read",
    "relations",
    "with_named",
]
