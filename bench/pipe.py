"""The child's side of a pipe: a line of JSON asks, a line of JSON answers.

What a library prints goes to standard error, so that it cannot break the conversation.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

Reply = dict[str, Any]
Handler = Callable[..., Reply]


_PR_SET_PDEATHSIG = 1


def claim_output() -> int:
    """The descriptor that leads to the parent; from now on descriptor 1 is standard error.

    And a stopped process must not outlive a parent that was killed: nobody would wake it.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = os.dup(1)
    os.dup2(2, 1)
    return answers


def answer(to: int, reply: Reply) -> None:
    os.write(to, json.dumps(reply).encode() + b"\n")


def serve(handlers: Mapping[str, Handler], answers: int) -> None:
    """Answer until the parent closes the pipe. An exception is an answer too."""
    for line in sys.stdin:
        request = json.loads(line)
        handler = handlers[request.pop("do")]
        try:
            reply = handler(**request)
        except Exception as error:
            reply = {"status": "failed", "why": f"{type(error).__name__}: {_first_line(error)}"}
        answer(answers, reply)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else "no message"
