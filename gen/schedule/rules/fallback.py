"""The fallback: takes anything, and does what the proof allows.

Processor: a short innermost loop is written out; threads over the outermost loops of which the
iterations are independent, be they other blocks', too. GPU: a thread for each point of the loops
that may run at once; those around them are the host's, and launch each iteration anew; a nest in
which nothing may run at once is one thread's.
"""

from collections.abc import Iterator, Sequence

from ...ir.algebra import sub
from ...ir.index.linear import constant
from ...ir.nodes import Update
from ...ir.walk import blocks, targets
from .parts.apart import apart
from .parts.draft import Declined, Draft
from .parts.launches import in_launch, one_thread, rows, settled, threads
from .parts.nest import Nest, nest_of
from .parts.patches import innermost, patches, reads_around
from .parts.threads import threaded

SHORT = 8  # turns of a loop that is written out
FEW = 32  # threads of a block where each runs a nest: so that there are more blocks


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    return (threaded(_written_out(draft, nest), nest.name),)


def _written_out(draft: Draft, nest: Nest) -> Draft:
    """With the innermost loop unrolled, if it is short; a loop of which data says for which of its
    values the block runs is none.
    """
    by_data = {nest.loop_of.get(var) for var in nest.compared}
    last = next((loop for loop in reversed(nest.loops) if loop.var not in by_data), None)
    if last is None or last.var in nest.shared:
        return draft
    turns = constant(sub(last.upper, last.lower))
    short = turns is not None and turns <= SHORT
    return draft.if_sound("unroll", loop=last.var) if short else draft


def gpu(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    draft = apart(draft, nest.name)
    for way in (_points, _nests, _alone):
        try:
            return (settled(way(draft, nest.name)),)
        except Declined as declined:
            reason = declined
    raise reason


def _points(draft: Draft, name: str) -> Draft:
    """A thread for each point of the block's own loops that may run at once."""
    around = (patches,) if reads_around(nest_of(draft.kernel, name)) else ()
    for chosen, order in _choices(draft, name):
        for launch in (*around, threads, rows):
            try:
                before = draft.step("reorder", loops=order) if order else draft
                made = launch(before, chosen, name).proved()
            except Declined:
                continue
            return _in_register(made, name)
    raise Declined("none of its own loops may run at once")


def _in_register(draft: Draft, name: str) -> Draft:
    """With what a thread sums up in a register until it is whole."""
    block, thread = draft.blocks[name], innermost(draft, name)
    if not isinstance(block.body, Update) or not block.initialises:
        return draft
    for buffer in [target.buffer for target in targets(block.body)]:
        own = {"block": name, "buffer": buffer, "at": thread, "scope": "local"}
        draft = draft.if_sound("cache_write", **own, as_=f"{buffer}_own")
    return draft


def _choices(draft: Draft, name: str) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Loops to run at once, best first, and the order that they need, if it is another one."""
    nest = nest_of(draft.kernel, name)
    own = [loop.var for loop in nest.own]
    line = nest.loop_of.get(nest.inner or "")
    free = [nest.loop_of[var] for var in nest.spatial if nest.loop_of[var] in own]
    free = [loop for loop in free if loop != line] + [loop for loop in free if loop == line]

    def order(chosen: Sequence[str]) -> Sequence[str]:
        wanted = [*chosen, *(loop for loop in own if loop not in chosen)]
        return wanted if wanted != own else []

    if free:
        yield free, order(free)
    alone = [loop for loop in free if _sound(draft, [loop], order([loop]), name)]
    if len(alone) > 1 and alone != free:
        yield alone, order(alone)
    for loop in alone:
        yield [loop], order([loop])
    inside = [loop for loop in own if loop in free and _sound(draft, [loop], [], name)]
    for k, loop in enumerate(own):
        if loop in inside:
            run = [x for x in own[k:] if x in inside]
            for end in range(len(run), 0, -1):
                yield run[:end], []


def _sound(draft: Draft, chosen: Sequence[str], order: Sequence[str], name: str) -> bool:
    try:
        before = draft.step("reorder", loops=order) if order else draft
        threads(before, chosen, name).proved()
    except Declined:
        return False
    return True


def _nests(draft: Draft, name: str) -> Draft:
    """A thread for each iteration of a loop that several blocks share, outermost first."""
    nest = nest_of(draft.kernel, name)
    for loop in nest.loops:
        if loop.var in nest.shared:
            try:
                return threads(draft, [loop.var], name, FEW).proved()
            except Declined:
                continue
    raise Declined("no loop around it may run at once")


def _alone(draft: Draft, name: str) -> Draft:
    """One thread: for the block, where others in its nest have launches, or for the whole nest."""
    nest = nest_of(draft.kernel, name)
    others = [block.name for loop in nest.loops[:1] for block in blocks(loop)]
    for other in reversed(others):
        if other != name and not in_launch(nest_of(draft.kernel, other)):
            draft = _perhaps_points(draft, other)
    several = any(in_launch(nest_of(draft.kernel, other)) for other in others)
    return one_thread(draft, name, whole=not several).proved()


def _perhaps_points(draft: Draft, name: str) -> Draft:
    try:
        return _points(draft, name)
    except Declined:
        return draft
