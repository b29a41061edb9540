"""Which strides of arrays the code of a variant knows to be 1, and asks of its caller.

Input: a finished kernel, and what the caller packs or copies. Output: the arrays by what is known
of them. Code that walks an array of any stride is there twice, for stride 1 and for others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ...ir.index.linear import linear
from ...ir.nodes import Buffer, Destination, Intent, Kernel, Load, LoopKind, Parameter, Store
from ...ir.walk import blocks, loads, loops, targets, variables
from ..c.finishing import dtypes_of
from .passes import tensor
from .passes.unroll import has_vector_form, in_lanes


@final
@dataclass(frozen=True, slots=True)
class Strides:
    """The arrays that vector code walks an element a lane. unit: along the last axis, where they
    always come with stride 1; either: along that, with any stride; columns: along the first axis
    alone, where a variant asks for stride 1 and leaves other arrays to another: those that are
    packed, for their last axis, to the first variant, and those that are not, to the last.
    """

    unit: frozenset[str]
    either: frozenset[str]
    columns: frozenset[str]

    def walked(self, buffer: Buffer) -> frozenset[int]:
        """The axes that have stride 1."""
        last = {len(buffer.shape) - 1} if buffer.name in self.unit else set[int]()
        return frozenset(last | ({0} if buffer.name in self.columns else set[int]()))


def of_unit_stride(kernels: Sequence[Kernel], packed: frozenset[str]) -> frozenset[str]:
    """The arrays that come with stride 1 to code that walks their last axis: those that the caller
    packs, and vectors beside them, which it copies where no variant takes them as they are.
    """
    beside = [p for p in kernels[0].parameters if p.buffer.name not in packed]
    if not packed or any(p.intent is not Intent.IN or len(p.buffer.shape) > 1 for p in beside):
        return packed  # what would be copied with them may be large
    walked = [{p.buffer.name for p, axes in _walked(k).items() if axes} for k in kernels]
    return packed | {p.buffer.name for p in beside if all(p.buffer.name in w for w in walked)}


def of_variant(kernel: Kernel, packed: frozenset[str], first: bool, last: bool) -> Strides:
    """first, last: whether the variant is the first, or the last, of those that are tried.

    Where nothing is computed, no variant changes a result: all but the last ask for stride 1.
    """
    walked = _walked(kernel)
    rows = frozenset(
        p.buffer.name for p in kernel.parameters if len(p.buffer.shape) - 1 in walked[p]
    )
    inputs = (p for p in kernel.parameters if p.intent is Intent.IN and len(p.buffer.shape) > 1)
    columns = frozenset(p.buffer.name for p in inputs if walked[p] == {0})
    asked = (frozenset() if first else columns & packed) | (
        frozenset() if last else columns - packed
    )
    unit = rows if _moves(kernel) and not last else rows & packed
    return Strides(unit, rows - unit, asked)


def _moves(kernel: Kernel) -> bool:
    """Whether the kernel only moves elements."""
    return all(
        isinstance(b.body, Store) and isinstance(b.body.value, Load) for b in blocks(kernel.body)
    )


def _walked(kernel: Kernel) -> dict[Parameter, set[int]]:
    """The axes of each argument that vector code walks an element a lane."""
    found: dict[str, set[int]] = {p.buffer.name: set() for p in kernel.parameters}
    dtypes = dtypes_of(kernel)
    for name, axis in tensor.walked(kernel):
        if name in found:
            found[name].add(axis)
    for loop in loops(kernel.body):
        if loop.kind is not LoopKind.VECTORIZED or not in_lanes(loop.body, loop.var):
            continue
        for block in blocks(loop.body):
            if not has_vector_form(block, loop.var, dtypes):
                continue
            accesses: list[Load | Destination] = [*loads(block.body), *targets(block.body)]
            for a in accesses:
                moving = [k for k, i in enumerate(a.indices) if loop.var in variables(i)]
                steps = [linear(a.indices[k]).coefficient(loop.var) for k in moving]
                if a.buffer in found and steps == [1]:
                    found[a.buffer].add(moving[0])
    return {p: found[p.buffer.name] for p in kernel.parameters}


def numbers(kernel: Kernel, names: frozenset[str], *, first: bool = False) -> list[int]:
    """The flattened numbers of the arguments' last axes, or of their first ones."""
    found, start = [], 0
    for p in kernel.parameters:
        rank = len(p.buffer.shape)
        if p.buffer.name in names:
            found.append(start if first else start + rank - 1)
        start += rank
    return found
