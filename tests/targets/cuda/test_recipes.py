"""Recipes for GPUs, from the spec to text: proved as lowered, barriers and all."""

import time
from dataclasses import replace

import pytest

from gen.ir.launch import launches
from gen.ir.nodes import Barrier, Kernel, Seq, Stmt
from gen.ir.walk import loops, map_nested, walk
from gen.language import choices
from gen.lower.variants import Plain, suffix
from gen.pipeline import emit, schedule_to_emit
from gen.poly.prove import Refused, prove
from gen.targets.cuda.passes.launch_form import OUTERMOST_FIRST
from gen.targets.registry import TARGETS
from tests.conftest import Golden

from .made import NAMES, SPECS, TARGET, sources, variants


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_proved_and_emitted_in_two_seconds(name: str) -> None:
    variants(name)  # every step of it is proved
    spec = TARGETS.load(SPECS / f"{name}.yaml")
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


def _barriers(stmt: Stmt) -> list[Barrier]:
    return [n for n in walk(stmt) if isinstance(n, Barrier)]


def _without(stmt: Stmt, barrier: int) -> Stmt:
    """The tree without its barrier of that number."""
    count = iter(range(100))

    def go(s: Stmt) -> Stmt:
        if isinstance(s, Barrier):
            return Seq(()) if next(count) == barrier else s
        return map_nested(s, go)

    return go(stmt)


def _fewer(kernel: Kernel, barrier: int) -> Kernel:
    return replace(kernel, body=_without(kernel.body, barrier))


WITH_BARRIERS = [name for name in NAMES if name not in ("gelu_gpu", "triangle_gpu")]
SHIPPED = ["blur", "layer_norm", "matmul", "matvec", "softmax", "sum", "transpose"]


@pytest.mark.parametrize("name", [*WITH_BARRIERS, *SHIPPED])
def test_no_barrier_can_go(name: str) -> None:
    plain, made = variants(name)
    for variant in made:
        kernel = variant.lowered.kernel
        count = len(_barriers(kernel.body))
        assert count
        for number in range(count):
            fewer = replace(variant.lowered, kernel=_fewer(kernel, number))
            assert len(_barriers(fewer.kernel.body)) == count - 1
            with pytest.raises(Refused, match="barrier"):
                prove(plain.under(variant.when), fewer, plain.bench)


@pytest.mark.parametrize("name", ["softmax_online", "sum_two"])
def test_golden(name: str, golden: Golden) -> None:
    device, host = sources(name)
    golden(f"targets/{name}.cu", device)
    golden(f"targets/{name}.sm_90.c", host)
