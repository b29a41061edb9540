"""Progress of long work: a line on a terminal, rewritten in place, and nothing anywhere else.

Input: how many parts there are, and what each is called as it begins. Invariant: into a pipe or a
file nothing is written; on a terminal the line is gone when the work is done or fails.
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO, final

_CELLS = 20
_CLEAR = "\r\033[K"


@final
@dataclass
class Progress:
    """A line such as `[#####---------------] 5/20  softmax float32 v3  2 s`.

    total: the number of parts. stream: None for no line at all.
    """

    total: int
    stream: TextIO | None
    _done: int = -1
    _text: str = ""
    _start: float = 0.0

    def __reduce__(self) -> tuple[object, ...]:
        """In a process that does not share this one's memory: on its own stderr."""
        return _again, (self.total, self.stream is not None, self._done, self._text, self._start)

    def part(self, text: str) -> None:
        """The next part begins."""
        if self.stream is None:
            return
        self._done = min(self._done + 1, self.total)
        self._text = text
        self._start = self._start or time.monotonic()
        self.detail("")

    def detail(self, text: str) -> None:
        """What the part is doing now; the line is written again."""
        if self.stream is None:
            return
        full = _CELLS * max(self._done, 0) // max(self.total, 1)
        bar = "#" * full + "-" * (_CELLS - full)
        seconds = f"{time.monotonic() - self._start:.0f} s"
        words = [f"[{bar}] {max(self._done, 0)}/{self.total}", self._text, text, seconds]
        line = "  ".join(word for word in words if word)
        width = shutil.get_terminal_size().columns - 1
        print(f"{_CLEAR}{line[:width]}", end="", file=self.stream, flush=True)

    def clear(self) -> None:
        """Takes the line away, so that a result can be printed in its place."""
        if self.stream is not None:
            print(_CLEAR, end="", file=self.stream, flush=True)


def _again(total: int, visible: bool, done: int, text: str, start: float) -> Progress:
    return Progress(total, sys.stderr if visible else None, done, text, start)


SILENT = Progress(0, None)
"""For callers that show nothing."""


def able(stream: TextIO) -> bool:
    """Whether the stream is a terminal that knows codes for more than text, such as colours."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def progress(total: int, stream: TextIO | None = None) -> Iterator[Progress]:
    """Progress on `stream` (by default stderr) where that is a terminal that can rewrite a line."""
    stream = sys.stderr if stream is None else stream
    shown = Progress(total, stream if able(stream) else None)
    try:
        yield shown
    finally:
        shown.clear()
