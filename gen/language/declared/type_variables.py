"""Type variables, each a list of choices or following another, and what names a spec may give.

Input: YAML nodes. Output: TypeVariables. Errors are SpecErrors that point into the file.
"""

import keyword
import re
from collections.abc import Collection

from ...errors import SpecError
from ...ir.types import DType
from .. import yaml
from ..model import TypeVariable
from ..syntax import grammar

MAX_CHOICES = 64

# Names that C gives a meaning; Python's keywords are refused besides.
_C_WORDS = """auto break case char const continue default do double else enum extern float for goto
    if inline int long register restrict return short signed sizeof static struct switch typedef
    union unsigned void volatile while bool true false NULL main"""


def check_name(name: yaml.Scalar) -> None:
    text = name.text
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text) or "__" in text or len(text) > 64:
        raise SpecError(
            f"'{text[:64]}' is not a name",
            name.span,
            "a name is letters, digits and single underscores",
        )
    if keyword.iskeyword(text) or text in _C_WORDS.split():
        raise SpecError(f"'{text}' is a word of Python or C", name.span, "choose another name")


def read_type_variables(node: yaml.Map) -> tuple[TypeVariable, ...]:
    variables: list[TypeVariable] = []
    total = 1
    for key, value in node.entries:
        check_name(key)
        if key.text in grammar.RESERVED:
            raise SpecError(f"'{key.text}' is a word of the language", key.span)
        if isinstance(value, yaml.Map):
            variables.append(_following(key, value, variables))
            continue
        if not isinstance(value, yaml.List) or not value.items:
            raise SpecError(f"'{key.text}' must be a list of dtypes", value.span)
        chosen = tuple(yaml.decode(item, DType, "a dtype") for item in value.items)
        if len(set(chosen)) < len(chosen):
            raise SpecError(f"a dtype is given twice for '{key.text}'", value.span)
        total *= len(chosen)
        variables.append(TypeVariable(key.text, chosen))
    if total > MAX_CHOICES:
        raise SpecError(f"more than {MAX_CHOICES} choices of dtypes", node.span)
    return tuple(variables)


def real_variables(
    variables: tuple[TypeVariable, ...], used: Collection[str]
) -> tuple[TypeVariable, ...]:
    """real(T) of each variable T of which it is used: a variable that follows T."""
    return tuple(
        TypeVariable(f"real({v.name})", tuple(c.real for c in v.choices), v.of or v.name)
        for v in variables
        if f"real({v.name})" in used
    )


def _following(key: yaml.Scalar, node: yaml.Map, before: list[TypeVariable]) -> TypeVariable:
    """A variable that follows one before it: `{of: T, int8: int64}`."""
    entries = {k.text: (k, v) for k, v in node.entries}
    free = {v.name: v for v in before if v.of is None}
    if "of" not in entries:
        raise SpecError(f"'{key.text}' must be a list of dtypes, or follow one", node.span,
                        "write {of: T, int8: int64}")  # fmt: skip
    _, of = entries.pop("of")
    if not isinstance(of, yaml.Scalar) or of.text not in free:
        raise SpecError(f"'{key.text}' must be of a list of dtypes before it", of.span)
    followed = free[of.text]
    own: dict[DType, DType] = {}
    for name, value in entries.values():
        choice = yaml.decode(name, DType, "a dtype")
        if choice not in followed.choices:
            raise SpecError(f"'{name.text}' is not a choice of '{of.text}'", name.span)
        own[choice] = yaml.decode(value, DType, "a dtype")
    return TypeVariable(key.text, tuple(own.get(c, c) for c in followed.choices), followed.name)
