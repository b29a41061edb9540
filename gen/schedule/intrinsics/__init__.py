"""Instructions that take the place of loops, as data: one YAML file each.

Input: a name. Output: the intrinsic: its pattern, which is a kernel in the language of specs, and
the C forms of `ts_dot.h` that compute it. A pattern is a nest of loops around one block; its first
argument is what it updates, and its one dim runs over the lanes. Where operands lie one after
another in memory is what the shapes of its arguments say.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import final

from ... import language as spec
from ...errors import Span
from ...ir.nodes import Block, Kernel, Loop
from ...ir.walk import blocks, loops
from ...language import yaml
from ..edit.tree import CannotApply, nearest

FOLDER = Path(__file__).parent


@final
@dataclass(frozen=True, slots=True)
class Code:
    """form: `ts_{form}(c, a, b)`, which is right on every level. features: for a level, what a
    processor of it may have beyond, and `ts_{form}_{feature}` needs.
    """

    form: str
    features: Mapping[str, str]


@final
@dataclass(frozen=True, slots=True)
class Intrinsic:
    """promise: what may be said of its results, beside those of the pattern's loops."""

    name: str
    code: Code
    promise: str
    pattern: Kernel

    @property
    def nest(self) -> tuple[Loop, ...]:
        return loops(self.pattern.body)

    @property
    def block(self) -> Block:
        return blocks(self.pattern.body)[0]

    @property
    def of_floats(self) -> bool:
        """Whether its sums round."""
        return self.pattern.parameters[0].buffer.dtype.is_float


@dataclass(frozen=True, slots=True)
class _Code:
    form: str
    features: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _IntrinsicFile:
    intrinsic: str
    code: _Code
    promise: str
    pattern: yaml.Map
    span: Span


def names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def lookup(name: str) -> Intrinsic:
    """The intrinsic of that name. Raises CannotApply where there is none."""
    if name not in names():
        raise CannotApply(f"there is no intrinsic '{name}'", nearest(name, names()))
    return _read(name)


@cache
def _read(name: str) -> Intrinsic:
    path = FOLDER / f"{name}.yaml"
    file = yaml.decode(
        yaml.parse(path.read_text("utf-8"), str(path)), _IntrinsicFile, "the intrinsic"
    )
    pattern = spec.build(spec.read(file.pattern, str(path)), {})
    code = Code(file.code.form, file.code.features)
    return Intrinsic(file.intrinsic, code, " ".join(file.promise.split()), pattern)
