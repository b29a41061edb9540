"""Escape: elements that each leave a loop by themselves, after as many turns as each takes.

Looks for: a loop that is left for a flag (`language.body.leaving`), inside of loops over elements
that each have a flag of their own. All blocks that share these loops go with it. Processor: lanes
along the innermost of them, around the loop that is left, so that it ends when all lanes are done;
four vectors, since each turn waits for the one before; what a lane keeps is in registers; threads
over the outermost loop. GPU: a thread an element.
"""

from itertools import takewhile

from ....ir.algebra import conjuncts
from ....ir.nodes import Allocate, Binary, BinaryOp, Block, Cast, Load, Loop, LoopKind, Store
from ....ir.walk import accessed, blocks, statements, targets, variables
from ..parts.draft import Declined, Draft
from ..parts.launches import settled, threads
from ..parts.nest import Nest
from ..parts.threads import threaded


def processor(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    line = _elements(nest)[-1]
    inside = tuple(block.name for block in blocks(line))
    vectors, lanes = f"{nest.name}.vector", f"{nest.name}.lane"
    draft = draft.step("split", loop=line.var, factors=[None, "$compared"], as_=[vectors, lanes])
    draft = draft.step("vectorize", loop=lanes, width="$compared").proved()
    for buffer in _kept(draft, line):
        draft = draft.if_sound("set_scope", buffer=buffer, scope="register")
    return (threaded(draft.settled(*inside), nest.name),)


def gpu(draft: Draft, nest: Nest) -> tuple[Draft, ...]:
    chosen = _elements(nest)
    return (settled(threads(draft, [loop.var for loop in chosen], nest.name)),)


def _elements(nest: Nest) -> tuple[Loop, ...]:
    """The loops over elements, outermost first. Raises Declined."""
    if any(loop.kind is not LoopKind.SERIAL for loop in nest.loops):
        raise Declined("its loops are taken")
    found = tuple(takewhile(_of_elements, nest.loops))
    if not found:
        raise Declined("no loop around it is over elements that leave a loop inside")
    return found


def _of_elements(loop: Loop) -> bool:
    """Whether each iteration of the loop has a flag of its own."""
    flags = [block for block in blocks(loop) if _is_flag(block)]
    return bool(flags) and all(_moves(loop, flag) for flag in flags)


def _moves(loop: Loop, flag: Block) -> bool:
    pairs = zip(flag.iters, flag.bindings, strict=True)
    own = {it.name for it, bound in pairs if loop.var in variables(bound)}
    return any(own & variables(target) for target in targets(flag.body))


def _is_flag(block: Block) -> bool:
    """Whether it is 0 from when its condition ceases to hold."""
    match block.body:
        case Store(place, Cast(_, Binary(BinaryOp.AND) as value)):
            match conjuncts(value)[0]:
                case Binary(BinaryOp.NE, Load(buffer, at)):
                    return (buffer, at) == (place.buffer, place.indices)
    return False


def _kept(draft: Draft, line: Loop) -> tuple[str, ...]:
    """The temporaries that the blocks of a loop use, in textual order."""
    used = accessed(line)
    found = (n for n in statements(draft.kernel.body) if isinstance(n, Allocate))
    return tuple(b.name for n in found for b in n.buffers if b.name in used)
