"""All primitives, by name and alias.

Input: a name. Output: the primitive's class. Invariant: every file in `primitives/` is listed here.
"""

import re

from .base import Primitive
from .edit.tree import CannotApply, nearest
from .primitives.add_unit_loop import AddUnitLoop
from .primitives.after import After
from .primitives.align import Align
from .primitives.annotate import Annotate
from .primitives.auto_unroll import AutoUnroll
from .primitives.barrier_at import BarrierAt
from .primitives.before import Before
from .primitives.between import Between
from .primitives.bind import Bind
from .primitives.blockize import Blockize
from .primitives.cache_local_at import CacheLocalAt
from .primitives.cache_read import CacheRead
from .primitives.cache_shared_at import CacheSharedAt
from .primitives.cache_write import CacheWrite
from .primitives.cascade import Cascade
from .primitives.compute_at import ComputeAt
from .primitives.compute_inline import ComputeInline
from .primitives.copy_at import CopyAt
from .primitives.cross_thread_reduction import CrossThreadReduction
from .primitives.decompose_padding import DecomposePadding
from .primitives.decompose_reduction import DecomposeReduction
from .primitives.device_to_host import DeviceToHost
from .primitives.distribute import Distribute
from .primitives.double_buffer import DoubleBuffer
from .primitives.fission import Fission
from .primitives.fold_storage import FoldStorage
from .primitives.fuse import Fuse
from .primitives.gpu import Gpu
from .primitives.host_to_device import HostToDevice
from .primitives.inline_all import InlineAll
from .primitives.merge import Merge
from .primitives.normalize import Normalize
from .primitives.pack import Pack
from .primitives.pad import Pad
from .primitives.parallel import Parallel
from .primitives.peel import Peel
from .primitives.pipeline import Pipeline
from .primitives.prefetch import Prefetch
from .primitives.receive import Receive
from .primitives.reindex import Reindex
from .primitives.reorder import Reorder
from .primitives.rescale import Rescale
from .primitives.reuse_at import ReuseAt
from .primitives.reverse import Reverse
from .primitives.reverse_compute_at import ReverseComputeAt
from .primitives.reverse_compute_inline import ReverseComputeInline
from .primitives.rfactor import Rfactor
from .primitives.scan import Scan
from .primitives.send import Send
from .primitives.set_schedule import SetSchedule
from .primitives.set_scope import SetScope
from .primitives.set_size import SetSize
from .primitives.shift import Shift
from .primitives.simple_compute_at import SimpleComputeAt
from .primitives.skew import Skew
from .primitives.split import Split
from .primitives.storage_align import StorageAlign
from .primitives.store_at import StoreAt
from .primitives.store_in import StoreIn
from .primitives.stream import Stream
from .primitives.sync_threads import SyncThreads
from .primitives.tensorize import Tensorize
from .primitives.tile import Tile
from .primitives.tile_gpu import TileGpu
from .primitives.transform_block_layout import TransformBlockLayout
from .primitives.transform_layout import TransformLayout
from .primitives.unannotate import Unannotate
from .primitives.unroll import Unroll
from .primitives.vectorize import Vectorize

PRIMITIVES: tuple[type[Primitive], ...] = (
    Split,
    Align,
    Fuse,
    Reorder,
    Tile,
    Unroll,
    AutoUnroll,
    Merge,
    Fission,
    Peel,
    Reverse,
    Shift,
    Skew,
    SetSchedule,
    AddUnitLoop,
    TransformBlockLayout,
    Normalize,
    Parallel,
    Vectorize,
    Stream,
    Prefetch,
    Annotate,
    Unannotate,
    ComputeAt,
    ReverseComputeAt,
    SimpleComputeAt,
    After,
    Before,
    Between,
    ComputeInline,
    InlineAll,
    ReverseComputeInline,
    CacheRead,
    CacheWrite,
    Reindex,
    SetScope,
    StoreAt,
    TransformLayout,
    StoreIn,
    FoldStorage,
    StorageAlign,
    SetSize,
    ReuseAt,
    Pack,
    Pad,
    DecomposePadding,
    DecomposeReduction,
    Rfactor,
    Scan,
    Cascade,
    Rescale,
    Bind,
    Gpu,
    TileGpu,
    SyncThreads,
    BarrierAt,
    CacheSharedAt,
    CacheLocalAt,
    DoubleBuffer,
    Pipeline,
    CrossThreadReduction,
    Blockize,
    Tensorize,
    CopyAt,
    HostToDevice,
    DeviceToHost,
    Distribute,
    Send,
    Receive,
)

BY_NAME: dict[str, type[Primitive]] = {
    name: primitive for primitive in PRIMITIVES for name in (primitive.name, *primitive.aliases)
}

ELSEWHERE = {
    "compute_root": "what no step moves or inlines is computed whole, before all that reads it",
    "specialize": "a recipe has `variants`, each for the calls that its `when` says",
    "gpu_blocks": "`bind` takes the axis, as in bind: {loop: y.i, axis: blockIdx.x}",
    "gpu_threads": "`bind` takes the axis, as in bind: {loop: y.i, axis: threadIdx.x}",
    "stage_mem": "`cache_read` stages what a block reads, `cache_write` what it writes",
    "expand_dim": "a temporary is as large as it must be where it lives; `store_at` says where",
    "bind_expr": "give the expression a temporary of its own in `compute`",
    "fuse_loops": "`merge` makes one loop of siblings, `fuse` of loops in one another",
    "unroll_jam": "split the outer loop, reorder its inner part inwards and unroll that",
    "unroll_and_jam": "split the outer loop, reorder its inner part inwards and unroll that",
}
"""What Halide, Exo and compilers have a name for, and no primitive here is: what to do instead."""


def lookup(name: str) -> type[Primitive]:
    """The primitive of that name or alias, CINN's `ComputeAt` for `compute_at` too. Raises
    CannotApply where there is none.
    """
    plain = re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()
    known = name if name in BY_NAME else plain
    if known not in BY_NAME:
        hint = ELSEWHERE.get(known) or nearest(known, BY_NAME)
        raise CannotApply(f"there is no primitive '{name}'", hint)
    return BY_NAME[known]
