"""A proof under a limit of time: isl may take very long, and nothing inside it can be stopped.

Input: what `prove` takes, and seconds of processor time, which a busy machine does not stretch.
Output: the same answer, from a child process that is ended at the limit. Whatever the child raises
is raised here, and what parts it proved are known here.
"""

import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection

from ..errors import ScheduleError, TilesmithError
from ..ir.nodes import Kernel
from .certificate import Scheduled
from .parts import proved_parts
from .prove import prove
from .witness import Refused

Prove = Callable[[Kernel, Scheduled], None]

PATIENCE = 20  # seconds by the clock for one of processor time, then the child is taken for stuck


class ProofTimeout(TilesmithError):
    """The prover had no answer within the limit: neither proved nor refused."""


class ProverError(TilesmithError):
    """The prover itself failed, in isl for example: neither proved nor refused."""


def prove_within(plain: Kernel, state: Scheduled, seconds: float, prove: Prove = prove) -> None:
    """Proves the tree in a child process. Raises what `prove` does, ProofTimeout after `seconds` of
    its processor time, and ProverError where the child fails in any other way.
    """
    context = get_context()
    here, there = context.Pipe(duplex=False)
    known = frozenset(proved_parts(plain))
    arguments = (there, plain, state, seconds, prove, known)
    child = context.Process(target=_answer, args=arguments, daemon=True)
    child.start()
    there.close()
    try:
        if not here.poll(PATIENCE * seconds):
            raise _timeout(plain, seconds)
        answer = here.recv()
    except EOFError:
        child.join()
        if sys.platform != "win32" and child.exitcode == -signal.SIGPROF:
            raise _timeout(plain, seconds) from None
        raise ProverError(
            f"the proof of kernel '{plain.name}' ended with exit code {child.exitcode} and no"
            " answer"
        ) from None
    finally:
        child.kill()
        child.join()
        here.close()
    match answer:
        case frozenset():
            proved_parts(plain).update(answer)
        case (reason, witness, span, hint, hidden):
            raise Refused(reason, witness, span, hint, hidden)
        case dict():
            raise ScheduleError(**answer)
        case _:
            raise ProverError(f"the proof of kernel '{plain.name}' failed:\n{answer}")


def _timeout(plain: Kernel, seconds: float) -> ProofTimeout:
    return ProofTimeout(
        f"the proof of kernel '{plain.name}' had no answer within {seconds:g} seconds"
    )


def _answer(
    connection: Connection,
    plain: Kernel,
    state: Scheduled,
    seconds: float,
    prove: Prove,
    known: frozenset[bytes],
) -> None:
    """In the child: sends what is known on top if proved, the parts of a refusal or of an error of
    the step, as where no init can be written out, or the text of a failure.
    """
    proved_parts(plain).update(known)  # a child that is no fork begins with nothing
    if sys.platform != "win32":
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        prove(plain, state)
    except Refused as refused:
        parts = (refused.reason, refused.witness, refused.span, refused.hint, refused.hidden)
        connection.send(parts)
    except ScheduleError as error:
        connection.send({"message": error.message, "span": error.span, "hint": error.hint})
    except Exception:
        connection.send(traceback.format_exc())
    else:
        connection.send(frozenset(proved_parts(plain) - known))
    connection.close()
