"""The spec: what a kernel computes and how to run it, read from YAML, and its plain schedule."""

from .build import Dtypes, build, choices
from .model import KernelSpec
from .reader import least_sizes, load, loads

__all__ = ["Dtypes", "KernelSpec", "build", "choices", "least_sizes", "load", "loads"]
