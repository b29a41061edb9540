"""A spec and a choice of dtypes to the kernel's plain schedule.

Input: a KernelSpec, and an element type for each of its type variables. Output: a Kernel with one
block a definition, in the spec's order, in loops of its own but where the spec writes a `for`
around several. Types are explicit. Reductions own their init.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import assert_never, final

from ..errors import Span, SpecError
from ..ir import nodes as ir
from ..ir import walk
from ..ir.types import INDEX, DType
from . import syntax
from .expressions import Typed, Types, as_index, convert, typed
from .model import KernelSpec, Size
from .program import Definition, For, Part, Range
from .resolve import definitions
from .types import AnyType, Weak, concrete, holds

Dtypes = Mapping[str, DType]
"""A choice of element types: by the type variables' names."""

_OF_BOOLS = frozenset({ir.Combiner.ANY, ir.Combiner.ALL})
_ARG = frozenset({ir.Combiner.ARGMIN, ir.Combiner.ARGMAX})


@final
@dataclass(frozen=True, slots=True)
class Place:
    """The `for`s around a definition, outermost first, and their loops' names."""

    ranges: tuple[Range, ...]
    loops: Mapping[str, ir.Expr]


def build(spec: KernelSpec, dtypes: Dtypes) -> ir.Kernel:
    """The plain schedule. `dtypes` has the spec's type variables. Raises SpecError."""
    types = _infer(spec, _declared(spec, dtypes))
    body = walk.seq(tuple(_part(p, Place((), {}), types) for p in spec.program.body))
    temporaries = tuple(
        ir.Buffer(t.name, types.arrays[t.name], t.shape, span=t.span)
        for t in spec.program.temporaries
    )
    return ir.Kernel(
        spec.name,
        spec.dims,
        tuple(
            ir.Parameter(
                ir.Buffer(
                    a.name, types.arrays[a.name], shape_of(a.shape), ir.Scope.GLOBAL, span=a.span
                ),
                a.intent,
                span=a.span,
            )
            for a in spec.arguments
        ),
        tuple(ir.Var(s.name, types.scalars[s.name], span=s.span) for s in spec.scalars),
        spec.constraints,
        ir.Allocate(temporaries, body) if temporaries else body,
        span=spec.span,
    )


def choices(spec: KernelSpec) -> tuple[dict[str, DType], ...]:
    """Every choice of dtypes that the spec offers, the first type variable varying slowest."""
    names = [variable.name for variable in spec.dtypes]
    return tuple(
        dict(zip(names, chosen, strict=True))
        for chosen in product(*(variable.choices for variable in spec.dtypes))
    )


def shape_of(shape: tuple[Size, ...]) -> tuple[ir.Expr, ...]:
    """An argument's shape in IR."""
    return tuple(ir.Var(size) if isinstance(size, str) else walk.index(size) for size in shape)


# ---------------------------------------------------------------- types


def _declared(spec: KernelSpec, dtypes: Dtypes) -> Types:
    """The types that the spec states."""
    casts = {dtype.value: dtype for dtype in DType} | {v.name: dtypes[v.name] for v in spec.dtypes}
    arrays = {a.name: casts[a.element] for a in spec.arguments}
    arrays |= {t.name: casts[t.element] for t in spec.temporaries}
    return Types(arrays, {s.name: casts[s.element] for s in spec.scalars}, casts)


def _infer(spec: KernelSpec, types: Types) -> Types:
    """The types with those of temporaries, each from its first definition."""
    for d in definitions(spec.program.body):
        value = typed(d.value, types).type
        found: dict[str, AnyType] = {d.target.array: value}
        if d.companion is not None:
            found = {d.target.array: INDEX, d.companion.array: value}
        for array, type_ in found.items():
            if array not in types.arrays:
                arrays = {**types.arrays, array: _first(array, type_, d)}
                types = replace(types, arrays=arrays)
    return types


