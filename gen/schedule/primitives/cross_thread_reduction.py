"""cross_thread_reduction: the threads of a block reduce together."""

from ...ir.launch import axes
from ...ir.nodes import Const, LoopKind, Update
from ...ir.walk import targets
from ...poly.certificate import Scheduled
from ..base import Example, Primitive, Steps
from ..edit import tree as edit
from ..edit.launches import launch_of
from ..edit.tree import CannotApply
from ..examples import ROW_SUM
from .bind import Axis, Bind
from .rfactor import Rfactor
from .set_scope import SetScope
from .split import Split
from .sync_threads import SyncThreads


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

    aliases = ("bind_reduction",)

    def apply(self, state: Scheduled) -> Steps:
        block, loop = (
            edit.block_named(state.kernel, self.block),
            edit.loop_named(state.kernel, self.loop),
        )
        if not isinstance(block.body, Update) or self.loop not in edit.reduction_loops(block):
            raise CannotApply(f"loop '{self.loop}' is not a reduction loop of block '{self.block}'")
        if self.axis.startswith("block"):
            raise CannotApply(f"blocks along {self.axis} cannot join what they have")
        if self.threads < 2:
            raise CannotApply(f"{self.threads} threads have nothing to join")
        if self.fan < 2:
            raise CannotApply(f"fan {self.fan} is less than 2")
        launch = launch_of(state.kernel, loop)
        if launch is None:
            raise CannotApply(
                f"loop '{self.loop}' is in no launch: bind one around it to blocks first"
            )
        there = axes(launch).get(LoopKind(self.axis))
        if isinstance(there, Const) and int(there.value.real) < self.threads:
            raise CannotApply(f"the launch has {int(there.value.real)} threads along {self.axis}")
        edit.require_serial(loop)
        return self._steps(state, [t.buffer for t in targets(block.body)])

    def _steps(self, state: Scheduled, buffers: list[str]) -> Steps:
        used = set(edit.names(state.kernel))

        def new(name: str) -> str:
            found = edit.fresh(name, used)
            used.add(found)
            return found

        steps: list[Primitive] = []
        bound: list[str] = []
        loop, left = self.loop, self.threads
        while left > 1:
            partials = tuple(edit.fresh(f"{buffer}_rf", used) for buffer in buffers)
            outer, lane = new(f"{loop}_0"), new(f"{loop}_1")
            block, joined = new(f"{self.block}_rf"), new(f"{self.block}.r")
            partials = (block,) if len(buffers) == 1 else partials
            used.update(partials)
            if loop != self.loop:
                steps.append(SyncThreads(loop=loop))
            steps += [
                Split(loop, (None, left), (outer, lane)),
                Rfactor(self.block, lane, as_=(block, joined)),
                *(SetScope(buffer, "shared") for buffer in partials),
            ]
            bound.append(lane)
            loop, left = joined, -(-left // self.fan) if left > self.fan else 1
        return (*steps, SyncThreads(loop=loop), *(Bind(self.axis, lane) for lane in bound))

    EXAMPLES = (
        Example(
            "Four threads a row, joined two at a time",
            ROW_SUM,
            "- bind: {loop: y.i, axis: blockIdx.x}\n"
            "- cross_thread_reduction: {block: y, loop: y.j, threads: 4, fan: 2}",
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
