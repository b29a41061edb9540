"""Proved trees, edited at random: what the prover still accepts has to be right.

    python -m build_tools.fuzz.broken --minutes 5 --seed 1

Input: the states that the examples of all primitives, and those of `starts.py`, lead to, and what
lowering makes of them. Output: each edited tree that the prover accepts and for which the
interpreter gives something else than for the plain schedule, and how many were asked. The exit
status is 1 where there is one, and where the prover fails in another way than by refusing.
"""

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, product
from random import Random
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gen.errors import TilesmithError
from gen.ir.interpret.evaluate import InterpError, numpy_dtype
from gen.ir.interpret.interp import run
from gen.ir.interpret.sizes import value
from gen.ir.nodes import Buffer, Intent, Kernel
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.ir.types import INDEX, Kind
from gen.lower.lower import lower
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.witness import Refused
from gen.poly.workbench import Workbench
from gen.schedule.base import StepContext
from gen.schedule.recipe import apply, steps_of
from gen.schedule.registry import PRIMITIVES
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

from .edits import edited
from .failure import Failure, Sizes, isolated, place_of
from .starts import STARTS

Arrays = Mapping[str, NDArray[Any]]

SIZES = (0, 1, 2, 3, 4, 5, 7, 9)
CASES = 8
MOST_ELEMENTS = 200  # of all sizes' product
AT_ONCE = 15  # edited trees of one start
SECONDS = 60.0  # for these
AGAIN = 0.4  # how often a tree is edited once more


@final
@dataclass(frozen=True, slots=True)
class Start:
    """A proved state, and the plain schedule that it is one of. bench: what is known of that."""

    title: str
    plain: Kernel
    state: Scheduled
    bench: Workbench


@final
@dataclass(frozen=True, slots=True)
class Case:
    """One call: what is given, and what the plain schedule makes of it."""

    arrays: Arrays
    sizes: Sizes
    expected: Arrays


@final
@dataclass(frozen=True, slots=True)
class Found:
    """answers: how many edited trees the prover accepted and refused. wrong: what it should not
    have accepted, and why; or where it failed itself.
    """

    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def starts(text: str = "") -> Iterator[Start]:
    """Those that have a text in their title."""
    legal = ((p.name, e) for p in PRIMITIVES for e in p.EXAMPLES if not e.refused)
    examples = ((f"{name}: {e.title}", e.before, e.steps) for name, e in legal)
    for title, before, steps in (*STARTS, *examples):
        if text not in title:
            continue
        plain = from_text(before)
        context = StepContext(plain)
        start = context.bench.start(plain)
        state = apply(start, steps_of(steps) if steps else (), context)[-1]
        yield Start(title, plain, state, context.bench)
        try:
            lowered = lower(state, Cpu(Level.V3).lowering)
        except TilesmithError:
            continue  # there is no code for it
        if lowered.kernel != state.kernel:
            yield Start(f"{title}, lowered", plain, lowered, context.bench)


def tried(start: Start, seed: int, number: int = AT_ONCE) -> Found:
    """What comes of so many edited trees of a start."""
    found = Found()
    known = cases(start.plain, seed)
    for k in range(number):
        random = Random(f"{start.title} {seed} {k}")
        state = edited(start.state, random)
        while state is not None and random.random() < AGAIN:
            state = edited(state, random)
        if state is None:
            continue
        wrong = None
        try:
            prove(start.plain, state, start.bench)
        except TilesmithError as error:  # of the prover, or for an init that cannot be written out
            answer = "refused" if isinstance(error, Refused) else "no tree"
        except Exception as error:  # a crash of the prover is a finding
            answer, wrong = "failed", f"{type(error).__name__} at {place_of(error)}: {error}"
        else:
            answer, wrong = "accepted", differs(state.kernel, known)
        found.answers[answer] += 1
        if wrong is not None:
            found.wrong.append(
                f"{start.title}, seed {seed}, {k}: {wrong}\n{_changes(start, state)}"
            )
    return found


