"""cross_thread_reduction: the threads of a block reduce together."""

from dataclasses import dataclass
from typing import ClassVar, final

from ...ir.launch import axes
from ...ir.nodes import Const, LoopKind, Update
from ...ir.walk import targets
from ...poly.certificate import Scheduled
from ..base import Example, Layer, Primitive
from ..edit.launches import launch_of
from ..edit.tree import block_named, fresh, loop_named, names, reduction_loops, serial
from ..examples import ROW_SUM
from .bind import Axis, Bind
from .rfactor import Rfactor
from .set_scope import SetScope
from .split import Split
from .sync_threads import SyncThreads


@final
@dataclass(frozen=True)
class CrossThreadReduction(Primitive):
    """Shares a reduction's terms out among threads, and joins their partial results in shared
    memory, `fan` at a time, until one thread joins the last.

    Stands for a split and an rfactor, for one more of each where there are more than `fan` partials
    left, for the barriers between them, and for the loops' `bind`.
    """

    block: str
    loop: str
    threads: int
    fan: int = 8
    axis: Axis = "threadIdx.x"

    name: ClassVar[str] = "cross_thread_reduction"
    aliases: ClassVar[tuple[str, ...]] = ("bind_reduction",)
    layer: ClassVar[Layer] = Layer.ORDER
    EXAMPLES: ClassVar[tuple[Example, ...]] = (
        Example(
            "Four threads a row, joined two at a time",
            ROW_SUM,
            "- bind: {loop: y.i, axis: blockIdx.x}\n"
            "- cross_thread_reduction: {block: y, loop: y.j, threads: 4, fan: 2}",
            after="""\
def row_sum(m, n, x: float32[m, n], y: Out[float32[m]]):
    for y.i in blockIdx.x(m):
        with allocate(y_rf=float32[m, 4] @ shared, y_rf_2=float32[m, 2] @ shared):
            for y.j_0 in range((n + 3) // 4):
                for y.j_1 in threadIdx.x(4):
                    with block(
                        "y_rf",
                        i=spatial(y.i),
                        j_0=reduction(y.j_0),
                        j_1=spatial(y.j_1),
                        where=y.j_0 * 4 + y.j_1 < n,
                        initialises=True,
                        origin=y[i, j_0 * 4 + j_1],
                    ):
                        y_rf[i, j_1] = combine.sum(y_rf[i, j_1], x[i, j_0 * 4 + j_1])
            barrier()
            for y.r_0 in range(2):
                for y.r_1 in threadIdx.x(4):
                    with block(
                        "y_rf_2",
                        i=spatial(y.i),
                        r_0=reduction(y.r_0),
                        r_1=spatial(y.r_1, 2),
                        where=y.r_1 < 2,
                        initialises=True,
                        origin=None,
                    ):
                        y_rf_2[i, r_1] = combine.sum(y_rf_2[i, r_1], y_rf[i, r_0 * 2 + r_1])
            barrier()
            for y.r_2 in range(2):
                with block(
                    "y",
                    i=spatial(y.i),
                    r_2=reduction(y.r_2),
                    initialises=True,
                    origin=None,
                ):
                    y[i] = combine.sum(y[i], y_rf_2[i, r_2])
""",
        ),
        Example(
            "Outside of any launch",
            ROW_SUM,
            "- cross_thread_reduction: {block: y, loop: y.j, threads: 4}",
            refused="loop 'y.j' is in no launch: bind one around it to blocks first",
        ),
        Example(
            "A loop over rows",
            ROW_SUM,
            "- cross_thread_reduction: {block: y, loop: y.i, threads: 4}",
            refused="loop 'y.i' is not a reduction loop of block 'y'",
        ),
    )

    def check(self, state: Scheduled) -> str | None:
        block, loop = block_named(state.kernel, self.block), loop_named(state.kernel, self.loop)
        if not isinstance(block.body, Update) or self.loop not in reduction_loops(block):
            return f"loop '{self.loop}' is not a reduction loop of block '{self.block}'"
        if self.axis.startswith("block"):
            return f"blocks along {self.axis} cannot join what they have"
        if self.threads < 2:
            return f"{self.threads} threads have nothing to join"
        if self.fan < 2:
            return f"fan {self.fan} is less than 2"
        launch = launch_of(state.kernel, loop)
        if launch is None:
            return f"loop '{self.loop}' is in no launch: bind one around it to blocks first"
        there = axes(launch).get(LoopKind(self.axis))
        if isinstance(there, Const) and int(there.value.real) < self.threads:
            return f"the launch has {int(there.value.real)} threads along {self.axis}"
        return serial(loop)

    def expand(self, state: Scheduled) -> tuple[Primitive, ...]:
        used = set(names(state.kernel))
        old = [t.buffer for t in targets(block_named(state.kernel, self.block).body)]

        def new(name: str) -> str:
            found = fresh(name, used)
            used.add(found)
            return found

        steps: list[Primitive] = []
        bound: list[str] = []
        loop, left = self.loop, self.threads
        while left > 1:
            partials = tuple(fresh(f"{buffer}_rf", used) for buffer in old)
            outer, lane = new(f"{loop}_0"), new(f"{loop}_1")
            block, joined = new(f"{self.block}_rf"), new(f"{self.block}.r")
            partials = (block,) if len(old) == 1 else partials
            used.update(partials)
            if loop != self.loop:
                steps.append(SyncThreads(loop=loop, span=self.span))
            steps += [
                Split(loop, (None, left), (outer, lane), span=self.span),
                Rfactor(self.block, lane, as_=(block, joined), span=self.span),
                *(SetScope(buffer, "shared", span=self.span) for buffer in partials),
            ]
            bound.append(lane)
            loop, left = joined, -(-left // self.fan) if left > self.fan else 1
        steps.append(SyncThreads(loop=loop, span=self.span))
        return (*steps, *(Bind(self.axis, lane, span=self.span) for lane in bound))
