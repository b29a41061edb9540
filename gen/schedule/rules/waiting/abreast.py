"""Abreast: rows of which each result waits for the one before, several at a time.

Looks for: a line whose iterations depend on each other, as those of a recurrence do, and rows that
do not. Processor: the line outside of some rows, which are written out, so that while one waits
another computes; threads over the rows. A filter along each row of an image is such a one.
"""

from ....ir.nodes import LoopKind
from ....ir.walk import variables
from ..parts.apart import apart
from ..parts.draft import Declined, Draft
from ..parts.nest import Nest, nest_of
from ..parts.threads import threaded

ROWS = 4
"""Where rows lie a power of two apart, all of them are in one set of the first-level cache, which
has room for eight lines: those that are read, and those that are written."""


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    if nest.of_data or any(loop.kind is not LoopKind.SERIAL for loop in nest.loops):
        raise Declined("its loops are taken, or data says how far they run")
    draft = apart(draft, nest.name)
    own = nest_of(draft.kernel, nest.name).own
    if len(own) < 2:
        raise Declined("it has no rows and lines of its own")
    row, line = own[-2:]
    if row.var in variables(line.lower) | variables(line.upper):
        raise Declined("its rows are of different lengths")
    if draft.if_sound("parallel", loop=line.var) is not draft:
        raise Declined("the results of a row do not wait for each other")
    outer, inner = f"{row.var}0", f"{row.var}1"
    made = draft.step("split", loop=row.var, factors=[None, ROWS], as_=[outer, inner])
    made = made.step("reorder", loops=[outer, line.var, inner]).proved()
    return (threaded(made.step("unroll", loop=inner), nest.name),)
