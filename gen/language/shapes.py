"""Sizes in a spec: of arguments, in the signature and of temporaries; constraints on them.

Input: syntax. Output: a `Size` an axis, and conditions in IR. Invariant: sizes are affine in dims
and integer scalars, so that the prover knows them exactly, and every dim is told by an axis of an
input that is the dim, or has it times a number and a number more; or has its value in `sizes`.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ..errors import SpecError
from ..ir import algebra, walk
from ..ir import nodes as ir
from ..ir.index.facts import of_sizes
from ..ir.index.linear import linear, same, tidy
from ..ir.interpret.sizes import told
from ..ir.nodes import BinaryOp
from ..ir.types import INDEX
from . import yaml
from .body.indices import condition_expr, index_expr, size
from .body.sizes import Sizes, sizes_of
from .model import Argument, KernelSpec, NamedSize, Size
from .syntax import grammar
from .syntax import nodes as syntax

_COMPARISON = "compare sizes, as in k <= n or n % 4 == 0"
_ELEMENT = r"(?:real\(\w+\)|\w+)"  # float32, T, real(T)
_FLIPPED = {BinaryOp.LE: BinaryOp.GE, BinaryOp.LT: BinaryOp.GT}


def array_type(node: yaml.Scalar) -> tuple[str, tuple[syntax.Expr, ...]] | None:
    """The element type and the axes of a type such as `T[m, n + 1]`; None where it is none."""
    empty = re.fullmatch(rf"\s*({_ELEMENT})\s*\[\s*\]\s*", node.text)
    if empty:
        return empty[1], ()
    if not re.fullmatch(rf"\s*{_ELEMENT}\s*\[.*\]\s*", node.text, re.DOTALL):
        return None
    match grammar.expression(node):
        case syntax.Element(element, axes):
            return element, axes
        case _:
            return None


def read_size(expr: syntax.Expr, scalars: Mapping[str, str]) -> Size:
    """One axis of an argument. scalars: the element types of the scalars. Raises SpecError."""
    match expr:
        case syntax.Name(name) if name not in scalars:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,63}", name) or "__" in name:
                raise SpecError(f"'{name[:64]}' is not a dim or a size", expr.span)
            return name
        case syntax.Literal(int(number)) if not isinstance(number, bool):
            return _number(number, expr)
    for part in syntax.descend(expr):
        if isinstance(part, syntax.Name):
            _check_scalar(part, scalars)
    form = linear(index_expr(expr, syntax.names(expr)))
    plain = replace(form.expr(number_first=True), span=expr.span)
    _refuse_products(plain, expr)
    match plain:
        case ir.Const(int(number)):
            return _number(number, expr)
        case ir.Var(name) if name not in scalars:
            return name
        case _:
            return plain


def _number(number: int, expr: syntax.Expr) -> int:
    if not 0 <= number < 10**9:
        raise SpecError(f"'{number}' is not a dim or a size", expr.span)
    return number


def _check_scalar(name: syntax.Name, scalars: Mapping[str, str]) -> None:
    if scalars.get(name.name, INDEX.value) != INDEX.value:
        raise SpecError(
            f"the scalar '{name.name}' is {scalars[name.name]}: sizes are of {INDEX.value}",
            name.span,
        )


_NOT_AFFINE = "what is not affine cannot be proved; give it a name under 'sizes'"


def _refuse_products(expr: ir.Expr, whole: syntax.Expr) -> None:
    for node in walk.walk(expr):
        span = node.span or whole.span
        if _is_product(node):
            raise SpecError("a product of sizes needs a number", span, _NOT_AFFINE)
        if _is_quotient(node):
            raise SpecError("sizes are divided by positive numbers alone", span, _NOT_AFFINE)


def _is_product(node: ir.Node) -> bool:
    """Of two sizes, neither a number."""
    match node:
        case ir.Binary(BinaryOp.MUL, lhs, rhs):
            return not isinstance(lhs, ir.Const) and not isinstance(rhs, ir.Const)
        case _:
            return False


def _is_quotient(node: ir.Node) -> bool:
    """By what is no positive number."""
    match node:
        case ir.Binary(BinaryOp.FLOORDIV | BinaryOp.MOD, _, rhs):
            return not isinstance(rhs, ir.Const) or int(rhs.value.real) <= 0
        case _:
            return False


def assumptions(spec: KernelSpec) -> tuple[ir.Expr, ...]:
    """What every call that runs the kernel establishes, and the prover is told."""
    constraints = affine(spec.constraints)
    return (*constraints, *definitions(spec.sizes), *not_negative(spec))


def affine(constraints: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
    """The constraints that the prover is told: a call checks the others alone."""
    return tuple(c for c in constraints if is_affine(c))


def definitions(sizes: Iterable[NamedSize]) -> tuple[ir.Expr, ...]:
    """That named sizes are their values, of those that the prover knows exactly."""
    return tuple(
        ir.Binary(BinaryOp.EQ, ir.Var(size.name), tidy(size.value), span=size.span)
        for size in sizes
        if is_affine(size.value)
    )


def known_sizes(
    dims: tuple[str, ...],
    scalars: Mapping[str, str],
    sizes: tuple[NamedSize, ...],
    arguments: tuple[Argument, ...],
    constraints: tuple[ir.Expr, ...],
) -> Sizes:
    """The same for shapes: `max(n - k + 1, 0)` is `n - k + 1` where calls have `k <= n`."""
    named = {s.name: s.value if is_affine(s.value) else None for s in sizes}
    axes = (axis for a in arguments for axis in a.shape if axis not in dims)
    follow = dict.fromkeys(extent(axis) for axis in axes if not isinstance(axis, int))
    return sizes_of(dims, integers(scalars), named, tuple(follow), affine(constraints))


def integers(scalars: Mapping[str, str]) -> tuple[str, ...]:
    """The scalars that sizes and conditions may depend on."""
    return tuple(name for name, element in scalars.items() if element == INDEX.value)


def is_affine(expr: ir.Expr) -> bool:
    """Whether a size or a constraint is one that the prover knows exactly."""
    return not any(
        _is_product(node) or _is_quotient(node) or isinstance(node, ir.Cast)
        for node in walk.walk(expr)
    )


def temporary_size(expr: syntax.Expr, scalars: Mapping[str, str], sizes: Sizes) -> ir.Expr:
    """One axis of a temporary; 0 where the expression is negative."""
    names = (*sizes.dims, *integers(scalars))
    for part in syntax.descend(expr):
        if isinstance(part, syntax.Name):
            _check_scalar(part, scalars)
            if part.name not in names:
                raise SpecError(
                    f"'{part.name}' is not a dim", part.span, yaml.hint(part.name, names)
                )
    written = index_expr(expr, names)
    _refuse_products(written, expr)
    return size(written, sizes)


# ---------------------------------------------------------------- axes


def extent(axis: Size) -> ir.Expr:
    """The axis in IR."""
    match axis:
        case str():
            return ir.Var(axis)
        case int():
            return algebra.index(axis)
        case _:
            return axis


def same_size(a: Size, b: Size) -> bool:
    return a == b or same(extent(a), extent(b))


def names_in(axis: Size) -> frozenset[str]:
    """Dims and scalars."""
    return walk.variables(extent(axis))


def dims_in(arguments: tuple[Argument, ...], others: Collection[str]) -> tuple[str, ...]:
    """The dims in order of first appearance. others: the scalars' names, and those of sizes.

    Raises SpecError where no input tells one.
    """
    names = (
        node.name
        for a in arguments
        for axis in a.shape
        for node in walk.walk(extent(axis))
        if isinstance(node, ir.Var)
    )
    dims = tuple(dict.fromkeys(name for name in names if name not in others))
    inputs = (a for a in arguments if a.intent is not ir.Intent.OUT)
    known = {tells.dim for a in inputs for axis in a.shape if (tells := told(extent(axis)))}
    for a in arguments:
        for axis in a.shape:
            for dim in sorted(names_in(axis) - known - set(others)):
                raise SpecError(
                    f"no input tells the size '{dim}'",
                    (None if isinstance(axis, str | int) else axis.span) or a.span,
                    f"an input needs an axis {dim}, or one such as 4 * {dim} + 1; or give it"
                    " under 'sizes'",
                )
    return dims


# ---------------------------------------------------------------- constraints


def read_constraints(
    nodes: tuple[yaml.Scalar, ...],
    dims: tuple[str, ...],
    loop_dim: str | None,
    scalars: Mapping[str, str],
) -> tuple[ir.Expr, ...]:
    """The conditions that every call is checked for. dims: named sizes included.

    Raises SpecError.
    """
    return tuple(c for node in nodes for c in _constraint(node, dims, loop_dim, scalars))


def _constraint(
    node: yaml.Scalar, dims: tuple[str, ...], loop_dim: str | None, scalars: Mapping[str, str]
) -> tuple[ir.Expr, ...]:
    """What a condition says, one comparison each."""
    expr = grammar.expression(node)
    for part in syntax.descend(expr):
        if isinstance(part, syntax.Name):
            _check_scalar(part, scalars)
            if part.name == loop_dim:
                raise SpecError(
                    f"no constraint can be on the loop dim '{loop_dim}'",
                    part.span,
                    "a call may run it in parts; an axis of the signature is whole",
                )
    names = frozenset((*dims, *scalars)) - {loop_dim}
    parts = algebra.conjuncts(condition_expr(expr, names))
    compared = [c for c in parts if isinstance(c, ir.Binary) and c.op in ir.COMPARISONS]
    if not parts or len(compared) < len(parts):
        raise SpecError("a constraint must be a comparison of sizes", node.span, _COMPARISON)
    for inner in (inner for condition in parts for inner in walk.walk(condition)):
        if isinstance(inner, ir.Binary) and _is_quotient(inner) and isinstance(inner.rhs, ir.Const):
            span = inner.span or expr.span
            raise SpecError("sizes are divided by positive numbers alone", span)
    return tuple(_dim_first(condition) for condition in parts)


def _dim_first(part: ir.Expr) -> ir.Expr:
    """`1 <= n` as `n >= 1`."""
    match part:
        case ir.Binary(op, ir.Const() as number, ir.Var() as dim) if op in _FLIPPED:
            return ir.Binary(_FLIPPED[op], dim, number, span=part.span)
        case _:
            return part


def not_empty(sizes: tuple[NamedSize, ...], requires: Collection[str]) -> tuple[ir.Expr, ...]:
    """The constraints that named sizes are not 0 over which a max or min runs."""
    return tuple(
        ir.Binary(BinaryOp.GE, ir.Var(size.name), algebra.index(1), span=size.span)
        for size in sizes
        if size.name in requires
    )


def least_sizes(spec: KernelSpec) -> dict[str, int]:
    """The least size of each dim where that is not 0: constraints, and dims of a max or min."""
    least = dict.fromkeys(spec.requires, 1)
    for constraint in spec.constraints:
        found = _least(constraint, spec.dims)
        if found is not None:
            dim, bound = found
            least[dim] = max(least.get(dim, 0), bound)
    return least


def relations(spec: KernelSpec) -> tuple[ir.Expr, ...]:
    """The constraints beyond those that say the least size of a dim."""
    return tuple(c for c in spec.constraints if _least(c, spec.dims) is None)


def _least(constraint: ir.Expr, dims: tuple[str, ...]) -> tuple[str, int] | None:
    match constraint:
        case ir.Binary(BinaryOp.GE | BinaryOp.GT as op, ir.Var(dim), ir.Const(int(bound))) if (
            dim in dims
        ):
            return dim, bound + (op is BinaryOp.GT)
        case _:
            return None


def derived(arguments: tuple[Argument, ...]) -> tuple[ir.Expr, ...]:
    """The sizes of arguments that are neither dims nor numbers, each once."""
    axes = (axis for a in arguments for axis in a.shape if not isinstance(axis, str | int))
    return tuple(dict.fromkeys(axes))


def not_negative(spec: KernelSpec) -> tuple[ir.Expr, ...]:
    """What a call checks of such sizes, and proofs may take for granted."""
    return tuple(
        ir.Binary(BinaryOp.GE, axis, algebra.index(0), span=axis.span)
        for axis in derived(spec.arguments)
        if not of_sizes(spec.all_dims, (axis,)).holds(linear(axis))
    )
