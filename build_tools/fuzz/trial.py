"""One kernel under steps, tried: scheduled and proved, then interpreted, compiled and compared.

Input: a draft, what chooses the steps, and options. Output: which steps were taken and which were
refused, and the failure if there is one (`checks`). Where a target's rules choose, `by_rules` does.
"""

import signal
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType

from gen import language as specs
from gen.errors import TilesmithError
from gen.ir.nodes import Kernel
from gen.ir.rules.verify import IRError, verify
from gen.lower.finish import interpretable
from gen.lower.lower import lower
from gen.poly.certificate import Scheduled
from gen.poly.limit import ProofTimeout
from gen.poly.workbench import Workbench
from gen.schedule.base import Primitive, StepContext
from gen.schedule.recipe import apply
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

from .by_rules import ByRules
from .checks import LOWERING, Checks, Failed, Options, Outcome, Refusal, shape_of
from .draft import Draft
from .failure import Failure, Sizes

Choose = Callable[[Kernel], Primitive | None]
"""The next step on a tree; None where there are enough."""

_TRIAL_SECONDS = 120  # of this process, which interprets: some tiles in tiles run mostly empty


def trial(
    draft: Draft,
    choose: Choose,
    options: Options,
    seed: int = 0,
    only: Sequence[Sizes] | None = None,
) -> Outcome:
    """Tries the draft under the steps that `choose` gives; refused ones are passed over.

    seed: of arrays, sizes and the order of parallel iterations; only: these sizes instead of drawn
    ones. No step is asked for where rules choose (`Options.by_rules`). Raises SpecError where the
    draft is no spec.
    """
    if options.by_rules:
        return ByRules(draft, options, seed, only).run()
    return _Trial(draft, options, seed, only, choose).run()


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


class _Trial(Checks):
    """Of steps that are drawn on the tree as it is then."""

    def __init__(
        self,
        draft: Draft,
        options: Options,
        seed: int,
        only: Sequence[Sizes] | None,
        choose: Choose,
    ) -> None:
        super().__init__(draft, options, seed, only)
        self.choose = choose

    def _tried(self, spec: specs.KernelSpec) -> bool:
        plain = self._guarded("build", lambda: specs.build(spec, specs.choices(spec)[0]))
        bench = Workbench()
        context = StepContext(plain, self._prove, bench)
        state = self._plain(plain, bench)
        if state is None:
            return False
        while True:
            step = self._guarded("drawing", partial(self.choose, state.kernel))
            if step is None:
                break
            state = self._step(step, state, context)
        if self.taken:
            self._compare("the tree", state.kernel)
        lowered = self._lowered(state)
        if lowered is None:
            return False
        proved = self._proves(LOWERING, lowered, context)
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
            return self._guarded(LOWERING, work)
        except TilesmithError as error:
            self._refuse(None, LOWERING, "check", error)
            return None

    def _finished(self, kernel: Kernel) -> Kernel:
        """As lowering: what it makes wrong has failed, and so has what it refuses."""
        try:
            finishing = Cpu(Level.V3).finishing
            return self._guarded("finishing", lambda: interpretable(kernel, finishing))
        except TilesmithError as error:
            raise Failed(Failure(f"finishing: {shape_of(error.message)}", str(error))) from error

    def _step(self, step: Primitive, state: Scheduled, context: StepContext) -> Scheduled:
        """The state after a step; the one before it where the step is refused."""
        self.asked = None
        try:
            new = self._guarded(step.name, lambda: apply(state, [step], context)[-1])
        except Failed as failed:
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
