"""Every step of recipes proves; and no broken tree of a shipped kernel does."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gen import language as specs
from gen.ir.algebra import TRUE, add, index, sub
from gen.ir.interpret.interp import InterpError, run
from gen.ir.nodes import Allocate, Block, Expr, If, Init, Intent, Kernel, Loop, LoopKind, Seq, Stmt
from gen.ir.rules.verify import IRError, verify
from gen.ir.walk import blocks, replace_stmt, substitute, walk
from gen.language.formulas import oracle
from gen.lower.variants import Variant
from gen.pipeline import schedule
from gen.poly.cache import prove_once
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.witness import Refused
from gen.poly.workbench import Workbench
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.trial.inputs import random_arrays

ROOT = Path(__file__).parents[1]
SHIPPED = sorted((ROOT / "kernels_spec").glob("*.yaml"))
MANY_DIMS = {"conv2d", "conv3d", "conv_transpose2d", "depthwise_conv2d"}
"""Too many for the interpreter; mutants take minutes."""
ALWAYS = {"blur", "cumsum", "grey", "norm", "softmax", "transpose"}
MUTATED = [
    pytest.param(path, marks=() if path.stem in ALWAYS else pytest.mark.thorough)
    for path in SHIPPED
    if path.stem not in MANY_DIMS
]
WRITTEN = [path for path in SHIPPED if "\nrecipes:" in path.read_text("utf-8")]
CHOSEN = [path for path in SHIPPED if path not in WRITTEN]  # by rules, which prove as they choose
LONG = {
    "layer_norm",
    "lstm",
    "rms_norm",
    "sum",
    "triangular_solve",
    "trmm",
}  # of which the others have all steps
STEPPED = [
    pytest.param(path, marks=pytest.mark.thorough if seldom or path.stem in LONG else ())
    for paths, seldom in (
        (WRITTEN, False),
        (sorted((ROOT / "tests" / "language" / "specs").glob("*.yaml")), False),
        (CHOSEN[::5], False),
        ([path for path in CHOSEN if path not in CHOSEN[::5]], True),
    )
    for path in paths
]


def name_of(value: object) -> str:
    return f"{value.parent.name}/{value.stem}" if isinstance(value, Path) else str(value)


@pytest.fixture
def proofs(pytestconfig: pytest.Config) -> Path:
    """What was proved in an earlier run, or by a build in this folder, so that only what changed is
    proved again: the names of proofs tell the trees and the prover's own source.
    """
    folder: Path = pytestconfig.cache.mkdir("proofs")
    for proof in ROOT.glob("build/*/proofs/*"):
        (folder / proof.name).touch()
    return folder


THOROUGH = pytest.mark.thorough
LEVELS = [Level.V3, *(pytest.param(level, marks=THOROUGH) for level in Level if level != Level.V3)]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.value)
@pytest.mark.parametrize("path", STEPPED, ids=name_of)
def test_every_step_is_proved(
    path: Path, level: Level, proofs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = specs.load(path)
    proved: list[Scheduled] = []

    def remembered(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
        prove_once(plain, state, proofs, bench=bench)
        proved.append(state)

    dtypes = specs.choices(spec)[0]  # of all of them the build proves what it emits, on all levels
    variants = schedule(spec, dtypes, Cpu(level), remembered)
    assert proved == [
        state for v in variants for state in (v.start, *(s.state for s in v.steps), v.lowered)
    ]
    assert capfd.readouterr() == ("", "")


# ---------------------------------------------------------------- broken trees


def mutants(body: Stmt) -> Iterator[tuple[str, Stmt]]:
    """The tree with one thing wrong, and what: of each kind at five places, first to last, and then
    at all others.
    """
    found: dict[str, list[tuple[Stmt, Stmt]]] = {}
    for node in walk(body):
        for kind, new in _broken(node) if isinstance(node, Stmt) else ():
            found.setdefault(kind, []).append((node, new))
    for kind, sites in found.items():
        five = dict.fromkeys((len(sites) - 1) * part // 4 for part in range(5))
        for k in (*five, *(k for k in range(len(sites)) if k not in five)):
            yield kind, replace_stmt(body, *sites[k])


def _broken(node: Stmt) -> Iterator[tuple[str, Stmt]]:
    match node:
        case Block(body=Init()):
            yield "an init dropped", Seq(())
        case Block(predicate=predicate) if predicate != TRUE:
            yield "a guard dropped", replace(node, predicate=TRUE)
        case If(_, body):
            yield "a condition dropped", body
        case Loop(upper=upper, kind=kind):
            yield "an iteration more", replace(node, upper=add(upper, 1))
            yield "an iteration less", replace(node, upper=sub(upper, 1))
            if kind is LoopKind.SERIAL:
                yield "a serial loop in parallel", replace(node, kind=LoopKind.PARALLEL)
        case Seq((*before, one, two)):
            yield "statements exchanged", Seq((*before, two, one))
        case Allocate((buffer, *more)) if buffer.shape:
            less = replace(buffer, shape=(sub(buffer.shape[0], 1), *buffer.shape[1:]))
            yield "a buffer too small", replace(node, buffers=(less, *more))
        case _:
            return


def is_refused(plain: Kernel, tree: Scheduled, bench: Workbench) -> bool:
    try:
        verify(tree.kernel, lowered=True)
        prove(plain, tree, bench)
    except (IRError, Refused):
        return True
    return False


def agrees(spec: specs.KernelSpec, plain: Kernel, tree: Kernel, sizes: Mapping[str, int]) -> bool:
    """Whether the tree computes what the plain schedule does, iterations in any order."""
    random = np.random.default_rng(0)
    dtypes = next(iter(specs.choices(spec)))
    arrays = random_arrays(spec, dtypes, sizes, random)
    given = {
        p.buffer.name: arrays[p.buffer.name] for p in plain.parameters if p.intent is not Intent.OUT
    }
    scalars = {s.name: 0.5 if s.default is None else s.default for s in spec.scalars}
    expected = run(plain, given, scalars, dims=sizes)
    try:
        got = run(tree, given, scalars, dims=sizes, seed=1)
    except InterpError:
        return False
    return all(
        np.allclose(got[name], expected[name], rtol=1e-4, atol=1e-4, equal_nan=True)
        for name in expected
    )


def holds(condition: Expr | None, sizes: Mapping[str, int]) -> bool:
    values = {name: index(size) for name, size in sizes.items()}
    return condition is None or substitute(condition, values) == TRUE


def small(spec: specs.KernelSpec, variant: Variant) -> list[dict[str, int]]:
    """Sizes at which the variant may run, few enough for the interpreter."""
    sizes = (
        {d: first if k == 0 else others for k, d in enumerate(spec.dims)}
        for first, others in ((1, 2), (9, 10), (21, 22), (50, 9))
    )
    given = oracle.defaults(spec)
    full = ({**size, **named(spec, {**given, **size})} for size in sizes)
    return [size for size in full if holds(variant.when, size)]


def named(spec: specs.KernelSpec, values: Mapping[str, float]) -> dict[str, int]:
    return {s.name: int(specs.with_named(spec, values)[s.name]) for s in spec.sizes}


HARMLESS = {"statements exchanged", "a serial loop in parallel", "a condition dropped"}
"""What may be right wherever it is done in a kernel; each mutant is compared all the same."""


def unproved(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
    """The mutants are proved or refused, not the tree that they are made of."""


@pytest.mark.parametrize("path", MUTATED, ids=name_of)
def test_broken_trees_are_refused(path: Path) -> None:
    spec = specs.load(path)
    dtypes = next(iter(specs.choices(spec)))
    plain, bench = specs.build(spec, dtypes), Workbench()
    variants = schedule(spec, dtypes, Cpu(Level.V3), unproved)
    variant, sizes = next((v, s) for v in variants if (s := small(spec, v)))
    most = 5 if sum(1 for _ in blocks(variant.lowered.kernel)) < 16 else 2  # proofs of large trees
    kinds: dict[str, bool] = {}
    tried: Counter[str] = Counter()
    for kind, body in mutants(variant.lowered.kernel.body):
        tried[kind] += 1
        if tried[kind] > most and (kinds[kind] or kind in HARMLESS):
            continue  # the others only where none of these is refused, as one should be
        tree = replace(variant.lowered, kernel=replace(variant.lowered.kernel, body=body))
        refused = is_refused(plain, tree, bench)
        kinds[kind] = kinds.get(kind, False) or refused
        if not refused:
            for size in sizes:
                assert agrees(spec, plain, tree.kernel, size), (kind, size)
    assert {kind for kind, refused in kinds.items() if not refused} <= HARMLESS
