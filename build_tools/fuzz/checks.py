"""A kernel and what is made of it, interpreted and compiled beside the evaluator.

Input: a draft, trees and options. Output: an Outcome. What raises anything but a TilesmithError
has failed, and so has what computes something else than the evaluator does.
"""

import re
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TypeVar, final

from gen import language as specs
from gen.errors import ScheduleError, TilesmithError
from gen.ir.interpret.interp import InterpError
from gen.ir.interpret.interp import run as interpret
from gen.ir.nodes import Intent, Kernel
from gen.ir.rules.verify import IRError
from gen.lower.index_limits import index_limits
from gen.poly.certificate import Scheduled
from gen.poly.checks.in_place import in_place
from gen.poly.limit import ProofTimeout, ProverError
from gen.poly.witness import Refused
from gen.poly.workbench import Workbench
from gen.schedule.base import Primitive, Prover, StepContext
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level
from gen.targets.target import Target

from .cases import Array, Case, case_of, difference, is_small, sizes_of
from .draft import Draft
from .failure import NO_ANSWER, Failure, Sizes, isolated, place_of
from .memory import drawn_pairs, run_guarded

T = TypeVar("T")
Call = Callable[[Case, Mapping[str, Array]], None]
"""Of compiled code, for a case, its arrays laid somewhere."""

PLAIN = "the plain schedule"
LOWERING = "lowering"

_ARRAYS = 3  # of the sizes of a refusal's example
_SECONDS = 60  # of all runs of compiled code
_COMPILER_SECONDS = 300  # for code that is unrolled a thousand times
_CRASHES = (IRError, InterpError, ProverError)  # errors for the user that only a bug leads to


