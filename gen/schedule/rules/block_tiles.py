"""Matrix products, batched or not: sums over one axis of what two arrays hold.

Looks for: a reduction over one loop whose terms read two arrays, each of which lacks an axis of the
result that the other one has; and what is made of it alone, element by element. GPU: a block of
threads a tile of the result, of which each thread has a part in registers. Strips of both arrays
pass through shared memory, the next one copied while this one is multiplied. Past their ends tiles
have zeros, so that nothing inside asks for them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from ...ir.nodes import Store, Update, Var
from ...ir.text.print_expr import expr_to_text
from ..edit.tree import loop_named, readers
from .parts.apart import apart
from .parts.draft import Declined, Draft
from .parts.launches import in_launch, kept, settled
from .parts.nest import ArrayAccess, Nest, nest_of

STRIP = 8  # terms of a strip
SIDE = 16  # threads of a block along an axis of the result


@final
@dataclass(frozen=True, slots=True)
class _Product:
    """block: the sum. last: what takes its elements one by one; the block itself, where nothing
    does. rows, columns: its variables that one factor alone has. term: that of the sum.
    """

    block: str
    last: str
    rows: str
    columns: str
    term: str
    left: ArrayAccess
    right: ArrayAccess


def gpu(draft: Draft, nest: Nest) -> Iterator[Draft]:
    if in_launch(nest):
        raise Declined("it is in a launch")
    draft = apart(draft, nest.name)
    product = _product(draft, nest.name)
    where = nest_of(draft.kernel, product.block).loop_of
    ends = [
        expr_to_text(loop_named(draft.kernel, where[v]).upper)
        for v in (product.rows, product.columns)
    ]
    many = tuple(f"{end} >= 64" for end in ends)
    if many not in draft.elsewhere:
        yield _tiled(draft, product, 8).under(*many)
    yield _tiled(draft, product, 2)


def _product(draft: Draft, name: str) -> _Product:
    """The product that a block is, or takes. Raises Declined where there is none."""
    block = _sum_of(draft, name)
    nest = nest_of(draft.kernel, block)
    loops = {loop.var for loop in nest.own}  # those that it shares are the host's
    own = {var for var, loop in nest.loop_of.items() if loop in loops}
    if len(nest.reduction) != 1 or not own >= {*nest.reduction} or len(own) != len(loops):
        raise Declined(f"'{block}' is no sum over one loop of its own")
    (term,) = nest.reduction
    factors = [read for read in nest.reads if term in read.variables]
    if len(factors) != 2 or factors[0].buffer == factors[1].buffer:
        raise Declined(f"'{block}' does not read two arrays along '{term}'")
    if not all(isinstance(index, Var) for read in factors for index in read.indices):
        raise Declined(f"'{block}' reads at other places than its axes'")
    columns = nest.inner
    right = next((read for read in factors if columns in read.variables), factors[1])
    left = next(read for read in factors if read is not right)
    only = [var for var in nest.spatial if var in own & left.variables - right.variables]
    if columns not in own - left.variables or not only:
        raise Declined(f"no axis of '{block}' is of one factor alone")
    return _Product(block, name, only[-1], columns, term, left, right)


def _sum_of(draft: Draft, name: str) -> str:
    """The reduction whose elements the block takes one by one, where nothing else does."""
    block = draft.blocks[name]
    if isinstance(block.body, Update):
        return name
    assert isinstance(block.body, Store)
    nest = nest_of(draft.kernel, name)
    for other in reversed(tuple(draft.blocks)):
        users = {reader for reader, _ in readers(draft.state.flow, other)}
        body = draft.blocks[other].body
        if users != {name} or not isinstance(body, Update) or len(body.targets) > 1:
            continue
        taken = [read for read in nest.reads if read.buffer == body.targets[0].buffer]
        wanted = tuple(Var(var) for var in nest.spatial)
        if len(taken) == 1 and sorted(map(str, taken[0].indices)) == sorted(map(str, wanted)):
            return other
    raise Declined("it is no reduction, and takes none element by element")


# ---------------------------------------------------------------- the launch


def _tiled(draft: Draft, product: _Product, each: int) -> Draft:
    """A launch whose threads have `each` by `each` elements."""
    name, size = product.block, each * SIDE
    nest = nest_of(draft.kernel, name)
    row, column, term = (nest.loop_of[v] for v in (product.rows, product.columns, product.term))
    batch = [loop.var for loop in nest.own if loop.var not in (row, column, term)]
    draft, copies = _copied(draft, product, size)
    last, tile = product.last, nest.writes[0].buffer
    if last == name:
        last = tile = f"{name}_tile"
        draft = draft.step("cache_write", block=name, scope="local", as_=tile)
    draft = draft.step("pad", block=name, multiples={product.rows: size, product.columns: size})
    draft = _split(draft, name, row, "i", [None, each, SIDE])
    draft = _split(draft, name, column, "j", [None, each, SIDE])
    draft = draft.step("split", loop=term, factors=[None, STRIP], as_=[f"{name}.lb", f"{name}.lr"])
    order = [f"{name}.{part}" for part in ("ib", "jb", "lb", "it", "jt", "lr", "ir", "jr")]
    draft = draft.step("reorder", loops=[*batch, *order])
    draft = draft.step("reverse_compute_at", block=last, loop=f"{name}.jb")
    for place in sorted(_axes(draft, product), reverse=True):
        draft = draft.step("transform_layout", buffer=tile, axis=place, factors=[None, SIDE])
    blocks = [*batch, f"{name}.ib", f"{name}.jb"]
    for loop, axis in zip(reversed(blocks), "xyz", strict=False):
        draft = draft.step("bind", loop=loop, axis=f"blockIdx.{axis}")
    draft = draft.step("decompose_reduction", block=name, loop=f"{name}.lb")
    draft = _written(draft, product, last, each)
    draft = _through_shared(draft, product, copies)
    if tile in kept(draft) and last == product.last:
        draft = draft.step("set_scope", buffer=tile, scope="local")
    for loop in (f"{name}.init.ir", f"{name}.init.jr", f"{name}.lr", f"{name}.ir", f"{name}.jr"):
        draft = draft.step("unroll", loop=loop)
    return settled(_ahead(draft, product))


def _copied(draft: Draft, product: _Product, size: int) -> tuple[Draft, list[str]]:
    """With factors read through copies, which have zeros past the ends."""
    made: list[str] = []
    for read, var, part in (
        (product.left, product.rows, "rows"),
        (product.right, product.columns, "columns"),
    ):
        copy = f"{product.block}_{part}"
        draft = draft.step("cache_read", block=product.block, buffer=read.buffer, as_=copy)
        axis = read.indices.index(Var(var))
        draft = draft.step("pad", block=copy, multiples={f"d{axis}": size})
        made.append(copy)
    return draft, made


def _split(draft: Draft, name: str, loop: str, axis: str, factors: list[int | None]) -> Draft:
    parts = [f"{name}.{axis}{part}" for part in "brt"]
    return draft.step("split", loop=loop, factors=factors, as_=parts)


def _axes(draft: Draft, product: _Product) -> tuple[int, ...]:
    """Those of the result that rows and columns are along."""
    nest = nest_of(draft.kernel, product.block)
    indices = nest.writes[0].indices
    return tuple(indices.index(Var(var)) for var in (product.rows, product.columns))


def _written(draft: Draft, product: _Product, last: str, each: int) -> Draft:
    """With tiles written by the threads that have them."""
    name = product.block
    nest = nest_of(draft.kernel, last)
    row, column = (loop.var for loop in nest.loops[-2:])
    draft = draft.step("split", loop=row, factors=[each, SIDE], as_=[f"{last}.ir", f"{last}.it"])
    draft = draft.step("split", loop=column, factors=[each, SIDE], as_=[f"{last}.jr", f"{last}.jt"])
    order = [f"{last}.{part}" for part in ("it", "jt", "ir", "jr")]
    draft = draft.step("reorder", loops=order)
    for part, axis in (("it", "y"), ("jt", "x")):
        loops = [f"{name}.init.{part}", f"{name}.{part}", f"{last}.{part}"]
        draft = draft.step("bind", loops=loops, axis=f"threadIdx.{axis}")
    return draft.step("unroll", loop=f"{last}.ir").step("unroll", loop=f"{last}.jr")


def _through_shared(draft: Draft, product: _Product, copies: list[str]) -> Draft:
    name = product.block
    for copy in copies:
        shared = f"{copy}_tile"
        draft = draft.step(
            "cache_shared_at", block=name, buffer=copy, loop=f"{name}.lb", as_=shared
        )
    for copy, read in zip(copies, (product.left, product.right), strict=True):
        draft = draft.step("compute_inline", block=copy)
        if read.stride(product.term) == 1 and read is product.right:
            draft = draft.step(
                "storage_align", buffer=f"{copy}_tile", axis=-2, factor=STRIP, offset=1
            )
        draft = draft.step("unroll", loop=f"{copy}_tile.turn")
    return draft


def _ahead(draft: Draft, product: _Product) -> Draft:
    """With a strip copied while the one before it is multiplied, where that is right."""
    loop = f"{product.block}.lb"
    tiles = [f"{product.block}_{part}_tile" for part in ("rows", "columns")]
    ahead = draft
    try:
        for tile in tiles:
            ahead = ahead.step("double_buffer", buffer=tile, loop=loop)
        return ahead.step("pipeline", loop=loop, blocks=tiles).proved()
    except Declined:
        return draft.proved()
