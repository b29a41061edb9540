"""What rules write is found once for all levels of a target and all types of a kind, and anew
where it does not serve; which of them a kernel has does not follow from what else is made.
"""

from dataclasses import replace

import pytest

from gen.errors import TilesmithError
from gen.language import choices
from gen.language.model import KernelSpec
from gen.lower.variants import Plain, suffix
from gen.pipeline import emit, generate, schedule
from gen.poly.prove import prove
from gen.schedule.base import Primitive, to_yaml
from gen.schedule.recipe import step_of, steps_of
from gen.schedule.rules.choose import Chosen, Rule, Rules
from gen.schedule.rules.parts.draft import Draft
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.recipes import Written, _works, by_rules, fitting, recipe_of
from gen.targets.target import Target

from .support import spec

LEVELS = tuple(Cpu(level) for level in Level)
V2, V3 = Cpu.at("v2"), Cpu.at("v3")

MIXED = spec("x: T[m]; y: T[m] out", "y[i] = x[i] + x[i]", dtypes="float32, int32, float64, int64")
TURNED = spec("x: T[m, n]; y: T[n, m] out", "y[j, i] = x[i, j]")
"""On v3 its tiles are as wide as a line, of which vectors of v2 hold too little."""
TWO = spec("x: T[m]; a: T[m] out; b: T[m] out", "a[i] = x[i] + 1\nb[i] = x[i] + 2")


def asked_in(rules: Rules) -> tuple[Rules, list[object]]:
    """The rules, and the types that they were asked about, one after another."""
    asked: list[object] = []

    def normalise(draft: Draft) -> Draft:
        asked.append(draft.kernel.parameters[0].buffer.dtype.value)
        return rules.normalise(draft)

    return replace(rules, normalise=normalise), asked


def test_rules_choose_once_for_levels_and_types_of_a_kind() -> None:
    rules, asked = asked_in(V3.rules)
    written = Written(MIXED)
    plains = [Plain(MIXED, dtypes) for dtypes in choices(MIXED)]
    found = [
        by_rules(plain, level, rules, written) for plain in reversed(plains) for level in LEVELS
    ]
    assert asked == ["int32", "float32"]
    assert len({id(each) for each in found}) == 2


def test_they_choose_anew_where_that_does_not_serve() -> None:
    (dtypes,) = choices(TURNED)
    on_v3, on_v2 = (by_rules(Plain(TURNED, dtypes), level) for level in (V3, V2))
    assert on_v3 and on_v2
    assert "$square" in on_v3.text
    assert "$square" not in on_v2.text


def test_there_are_no_variants_for_no_sizes() -> None:
    """One block has a variant for short arrays, and one for long ones, of arrays as long."""
    own = {"a": "m <= 4", "b": "m >= 8"}
    sizes = Rule("sizes", lambda draft, nest: [draft.under(own[nest.name]), draft])
    rules = Rules(lambda draft: draft, (sizes,), Rule("fallback", lambda draft, _: [draft]))
    found = by_rules(Plain(TWO, choices(TWO)[0]), V3, rules)
    assert found is not None
    assert [c.draft.when for c in found.chosen] == [("m >= 8",), ("m <= 4",), ()]


def test_a_variant_for_no_sizes_is_not_tried() -> None:
    """Its steps would be asked about in vain, and then each rule's."""
    found = by_rules(Plain(TURNED, choices(TURNED)[0]), V3)
    assert found is not None
    works = _works(Plain(TURNED, choices(TURNED)[0]), V3)
    wrong = replace(found.chosen[-1].draft, lines=("unroll: {loop: nowhere}",))
    works(replace(wrong, when=("m <= 6", "m >= 65536")))
    with pytest.raises(TilesmithError, match="nowhere"):
        works(replace(wrong, when=("m <= 6",)))


def test_there_are_as_many_variants_as_a_text_may_have() -> None:
    """What several blocks have variants for may come to more than a file holds."""
    found = by_rules(Plain(TURNED, choices(TURNED)[0]), V3)
    assert found is not None
    last = found.chosen[-1]

    def variant(length: int, *when: str) -> Chosen:
        return Chosen(replace(last.draft, when=when, lines=("x" * length,)))

    rare, usual, all_ = (
        variant(40_000, "m <= 4", "n <= 4"),
        variant(20_000, "m <= 4"),
        variant(9, *()),
    )
    assert [*fitting([rare, usual, all_], "cpu")] == [rare, usual, all_]
    other = variant(30_000, "m <= 4", "n <= 8")
    assert [*fitting([rare, usual, other, all_], "cpu")] == [usual, other, all_]
    many = [variant(9, f"m <= {n}") for n in range(80)]
    assert [*fitting([*many, all_], "cpu")] == [*many[-63:], all_]
    assert [*fitting([variant(70_000)], "cpu")] == [variant(70_000)]


@pytest.mark.parametrize(
    "kernel", [MIXED, pytest.param(TURNED, marks=pytest.mark.thorough)], ids=["usual", "anew"]
)
def test_what_is_made_beside_it_changes_nothing(kernel: KernelSpec) -> None:
    alone = [_made(kernel, level) for level in (V2, V3)]
    for levels in ((V2, V3), (V3, V2)):
        together = dict(generate(kernel, levels, prove).c_files)
        assert together == {name: text for files in alone for name, text in files.items()}


def _made(kernel: KernelSpec, target: Target) -> dict[str, str]:
    """The sources by the recipe that each choice of types has if nothing else is made."""
    variants = {}
    for dtypes in choices(kernel):
        recipe = recipe_of(Plain(kernel, dtypes), target)
        assert recipe is not None
        told = replace(kernel, recipes=(recipe,))
        variants[suffix(dtypes)] = schedule(told, dtypes, target, prove, each_step=False)
    return dict(emit(kernel, variants, target))


ARGUMENTS: list[tuple[str, dict[str, object]]] = [
    ("split", {"loop": "y.i", "factors": [None, "$lanes", 8], "as": ("y.i0", "y.i1", "y.i2")}),
    ("reorder", {"loops": ["y.j", "y.i"]}),
    ("cache_read", {"block": "y", "buffer": "x", "at": "y.j", "scope": "register"}),
    ("unroll", {"loop": "y.i"}),
    ("vectorize", {"loop": "y.j", "width": "$lanes", "accumulators": 4}),
    ("parallel", {"loop": "y.i", "tested": True}),
]


@pytest.mark.parametrize(("name", "arguments"), ARGUMENTS, ids=lambda x: str(x)[:12])
def test_a_step_is_what_its_text_says(name: str, arguments: dict[str, object]) -> None:
    own = {"lanes": 8}
    (read,) = steps_of(f"- {name}: {to_yaml(arguments)}", own)
    assert _fields(step_of(name, arguments, own)) == _fields(read)


def _fields(step: Primitive) -> dict[str, object]:
    return {name: (type(value), value) for name, value in vars(step).items() if name != "span"}
