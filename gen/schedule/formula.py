"""Index expressions that a recipe gives as text, in Python's syntax or isl's.

Input: text such as `i % 2, j` or `{ t[i, j] -> [i mod 2, j] }`, the names of iteration variables,
and those of sizes. Output: index expressions. isl's names are local: they count by position.
"""

import ast
import re
from collections.abc import Collection, Mapping, Sequence

from ..ir.algebra import add, floordiv, index, maximum, minimum, mod, mul, sub
from ..ir.nodes import Const, Expr, Kernel, Var
from ..ir.types import INDEX
from .edit.tree import CannotApply, nearest

_MAP = re.compile(r"\{\s*\w*\s*\[(?P<names>[\w\s,]*)\]\s*->\s*\w*\s*\[(?P<places>.*)\]\s*\}", re.S)
_OPERATORS = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.FloorDiv: floordiv, ast.Mod: mod}
_FUNCTIONS = {"min": minimum, "max": maximum}


def sizes(kernel: Kernel) -> tuple[str, ...]:
    """The names that a formula may use beside iteration variables."""
    return (*kernel.dims, *(s.name for s in kernel.scalars if s.dtype is INDEX))


def formulas(text: str, names: Sequence[str], sizes: Collection[str]) -> tuple[Expr, ...]:
    """The expressions that the text lists. Raises CannotApply for what is none over the names."""
    values: dict[str, Expr] = {name: Var(name) for name in (*sizes, *names)}
    if found := _MAP.fullmatch(text.strip()):
        local = [name.strip() for name in found["names"].split(",") if name.strip()]
        if len(local) != len(names):
            raise CannotApply(f"the map '{text}' has {len(local)} inputs for {len(names)} indices")
        values |= {name: Var(own) for name, own in zip(local, names, strict=True)}
        text = re.sub(r"\bmod\b", "%", found["places"])
        text = re.sub(r"\b(\d+)\s*(?=[A-Za-z_(])", r"\1*", text)
    try:
        parsed = ast.parse(f"({text.strip()},)", mode="eval").body
    except SyntaxError:
        raise CannotApply(f"'{text}' is not a list of index expressions") from None
    assert isinstance(parsed, ast.Tuple)
    return tuple(_formula(item, values) for item in parsed.elts)


def _formula(node: ast.expr, values: Mapping[str, Expr]) -> Expr:
    match node:
        case ast.Constant(int(value)) if not isinstance(value, bool):
            return index(value)
        case ast.Name(name):
            if name not in values:
                raise CannotApply(f"there is no index '{name}' here", nearest(name, values))
            return values[name]
        case ast.UnaryOp(ast.USub(), operand):
            return sub(0, _formula(operand, values))
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            divides = isinstance(op, ast.FloorDiv | ast.Mod)
            return _operation(node, type(op), _formula(left, values), right, values, divides)
        case ast.Call(ast.Name("floor"), [ast.BinOp(left, ast.Div(), right)], []):
            return _operation(node, ast.FloorDiv, _formula(left, values), right, values, True)
        case ast.Call(ast.Name(name), [left, right], []) if name in _FUNCTIONS:
            return _FUNCTIONS[name](_formula(left, values), _formula(right, values))
        case _:
            raise CannotApply(
                f"'{ast.unparse(node)}' is not an index expression",
                "sums, products, //, %, min and max of indices, sizes and integers are",
            )


def _operation(
    node: ast.expr,
    op: type[ast.operator],
    left: Expr,
    right: ast.expr,
    values: Mapping[str, Expr],
    divides: bool,
) -> Expr:
    divisor = _formula(right, values)
    if divides and not (isinstance(divisor, Const) and int(divisor.value.real) > 0):
        raise CannotApply(f"'{ast.unparse(node)}' does not divide by a positive integer")
    return _OPERATORS[op](left, divisor)
