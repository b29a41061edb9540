"""A proof under limits of time and memory: isl may take any, and nothing inside it can be stopped.

Input: what `prove` takes, and seconds of processor time, which a busy machine does not stretch.
Output: the same answer, from a child process that is ended at the limit. Whatever the child raises
is raised here, and the workbench here learns what parts it proved. `within` asks any question so.

To start a process for each proof takes a fifth of what generation takes. `prove_or_end` asks in the
process that it is called from, and the limit ends that: it is for what `attempted` runs.
"""

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, TypeVar, final

import islpy as isl

from ..errors import ScheduleError, TilesmithError
from ..ir.nodes import Kernel
from .certificate import Scheduled
from .prove import prove
from .witness import Refused
from .workbench import Workbench

Prove = Callable[[Kernel, Scheduled, Workbench], None]


class Limited(Protocol):
    """`prove_within`, or what stands for it."""

    def __call__(
        self, plain: Kernel, state: Scheduled, seconds: float, *, bench: Workbench | None = None
    ) -> None: ...


PATIENCE = 20  # seconds by the clock for one of processor time, then the child is taken for stuck

MEMORY = 2 * 2**30
"""Bytes of data that a child may have beyond those that it starts with, on Linux: what ships takes
less than a tenth."""

A = TypeVar("A")


FAILURES = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError),
    *(ValueError, TilesmithError, isl.Error),
)
"""What a mistake in the prover, or in isl, is seen by."""


class NoAnswer(Exception):
    """A child process came to none. As text: why."""


class OutOfReach(NoAnswer):
    """What was to be done in a child process was not done within a limit."""


class Died(NoAnswer):
    """The child process ended by itself, as where isl crashes; want of memory may be why."""


class ProofTimeout(TilesmithError):
    """The prover had no answer within a limit: neither proved nor refused."""


class ProverError(TilesmithError):
    """The prover itself failed, in isl for example: neither proved nor refused."""


def within(seconds: float, ask: Callable[..., A], *arguments: object) -> A:
    """The answer, from a child process of so much processor time and of MEMORY. Raises NoAnswer.
    `ask` must not raise: that is Died, too.
    """
    context = get_context()
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(there, seconds, ask, arguments), daemon=True)
    child.start()
    there.close()
    late = OutOfReach(f"no answer within {seconds:g} seconds")
    try:
        if not here.poll(PATIENCE * seconds):
            raise late
        answer: A | _OutOfMemory = here.recv()
        if isinstance(answer, _OutOfMemory):
            raise OutOfReach(f"no answer within {MEMORY / 2**30:g} GiB of memory")
        return answer
    except EOFError:
        child.join()
        if sys.platform != "win32" and child.exitcode == -signal.SIGPROF:
            raise late from None
        raise Died(f"no answer, but exit code {child.exitcode}") from None
    finally:
        child.kill()
        child.join()
        here.close()


def attempted(work: Callable[[], bool]) -> bool | None:
    """What `work` answers in a child process; None where that comes to no end by itself, or raises,
    or where a process cannot be copied.
    """
    if sys.platform == "win32":
        return None
    child = get_context("fork").Process(target=_exit, args=(work,))
    child.start()
    child.join()
    return {_TRUE: True, _FALSE: False}.get(child.exitcode or 0)


_TRUE, _FALSE = 40, 41  # exit codes that nothing else has


def _exit(work: Callable[[], bool]) -> None:
    sys.exit(_TRUE if work() else _FALSE)


def _send(
    connection: Connection, seconds: float, ask: Callable[..., A], arguments: tuple[object, ...]
) -> None:
    _limit(seconds)
    gc.freeze()  # what the parent holds: to look for cycles in it would copy all of its memory
    try:
        connection.send(ask(*arguments))
    except (MemoryError, isl.Error) as error:
        if not _wants_memory(error):
            raise
        connection.send(_OutOfMemory())
    connection.close()


def _limit(seconds: float) -> None:
    _limit_memory()
    _limit_time(seconds)


def _limit_time(seconds: float) -> None:
    """Ends the process after so much processor time; 0: no more."""
    if sys.platform != "win32":
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)


@final
class _OutOfMemory:
    """What a child answers that has no more memory."""


def _wants_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or (
        isinstance(error, isl.Error) and "allocation failure" in str(error)
    )


def _limit_memory() -> None:
    """Lets the process have MEMORY beyond what it has: address space that is only reserved, as by
    libraries for their threads, does not count, so that the limit is of data.
    """
    if sys.platform != "linux":
        return
    import resource

    status = Path("/proc/self/status").read_text("ascii", "replace")
    held = next((int(x.split()[1]) for x in status.splitlines() if x.startswith("VmData:")), None)
    if held is None:
        return
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = 1024 * held + MEMORY
    if most == resource.RLIM_INFINITY or wanted < most:
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))


def prove_within(
    plain: Kernel,
    state: Scheduled,
    seconds: float,
    prove: Prove = prove,
    bench: Workbench | None = None,
) -> None:
    """Proves the tree in a child process. Raises what `prove` does, ProofTimeout after `seconds` of
    its processor time or where it has no more memory, and ProverError where it fails in any other
    way.
    """
    bench = bench or Workbench()
    what = f"the proof of kernel '{plain.name}'"
    try:
        answer = within(seconds, _answer, plain, state, prove, bench)
    except OutOfReach as none:
        raise ProofTimeout(f"{what} had {none}") from None
    except Died as none:
        raise ProverError(f"{what} had {none}") from None
    _tell(answer, plain, bench, what)


def prove_or_end(
    plain: Kernel,
    state: Scheduled,
    seconds: float,
    prove: Prove = prove,
    bench: Workbench | None = None,
) -> None:
    """As `prove_within`, in this process, which ends where that raises ProofTimeout."""
    bench = bench or Workbench()
    _limit(seconds)
    try:
        answer = _answer(plain, state, prove, bench)
    except (MemoryError, isl.Error):  # isl may have left anything half done
        os._exit(1)
    finally:
        _limit_time(0)
    _tell(answer, plain, bench, f"the proof of kernel '{plain.name}'")


def _tell(answer: Any, plain: Kernel, bench: Workbench, what: str) -> None:
    match answer:
        case frozenset():
            bench.learn(plain, answer)
        case (reason, witness, span, hint, hidden):
            raise Refused(reason, witness, span, hint, hidden)
        case dict():
            raise ScheduleError(**answer)
        case _:
            raise ProverError(f"{what} failed:\n{answer}")


def _answer(plain: Kernel, state: Scheduled, prove: Prove, bench: Workbench) -> Any:
    """In the child: what is known on top if proved, the parts of a refusal or of an error of the
    step, as where no init can be written out, or the text of a failure.
    """
    known = bench.proved(plain)
    try:
        prove(plain, state, bench)
    except Refused as refused:
        return (refused.reason, refused.witness, refused.span, refused.hint, refused.hidden)
    except ScheduleError as error:
        return {"message": error.message, "span": error.span, "hint": error.hint}
    except FAILURES as error:
        if _wants_memory(error):
            raise
        return traceback.format_exc()
    return bench.proved(plain) - known
