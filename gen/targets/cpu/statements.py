"""Statements as C.

Input: a lowered tree, unrolled and inlined (see `unroll` and `inline`), and what stands around it.
Output: C lines; functions for the bodies of parallel loops are added to the module that the context
names.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import assert_never, final

from ...errors import Span, TilesmithError
from ...ir import nodes as ir
from ...ir.algebra import TRUE, conjuncts
from ...ir.index.linear import constant
from ...ir.types import DType
from ...ir.walk import loads, targets, variables
from ...schedule.edit.notes import UNROLL, noted
from ...schedule.nests import tensorized
from ..c.expr import const, join, suffix
from ..c.lines import indented
from ..c.marks import Owner, marked
from ..c.statements import counted, delinearized, leaving, under
from ..c.updates import scalar
from ..c.views import Registers
from . import updates
from .context import Context
from .cost import grain
from .passes import scan, tensor
from .passes.unroll import has_vector_form, in_lanes, scattered
from .streams import rows, streams
from .streams.prefetch import prefetches
from .temporaries import temporary
from .vectors.exponentials import exponentials
from .vectors.expr import Vectors
from .vectors.masks import All, Bits, First, Mask, Shape, some
from .vectors.masks import both as both_masks
from .vectors.prelude import Prelude


def statement(stmt: ir.Stmt, context: Context) -> list[str]:
    match stmt:
        case ir.Block():
            return marked(Owner.BLOCK, stmt.name, _block(stmt, context))
        case ir.Loop():
            return marked(Owner.LOOP, stmt.var, _loop(stmt, context))
        case ir.Barrier() | ir.Transfer():
            raise AssertionError("lowering lets no barrier through")
        case ir.Delinearize():
            return _delinearize(stmt, context)
        case ir.If(condition, body):
            inner = context.inside(stmt)
            return under(context.scalars.condition(condition), statement(body, inner))
        case ir.Leave(condition):
            return leaving(context.scalars.condition(condition), context.releases_in_loop)
        case ir.Allocate(buffers, body):
            return _allocate(buffers, body, context, lambda c: _turned(buffers, body, c))
        case ir.Seq(body_):
            return [line for s in body_ for line in statement(s, context)]
        case _:
            assert_never(stmt)


# ---------------------------------------------------------------- blocks


def _block(block: ir.Block, context: Context) -> list[str]:
    """One instance."""
    facts = context.facts.where(block.predicate)
    lines = scalar(block.body, _dtypes(block, context), replace(context, facts=facts).scalars)
    lines = [*prefetches(block, replace(context, facts=facts)), *lines]
    if block.predicate == TRUE:
        return lines
    return under(context.scalars.condition(block.predicate), lines)


def _dtypes(block: ir.Block, context: Context) -> tuple[DType, ...]:
    return tuple(context.dtypes[t.buffer] for t in targets(block.body))


# ---------------------------------------------------------------- loops


def _loop(loop: ir.Loop, context: Context) -> list[str]:
    inner = context.inside(loop)
    lanes = constant(loop.upper)
    match loop.kind:
        case ir.LoopKind.PARALLEL if not context.parallel:
            return _parallel(loop, context)
        case ir.LoopKind.VECTORIZED if tensorized(loop):
            return tensor.statement(loop, inner)
        case ir.LoopKind.VECTORIZED if lanes is not None and in_lanes(loop.body, loop.var):
            shape = Shape(lanes, context.target.vector_bytes * 8)
            vector = _Lanes(loop.var, shape, loop.span)
            return _vectorized(loop.body, vector, context.inside(loop))
        case ir.LoopKind.UNROLLED:
            return _for(loop, inner, "#pragma GCC unroll 8")
        case _:
            times = noted(loop).get(UNROLL)
            return _for(loop, inner, *(() if times is None else (f"#pragma GCC unroll {times}",)))


def _for(loop: ir.Loop, inner: Context, *pragma: str) -> list[str]:
    outer, body = _lasting(loop)

    def emit(context: Context) -> list[str]:
        lines = statement(body, context.in_loop(loop.var))
        return [*pragma, *counted(loop, context.scalars, context.names, lines)]

    return _allocate(outer, body, inner, lambda c: streams.either(loop, loop.lower, c, emit))


def _lasting(loop: ir.Loop) -> tuple[tuple[ir.Buffer, ...], ir.Stmt]:
    """The workspace that all iterations can use one after another, and the body without it: to
    acquire it is an atomic operation, which waits for all stores before it.
    """
    if not isinstance(loop.body, ir.Allocate):
        return (), loop.body
    outer = tuple(
        b
        for b in loop.body.buffers
        if b.scope is ir.Scope.HEAP and not any(loop.var in variables(e) for e in b.shape)
    )
    rest = tuple(b for b in loop.body.buffers if b not in outer)
    return outer, replace(loop.body, buffers=rest) if rest else loop.body.body


def _declared(context: Context, ctype: str, name: str) -> Context:
    return replace(context, scope=(*context.scope, (ctype, context.names.variables[name])))


def _delinearize(node: ir.Delinearize, context: Context) -> list[str]:
    body = context.inside(node)
    for var in node.vars:
        body = _declared(body, "int64_t", var)
    lines = statement(node.body, body)
    return delinearized(node, context.scalars, context.names, lines)


# ---------------------------------------------------------------- vectorized loops


@final
@dataclass(frozen=True, slots=True)
class _Lanes:
    var: str
    shape: Shape
    span: Span | None  # of the step that made the loop, if that is known


def _vectorized(stmt: ir.Stmt, lanes: _Lanes, context: Context) -> list[str]:
    """A statement of a vectorized loop, all lanes at once."""
    match stmt:
        case ir.Block():
            if has_vector_form(stmt, lanes.var, context.dtypes):
                return _vector_blocks([stmt], lanes, context)
            raise _no_vector_form(stmt, lanes, context)
        case ir.Loop():
            inner = _declared(context.inside(stmt), "int64_t", stmt.var)
            lines = counted(stmt, inner.scalars, inner.names, _vectorized(stmt.body, lanes, inner))
            return marked(Owner.LOOP, stmt.var, lines)
        case ir.If(condition, body):
            inner = context.inside(stmt)
            return under(context.scalars.condition(condition), _vectorized(body, lanes, inner))
        case ir.Leave(condition):
            return _leave(condition, lanes, context)
        case ir.Seq(body_):
            parts = (
                _vector_blocks(s, lanes, context)
                if isinstance(s, list)
                else _vectorized(s, lanes, context)
                for s in _alike(body_, lanes, context)
            )
            return [line for part in parts for line in part]
        case ir.Delinearize() | ir.Allocate() | ir.Barrier() | ir.Transfer():
            raise AssertionError("in_lanes lets none of these through")
        case _:
            assert_never(stmt)


def _no_vector_form(block: ir.Block, lanes: _Lanes, context: Context) -> TilesmithError:
    types = "/".join(d.value for d in _dtypes(block, context))
    how = f" by '{block.body.combiner.value}'" if isinstance(block.body, ir.Update) else ""
    return TilesmithError(
        f"block '{block.name}', of {types}{how}, has no vector form on {context.target.level.value}"
        f" in loop '{lanes.var}'",
        lanes.span or block.span,
        "leave the loop serial",
        scattered(block, lanes.var),
    )


def _alike(
    body: tuple[ir.Stmt, ...], lanes: _Lanes, context: Context
) -> Iterator[list[ir.Block] | ir.Stmt]:
    """Vector blocks that follow each other under one guard that they do not change, together."""
    group: list[ir.Block] = []
    for s in body:
        if isinstance(s, ir.Block) and has_vector_form(s, lanes.var, context.dtypes):
            if group and (s.predicate != group[0].predicate or loads(s.predicate)):
                yield group
                group = []
            group.append(s)
        else:
            if group:
                yield group
                group = []
            yield s
    if group:
        yield group


def _vector_blocks(blocks: Sequence[ir.Block], lanes: _Lanes, context: Context) -> list[str]:
    """Blocks under one guard, of which the lanes' part is a mask."""
    before = Prelude()
    guards = conjuncts(blocks[0].predicate)
    inside = replace(context, facts=context.facts.where(blocks[0].predicate))
    code = Vectors(
        inside.scalars, context.views, lanes.var, lanes.shape, All(), before, context.pushes
    )
    mask: Mask = All()
    for p in guards:
        if lanes.var in variables(p):
            guard = replace(code, scalars=context.scalars)
            mask = both_masks(mask, guard.where(p), lanes.shape)
    lines, mask, opened = _named(mask, before.taken())
    inner: list[str] = []
    asked: set[str] = set()
    again = frozenset() if isinstance(mask, All) else updates.loaded_again(blocks, context.views)
    active = replace(code, mask=mask, again=again)
    active = replace(active, ready=exponentials(blocks, active))
    for block in blocks:
        dtypes = _dtypes(block, context)
        if scan.marked(block):
            own = scan.vector(block, dtypes[0], active)
        else:
            own = updates.vector(block, dtypes, active)
        whole = isinstance(mask, All)
        early = prefetches(block, inside, lanes.var, lanes.shape.lanes) if whole else []
        early = [line for line in early if line not in asked]
        asked.update(early)
        inner += marked(Owner.BLOCK, block.name, [*early, *before.taken(), *own])
    lines += under(opened, inner) if opened else inner
    if opened or before.count:
        lines = ["{", *indented(lines), "}"]
    for p in guards:
        if lanes.var not in variables(p):
            lines = under(context.scalars.condition(p), lines)
    return marked(Owner.BLOCK, blocks[0].name, lines)


