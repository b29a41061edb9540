"""Statements that all C-like targets write alike.

Input: a statement of a finished tree, how scalar code names things there, and the lines of what is
inside. Output: C lines.
"""

import re
from collections.abc import Sequence

from ...ir.nodes import Delinearize, Loop
from .expr import Scalars, unwrapped
from .lines import indented
from .names import CNames
from .views import product


def under(condition: str, lines: list[str]) -> list[str]:
    """The lines where the condition holds."""
    return [f"if ({unwrapped(condition)}) {{", *indented(lines), "}"]


def leaving(condition: str, before: Sequence[str] = ()) -> list[str]:
    """The end of the loop around it where the condition does not hold. before: what that needs."""
    return under(f"!({unwrapped(condition)})", [*before, "break;"])


def counted(loop: Loop, scalars: Scalars, names: CNames, body: list[str]) -> list[str]:
    """A loop whose iterations run one after another."""
    var, end = names.variables[loop.var], names.ends[loop.var]
    lower, upper = scalars.index(loop.lower), scalars.index(loop.upper)
    ctype = scalars.words.index
    if upper.isalnum():
        head = f"for ({ctype} {var} = {lower}; {var} < {upper}; ++{var}) {{"
    else:
        head = f"for ({ctype} {var} = {lower}, {end} = {upper}; {var} < {end}; ++{var}) {{"
    return [head, *indented(body), "}"]


def delinearized(
    node: Delinearize, scalars: Scalars, names: CNames, body: list[str], *, inside: bool = False
) -> list[str]:
    """The variables of loops that were fused, and the body where they are all inside. inside:
    whether they always are.
    """
    value = scalars.index(node.value)
    lines, used = [], {word for line in body for word in re.findall(r"\w+", line)}
    for k, var in enumerate(node.vars):
        if names.variables[var] not in used:  # of a loop of one iteration
            continue
        inner = [scalars.index(e) for e in node.extents[k + 1 :]]
        part = f"({value})" if inner else value
        if inner:
            part = f"({value}) / ({product([f'({e})' for e in inner])})"
        if k:
            part = f"({part}) % ({scalars.index(node.extents[k])})"
        lines.append(f"const {scalars.words.index} {names.variables[var]} = {part};")
    if inside:
        return ["{", *indented([*lines, *body]), "}"]
    size = product([f"({scalars.index(e)})" for e in node.extents])
    return under(f"{value} < {size}", [*lines, *body])
