"""A second evaluator of specs, written after docs/language.md alone.

It shares no code with `gen`: it reads the YAML and the body by itself, and computes element by
element, in the order in which the body is written, with NumPy's numbers. So it stands against the
interpreter, and with it against all that is generated. Schedules, oracles and accuracies it knows
nothing of.
"""

from .body import evaluate
from .document import Document, read
from .elements import Unspecified, dtype
from .shapes import allows, numbers, shape_of

__all__ = ["Document", "Unspecified", "allows", "dtype", "evaluate", "numbers", "read", "shape_of"]
