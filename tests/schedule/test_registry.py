import re
from pathlib import Path
from typing import Any

import pytest

import gen.schedule.primitives
from gen.errors import ScheduleError
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.reference import primitives as reference
from gen.schedule.base import Example, Primitive
from gen.schedule.edit.tree import CannotApply
from gen.schedule.registry import BY_NAME, ELSEWHERE, PRIMITIVES, lookup
from tests.conftest import GOLDEN, Golden

from .support import assert_same, schedule, start

EXAMPLES = [(p, e) for p in PRIMITIVES for e in p.EXAMPLES]


def test_every_file_is_registered() -> None:
    folder = Path(gen.schedule.primitives.__path__[0])
    files = {f.stem for f in folder.glob("*.py")} - {"__init__"}
    assert files == {p.name for p in PRIMITIVES}


def test_what_is_called_otherwise_is_no_primitive_and_names_those_there_are() -> None:
    assert not ELSEWHERE.keys() & BY_NAME.keys()
    for hint in ELSEWHERE.values():
        assert set(re.findall("`([a-z_]+)`", hint)) <= {*BY_NAME, "variants", "when", "compute"}
    assert lookup("store_root") is lookup("lift_alloc") is lookup("store_at")
    assert lookup("align_storage") is lookup("storage_align")


def test_names_and_aliases_are_unique() -> None:
    assert len(BY_NAME) == sum(1 + len(p.aliases) for p in PRIMITIVES)


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda p: p.name)
def test_every_primitive_is_documented(primitive: type[Primitive]) -> None:
    assert primitive.summary().endswith(".")
    assert not all(e.refused for e in primitive.EXAMPLES)
    assert any(e.refused for e in primitive.EXAMPLES)


def test_lookup_by_alias() -> None:
    assert lookup("interchange") is lookup("reorder")


def test_lookup_by_a_name_in_capitals() -> None:
    assert lookup("SimpleComputeAt") is lookup("simple_compute_at")


def test_unknown_primitive() -> None:
    with pytest.raises(CannotApply) as refusal:
        lookup("vectorise")
    assert refusal.value.reason == "there is no primitive 'vectorise'"
    assert refusal.value.hint == "did you mean 'vectorize'?"


@pytest.mark.parametrize(
    ("primitive", "example"), EXAMPLES, ids=lambda x: getattr(x, "title", None) or x.name
)
def test_example(primitive: type[Primitive], example: Example) -> None:
    state = start(example.before)
    if example.refused:
        with pytest.raises(ScheduleError) as refusal:
            schedule(state, example.steps)
        assert example.refused in refusal.value.message
        assert refusal.value.message.startswith(primitive.name)
        assert refusal.value.span is not None
        assert refusal.value.span.line == 3 + len(example.steps.splitlines())
    else:
        after = schedule(state, example.steps)[-1].state.kernel
        assert after == from_text(to_text(after))
        assert_same(state.kernel, after)


def test_the_primitive_that_the_page_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (GOLDEN.parents[1] / "docs" / "new-primitive.md").read_text("utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {"__name__": f"{gen.schedule.primitives.__name__}.unroll_and_jam"}
    exec(compile(code, "new-primitive.md", "exec"), names)
    added = names["UnrollAndJam"]
    assert {added.name, *added.aliases} <= ELSEWHERE.keys()  # of which the page says to take it out
    monkeypatch.setitem(BY_NAME, added.name, added)
    for example in added.EXAMPLES:
        test_example(added, example)


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda p: p.name)
def test_trees_after_the_examples(primitive: type[Primitive], golden: Golden) -> None:
    golden(f"primitives/{primitive.name}.txt", reference.afters(primitive))


def test_no_golden_is_left_of_a_primitive_that_is_gone() -> None:
    kept = {f.stem for f in (GOLDEN / "primitives").iterdir()}
    assert kept == {p.name for p in PRIMITIVES}
