"""Tables of Markdown, as the pages of counts have them."""

from collections.abc import Iterable, Iterator, Sequence


def table(head: Sequence[str], marks: str, rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines. marks: for each column "l" or "r", the side that its cells keep to."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join({'l': '---', 'r': '--:'}[mark] for mark in marks)}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
