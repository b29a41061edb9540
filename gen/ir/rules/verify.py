"""The rules that every tree obeys, checked between all stages.

Input: a kernel. Output: nothing, or an IRError naming the node that breaks a rule. The rules are
those of `ir.nodes`; what a tree computes is the prover's business.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from ...errors import located
from .. import nodes as ir
from ..algebra import index
from ..types import INDEX, DType, Kind
from ..walk import blocks, remembered, targets, variables, walk
from .expressions import Environment, IRError, check_place, expect, refuse
from .launches import check_launches
from .transfers import check_transfers

__all__ = ["IRError", "verify", "verify_any"]


def verify(kernel: ir.Kernel, *, lowered: bool = False) -> None:
    """Checks the rules of one stage: before lowering, or after.

    Before, blocks, loops and buffers have names of their own and guards are predicates. After,
    they may be copied, inits are blocks and vectorized loops have constant extents. In both, what a
    block does is said in its iteration variables; what is emitted has none
    (`targets.cpu.passes.finishing`). Raises IRError.
    """
    verify_any(kernel)
    sizes = (*kernel.dims, *(s.name for s in kernel.scalars), *(p.name for p in kernel.phases))
    _check_local(kernel.body, frozenset(sizes))
    if lowered:
        _check_lowered(kernel)
    else:
        _check_unlowered(kernel)


@remembered
def verify_any(kernel: ir.Kernel) -> None:
    """Checks the rules that hold at every stage. Raises IRError."""
    parameters = [p.buffer for p in kernel.parameters]
    known_names = [*kernel.dims, *(b.name for b in parameters)]
    known_names += [*(s.name for s in kernel.scalars), *(p.name for p in kernel.phases)]
    _check_distinct(kernel, known_names)
    for scalar in kernel.scalars:
        if scalar.dtype.only_stores:
            refuse(scalar, f"scalar '{scalar.name}' is {scalar.dtype.value}, which only stores")
    for phase in kernel.phases:
        if phase.size < 1 or phase.buffer not in (b.name for b in parameters):
            refuse(phase, f"phase '{phase.name}' is of no argument, or of no positive size")
    integers = [s.name for s in kernel.scalars if s.dtype is INDEX]
    dims = Environment(dict.fromkeys([*kernel.dims, *integers], INDEX), {})
    for parameter in parameters:
        if parameter.scope is not ir.Scope.GLOBAL:
            refuse(parameter, f"argument '{parameter.name}' has scope {parameter.scope.value}")
        _check_shape(parameter, dims)
    for assumption in kernel.assumptions:
        expect(assumption, DType.BOOL, "an assumption", dims)
    known = {**dict.fromkeys(kernel.dims, INDEX), **{s.name: s.dtype for s in kernel.scalars}}
    known |= {p.name: INDEX for p in kernel.phases}
    inputs = frozenset(p.buffer.name for p in kernel.parameters if p.intent is ir.Intent.IN)
    buffers = {b.name: b for b in parameters}
    _check_stmt(kernel.body, _Surroundings(known, {}, buffers, inputs))
    check_launches(kernel)
    check_transfers(kernel)


# ---------------------------------------------------------------- rules of one stage


def _check_unlowered(kernel: ir.Kernel) -> None:
    seen: set[tuple[str, str]] = set()
    for node in walk(kernel.body):
        match node:
            case ir.Block(name):
                named = [("block", name)]
            case ir.Loop(var):
                named = [("loop", var)]
            case ir.Delinearize(vars_):
                named = [("loop", var) for var in vars_]
            case ir.Buffer(name):
                named = [("buffer", name)]
            case ir.If() | ir.Leave():
                word = "an 'if'" if isinstance(node, ir.If) else "a 'leave'"
                refuse(node, f"{word} stands in a tree that is not lowered")
            case _:
                continue
        for what, name in named:
            if (what, name) in seen:
                refuse(node, f"there are two {what}s '{name}'")
            seen.add((what, name))


def _check_local(stmt: ir.Stmt, known: frozenset[str]) -> None:
    for block in blocks(stmt):
        if not block.iters and (loose := sorted(variables(block.body) - known)):
            refuse(block, f"the body of block '{block.name}' uses '{loose[0]}', a loop's variable")


def _check_lowered(kernel: ir.Kernel) -> None:
    for node in walk(kernel.body):
        match node:
            case ir.Block(name, initialises=True):
                refuse(node, f"block '{name}' of a lowered tree owns its init")
            case ir.Loop(var, lower, upper, ir.LoopKind.VECTORIZED):
                if lower != index(0) or not isinstance(upper, ir.Const):
                    refuse(node, f"vectorized loop '{var}' of a lowered tree is not over constants")
            case _:
                pass


# ---------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What is known at a statement.

    known: dims and scalars. loops: the loop variables around, each with its loop's kind. buffers:
    those in scope. inputs: the arguments that must not be written.
    """

    known: Mapping[str, DType]
    loops: Mapping[str, ir.LoopKind]
    buffers: Mapping[str, ir.Buffer]
    inputs: frozenset[str]

    def names(self) -> Environment:
        """For expressions between the loops."""
        return Environment({**self.known, **dict.fromkeys(self.loops, INDEX)}, self.buffers)


