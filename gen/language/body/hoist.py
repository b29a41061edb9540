"""Reductions inside expressions become definitions of temporaries of their own.

`y[i] = sum(...) / n` turns into `y_sum[i] = sum(...)` and `y[i] = y_sum[i] / n`. The temporary has
those indices that the reduction uses and that only this statement runs over: inside an explicit
`for` it is computed anew in each iteration.
"""

from collections.abc import Iterable
from dataclasses import replace

from ...errors import Span, SpecError
from ...ir import nodes as ir
from ...ir import walk
from ..syntax import nodes as syntax
from .indices import condition_expr, extent
from .program import Definition, Range
from .scope import Known, enter, unused

_ARG = frozenset({ir.Combiner.ARGMIN, ir.Combiner.ARGMAX})


def hoist(
    statement: syntax.Assign, implicit: tuple[Range, ...], scope: Known
) -> tuple[syntax.Expr, tuple[Definition, ...], Known]:
    """The statement's value without inner reductions, their definitions, and the scope after them.

    A value that is a reduction stays one, unless it reads the array that it defines, or that array
    may be of a type that only stores: what is combined is held in a type that is computed in.
    """
    value, array = statement.value, statement.target.array
    if len(statement.targets) > 1:
        check_combines(statement.targets, scope)
    alone = statement.op is None and array not in scope.declared.storage
    if isinstance(value, syntax.Fold) and alone and not _reads_own(statement):
        loops = (*implicit, *_ranges(value, implicit, scope))
        inner, before, scope = _hoist(value.value, array, loops, scope)
        return replace(value, value=inner), before, scope
    return _hoist(value, array, implicit, scope)


def check_combines(targets: Iterable[syntax.Element], scope: Known) -> None:
    """Refuses targets in which values would be combined, but that may only store them."""
    for target in targets:
        if target.array in scope.declared.storage:
            raise SpecError(
                f"'{target.array}' may be of a type narrower than float32, in which nothing is"
                " combined",
                target.span,
                "combine into a temporary, and store that",
            )


def check_targets(given: int, taken: int, span: Span) -> None:
    """Refuses a value that is not of as many parts as there are targets."""
    if given != taken:
        targets = "is one target" if taken == 1 else f"are {taken} targets"
        values = "one value" if given == 1 else f"{given} values"
        raise SpecError(
            f"there {targets}, and this gives {values}",
            span,
            "a reduction over tuples, which 'reductions' defines, is all of a statement and has as"
            " many targets as parts",
        )


def _reads_own(statement: syntax.Assign) -> bool:
    return any(_reads(statement.value, target.array) for target in statement.targets)


def _name(combiner: ir.Combiner | str) -> str:
    return combiner if isinstance(combiner, str) else combiner.value


def _reads(expr: syntax.Expr, array: str) -> bool:
    return any(isinstance(e, syntax.Element) and e.array == array for e in syntax.descend(expr))


def _ranges(fold: syntax.Fold, loops: tuple[Range, ...], scope: Known) -> tuple[Range, ...]:
    """The fold's ranges, inside `loops`."""
    outside = (*scope.indices, *loops)
    inner = replace(scope, indices=outside)
    for over in fold.over:
        inner = enter(over, inner)
    return inner.indices[len(outside) :]


def _hoist(
    expr: syntax.Expr, array: str, loops: tuple[Range, ...], scope: Known
) -> tuple[syntax.Expr, tuple[Definition, ...], Known]:
    if isinstance(expr, syntax.Fold):
        ranges = _ranges(expr, loops, scope)
        value, before, scope = _hoist(expr.value, array, (*loops, *ranges), scope)
        fold = replace(expr, value=value)
        used = _used(fold, loops, ranges)
        name = unused(f"{array}_{_name(fold.combiner)}", scope.names() | scope.blocks)
        target = syntax.Element(
            name, tuple(syntax.Name(r.index, span=fold.span) for r in used), span=fold.span
        )
        scope = scope.with_shape(name, _shape(used, scope))
        definition, scope = fold_definition(name, target, fold, used, scope)
        return target, (*before, definition), scope.defines(definition)
    parts: tuple[syntax.Expr, ...] = ()
    before = ()
    for part in syntax.parts(expr):
        new, definitions, scope = _hoist(part, array, loops, scope)
        parts, before = (*parts, new), (*before, *definitions)
    return syntax.with_parts(expr, parts), before, scope


def _used(
    fold: syntax.Fold, loops: tuple[Range, ...], ranges: tuple[Range, ...]
) -> tuple[Range, ...]:
    """Those of `loops` that the fold depends on, also by way of bounds."""
    needed = set(syntax.names(fold))
    for r in (*reversed(ranges), *reversed(loops)):
        if r in ranges or r.index in needed:
            needed |= walk.variables(r.lower) | walk.variables(r.upper)
    return tuple(r for r in loops if r.index in needed)


def _shape(used: tuple[Range, ...], scope: Known) -> tuple[ir.Expr, ...]:
    ranges = {r.index: r for r in (*scope.indices, *used)}
    sizes = [extent(ir.Var(r.index), ranges, scope.declared.sizes) for r in used]
    for size, r in zip(sizes, used, strict=True):
        if size is None:
            raise SpecError(f"cannot tell the largest value of index '{r.index}'", r.span)
    return tuple(size for size in sizes if size is not None)


def fold_definition(
    block: str,
    target: syntax.Element,
    fold: syntax.Fold,
    loops: tuple[Range, ...],
    scope: Known,
    others: tuple[syntax.Element, ...] = (),
) -> tuple[Definition, Known]:
    """The definition `target, *others = fold`, and the scope, in which the extreme value that goes
    with a position has a shape, too.
    """
    given = len(fold.value.values) if isinstance(fold.value, syntax.Group) else 1
    check_targets(given, 1 + len(others), fold.span)
    ranges = _ranges(fold, loops, scope)
    conditions = scope.conditions
    if fold.condition is not None:
        inner = replace(scope, indices=(*scope.indices, *loops, *ranges))
        conditions = (*conditions, condition_expr(fold.condition, inner.integers()))
    if fold.combiner in _ARG:
        if len(ranges) != 1:
            raise SpecError(f"{_name(fold.combiner)} runs over one index", fold.span)
        name = unused(f"{target.array}_value", scope.names())
        others = (replace(target, array=name),)
        scope = scope.with_shape(name, scope.shapes[target.array])
    definition = Definition(
        block, target, fold.value, (*loops, *ranges), frozenset(r.index for r in ranges),
        fold.combiner, initialises=True, others=others, conditions=conditions,
        guard=fold.guard, span=fold.span,
    )  # fmt: skip
    return definition, scope
