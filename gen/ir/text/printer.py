"""The IR as a Python-syntax script: what `tilesmith show` prints and `ir.text.parser` reads back.

Input: any tree, at any stage. Output: text that Python's `ast` accepts and that `from_text` turns
into an equal tree. What the parser can restore is left out: a lower bound of 0; the domain of an
iteration variable that is bound to a loop (or to a part of a fused one) with the same bounds; a
predicate that always holds; an origin that is the block's own instance; the type of a constant
where its neighbours fix it. Names are as `script_names` writes them.

    def softmax(m, n, x: float32[m, n], y: Out[float32[m, n]]):
        assume(n <= 16384)
        with allocate(peak=float32[m], e=float32[m, n] @ heap):
            for peak.i in parallel(m):
                for peak.j in range(n):
                    with block("peak", i=spatial(peak.i), j=reduction(peak.j), initialises=True):
                        peak[i] = combine.max(peak[i], x[i, j])

A combiner that the spec defines stands before the rest, as a function that is decorated with its
identity, `@combiner(peak=float32("-inf"), total=float32(0.0))`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from .. import nodes as ir
from ..algebra import TRUE, index
from ..transfers import Receive, Send
from ..types import INDEX, DType
from ..walk import blocks, externals
from .print_expr import expr_text, list_text, place_text, tuple_text
from .script_names import to_script

WIDTH = 100
LOOP_KINDS = {
    ir.LoopKind.SERIAL: "range",
    ir.LoopKind.PARALLEL: "parallel",
    ir.LoopKind.VECTORIZED: "vectorized",
    ir.LoopKind.UNROLLED: "unrolled",
    ir.LoopKind.DISTRIBUTED: "distributed",
    **{kind: kind.value for kind in ir.LoopKind if kind.is_bound},
}
INTENTS = {ir.Intent.OUT: "Out", ir.Intent.INOUT: "InOut"}


@dataclass(frozen=True, slots=True)
class _TypesAndBounds:
    """What surrounds a statement: the buffers' types and the loops' bounds."""

    dtypes: Mapping[str, DType] = field(default_factory=dict)
    bounds: Mapping[str, tuple[ir.Expr, ir.Expr]] = field(default_factory=dict)


def to_text(kernel: ir.Kernel) -> str:
    """The kernel as a script, ending in a newline."""
    dtypes = {p.buffer.name: p.buffer.dtype for p in kernel.parameters}
    arguments = [
        *map(to_script, kernel.dims),
        *(_parameter(p) for p in kernel.parameters),
        *(f"{to_script(s.name)}: {s.dtype.value}" for s in kernel.scalars),
        *(f"{to_script(p.name)}: Phase[{to_script(p.buffer)}, {p.size}]" for p in kernel.phases),
    ]
    lines = _fit(f"def {to_script(kernel.name)}(", arguments, "):", 0)
    if kernel.contraction is not ir.Contraction.FUSED:
        lines.append(f"    contraction({kernel.contraction.value!r})")
    lines += [line for external in externals(kernel.body) for line in _external(external)]
    lines += _combiners(kernel)
    lines += [f"    assume({expr_text(a, DType.BOOL)})" for a in kernel.assumptions]
    lines += _suite(kernel.body, _TypesAndBounds(dtypes), 1)
    return "\n".join(lines) + "\n"


def _external(external: ir.External) -> list[str]:
    given = {"header": external.header, "source": external.source}
    told = [repr(external.symbol), *(f"{key}={text!r}" for key, text in given.items() if text)]
    parameters = ", ".join(f"x{k}: {dtype.value}" for k, dtype in enumerate(external.parameters))
    return [
        f"    @external({', '.join(told)})",
        f"    def {external.name}({parameters}) -> {external.result.value}: ...",
    ]


def _combiners(kernel: ir.Kernel) -> list[str]:
    """The combiners that the kernel's spec defines, each before it is used."""
    bodies = (block.body for block in blocks(kernel))
    used = (b.combiner for b in bodies if not isinstance(b, ir.Store))
    defined = dict.fromkeys(c for c in used if isinstance(c, ir.DefinedCombiner))
    return [line for combiner in defined for line in _combiner(combiner)]


