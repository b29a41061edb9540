"""What rules ask of sums: which of them a block reads, which loops they have, and what they reuse.

Input: a draft, or the nest of a reduction. Output: names of blocks, loops and variables. A sum is
any reduction here.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

from ....ir.nodes import Block, Load, Store, Update, Var
from ....ir.walk import loads, targets, variables
from ...edit.tree import readers
from .draft import Declined, Draft
from .nest import ArrayAccess, Nest, nest_of


@final
@dataclass(frozen=True, slots=True)
class SumRead:
    """A sum as the one block that reads it sees it: at each of its points one value.

    meant: for each of the reader's spatial variables the sum's own.
    """

    nest: Nest
    meant: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.nest.name

    def readers_of(self, its: Collection[str]) -> set[str]:
        """The reader's variables for these of the sum's, but for those of loops around both."""
        return {mine for mine, var in self.meant.items() if var in its}


def sums_read(draft: Draft, reader: Nest) -> tuple[SumRead, ...]:
    """The sums that no other block reads, and this one a value a point, in the order of reads."""
    if not isinstance(reader.block.body, Store):
        return ()
    found: dict[str, SumRead] = {}
    for number, load in enumerate(loads(reader.block.body)):
        source = draft.state.flow[reader.name, number]
        if len(source.writers) != 1 or source.initial:
            continue
        (name,) = source.writers
        block = draft.blocks[name]
        if not isinstance(block.body, Update) or not block.initialises or name in draft.done:
            continue
        if not reader.shared <= {loop.var for loop in nest_of(draft.kernel, name).loops}:
            continue  # it is computed once for all iterations
        others = {by for by, _ in readers(draft.state.flow, name)} - {reader.name}
        meant = _meant(block, load, reader)
        if meant is None or others or found.get(name, SumRead(reader, meant)).meant != meant:
            continue
        found[name] = SumRead(alone(nest_of(draft.kernel, name)), meant)
    return tuple(found.values())


def _meant(block: Block, load: Load, reader: Nest) -> Mapping[str, str] | None:
    """The sum's variable for each of the reader's, but for those of loops around both, where each
    iteration may have a sum of its own; None where they are not one to one.
    """
    (target, *more) = targets(block.body)
    if more:
        return None
    pairs = list(zip(load.indices, target.indices, strict=True))
    meant = {i.name: t.name for i, t in pairs if isinstance(i, Var) and isinstance(t, Var)}
    exact = len(meant) == len(pairs) == len(set(meant.values()))
    needed = {var for var in reader.spatial if reader.loop_of[var] not in reader.shared}
    return meant if exact and needed <= set(meant) <= set(reader.spatial) else None


def reuse(nest: Nest, line: str) -> tuple[tuple[ArrayAccess, ...], tuple[str, ...]]:
    """The reads along a line, and the other spatial variables that none of them has: for each
    value of such a variable the same vectors are read again.
    """
    wide = tuple(read for read in nest.reads if line in read.variables)
    others = (var for var in nest.spatial if var != line)
    return wide, tuple(v for v in others if not any(v in read.variables for read in wide))


def reuses(nest: Nest) -> bool:
    """Whether some operand is the same for other results, and another is not; or windows of one
    overlap.
    """
    found = [frozenset(nest.spatial) & read.variables for read in nest.reads]
    summed = [read.variables & frozenset(nest.reduction) for read in nest.reads]
    every = frozenset(nest.spatial)
    again = any(f < every and s for f, s in zip(found, summed, strict=True))
    return again or any(of_windows(nest, var) for var in nest.reduction)


def of_windows(nest: Nest, term: str) -> bool:
    """Whether what a reduction reads along one of its variables is a window of what it reads along
    others: of neighbouring results they overlap.
    """
    moved = [
        i for read in nest.reads for i in read.indices if term in variables(i) and not loads(i)
    ]
    return any(variables(index) & {*nest.spatial} for index in moved)


def alone(nest: Nest) -> Nest:
    """The nest as if the loops that it shares were not there: where a block was moved into a loop,
    a variable that is `8 * outer + own` counts as bound to its own loop.
    """
    own = [loop.var for loop in nest.own]
    bindings = []
    for bound in nest.block.bindings:
        mine = [var for var in own if var in variables(bound)]
        bindings.append(Var(mine[0]) if len(mine) == 1 else bound)
    return replace(nest, block=replace(nest.block, bindings=tuple(bindings)))


def own_loops(draft: Draft, block: str) -> tuple[str, ...]:
    """The loops that run this block alone, outermost first."""
    return tuple(loop.var for loop in nest_of(draft.kernel, block).own)


def loop_along(draft: Draft, block: str, var: str) -> str:
    """The innermost of the block's own loops that moves an iteration variable. Raises Declined."""
    nest = nest_of(draft.kernel, block)
    pairs = zip(nest.block.iters, nest.block.bindings, strict=True)
    bound = next(variables(binding) for it, binding in pairs if it.name == var)
    found = [loop.var for loop in nest.own if loop.var in bound]
    if not found:
        raise Declined(f"no loop of block '{block}' alone moves '{var}'")
    return found[-1]


def ordered(draft: Draft, loops: tuple[str, ...]) -> Draft:
    """With directly nested loops in this order."""
    return draft.step("reorder", loops=loops) if len(loops) > 1 else draft


def axes(block: Block) -> Iterator[tuple[str, str]]:
    """The iteration variables of a block with the loops bound to them alone."""
    for it, bound in zip(block.iters, block.bindings, strict=True):
        if isinstance(bound, Var):
            yield it.name, bound.name
