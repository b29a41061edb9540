"""One kernel under steps, tried: scheduled and proved, then interpreted, compiled and compared.

Input: a draft, what chooses the steps, and options. Output: which steps were taken and which were
refused, and the failure if there is one. What raises anything but a TilesmithError has failed, and
so has what computes something else than `reference` does.
"""

import faulthandler
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from gen import jit
from gen import spec as specs
from gen.errors import ScheduleError, TilesmithError
from gen.ir.interp import InterpError
from gen.ir.interp import run as interpret
from gen.ir.nodes import Kernel
from gen.ir.verify import IRError, verify
from gen.lower.lower import lower
from gen.lower.target import Level, Target
from gen.poly.certificate import Scheduled
from gen.poly.flow import plain_flow
from gen.poly.limit import ProofTimeout, ProverError
from gen.poly.witness import Refused
from gen.schedule.base import Context, Primitive, Prover
from gen.schedule.recipe import apply

from . import reference
from .draft import Draft

Array = NDArray[Any]
Sizes = Mapping[str, int]
T = TypeVar("T")
Choose = Callable[[Kernel], Primitive | None]
"""The next step on a tree; None where there are enough."""

SIZES = (0, 1, 2, 3, 5, 8, 17)
MOST_ELEMENTS = 160  # of all sizes' product: the interpreter is slow
_GUARD = 64  # elements before and after each array that a compiled kernel gets
_SECONDS = 60  # of a compilation and its runs
_CRASHES = (IRError, InterpError, ProverError)  # errors for the user that only a bug leads to
_BY_COMPILER = "error: the C compiler refused"
_LOWERING = "lowering"
_PLAIN = "the plain schedule"


@final
@dataclass(frozen=True, slots=True)
class Options:
    """How cases are tried. levels: that code is compiled for. cases: sizes that are compared.
    judge: whether refused schedules are interpreted, to tell needless refusals.
    """

    prove: Prover
    levels: tuple[Level, ...] = ()
    cases: int = 5
    judge: bool = True


