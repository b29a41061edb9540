"""Products of two matrices, where one comes as a transpose, or the result has few columns.

Input: a draft, a block, and the sum that it alone reads. Output: drafts for such calls. Those of a
transpose ask for it: their vectors walk a matrix down its columns, and no other variant's strides
are so. What has few columns would leave most lanes of a tile empty.

What sums up in another order than tiles do is left out where a call may run in parts along the
rows.
"""

from collections.abc import Iterator

from ....ir.nodes import Var
from ....ir.walk import blocks
from .draft import Draft
from .inner import inner_products, short_lines
from .nest import ArrayAccess, Nest
from .strips import by_strips
from .sums import SumRead, ordered, own_loops
from .tiles import RegisterTile, by_tiles

THIN = 4  # columns that are few
COLUMNS = 8  # ... for inner products
ACROSS = 4  # columns of a tile of these
EXACT = (2, 3)  # columns that have a tile of their own
MORE = 48  # terms that a column more than a tile's has to have: else the sums of lanes cost more
FEW = 4  # rows that pay for a copy of the columns
LONG = 16  # terms that pay for the sum of a vector's lanes
DEEP = 128  # ... and for inner products in place of a copy
LOW = 32  # rows of which inner products are as fast as tiles
TALL = 192  # rows that pay for a copy of a transpose element by element


def operands(each: SumRead, rows: str, line: str) -> tuple[ArrayAccess, ArrayAccess] | None:
    """The matrix with the rows and that with the line, of a sum of their products and no more."""
    i, j = Var(each.meant[rows]), Var(each.meant[line])
    terms = tuple(map(Var, each.nest.reduction))
    if len(terms) != 1 or len(each.nest.reads) != 2:
        return None
    high = [read for read in each.nest.reads if read.indices == (i, *terms)]
    wide = [read for read in each.nest.reads if read.indices == (*terms, j)]
    return (high[0], wide[0]) if high and wide else None


def special(
    draft: Draft, reader: Nest, each: SumRead, line: str, rows: str, sizes: tuple[str, str, str]
) -> Iterator[Draft]:
    """sizes: how many rows, places of the line and terms there are, as conditions say it."""
    high, long, terms = sizes
    if high != draft.loop_dim:
        thin = (f"{long} <= {THIN}", f"{terms} >= {LONG}")
        yield by_strips(draft, reader, (each,), rows).under(*thin)
        if reader.name not in {b.name for b in blocks(draft.context.plain.body)}:
            # The reader is a copy: an epilogue would be written out in each of these variants.
            for count in EXACT:
                exact = _columns(draft, reader, each, line, rows, count)
                yield exact.under(f"{long} == {count}", f"{terms} >= {LONG}", f"{high} >= {FEW}")
        columns = _columns(draft, reader, each, line, rows, ACROSS)
        many = (f"{terms} >= {LONG}", f"{terms} >= {MORE} * ({long} - {ACROSS})")
        yield columns.under(f"{long} <= {COLUMNS}", *many, f"{high} >= {FEW}")
        inner = inner_products(draft, reader, (each,), line, rows)
        yield inner.under(f"{terms} >= {DEEP}", f"{high} < {LOW}")
    tile = RegisterTile(line, rows, turned=True)
    yield by_tiles(draft, reader, (each,), tile).under(f"{high} < {TALL}", f"{long} > 1")


def _columns(draft: Draft, reader: Nest, each: SumRead, line: str, rows: str, across: int) -> Draft:
    """By inner products of rows with a copy of the few columns, each of which lies side by side."""
    found = operands(each, rows, line)
    assert found is not None
    copy = f"{each.name}_{found[1].buffer}"
    to = {"buffer": found[1].buffer, "as_": copy}
    draft = draft.step("cache_read", block=each.name, **to)
    draft = draft.step("transform_layout", buffer=copy, order=[1, 0])
    draft = ordered(draft, tuple(reversed(own_loops(draft, copy)))).settled(copy)
    return short_lines(draft, reader, each, line, rows, across)
