"""Who reaches which memory: the host, a launch, its threads, ranks.

Input: the hoisted state after a step. Output: the same, or the reason why a block would not reach a
temporary. The verifier has the same rules for every tree; here a step says them with what to do.
"""

from typing import NoReturn

from ..ir.nodes import Block, Buffer, Load, Loop, LoopKind, Scope, Store
from ..ir.rules.transfers import check_transfers
from ..ir.rules.verify import IRError
from ..ir.walk import accessed, blocks
from ..poly.certificate import Scheduled
from .edit.allocation import home
from .edit.tree import CannotApply, loop_named, loops_around, temporaries, tree, written

_PRIVATE = (Scope.STACK, Scope.REGISTER)
_INSIDE = (Scope.SHARED, Scope.LOCAL, *_PRIVATE)  # a launch has them of its own
_OUTSIDE = (Scope.HEAP, Scope.CONSTANT, Scope.DEVICE)  # made before a launch


def reached(state: Scheduled) -> Scheduled:
    """The state itself. Raises CannotApply for a temporary that some block of it cannot reach."""
    for buffer in temporaries(state.kernel):
        if buffer.scope not in (*_INSIDE, *_OUTSIDE):
            continue
        users = tuple(b for b in blocks(tree(state.kernel)) if buffer.name in accessed(b))
        lives = home(state, buffer.name)
        around = _around(state, loop_named(state.kernel, lives)) if lives else ()
        if buffer.scope in _OUTSIDE:
            _require_outside(state, buffer, users, around)
        if buffer.scope in _INSIDE:
            _require_inside(state, buffer, users, around)
    try:
        check_transfers(state.kernel)
    except IRError as broken:
        raise CannotApply(broken.message) from None
    return state


def _around(state: Scheduled, loop: Loop) -> tuple[Loop, ...]:
    return (*loops_around(tree(state.kernel), loop), loop)


def _launch(around: tuple[Loop, ...]) -> Loop | None:
    return next((loop for loop in around if loop.kind.is_bound), None)


def _threads(around: tuple[Loop, ...]) -> frozenset[LoopKind]:
    return frozenset(loop.kind for loop in around if loop.kind.is_thread)


def _require_outside(
    state: Scheduled, buffer: Buffer, users: tuple[Block, ...], around: tuple[Loop, ...]
) -> None:
    """Of memory that a launch finds, and that the host may only copy if it is the GPU's."""
    name, scope = buffer.name, buffer.scope
    if launch := _launch(around):
        raise CannotApply(
            f"'{name}' is {scope.value} memory, and would be allocated in the launch of loop"
            f" '{launch.var}'",
            f"a launch has memory of its own: `scope` {Scope.SHARED.value} or {Scope.LOCAL.value}",
        )
    for block in users:
        on_gpu = _launch(loops_around(tree(state.kernel), block))
        copies = isinstance(block.body, Store) and isinstance(block.body.value, Load)
        if scope is Scope.DEVICE and not (on_gpu or copies):
            raise CannotApply(
                f"block '{block.name}' would compute with '{name}' outside of a launch, and the"
                " host only copies device memory",
                f"bind the loops around block '{block.name}' before",
            )
        if scope is Scope.CONSTANT and on_gpu and name in written(block):
            raise CannotApply(
                f"block '{block.name}' writes '{name}' in the launch of loop '{on_gpu.var}', and"
                " constant memory is only read there",
                "set_scope: device",
            )


def _require_inside(
    state: Scheduled, buffer: Buffer, users: tuple[Block, ...], around: tuple[Loop, ...]
) -> None:
    """Of memory that a launch, or a thread, has of its own."""
    what = f"'{buffer.name}' is {buffer.scope.value} memory"
    for block in users:
        own = loops_around(tree(state.kernel), block)
        launch = _launch(own)
        if launch is None:
            continue
        if launch is not _launch(around):
            _refuse_launch(buffer, users, launch)
        if buffer.scope in _PRIVATE and (apart := _threads(own) - _threads(around)):
            loop = next(x for x in own if x.kind in apart)
            raise CannotApply(
                f"{what}, which each thread has for itself, and loop '{loop.var}' runs block"
                f" '{block.name}' on several",
                f"`scope: {Scope.SHARED.value}`, or allocate it in loop '{loop.var}'",
            )


def _refuse_launch(buffer: Buffer, users: tuple[Block, ...], launch: Loop) -> NoReturn:
    """Of memory that is a launch's own, and that it would not be alone with."""
    inside = blocks(launch)
    other = next((b for b in users if not any(b is x for x in inside)), None)
    if other is None:
        raise CannotApply(
            f"'{buffer.name}' is {buffer.scope.value} memory, and what is in it would pass from one"
            f" iteration of loop '{launch.var}', a launch, to another"
        )
    move = "compute_at" if buffer.name in written(other) else "reverse_compute_at"
    raise CannotApply(
        f"'{buffer.name}' is {buffer.scope.value} memory, which ends with the launch of loop"
        f" '{launch.var}', and block '{other.name}' uses it outside",
        f"{move}: {{block: {other.name}, loop: {launch.var}}} puts it into the launch",
    )
