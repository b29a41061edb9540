"""Reductions over tuples that drawn kernels define.

Input: an element type. Output: the entry of a spec's `reductions`. All are associative and
commutative, exactly so on what they are tried on.
"""

from collections.abc import Callable, Mapping


def limits(element: str) -> tuple[str, str]:
    """The least and the largest value, as text."""
    if element.startswith(("float", "bfloat")):
        return "-inf", "inf"
    bits = int(element.lstrip("uint"))
    low = 0 if element[0] == "u" else -(1 << (bits - 1))
    return str(low), str(low + (1 << bits) - 1)


def _extent(element: str) -> str:
    low, high = limits(element)
    return f"""\
extent:
  parts: {{least: T, most: T}}
  identity: {{least: {high}, most: {low}}}
  combine: |
    least = min(a.least, b.least)
    most = max(a.most, b.most)
"""


def _moments(element: str) -> str:
    return """\
moments:
  parts: {total: T, count: int64, square: T}
  identity: {total: 0, count: 0, square: 0}
  combine: |
    total = a.total + b.total
    count = a.count + b.count
    square = a.square + b.square
"""


def _latest(element: str) -> str:
    """The largest and where it is last."""
    low, _ = limits(element)
    return f"""\
latest:
  parts: {{value: T, place: int64}}
  identity: {{value: {low}, place: -1}}
  combine: |
    value = max(a.value, b.value)
    place = (a.place if a.value > b.value else b.place if b.value > a.value
      else max(a.place, b.place))
"""


def _votes(element: str) -> str:
    """How often the largest is there."""
    low, _ = limits(element)
    return f"""\
votes:
  parts: {{peak: T, times: int32}}
  identity: {{peak: {low}, times: 0}}
  combine: |
    peak = max(a.peak, b.peak)
    times = (a.times if a.peak == peak else 0) + (b.times if b.peak == peak else 0)
"""


REDUCTIONS: Mapping[str, Callable[[str], str]] = {
    "extent": _extent,
    "moments": _moments,
    "latest": _latest,
    "votes": _votes,
}
# Terms of each reduction, for an element and its last index; NaN is like no number to `==`, so
# that some are for numbers alone.
TERMS: Mapping[str, tuple[str, ...]] = {
    "extent": ("{x}", "{x}"),
    "moments": ("{x}", "1", "{x}"),
    "latest": ("{x}", "{j}"),
    "votes": ("{x}", "1"),
}
PARTS: Mapping[str, tuple[str, ...]] = {
    "extent": ("T", "T"),
    "moments": ("T", "int64", "T"),
    "latest": ("T", "int64"),
    "votes": ("T", "int32"),
}
OF_NUMBERS = ("latest", "votes")
