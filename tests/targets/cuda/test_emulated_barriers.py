"""Every barrier of every kernel is needed: the prover refuses a tree that lacks one, and the
emulator finds what goes wrong where threads pass it.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from gen.errors import KernelFault
from gen.ir.nodes import Barrier, Seq, Stmt
from gen.ir.walk import map_nested, walk
from gen.lower.variants import suffix
from gen.poly.prove import Refused, prove
from gen.targets.cuda.emulator.library import Settings

from .emulated_kernels import calls, of_all_dtypes, subject
from .made import ELEMENTWISE, NAMES, TRIED, sources, variants

ALL = (*TRIED, *NAMES)
WITHOUT = {*ELEMENTWISE, "blur", "gelu_gpu", "triangle_gpu"}  # whose threads share nothing


def in_tree(stmt: Stmt) -> int:
    return sum(isinstance(n, Barrier) for n in walk(stmt))


def without(stmt: Stmt, barrier: int) -> Stmt:
    """The tree without its barrier of that number."""
    count = iter(range(100))

    def go(s: Stmt) -> Stmt:
        if isinstance(s, Barrier):
            return Seq(()) if next(count) == barrier else s
        return map_nested(s, go)

    return go(stmt)


def in_text(name: str, number: int, variant: str) -> Iterator[int]:
    """The numbers of a variant's barriers in the device text."""
    symbol = f"ts_{name}_{suffix(subject(name, number).dtypes)}_{variant}_launch"
    for function in sources(name, number)[0].split("template <typename index_t>")[1:]:
        if re.match(rf"\s*TS_DEVICE void {symbol}", function):
            yield from (int(n) for n in re.findall(r"ts_barrier\((\d+)\)", function))


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_no_barrier_is_where_threads_share_nothing(name: str) -> None:
    assert not any(in_tree(variant.lowered.kernel.body) for variant in variants(name)[1])


@pytest.mark.parametrize("name", [name for name in ALL if name not in WITHOUT])
def test_the_prover_refuses_a_tree_without_one(name: str) -> None:
    plain, made = variants(name)
    for variant in made:
        kernel = variant.lowered.kernel
        count = in_tree(kernel.body)
        assert 0 < count == len([*in_text(name, 0, variant.name)])
        for barrier in range(count):
            fewer = replace(kernel, body=without(kernel.body, barrier))
            assert in_tree(fewer.body) == count - 1
            state = replace(variant.lowered, kernel=fewer)
            with pytest.raises(Refused, match="barrier"):
                prove(plain.under(variant.when), state, plain.bench)


@of_all_dtypes([name for name in ALL if name not in WITHOUT])
def test_the_emulator_finds_what_goes_wrong_without_one(name: str, number: int) -> None:
    """The kernel is compiled once; threads pass the barrier as if it were not there."""
    of = subject(name, number)
    for variant, arrays, dims in calls(of):
        for barrier in in_text(name, number, variant):
            passed = replace(of.kernel, settings=Settings(off=frozenset({barrier})))
            with pytest.raises(KernelFault, match=r"no barrier between|nothing has written"):
                passed(arrays, dims)
        of.kernel(arrays, dims)  # with all of them nothing does
