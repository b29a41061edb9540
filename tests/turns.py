"""What of many cases that are alike has its turn today, where a run is not thorough.

A case that waits for its day is run by CI within a few days; one that is left out always, never.
"""

from datetime import UTC, datetime


def today(turns: int) -> int:
    """The number, below `turns`, of today's turn: the same in all processes of a run, by UTC."""
    return datetime.now(UTC).date().toordinal() % turns
