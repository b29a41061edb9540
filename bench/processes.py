"""The parent's side: start a worker, ask it, stop it with all its threads, let it go on.

Waiting thread pools spin: a peer whose threads are merely awake can slow another one down several
times. So every worker but the one being timed is stopped by SIGSTOP.
"""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from . import ROOT

Reply = dict[str, Any]


class Died(Exception):
    """A worker ended, or did not answer in time; the message says how."""


class Worker:
    """A child process that answers a line of JSON for each that it is asked."""

    def __init__(
        self,
        arguments: Sequence[str],
        variables: dict[str, str],
        processors: set[int] | None = None,
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        self._buffer = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,  # nothing waits to be written to a worker that has died
            env=os.environ | variables,
            cwd=ROOT,
            preexec_fn=(lambda: os.sched_setaffinity(0, processors)) if processors else None,
        )

    def ask(self, within: float = 600.0, **request: Any) -> Reply:
        self.tell(**request)
        return self.answer(within)

    def tell(self, **request: Any) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise Died(self._obituary()) from None

    def answer(self, within: float = 600.0) -> Reply:
        """The next line; a worker that is silent for longer than `within` seconds is ended."""
        assert self.process.stdout is not None
        output = self.process.stdout.fileno()
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([output], [], [], within)
            if not ready:
                self.end()
                raise Died(f"no answer in {within:g} s")
            read = os.read(output, 1 << 16)
            if not read:
                raise Died(self._obituary())
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        reply: Reply = json.loads(line)
        return reply

    def stop(self) -> None:
        """Returns when all its threads have stopped."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def go_on(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()  # a stopped process, too
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _obituary(self) -> str:
        code = self.process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        return f"{how}: {lines[-1][:200]}" if lines else how
