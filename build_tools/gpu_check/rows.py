"""What a check found: rows, which processes write as lines of JSON as soon as they have them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import final

from .budget import Budget


@final
class Status(StrEnum):
    RIGHT = "right"
    WRONG = "wrong"
    FAILED = "failed"
    """Something was raised, or the process ended: nothing is known of the result."""
    SKIPPED = "skipped"
    MEASURED = "measured"

    @property
    def good(self) -> bool:
        return self in (Status.RIGHT, Status.MEASURED, Status.SKIPPED)


@final
@dataclass(frozen=True, slots=True)
class Row:
    """part: of the check. subject: a kernel, mostly. what: was tried. text: for a person. numbers:
    for a table, by column.
    """

    part: str
    subject: str
    what: str
    status: Status
    text: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)


def write(path: Path, row: Row) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(row)) + "\n")


def read(path: Path) -> list[Row]:
    """The rows in a file; none where there is no file. A last line that is cut off is left out."""
    if not path.exists():
        return []
    lines = path.read_text("utf-8").split("\n")[:-1]
    return [row_of(json.loads(line)) for line in lines]


def row_of(read_: Mapping[str, object]) -> Row:
    numbers = read_["numbers"]
    assert isinstance(numbers, dict)
    status = Status(str(read_["status"]))
    return Row(str(read_["part"]), str(read_["subject"]), str(read_["what"]), status,
               str(read_["text"]), numbers)  # fmt: skip


def failure(part: str, subject: str, what: str, error: BaseException) -> Row:
    """The row of something that was raised."""
    text = " ".join(str(error).split())
    return Row(part, subject, what, Status.FAILED, f"{type(error).__name__}: {text}"[:500])


def caught(
    part: str, subject: str, what: str, made: Callable[[], Row], budget: Budget | None = None
) -> Row:
    """The row that is made, or that of what was raised; of the budget's end, where no time is left.
    A driver and the peers raise anything, and a machine that is lent for minutes has to say what it
    found beside that.
    """
    if budget and not budget.left:
        return Row(part, subject, what, Status.SKIPPED, "no time left")
    try:
        return made()
    except Exception as error:
        return failure(part, subject, what, error)
