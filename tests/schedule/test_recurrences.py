"""Recurrences along skewed, tiled and mapped loops as compiled code, against NumPy."""

from collections.abc import Mapping

import pytest

from gen.targets.c import library
from gen.targets.cpu import jit

from .compiled import Case, Reference, assert_right, compile_all
from .recurrences import (
    TEXTS,
    cholesky,
    floyd_warshall,
    gauss_seidel,
    heat,
    jacobi,
    lstm,
    seidel,
    substitution,
)
from .support import start
from .test_hints import HINTS, recipe

REFERENCES: dict[str, Reference] = {text: reference for reference, text in TEXTS.items()}

HINTED = {
    f"hint: {name}": Case(start(text), recipe(hint), REFERENCES[text])
    for name, (text, _, hint) in HINTS.items()
    if text in REFERENCES
}

STEPS = {
    "tiles of a skewed sweep": (
        gauss_seidel,
        "- skew: {loops: [s.i, s.j]}\n- tile: {loops: [s.i, s.j], sizes: [2, 3]}",
    ),
    "vectors along a wavefront of tiles": (
        gauss_seidel,
        "- skew: {loops: [s.i, s.j]}\n- reorder: {loops: [s.j, s.i]}\n"
        "- split: {loop: s.i, factors: [null, 4], grid: true}\n"
        "- vectorize: {loop: s.i_1, width: 4}",
    ),
    "parallelograms of Seidel's sweeps": (
        seidel,
        "- skew: {loops: [a.t, a.i]}\n- skew: {loops: [a.t, a.j]}\n- skew: {loops: [a.i, a.j]}\n"
        "- tile: {loops: [a.t, a.i, a.j], sizes: [2, 3, 4]}",
    ),
    "tiles that each call gives": (
        gauss_seidel,
        "- tile: {loops: [s.i, s.j], sizes: [b, c]}",
    ),
    "a wavefront of Seidel's tiles": (
        seidel,
        "- skew: {loops: [a.i, a.j]}\n- tile: {loops: [a.i, a.j], sizes: [3, 4]}\n"
        "- skew: {loops: [a.i_0, a.j_0]}\n- reorder: {loops: [a.j_0, a.i_0]}\n"
        "- parallel: {loop: a.i_0}",
    ),
    "cells of layers, by a map of both": (
        lstm,
        "- set_schedule: {block: [c, h], as: [w.d, w.t, w.k], map:"
        ' "{ c[t, l] -> [t + l, t, 0]; h[t, l] -> [t + l, t, 1] }"}\n- parallel: {loop: w.t}',
    ),
    "steps of time by a quotient": (
        jacobi,
        '- set_schedule: {block: s, map: "{ s[t, i] -> [t // 2, (t + i) // 3, t, i] }"}',
    ),
    "sweeps by a map": (
        seidel,
        '- set_schedule: {block: a, map: "{ a[i, j] -> [2*i + j, i] }", as: [a.w, a.i]}\n'
        "- parallel: {loop: a.i}",
    ),
    "columns of a triangle by a map": (
        substitution,
        '- set_schedule: {block: y, map: "{ y[i, k] -> [k, -i] }", as: [y.k, y.i]}\n'
        "- parallel: {loop: y.i}",
    ),
    "tiles of a triangle": (substitution, "- tile: {loops: [y.i, y.k], sizes: [3, 2]}"),
    "Cholesky in blocks: rectangles in tiles of vectors, then triangles": (
        cholesky,
        "- split: {loop: a.i, factors: [null, 4], as: [a.i0, a.i1]}\n"
        "- peel: {loop: a.j, at: a.i0, as: [a.c, a.j]}\n"
        "- fission: {loop: a.i1, before: a, as: [a_4.i1, a.i1]}\n"
        "- split: {loop: a.c, factors: [null, 4], as: [a.c0, a.c1]}\n"
        "- reorder: {loops: [a.c0, a_4.i1, a.c1]}\n"
        "- peel: {loop: a.k_2, at: a.c0, as: [a.p, a.q]}\n"
        "- before: {block: a_4_2, other: a_4, loop: a.c0}\n"
        "- split: {loop: a_4_2.i1, factors: [2, 2], as: [a.r, a.r1]}\n"
        "- split: {loop: a_4_2.c1, factors: [2, 2], as: [a.s, a.s1]}\n"
        "- reorder: {loops: [a.r, a.s, a.p, a.r1, a.s1]}\n"
        "- unroll: {loop: a.r1}\n- unroll: {loop: a.s1}\n- vectorize: {loop: a.p, width: 4}\n"
        "- peel: {loop: a.k, at: a.i0, as: [a.u, a.k]}\n"
        "- before: {block: a_5, other: a, loop: a.i0}\n- vectorize: {loop: a.u, width: 4}\n"
        "- peel: {loop: a_2.k, at: a.i0, as: [a_2.u, a_2.k]}\n"
        "- before: {block: a_2_2, other: a, loop: a.i0}\n- vectorize: {loop: a_2.u, width: 4}",
    ),
    "rows of paths": (
        floyd_warshall,
        "- parallel: {loop: p.i}\n- vectorize: {loop: p.j, width: 4}",
    ),
}

SCALARS = {
    seidel: [{"steps": 5}],
    gauss_seidel: [{"b": 1, "c": 1}, {"b": 2, "c": 3}, {"b": 4, "c": 9}],
}

CASES = {
    **HINTED,
    **{name: Case(start(TEXTS[r]), steps, r) for name, (r, steps) in STEPS.items()},
}


@pytest.fixture(scope="module")
def compiled(cache: None) -> Mapping[str, library.Compiled]:
    return compile_all(CASES, jit.native_level())


@pytest.mark.parametrize("name", CASES)
def test_compiled_recurrences(name: str, compiled: Mapping[str, library.Compiled]) -> None:
    case = CASES[name]
    sizes = (0, 1, 2, 3, 5, 8) if case.reference is heat else (0, 1, 2, 3, 4, 5, 8, 9)
    for scalars in SCALARS.get(case.reference, [None]):
        assert_right(case, compiled[name], sizes, scalars)
