"""A failing case made small: fewer steps, fewer statements, smaller expressions and sizes.

Input: a draft, steps and the failure that they lead to. Output: a smaller case that fails alike.
Invariant: what is returned was seen to fail.
"""

import ast
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import final

from gen.errors import TilesmithError
from gen.schedule.base import Primitive

from .cases import SIZES
from .checks import Options
from .draft import Draft
from .failure import Failure, Sizes
from .trial import limited, replayed

MOST_TRIALS = 400


@final
@dataclass(frozen=True, slots=True)
class Failing:
    """A case and how it fails."""

    draft: Draft
    steps: tuple[Primitive, ...]
    failure: Failure


def shrunk(case: Failing, options: Options, seed: int, most: int = MOST_TRIALS) -> Failing:
    """The case made smaller until nothing that is tried makes it smaller, or `most` trials."""
    options = replace(options, judge=False)
    left = most
    smaller: Failing | None = case
    while smaller is not None and left > 0:
        case, smaller = smaller, None
        for draft, steps, sizes in _candidates(case):
            left -= 1
            if left < 0:
                break
            smaller = _fails(draft, steps, sizes, case.failure.kind, options, seed)
            if smaller is not None:
                break
    return case


def _fails(
    draft: Draft,
    steps: Sequence[Primitive],
    sizes: Sizes | None,
    kind: str,
    options: Options,
    seed: int,
) -> Failing | None:
    """The case, if it fails as it should; with the steps that were not refused on the way."""
    only = None if sizes is None else [sizes]
    try:
        outcome = limited(draft, replayed(steps), options, seed, only)
    except (TilesmithError, ValueError, KeyError, IndexError):
        return None  # no spec, or one that the reference cannot evaluate
    failure = outcome.failure
    if failure is None or failure.kind != kind:
        return None
    return Failing(draft, outcome.taken, failure)


def _candidates(case: Failing) -> Iterator[tuple[Draft, tuple[Primitive, ...], Sizes | None]]:
    """Smaller cases, those that take most away first."""
    draft, steps, sizes = case.draft, case.steps, case.failure.sizes
    for length in (len(steps) // 2, 1):
        for start in range(len(steps) - length, -1, -1) if length else ():
            yield draft, (*steps[:start], *steps[start + length :]), sizes
    yield from ((less, steps, sizes) for less in _plainer(draft))
    for compute in _smaller(draft.compute):
        less = replace(draft, compute=compute)
        yield (
            less,
            steps,
            None if sizes is None else {d: sizes[d] for d in (*less.dims, *less.numbers)},
        )
    if sizes is not None:
        for dim, size in sizes.items():
            for other in SIZES:
                new = {**sizes, dim: other}
                if other < size and draft.allows(new):
                    yield draft, steps, new


def _plainer(draft: Draft) -> Iterator[Draft]:
    """The same statements, of simpler numbers and names."""
    if draft.kernel != "drawn":
        yield replace(draft, kernel="drawn")
    for data in ("small", "ties", "special"):
        if draft.data == data:
            break
        yield replace(draft, data=data)
    if draft.element not in ("float32", "int64"):
        yield from (replace(draft, element=element) for element in ("float32", "int64"))


def _smaller(compute: str) -> Iterator[str]:
    """The statements with one of them taken away, or an expression in place of one around it."""
    tree = ast.parse(compute)
    nodes = list(ast.walk(tree))
    for k, node in enumerate(nodes):
        for name in ("body", "orelse"):
            statements = getattr(node, name, None)
            if isinstance(statements, list) and len(statements) > 1:
                for position in range(len(statements)):
                    new = deepcopy(tree)
                    del getattr(list(ast.walk(new))[k], name)[position]
                    yield ast.unparse(new)
    for k, node in enumerate(nodes):
        for child in range(len(_parts(node))):
            new = deepcopy(tree)
            old = list(ast.walk(new))[k]
            yield ast.unparse(_Exchange(old, _parts(old)[child]).visit(new))


def _parts(node: ast.AST) -> list[ast.expr]:
    """The expressions that may stand in a node's place."""
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Call(args=[ast.GeneratorExp()]):
            return []
        case ast.Call(func=ast.Name(id=name), args=arguments) if name != "range":
            return list(arguments)
        case _:
            return []


class _Exchange(ast.NodeTransformer):
    """Puts one node in another's place."""

    def __init__(self, old: ast.AST, new: ast.expr) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)
