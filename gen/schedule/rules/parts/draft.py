"""A recipe as a rule writes it: its lines, and the tree that they lead to.

Input: a plain kernel. Output: the text of steps that apply to it. Whether they are right, nobody
has said yet: `proved` asks, and whoever takes the recipe asks again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import final

from ....errors import TilesmithError
from ....ir.nodes import Block, Kernel
from ....ir.rules.verify import verify
from ....ir.walk import blocks
from ....poly.certificate import Scheduled
from ....poly.prove import prove
from ....poly.witness import Refused
from ...base import StepContext, to_yaml, trace
from ...recipe import step_of


class Declined(Exception):
    """Why a rule is not for a kernel; or which of its steps does not apply, and why."""


@final
@dataclass(frozen=True, slots=True)
class Draft:
    """Steps for one variant.

    state: after them, unproved. parameters: those that the target defines. lines: the steps, as
    YAML. when: conditions on sizes, all of which hold. done: blocks that a rule has scheduled.
    loop_dim: the dim, if the kernel has one, to which all axes of a call beyond its own flatten. A
    call may run in parts of any length along it, so that no order of sums may depend on it.
    elsewhere: conditions, beyond these, for which there are variants already. sound: whether the
    proof has taken it.
    """

    state: Scheduled
    context: StepContext
    parameters: Mapping[str, int]
    lines: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    done: frozenset[str] = field(default_factory=frozenset)
    loop_dim: str | None = None
    elsewhere: frozenset[tuple[str, ...]] = field(default_factory=frozenset)
    sound: bool = False

    @property
    def kernel(self) -> Kernel:
        return self.state.kernel

    @property
    def blocks(self) -> dict[str, Block]:
        return {block.name: block for block in blocks(self.kernel.body)}

    def step(self, primitive: str, **arguments: object) -> "Draft":
        """With one step more; `as_` is the argument `as`. Raises Declined where it does not
        apply.
        """
        given = {key.rstrip("_"): value for key, value in arguments.items()}
        line = f"{primitive}: {to_yaml(given)}"
        try:
            step = step_of(primitive, given, self.parameters)
            state = trace(step, self.state, self.context)[-1].state
        except TilesmithError as error:
            raise Declined(error.message) from error
        return replace(self, state=state, lines=(*self.lines, line), sound=False)

    def perhaps(self, primitive: str, **arguments: object) -> "Draft":
        """With one step more where it applies."""
        try:
            return self.step(primitive, **arguments)
        except Declined:
            return self

    def if_sound(self, primitive: str, **arguments: object) -> "Draft":
        """With one step more where it applies and the proof takes it."""
        try:
            return self.step(primitive, **arguments).proved()
        except Declined:
            return self

    def under(self, *conditions: str) -> "Draft":
        """For the sizes alone for which these hold, too."""
        return replace(self, when=tuple(dict.fromkeys((*self.when, *conditions))))

    def settled(self, *names: str) -> "Draft":
        """With these blocks done."""
        return replace(self, done=self.done | set(names))

    def proved(self) -> "Draft":
        """The draft, if its tree is right for all sizes. Raises Declined."""
        if self.sound:
            return self
        try:
            verify(self.state.kernel)
            prove(self.context.plain, self.state, self.context.bench)
        except TilesmithError as error:
            raise Declined(error.message) from error
        except Refused as refused:
            raise Declined(f"the proof refuses it: {refused.reason}") from refused
        return replace(self, sound=True)
