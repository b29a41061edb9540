"""Matrix products, batched or not: sums over one axis of what two arrays hold.

Looks for: a reduction over one loop whose terms read two arrays, each of which lacks an axis of the
result that the other one has; and what is made of it alone, element by element. GPU: a block of
threads a tile of the result, of which each thread has a part in registers. Strips of both arrays
pass through shared memory. Past their ends tiles have zeros, so that nothing inside asks for them;
the last strip, which may end early, is by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from ...ir.index.linear import constant
from ...ir.nodes import Expr, Store, Update, Var
from ...ir.text.print_expr import spec_text
from ..edit.tree import readers
from .parts.apart import apart
from .parts.draft import Declined, Draft
from .parts.launches import in_launch, kept, settled
from .parts.nest import ArrayAccess, Nest, nest_of

STRIP = 16  # terms of a strip
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
    nest = nest_of(draft.kernel, product.block)
    many = _at_least(64, [nest.size(var) for var in (product.rows, product.columns)])
    if many is not None and many not in draft.elsewhere:
        yield _tiled(draft, product, 4).under(*many)
    yield _tiled(draft, product, 2)


def _at_least(least: int, sizes: Sequence[Expr | None]) -> tuple[str, ...] | None:
    """The conditions that sizes are as large; none that all is known of. None where they cannot
    hold, or cannot be asked.
    """
    known = [None if size is None else constant(size) for size in sizes]
    asked = [size for size, value in zip(sizes, known, strict=True) if value is None]
    if None in asked or any(value is not None and value < least for value in known):
        return None
    return tuple(f"{spec_text(size)} >= {least}" for size in asked if size is not None)


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
    if columns not in own & right.variables - left.variables or not only:
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
    for axis, loop in (("i", row), ("j", column)):
        parts = [f"{name}.{axis}{part}" for part in "brt"]
        draft = draft.step("split", loop=loop, factors=[None, each, SIDE], as_=parts)
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
    draft, sums = _last_apart(draft, name)
    draft = _written(draft, name, last, each, sums)
    for part, strip in sums.items():
        draft = _through_shared(draft, product, copies, part, strip)
    for copy in copies:
        draft = draft.step("compute_inline", block=copy)
    if tile in kept(draft) and last == product.last:
        draft = draft.step("set_scope", buffer=tile, scope="local")
    return settled(_unrolled(draft, name, last, sums)).proved()


def _last_apart(draft: Draft, name: str) -> tuple[Draft, dict[str, str]]:
    """With the last strip by itself; the sums of whole strips and of the last, with their loops."""
    known = draft.blocks
    parts = [f"{name}.whole", f"{name}.rest"]
    draft = draft.step("peel", loop=f"{name}.lb", at=-1, as_=parts)
    (whole,) = (block for block in draft.blocks if block not in known)
    return draft, {whole: parts[0], name: parts[1]}


def _own(draft: Draft, block: str, part: str) -> str:
    """The loop of a part of the tile around a sum, of which `peel` has renamed some."""
    at = ("it", "jt", "lr", "ir", "jr").index(part) - 5  # all are around the sum alone
    return nest_of(draft.kernel, block).loops[at].var


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


def _axes(draft: Draft, product: _Product) -> tuple[int, ...]:
    """Those of the result that rows and columns are along."""
    nest = nest_of(draft.kernel, product.block)
    indices = nest.writes[0].indices
    return tuple(indices.index(Var(var)) for var in (product.rows, product.columns))


def _written(draft: Draft, name: str, last: str, each: int, sums: Mapping[str, str]) -> Draft:
    """With tiles written by the threads that have them."""
    both = nest_of(draft.kernel, last).loops[-2:]
    for axis, loop in zip("ij", both, strict=True):
        parts = [f"{last}.{axis}{part}" for part in "rt"]
        draft = draft.step("split", loop=loop.var, factors=[each, SIDE], as_=parts)
    order = [f"{last}.{part}" for part in ("it", "jt", "ir", "jr")]
    draft = draft.step("reorder", loops=order)
    for part, axis in (("it", "y"), ("jt", "x")):
        own = [_own(draft, block, part) for block in sums]
        loops = [f"{name}.init.{part}", *own, f"{last}.{part}"]
        draft = draft.step("bind", loops=loops, axis=f"threadIdx.{axis}")
    return draft


def _through_shared(
    draft: Draft, product: _Product, copies: list[str], block: str, strip: str
) -> Draft:
    """With what a sum reads in a strip, in tiles of shared memory."""
    suffix = block.removeprefix(product.block)
    for copy, read in zip(copies, (product.left, product.right), strict=True):
        tile = f"{copy}_tile{suffix}"
        draft = draft.step("cache_shared_at", block=block, buffer=copy, loop=strip, as_=tile)
        if read.stride(product.term) == 1 and read is product.right:
            draft = draft.step("storage_align", buffer=tile, axis=-2, factor=STRIP, offset=1)
        draft = draft.step("unroll", loop=f"{tile}.turn")
    return draft


def _unrolled(draft: Draft, name: str, last: str, sums: Mapping[str, str]) -> Draft:
    """With a thread's elements written out, and the terms of a whole strip."""
    whole, rest = sums
    written = [f"{last}.ir", f"{last}.jr", f"{name}.init.ir", f"{name}.init.jr"]
    parts = [(whole, "lr"), *((block, part) for block in (whole, rest) for part in ("ir", "jr"))]
    for loop in (*written, *(_own(draft, block, part) for block, part in parts)):
        draft = draft.step("unroll", loop=loop)
    return draft