@final
@dataclass(frozen=True, slots=True)
class Options:
    """How cases are tried. levels: that code is compiled for. cases: sizes that are compared.
    judge: whether refused schedules are interpreted, to tell needless refusals. flags: for the C
    compiler. by_rules: the targets whose rules choose the recipe; none where steps are drawn. run:
    those whose code is loaded and called as well, all variants of a kernel at once.
    """

    prove: Prover
    levels: tuple[Level, ...] = ()
    cases: int = 5
    judge: bool = True
    flags: tuple[str, ...] = ("-O1",)
    by_rules: tuple[Target, ...] = ()
    run: tuple[Target, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """A step, or a proof apart from the steps, that was refused.

    by: `check`, `verify`, `proof` or `time`. needless: whether the refused tree computes the right
    thing at all sizes tried; None where there is no such tree, and for races, which the
    interpreter cannot judge: it has no two iterations at once.
    """

    step: Primitive | None
    primitive: str
    by: str
    reason: str
    needless: bool | None


@final
@dataclass(frozen=True, slots=True)
class Outcome:
    """taken: the steps that were proved; proved: whether what is emitted was; compared: how many
    times what a tree or its code computes was compared.
    """

    taken: tuple[Primitive, ...]
    refusals: tuple[Refusal, ...]
    failure: Failure | None
    proved: bool = False
    compared: int = 0


class Failed(Exception):
    """Carries a Failure out of a trial."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.kind)
        self.failure = failure


class Checks(ABC):
    """The state of one trial."""

    def __init__(
        self, draft: Draft, options: Options, seed: int, only: Sequence[Sizes] | None
    ) -> None:
        self.draft, self.options, self.seed = draft, options, seed
        self.chosen = sizes_of(draft, options.cases, Random(seed)) if only is None else only
        self.known: list[Case] | None = None
        self.taken: list[Primitive] = []
        self.refusals: list[Refusal] = []
        self.asked: Scheduled | None = None
        self.compared = 0
        self.arrays = 1 if only is None else _ARRAYS

    def run(self) -> Outcome:
        spec = specs.loads(self.draft.text(), "drawn.yaml")
        try:
            proved, failure = self._tried(spec), None
        except Failed as failed:
            proved, failure = False, failed.failure
        return Outcome(tuple(self.taken), tuple(self.refusals), failure, proved, self.compared)

    @abstractmethod
    def _tried(self, spec: specs.KernelSpec) -> bool:
        """Whether what is emitted was proved."""

    def _plain(self, plain: Kernel, bench: Workbench) -> Scheduled | None:
        """The plain schedule, proved and compared; None where it is refused."""
        context = StepContext(plain, self._prove, bench)
        try:
            self._guarded(PLAIN, lambda: index_limits([(plain, None)]))
            state = self._guarded(PLAIN, lambda: bench.start(plain))
        except TilesmithError as error:  # of numbers that leave no room for sizes
            self._refuse(None, PLAIN, "check", error)
            return None
        except Refused as error:
            self._refuse(None, PLAIN, "proof", error)
            return None
        if not self._proves(PLAIN, state, context):
            return None
        self._compare(PLAIN, plain)
        return state

    def _prove(self, plain: Kernel, state: Scheduled, bench: Workbench) -> None:
        self.asked = state
        self.options.prove(plain, state, bench)
        self.asked = None

    def _proves(self, name: str, state: Scheduled, context: StepContext) -> bool:
        try:
            self._guarded(name, lambda: self._prove(context.plain, state, context.bench))
        except (Refused, ProofTimeout) as error:
            self._refuse(None, name, "time" if isinstance(error, ProofTimeout) else "proof", error)
            return False
        return True

    def _refuse(self, step: Primitive | None, name: str, by: str, error: Exception) -> None:
        needless = None
        reason = error.message if isinstance(error, TilesmithError) else str(error)
        judged = (self.options.judge or name == LOWERING) and "a race" not in reason
        if judged and self.asked is not None:
            self._know(error)
            needless = self._differs(self.asked.kernel) is None
        self.refusals.append(Refusal(step, name, by, shape_of(reason), needless))

    def _guarded(self, what: str, work: Callable[[], T]) -> T:
        """The result of some work; a crash is a failure, an error for the user is raised."""
        try:
            return work()
        except Failed:
            raise
        except Exception as error:
            if isinstance(error, TilesmithError | Refused) and not isinstance(error, _CRASHES):
                raise
            kind = f"crash in {what}: {type(error).__name__} at {place_of(error)}"
            raise Failed(Failure(kind, "".join(traceback.format_exception(error)))) from error

    # ------------------------------------------------------------ comparing

    def _cases(self) -> list[Case]:
        if self.known is None:
            self.known = [case for sizes in self.chosen for case in self._of(sizes, self.arrays)]
        return self.known

    def _know(self, error: Exception) -> None:
        """The sizes of a refusal's example are tried from now on: others may be too small for what
        it says to happen. Several arrays, since small numbers may agree by chance.
        """
        refused = error if isinstance(error, Refused) else error.__cause__
        if not isinstance(refused, Refused) or refused.witness is None:
            return
        named = refused.witness.sizes
        sizes = {name: named.get(name, 1) for name in (*self.draft.dims, *self.draft.numbers)}
        known = self._cases()
        if self.draft.allows(sizes) and is_small(sizes) and all(c.sizes != sizes for c in known):
            known += self._of(sizes, _ARRAYS)

    def _of(self, sizes: Sizes, count: int) -> list[Case]:
        """Cases of these sizes with several arrays; none where no result is said or exact."""
        tried = (case_of(self.draft, sizes, self.seed + k) for k in range(count))
        return [case for case in tried if case is not None]

    def _compare(self, what: str, kernel: Kernel, cases: Sequence[Case] | None = None) -> None:
        """cases: those that the kernel is for; by default all."""
        wrong = self._guarded(what, lambda: self._differs(kernel, cases))
        if wrong is not None:
            raise Failed(replace(wrong, kind=f"{what} is wrong"))

    def _differs(self, kernel: Kernel, cases: Sequence[Case] | None = None) -> Failure | None:
        """The first case in which the interpreter disagrees, or raises what wrong kernels do."""
        for case in self._cases() if cases is None else cases:
            given = {p: a for p, a in case.arrays.items() if self.draft.arrays[p] != "out"}
            try:
                got = interpret(kernel, given, case.scalars, dims=case.dims, seed=self.seed)
                wrong = difference(got, case)
                self.compared += 1
            except (InterpError, IRError, ScheduleError) as error:
                wrong = error.message
            if wrong is not None:
                return Failure("interpreted", wrong, case.sizes)
        return None

    def _compile(self, kernel: Kernel, level: Level, cases: Sequence[Case] | None = None) -> None:
        random = Random(self.seed)
        arrays = [p.buffer.name for p in kernel.parameters]
        packed = arrays if random.random() < 0.6 else [a for a in arrays if random.random() < 0.5]
        beside = [p for p in kernel.parameters if p.buffer.name not in packed]
        vectors = all(p.intent is Intent.IN and len(p.buffer.shape) <= 1 for p in beside)
        given = arrays if packed and vectors else packed  # callers copy vectors beside these
        pairs = in_place(kernel)
        shared = frozenset(name for pair in pairs for name in pair)
        flags = self.options.flags

        def code() -> Call:
            made = jit.compile_kernel(kernel, level, packed=packed, shared=shared, flags=flags)

            def call(case: Case, arrays: Mapping[str, Array]) -> None:
                threads, stream = random.randint(1, 4), random.choice((None, None, True, False))
                made(arrays, case.scalars, dims=case.dims, threads=threads, stream=stream)

            return call

        what = f"the code for {level.value}"
        self._run(what, code, self._cases() if cases is None else cases, random, given, pairs)

    def _run(
        self,
        what: str,
        code: Callable[[], Call],
        cases: Sequence[Case],
        random: Random,
        packed: Collection[str],
        pairs: Collection[tuple[str, str]],
    ) -> None:
        """Code is compiled, then called, each in a child process. packed, pairs: as of
        `run_guarded`.
        """

        def made() -> bool:
            code()
            return True

        def work() -> Failure | None:
            call = code()
            for case in cases:
                run = partial(call, case)
                wrong = run_guarded(run, case, random, packed)
                if wrong is not None:
                    return Failure(f"{what} is wrong", wrong, case.sizes)
                chosen = drawn_pairs(pairs, random)
                if chosen:
                    names = ", ".join(f"{a} is {b}" for a, b in chosen)
                    wrong = run_guarded(run, case, random, packed, chosen)
                    if wrong is not None:
                        return Failure(f"{what} is wrong in place", f"{names}: {wrong}", case.sizes)
            return None

        try:
            built = isolated(made, _COMPILER_SECONDS)
            if isinstance(built, Failure) and built.kind == NO_ANSWER:
                self.refusals.append(Refusal(None, "the C compiler", "time", built.detail, None))
                return
            failure = built if isinstance(built, Failure) else isolated(work, _SECONDS)
        except TilesmithError as error:
            self._refuse(None, "emission", "check", error)
        else:
            self.compared += len(cases)
            if failure is not None:
                kind = failure.kind.replace("crash", f"crash in {what}")
                kind = kind.replace(NO_ANSWER, f"{NO_ANSWER} of {what}")
                raise Failed(replace(failure, kind=kind))


def shape_of(reason: str) -> str:
    """A reason without its step, names and numbers, so that alike ones are counted together."""
    words = re.sub(r"^\w+ \(.*?\): ", "", reason.splitlines()[0])
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'", "'_'", words))