def _leave(condition: ir.Expr, lanes: _Lanes, context: Context) -> list[str]:
    """The end of the loop around it where no lane goes on."""
    before = Prelude()
    code = Vectors(
        context.scalars, context.views, lanes.var, lanes.shape, All(), before, context.pushes
    )
    for part in conjuncts(condition):
        code = replace(code, mask=both_masks(code.mask, code.where(part), lanes.shape))
    left = leaving(some(code.mask))
    lines = before.taken()
    return ["{", *indented([*lines, *left]), "}"] if lines else left


def _named(mask: Mask, lines: list[str]) -> tuple[list[str], Mask, str]:
    """The mask in variables, the lines that define them, and whether any lane is active."""
    match mask:
        case First(count):
            lines.append(f"const int64_t active = {count};")
            return lines, First("active"), "active > 0"
        case Bits(bits, parts):
            lines += [f"const ts_m{bits} on{q} = {p};" for q, p in enumerate(parts)]
            any_on = " || ".join(f"ts_any_m{bits}(on{q})" for q in range(len(parts)))
            return lines, Bits(bits, tuple(f"on{q}" for q in range(len(parts)))), any_on
        case All():
            return lines, mask, ""
        case _:
            assert_never(mask)


# ---------------------------------------------------------------- temporaries


