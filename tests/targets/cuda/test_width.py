"""What indices come to at most, held against what index arithmetic comes to at many sizes."""

import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import prod

import pytest

from gen.ir.algebra import dtype_of
from gen.ir.interpret.sizes import value
from gen.ir.nodes import Allocate, Binary, Delinearize, Expr, Kernel, Loop, Node, Unary
from gen.ir.text.parser import from_text
from gen.ir.types import INDEX
from gen.ir.walk import children, loads, walk
from gen.lower.finish import finish
from gen.targets.cuda.width import IndexReach, reach

from .made import ELEMENTWISE, NAMES, TARGET, TRIED, variants

SIZES = (0, 1, 7, 129, 100_000)


def at(most: IndexReach, sizes: Mapping[str, int]) -> Fraction:
    return sum(
        (c * prod(abs(sizes[name]) for name in m) for m, c in most.terms.items()), Fraction(0)
    )


def reached(node: Node, sizes: Mapping[str, int]) -> Iterator[int]:
    """All index expressions, for the first and the last iteration of each loop."""
    match node:
        case Loop(var, lower, upper, _, body):
            first, end = value(lower, sizes), value(upper, sizes)
            yield from (first, end)
            for i in {first, end - 1} if first < end else ():
                yield from reached(body, {**sizes, var: i})
        case Delinearize(names, extents, _, body):
            ends = [value(e, sizes) for e in extents]
            yield prod(ends)
            for places in itertools.product(*({0, max(0, e - 1)} for e in ends)):
                yield from reached(body, {**sizes, **dict(zip(names, places, strict=True))})
        case Allocate(buffers, body):
            yield from (prod(value(e, sizes) for e in b.shape) for b in buffers)
            yield from reached(body, sizes)
        case Binary() | Unary() if dtype_of(node) is INDEX and not loads(node):
            yield from (value(e, sizes) for e in walk(node) if isinstance(e, Expr))
        case _:
            for child in children(node):
                yield from reached(child, sizes)


def finished(name: str) -> Iterator[Kernel]:
    _, made = variants(name)
    return (finish(v.lowered.kernel, TARGET.finishing) for v in made)


# matmul's loops are too many, and elementwise kernels' are alike
FEW = {*NAMES, *TRIED} - {*ELEMENTWISE, "matmul", "matmul_gpu"} | {"gelu"}


@pytest.mark.parametrize("name", sorted(FEW))
def test_no_index_is_more_than_the_bound(name: str) -> None:
    for kernel in finished(name):
        most = reach(kernel)
        assert most is not None
        names = [*kernel.dims, *(s.name for s in kernel.scalars if s.dtype is INDEX)]
        for sizes in itertools.islice(itertools.product(SIZES, repeat=len(names)), 60):
            known = dict(zip(names, sizes, strict=True))
            bound = at(most, known)
            assert all(abs(i) <= bound for i in reached(kernel.body, known))


@pytest.mark.parametrize("name", [*TRIED, *NAMES])
def test_the_bound_is_not_much_more_than_the_sizes(name: str) -> None:
    """Arrays of a gibibyte have indices of 32 bits."""
    for kernel in finished(name):
        most = reach(kernel)
        assert most is not None
        assert at(most, {**dict.fromkeys(kernel.dims, 2**14), "steps": 100}) < 2**30


def test_data_that_takes_part_in_indices_needs_64_bits() -> None:
    kernel = from_text(
        """
def k(n, at: int64[n], x: float32[n], y: Out[float32[n]]):
    for y.i in blockIdx.x(n):
        with block("y", i=spatial(y.i)):
            y[i] = x[min(max(at[i], 0), n - 1)]
"""
    )
    assert reach(kernel) is None
