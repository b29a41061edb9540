"""What the vector expressions of one statement need before it."""

from dataclasses import dataclass, field
from typing import final

from ....ir.nodes import Destination
from .masks import First

Parts = tuple[str, ...]


@final
@dataclass(slots=True)
class Prelude:
    """Statements that the vector expressions of one statement need before it. kept: the parts of
    what has been stored into a target that is loaded again.
    """

    lines: list[str] = field(default_factory=list)
    count: int = 0
    counts: dict[str, str] = field(default_factory=dict)
    kept: dict[Destination, Parts] = field(default_factory=dict)

    def first(self, count: str) -> First:
        """The first `count` lanes, counted once; the count is of indices, which do not change."""
        if count not in self.counts:
            self.counts[count] = self.name("first")
            self.lines.append(f"const int64_t {self.counts[count]} = {count};")
        return First(self.counts[count])

    def keep(self, target: Destination, parts: Parts, ctype: str) -> Parts:
        """The parts, in variables that loads of the target take."""
        names = tuple(self.name("kept") for _ in parts)
        self.lines += [f"const {ctype} {n} = {p};" for n, p in zip(names, parts, strict=True)]
        self.kept[target] = names
        return names

    def named(self, parts: Parts, ctype: str, stem: str = "widened") -> Parts:
        """The parts, each in a variable, so that they can be used twice."""
        names = tuple(p if p.isidentifier() else self.name(stem) for p in parts)
        new = [(n, p) for n, p in zip(names, parts, strict=True) if n != p]
        self.lines += [f"const {ctype} {n} = {p};" for n, p in new]
        return names

    def by_four(self, parts: Parts) -> Parts:
        """The parts' exponentials, computed in fours."""
        name = self.name("exps")
        self.lines.append(f"ts_f32 {name}[{len(parts)}] = {{{', '.join(parts)}}};")
        for k in range(0, len(parts), 4):
            self.lines.append(f"ts_exp_by_four_f32({name} + {k});")
        return tuple(f"{name}[{k}]" for k in range(len(parts)))

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def taken(self) -> list[str]:
        """The statements so far, which are then no longer here."""
        lines, self.lines = self.lines, []
        return lines
