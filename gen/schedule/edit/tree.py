"""Edits of trees that every primitive is made of.

Input: kernels whose temporaries are all allocated at the root (`allocation.hoist`), and names.
Output: nodes, found by name, and new trees. A name that is not there is refused with the nearest
one that is.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches

from ...ir import nodes as ir
from ...ir.algebra import conjunction, conjuncts, index, sub
from ...ir.index.bounds import LoopRange
from ...ir.walk import (
    accessed,
    ancestors,
    blocks,
    buffers,
    loops,
    map_nested,
    nested,
    nests,
    replace_stmt,
    seq,
    statements,
    substitute,
    targets,
    variables,
)
from ...poly.certificate import Flow, Scheduled, Source


class CannotApply(Exception):
    """Why a step does not apply; the base class adds which step it is."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def nearest(name: str, known: Iterable[str]) -> str | None:
    """A hint for a misspelt name."""
    close = get_close_matches(name, list(known), n=1)
    return f"did you mean '{close[0]}'?" if close else None


# ---------------------------------------------------------------- kernels


def tree(kernel: ir.Kernel) -> ir.Stmt:
    """The statement below the allocation at the root."""
    return kernel.body.body if isinstance(kernel.body, ir.Allocate) else kernel.body


def temporaries(kernel: ir.Kernel) -> tuple[ir.Buffer, ...]:
    return kernel.body.buffers if isinstance(kernel.body, ir.Allocate) else ()


def rebuild(
    kernel: ir.Kernel,
    body: ir.Stmt,
    *added: ir.Buffer,
    buffers: tuple[ir.Buffer, ...] | None = None,
) -> ir.Kernel:
    """The kernel with another tree and more temporaries, or others; unused ones are dropped."""
    used = accessed(body)
    all_ = (*temporaries(kernel), *added) if buffers is None else buffers
    kept = tuple(b for b in all_ if b.name in used)
    return replace(kernel, body=ir.Allocate(kept, body) if kept else body)


def buffer_named(kernel: ir.Kernel, name: str) -> ir.Buffer:
    known = buffers(kernel)
    if name not in known:
        raise CannotApply(f"there is no buffer '{name}'", nearest(name, known))
    return known[name]


def loop_named(kernel: ir.Kernel, name: str) -> ir.Loop:
    known = {loop.var: loop for loop in loops(kernel.body)}
    if name not in known:
        raise CannotApply(f"there is no loop '{name}'", nearest(name, known))
    return known[name]


def block_named(kernel: ir.Kernel, name: str) -> ir.Block:
    known = {block.name: block for block in blocks(kernel.body)}
    if name not in known:
        raise CannotApply(f"there is no block '{name}'", nearest(name, known))
    return known[name]


def names(kernel: ir.Kernel) -> frozenset[str]:
    """Every name that a new loop, block or buffer may not take."""
    bound = {v for n in statements(kernel.body) if isinstance(n, ir.Delinearize) for v in n.vars}
    arrays = {p.buffer.name for p in kernel.parameters} | {b.name for b in temporaries(kernel)}
    scalars = {s.name for s in kernel.scalars} | {p.name for p in kernel.phases}
    scalars |= set(kernel.dims)
    return frozenset(
        bound
        | arrays
        | scalars
        | {loop.var for loop in loops(kernel.body)}
        | {block.name for block in blocks(kernel.body)}
    )


def fresh(name: str, taken: Iterable[str]) -> str:
    """The name, or it with the first number from 2 that is free."""
    used = set(taken)
    candidates = (name if k == 1 else f"{name}_{k}" for k in range(1, len(used) + 2))
    return next(c for c in candidates if c not in used)


def local_name(kernel: ir.Kernel, name: str, iters: Iterable[str]) -> str:
    """A name for an iteration variable: one that no other of the block, dim or scalar has."""
    return fresh(name, {*iters, *kernel.dims, *(s.name for s in kernel.scalars)})


def require_free(kernel: ir.Kernel, wanted: Iterable[str], freed: Iterable[str] = ()) -> None:
    """Refuses to create a name that exists, or one twice."""
    used = set(names(kernel)) - set(freed)
    for name in wanted:
        if name in used:
            raise CannotApply(f"the name '{name}' is taken; give another one with `as`")
        used.add(name)


def require_free_loops(kernel: ir.Kernel, wanted: Iterable[str], freed: Iterable[str] = ()) -> None:
    """The same for loops, whose names hold a dot."""
    wanted, freed = tuple(wanted), tuple(freed)
    for name in wanted:
        if not all(part.isidentifier() for part in name.split(".")) or "." not in name:
            block = next((old.partition(".")[0] for old in sorted(freed)), None)
            raise CannotApply(
                f"'{name}' cannot be the name of a loop: loops are named like 'block.index'",
                f"say '{block}.{name}'" if block and name.isidentifier() else None,
            )
    require_free(kernel, wanted, freed)