def _combiner(combiner: ir.DefinedCombiner) -> list[str]:
    identity = ", ".join(
        f"{part}={expr_text(none, None)}"
        for part, none in zip(combiner.parts, combiner.identity, strict=True)
    )
    return [
        f"    @combiner({identity})",
        f"    def {combiner.name}(a, b, c):",
        *(
            f"        {result.name} = {expr_text(e, result.dtype)}"
            for result, e in zip(combiner.variables("c"), combiner.combined, strict=True)
        ),
    ]


def stmt_to_text(stmt: ir.Stmt) -> str:
    """A part of a tree, for messages: without its surroundings less can be left out."""
    return "\n".join(_stmt(stmt, _TypesAndBounds(), 0))


# ---------------------------------------------------------------- statements


def _suite(stmt: ir.Stmt, known: _TypesAndBounds, depth: int) -> list[str]:
    """The lines of a nested statement: a sequence needs no brackets there."""
    match stmt:
        case ir.Seq(()):
            return ["    " * depth + "pass"]
        case ir.Seq(body) if len(body) > 1:
            return [line for s in body for line in _stmt(s, known, depth)]
        case _:
            return _stmt(stmt, known, depth)


def _stmt(stmt: ir.Stmt, known: _TypesAndBounds, depth: int) -> list[str]:
    pad = "    " * depth
    match stmt:
        case ir.Block():
            return _block(stmt, known, depth)
        case ir.Loop():
            return _loop(stmt, known, depth)
        case ir.Delinearize(names, extents, value, body):
            arguments = list_text((value, *extents), INDEX)
            head = f"{pad}with delinearize({arguments}) as {tuple_text([*map(to_script, names)])}:"
            parts = {n: (index(0), e) for n, e in zip(names, extents, strict=True)}
            inner = replace(known, bounds={**known.bounds, **parts})
            return [head, *_suite(body, inner, depth + 1)]
        case ir.Barrier():
            return [f"{pad}barrier()"]
        case ir.Leave(condition):
            return [f"{pad}leave_unless({expr_text(condition, DType.BOOL)})"]
        case ir.Transfer():
            return [f"{pad}{_transfer(stmt)}"]
        case ir.If(condition, body):
            head = f"{pad}if {expr_text(condition, DType.BOOL)}:"
            return [head, *_suite(body, known, depth + 1)]
        case ir.Allocate(buffers, body):
            inner = replace(known, dtypes={**known.dtypes, **{b.name: b.dtype for b in buffers}})
            head_lines = _fit(f"{pad}with allocate(", map(_temporary, buffers), "):", depth)
            return [*head_lines, *_suite(body, inner, depth + 1)]
        case ir.Seq(body):
            if not body:
                return [f"{pad}with seq():", f"{pad}    pass"]
            lines = [line for s in body for line in _stmt(s, known, depth + 1)]
            return [f"{pad}with seq():", *lines]
        case _:
            assert_never(stmt)


def _transfer(stmt: ir.Transfer) -> str:
    message = to_script(stmt.message)
    match stmt:
        case Send(_, to, synchronous, blocking):
            notes = [f"to={expr_text(to, INDEX)}"]
            notes += ["synchronous=True"] if synchronous else []
            notes += [] if blocking else ["blocking=False"]
            return f"send({', '.join([message, *notes])})"
        case Receive(_, source, blocking):
            notes = [
                f"source={expr_text(source, INDEX)}",
                *([] if blocking else ["blocking=False"]),
            ]
            return f"receive({', '.join([message, *notes])})"
        case _:
            return f"wait({message})"


def _loop(loop: ir.Loop, known: _TypesAndBounds, depth: int) -> list[str]:
    arguments = _range(loop.lower, loop.upper)
    if loop.annotations:
        arguments.append(f"annotations={_annotations(loop.annotations)}")
    head = f"for {to_script(loop.var)} in {LOOP_KINDS[loop.kind]}({', '.join(arguments)}):"
    inner = replace(known, bounds={**known.bounds, loop.var: (loop.lower, loop.upper)})
    return ["    " * depth + head, *_suite(loop.body, inner, depth + 1)]


