"""Local names, in place of which their values are put.

Input: the statements of a body as Python's tree, and the names that a spec declares. Output: the
statements without definitions of local names. What a spec must not do with them is not looked for.
"""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TypeGuard


def written_out(body: Sequence[ast.stmt], declared: Collection[str]) -> tuple[ast.stmt, ...]:
    """declared: arguments, temporaries, scalars, dims and sizes."""
    loops = [index for statement in body for index in _indices(statement)]
    stored = (node for statement in body for node in ast.walk(statement) if _is_stored(node))
    arrays = {node.id for node in stored if not any(node is index for index in loops)}
    return tuple(_block(body, {*declared, "inf", "nan", "pi", "True", "False"}, arrays, {}))


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    """Subscripts aside, of which the name is loaded."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _indices(statement: ast.stmt) -> Iterator[ast.expr]:
    """What the `for`s in a statement introduce."""
    for node in ast.walk(statement):
        if isinstance(node, ast.For | ast.comprehension):
            yield node.target


def _block(
    body: Sequence[ast.stmt],
    known: Collection[str],
    arrays: Collection[str],
    values: Mapping[str, ast.expr],
) -> Iterator[ast.stmt]:
    """values: of the local names so far. known: what else has a value, arrays aside."""
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                value = _In(values).visit(deepcopy(value))
                names = set(_read(value))
                if name not in known and names - {*known, *arrays} and not _reduces(value):
                    values = {**values, name: value}
                    continue
                yield ast.Assign(targets=statement.targets, value=value)
            case ast.For(target=ast.Name(id=index), iter=over, body=inner):
                new = list(_block(inner, {*known, index}, arrays, values))
                over = _In(values).visit(deepcopy(over))
                yield ast.For(target=statement.target, iter=over, body=new, orelse=[])
            case ast.While(test=test, body=inner, orelse=[]):
                new = list(_block(inner, {*known, bounded(test)[0]}, arrays, values))
                yield ast.While(test=_In(values).visit(deepcopy(test)), body=new, orelse=[])
            case ast.If(test=test, body=inner, orelse=[]):
                test = _In(values).visit(deepcopy(test))
                yield ast.If(test=test, body=list(_block(inner, known, arrays, values)), orelse=[])
            case _:
                yield _In(values).visit(deepcopy(statement))


def bounded(test: ast.expr) -> tuple[str, ast.expr, ast.expr]:
    """The index, the domain and the condition of a `while`."""
    match test:
        case ast.BoolOp(
            op=ast.And(),
            values=[
                ast.Compare(left=ast.Name(id=index), ops=[ast.In()], comparators=[node]),
                first,
                *rest,
            ],
        ):
            condition = ast.BoolOp(ast.And(), [first, *rest]) if rest else first
            return index, node, condition
    raise ValueError(f"no bound: {ast.unparse(test)}")


def _read(value: ast.expr) -> Iterator[str]:
    """The names in a value, functions aside."""
    functions = [n.func for n in ast.walk(value) if isinstance(n, ast.Call)]
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and not any(node is each for each in functions):
            yield node.id


def _reduces(value: ast.expr) -> bool:
    return any(isinstance(node, ast.GeneratorExp) for node in ast.walk(value))


class _In(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return deepcopy(self._values[node.id]) if node.id in self._values else node
