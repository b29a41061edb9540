"""copy_at: a copy between memories, in a loop."""

from typing import Literal

from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..examples import BLUR, TWICE
from .cache_local_at import CacheLocalAt
from .cache_read import CacheRead
from .cache_shared_at import CacheSharedAt


class CopyAt(Primitive):
    """Copies what a block reads from a buffer in one iteration of a loop to other memory, and lets
    the block read that.

    Stands for `cache_shared_at`, `cache_local_at` or a `cache_read`, by the scope; as Tiramisu's
    command of that name.
    """

    block: str
    loop: str
    buffer: str
    scope: Literal["global", "shared", "local"] = "global"
    as_: str | None = None

    def apply(self, state: Scheduled) -> Steps:
        at = self.block, self.buffer, self.loop
        match self.scope:
            case "shared":
                return (CacheSharedAt(*at, self.as_),)
            case "local":
                return (CacheLocalAt(*at, self.as_),)
            case "global":
                return (CacheRead(*at, "auto", self.as_),)

    EXAMPLES = (
        Example(
            "Into memory that any thread could read",
            BLUR,
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- copy_at: {block: y, loop: y.i_0, buffer: t, as: s}",
        ),
        Example(
            "A loop that is not around the block",
            TWICE,
            "- copy_at: {block: y, loop: t.i, buffer: t}",
            refused="loop 't.i' is not around block 'y'",
        ),
    )
