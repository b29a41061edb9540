"""copy_at: a copy between memories, in a loop."""

from dataclasses import dataclass
from typing import ClassVar, Literal, final

from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..examples import BLUR, TWICE
from .cache_local_at import CacheLocalAt
from .cache_read import CacheRead
from .cache_shared_at import CacheSharedAt


@final
@dataclass(frozen=True)
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

    name: ClassVar[str] = "copy_at"
    layer: ClassVar[Layer] = Layer.COMMUNICATION
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Into memory that any thread could read",
            BLUR,
            "- split: {loop: y.i, factors: [null, 4]}\n"
            "- copy_at: {block: y, loop: y.i_0, buffer: t, as: s}",
            after="""\
def blur(n, x: float32[n + 2], y: Out[float32[n]]):
    with allocate(t=float32[n + 2]):
        for t.i in range(n + 2):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i_0 in range((n + 3) // 4):
            with allocate(s=float32[n + 2]):
                for s.d0 in range(6):
                    with block(
                        "s",
                        d0=spatial(y.i_0 * 4 + s.d0, n + 2),
                        where=y.i_0 * 4 + s.d0 < n + 2,
                        origin=None,
                    ):
                        s[d0] = t[d0]
                for y.i_1 in range(4):
                    with block("y", i=spatial(y.i_0 * 4 + y.i_1, n), where=y.i_0 * 4 + y.i_1 < n):
                        y[i] = s[i] + s[i + 1] + s[i + 2]
""",
        ),
        Example(
            "A loop that is not around the block",
            TWICE,
            "- copy_at: {block: y, loop: t.i, buffer: t}",
            refused="loop 't.i' is not around block 'y'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        return self._step().check(state)

    def _step(self) -> Primitive:
        at = self.block, self.buffer, self.loop
        match self.scope:
            case "shared":
                return CacheSharedAt(*at, self.as_, span=self.span)
            case "local":
                return CacheLocalAt(*at, self.as_, span=self.span)
            case "global":
                return CacheRead(*at, "auto", self.as_, span=self.span)

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        return (self._step(),)