def _check_stmt(stmt: ir.Stmt, around: _Surroundings) -> None:
    match stmt:
        case ir.Block():
            with located(stmt.span):
                _check_block(stmt, around)
        case ir.Loop(var, lower, upper, kind, body):
            with located(stmt.span or next((b.span for b in blocks(body)), None)):
                expect(lower, INDEX, f"the lower bound of loop '{var}'", around.names())
                expect(upper, INDEX, f"the upper bound of loop '{var}'", around.names())
            _check_kinds(stmt, around)
            _check_stmt(body, _enter(stmt, (var,), kind, around))
        case ir.Delinearize(vars_, extents, value, body):
            if not vars_ or len(vars_) != len(extents):
                refuse(stmt, f"{len(vars_)} parts with {len(extents)} extents")
            for expr in (value, *extents):
                expect(expr, INDEX, f"a size of the parts {', '.join(vars_)}", around.names())
            _check_stmt(body, _enter(stmt, vars_, ir.LoopKind.SERIAL, around))
        case ir.If(condition, body):
            expect(condition, DType.BOOL, "the condition of an 'if'", around.names())
            _check_stmt(body, around)
        case ir.Allocate(buffers, body):
            for buffer in buffers:
                with located(buffer.span):
                    around = _allocate(buffer, around)
            _check_stmt(body, around)
        case ir.Leave(condition):
            expect(condition, DType.BOOL, "the condition of a 'leave'", around.names())
            if not around.loops or [*around.loops.values()][-1] is not ir.LoopKind.SERIAL:
                refuse(stmt, "no serial loop is around a 'leave' that it could end")
        case ir.Barrier() | ir.Transfer():
            pass  # `verify_launch` and `verify_transfers` have their rules
        case ir.Seq(body_):
            for inner in body_:
                _check_stmt(inner, around)
        case _:
            assert_never(stmt)


def _check_kinds(loop: ir.Loop, around: _Surroundings) -> None:
    for var, kind in around.loops.items():
        lanes = kind is ir.LoopKind.VECTORIZED and loop.kind.is_unordered
        rank = kind.is_unordered and loop.kind is ir.LoopKind.DISTRIBUTED
        if lanes or rank:
            refuse(loop, f"{loop.kind.value} loop '{loop.var}' is inside {kind.value} loop '{var}'")


def _enter(
    stmt: ir.Stmt, names: tuple[str, ...], kind: ir.LoopKind, around: _Surroundings
) -> _Surroundings:
    loops = dict(around.loops)
    for name in names:
        if name in loops:
            refuse(stmt, f"loop '{name}' is nested within itself")
        if name in around.known:
            refuse(stmt, f"loop '{name}' has the name of a dim or scalar")
        loops[name] = kind
    return replace(around, loops=loops)


def _allocate(buffer: ir.Buffer, around: _Surroundings) -> _Surroundings:
    if buffer.name in around.buffers or buffer.name in around.known:
        refuse(buffer, f"'{buffer.name}' is declared twice")
    if buffer.scope is ir.Scope.GLOBAL:
        refuse(buffer, f"temporary '{buffer.name}' has the scope of an argument")
    _check_shape(buffer, around.names())
    for a in buffer.aligned:
        if not (0 <= a.axis < len(buffer.shape) - 1 and 0 <= a.offset < a.factor):
            refuse(buffer, f"'{buffer.name}' cannot be aligned by {a.axis}, {a.factor}, {a.offset}")
    return replace(around, buffers={**around.buffers, buffer.name: buffer})


def _check_shape(buffer: ir.Buffer, names: Environment) -> None:
    for extent in buffer.shape:
        expect(extent, INDEX, f"an extent of '{buffer.name}'", names)


