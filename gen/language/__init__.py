"""The language of specs: what a kernel computes and how to run it, read from YAML, and its
plain schedule.

Read `yaml` (trees that know their place), `syntax` (the small language of formulas), `model` (what
a file says), `reader` (a file to a model), then `body` (statements with every name and range found)
and `build` (a model and a choice of dtypes to the plain schedule). `values` has the rules of types,
`formulas` what oracles may say.
"""

from .axis_order import is_ordered
from .build import Dtypes, build, choices
from .model import KernelSpec
from .named_sizes import with_named
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