def require_free_buffer(kernel: ir.Kernel, name: str) -> None:
    """The same for a buffer and the block that fills it."""
    if not name.isidentifier():
        raise CannotApply(f"'{name}' cannot be the name of a buffer")
    require_free(kernel, (name,))


def index_of(var: str) -> str:
    """The part of a loop's name after its block: `j_0` of `y.j_0`."""
    return var.rpartition(".")[2]


# ---------------------------------------------------------------- around a node


def loops_around(root: ir.Stmt, node: ir.Stmt) -> tuple[ir.Loop, ...]:
    """The loops from the root down to `node`, itself not counted."""
    return tuple(s for s in ancestors(root, node) if isinstance(s, ir.Loop))


def scope_of(stmts: Iterable[ir.Stmt]) -> tuple[str, ...]:
    """The variables that loops and delinearizations among the statements bind, in order."""
    return tuple(r.var for r in ranges_of(stmts))


def ranges_of(stmts: Iterable[ir.Stmt]) -> tuple[LoopRange, ...]:
    """The ranges of the variables that the statements bind, outermost first."""
    result: list[LoopRange] = []
    for s in stmts:
        match s:
            case ir.Loop():
                result.append(LoopRange(s.var, s.lower, sub(s.upper, 1)))
            case ir.Delinearize():
                parts = zip(s.vars, s.extents, strict=True)
                result += [LoopRange(v, index(0), sub(extent, 1)) for v, extent in parts]
            case _:
                pass
    return tuple(result)


def under(loop: ir.Loop) -> tuple[ir.Stmt, ...]:
    """The statements of a loop's body, below its delinearization if it has one."""
    body = loop.body.body if isinstance(loop.body, ir.Delinearize) else loop.body
    return body.body if isinstance(body, ir.Seq) else (body,)


def with_body(loop: ir.Loop, statements: tuple[ir.Stmt, ...]) -> ir.Loop:
    """The loop around other statements, below its delinearization if it has one."""
    inner = loop.body
    new = replace(inner, body=seq(statements)) if isinstance(inner, ir.Delinearize) else None
    return replace(loop, body=new or seq(statements))


def containing(
    statements: tuple[ir.Stmt, ...], wanted: Callable[[ir.Block], bool]
) -> tuple[int, ...]:
    """Positions of the statements that hold a wanted block."""
    return tuple(k for k, s in enumerate(statements) if any(map(wanted, blocks(s))))


# ---------------------------------------------------------------- changing trees


def insert(statements: tuple[ir.Stmt, ...], position: int, new: ir.Stmt) -> tuple[ir.Stmt, ...]:
    return (*statements[:position], new, *statements[position:])


def remove(root: ir.Stmt, node: ir.Stmt) -> ir.Stmt:
    """The tree without `node` (by identity) and without the statements that this empties."""
    nothing = ir.Seq(())

    def go(s: ir.Stmt) -> ir.Stmt:
        if s is node:
            return nothing
        new = map_nested(s, go)
        return nothing if new is not s and nested(new) == (nothing,) else new

    return go(root)


def update_stmts(stmt: ir.Stmt, f: Callable[[ir.Stmt], ir.Stmt]) -> ir.Stmt:
    """The tree with `f` applied to every statement, inner ones first."""
    return f(map_nested(stmt, lambda s: update_stmts(s, f)))


def update_blocks(stmt: ir.Stmt, f: Callable[[ir.Block], ir.Block]) -> ir.Stmt:
    """The tree with `f` applied to every block."""
    return update_stmts(stmt, lambda s: f(s) if isinstance(s, ir.Block) else s)


def guarded(stmt: ir.Stmt, *guards: ir.Expr) -> ir.Stmt:
    """The tree whose blocks run only where the guards hold, too."""
    if not guards:
        return stmt
    return update_blocks(stmt, lambda b: replace(b, predicate=conjunction(b.predicate, *guards)))


def nest(around: Iterable[ir.Loop], body: ir.Stmt) -> ir.Stmt:
    """The loops, outermost first, around `body`."""
    for loop in reversed(tuple(around)):
        body = replace(loop, body=body)
    return body


def serial_loop(var: str, lower: ir.Expr, upper: ir.Expr) -> ir.Loop:
    """A loop that is still to be put around something."""
    return ir.Loop(var, lower, upper, ir.LoopKind.SERIAL, ir.Seq(()))


def replaced(state: Scheduled, old: ir.Stmt, new: ir.Stmt) -> Scheduled:
    """The state with another statement in place of one; what is read where stays as it was."""
    return replace(state, kernel=rebuild(state.kernel, replace_stmt(tree(state.kernel), old, new)))


def renumbered(
    state: Scheduled, loop: ir.Loop, lower: ir.Expr, upper: ir.Expr, value: ir.Expr
) -> Scheduled:
    """The state with the loop over another range; `value` says what its variable was before."""
    new = replace(loop, lower=lower, upper=upper, body=substitute(loop.body, {loop.var: value}))
    return replace(replaced(state, loop, new), flow=unshared(state, loop, value))


