"""One kernel under steps, tried: scheduled and proved, then interpreted, compiled and compared.

Input: a draft, what chooses the steps, and options. Output: which steps were taken and which were
refused, and the failure if there is one. What raises anything but a TilesmithError has failed, and
so has what computes something else than `reference` does.
"""

import re
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from types import FrameType
from typing import TypeVar, final

from gen import language as specs
from gen.errors import ScheduleError, TilesmithError
from gen.ir.interpret.interp import InterpError
from gen.ir.interpret.interp import run as interpret
from gen.ir.nodes import Intent, Kernel
from gen.ir.rules.verify import IRError, verify
from gen.lower.finish import interpretable
from gen.lower.index_limits import index_limits
from gen.lower.lower import lower
from gen.poly.certificate import Scheduled
from gen.poly.checks.in_place import in_place
from gen.poly.limit import ProofTimeout, ProverError
from gen.poly.witness import Refused
from gen.poly.workbench import Workbench
from gen.schedule.base import Primitive, Prover, StepContext
from gen.schedule.recipe import apply
from gen.targets.c import library
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

from .cases import Case, case_of, difference, is_small, sizes_of
from .draft import Draft
from .failure import NO_ANSWER, Failure, Sizes, isolated, place_of
from .memory import drawn_pairs, run_guarded

T = TypeVar("T")
Choose = Callable[[Kernel], Primitive | None]
"""The next step on a tree; None where there are enough."""

_ARRAYS = 3  # of the sizes of a refusal's example
_SECONDS = 60  # of all runs of compiled code
_COMPILER_SECONDS = 300  # for code that is unrolled a thousand times
_TRIAL_SECONDS = 120  # of this process, which interprets: some tiles in tiles run mostly empty
_CRASHES = (IRError, InterpError, ProverError)  # errors for the user that only a bug leads to
_LOWERING = "lowering"
_PLAIN = "the plain schedule"


@final
@dataclass(frozen=True, slots=True)
class Options:
    """How cases are tried. levels: that code is compiled for. cases: sizes that are compared.
    judge: whether refused schedules are interpreted, to tell needless refusals. flags: for the C
    compiler.
    """

    prove: Prover
    levels: tuple[Level, ...] = ()
    cases: int = 5
    judge: bool = True
    flags: tuple[str, ...] = ("-O1",)


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


class _Failed(Exception):
    """Carries a Failure out of a trial."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.kind)
        self.failure = failure


def trial(
    draft: Draft,
    choose: Choose,
    options: Options,
    seed: int = 0,
    only: Sequence[Sizes] | None = None,
) -> Outcome:
    """Tries the draft under the steps that `choose` gives; refused ones are passed over.

    seed: of arrays, sizes and the order of parallel iterations; only: these sizes instead of drawn
    ones. Raises SpecError where the draft is no spec.
    """
    return _Trial(draft, options, seed, only).run(choose)


class TooLong(BaseException):
    """Whatever is under way has to end. It is no Exception, which would be a crash."""


def limited(
    draft: Draft,
    choose: Choose,
    options: Options,
    seed: int = 0,
    only: Sequence[Sizes] | None = None,
) -> Outcome:
    """As `trial`, but for the limit of processor time, of which the outcome tells."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, _TRIAL_SECONDS)
    try:
        return trial(draft, choose, options, seed, only)
    except TooLong:
        reason = f"no end within {_TRIAL_SECONDS} seconds"
        return Outcome((), (Refusal(None, "the trial", "time", reason, None),), None)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def replayed(steps: Sequence[Primitive]) -> Choose:
    """These steps in turn, refused ones passed over."""
    rest = iter(steps)
    return lambda kernel: next(rest, None)


