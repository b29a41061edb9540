"""The checks that planted bugs are tried on; `build_tools.mutants` runs them on a copy.

Input: a check's name. Output: exit status 0 where all is as it should be; else 1, and the first
thing that is not. Each stops there.

prover: every example of every primitive, and the recipes of some kernels, are proved or refused as
they should be. goldens: the trees after those examples' steps, and emitted C, are what they were;
nothing is proved. fuzzer: sequences of fixed seeds do not fail, interpreted; compiling: nor do
they compiled for one level. tests: test files pass, those that are named after the check's name.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from gen import language as specs
from gen.errors import ScheduleError
from gen.ir.nodes import Kernel
from gen.ir.text.parser import from_text
from gen.lower.variants import suffix
from gen.pipeline import emit, schedule
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.values.flow import plain_flow
from gen.poly.workbench import Workbench
from gen.reference import primitives as reference
from gen.schedule.base import Example, Primitive, Prover, StepContext
from gen.schedule.recipe import apply, steps_of
from gen.schedule.registry import PRIMITIVES
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.target import joined
from tests.targets import test_golden

from .fuzz.__main__ import sequence
from .fuzz.checks import Options

ROOT = Path(__file__).resolve().parents[1]
PROVED = ("blur", "softmax")
GOLDEN = ("softmax", "argmax", "cumsum", "max", "blur")
SHOWN = 3  # choices of dtypes in a golden, as in tests/test_generated.py
SEQUENCES = 36


def unproved(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
    """A prover that lets everything pass."""


def by_prover() -> Iterator[str]:
    """What the prover refuses and should not, and what it should and does not."""
    for primitive, example in _examples():
        refusal = _refusal(example, prove)
        if refusal is None and example.refused:
            yield f"{primitive.name}: {example.title}: it is not refused"
        if refusal is not None and not example.refused:
            yield f"{primitive.name}: {example.title}: {refusal}"
    for name in PROVED:
        spec = specs.load(ROOT / "kernels_spec" / f"{name}.yaml")
        try:
            schedule(spec, specs.choices(spec)[0], Cpu(Level.V3), prove)
        except Exception as error:
            yield f"{name}: {type(error).__name__}: {error}"


def by_goldens() -> Iterator[str]:
    """The examples and the C files that are not what they were."""
    for primitive in PRIMITIVES:
        kept = ROOT / "tests" / "golden" / "primitives" / f"{primitive.name}.txt"
        if reference.afters(primitive) != kept.read_text("utf-8"):
            yield f"{primitive.name}: the trees of its examples are others"
    for name in GOLDEN:
        spec = specs.load(ROOT / "kernels_spec" / f"{name}.yaml")
        variants = {
            suffix(dtypes): schedule(spec, dtypes, Cpu(Level.V3), unproved)
            for dtypes in specs.choices(spec)[:SHOWN]
        }
        kept = ROOT / "tests" / "golden" / "kernels" / f"{name}.v3.c"
        if joined(emit(spec, variants, Cpu(Level.V3))) != kept.read_text("utf-8"):
            yield f"{kept.name}: the C is another"
    for name, text, packable in test_golden.KERNELS:
        kept = ROOT / "tests" / "golden" / "targets" / f"{name}.v3.c"
        if test_golden.emitted(text, packable=packable) != kept.read_text("utf-8"):
            yield f"{kept.name}: the C is another"


def by_tests(*files: str) -> Iterator[str]:
    """The first test that fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no"]
    done = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        lines = [x for x in done.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
        yield lines[0] if lines else f"pytest ends with exit code {done.returncode}"


def by_fuzzer() -> Iterator[str]:
    """The sequences that fail, interpreted alone."""
    return _failing(Options(prove, judge=False))


def by_compiling() -> Iterator[str]:
    """The sequences that fail, compiled too."""
    return _failing(Options(prove, (jit.native_level(),), judge=False))


def _failing(options: Options) -> Iterator[str]:
    for seed in range(SEQUENCES):
        _, outcome = sequence(seed, options)
        if outcome.failure is not None:
            yield f"seed {seed}: {outcome.failure.kind}"


def _examples() -> Iterator[tuple[type[Primitive], Example]]:
    return ((primitive, example) for primitive in PRIMITIVES for example in primitive.EXAMPLES)


def _start(example: Example) -> Scheduled:
    kernel = from_text(example.before)
    return Scheduled(kernel, plain_flow(kernel))


def _refusal(example: Example, prover: Prover) -> str | None:
    state = _start(example)
    try:
        apply(state, steps_of(example.steps), StepContext(state.kernel, prover))
    except ScheduleError as error:
        return error.message
    return None


CATCHERS: dict[str, Callable[..., Iterator[str]]] = {
    "prover": by_prover,
    "goldens": by_goldens,
    "fuzzer": by_fuzzer,
    "compiling": by_compiling,
    "tests": by_tests,
}

if __name__ == "__main__":
    for found in CATCHERS[sys.argv[1]](*sys.argv[2:]):
        print(found.splitlines()[0])
        sys.exit(1)
