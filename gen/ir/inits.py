"""Reduction inits as blocks of their own.

Input: a kernel with blocks that own their init (`initialises=True`). Output: the kernel in which an
Init block before a loop does that, and the block only updates. What it computes stays the same.

Where an init runs: take the outermost loop that one of the block's *reduction* variables depends
on. At each entry of that loop, before its first iteration, the identity is stored once for each
spatial instance inside; so an empty reduction stores it, too. A block without such a loop stores
it directly before it runs. Written out that is a block `{block}.init`, in copies
`{block}.init.{index}` of the loops from there inward on which spatial variables depend, with the
conjuncts of the predicate that use no reduction loop. Interpreter, prover and lowering all work on
this form.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn, assert_never

from ..errors import ScheduleError
from . import nodes as ir
from .algebra import conjunction, conjuncts
from .walk import ancestors, blocks, remembered, replace_stmt, seq, substitute, variables


@remembered
def explicit_inits(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with every block's own init written out. Raises ScheduleError as below."""
    while own := next((b for b in blocks(kernel.body) if b.initialises), None):
        kernel = _write_out(kernel, own, None, f"{own.name}.init")
    return kernel


def explicit_init(
    kernel: ir.Kernel, block_name: str, loop: str | None = None, as_: str | None = None
) -> ir.Kernel:
    """The kernel with the init of one block right before `loop`.

    loop: a loop around the block, none of whose outer loops a reduction variable depends on; None
        for the outermost that one depends on. as_: the init's name, `{block_name}.init` if None.
    Raises ScheduleError where the block owns no init, or no init there means the same.
    """
    block = next((b for b in blocks(kernel.body) if b.name == block_name), None)
    if block is None:
        raise ScheduleError(f"there is no block '{block_name}'")
    if not block.initialises:
        raise ScheduleError(f"block '{block_name}' has no init of its own", block.span)
    return _write_out(kernel, block, loop, as_ or f"{block_name}.init")


def _write_out(kernel: ir.Kernel, block: ir.Block, loop: str | None, name: str) -> ir.Kernel:
    path = ancestors(kernel.body, block)
    spatial = _dependences(block, ir.IterKind.SPATIAL, path)
    reduction = _dependences(block, ir.IterKind.REDUCTION, path)
    start = _place(block, loop, path, reduction)
    inside = path[start:]
    init = _init_nest(block, inside, spatial, reduction, name)
    updating = replace(block, initialises=False)
    if not inside:
        return replace(kernel, body=replace_stmt(kernel.body, block, seq((init, updating))))
    nest = replace_stmt(inside[0], block, updating)
    return replace(kernel, body=replace_stmt(kernel.body, inside[0], seq((init, nest))))


def _dependences(block: ir.Block, kind: ir.IterKind, path: Sequence[ir.Stmt]) -> frozenset[str]:
    """The loop variables that the iteration variables of one kind depend on, through the parts of
    fused loops, too.
    """
    bound = zip(block.iters, block.bindings, strict=True)
    names = frozenset[str]().union(*(variables(b) for v, b in bound if v.kind is kind))
    for outer in reversed(path):
        if isinstance(outer, ir.Delinearize) and names & set(outer.vars):
            names |= variables(outer.value)
    return names


def _place(
    block: ir.Block, loop: str | None, path: Sequence[ir.Stmt], reduction: frozenset[str]
) -> int:
    """Which ancestor the init goes before: its index in `path`, or len(path) for the block."""
    positions = {s.var: i for i, s in enumerate(path) if isinstance(s, ir.Loop)}
    outermost = min((i for var, i in positions.items() if var in reduction), default=len(path))
    if loop is None:
        return outermost
    if loop not in positions:
        raise ScheduleError(f"loop '{loop}' is not around block '{block.name}'", block.span)
    if positions[loop] > outermost:
        again = next(var for var, i in positions.items() if i == outermost)
        raise ScheduleError(
            f"an init of block '{block.name}' at loop '{loop}' would run again at each iteration of"
            f" the reduction loop '{again}'",
            block.span,
        )
    return positions[loop]