def _block(block: ir.Block, known: _TypesAndBounds, depth: int) -> list[str]:
    arguments = [f'"{block.name}"']
    for var, binding in zip(block.iters, block.bindings, strict=True):
        arguments.append(f"{to_script(var.name)}={_iter(var, binding, known)}")
    if block.predicate != TRUE:
        arguments.append(f"where={expr_text(block.predicate, DType.BOOL)}")
    if block.initialises:
        arguments.append("initialises=True")
    if block.origin != own_origin(block.name, block.iters):
        origin = block.origin
        arguments.append(f"origin={place_text(origin.block, origin.at) if origin else None}")
    if block.annotations:
        arguments.append(f"annotations={_annotations(block.annotations)}")
    pad = "    " * depth
    return [*_fit(f"{pad}with block(", arguments, "):", depth), f"{pad}    {_body(block, known)}"]


def own_origin(name: str, iters: tuple[ir.IterVar, ...]) -> ir.Origin:
    """The origin of a block of the plain schedule: its own instance."""
    return ir.Origin(name, tuple(ir.Var(v.name) for v in iters))


def _iter(var: ir.IterVar, binding: ir.Expr, known: _TypesAndBounds) -> str:
    derived = isinstance(binding, ir.Var) and known.bounds.get(binding.name)
    domain = [] if derived == (var.lower, var.upper) else _range(var.lower, var.upper)
    return f"{var.kind.value}({', '.join([expr_text(binding, INDEX), *domain])})"


def _range(lower: ir.Expr, upper: ir.Expr) -> list[str]:
    bounds = (upper,) if lower == index(0) else (lower, upper)
    return [expr_text(e, INDEX) for e in bounds]


def _annotations(annotations: tuple[tuple[str, int | str], ...]) -> str:
    return "{" + ", ".join(f"{key!r}: {value!r}" for key, value in annotations) + "}"


def _body(block: ir.Block, known: _TypesAndBounds) -> str:
    match block.body:
        case ir.Store(target, value):
            return f"{_target(target)} = {expr_text(value, known.dtypes.get(target.buffer))}"
        case ir.Init(combiner, targets):
            return f"{', '.join(map(_target, targets))} = identity.{combiner.value}"
        case ir.Update(combiner, targets, values):
            places = list(map(_target, targets))
            contexts = [known.dtypes.get(t.buffer) for t in targets]
            texts = [expr_text(v, c) for v, c in zip(values, contexts, strict=True)]
            if len(places) == 1:
                return f"{places[0]} = combine.{combiner.value}({places[0]}, {texts[0]})"
            arguments = f"{tuple_text(places)}, {tuple_text(texts)}"
            return f"{', '.join(places)} = combine.{combiner.value}({arguments})"
        case _:
            assert_never(block.body)


def _target(target: ir.Destination) -> str:
    return place_text(target.buffer, target.indices)


# ---------------------------------------------------------------- declarations


def _parameter(parameter: ir.Parameter) -> str:
    buffer = parameter.buffer
    array = place_text(buffer.dtype.value, buffer.shape)
    wrapper = INTENTS.get(parameter.intent)
    return f"{to_script(buffer.name)}: {f'{wrapper}[{array}]' if wrapper else array}"


def _temporary(buffer: ir.Buffer) -> str:
    array = place_text(buffer.dtype.value, buffer.shape)
    notes = [] if buffer.scope is ir.Scope.AUTO else [buffer.scope.value]
    notes += [f"align({a.axis}, {a.factor}, {a.offset})" for a in buffer.aligned]
    notes += ["fixed"] if buffer.fixed else []
    return f"{to_script(buffer.name)}={' @ '.join([array, *notes])}"


def _fit(head: str, parts: Iterable[str], tail: str, depth: int) -> list[str]:
    """`head`, the parts and `tail` in one line if it is short enough, else a part a line."""
    items = list(parts)
    line = head + ", ".join(items) + tail
    if len(line) <= WIDTH:
        return [line]
    pad = "    " * (depth + 1)
    return [head, *(f"{pad}{item}," for item in items), "    " * depth + tail]
