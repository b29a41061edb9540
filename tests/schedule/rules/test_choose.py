"""Where several blocks have variants there are as many as is stated, whatever each block has."""

from collections.abc import Iterator

import pytest

from gen.language import choices
from gen.lower.variants import Plain
from gen.schedule.rules.choose import MOST_VARIANTS, Rule, Rules
from gen.schedule.rules.parts.draft import Draft
from gen.schedule.rules.parts.nest import Nest
from gen.targets.recipes import by_rules

from .support import V2, spec

THREE = spec(
    "x: T[m]; y: T[n]; z: T[k]; a: T[m] out; b: T[n] out; c: T[k] out",
    "a[i] = x[i] + 1\nb[i] = y[i] + 1\nc[i] = z[i] + 1",
)
SIZE = {"a": "m", "b": "n", "c": "k"}


def conditions(counts: dict[str, int]) -> list[tuple[str, ...]]:
    """Those of all variants, where the blocks have so many each, by the size of their own array."""

    def apply(draft: Draft, nest: Nest) -> Iterator[Draft]:
        for n in range(1, counts[nest.name]):
            yield draft.under(f"{SIZE[nest.name]} <= {n}")
        yield draft

    fallback = Rule("fallback", lambda draft, _: [draft])
    rules = Rules(lambda draft: draft, (Rule("sizes", apply),), fallback)
    found = by_rules(Plain(THREE, choices(THREE)[0]), V2, rules)
    assert found
    return [each.draft.when for each in found.chosen]


def test_few_come_in_all_combinations() -> None:
    found = conditions({"a": 2, "b": 2, "c": 3})
    assert len(found) == len(set(found)) == 12
    assert found[0] == ("k <= 1", "n <= 1", "m <= 1") and found[-1] == ()


@pytest.mark.parametrize("counts", [(10, 10, 10), (16, 2, 2), (2, 16, 16), (17, 1, 1), (3, 9, 4)])
def test_many_are_bounded(counts: tuple[int, int, int]) -> None:
    found = conditions(dict(zip("cba", counts, strict=True)))
    assert len(found) == len(set(found)) <= MOST_VARIANTS
    assert found[-1] == ()


def test_what_rare_sizes_do_not_need_is_left_to_all_others() -> None:
    found = conditions({"c": 4, "b": 1, "a": 10})
    assert found[:3] == [("k <= 1",), ("k <= 2",), ("k <= 3",)]
    assert found[3:] == [*((f"m <= {n}",) for n in range(1, 10)), ()]
