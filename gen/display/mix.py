"""What innermost loops of machine code are made of.

Input: a compiled function. Output: a Mix for each innermost loop: what lies between a jump back and
its target, if no other such jump does.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from ..targets.target import CompiledFunction, Does, Instruction


@final
@dataclass(frozen=True, slots=True)
class Mix:
    """A loop from an offset into a function. line: of the source, of most of its instructions that
    work on data. kinds: how many do what.
    """

    function: str
    offset: str
    line: int
    instructions: int
    kinds: tuple[tuple[Does, int], ...]

    def __getitem__(self, kind: Does) -> int:
        return dict(self.kinds).get(kind, 0)

    @property
    def weight(self) -> tuple[int, int, int]:
        """The more, the denser."""
        return self[Does.VECTOR], self[Does.SCALAR], -self.instructions

    def __str__(self) -> str:
        parts = ", ".join(f"{self[kind]} {kind.value}" for kind in Does if self[kind])
        return f"{self.instructions} instructions" + (f": {parts}" if parts else "")


def mixes(function: CompiledFunction) -> Iterator[Mix]:
    """Of loops that work on data, in the order of the code."""
    code = function.instructions
    at = {i.offset: k for k, i in enumerate(code)}
    loops = {(at[to], k) for k, i in enumerate(code) if at.get(to := _target(i), k + 1) <= k}
    for first, last in sorted(loops):
        if not any(first <= a and b <= last and (a, b) != (first, last) for a, b in loops):
            found = _mix(function.name, code[first : last + 1])
            if found.kinds:
                yield found


def _target(instruction: Instruction) -> str:
    """Where a jump goes, as offsets are written; anything else for what is none."""
    name, _, rest = instruction.text.partition(" ")
    return rest.split()[-1] if name[:1] in "jbct" and rest.split() else ""


def _mix(function: str, code: Sequence[Instruction]) -> Mix:
    counted = Counter(kind for i in code for kind in i.kinds)
    lines = Counter(i.line for i in code if i.kinds and i.line)
    line = lines.most_common(1)[0][0] if lines else 0
    kinds = tuple((kind, counted[kind]) for kind in Does if counted[kind])
    return Mix(function, code[0].offset, line, len(code), kinds)


def main_loop(functions: Sequence[CompiledFunction]) -> Mix | None:
    """The innermost loop with the most vector instructions, the shortest of these; scalar ones
    count where there is no other.
    """
    found = [mix for function in functions for mix in mixes(function)]
    return max(found, key=lambda mix: mix.weight, default=None)
