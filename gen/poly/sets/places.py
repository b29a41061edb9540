"""Which accesses may meet, as far as constant indices tell.

Input: accesses to one storage, or to several of one shape. Output: for an access those of them that
may have a place in common with it. Two that differ in an index that both have a constant for have
none, so that of hundreds of statements `y[k] = ...` each is asked about its own place alone. What
is left out, isl would find to meet nowhere.
"""

from collections.abc import Iterable
from typing import final

from .statement import Access


@final
class Places:
    """Accesses by the constants among the coordinates of their places."""

    def __init__(self, accesses: Iterable[Access]) -> None:
        self._positions: dict[Access, int] = {}
        self._alike: dict[tuple[int, ...], list[Access]] = {}
        self._found: dict[tuple[tuple[int, ...], tuple[int, ...]], _Found] = {}
        for access in accesses:
            self._positions[access] = len(self._positions)
            self._alike.setdefault(tuple(access.fixed), []).append(access)

    def near(self, access: Access) -> list[Access]:
        """Those that may meet it, in their order."""
        result: list[Access] = []
        for fixed in self._alike:
            both = tuple(k for k in fixed if k in access.fixed)
            result += self._by(fixed, both).get(_numbers(access, both), ())
        return sorted(result, key=self._positions.__getitem__)

    def _by(self, fixed: tuple[int, ...], both: tuple[int, ...]) -> "_Found":
        """Accesses of which the coordinates `fixed` are constants, by those of `both`."""
        if (fixed, both) not in self._found:
            found = self._found[fixed, both] = {}
            for access in self._alike[fixed]:
                found.setdefault(_numbers(access, both), []).append(access)
        return self._found[fixed, both]


_Found = dict[tuple[int, ...], list[Access]]


def _numbers(access: Access, coordinates: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(access.fixed[k] for k in coordinates)
