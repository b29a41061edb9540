"""Kernels with recipes for GPUs, under the emulator: one library for each choice of a kernel's
dtypes, with both widths of indices.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import final

import numpy as np
import pytest

from gen import language as specs
from gen.ir.algebra import dtype_of
from gen.ir.launch import launches
from gen.ir.nodes import Const
from gen.ir.types import INDEX
from gen.ir.walk import walk
from gen.language import Dtypes
from gen.language.formulas import oracle
from gen.language.model import KernelSpec
from gen.lower.variants import Variant, limits_of, suffix, whens_of
from gen.targets.c.library import Compiled, variants_of
from gen.targets.cuda.emulator.emulated import Emulated
from gen.targets.cuda.emulator.library import Array, build
from gen.trial.inputs import random_arrays
from gen.trial.kinds import InputKind
from gen.trial.plain import Reference
from gen.trial.sizes import allowed, kernel_dims, sides

from .made import AS_BUILT, TARGET, TRIED, dtypes_of, sources, variants

EMULATED = (*TRIED, "borders_gpu", "heat_gpu", "softmax_online", "sum_two", "triangle_gpu")
"""All but the recipes beside the tests that a shipped kernel has, too."""


def of_all_dtypes(names: Sequence[str]) -> pytest.MarkDecorator:
    """A test's parameters `name` and `number`: each kernel for each choice of dtypes. In thorough
    runs: those whose recipes rules write, and other types than float32 and float64, but for
    `EVERY`.
    """
    cases = [
        (name, k, suffix(dtypes_of(name)[k])) for name in names for k in range(len(dtypes_of(name)))
    ]
    return pytest.mark.parametrize(
        ("name", "number"),
        [
            pytest.param(
                name, k, id=f"{name}-{types}", marks=() if _is_usual(name, types) else _LATER
            )
            for name, k, types in cases
        ],
    )


EVERY = ("gelu", "transpose")
_LATER = pytest.mark.thorough


def _is_usual(name: str, types: str) -> bool:
    if name in AS_BUILT:
        return False
    usual = {"float32", "float64"} | ({"int32", "int64"} if name == "sum" else set())
    return name in EVERY or {*types.split("_")} <= usual


_WIDE = "\n#undef TS_NARROW\n#define TS_NARROW -1.0\n"  # of what follows: never few enough


@final
@dataclass(frozen=True)
class Subject:
    """A kernel for one choice of dtypes. wide: the same, all of whose indices have 64 bits."""

    spec: KernelSpec
    dtypes: Dtypes
    variants: tuple[Variant, ...]
    reference: Reference
    kernel: Emulated
    wide: Emulated

    def arrays(
        self, sizes: Mapping[str, int], seed: int = 0, kind: InputKind = InputKind.RANDOM
    ) -> dict[str, Array]:
        rng = np.random.default_rng(seed)
        return random_arrays(self.spec, self.dtypes, sizes, rng, kind=kind)


def _library(name: str, number: int) -> tuple[Path, str]:
    device, host = sources(name, number)
    both = host + _WIDE + host.replace(f"_{TARGET.level}", "_wide")
    return build({"k.cu": device, "k.c": both}), both


@cache
def subject(name: str, number: int = 0) -> Subject:
    plain, made = variants(name, number)
    path, host = _library(name, number)
    spec, dtypes, scalars = plain.spec, plain.dtypes, oracle.defaults(plain.spec)
    limits, signature = limits_of(made), specs.build(spec, dtypes)

    def loaded(level: str) -> Emulated:
        symbol = f"ts_{name}_{suffix(dtypes)}_{level}"
        count = variants_of(host, symbol)
        return Emulated(Compiled(signature, host, path, symbol, count, limits), scalars)

    reference = Reference(spec, dtypes)
    return Subject(spec, dtypes, made, reference, loaded(TARGET.level), loaded("wide"))


# ---------------------------------------------------------------- sizes


_ROWS = (8, 600), (40, 1032), (2, 66_000)
_MOST = 300
_MOST_POINTS = 2**22  # of kernels with many dims


def tiles(of: Subject) -> list[int]:
    """The numbers that indices, bounds and conditions of the launches are made of: extents of tiles
    and of blocks of threads are among them, whatever the recipe is.
    """
    parts = itertools.chain.from_iterable(launches(v.lowered.kernel.body) for v in of.variants)
    numbers = (n for part in parts for n in walk(part) if isinstance(n, Const))
    found = {int(n.value.real) for n in numbers if dtype_of(n) is INDEX}
    return sorted(n for n in found if 1 < n <= _MOST)


def sizes_of(of: Subject) -> list[dict[str, int]]:
    """Each dim at 0, at 1, and at and beside each tile, with other dims at two others of these; and
    on either side of each variant's condition.
    """
    dims, least = of.spec.dims, specs.least_sizes(of.spec)
    around = sorted({1, *(n + k for n in tiles(of) for k in (-1, 0, 1))})
    found = [{d: 0 if d == zero else 3 for d in dims} for zero in dims]
    for step, k in itertools.product((1, 2) if len(dims) > 1 else (1,), range(len(around))):
        places = (k + j * step * len(around) // (len(dims) + 1) for j in range(len(dims)))
        turned = (around[place % len(around)] for place in places)
        found.append({d: max(n, least.get(d, 0)) for d, n in zip(dims, turned, strict=True)})
    found += (
        sizes for sizes in sides(of.spec, whens_of(of.variants)) if prod(sizes.values()) <= 2**17
    )
    return [s for s in found if prod(s.values()) <= _MOST_POINTS and allowed(of.spec, s)]


def calls(of: Subject) -> Iterator[tuple[str, dict[str, Array], dict[str, int]]]:
    """For each variant one that runs it: arrays in C's order, in Fortran's, with longer rows, odd
    and long ones.
    """
    asked, last = {variant.name for variant in of.variants}, of.spec.dims[-1]
    near, less, odd = (dict.fromkeys(of.spec.dims, n) for n in (64, 48, 61))
    wide, deep, long = (dict.fromkeys(of.spec.dims, few) | {last: n} for few, n in _ROWS)
    cases = [(near, "C"), (near, "F"), (less, "C"), (wide, "C"), (deep, "F"), (odd, "C")]
    for sizes, order in (*cases, (long, "C")):
        if not asked:
            return
        arrays = {n: np.array(x, order=order) for n, x in of.arrays(sizes).items()}
        dims = kernel_dims(of.spec, sizes)
        if (variant := of.kernel.variant(arrays, dims)) in asked:
            asked.remove(variant)
            yield variant, arrays, dims
    assert not asked
