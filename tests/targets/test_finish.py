"""The tree that is emitted computes what the lowered tree does, in the interpreter: for what the
check of rewritten trees does not see (`narrow`), and for that check's own sake.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gen import language as specs
from gen.ir.algebra import TRUE, add, index
from gen.ir.interpret.interp import run
from gen.ir.nodes import Intent, Kernel, LoopKind, Node, Select
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.ir.walk import loops, map_children, replace_stmt, substitute
from gen.lower.finish import finish, finished, interpretable
from gen.lower.passes import Finishing
from gen.lower.variants import Variant
from gen.pipeline import schedule
from gen.poly.certificate import Scheduled
from gen.poly.witness import Refused
from gen.poly.workbench import Workbench
from gen.targets.c.finishing import FUSED
from gen.targets.cpu.levels import Level
from gen.targets.cpu.passes.finishing import SCANS
from gen.targets.cpu.target import Cpu
from gen.trial.run import random_arrays

from .scalar import Scalar

Array = NDArray[Any]
ROOT = Path(__file__).parents[2]
TARGET = Cpu(Level.V3)
FINISHING = TARGET.finishing
SHIPPED = "argmax blur cumsum grey histogram layer_norm matvec max prod softmax transpose trmm"
SPECS = [
    *(ROOT / "kernels_spec" / f"{name}.yaml" for name in SHIPPED.split()),
    ROOT / "tests/language/corpus/csr_matvec.yaml",
]
SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, 2.0]


def unproved(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
    """What is compared need not be proved."""


def sizes_of(spec: specs.KernelSpec, variant: Variant) -> Iterator[dict[str, int]]:
    """No elements, one, and some on both sides of a vector's."""
    least = specs.least_sizes(spec)
    for first, others in ((0, 0), (1, 1), (0, 9), (9, 0), (2, 17), (9, 7)):
        sizes = {d: first if k == 0 else others for k, d in enumerate(spec.dims)}
        values = {name: index(size) for name, size in sizes.items()}
        chosen = variant.when is None or substitute(variant.when, values) == TRUE
        if chosen and all(size >= least.get(d, 0) for d, size in sizes.items()):
            yield sizes


def of_small_integers(array: Array, random: np.random.Generator) -> Array:
    """What is added and multiplied without being rounded."""
    return random.integers(0, 2 if array.dtype == bool else 9, array.shape).astype(array.dtype)


def of_specials(array: Array, random: np.random.Generator) -> Array:
    if array.dtype.kind == "f":
        return random.choice(SPECIAL, array.shape).astype(array.dtype)
    if array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        some = [info.min, info.max, info.min + 1, info.max - 1, *range(9)]
        return random.choice(np.array(some, array.dtype), array.shape)
    return of_small_integers(array, random)


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.thorough if k % 2 else ()) for k, p in enumerate(SPECS)],
    ids=lambda path: path.stem,
)
def test_the_tree_that_is_emitted(path: Path) -> None:
    """All bits are the same, but for what multiply-adds round once."""
    spec = specs.load(path)
    dtypes = specs.choices(spec)[0]
    random = np.random.default_rng(7)
    scalars = {s.name: 0.5 if s.default is None else s.default for s in spec.scalars}
    for variant in schedule(spec, dtypes, TARGET, unproved, each_step=False):
        lowered = variant.lowered.kernel
        fused = FUSED.run(lowered)
        narrowed = interpretable(lowered, FINISHING)
        given = [p.buffer.name for p in lowered.parameters if p.intent is not Intent.OUT]
        for sizes in sizes_of(spec, variant):
            arrays = random_arrays(spec, dtypes, sizes, random)
            for drawn in (of_small_integers, of_specials):
                inputs = {name: drawn(arrays[name], random) for name in given}
                ours = run(narrowed, inputs, scalars, dims=sizes)
                theirs = run(fused, inputs, scalars, dims=sizes)
                for name, got in ours.items():
                    np.testing.assert_array_equal(got, theirs[name], str((name, sizes)))
                    zero = got == 0
                    assert np.array_equal(np.signbit(got[zero]), np.signbit(theirs[name][zero]))
                if drawn is of_small_integers:
                    for name, want in run(lowered, inputs, scalars, dims=sizes).items():
                        np.testing.assert_allclose(ours[name], want, 1e-4, 1e-4)


