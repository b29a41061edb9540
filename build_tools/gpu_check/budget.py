"""Time that a check may take."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """Until when there is time, by a clock that tells seconds."""

    end: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def of(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> "Budget":
        return cls(clock() + seconds, clock)

    @property
    def left(self) -> float:
        return max(0.0, self.end - self.clock())

    def share(self, part: float) -> "Budget":
        """A part of what is left."""
        return Budget(self.clock() + part * self.left, self.clock)
