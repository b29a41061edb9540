"""Where in a file something was said, and the errors that point at it.

Input: file texts and positions. Output: `path:line:col: error: ...` with the line, a caret
under the place, and a hint. Lines and columns count from 1.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Use:
    """That something with a name is used, and where. kind: a macro, say. params: the names of its
    parameters.
    """

    kind: str
    name: str
    params: tuple[str, ...]
    span: "Span"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one line of a source file.

    use: of the macro or local name that the line is in, where the line counts as it is written out
    for that use.
    """

    path: str
    line: int
    column: int
    length: int = 1
    text: str = field(default="", compare=False, repr=False)
    use: Use | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"

    @property
    def uses(self) -> tuple[Use, ...]:
        """From that of what the line is in outwards, to the use that is not in such a thing."""
        return () if self.use is None else (self.use, *self.use.span.uses)

    def used_in(self, use: Use) -> "Span":
        """The place, written out for a use around those that it has."""
        inner = self.use
        around = use if inner is None else replace(inner, span=inner.span.used_in(use))
        return replace(self, use=around)


class TilesmithError(Exception):
    """An error that the user of the generator can mend; `span` says where, `notes` tell more."""

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        hint: str | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint
        self.notes = notes

    def __str__(self) -> str:
        return render("error", self.message, self.span, self.hint, self.notes)


class SpecError(TilesmithError):
    """A spec or recipe that cannot be read."""


class ScheduleError(TilesmithError):
    """A step that cannot apply, or whose proof was refused."""


class NoCode(ScheduleError):
    """A schedule that is right for a target for which no code is made yet."""


class KernelFault(TilesmithError):
    """What a kernel may not do, found while it ran."""


@contextmanager
def located(span: Span | None) -> Iterator[None]:
    """Errors from inside that do not know their place are at this one."""
    try:
        yield
    except TilesmithError as error:
        error.span = error.span or span
        raise


def render(
    severity: str,
    message: str,
    span: Span | None,
    hint: str | None,
    notes: tuple[str, ...] = (),
) -> str:
    """The message as a compiler prints it: place, text, source line, caret, the uses that the line
    is written out for, notes, hint.
    """
    lines = [f"{span}: {severity}: {message}" if span else f"{severity}: {message}"]
    if span:
        lines += _shown(span)
        for use in span.uses:
            lines += [f"{use.span}: in the {use.kind} '{use.name}', used here", *_shown(use.span)]
    lines += [f"  {note}" for note in notes]
    if hint:
        lines.append(f"  hint: {hint}")
    return "\n".join(lines)


def _shown(span: Span) -> tuple[str, ...]:
    """The line, with a caret under the place."""
    if not span.text:
        return ()
    caret = " " * (span.column - 1) + "^" * max(1, span.length)
    return f"    {span.text}", f"    {caret}"


def told(error: TilesmithError | OSError | MemoryError) -> str:
    """The error as commands print it."""
    if isinstance(error, OSError):
        return f"error: {error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        what = f": {error}" if str(error) else ""
        return f"error: not enough memory{what}\n  hint: smaller sizes need less"
    return str(error)