@pytest.mark.parametrize("name", ["dots", "gemm"])
def test_nests_that_an_intrinsic_computes_or_does_not(name: str) -> None:
    """All of them, whole ones and those that guards cut, do what was lowered."""
    spec = specs.load(ROOT / "tests" / "targets" / "specs" / f"{name}.yaml")
    target = Cpu(Level.V4)
    for variant in schedule(spec, specs.choices(spec)[0], target, unproved, each_step=False):
        finish(variant.lowered.kernel, target.finishing)


def test_a_selection_stays_where_a_part_of_its_condition_is_known() -> None:
    kernel = from_text("""
def k(n, p: int64[n], x: float32[n], y: Out[float32[n]]):
    for i in range(n):
        with block("y", t=spatial(i)):
            y[t] = x[t] if t >= 0 and p[t] > 0 else -x[t]
""")
    x, p = np.arange(5, dtype="f"), np.array([1, 0, 2, -1, 3])
    got = run(interpretable(kernel, FINISHING), {"x": x, "p": p})["y"]
    np.testing.assert_array_equal(got, np.where(p > 0, x, -x))


def test_sides_of_a_selection_that_are_one_node() -> None:
    """As after inlining: what is known where one side is taken is not known of the other."""
    kernel = from_text("""
def k(n, x: float32[n], y: Out[float32[n]]):
    for i in range(n):
        with block("y", t=spatial(i)):
            y[t] = x[min(n - 1, 3)] if n < 4 and x[t] > 0.0 else 0.0
""")

    def shared(node: Node) -> Node:
        new = map_children(node, shared)
        return replace(new, otherwise=new.then) if isinstance(new, Select) else new

    x = np.array([1, -1, 1, 2, 3, 4], dtype="f")
    finished = finish(replace(kernel, body=map_children(kernel.body, shared)), FINISHING)
    np.testing.assert_array_equal(run(finished, {"x": x})["y"], [x[3]] * 6)


def wrong(kernel: Kernel) -> Kernel:
    """All of the first serial loop but its first iteration."""
    first = next(loop for loop in loops(kernel.body) if loop.kind is LoopKind.SERIAL)
    body = replace_stmt(kernel.body, first, replace(first, lower=add(first.lower, 1)))
    return replace(kernel, body=body)


def planted(number: int) -> Finishing:
    """The passes, of which one does something wrong besides."""
    passes = list(FINISHING.passes)
    right = passes[number]
    passes[number] = replace(right, run=lambda kernel: wrong(right.run(kernel)))
    exact, by_data = passes[: len(FINISHING.exact)], passes[len(FINISHING.exact) : -1]
    return replace(FINISHING, exact=tuple(exact), by_data=tuple(by_data), notes=tuple(passes[-1:]))


@pytest.mark.parametrize("number", range(len(FINISHING.passes)))
def test_a_pass_that_is_wrong_is_caught(number: int) -> None:
    """Before there is any C."""
    spec = specs.load(ROOT / "kernels_spec" / "cumsum.yaml")
    variant, *_ = schedule(spec, specs.choices(spec)[0], TARGET, unproved, each_step=False)
    lowered = variant.lowered.kernel
    with pytest.raises(Refused):
        finish(lowered, planted(number))


def test_what_no_proof_sees_is_one_list() -> None:
    """Each with its reason; `test_the_tree_that_is_emitted` compares results before and after."""
    for target in (TARGET, Scalar()):
        unseen = [p for p in target.finishing.passes if p.unseen]
        assert {*unseen} <= {FUSED, SCANS}


def test_each_pass_leaves_a_tree_that_prints_and_parses() -> None:
    spec = specs.load(ROOT / "kernels_spec" / "cumsum.yaml")
    variant, *_ = schedule(spec, specs.choices(spec)[0], TARGET, unproved, each_step=False)
    seen = [(done, tree) for done, tree in finished(variant.lowered.kernel, FINISHING)]
    assert [done for done, _ in seen] == [None, *FINISHING.passes]
    for _, tree in seen:
        assert from_text(to_text(tree)) == tree
