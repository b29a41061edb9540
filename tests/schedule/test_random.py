"""Random steps on small kernels: what the prover lets pass computes the same."""

from collections.abc import Callable
from itertools import permutations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gen.errors import ScheduleError
from gen.ir.nodes import Allocate, Kernel, LoopKind, Scope
from gen.ir.walk import blocks, loads, loops, walk
from gen.poly.certificate import Scheduled
from gen.reference import primitives as reference
from gen.schedule import examples
from gen.schedule.base import Primitive, StepContext
from gen.schedule.edit.tree import written
from gen.schedule.primitives.add_unit_loop import AddUnitLoop
from gen.schedule.primitives.after import After
from gen.schedule.primitives.auto_unroll import AutoUnroll
from gen.schedule.primitives.before import Before
from gen.schedule.primitives.bind import Bind
from gen.schedule.primitives.blockize import Blockize
from gen.schedule.primitives.cache_read import CacheRead
from gen.schedule.primitives.cache_shared_at import CacheSharedAt
from gen.schedule.primitives.cache_write import CacheWrite
from gen.schedule.primitives.compute_at import ComputeAt
from gen.schedule.primitives.compute_inline import ComputeInline
from gen.schedule.primitives.decompose_padding import DecomposePadding
from gen.schedule.primitives.decompose_reduction import DecomposeReduction
from gen.schedule.primitives.distribute import Distribute
from gen.schedule.primitives.expand import Expand
from gen.schedule.primitives.fission import Fission
from gen.schedule.primitives.fold_storage import FoldStorage
from gen.schedule.primitives.fuse import Fuse
from gen.schedule.primitives.inline_all import InlineAll
from gen.schedule.primitives.merge import Merge
from gen.schedule.primitives.normalize import Normalize
from gen.schedule.primitives.pad import Pad
from gen.schedule.primitives.parallel import Parallel
from gen.schedule.primitives.peel import Peel
from gen.schedule.primitives.receive import Receive
from gen.schedule.primitives.reindex import Reindex
from gen.schedule.primitives.reorder import Reorder
from gen.schedule.primitives.rescale import Rescale
from gen.schedule.primitives.reuse_at import ReuseAt
from gen.schedule.primitives.reverse import Reverse
from gen.schedule.primitives.reverse_compute_at import ReverseComputeAt
from gen.schedule.primitives.reverse_compute_inline import ReverseComputeInline
from gen.schedule.primitives.rfactor import Rfactor
from gen.schedule.primitives.send import Send
from gen.schedule.primitives.set_schedule import SetSchedule
from gen.schedule.primitives.shift import Shift
from gen.schedule.primitives.simple_compute_at import SimpleComputeAt
from gen.schedule.primitives.skew import Skew
from gen.schedule.primitives.split import Split
from gen.schedule.primitives.store_at import StoreAt
from gen.schedule.primitives.store_in import StoreIn
from gen.schedule.primitives.sync_threads import SyncThreads
from gen.schedule.primitives.tensorize import Tensorize
from gen.schedule.primitives.tile import Tile
from gen.schedule.primitives.transform_block_layout import TransformBlockLayout
from gen.schedule.primitives.unroll import Unroll
from gen.schedule.primitives.vectorize import Vectorize

from .support import assert_same, from_spec, start

KERNELS: dict[str, Scheduled] = {
    **{name: from_spec(name)[1] for name in ("blur", "softmax", "matmul", "trmm", "argmax")},
    **{
        name: start(getattr(examples, name))
        for name in ("STENCIL", "ROW_SQUARES", "PAIR", "BLUR", "PADDED", "SUMS")
    },
    "tensorized": start(reference.after(Tensorize.EXAMPLES[0])),
}


TIMES = st.sampled_from(
    ["j, i", "i + j, j", "2 * i - j, i", "i // 2, j, i % 2", "i, j % 3, j", "-i, j // 2, -j"]
)