def _init_nest(
    block: ir.Block,
    inside: Sequence[ir.Stmt],
    spatial: frozenset[str],
    reduction: frozenset[str],
    name: str,
) -> ir.Stmt:
    """The Init block in copies of those loops of `inside` that spatial variables depend on."""
    renamed: dict[str, ir.Expr] = {}
    dropped: set[str] = set()
    kept: list[ir.Loop | ir.Delinearize] = []
    guards = [block.predicate]
    for outer in inside:
        match outer:
            case ir.Loop() | ir.Delinearize():
                names = (outer.var,) if isinstance(outer, ir.Loop) else outer.vars
                if not spatial & set(names):
                    dropped.update(names)
                    continue
                _refuse_fused(block, names, reduction)
                kept.append(outer)
                for var in names:
                    renamed[var] = ir.Var(_fresh(f"{name}.{var.split('.')[-1]}", renamed))
            case ir.If(condition, _):
                guards.append(condition)
            case ir.Allocate(buffers, _):
                _refuse_local(block, {b.name for b in buffers})
            case ir.Seq() | ir.Block() | ir.Barrier() | ir.Leave() | ir.Transfer():
                pass
            case _:
                assert_never(outer)
    nest: ir.Stmt = _init_block(block, guards, renamed, dropped, name)
    for copied in reversed(kept):
        nest = _copy(block, copied, renamed, dropped, nest)
    return nest


def _init_block(
    block: ir.Block,
    guards: list[ir.Expr],
    renamed: dict[str, ir.Expr],
    dropped: set[str],
    name: str,
) -> ir.Block:
    assert isinstance(block.body, ir.Update)
    pairs = [
        (var, binding)
        for var, binding in zip(block.iters, block.bindings, strict=True)
        if var.kind is ir.IterKind.SPATIAL
    ]
    parts = (part for guard in guards for part in conjuncts(guard))
    holds = conjunction(*(part for part in parts if not variables(part) & dropped))
    return ir.Block(
        name,
        tuple(var for var, _ in pairs),
        tuple(substitute(binding, renamed) for _, binding in pairs),
        substitute(holds, renamed),
        ir.Init(block.body.combiner, block.body.targets, span=block.body.span),
        span=block.span,
    )


def _copy(
    block: ir.Block,
    outer: ir.Loop | ir.Delinearize,
    renamed: dict[str, ir.Expr],
    dropped: set[str],
    nest: ir.Stmt,
) -> ir.Stmt:
    def rename(expr: ir.Expr) -> ir.Expr:
        for var in sorted(variables(expr) & dropped):
            _refuse_bounds(block, outer, var)
        return substitute(expr, renamed)

    match outer:
        case ir.Loop(var, lower, upper):
            return replace(
                outer,
                var=_name(renamed[var]),
                lower=rename(lower),
                upper=rename(upper),
                body=nest,
                annotations=(),  # they are about what was in the loop
            )
        case ir.Delinearize(names, extents, value):
            return replace(
                outer,
                vars=tuple(_name(renamed[var]) for var in names),
                extents=tuple(map(rename, extents)),
                value=rename(value),
                body=nest,
            )
        case _:
            assert_never(outer)


def _name(var: ir.Expr) -> str:
    assert isinstance(var, ir.Var)
    return var.name


def _fresh(name: str, renamed: dict[str, ir.Expr]) -> str:
    """The name, numbered if another copied loop has it: `a.i` and `b.i` have one last part."""
    taken = {_name(var) for var in renamed.values()}
    numbered = (f"{name}_{k}" for k in range(1, len(taken) + 2))
    return name if name not in taken else next(n for n in numbered if n not in taken)


def _refuse_fused(block: ir.Block, names: Sequence[str], reduction: frozenset[str]) -> None:
    for var in names:
        if var in reduction:
            raise ScheduleError(
                f"'{var}' carries both spatial and reduction variables of block '{block.name}': "
                "decompose the reduction first",
                block.span,
            )


def _refuse_local(block: ir.Block, buffers: set[str]) -> None:
    assert isinstance(block.body, ir.Update)
    for target in block.body.targets:
        if target.buffer in buffers:
            raise ScheduleError(
                f"the init of block '{block.name}' would run before '{target.buffer}' is allocated",
                block.span,
            )


def _refuse_bounds(block: ir.Block, outer: ir.Loop | ir.Delinearize, var: str) -> NoReturn:
    loop = outer.var if isinstance(outer, ir.Loop) else outer.vars[0]
    raise ScheduleError(
        f"the init of block '{block.name}' cannot go there: the bounds of the spatial loop '{loop}'"
        f" depend on '{var}'",
        block.span,
    )
