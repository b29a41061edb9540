"""What was found out about plain schedules while something is worked on: a build of a kernel, a
command, a trial of the fuzzer.

Input: a plain kernel. Output: its values, its certificate, and the parts of trees that were proved
against it. Invariant: what the prover remembers is in here and nowhere else. So whoever makes a
workbench decides what is proved anew, and its memory goes with it: the maps of a plain schedule are
most of what a process holds.

A kernel is known by its identity, not by its value: 0.0 equals -0.0 and is not the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

from ..ir.nodes import Kernel
from .certificate import Given, Scheduled
from .laws.plain import under
from .values.flow import Logical, flow_of, logical_flow


@final
@dataclass(slots=True, eq=False)
class _Known:
    """Of one plain kernel. proved: digests of parts, as `parts` makes them. values: by what was
    asked, laws and phases.
    """

    plain: Kernel
    proved: set[bytes] = field(default_factory=set)
    values: dict[str, Logical] = field(default_factory=dict)


@final
class Workbench:
    """Answers about any number of plain kernels."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    def _of(self, plain: Kernel) -> _Known:
        known = self._known.get(id(plain))
        if known is None:  # it holds the kernel, so that no other gets its number
            known = self._known[id(plain)] = _Known(plain)
        return known

    def proved(self, plain: Kernel) -> frozenset[bytes]:
        """The parts of trees that were proved against the kernel."""
        return frozenset(self._of(plain).proved)

    def learn(self, plain: Kernel, proved: frozenset[bytes]) -> None:
        """The prover says what it has proved; nobody else does."""
        self._of(plain).proved |= proved

    def values(
        self, plain: Kernel, laws: Sequence[Given] = (), context: Kernel | None = None
    ) -> Logical:
        """The plain schedule's values under the laws, with the phases of `context`.

        Raises Refused where the flow is none that isl can say, where a law does not fit, or would
        change what another block takes.
        """
        known, phases = self._of(plain), (context or plain).phases
        question = repr((tuple(laws), phases))
        if question not in known.values:
            known.values[question] = (
                under(replace(plain, phases=phases), laws, self.values(plain, (), context))
                if laws
                else logical_flow(replace(plain, phases=phases))
            )
        return known.values[question]

    def start(self, plain: Kernel) -> Scheduled:
        """The plain schedule with its certificate. Raises Refused as `values` does."""
        return Scheduled(plain, flow_of(self.values(plain)))

    def __getstate__(self) -> list[tuple[Kernel, frozenset[bytes]]]:
        """What a process that is no fork of this one gets: maps of isl stay where they are."""
        return [(known.plain, frozenset(known.proved)) for known in self._known.values()]

    def __setstate__(self, known: list[tuple[Kernel, frozenset[bytes]]]) -> None:
        self._known = {id(plain): _Known(plain, set(proved)) for plain, proved in known}
