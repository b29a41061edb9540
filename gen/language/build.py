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
from ..ir import algebra, walk
from ..ir import nodes as ir
from ..ir.index.linear import tidy
from ..ir.interpret.evaluate import identity_constants
from ..ir.types import INDEX, DType
from .body.program import Definition, For, Part, Range
from .body.resolve import definitions
from .declared.externals import external
from .declared.reductions import combiner
from .expressions import Types, as_index, typed
from .model import KernelSpec, Size
from .shapes import assumptions, extent
from .syntax import nodes as syntax
from .values.types import AnyType, Weak, concrete, holds, is_complex
from .values.values import Typed, check_ordered, convert

Dtypes = Mapping[str, DType]
"""A choice of element types: by the type variables' names."""

MAX_LOOPS = 32

_OF_BOOLS = frozenset({ir.Combiner.ANY, ir.Combiner.ALL})
_OF_ORDERED = frozenset({ir.Combiner.MIN, ir.Combiner.MAX})
_ARG = frozenset({ir.Combiner.ARGMIN, ir.Combiner.ARGMAX})


@final
@dataclass(frozen=True, slots=True)
class _Nest:
    """The `for`s around a definition, outermost first, and their loops' names."""

    ranges: tuple[Range, ...]
    loops: Mapping[str, ir.Expr]


def build(spec: KernelSpec, dtypes: Dtypes) -> ir.Kernel:
    """The plain schedule. `dtypes` has the spec's type variables. Raises SpecError."""
    types = _infer(spec, _declared(spec, dtypes))
    body = walk.seq(tuple(_part(p, _Nest((), {}), types) for p in spec.program.body))
    temporaries = tuple(
        ir.Buffer(t.name, types.arrays[t.name], t.shape, span=t.span)
        for t in spec.program.temporaries
    )
    return ir.Kernel(
        spec.name,
        spec.all_dims,
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
        assumptions(spec),
        ir.Allocate(temporaries, body) if temporaries else body,
        contraction=spec.contraction,
        span=spec.span,
    )


def choices(spec: KernelSpec) -> tuple[dict[str, DType], ...]:
    """Every choice of dtypes that the spec offers, the first type variable varying slowest."""
    free = [variable for variable in spec.dtypes if variable.of is None]
    names = [variable.name for variable in free]
    return tuple(
        {v.name: v.choices[chosen[names.index(v.of or v.name)]] for v in spec.dtypes}
        for chosen in product(*(range(len(variable.choices)) for variable in free))
    )


def shape_of(shape: tuple[Size, ...]) -> tuple[ir.Expr, ...]:
    """An argument's shape in IR."""
    return tuple(extent(size) for size in shape)


# ---------------------------------------------------------------- types


def _declared(spec: KernelSpec, dtypes: Dtypes) -> Types:
    """The types that the spec states."""
    casts = casts_of(spec, dtypes)
    arrays = {a.name: casts[a.element] for a in spec.arguments}
    arrays |= {t.name: casts[t.element] for t in spec.temporaries}
    computed = {name: dtype.computed for name, dtype in casts.items()}
    combiners = {r.name: combiner(r, computed) for r in spec.reductions}
    externals = {e.name: external(e, computed) for e in spec.externals}
    scalars = {s.name: computed[s.element] for s in spec.scalars}
    return Types(arrays, scalars, casts, combiners, externals)


def casts_of(spec: KernelSpec, dtypes: Dtypes) -> dict[str, DType]:
    """What the names of types stand for."""
    parts = {f"real({v.name})": dtypes[v.name].real for v in spec.dtypes}
    return {d.value: d for d in DType} | {v.name: dtypes[v.name] for v in spec.dtypes} | parts


def _infer(spec: KernelSpec, types: Types) -> Types:
    """The types with those of temporaries, each from its first definition."""
    for d in definitions(spec.program.body):
        _require_types(d, types)
        for array, type_ in zip(
            (target.array for target in d.targets), _types_of(d, types), strict=True
        ):
            if array not in types.arrays:
                arrays = {**types.arrays, array: _first(array, type_, d)}
                types = replace(types, arrays=arrays)
    return types


def _types_of(d: Definition, types: Types) -> tuple[AnyType, ...]:
    """What the targets hold."""
    if isinstance(d.combiner, str):
        return types.combiners[d.combiner].dtypes
    value = typed(d.value, types).type
    return (INDEX, value) if d.combiner in _ARG else (value,)


def _require_types(definition: Definition, types: Types) -> None:
    """A temporary may be read by what defines it; its type must then be stated."""
    for part in syntax.descend(definition.value):
        if isinstance(part, syntax.Element) and part.array not in types.arrays:
            raise SpecError(
                f"the element type of '{part.array}' depends on its own values",
                part.span,
                f"state it: temporaries: {{{part.array}: float64}}",
            )


def _first(array: str, type_: AnyType, definition: Definition) -> DType:
    if isinstance(type_, Weak) and definition.combiner is None:
        raise SpecError(
            f"'{array}' is defined by numbers alone, which have no element type",
            definition.span,
            "name it, as in float32(0)",
        )
    return concrete(type_)


# ---------------------------------------------------------------- statements


def _part(part: Part, place: _Nest, types: Types) -> ir.Stmt:
    match part:
        case Definition():
            return _nest(part.loops, part, place, types)
        case For(over, body):
            name = next(definitions(body)).block
            inner = _enter(over, name, place)
            return _loop(over, name, place, walk.seq(tuple(_part(p, inner, types) for p in body)))
        case _:
            assert_never(part)


