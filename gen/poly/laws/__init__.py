"""Laws: algebra that changes values, declared one YAML file each, with its proof.

Input: a name, and the element type of the reductions. Output: the law. Invariant: no law leaves
this package that its proof has not passed.
"""

from functools import cache
from pathlib import Path

from ...ir.types import DType
from .law import Law, read
from .proof import check

FOLDER = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


@cache
def lookup(name: str, dtype: DType) -> Law:
    """The law of that name, proved. Raises Unproved where it does not hold."""
    path = FOLDER / f"{name}.yaml"
    law = read(path.read_text("utf-8"), path, dtype)
    check(law)
    return law
