"""Progress: a line on a terminal that is gone afterwards, and nothing in a pipe."""

import io

import pytest

from gen import progress as module
from gen.progress import SILENT, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def lines(stream: io.StringIO) -> list[str]:
    """What stood on the line, one after another."""
    return stream.getvalue().split("\r\033[K")[1:]


def test_a_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, seconds = Terminal(), iter([10.0, 10.0, 11.4, 13.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(seconds))
    with progress(4, stream) as shown:
        shown.part("exp v3")
        shown.detail("2 proved")
        shown.part("exp v4")
    assert lines(stream) == [
        "[--------------------] 0/4  exp v3  0 s",
        "[--------------------] 0/4  exp v3  2 proved  1 s",
        "[#####---------------] 1/4  exp v4  3 s",
        "",
    ]
    assert "\n" not in stream.getvalue()


def test_the_line_is_gone_where_the_work_fails() -> None:
    stream = Terminal()
    with pytest.raises(ValueError), progress(1, stream) as shown:
        shown.part("a")
        raise ValueError
    assert lines(stream)[-1] == ""


def test_a_line_is_no_longer_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    stream = Terminal()
    with progress(1, stream) as shown:
        shown.part("x" * 100)
    assert [len(line) for line in lines(stream)] == [29, 0]


def test_more_parts_than_were_told_are_no_error() -> None:
    stream = Terminal()
    with progress(1, stream) as shown:
        for text in "abc":
            shown.part(text)
    assert "[####################] 1/1  c" in stream.getvalue()


def test_silence_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, dumb = io.StringIO(), Terminal()
    with progress(1, pipe) as shown:
        shown.part("a")
    monkeypatch.setenv("TERM", "dumb")
    with progress(1, dumb) as shown:
        shown.part("a")
    SILENT.part("a")
    SILENT.detail("b")
    assert pipe.getvalue() == dumb.getvalue() == ""
