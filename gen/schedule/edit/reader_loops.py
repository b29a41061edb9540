"""A block in copies of its reader's loops, where those run over a part of a fused loop.

A box around what is read is no help there: consecutive iterations of a fused loop are pieces of
rows, and the box around them is whole rows.

Input: a hoisted tree, the block, and the loop that it moves into. Output: the block in loops that
run over just what its reader reads in one iteration of that loop; None where a box does as well.
"""

from dataclasses import dataclass, replace
from typing import assert_never, final

from ...ir.algebra import TRUE, conjuncts
from ...ir.nodes import Block, Delinearize, Expr, IterKind, Loop, Stmt, Var
from ...ir.walk import loads, substitute, targets, variables
from ...poly.certificate import Scheduled
from .moving import between, inside_of, used_names
from .new_loops import place
from .shared_loops import in_loops
from .tree import block_named, fresh, guarded, index_of, readers, scope_of, serial_loop, tree

_Nest = tuple[Loop | Delinearize, ...]


@final
@dataclass(frozen=True, slots=True)
class _Read:
    """The one place where a block's values are read: its indices, which are variables of loops, the
    loops inside the one that the block moves into, and the reader's guards.
    """

    indices: tuple[Var, ...]
    inside: _Nest
    guards: tuple[Expr, ...]


def inherited(state: Scheduled, block: Block, loop: Loop) -> Stmt | None:
    """The block in copies of its reader's loops, to stand in `loop`."""
    read = _only_read(state, block, loop)
    names = tuple(i.name for i in targets(block.body)[0].indices if isinstance(i, Var))
    spatial = {v.name for v in block.iters if v.kind is IterKind.SPATIAL}
    if read is None or set(names) != spatial or len(names) != len(read.indices):
        return None
    needed = _needed(read)
    if needed is None or block.predicate != TRUE:
        return None
    used, new = set(used_names(state, block)), dict[str, Expr]()
    for var in scope_of(read.inside):
        if var in needed:
            name = fresh(f"{block.name}.{index_of(var)}", used)
            used.add(name)
            new[var] = Var(name)
    copies = tuple(_copy(s, new) for s in read.inside if needed & set(scope_of((s,))))
    values = {n: substitute(i, new) for n, i in zip(names, read.indices, strict=True)}
    pairs = zip(block.iters, block.bindings, strict=True)
    bound = replace(block, bindings=tuple(values.get(v.name, b) for v, b in pairs))
    dropped = frozenset(scope_of(read.inside)) - needed
    guards = tuple(substitute(g, new) for g in read.guards if not variables(g) & dropped)
    around = (*inside_of(tree(state.kernel), loop), *copies)
    result = guarded(place(bound, around, frozenset(names), {}, used), *guards)
    for s in reversed(copies):
        result = replace(s, body=result)
    return result


def _only_read(state: Scheduled, block: Block, loop: Loop) -> _Read | None:
    """None where there are several, or one whose indices are no variables, each another."""
    found = readers(state.flow, block.name)
    if len(found) != 1:
        return None
    reader, number = found[0]
    consumer = block_named(state.kernel, reader)
    indices = in_loops(consumer, loads(consumer.body)[number].indices)
    plain = tuple(i for i in indices if isinstance(i, Var))
    if len(set(plain)) != len(indices):
        return None
    inside = (s for s in between(loop, consumer) if isinstance(s, Loop | Delinearize))
    return _Read(plain, tuple(inside), conjuncts(consumer.predicate))


def _needed(read: _Read) -> frozenset[str] | None:
    """The variables of loops inside that the indices depend on. None where a copy of those loops
    would run over some values twice, or they are no part of a fused loop.
    """
    inside = frozenset(scope_of(read.inside))
    needed = frozenset(i.name for i in read.indices) & inside
    partly = False
    for s in reversed(read.inside):
        mine = set(scope_of((s,)))
        if not mine & needed:
            continue
        match s:
            case Delinearize(_, _, value):
                if not mine <= needed:
                    return None
                partly |= not variables(value) <= inside
                needed |= variables(value) & inside
            case Loop(_, lower, upper):
                if not (variables(lower) | variables(upper)) & inside <= needed:
                    return None
            case _:
                assert_never(s)
    return needed if partly else None


def _copy(s: Loop | Delinearize, new: dict[str, Expr]) -> Loop | Delinearize:
    names = tuple(v.name for var in scope_of((s,)) if isinstance(v := new[var], Var))
    match s:
        case Loop(_, lower, upper):
            bounds = substitute(lower, new), substitute(upper, new)
            return serial_loop(names[0], *bounds)
        case Delinearize(_, extents, value):
            parts = tuple(substitute(e, new) for e in extents)
            return replace(s, vars=names, extents=parts, value=substitute(value, new))
        case _:
            assert_never(s)
