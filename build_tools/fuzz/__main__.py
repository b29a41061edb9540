"""Draws kernels and steps for some time, and reports; or tries a kept failure again."""

import argparse
import importlib
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

from gen import language as specs
from gen.errors import TilesmithError
from gen.ir.nodes import Kernel
from gen.poly.certificate import Scheduled
from gen.poly.limit import prove_within
from gen.poly.workbench import Workbench
from gen.progress import Progress, progress
from gen.schedule import recipe as recipes
from gen.schedule.base import Primitive
from gen.schedule.registry import PRIMITIVES, lookup
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level, Processor
from gen.targets.cpu.target import Cpu
from gen.targets.cuda.target import Cuda
from gen.targets.registry import TARGETS
from gen.targets.target import Target

from . import kernels, steps
from .checks import Options, Outcome
from .draft import Draft, from_text
from .report import Tally
from .shrink import Failing, shrunk
from .trial import Choose, limited, replayed, trial

ROOT = Path(__file__).resolve().parents[2]
MOST_STEPS = 12
_LAST = tuple(lookup(name) for name in ("vectorize", "vectorize", "unroll", "parallel"))
_PLAIN = ("-O1",)
_SANITIZE = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# What bugs were in: steps that meet often, so that some sequences are of these alone.
_FAMILIES = (
    *("fold_storage double_buffer decompose_reduction reorder cache_write store_at compute_at",),
    *("rescale rfactor decompose_reduction scan vectorize split fission fold_storage parallel",),
    *("set_schedule transform_block_layout skew reorder split fuse reverse shift vectorize",),
    *("set_schedule decompose_reduction vectorize reverse split rfactor unroll peel",),
    *("cache_read cache_write reuse_at transform_layout compute_at store_in pack stream prefetch",),
    *("split vectorize unroll tile peel fuse align stream parallel decompose_reduction",),
)
_PROOF_SECONDS = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m build_tools.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, help="how long; else until --sequences")
    parser.add_argument("--sequences", type=int, help="how many; the default is 100")
    parser.add_argument("--seed", type=int, default=0, help="of the first sequence; others follow")
    parser.add_argument("--levels", default="native", help="native, all, none, or names: v2,v3")
    parser.add_argument(
        "--rules", help="targets whose rules choose, in place of drawn steps: cpu,cuda"
    )
    parser.add_argument("--cuda", choices=("emulated", "gpu"), help="run rules' code for GPUs, too")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "fuzz", help="for failures")
    parser.add_argument("--replay", type=Path, help="a failure's file to try again")
    parser.add_argument("--sanitize", action="store_true", help="compile with sanitizers")
    given = parser.parse_args(arguments)
    if given.sanitize:
        _preload()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.setdefault("TILESMITH_CACHE", scratch)  # thousands of libraries
        flags = _SANITIZE if given.sanitize else _PLAIN
        asked = levels(given.levels)
        by_rules, run_there = targets(given.rules, asked), called(given.cuda)
        options = Options(proved, asked, flags=flags, by_rules=by_rules, run=run_there)
        if given.replay is not None:
            return replay(given.replay, options, given.seed)
        most = given.sequences or (None if given.minutes else 100)
        ends = time.monotonic() + 60 * given.minutes if given.minutes else None
        tally = Tally()
        try:
            with progress(most or math.ceil(given.minutes)) as shown:
                run(given.seed, most, ends, options, given.out, shown, tally)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
    print(tally)
    return 1 if tally.failures else 0


def _preload() -> None:
    """Starts anew with the address sanitizer's library, which has to be there first, and that of
    C++, whose exceptions it has to know.
    """
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        del os.environ["LD_PRELOAD"]  # compilers need none
        return

    def found(name: str) -> str:
        asked = ["cc", f"-print-file-name={name}"]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()

    libraries = " ".join(map(found, ("libasan.so", "libstdc++.so.6")))
    # Arrays are small and soon gone: what is freed need not be kept long, nor where it was made.
    options = "detect_leaks=0:quarantine_size_mb=8:malloc_context_size=3"
    kept = {"LD_PRELOAD": libraries, "ASAN_OPTIONS": options}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **kept})


def proved(plain: Kernel, state: Scheduled, bench: Workbench) -> None:
    prove_within(plain, state, _PROOF_SECONDS, bench=bench)


def levels(text: str) -> tuple[Level, ...]:
    """What `--levels` names; `all` are those that this machine runs."""
    if text == "none":
        return ()
    native = jit.native_level()
    if text == "native":
        return (native,)
    if text == "all":
        first, last = (tuple(Level).index(x) for x in (jit.lowest_level(), native))
        return tuple(Level)[first : last + 1]
    return tuple(Level(name) for name in text.split(","))


def targets(text: str | None, asked: Sequence[Level]) -> tuple[Target, ...]:
    """What `--rules` names: CPUs of the levels that code is compiled for, or of the one that is
    shown; others as they are shown.
    """
    found = [TARGETS[name] for name in text.split(",")] if text else []
    return tuple(
        target.at(level)
        for target in found
        for level in (asked if target is Cpu and asked else (target.shown,))
    )


