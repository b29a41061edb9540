"""All primitives, by name and alias.

Input: a name. Output: the primitive's class. Invariant: every file in `primitives/` is listed here.
"""

from .base import Primitive
from .edit import CannotApply, nearest
from .primitives.add_unit_loop import AddUnitLoop
from .primitives.align import Align
from .primitives.blockize import Blockize
from .primitives.cache_read import CacheRead
from .primitives.cache_write import CacheWrite
from .primitives.compute_at import ComputeAt
from .primitives.compute_inline import ComputeInline
from .primitives.decompose_reduction import DecomposeReduction
from .primitives.fission import Fission
from .primitives.fuse import Fuse
from .primitives.merge import Merge
from .primitives.parallel import Parallel
from .primitives.peel import Peel
from .primitives.prefetch import Prefetch
from .primitives.reorder import Reorder
from .primitives.reuse_at import ReuseAt
from .primitives.reverse import Reverse
from .primitives.reverse_compute_at import ReverseComputeAt
from .primitives.reverse_compute_inline import ReverseComputeInline
from .primitives.rfactor import Rfactor
from .primitives.scan import Scan
from .primitives.set_scope import SetScope
from .primitives.shift import Shift
from .primitives.skew import Skew
from .primitives.split import Split
from .primitives.stream import Stream
from .primitives.tensorize import Tensorize
from .primitives.tile import Tile
from .primitives.transform_layout import TransformLayout
from .primitives.unroll import Unroll
from .primitives.vectorize import Vectorize

PRIMITIVES: tuple[type[Primitive], ...] = (
    Split,
    Align,
    Fuse,
    Reorder,
    Tile,
    Unroll,
    Merge,
    Fission,
    Peel,
    Reverse,
    Shift,
    Skew,
    AddUnitLoop,
    Parallel,
    Vectorize,
    Stream,
    Prefetch,
    ComputeAt,
    ReverseComputeAt,
    ComputeInline,
    ReverseComputeInline,
    CacheRead,
    CacheWrite,
    SetScope,
    TransformLayout,
    ReuseAt,
    DecomposeReduction,
    Rfactor,
    Scan,
    Blockize,
    Tensorize,
)

BY_NAME: dict[str, type[Primitive]] = {
    name: primitive for primitive in PRIMITIVES for name in (primitive.name, *primitive.aliases)
}


def lookup(name: str) -> type[Primitive]:
    """The primitive of that name or alias. Raises CannotApply where there is none."""
    if name not in BY_NAME:
        raise CannotApply(f"there is no primitive '{name}'", nearest(name, BY_NAME))
    return BY_NAME[name]