def _allocate(
    buffers: tuple[ir.Buffer, ...],
    body: ir.Stmt,
    context: Context,
    emit: Callable[[Context], list[str]],
) -> list[str]:
    """The buffers around what `emit` emits where they are there, for `body`."""
    if not buffers:
        return emit(context)
    lines: list[str] = []
    after: list[str] = []
    for buffer in buffers:
        new, context = temporary(buffer, body, context)
        lines += new
        if buffer.scope is ir.Scope.HEAP:
            after.insert(0, f"ts_workspace_release({context.names.arrays[buffer.name]});")
    return ["{", *indented([*lines, *emit(context), *after]), "}"]


def _turned(buffers: tuple[ir.Buffer, ...], body: ir.Stmt, context: Context) -> list[str]:
    """What runs while the buffers live, tiles transposed where their columns are wanted."""
    turns: dict[int, list[str]] = {}
    for buffer in buffers:
        view = context.views[buffer.name]
        if isinstance(view, Registers) and view.turn is not None:
            count = f", {view.turn.vectors}" if view.turn.vectors > 1 else ""
            form = "_tile" if count else ""
            turn = f"ts_transpose{form}_{suffix(buffer.dtype)}({view.name}{count});"
            turns.setdefault(view.turn.before, []).append(turn)
    if not turns or not isinstance(body, ir.Seq):
        return statement(body, context)
    numbered = enumerate(body.body)
    return [line for k, s in numbered for line in [*turns.get(k, ()), *statement(s, context)]]