def _nest(loops: tuple[Range, ...], d: Definition, place: _Nest, types: Types) -> ir.Stmt:
    if not loops:
        return _block(d, place, types)
    inner = _enter(loops[0], d.block, place)
    return _loop(loops[0], d.block, place, _nest(loops[1:], d, inner, types))


def _enter(over: Range, block: str, place: _Nest) -> _Nest:
    if len(place.ranges) == MAX_LOOPS:
        raise SpecError(f"more than {MAX_LOOPS} loops are around one statement", over.span)
    value: ir.Expr = ir.Var(f"{block}.{over.index}", span=over.span)
    if over.reverse:  # the loop itself runs upwards
        lower, upper = (walk.substitute(e, place.loops) for e in (over.lower, over.upper))
        value = tidy(algebra.sub(algebra.sub(algebra.add(lower, upper), 1), value))
    return _Nest((*place.ranges, over), {**place.loops, over.index: value})


def _loop(over: Range, block: str, place: _Nest, body: ir.Stmt) -> ir.Loop:
    lower = walk.substitute(over.lower, place.loops)
    upper = walk.substitute(over.upper, place.loops)
    name = f"{block}.{over.index}"
    return ir.Loop(name, lower, upper, ir.LoopKind.SERIAL, body, span=over.span)


def _block(d: Definition, place: _Nest, types: Types) -> ir.Block:
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
        walk.substitute(algebra.conjunction(*d.conditions), place.loops),
        _body(d, types),
        d.initialises,
        ir.Origin(d.block, tuple(ir.Var(r.index) for r in place.ranges)),
        span=d.span,
    )


def _body(d: Definition, types: Types) -> ir.Store | ir.Update:
    target = _target(d.target, types)
    if isinstance(d.combiner, str):
        return _own_update(d, types.combiners[d.combiner], types)
    value = typed(d.value, types)
    if d.combiner is None:
        return ir.Store(target, _stored(value, d.target, d.span, types), span=d.span)
    if d.combiner in _ARG:
        check_ordered(d.combiner.value, value.type, d.value.span)
        return _arg_update(d, d.combiner, value, target, types)
    is_bool = value.type is DType.BOOL
    if is_bool != (d.combiner in _OF_BOOLS):
        needs = "numbers" if is_bool else "bools"
        got = concrete(value.type).value
        raise SpecError(f"'{d.combiner.value}' needs {needs}, not {got}", d.value.span)
    if d.combiner in _OF_ORDERED:
        check_ordered(d.combiner.value, value.type, d.value.span)
    stored = _stored(value, d.target, d.value.span, types)
    values = _guarded(d, d.combiner, (stored,), types)
    return ir.Update(d.combiner, (target,), values, span=d.span)


def _arg_update(
    d: Definition, combiner: ir.Combiner, value: Typed, target: ir.Destination, types: Types
) -> ir.Update:
    """(value, index) pairs."""
    ((index,), (extreme,)) = d.reduction, d.others
    position = _stored(Typed(ir.Var(index), INDEX), d.target, d.span, types)
    stored = _stored(value, extreme, d.value.span, types)
    values = _guarded(d, combiner, (stored, position), types)
    return ir.Update(combiner, (_target(extreme, types), target), values, span=d.span)


def _own_update(d: Definition, own: ir.DefinedCombiner, types: Types) -> ir.Update:
    """A tuple, of the types that the reduction says."""
    given = d.value.values if isinstance(d.value, syntax.Group) else (d.value,)
    for target, part, dtype in zip(d.targets, own.parts, own.dtypes, strict=True):
        if types.arrays[target.array] is not dtype:
            got = types.arrays[target.array].value
            raise SpecError(
                f"'{target.array}' is {got} but '{part}' of '{own.name}' is {dtype.value}",
                target.span,
            )
    stored = tuple(
        _stored(typed(value, types), target, value.span, types)
        for value, target in zip(given, d.targets, strict=True)
    )
    targets = tuple(_target(target, types) for target in d.targets)
    return ir.Update(own, targets, _guarded(d, own, stored, types), span=d.span)


def _guarded(
    d: Definition, combiner: ir.AnyCombiner, values: tuple[ir.Expr, ...], types: Types
) -> tuple[ir.Expr, ...]:
    """The values where the guard holds, and elsewhere what changes nothing."""
    if d.guard is None:
        return values
    guard = typed(d.guard, types)
    if guard.type is not DType.BOOL:
        raise SpecError("a condition must be a bool", d.guard.span, "compare, as in x[i] > 0")
    dtypes = tuple(algebra.dtype_of(v) for v in values)
    nothing = identity_constants(combiner, dtypes)
    return tuple(
        ir.Select(guard.expr, value, replace(none, span=d.span), span=d.span)
        for value, none in zip(values, nothing, strict=True)
    )


def _target(element: syntax.Element, types: Types) -> ir.Destination:
    indices = tuple(as_index(index, types) for index in element.indices)
    return ir.Destination(element.array, indices, span=element.span)


def _stored(value: Typed, target: syntax.Element, span: Span, types: Types) -> ir.Expr:
    dtype = types.arrays[target.array]
    if not holds(dtype, value.type):
        got = concrete(value.type).value
        drops = is_complex(value.type) and not dtype.is_complex
        cast = "real(...), imag(...) or abs(...)" if drops else f"{dtype.value}(...)"
        raise SpecError(
            f"the value is {got} but '{target.array}' is {dtype.value}",
            span,
            f"write {cast} if that is meant",
        )
    return convert(value, dtype, span)
