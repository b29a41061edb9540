"""Affine steps as compiled code, against NumPy, at sizes 0, 1 and around those of the steps."""

from collections.abc import Mapping

import numpy as np
import pytest

from gen.schedule.examples import BLOCKED, PAIR, ROW_SUM, SCALE, STENCIL, TRIANGLE, TWICE, UPPER
from gen.targets.c import library
from gen.targets.cpu import jit

from .compiled import Case, assert_right, compile_all
from .support import Array, start
from .test_affine import CHAIN
from .test_periodic import TORUS

SIZES = (0, 1, 2, 3, 4, 5, 9)


def scale(x: Array) -> Mapping[str, Array]:
    return {"y": 2 * x}


def blocked(x: Array, b: int) -> Mapping[str, Array]:
    return {"y": 2 * x}


def twice(x: Array) -> Mapping[str, Array]:
    return {"y": 2 * x + 1}


def stencil(x: Array) -> Mapping[str, Array]:
    return {"y": 2 * x + 2 * np.concatenate((x[:1], x[:-1]))}


def chain(x: Array) -> Mapping[str, Array]:
    return {"y": 2 * x[:-1] + 2 * x[1:]}


def pair(x: Array) -> Mapping[str, Array]:
    return {"y": 2 * x + 1, "z": 2 * x - 1}


def row_sum(x: Array) -> Mapping[str, Array]:
    return {"y": x.sum(1)}


def triangle(x: Array) -> Mapping[str, Array]:
    return {"y": np.tril(x).sum(1)}


def upper(x: Array, y: Array) -> Mapping[str, Array]:
    return {"y": np.triu(2 * x) + np.tril(y, -1)}


def torus(x: Array) -> Mapping[str, Array]:
    t = np.roll(x, -1, 1) - np.roll(x, 1, 0)
    return {"y": np.roll(t, -1, 0) + np.roll(t, 2, 1)}


TEXTS = {
    scale: SCALE,
    blocked: BLOCKED,
    twice: TWICE,
    stencil: STENCIL,
    chain: CHAIN,
    pair: PAIR,
    row_sum: ROW_SUM,
    triangle: TRIANGLE,
    upper: UPPER,
    torus: TORUS,
}

