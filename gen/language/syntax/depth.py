"""How deep expressions nest: what walks them recurses."""

from ...errors import Span, SpecError
from . import nodes as ir

MAX_DEPTH = 100


def check_depth(expr: ir.Expr) -> ir.Expr:
    """The expression, where it nests no deeper than the limit: chains such as `a and b and ...` are
    flat in Python and nest here. Raises SpecError.
    """
    level: tuple[ir.Expr, ...] = (expr,)
    for _ in range(MAX_DEPTH):
        level = tuple(part for e in level for part in ir.parts(e))
    for part in level:
        raise too_deep(part.span)
    return expr


def too_deep(span: Span) -> SpecError:
    hint = "define a part of it as an array of its own"
    return SpecError(f"the expression nests deeper than {MAX_DEPTH}", span, hint)
