"""What rules for reductions share: along which loop terms lie, and how sums are cut into blocks.

Input: a reduction's nest. Output: loops and numbers, and conditions on sizes.
"""

from collections.abc import Iterable

from ....ir.algebra import dtype_of
from ....ir.nodes import Block, Call, Combiner, Const, Expr, Loop, Update, Var
from ....ir.types import DType, Kind
from ....ir.walk import targets, variables, walk
from ...edit.tree import is_argument
from .draft import Declined, Draft
from .nest import Nest, nest_of

LONG = 65536  # terms, from which on one level of blocks rounds too often
FEW = 8  # so many iterations of a loop, where that is known, are no line


def is_float_sum(block: Block) -> bool:
    """Whether the order of its terms shows in its rounding, so that blocks of them are better."""
    match block.body:
        case Update(Combiner.SUM, (_,), (value,)):
            return dtype_of(value).kind in (Kind.FLOAT, Kind.COMPLEX)
        case _:
            return False


def dear(block: Block) -> bool:
    """Whether a term takes many instructions, or many registers."""
    called = any(isinstance(node, Call) for node in walk(block.body))
    return called or len(targets(block.body)) > 1


def is_pair(block: Block) -> bool:
    """Whether it finds the least or largest value and where it is."""
    body = block.body
    return isinstance(body, Update) and body.combiner in (Combiner.ARGMIN, Combiner.ARGMAX)


def pairs_at_once(draft: Draft, line: str) -> Draft:
    """A line of pairs of which some vectors are compared with the one pair that leads: as few win,
    that is quicker than a leader for each lane.
    """
    parts = (f"{line}_0", f"{line}_1")
    draft = draft.step("split", loop=line, factors=[None, "$compared"], as_=parts)
    return draft.step("vectorize", loop=parts[1], width="$compared")


def accumulators(blocks: Iterable[Block]) -> int | str:
    """How many vectors a pass reduces into: as many as hide an addition's delay, or as there are
    registers for where terms are dear.
    """
    return "$accumulators" if any(map(dear, blocks)) else 4


def line_of(nest: Nest) -> str:
    """The reduction's variable along which its terms lie in memory. Raises Declined."""
    require_vectors(nest)
    if nest.compared:
        raise Declined("data says where it runs, which lanes would not leave out")
    inside = [*nest.reduction, *nest.spatial]
    for var in reversed(nest.reduction):
        strides = [read.stride(var) for read in nest.reads]
        if 1 not in strides or None in strides:
            continue
        mixed = (
            index
            for read in nest.reads
            for index in read.indices
            if var in variables(index) and not variables(index).isdisjoint(set(inside) - {var})
        )
        if any(mixed):
            raise Declined(f"the rows of '{nest.name}' are windows, which overlap")
        if few(extent_of(nest, var)):
            raise Declined(f"the rows of '{nest.name}' are shorter than vectors")
        return var
    raise Declined(f"the terms of '{nest.name}' do not lie side by side")


def require_vectors(nest: Nest) -> None:
    """Raises Declined where a reduction's values are none that vectors hold."""
    body = nest.block.body
    if isinstance(body, Update) and DType.BOOL in map(dtype_of, body.values):
        raise Declined(f"the values of '{nest.name}' are bool, of which there are no vectors")


def extent_of(nest: Nest, var: str) -> Expr:
    """The upper bound of a variable's loop."""
    return next(loop.upper for loop in nest.loops if loop.var == nest.loop_of[var])


def in_registers(draft: Draft, loop: str) -> Draft | None:
    """With all that the blocks in a loop write in registers, but for results: in memory the store
    of a part of a vector holds up the load of it. None where that cannot be.
    """
    nests = (nest_of(draft.kernel, name) for name in draft.blocks)
    inside = [nest for nest in nests if any(around.var == loop for around in nest.loops)]
    written = dict.fromkeys(write.buffer for nest in inside for write in nest.writes)
    try:
        for buffer in written:
            if not is_argument(draft.kernel, buffer):
                draft = draft.step("set_scope", buffer=buffer, scope="register")
    except Declined:
        return None
    return draft


def few(extent: Expr) -> bool:
    return isinstance(extent, Const) and extent.value.real < FEW


def inner_loops(draft: Draft, name: str, rows: Iterable[str]) -> list[Loop]:
    """Those that run the block alone, inside the loops over rows."""
    return [loop for loop in nest_of(draft.kernel, name).own if loop.var not in set(rows)]


def long_if(extents: Iterable[Expr], least: int = LONG) -> str | None:
    """The condition that lines are long; None where sizes are no dims."""
    return condition_on(extents, f">= {least}")


def condition_on(extents: Iterable[Expr], bound: str) -> str | None:
    """That all that are dims are within a bound; None where none is. A loop's variable, which an
    inner loop may end at, has a dot in its name.
    """
    dims = {e.name for e in extents if isinstance(e, Var) and "." not in e.name}
    return " and ".join(f"{dim} {bound}" for dim in sorted(dims)) or None
