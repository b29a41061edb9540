"""Recipes for GPUs, from the spec to text: proved as lowered, barriers and all."""

import time

import pytest

from gen.ir.launch import launches
from gen.ir.walk import loops
from gen.language import choices
from gen.lower.variants import Plain, suffix
from gen.pipeline import emit, schedule, schedule_to_emit
from gen.poly.prove import prove
from gen.targets.cuda.passes.launch_form import OUTERMOST_FIRST
from gen.targets.registry import TARGETS
from tests.conftest import Golden

from .made import NAMES, SPECS, TARGET, sources, variants


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_proved_and_emitted_in_two_seconds(name: str) -> None:
    spec = TARGETS.load(SPECS / f"{name}.yaml")
    schedule(spec, choices(spec)[0], TARGET, prove)  # every step of it
    start = time.process_time()
    plain = Plain(spec, next(iter(choices(spec))))
    made = schedule_to_emit(spec, plain.dtypes, TARGET, prove, plain)
    again = emit(spec, {suffix(plain.dtypes): made}, TARGET)
    assert time.process_time() - start < 6  # 2 on a quiet machine
    assert tuple(again.values()) == sources(name), "what is emitted depends on what ran before"


@pytest.mark.parametrize("name", NAMES)
def test_launches_are_in_launch_form(name: str) -> None:
    """One loop an axis, the outermost ones, blocks first."""
    _, made = variants(name)
    for launch in (launch for v in made for launch in launches(v.lowered.kernel.body)):
        bound = [loop.kind for loop in loops(launch) if loop.kind.is_bound]
        assert bound == [loop.kind for loop in loops(launch)[: len(bound)]]
        assert bound == [kind for kind in OUTERMOST_FIRST if kind in bound]


@pytest.mark.parametrize("name", ["softmax_online", "sum_two"])
def test_golden(name: str, golden: Golden) -> None:
    device, host = sources(name)
    golden(f"targets/{name}.cu", device)
    golden(f"targets/{name}.sm_90.c", host)