MERGED = "- merge: {loops: [t.i, y.i, z.i], as: [w.i]}\n"
STEPS = {
    "fission": (
        pair,
        MERGED + "- fission: {loop: w.i, as: [t.i, y.i, z.i]}\n- vectorize: {loop: z.i, width: 4}",
    ),
    "fission of a split": (
        twice,
        "- merge: {loops: [t.i, y.i], as: [z.i]}\n- split: {loop: z.i, factors: [null, 4]}\n"
        "- fission: {loop: z.i_1, as: [t.i, y.i]}\n- vectorize: {loop: t.i, width: 4}\n"
        "- vectorize: {loop: y.i, width: 4}\n- parallel: {loop: z.i_0}",
    ),
    "peel the first": (stencil, "- peel: {loop: y.i, at: 1, as: [y.a, y.b]}"),
    "peel the last": (stencil, "- peel: {loop: y.i, at: -3}\n- vectorize: {loop: y.i_0, width: 4}"),
    "peel twice": (
        scale,
        "- peel: {loop: y.i, at: 2, as: [y.a, y.b]}\n- peel: {loop: y.b, at: -2}\n"
        "- parallel: {loop: y.b_0}",
    ),
    "peel and split": (
        twice,
        "- peel: {loop: y.i, at: 1, as: [y.a, y.b]}\n- split: {loop: y.b, factors: [null, 4]}\n"
        "- unroll: {loop: y.b_1}",
    ),
    "reverse": (stencil, "- reverse: {loop: y.i}\n- vectorize: {loop: y.i, width: 4}"),
    "reverse rows": (scale, "- reverse: {loop: y.i}\n- parallel: {loop: y.i}"),
    "reverse a sum": (row_sum, "- reverse: {loop: y.j}\n- vectorize: {loop: y.j, width: 4}"),
    "reverse a triangle": (
        triangle,
        "- decompose_reduction: {block: y, loop: y.j}\n- reverse: {loop: y.j}\n"
        "- reverse: {loop: y.i}",
    ),
    "shift": (twice, "- shift: {loop: y.i, by: -3}\n- vectorize: {loop: y.i, width: 4}"),
    "shift and merge": (chain, "- shift: {loop: y.i, by: 1}\n- merge: {loops: [t.i, y.i]}"),
    "shift, merge and split": (
        chain,
        "- shift: {loop: y.i, by: 1}\n- merge: {loops: [t.i, y.i], as: [z.i]}\n"
        "- split: {loop: z.i, factors: [null, 4]}\n- unroll: {loop: z.i_1}",
    ),
    "skew": (scale, "- skew: {loops: [y.i, y.j], factor: 2}\n- vectorize: {loop: y.j, width: 4}"),
    "skew backwards": (scale, "- skew: {loops: [y.i, y.j], factor: -1}\n- parallel: {loop: y.i}"),
    "skew and reorder": (
        scale,
        "- skew: {loops: [y.i, y.j], factor: 2}\n- reorder: {loops: [y.j, y.i]}\n"
        "- parallel: {loop: y.j}",
    ),
    "skewed vectors": (
        scale,
        "- skew: {loops: [y.i, y.j]}\n- reorder: {loops: [y.j, y.i]}\n"
        "- vectorize: {loop: y.i, width: 4}",
    ),
    "add_unit_loop": (
        row_sum,
        "- add_unit_loop: {block: y, as: [y.one]}\n- reorder: {loops: [y.one, y.j]}\n"
        "- parallel: {loop: y.i}",
    ),
    "merge": (twice, "- merge: {loops: [t.i, y.i]}\n- vectorize: {loop: t.i, width: 4}"),
    "merge of three": (pair, MERGED + "- split: {loop: w.i, factors: [null, 4]}"),
    "merge of peeled parts": (
        pair,
        "- peel: {loop: y.i, at: 2, as: [y.a, y.b]}\n- merge: {loops: [y.b, z.i], as: [w.i]}\n"
        "- vectorize: {loop: w.i, width: 4}",
    ),
    "merge at another start": (
        pair,
        "- shift: {loop: z.i, by: 2}\n- merge: {loops: [y.i, z.i], as: [w.i]}\n"
        "- parallel: {loop: w.i}",
    ),
    "parts that each call gives": (
        blocked,
        "- split: {loop: y.i, factors: [null, b]}\n- parallel: {loop: y.i_0}\n"
        "- vectorize: {loop: y.j, width: 4}",
    ),
    "tiles that each call gives": (
        blocked,
        "- tile: {loops: [y.i, y.j], sizes: [b, b]}\n- parallel: {loop: y.i_0}",
    ),
    "triangle in vectors": (
        upper,
        "- vectorize: {loop: y.j, width: 4}\n- parallel: {loop: y.i}",
    ),
    "triangle on a grid": (
        upper,
        "- split: {loop: y.j, factors: [null, 4], grid: true}\n"
        "- vectorize: {loop: y.j_1, width: 4}",
    ),
    "triangle in tiles": (upper, "- tile: {loops: [y.i, y.j], sizes: [2, 3]}"),
    "triangle in vectors of tiles": (
        upper,
        "- tile: {loops: [y.i, y.j], sizes: [3, 4]}\n- vectorize: {loop: y.j_1, width: 4}\n"
        "- parallel: {loop: y.i_0}",
    ),
    "rings in tiles, and fused": (
        torus,
        "- tile: {loops: [y.i, y.j], sizes: [2, 4]}\n- parallel: {loop: y.i_0}\n"
        "- vectorize: {loop: y.j_1, width: 4}\n- fuse: {loops: [t.i, t.j]}\n"
        "- parallel: {loop: t.i_j}",
    ),
    "rings, but for the last cell": (
        torus,
        "- peel: {loop: y.j, at: -1, as: [y.rest, y.last]}\n"
        "- vectorize: {loop: y.rest, width: 4}\n- reorder: {loops: [t.j, t.i]}\n"
        "- reverse: {loop: t.j}\n- cache_read: {block: y, buffer: t, at: y.i}",
    ),
}

CASES = {
    name: Case(start(TEXTS[reference]), steps, reference)
    for name, (reference, steps) in STEPS.items()
}


@pytest.fixture(scope="module")
def compiled(cache: None) -> Mapping[str, library.Compiled]:
    return compile_all(CASES, jit.native_level())


@pytest.mark.parametrize("name", CASES)
def test_compiled_steps(name: str, compiled: Mapping[str, library.Compiled]) -> None:
    case = CASES[name]
    for b in (1, 2, 3, 10) if case.reference is blocked else (0,):
        assert_right(case, compiled[name], SIZES, {"b": b} if b else None)