def _check_distinct(node: ir.Node, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            refuse(node, f"'{name}' is declared twice")
        seen.add(name)


# ---------------------------------------------------------------- blocks


def _check_block(block: ir.Block, around: _Surroundings) -> None:
    if len(block.iters) != len(block.bindings):
        refuse(
            block,
            f"block '{block.name}' has {len(block.iters)} iteration variables, "
            f"but {len(block.bindings)} bindings",
        )
    outside = around.names()
    for var, binding in zip(block.iters, block.bindings, strict=True):
        expect(binding, INDEX, f"the value of '{var.name}' of block '{block.name}'", outside)
    expect(block.predicate, DType.BOOL, f"the predicate of block '{block.name}'", outside)
    inside = Environment(around.known, around.buffers) if block.iters else outside
    for var, binding in zip(block.iters, block.bindings, strict=True):
        # Renaming loops reaches into blocks: a name must be one number wherever it is seen.
        if var.name in around.loops and binding != ir.Var(var.name):
            refuse(var, f"'{var.name}' of block '{block.name}' hides a loop of that name")
        inside = _bind(block, var, inside)
    if block.origin:
        for expr in block.origin.at:
            expect(expr, INDEX, f"the origin of block '{block.name}'", inside)
    for target in targets(block.body):
        _check_target(block, target, around.inputs, inside)
    _check_body(block, inside)
    _check_initialises(block)


def _bind(block: ir.Block, var: ir.IterVar, inside: Environment) -> Environment:
    """The names that the next iteration variable's domain, or the body, may use."""
    if var.name in inside.variables:
        refuse(var, f"'{var.name}' of block '{block.name}' hides another variable of that name")
    for bound in (var.lower, var.upper):
        expect(bound, INDEX, f"a bound of '{var.name}' of block '{block.name}'", inside)
    return replace(inside, variables={**inside.variables, var.name: INDEX})


def _check_target(
    block: ir.Block, target: ir.Destination, inputs: frozenset[str], names: Environment
) -> None:
    check_place(target, target.buffer, target.indices, names)
    if target.buffer in inputs:
        refuse(target, f"block '{block.name}' writes '{target.buffer}', an input")


def _check_body(block: ir.Block, names: Environment) -> None:
    match block.body:
        case ir.Store(target, value):
            declared = names.buffers[target.buffer].dtype
            expect(value, declared, f"what block '{block.name}' stores", names)
        case ir.Init(combiner, places):
            _check_combiner(block, combiner, places, names)
        case ir.Update(combiner, places, values):
            _check_combiner(block, combiner, places, names)
            if len(values) != len(places):
                refuse(
                    block,
                    f"block '{block.name}' has {len(values)} values for {len(places)} targets",
                )
            for target, value in zip(places, values, strict=True):
                declared = names.buffers[target.buffer].dtype
                expect(value, declared, f"what block '{block.name}' combines", names)
        case _:
            assert_never(block.body)


def _check_combiner(
    block: ir.Block,
    combiner: ir.AnyCombiner,
    places: tuple[ir.Destination, ...],
    names: Environment,
) -> None:
    if len(places) != _arity(combiner):
        refuse(block, f"'{combiner.value}' of block '{block.name}' has {len(places)} targets")
    if len(set(places)) < len(places):
        refuse(block, f"the targets of block '{block.name}' are one place")
    dtypes = tuple(names.buffers[place.buffer].dtype for place in places)
    if isinstance(combiner, ir.DefinedCombiner):
        _check_defined(block, combiner, dtypes)
    else:
        _check_takes(block, combiner, dtypes)


def _arity(combiner: ir.AnyCombiner) -> int:
    match combiner:
        case ir.DefinedCombiner(parts=parts):
            return len(parts)
        case ir.Combiner.ARGMIN | ir.Combiner.ARGMAX:
            return 2
        case _:
            return 1


def _check_defined(
    block: ir.Block, combiner: ir.DefinedCombiner, dtypes: tuple[DType, ...]
) -> None:
    known = {v.name: v.dtype for owner in "ab" for v in combiner.variables(owner)}
    for part, got, v, combined in zip(
        combiner.parts, dtypes, combiner.variables("c"), combiner.combined, strict=True
    ):
        expect(combined, v.dtype, f"'{part}' of '{combiner.name}'", Environment(known, {}))
        known[v.name] = v.dtype
        if got is not v.dtype:
            refuse(
                block,
                f"'{part}' of '{combiner.name}' is {v.dtype.value}, its target in block"
                f" '{block.name}' {got.value}",
            )


def _check_takes(block: ir.Block, combiner: ir.Combiner, dtypes: tuple[DType, ...]) -> None:
    first = dtypes[0]
    match combiner:
        case ir.Combiner.ANY | ir.Combiner.ALL:
            takes = first is DType.BOOL
        case ir.Combiner.SUM | ir.Combiner.PROD:
            takes = first is not DType.BOOL
        case ir.Combiner.MIN | ir.Combiner.MAX | ir.Combiner.ARGMIN | ir.Combiner.ARGMAX:
            takes = first.kind is not Kind.COMPLEX
        case _:
            assert_never(combiner)
    if not takes or first.only_stores:
        refuse(block, f"'{combiner.value}' of block '{block.name}' takes no {first.value}")
    if dtypes[1:] not in ((), (INDEX,)):
        got = dtypes[1].value
        refuse(block, f"the index of block '{block.name}' is {got}, not {INDEX.value}")


def _check_initialises(block: ir.Block) -> None:
    if not block.initialises:
        return
    reduction = {v.name for v in block.iters if v.kind is ir.IterKind.REDUCTION}
    if not isinstance(block.body, ir.Update) or not reduction:
        refuse(block, f"block '{block.name}' owns an init, but is not a reduction")
    for target in block.body.targets:
        if used := sorted(variables(target) & reduction):
            refuse(target, f"block '{block.name}' reduces over '{used[0]}', which its target uses")