class _Trial:
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

    def run(self, choose: Choose) -> Outcome:
        spec = specs.loads(self.draft.text(), "drawn.yaml")
        try:
            proved, failure = self._run(spec, choose), None
        except _Failed as failed:
            proved, failure = False, failed.failure
        return Outcome(tuple(self.taken), tuple(self.refusals), failure, proved, self.compared)

    def _run(self, spec: specs.KernelSpec, choose: Choose) -> bool:
        """Whether what is emitted was proved."""
        plain = self._guarded("build", lambda: specs.build(spec, specs.choices(spec)[0]))
        bench = Workbench()
        context = StepContext(plain, self._prove, bench)
        try:
            self._guarded(_PLAIN, lambda: index_limits([(plain, None)]))
            state = self._guarded(_PLAIN, lambda: bench.start(plain))
        except TilesmithError as error:  # of numbers that leave no room for sizes
            self._refuse(None, _PLAIN, "check", error)
            return False
        except Refused as error:
            self._refuse(None, _PLAIN, "proof", error)
            return False
        if not self._proves(_PLAIN, state, context):
            return False
        self._compare(_PLAIN, plain)
        while True:
            step = self._guarded("drawing", partial(choose, state.kernel))
            if step is None:
                break
            state = self._step(step, state, context)
        if self.taken:
            self._compare("the tree", state.kernel)
        lowered = self._lowered(state)
        if lowered is None:
            return False
        proved = self._proves(_LOWERING, lowered, context)
        if proved or self.refusals[-1].needless is False:
            # Steps are the recipe's to choose, lowering is not: what it makes wrong has failed.
            self._compare("the lowered tree", lowered.kernel)
            self._compare("the tree that is emitted", self._finished(lowered.kernel))
            for level in self.options.levels:
                self._compile(lowered.kernel, level)
        return proved

    def _lowered(self, state: Scheduled) -> Scheduled | None:
        def work() -> Scheduled:
            lowered = lower(state, Cpu(Level.V3).lowering)
            verify(lowered.kernel, lowered=True)
            return lowered

        self.asked = None
        try:
            return self._guarded(_LOWERING, work)
        except TilesmithError as error:
            self._refuse(None, _LOWERING, "check", error)
            return None

    def _finished(self, kernel: Kernel) -> Kernel:
        """As lowering: what it makes wrong has failed, and so has what it refuses."""
        try:
            finishing = Cpu(Level.V3).finishing
            return self._guarded("finishing", lambda: interpretable(kernel, finishing))
        except TilesmithError as error:
            raise _Failed(Failure(f"finishing: {shape_of(error.message)}", str(error))) from error

    # ------------------------------------------------------------ steps and proofs

    def _prove(self, plain: Kernel, state: Scheduled, bench: Workbench) -> None:
        self.asked = state
        self.options.prove(plain, state, bench)
        self.asked = None

    def _step(self, step: Primitive, state: Scheduled, context: StepContext) -> Scheduled:
        """The state after a step; the one before it where the step is refused."""
        self.asked = None
        try:
            new = self._guarded(step.name, lambda: apply(state, [step], context)[-1])
        except _Failed as failed:
            self.taken.append(step)  # so that the recipe reproduces it
            raise failed from None
        except ProofTimeout as error:
            self._refuse(step, step.name, "time", error)
            return state
        except TilesmithError as error:
            by = "verify" if isinstance(error.__cause__, IRError) else "check"
            self._refuse(step, step.name, by if self.asked is None else "proof", error)
            return state
        self.taken.append(step)
        return new

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
        judged = (self.options.judge or name == _LOWERING) and "a race" not in reason
        if judged and self.asked is not None:
            self._know(error)
            needless = self._differs(self.asked.kernel) is None
        self.refusals.append(Refusal(step, name, by, shape_of(reason), needless))

    def _guarded(self, what: str, work: Callable[[], T]) -> T:
        """The result of some work; a crash is a failure, an error for the user is raised."""
        try:
            return work()
        except _Failed:
            raise
        except Exception as error:
            if isinstance(error, TilesmithError | Refused) and not isinstance(error, _CRASHES):
                raise
            kind = f"crash in {what}: {type(error).__name__} at {place_of(error)}"
            raise _Failed(Failure(kind, "".join(traceback.format_exception(error)))) from error

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

    def _compare(self, what: str, kernel: Kernel) -> None:
        wrong = self._guarded(what, lambda: self._differs(kernel))
        if wrong is not None:
            raise _Failed(replace(wrong, kind=f"{what} is wrong"))

    def _differs(self, kernel: Kernel) -> Failure | None:
        """The first case in which the interpreter disagrees, or raises what wrong kernels do."""
        for case in self._cases():
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

    def _compile(self, kernel: Kernel, level: Level) -> None:
        what = f"the code for {level.value}"
        cases, seed = self._cases(), self.seed

        random = Random(seed)
        arrays = [p.buffer.name for p in kernel.parameters]
        packed = arrays if random.random() < 0.6 else [a for a in arrays if random.random() < 0.5]
        beside = [p for p in kernel.parameters if p.buffer.name not in packed]
        vectors = all(p.intent is Intent.IN and len(p.buffer.shape) <= 1 for p in beside)
        given = arrays if packed and vectors else packed  # callers copy vectors beside these
        pairs = in_place(kernel)
        shared = frozenset(name for pair in pairs for name in pair)
        flags = self.options.flags

        def code() -> library.Compiled:
            return jit.compile_kernel(kernel, level, packed=packed, shared=shared, flags=flags)

        def made() -> bool:
            code()
            return True

        def work() -> Failure | None:
            compiled = code()
            for case in cases:
                wrong = run_guarded(compiled, case, random, given)
                if wrong is not None:
                    return Failure(f"{what} is wrong", wrong, case.sizes)
                chosen = drawn_pairs(pairs, random)
                if chosen:
                    names = ", ".join(f"{a} is {b}" for a, b in chosen)
                    wrong = run_guarded(compiled, case, random, given, chosen)
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
                raise _Failed(replace(failure, kind=kind))


def shape_of(reason: str) -> str:
    """A reason without its step, names and numbers, so that alike ones are counted together."""
    words = re.sub(r"^\w+ \(.*?\): ", "", reason.splitlines()[0])
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'", "'_'", words))
