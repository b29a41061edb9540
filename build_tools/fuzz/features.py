"""What a drawn kernel has, in words: so that a report says what was drawn, and how often."""

import ast
from collections.abc import Iterator

from .draft import Draft
from .names import HOSTILE, KERNELS

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<",
    ast.RShift: ">>", ast.Invert: "~", ast.Not: "not", ast.And: "and", ast.Or: "or",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.IfExp: "if-else", ast.If: "if", ast.For: "for", ast.AugAssign: "update",
}  # fmt: skip


def features(draft: Draft) -> frozenset[str]:
    tree = ast.parse(draft.compute)
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    hostile = used & set(HOSTILE) or (draft.kernel in KERNELS)
    found = {draft.element, f"{draft.data} numbers", *_found(tree)}
    return frozenset(found | ({"hostile names"} if hostile else set()))


def _found(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if type(node) in _OPERATORS:
            yield _OPERATORS[type(node)]
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                yield "--x" if isinstance(operand, ast.UnaryOp) else "-x"
            case ast.BinOp(op=ast.Sub(), right=ast.UnaryOp(op=ast.USub())):
                yield "x - -y"
            case ast.Call(func=ast.Name(id=name)):
                yield f"{name}()"
            case ast.Subscript() if any(isinstance(n, ast.Subscript) for n in _inside(node)):
                yield "gather" if isinstance(node.ctx, ast.Load) else "scatter"
            case ast.Subscript() if any(isinstance(n, ast.Mod) for n in _inside(node)):
                yield "ring"
            case ast.Assign(targets=[ast.Tuple()]):
                yield "tuple"
            case ast.Constant(value=int(number)) if abs(number) > 1 << 30:
                yield "huge constant"


def _inside(node: ast.Subscript) -> Iterator[ast.AST]:
    return ast.walk(node.slice)
