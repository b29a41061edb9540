"""Passes: the named rewritings that lowering and finishing are made of.

Invariant: a stage is its passes one after another and nothing else, so that what a target does to a
tree can be read as a list.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from ..ir.nodes import Kernel


@final
@dataclass(frozen=True, slots=True)
class Pass:
    """A rewriting of trees.

    unseen: what it changes that a proof over the reals cannot see, and why that is right; empty
        where there is nothing. A test compares the interpreter's results before and after.
    """

    name: str
    run: Callable[[Kernel], Kernel]
    unseen: str = ""


Passes = tuple[Pass, ...]


@final
@dataclass(frozen=True, slots=True)
class Advice:
    """What a recipe asks for and does not get, which is right all the same, and slower. about: the
    temporary that it is about.
    """

    about: str
    message: str
    hint: str


def _unchanged(kernel: Kernel) -> Kernel:
    return kernel


def _nothing(kernel: Kernel) -> tuple[Advice, ...]:
    return ()


@final
@dataclass(frozen=True, slots=True)
class Finishing:
    """What a target makes of a lowered tree before it is text.

    exact: the passes after which the tree must do what the lowered one does, as far as a proof over
        the reals sees that. by_data: those behind them, which leave out what combines nothing where
        data says so; that is checked for all data. early: those that leave loops once nothing in
        them has an effect; that is checked as well. notes: those at the end, which say how
        statements are computed. as_run: the finished tree as the interpreter runs it, with the
        statements that notes stand for; these must do what was there before. advice: on a lowered
        tree.
    """

    exact: Passes
    by_data: Passes = ()
    early: Passes = ()
    notes: Passes = ()
    as_run: Callable[[Kernel], Kernel] = _unchanged
    advice: Callable[[Kernel], tuple[Advice, ...]] = _nothing

    @property
    def passes(self) -> Passes:
        return (*self.exact, *self.by_data, *self.early, *self.notes)
