"""What may be meant by what the language does not have, for errors.

Input: Python's syntax tree or the spec's. Output: a hint, or None where nothing is known.
"""

import ast
from collections.abc import Collection

from .. import yaml
from ..values import functions
from . import nodes as syntax


def jump(node: ast.Break | ast.Continue) -> tuple[str, str]:
    """The statement's word, and what the language has in its place."""
    if isinstance(node, ast.Break):
        return "break", "a loop that ends early is 'while t in range(limit) and ...:'"
    return "continue", "write 'if' around what then does not run"


def written(node: ast.expr, reductions: Collection[str], constants: Collection[str]) -> str | None:
    """How the language writes a call or a name as other languages and libraries have it."""
    match node:
        case ast.Call(ast.Attribute(_, name) | ast.Name(name), args, keywords):
            if name in reductions and not (name in ("min", "max") and len(args) > 1):
                return f"a reduction is {name}(x[i, j] for j in n)"
            if keywords:
                return "arguments of functions have no names"
            return f"functions have no module: {functions.elsewhere(name)}(...)"
        case ast.Attribute(ast.Name(), name) if name in constants:
            return f"names have no module: {name}"
        case _:
            return None


def unknown_index(target: syntax.Element, name: str, known: Collection[str]) -> str:
    """Where an index of what is read is unknown. An array without indices is a single element."""
    if close := yaml.hint(name, known):
        return close
    if not target.indices:
        return f"give '{target.array}' its index: {target.array}[{name}]"
    return "an index must be on the left, in a 'for' or in a reduction"


def undefined(targets: Collection[syntax.Element], read: syntax.Expr) -> str | None:
    """Where a statement reads what it defines: another of its elements is one of another time."""
    for target in targets:
        if not isinstance(read, syntax.Element) or target.array != read.array:
            continue
        for defined, index in zip(target.indices, read.indices, strict=False):
            if isinstance(defined, syntax.Name) and index != defined:
                first = f"define the first of '{read.array}', then write the order out: "
                return f"{first}'for {defined.name} in range(...):' around the statement"
    return None
