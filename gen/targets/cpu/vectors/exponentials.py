"""Exponentials of vector statements that follow each other, computed in fours.

Input: blocks under one guard, all of whose lanes are active, as unrolled loops leave them. Output:
the vectors of their exponentials, which are computed before the first of them: each is a chain of
operations, and one after the other they wait for themselves. Invariant: what they are taken of is
not stored by these blocks; where an array is computed in place, nothing is read that was written.
"""

from collections.abc import Mapping, Sequence

from ....ir.algebra import dtype_of
from ....ir.nodes import Block, Call, Expr, Function, Select
from ....ir.types import DType
from ....ir.walk import loads, targets, walk
from .expr import Vectors
from .forms import by_lane
from .masks import All
from .prelude import Parts

FOUR = 4  # what `ts_exp_by_four_f32` computes


def exponentials(blocks: Sequence[Block], code: Vectors) -> Mapping[Expr, Parts]:
    """The statements that compute them are added to `code.before`."""
    each = code.shape.parts(DType.FLOAT32.bits)
    whole = isinstance(code.mask, All) and not code.shape.partial(DType.FLOAT32.bits)
    if not whole or FOUR % each or each == FOUR:  # four of one vector come together anyway
        return {}
    nodes = [n for b in blocks for n in walk(b.body)]
    if any(isinstance(n, Select) for n in nodes):  # a side may be what must not be read
        return {}
    calls = list(dict.fromkeys(n for n in nodes if isinstance(n, Call) and _fits(n, code)))
    stored = {t.buffer for b in blocks for t in targets(b.body)}
    if any(load.buffer in stored for call in calls for load in loads(call)):
        return {}
    taken = calls[: len(calls) * each // FOUR * FOUR // each]
    if not taken:
        return {}
    parts = [p for call in taken for p in code.parts(call.args[0])]
    found = code.before.by_four(tuple(parts))
    return {call: found[k * each : (k + 1) * each] for k, call in enumerate(taken)}


def _fits(call: Call, code: Vectors) -> bool:
    is_exp = call.function is Function.EXP and dtype_of(call) is DType.FLOAT32
    return is_exp and code.varies(call) and not by_lane(call, code.lane)
