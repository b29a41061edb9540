"""Large calls beside the formulas, on the GPU alone."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from types import ModuleType

from .budget import Budget
from .formulas import F, Work, compared, inputs, works
from .rows import Row, Status, caught

PART = "large"


WHOLE = ("sum", "matvec", "matmul")
"""Whose bounds hide single elements, where there are many: tried on whole numbers, too."""


def check(
    f: F, ts: ModuleType, kernel: str, dtypes: Sequence[str], budget: Budget, scale: int = 1
) -> Iterator[Row]:
    """A row for each size and dtype. scale: as of `works`."""
    inputs_ = (False, True) if kernel in WHOLE else (False,)
    for work, dtype, whole in product(works(kernel, scale), dtypes, inputs_):
        what = f"{dtype} {work}" + ", whole numbers" * whole
        made = partial(tried, f, ts, work, dtype, what, whole)
        yield caught(PART, kernel, what, made, budget)


def tried(f: F, ts: ModuleType, work: Work, dtype: str, what: str, whole: bool) -> Row:
    given = inputs(f, work, dtype, seed=0, whole=whole)
    out = f.xp.full(work.result, float("nan"), dtype)
    getattr(ts, work.kernel)(*given, out=out, **work.options)
    error, ratio = compared(f, work, out, given, whole=whole)
    status = Status.RIGHT if ratio <= 1 else Status.WRONG
    return Row(PART, work.kernel, what, status, "", {"error": error, "of what is allowed": ratio})