def chain(outer: ir.Loop, count: int) -> tuple[ir.Loop, ...]:
    """The loop and those directly inside it, up to `count`, each its parent's only child."""
    found = [outer]
    while len(found) < count and isinstance(found[-1].body, ir.Loop):
        found.append(found[-1].body)
    return tuple(found)


def perfect_nest(kernel: ir.Kernel, wanted: tuple[str, ...]) -> tuple[ir.Loop, ...]:
    """The loops from the outermost to the innermost wanted one, each the only child of the last.

    Raises CannotApply where they are not such a chain.
    """
    root = tree(kernel)
    found = [loop_named(kernel, name) for name in wanted]
    if len(set(wanted)) < len(wanted):
        raise CannotApply("a loop is named twice")
    depths = {loop.var: len(loops_around(root, loop)) for loop in found}
    ordered = sorted(found, key=lambda loop: depths[loop.var])
    outer, inner = ordered[0], ordered[-1]
    whole = chain(outer, depths[inner.var] - depths[outer.var] + 1)
    missing = [loop.var for loop in ordered if not any(loop is x for x in whole)]
    if missing:
        raise CannotApply(
            f"loop '{missing[0]}' is not directly nested in '{outer.var}': "
            "there must be only loops between them"
        )
    return whole


def require_serial(loop: ir.Loop, why: str = "", hint: str | None = None) -> None:
    """Refuses a loop that is not serial any more. why: ends the reason."""
    if loop.kind is not ir.LoopKind.SERIAL:
        raise CannotApply(f"loop '{loop.var}' is {loop.kind.value} already{why}", hint)


def require_unfused(loop: ir.Loop) -> None:
    """Refuses a loop that runs over several variables, or is not serial any more."""
    if isinstance(loop.body, ir.Delinearize):
        raise CannotApply(f"loop '{loop.var}' is fused already; do this before")
    require_serial(loop)


def reduction_loops(block: ir.Block) -> frozenset[str]:
    return loops_of(block, "reduction")


def spatial_loops(block: ir.Block) -> frozenset[str]:
    return loops_of(block, "spatial")


def loops_of(block: ir.Block, kind: str) -> frozenset[str]:
    """Variables that the block's iteration variables of one kind depend on."""
    pairs = zip(block.iters, block.bindings, strict=True)
    bound = (b for v, b in pairs if v.kind.value == kind)
    return frozenset(name for b in bound for name in variables(b))


def without_loops(predicate: ir.Expr, dropped: frozenset[str]) -> tuple[ir.Expr, ...]:
    """The conjuncts that use none of the variables."""
    return tuple(c for c in conjuncts(predicate) if not variables(c) & dropped)


def written(block: ir.Block) -> frozenset[str]:
    """The buffers that the block writes."""
    return frozenset(t.buffer for t in targets(block.body))


def is_argument(kernel: ir.Kernel, buffer: str) -> bool:
    return buffer_named(kernel, buffer).scope is ir.Scope.GLOBAL


# ---------------------------------------------------------------- flows


def rename_shared(flow: Flow, new: Mapping[str, tuple[str, ...]]) -> Flow:
    """The flow with loops in `shared` replaced by those that they became."""

    def renamed(source: Source) -> Source:
        shared = tuple(n for s in source.shared for n in new.get(s, (s,)))
        return replace(source, shared=tuple(dict.fromkeys(shared)))

    return {read: renamed(source) for read, source in flow.items()}


def unshared(state: Scheduled, loop: ir.Loop, value: ir.Expr) -> Flow:
    """The flow without the loop in `shared` where its iterations are numbered anew, by `value`,
    which depends on loops around that are not shared: a number is not one iteration there.
    """
    depends = variables(value) & set(scope_of(ancestors(tree(state.kernel), loop)))

    def numbered(source: Source) -> Source:
        kept = tuple(v for v in source.shared if v != loop.var)
        return source if depends <= set(kept) else replace(source, shared=kept)

    return {read: numbered(source) for read, source in state.flow.items()}


def prune_shared(kernel: ir.Kernel, flow: Flow) -> Flow:
    """The flow with only those loops in `shared` that are around the reader and all writers."""
    around = {b.name: tuple(x.var for x in loops) for b, loops in nests(tree(kernel))}

    def pruned(reader: str, source: Source) -> Source:
        both = set(around[reader]).intersection(*(around[w] for w in source.writers))
        return replace(source, shared=tuple(v for v in source.shared if v in both))

    return {read: pruned(read[0], source) for read, source in flow.items()}


def readers(flow: Flow, writer: str) -> tuple[tuple[str, int], ...]:
    """The reads that take values from a block."""
    return tuple(read for read, source in flow.items() if writer in source.writers)