def _changes(start: Start, state: Scheduled) -> str:
    """The edited tree, and what its certificate says otherwise."""
    flow = start.state.flow
    sources = [f"{read}: {s}" for read, s in state.flow.items() if flow.get(read) != s]
    return "\n".join((to_text(state.kernel), *sources))


# ---------------------------------------------------------------- judging


def cases(plain: Kernel, seed: int) -> list[Case]:
    """Calls of small sizes that the plain schedule takes."""
    names = (*plain.dims, *(s.name for s in plain.scalars if s.dtype is INDEX))
    every = [dict(zip(names, chosen, strict=True)) for chosen in product(SIZES, repeat=len(names))]
    small = [s for s in every if math.prod(max(n, 1) for n in s.values()) <= MOST_ELEMENTS]
    Random(seed).shuffle(small)
    random, result = np.random.default_rng(seed), list[Case]()
    for sizes in small:
        try:
            result.append(_case(plain, sizes, random))
        except (InterpError, ValueError):
            continue  # sizes that the kernel does not take
        if len(result) == CASES:
            break
    return result


def _case(plain: Kernel, sizes: Sizes, random: np.random.Generator) -> Case:
    given = (p.buffer for p in plain.parameters if p.intent is not Intent.OUT)
    arrays = {b.name: _numbers(b, sizes, random) for b in given}
    return Case(arrays, sizes, _run(plain, arrays, sizes))


def _numbers(buffer: Buffer, sizes: Sizes, random: np.random.Generator) -> NDArray[Any]:
    """Few different numbers, so that there are ties; positions in small arrays among integers."""
    low, high = (-2, 3) if buffer.dtype.kind in (Kind.FLOAT, Kind.COMPLEX) else (-1, 7)
    shape = [value(e, sizes) for e in buffer.shape]
    return random.integers(low, high, shape).astype(numpy_dtype(buffer.dtype))


def _run(kernel: Kernel, arrays: Arrays, sizes: Sizes, seed: int | None = None) -> Arrays:
    """What the kernel writes. What an edited tree reads before it is written may be of no account,
    so that this alone is no error.
    """
    scalars = {s.name: sizes.get(s.name, 3) for s in kernel.scalars}
    dims = {name: sizes[name] for name in kernel.dims}
    return run(kernel, arrays, scalars, dims=dims, seed=seed, check=seed is None)


def differs(tree: Kernel, known: Sequence[Case]) -> str | None:
    """The first case in which a tree does not what the plain schedule does."""
    for k, case in enumerate(known):
        try:
            got = _run(tree, case.arrays, case.sizes, seed=k)
        except InterpError as error:
            return f"at {case.sizes}: {error.message}"
        for name, wanted in case.expected.items():
            if not np.allclose(got[name], wanted, rtol=1e-3, atol=1e-3, equal_nan=True):
                given = {n: a.tolist() for n, a in case.arrays.items()}
                return f"at {case.sizes}: {name} is {got[name]}, expected {wanted}; of {given}"
    return None


# ---------------------------------------------------------------- the command


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 1 where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m build_tools.fuzz.broken", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="of the first round; others follow")
    parser.add_argument("--only", default="", help="starts that have this text in their title")
    given = parser.parse_args(arguments)
    ends = time.monotonic() + 60 * given.minutes
    known, answers, wrong = list(starts(given.only)), Counter[str](), 0
    seeds = count(given.seed)
    rounds = ((n, start) for n in seeds for start in Random(n).sample(known, len(known)))
    for seed, start in rounds:
        if time.monotonic() > ends:
            break
        found = isolated(partial(tried, start, seed), SECONDS)
        if isinstance(found, Failure):
            found = Found(wrong=[f"{start.title}, seed {seed}: {found.kind}: {found.detail}"])
        for text in found.wrong:
            print(text, flush=True)
        answers += found.answers
        wrong += len(found.wrong)
    told = ", ".join(f"{number} {answer}" for answer, number in sorted(answers.items()))
    print(f"{answers.total()} edited trees of {len(known)} starts: {told}; {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