# ---------------------------------------------------------------- parallel loops


def _parallel(loop: ir.Loop, context: Context) -> list[str]:
    """The loop's body as a function, given to ts_parallel with what it names in a struct."""
    var = context.names.variables[loop.var]
    name = context.module.name(f"{context.symbol}_{var}")
    inner = replace(
        _declared(context.inside(loop), "int64_t", loop.var),
        held=(),
        outside=0,
        parallel=True,
    )
    head = f"for (int64_t {var} = lower; {var} < upper; ++{var}) {{"
    outer, rest = _lasting(loop)

    def emit(context: Context) -> list[str]:
        lines = [head, *indented(statement(rest, context)), "}"]
        return marked(Owner.LOOP, loop.var, lines)

    first = ir.Var(rows.FIRST)
    body = _allocate(outer, rest, inner, lambda c: streams.either(loop, first, c, emit))
    body += [*streams.fenced(body), "return TS_OK;"]
    used = set(re.findall(r"\w+", "\n".join(body)))
    captured = [(ctype, n) for ctype, n in context.scope if n in used]
    context.module.functions.append(
        _function(name, captured, body, context.unit, tensor.compiled_with(context.target))
    )
    lower, upper = context.scalars.index(loop.lower), context.scalars.index(loop.upper)
    function = f"unit ? {name}_unit : {name}_any" if context.unit else name
    lines = [
        f"const struct {name} env = {{{', '.join(n for _, n in captured)}}};",
        f"const int64_t grain = {grain(loop, context.scalars)};",
        "const int status =",
        f"    ts_parallel({function}, &env, {lower}, {upper}, grain, call->threads);",
        *under("status != TS_OK", [*context.releases, "return status;"]),
    ]
    return ["{", *indented(lines), "}"]


def _function(
    name: str,
    captured: list[tuple[str, str]],
    body: list[str],
    unit: frozenset[str],
    compiled_with: str,
) -> str:
    fields = [f"    {join(ctype.removesuffix('restrict'), n)};" for ctype, n in captured]
    locals_ = [
        f"    {const(ctype)} {n} = {'unit ? 1 : ' if n in unit else ''}self->{n};"
        for ctype, n in captured
    ]
    taken = "const void *env, int64_t lower, int64_t upper"
    many = "TS_MANY_ROWS " if any("ts_transpose" in line for line in body) else ""
    many += compiled_with
    first = f"{many}static int {name}({taken})"
    if unit:
        first = f"{compiled_with}TS_INLINE int {name}_code({taken}, const bool unit)"
    lines = [
        f"struct {name} {{",
        *fields,
        "};",
        "",
        first,
        "{",
        f"    const struct {name} *const self = env;",
        *locals_,
        *(["    (void)unit;"] if unit and unit.isdisjoint(n for _, n in captured) else []),
        *indented(body),
        "}",
    ]
    if unit:
        for suffix_, chosen in (("unit", "true"), ("any", "false")):
            lines += [
                "",
                f"{many}static int {name}_{suffix_}({taken})",
                "{",
                f"    return {name}_code(env, lower, upper, {chosen});",
                "}",
            ]
    return "\n".join(lines)