def a_step(kernel: Kernel) -> st.SearchStrategy[Primitive]:
    """A step on names that the kernel has; most do not apply."""
    names = [loop.var for loop in loops(kernel.body)]
    loop = st.sampled_from(names)
    block = st.sampled_from([b.name for b in blocks(kernel.body)])
    two = st.lists(loop, min_size=2, max_size=2).map(tuple)
    reads = [(b.name, x.buffer) for b in blocks(kernel.body) for x in loads(b.body)]
    cached = st.sampled_from(reads or [("none", "none")])
    stores = [(b.name, t) for b in blocks(kernel.body) for t in sorted(written(b))]
    writes = st.sampled_from(stores)
    sums = [b.name for b in blocks(kernel.body) if b.initialises]
    reduced = list(permutations(sums, 2)) or [("none", "none")]
    at = st.one_of(st.none(), loop)
    few = st.integers(1, 4)
    axis = st.sampled_from(["blockIdx.x", "threadIdx.x", "threadIdx.y"])
    return st.one_of(
        st.builds(Split, loop, st.sampled_from([(None, 2), (None, 3), (None, 2, 2), (4, None)])),
        st.builds(lambda a: Split(a, (None, 3), grid=True), loop),
        st.builds(lambda b, t: SetSchedule(b, f"{{ {b}[i, j] -> [{t}] }}"), block, TIMES),
        st.builds(Fuse, two),
        st.builds(Reorder, two),
        st.builds(Tile, two, st.sampled_from([(2, 3), (4, 1)])),
        st.builds(Unroll, loop, few),
        st.builds(Parallel, loop),
        st.builds(Distribute, loop),
        st.builds(Bind, axis, loop),
        st.builds(SyncThreads, loop),
        st.builds(lambda c, a: CacheSharedAt(c[0], c[1], a), cached, loop),
        st.builds(Vectorize, loop, few, st.integers(1, 2)),
        st.builds(Merge, two),
        st.builds(Fission, loop),
        st.builds(Peel, loop, st.integers(-2, 3)),
        st.builds(Reverse, loop),
        st.builds(Shift, loop, st.integers(-3, 3)),
        st.builds(Skew, two, st.sampled_from([-1, 1, 2])),
        st.builds(AddUnitLoop, block),
        st.builds(Normalize, st.one_of(st.none(), block)),
        st.builds(AutoUnroll, few),
        st.builds(Blockize, loop, st.sampled_from(["nest", "other"])),
        st.builds(ComputeAt, block, loop),
        st.builds(ReverseComputeAt, block, loop),
        st.builds(SimpleComputeAt, block, loop),
        st.builds(After, block, block, at),
        st.builds(Before, block, block, at),
        st.builds(ComputeInline, block),
        st.builds(InlineAll, st.lists(block, max_size=1).map(tuple)),
        st.builds(ReverseComputeInline, block),
        st.builds(DecomposeReduction, block, loop),
        st.builds(Rfactor, block, loop),
        st.builds(Rescale, st.sampled_from(reduced)),
        st.builds(StoreAt, st.sampled_from([t for _, t in stores]), at),
        st.builds(Expand, st.sampled_from([t for _, t in stores]), loop.map(lambda x: (x,))),
        st.builds(FoldStorage, st.sampled_from([t for _, t in stores]), st.integers(0, 1), few),
        st.builds(StoreIn, block, st.sampled_from(["i % 2", "j, i", "i % 3, j", "i + j, j"])),
        st.builds(
            TransformBlockLayout, block, st.sampled_from(["i // 2, i % 2", "j, i", "j + i, i"])
        ),
        st.builds(lambda c: Reindex(*c), cached),
        st.builds(
            Pad,
            block,
            st.sampled_from([{"j": 2}, {"p": 3}, {"k": 2}, {"i": 2}, {"d0": 3}, {"d1": 2}]),
        ),
        st.builds(DecomposePadding, block),
        st.builds(
            ReuseAt,
            st.sampled_from([buffer for _, buffer in (*stores, *reads)]),
            loop,
            layout=st.sampled_from(["auto", "circular", "halves"]),
        ),
        st.builds(lambda c, a: CacheRead(c[0], c[1], a), cached, at),
        st.builds(lambda c, a: CacheWrite(c[0], c[1], a), writes, at),
    )


RANKS = {name: start(getattr(examples, name)) for name in ("NEIGHBOURS", "RING")}


def a_step_of_ranks(kernel: Kernel) -> st.SearchStrategy[Primitive]:
    """A step for kernels whose loops are distributed, mostly one that is about that."""
    ranks = [x for x in loops(kernel.body) if x.kind is LoopKind.DISTRIBUTED]
    local = [b for x in walk(kernel.body) if isinstance(x, Allocate) for b in x.buffers]
    read = [
        (b.name, loop.var)
        for loop in ranks
        for b in local
        if any(x.buffer == b.name for x in loads(loop.body))
    ]
    if not read:
        return a_step(kernel)
    block = st.sampled_from([b.name for b in blocks(kernel.body)])
    to = st.sampled_from([(1,), (-1,), (1, -1)])
    sent = st.builds(
        lambda pair, to, blocking, periodic: Send(*pair, to, blocking=blocking, periodic=periodic),
        st.sampled_from(read),
        to,
        st.booleans(),
        st.booleans(),
    )
    messages = [b.name for b in local if b.scope is Scope.MESSAGE]
    received = st.builds(Receive, st.sampled_from(messages or ["none"]), block, st.booleans())
    about = received if messages else sent
    return st.integers(0, 2).flatmap(lambda k: about if k else a_step(kernel))


EACH = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # a failure is a step sequence that is short already
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("name", KERNELS)
@EACH
@given(st.data())
def test_steps_keep_what_a_kernel_computes(name: str, data: st.DataObject) -> None:
    keep(KERNELS[name], a_step, data)


@pytest.mark.parametrize("name", RANKS)
@settings(EACH, max_examples=4)
@given(st.data())
def test_ranks_compute_the_same(name: str, data: st.DataObject) -> None:
    keep(RANKS[name], a_step_of_ranks, data)


def keep(
    plain: Scheduled,
    draw: Callable[[Kernel], st.SearchStrategy[Primitive]],
    data: st.DataObject,
) -> None:
    """Takes steps that are proved, and compares."""
    state, done = plain, 0
    for _ in range(12):
        step = data.draw(draw(state.kernel))
        try:
            state = step(state, StepContext(plain.kernel))
        except ScheduleError:
            continue
        done += 1
        if done == 4:
            break
    if done:
        assert_same(plain.kernel, state.kernel, sizes=(1, 2, 5))