def _first(array: str, type_: AnyType, definition: Definition) -> DType:
    if isinstance(type_, Weak) and definition.combiner is None:
        raise SpecError(
            f"'{array}' is defined by numbers alone, which have no element type",
            definition.span,
            "name it, as in float32(0)",
        )
    return concrete(type_)


# ---------------------------------------------------------------- statements


def _part(part: Part, place: Place, types: Types) -> ir.Stmt:
    match part:
        case Definition():
            return _nest(part.loops, part, place, types)
        case For(over, body):
            name = next(definitions(body)).block
            inner = _enter(over, name, place)
            return _loop(over, name, place, walk.seq(tuple(_part(p, inner, types) for p in body)))
        case _:
            assert_never(part)


def _nest(loops: tuple[Range, ...], d: Definition, place: Place, types: Types) -> ir.Stmt:
    if not loops:
        return _block(d, place, types)
    inner = _enter(loops[0], d.block, place)
    return _loop(loops[0], d.block, place, _nest(loops[1:], d, inner, types))


def _enter(over: Range, block: str, place: Place) -> Place:
    loop = ir.Var(f"{block}.{over.index}", span=over.span)
    return Place((*place.ranges, over), {**place.loops, over.index: loop})


def _loop(over: Range, block: str, place: Place, body: ir.Stmt) -> ir.Loop:
    lower = walk.substitute(over.lower, place.loops)
    upper = walk.substitute(over.upper, place.loops)
    name = f"{block}.{over.index}"
    return ir.Loop(name, lower, upper, ir.LoopKind.SERIAL, body, span=over.span)


def _block(d: Definition, place: Place, types: Types) -> ir.Block:
    iters = tuple(
        ir.IterVar(
            r.index,
            r.lower,
            r.upper,
            ir.IterKind.REDUCTION if r.index in d.reduction else ir.IterKind.SPATIAL,
            span=r.span,
        )
        for r in place.ranges
    )
    return ir.Block(
        d.block,
        iters,
        tuple(place.loops[r.index] for r in place.ranges),
        walk.substitute(walk.conjunction(*d.conditions), place.loops),
        _body(d, types),
        d.initialises,
        ir.Origin(d.block, tuple(ir.Var(r.index) for r in place.ranges)),
        span=d.span,
    )


def _body(d: Definition, types: Types) -> ir.Store | ir.Update:
    value = typed(d.value, types)
    target = _target(d.target, types)
    if d.combiner is None:
        return ir.Store(target, _stored(value, d.target, d.span, types), span=d.span)
    if d.combiner in _ARG:
        return _arg_update(d, value, target, types)
    is_bool = value.type is DType.BOOL
    if is_bool != (d.combiner in _OF_BOOLS):
        needs = "numbers" if is_bool else "bools"
        got = concrete(value.type).value
        raise SpecError(f"'{d.combiner.value}' needs {needs}, not {got}", d.value.span)
    stored = _stored(value, d.target, d.value.span, types)
    return ir.Update(d.combiner, (target,), (stored,), span=d.span)


def _arg_update(d: Definition, value: Typed, target: ir.Target, types: Types) -> ir.Update:
    """(value, index) pairs: the companion holds the value."""
    assert d.combiner is not None and d.companion is not None
    (index,) = d.reduction
    position = _stored(Typed(ir.Var(index), INDEX), d.target, d.span, types)
    stored = _stored(value, d.companion, d.value.span, types)
    targets = (_target(d.companion, types), target)
    return ir.Update(d.combiner, targets, (stored, position), span=d.span)


def _target(element: syntax.Element, types: Types) -> ir.Target:
    indices = tuple(as_index(index, types) for index in element.indices)
    return ir.Target(element.array, indices, span=element.span)


def _stored(value: Typed, target: syntax.Element, span: Span, types: Types) -> ir.Expr:
    dtype = types.arrays[target.array]
    if not holds(dtype, value.type):
        got = concrete(value.type).value
        raise SpecError(
            f"the value is {got} but '{target.array}' is {dtype.value}",
            span,
            f"write {dtype.value}(...) if that is meant",
        )
    return convert(value, dtype, span)
