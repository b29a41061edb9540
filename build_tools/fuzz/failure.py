"""Failures, and work in a child process that may die or hang: that is a failure, too."""

import faulthandler
import gc
import os
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar, final

from gen.errors import TilesmithError

T = TypeVar("T")
Sizes = Mapping[str, int]

NO_ANSWER = "no answer"
"""The kind of what takes too long."""

# What compilers say of emitted code is no error of the user's.
_BY_COMPILER = tuple(f"error: {who} refused" for who in ("the C compiler", "the compiler", "NVRTC"))


@final
@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong. kind: alike for alike failures; sizes: where there is one wrong case."""

    kind: str
    detail: str
    sizes: Sizes | None = None


def place_of(error: BaseException) -> str:
    """Where in the generator an exception came from, without line numbers."""
    frames = traceback.extract_tb(error.__traceback__)
    last = next((f for f in reversed(frames) if "gen" in Path(f.filename).parts), frames[-1])
    return f"{Path(last.filename).name}:{last.name}"


def isolated(work: Callable[[], T], seconds: float) -> T | Failure:
    """The answer of some work in a child process, which may die or hang: a failure, too. It is no
    string.

    Raises the TilesmithError that the work does, unless it is a C compiler's.
    """
    context = get_context("fork")
    here, there = context.Pipe(duplex=False)
    with tempfile.TemporaryFile() as said:
        child = context.Process(target=_answer, args=(there, work, said.fileno()), daemon=True)
        child.start()
        there.close()
        try:
            if not here.poll(seconds):
                return Failure(NO_ANSWER, f"none within {seconds:g} seconds")
            answer: T | Failure | str = here.recv()
        except EOFError:
            child.join()
            said.seek(0)
            last = said.read().decode(errors="replace")
            words = f"the process ended with exit code {child.exitcode}"
            return Failure("crash", "\n".join(filter(None, (last.strip(), words))))
        finally:
            child.kill()
            child.join()
            here.close()
    if isinstance(answer, str):
        raise TilesmithError(answer)
    return answer


def _answer(connection: Connection, work: Callable[[], object], said: int) -> None:
    faulthandler.disable()  # what kills this process is told by its exit code
    os.dup2(said, 2)  # and by what sanitizers say
    gc.freeze()  # what the parent holds: to look for cycles in it would copy all of its memory
    try:
        connection.send(work())
    except Exception as error:
        words = str(error)
        if isinstance(error, TilesmithError) and not words.startswith(_BY_COMPILER):
            connection.send(error.message)
        else:
            kind = f"crash: {type(error).__name__} at {place_of(error)}"
            connection.send(Failure(kind, traceback.format_exc()))
    connection.close()
