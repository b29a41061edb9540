"""A proof under a limit of time: isl may take very long, and nothing inside it can be stopped.

Input: what `prove` takes, and seconds of processor time, which a busy machine does not stretch.
Output: the same answer, from a child process that is ended at the limit. Whatever the child raises
is raised here, and what parts it proved are known here. `within` asks any question so.
"""

import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from ..errors import ScheduleError, TilesmithError
from ..ir.nodes import Kernel
from .certificate import Scheduled
from .decisions import proved_parts
from .prove import prove
from .witness import Refused

Prove = Callable[[Kernel, Scheduled], None]

PATIENCE = 20  # seconds by the clock for one of processor time, then the child is taken for stuck

A = TypeVar("A")


class OutOfTime(Exception):
    """What was to be done in a child process was not done within the limit."""


class Died(Exception):
    """The child process ended without an answer. exitcode: its own."""

    def __init__(self, exitcode: int | None) -> None:
        super().__init__(exitcode)
        self.exitcode = exitcode


class ProofTimeout(TilesmithError):
    """The prover had no answer within the limit: neither proved nor refused."""


class ProverError(TilesmithError):
    """The prover itself failed, in isl for example: neither proved nor refused."""


def within(seconds: float, ask: Callable[..., A], *arguments: object) -> A:
    """The answer, from a child process of so much processor time. Raises OutOfTime and Died. `ask`
    must not raise: that is Died, too.
    """
    context = get_context()
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(there, seconds, ask, arguments), daemon=True)
    child.start()
    there.close()
    try:
        if not here.poll(PATIENCE * seconds):
            raise OutOfTime
        answer: A = here.recv()
        return answer
    except EOFError:
        child.join()
        if sys.platform != "win32" and child.exitcode == -signal.SIGPROF:
            raise OutOfTime from None
        raise Died(child.exitcode) from None
    finally:
        child.kill()
        child.join()
        here.close()


def _send(
    connection: Connection, seconds: float, ask: Callable[..., A], arguments: tuple[object, ...]
) -> None:
    if sys.platform != "win32":
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
    connection.send(ask(*arguments))
    connection.close()


def prove_within(plain: Kernel, state: Scheduled, seconds: float, prove: Prove = prove) -> None:
    """Proves the tree in a child process. Raises what `prove` does, ProofTimeout after `seconds` of
    its processor time, and ProverError where the child fails in any other way.
    """
    what = f"the proof of kernel '{plain.name}'"
    try:
        answer = within(seconds, _answer, plain, state, prove, frozenset(proved_parts(plain)))
    except OutOfTime:
        raise ProofTimeout(f"{what} had no answer within {seconds:g} seconds") from None
    except Died as died:
        raise ProverError(f"{what} ended with exit code {died.exitcode} and no answer") from None
    match answer:
        case frozenset():
            proved_parts(plain).update(answer)
        case (reason, witness, span, hint, hidden):
            raise Refused(reason, witness, span, hint, hidden)
        case dict():
            raise ScheduleError(**answer)
        case _:
            raise ProverError(f"{what} failed:\n{answer}")


def _answer(plain: Kernel, state: Scheduled, prove: Prove, known: frozenset[bytes]) -> Any:
    """In the child: what is known on top if proved, the parts of a refusal or of an error of the
    step, as where no init can be written out, or the text of a failure.
    """
    proved_parts(plain).update(known)  # a child that is no fork begins with nothing
    try:
        prove(plain, state)
    except Refused as refused:
        return (refused.reason, refused.witness, refused.span, refused.hint, refused.hidden)
    except ScheduleError as error:
        return {"message": error.message, "span": error.span, "hint": error.hint}
    except Exception:
        return traceback.format_exc()
    return frozenset(proved_parts(plain) - known)
