"""fission: a loop over several statements becomes several loops."""

from collections.abc import Sequence
from dataclasses import replace

from ...ir.nodes import Barrier, Delinearize, Loop, Stmt, Transfer, Var
from ...ir.walk import blocks, loops, replace_stmt, seq, substitute
from ...poly.certificate import Scheduled
from ..base import Example, Primitive
from ..edit import tree as edit
from ..edit.tree import CannotApply
from ..examples import PAIR, SHARE, TWICE


class Fission(Primitive):
    """Gives each statement in a loop's body a loop of its own, in the order in which they stood.

    The opposite of `merge`; `as` names the loops. What one statement hands another in the same
    iteration is then kept for all iterations. A barrier between two statements is one between
    their loops. With `before` the loop is cut in two alone: the second part begins with the
    statement that has that block, so what has to stay together does.
    """

    loop: str
    before: str | None = None
    as_: tuple[str, ...] | None = None

    aliases = ("loop_distribution",)

    def apply(self, state: Scheduled) -> Scheduled:
        loop = edit.loop_named(state.kernel, self.loop)
        if any(isinstance(s, Transfer) for s in edit.under(loop)):
            raise CannotApply(f"ranks hand each other messages in loop '{self.loop}'")
        if sum(not isinstance(s, Barrier) for s in edit.under(loop)) < 2:
            raise CannotApply(f"there is one statement in loop '{self.loop}'", _first(loop))
        if isinstance(loop.body, Delinearize):
            raise CannotApply(
                f"loop '{self.loop}' is fused; its parts have no loops of their own",
                "fission before loops are fused",
            )
        groups = self._groups(loop)
        count = sum(not isinstance(s, Barrier) for s in groups)
        if len(self._names(loop)) != count:
            raise CannotApply(f"`as` must give {count} names")
        edit.require_serial(loop)
        edit.require_free_loops(state.kernel, self._names(loop), {self.loop})
        names = self._names(loop)
        unused = iter(names)

        def alone(statement: Stmt) -> Stmt:
            if isinstance(statement, Barrier):
                return statement
            name = next(unused)
            body = substitute(statement, {loop.var: Var(name)})
            return replace(loop, var=name, body=body)

        parts = tuple(map(alone, groups))
        kernel = edit.rebuild(state.kernel, replace_stmt(edit.tree(state.kernel), loop, seq(parts)))
        return Scheduled(kernel, edit.rename_shared(state.flow, {loop.var: names}))

    def _names(self, loop: Loop) -> tuple[str, ...]:
        """By default each is named after its first block."""
        index = loop.var.split(".", 1)[1]
        parted = (s for s in self._groups(loop) if not isinstance(s, Barrier))
        return self.as_ or tuple(f"{blocks(s)[0].name}.{index}" for s in parted)

    def _groups(self, loop: Loop) -> tuple[Stmt, ...]:
        """What goes into a loop of its own, and the barriers between."""
        items = edit.under(loop)
        if self.before is None:
            return items
        at = next((k for k, s in enumerate(items) if _has(s, self.before)), None)
        if at is None:
            known = [block.name for s in items[1:] for block in blocks(s)]
            hint = edit.nearest(self.before, known) or _beginnings(items)
            raise CannotApply(f"block '{self.before}' is not in loop '{self.loop}'", hint)
        if at == 0:
            reason = f"block '{self.before}' is in the loop's first statement"
            raise CannotApply(reason, _beginnings(items))
        return seq(items[:at]), seq(items[at:])

    EXAMPLES = (
        Example(
            "The temporary holds all elements again",
            TWICE,
            "- merge: {loops: [t.i, y.i], as: [z.i]}\n- fission: {loop: z.i, as: [t.i, y.i]}",
        ),
        Example(
            "In two, of which one keeps two statements together",
            PAIR,
            "- merge: {loops: [t.i, y.i, z.i], as: [w.i]}\n- fission: {loop: w.i, before: y}",
        ),
        Example(
            "There is nothing to take apart",
            SHARE,
            "- fission: {loop: t.i}",
            refused="there is one statement in loop 't.i'",
        ),
        Example(
            "A name a loop",
            PAIR,
            "- merge: {loops: [t.i, y.i, z.i], as: [w.i]}\n- fission: {loop: w.i, as: [t.i, y.i]}",
            refused="`as` must give 3 names",
        ),
        Example(
            "There is nothing before the first statement",
            PAIR,
            "- merge: {loops: [t.i, y.i, z.i], as: [w.i]}\n- fission: {loop: w.i, before: t}",
            refused="block 't' is in the loop's first statement",
        ),
    )


def _first(loop: Loop) -> str | None:
    """Which loop inside has to be taken apart before, if there is one."""
    inner = (n for n in loops(loop.body) if len(edit.under(n)) > 1)
    return next((f"fission '{n.var}' first, which has several" for n in inner), None)


def _beginnings(items: Sequence[Stmt]) -> str | None:
    """What the second part may begin with."""
    names = [blocks(s)[0].name for s in items[1:] if blocks(s)]
    return f"the second part may begin with {' or '.join(names)}" if names else None


def _has(s: Stmt, block: str) -> bool:
    return any(b.name == block for b in blocks(s))