def called(where: str | None) -> tuple[Target, ...]:
    """What `--cuda` names: GPUs as they are shown, emulated, or this machine's."""
    if where is None:
        return ()
    target = Cuda.at(Cuda.shown)
    if where == "emulated":
        return (target.emulating(),)
    importlib.import_module("cupy")  # here, as each child would import it anew
    return (target,)


def run(
    seed: int,
    most: int | None,
    ends: float | None,
    options: Options,
    out: Path,
    shown: Progress,
    tally: Tally,
) -> None:
    """Sequences from `seed` on, `most` of them or until `ends`, counted; failures go to `out`.

    shown: gets a part a sequence; where there is no `most`, a part a minute.
    """
    minutes = count(time.monotonic(), 60)
    minute = next(minutes)
    for number in count(seed) if most is None else range(seed, seed + most):
        now = time.monotonic()
        if ends is not None and now >= ends:
            return
        if most is not None or now >= minute:
            shown.part("sequences" if most is not None else "minutes")
            minute = next(minutes)
        shown.detail(f"seed {number}: {tally.proved} proved, {tally.failures} failures")
        draft, outcome = sequence(number, options)
        tally.add(outcome, draft)
        if outcome.failure is not None:
            shown.detail("shrinking")
            small = shrunk(Failing(draft, outcome.taken, outcome.failure), options, number)
            path = keep(small, number, out)
            shown.clear()
            print(f"{path}: {small.failure.kind}", file=sys.stderr)


def sequence(seed: int, options: Options) -> tuple[Draft, Outcome]:
    """The kernel of a seed, tried under the steps of that seed."""
    random = Random(seed)
    draft = kernels.draw(random)
    return draft, limited(draft, drawing(random, draft), options, seed)


def drawing(random: Random, draft: Draft) -> Choose:
    """Up to MOST_STEPS steps, refused ones counted, of a few primitives or of all: a sequence of
    few has more of what only some of them meet in ("swarm testing", Groce et al., 2012). Half of
    the last two are those that recipes end with. Where a law may apply, it often comes first.
    """
    among = random.sample(PRIMITIVES, random.choice((4, 8, len(PRIMITIVES))))
    if random.random() < 0.4:
        among = [lookup(name) for name in random.choice(_FAMILIES).split()]
        among = random.sample(among, random.randint(3, len(among)))
    law = any(word in draft.compute for word in ("exp(", "** 2 for")) and random.random() < 0.7
    left = iter(range(random.randint(1, MOST_STEPS), 0, -1))

    def choose(kernel: Kernel) -> Primitive | None:
        rest = next(left, None)
        if rest is None:
            return None
        nonlocal law
        if law:
            law = random.random() < 0.5
            return steps.draw(kernel, random, (lookup("rescale"),))
        last = rest <= 2 and random.random() < 0.5
        return steps.draw(kernel, random, _LAST if last else among)

    return choose


# ---------------------------------------------------------------- failures


def keep(case: Failing, seed: int, folder: Path) -> Path:
    """Writes the failure as a spec with its recipe, which `--replay` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{seed}.yaml"
    sizes = " ".join(f"{d}={n}" for d, n in (case.failure.sizes or {}).items())
    head = [
        case.failure.kind,
        case.failure.detail.strip().splitlines()[-1][:200],
        *([f"at {sizes}"] if sizes else []),
        f"Again: python -m build_tools.fuzz --replay {path.name} --seed {seed}",
    ]
    path.write_text(case.draft.text(case.steps, head), "utf-8")
    return path


def replay(path: Path, options: Options, seed: int) -> int:
    """Tries a spec with its recipe at all sizes, and prints what fails."""
    text = path.read_text("utf-8")
    draft = from_text(text, str(path))
    outcome = trial(draft, replayed(recipe_of(text, str(path))), all_sizes(options), seed)
    for refusal in outcome.refusals:
        print(f"refused: {refusal.step or refusal.primitive}: {refusal.reason}")
    if outcome.failure is None:
        print(f"{path}: nothing fails, {len(outcome.taken)} steps proved")
        return 0
    at = "" if outcome.failure.sizes is None else f" at {dict(outcome.failure.sizes)}"
    print(f"{path}: {outcome.failure.kind}{at}\n{outcome.failure.detail}")
    return 1


def recipe_of(text: str, path: str) -> tuple[Primitive, ...]:
    """The steps of a spec's only variant, on this machine's level."""
    spec = specs.loads(text, path)
    level = jit.native_level()
    dtypes = specs.choices(spec)[0]
    lanes = min(Processor(level).lanes(d.computed) for d in dtypes.values())
    (recipe,) = spec.recipes
    own = {"lanes": lanes, "line": 16, "line_bytes": 64}
    return recipes.read(recipe, level.value, own)[0].steps


def all_sizes(options: Options) -> Options:
    return replace(options, cases=1000)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TilesmithError as error:
        sys.exit(str(error))