@final
@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong. kind: alike for alike failures; sizes: where there is one wrong case."""

    kind: str
    detail: str
    sizes: Sizes | None = None


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
    """taken: the steps that were proved; proved: whether what is emitted was."""

    taken: tuple[Primitive, ...]
    refusals: tuple[Refusal, ...]
    failure: Failure | None
    proved: bool = False


@final
@dataclass(frozen=True, slots=True)
class _Case:
    sizes: Sizes
    arrays: Mapping[str, Array]
    expected: Mapping[str, Array]


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
        self.chosen = _sizes(draft, options.cases, Random(seed)) if only is None else only
        self.known: list[_Case] | None = None
        self.taken: list[Primitive] = []
        self.refusals: list[Refusal] = []
        self.asked: Scheduled | None = None

    def run(self, choose: Choose) -> Outcome:
        spec = specs.loads(self.draft.text(), "drawn.yaml")
        try:
            return self._run(spec, choose)
        except _Failed as failed:
            return Outcome(tuple(self.taken), tuple(self.refusals), failed.failure)

    def _run(self, spec: specs.KernelSpec, choose: Choose) -> Outcome:
        plain = self._guarded("build", lambda: specs.build(spec, specs.choices(spec)[0]))
        context = Context(plain, self._prove)
        try:
            state = self._guarded(_PLAIN, lambda: Scheduled(plain, plain_flow(plain)))
        except Refused as error:
            self._refuse(None, _PLAIN, "proof", error)
            return Outcome((), tuple(self.refusals), None)
        if not self._proves(_PLAIN, plain, state):
            return Outcome((), tuple(self.refusals), None)
        self._compare(_PLAIN, plain)
        while True:
            step = self._guarded("drawing", partial(choose, state.kernel))
            if step is None:
                break
            state = self._step(step, state, context)
        if self.taken:
            self._compare("the tree", state.kernel)
        lowered = self._lowered(state)
        proved = lowered is not None and self._proves(_LOWERING, plain, lowered)
        if lowered is not None and proved:
            self._compare("the lowered tree", lowered.kernel)
            for level in self.options.levels:
                self._compile(lowered.kernel, level)
        return Outcome(tuple(self.taken), tuple(self.refusals), None, proved)

    def _lowered(self, state: Scheduled) -> Scheduled | None:
        def work() -> Scheduled:
            lowered = lower(state, Target(Level.V3))
            verify(lowered.kernel, lowered=True)
            return lowered

        self.asked = None
        try:
            return self._guarded(_LOWERING, work)
        except TilesmithError as error:
            self._refuse(None, _LOWERING, "check", error)
            return None

    # ------------------------------------------------------------ steps and proofs

    def _prove(self, plain: Kernel, state: Scheduled) -> None:
        self.asked = state
        self.options.prove(plain, state)
        self.asked = None

    def _step(self, step: Primitive, state: Scheduled, context: Context) -> Scheduled:
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

    def _proves(self, name: str, plain: Kernel, state: Scheduled) -> bool:
        try:
            self._guarded(name, lambda: self._prove(plain, state))
        except (Refused, ProofTimeout) as error:
            self._refuse(None, name, "time" if isinstance(error, ProofTimeout) else "proof", error)
            return False
        return True

    def _refuse(self, step: Primitive | None, name: str, by: str, error: Exception) -> None:
        needless = None
        reason = error.message if isinstance(error, TilesmithError) else str(error)
        if self.options.judge and self.asked is not None and "a race" not in reason:
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
            kind = f"crash in {what}: {type(error).__name__} at {_place(error)}"
            raise _Failed(Failure(kind, "".join(traceback.format_exception(error)))) from error

    # ------------------------------------------------------------ comparing

    def _cases(self) -> list[_Case]:
        if self.known is None:
            self.known = [_case(self.draft, sizes, self.seed) for sizes in self.chosen]
        return self.known

    def _compare(self, what: str, kernel: Kernel) -> None:
        wrong = self._guarded(what, lambda: self._differs(kernel))
        if wrong is not None:
            raise _Failed(replace(wrong, kind=f"{what} is wrong"))

    def _differs(self, kernel: Kernel) -> Failure | None:
        """The first case in which the interpreter disagrees, or raises what wrong kernels do."""
        scalars = _scalars(self.draft, kernel)
        for case in self._cases():
            given = {p: a for p, a in case.arrays.items() if self.draft.arrays[p] != "out"}
            try:
                got = interpret(kernel, given, scalars, dims=case.sizes, seed=self.seed)
                wrong = _difference(got, case.expected)
            except (InterpError, IRError, ScheduleError) as error:
                wrong = error.message
            if wrong is not None:
                return Failure("interpreted", wrong, case.sizes)
        return None

    def _compile(self, kernel: Kernel, level: Level) -> None:
        what = f"the code for {level.value}"
        scalars, cases, seed = _scalars(self.draft, kernel), self._cases(), self.seed

        def work() -> Failure | None:
            compiled = jit.compile_kernel(kernel, level)
            for case in cases:
                wrong = _run(compiled, case, scalars, threads=1 + seed % 3)
                if wrong is not None:
                    return Failure(f"{what} is wrong", wrong, case.sizes)
            return None

        try:
            failure = isolated(work, _SECONDS)
        except TilesmithError as error:
            self._refuse(None, "emission", "check", error)
        else:
            if failure is not None:
                raise _Failed(
                    replace(failure, kind=failure.kind.replace("crash", f"crash in {what}"))
                )


def shape_of(reason: str) -> str:
    """A reason without its step, names and numbers, so that alike ones are counted together."""
    words = re.sub(r"^\w+ \(.*?\): ", "", reason.splitlines()[0])
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'", "'_'", words))


def _place(error: BaseException) -> str:
    """Where in the generator an exception came from, without line numbers."""
    frames = traceback.extract_tb(error.__traceback__)
    last = next((f for f in reversed(frames) if "gen" in Path(f.filename).parts), frames[-1])
    return f"{Path(last.filename).name}:{last.name}"


# ---------------------------------------------------------------- sizes and arrays


def _sizes(draft: Draft, count: int, random: Random) -> list[Sizes]:
    """Sizes that the constraints allow, not too large together."""
    every = [dict(zip(draft.dims, s, strict=True)) for s in product(SIZES, repeat=len(draft.dims))]
    fit = [s for s in every if draft.allows(s) and np.prod(list(s.values())) <= MOST_ELEMENTS]
    return random.sample(fit, min(count, len(fit)))


def _case(draft: Draft, sizes: Sizes, seed: int) -> _Case:
    random = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for name, role in draft.arrays.items():
        if role == "temporary":
            continue
        shape, dtype = reference.shape(draft, name, sizes), reference.element(draft, name)
        low, high = (-2, 9) if draft.types.get(name, "T") == "int64" else (-3, 4)
        arrays[name] = random.integers(low, high, shape).astype(dtype)
    return _Case(sizes, arrays, reference.evaluate(draft, arrays, sizes))


def _scalars(draft: Draft, kernel: Kernel) -> dict[str, int]:
    return {s.name: draft.scalars[s.name] for s in kernel.scalars}


def _difference(got: Mapping[str, Array], expected: Mapping[str, Array]) -> str | None:
    for name, wanted in expected.items():
        value = got[name]
        if value.dtype.kind == "f":
            finite = np.abs(wanted[np.isfinite(wanted)])
            size = 64 * float(np.finfo(value.dtype).eps) * float(finite.max(initial=1))
            right = np.isclose(value, wanted, rtol=0, atol=size, equal_nan=True)
        else:
            right = value == wanted
        if not right.all():
            at = tuple(int(k) for k in np.argwhere(~right)[0]) if wanted.ndim else ()
            place = f"{name}[{', '.join(map(str, at))}]"
            return f"{place} is {value[at]}, expected {wanted[at]}"
    return None


def _run(
    compiled: jit.Compiled, case: _Case, scalars: Mapping[str, int], threads: int
) -> str | None:
    """What is wrong with a run on arrays that stand between guards."""
    held = {name: _held(array) for name, array in case.arrays.items()}
    arrays = {name: inner for name, (_, inner) in held.items()}
    for name, array in case.arrays.items():
        arrays[name][...] = array
    compiled(arrays, scalars, dims=case.sizes, threads=threads)
    for name, (whole, inner) in held.items():
        marks = np.concatenate((whole[:_GUARD], whole[_GUARD + inner.size :]))
        if not np.array_equal(marks, np.full_like(marks, _mark(inner.dtype)), equal_nan=True):
            return f"{name} is written outside of its bounds"
    return _difference(arrays, case.expected)


def _held(array: Array) -> tuple[Array, Array]:
    """A stretch of memory full of marks, and the array within it."""
    whole = np.full(array.size + 2 * _GUARD, _mark(array.dtype), array.dtype)
    return whole, whole[_GUARD : _GUARD + array.size].reshape(array.shape)


def _mark(dtype: np.dtype[Any]) -> float:
    return float("nan") if dtype.kind == "f" else int(np.iinfo(dtype).max) - 7


# ---------------------------------------------------------------- apart


def isolated(work: Callable[[], Failure | None], seconds: float) -> Failure | None:
    """The answer of some work in a child process, which may die or hang: a failure, too.

    Raises the TilesmithError that the work does, unless it is a C compiler's.
    """
    context = get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(there, work), daemon=True)
    child.start()
    there.close()
    try:
        if not here.poll(seconds):
            return Failure("crash", f"no answer within {seconds:g} seconds")
        answer: Failure | str | None = here.recv()
    except EOFError:
        child.join()
        return Failure("crash", f"the process ended with exit code {child.exitcode}")
    finally:
        child.kill()
        child.join()
        here.close()
    if isinstance(answer, str):
        raise TilesmithError(answer)
    return answer


def _answer(connection: Connection, work: Callable[[], Failure | None]) -> None:
    faulthandler.disable()  # what kills this process is told by its exit code
    try:
        connection.send(work())
    except Exception as error:
        words = str(error)
        if isinstance(error, TilesmithError) and not words.startswith(_BY_COMPILER):
            connection.send(error.message)
        else:
            kind = f"crash: {type(error).__name__} at {_place(error)}"
            connection.send(Failure(kind, traceback.format_exc()))
    connection.close()
