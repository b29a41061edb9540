"""What the prover accepts, the interpreter agrees with: right trees with a constant off by one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from gen.ir.algebra import index
from gen.ir.interpret.interp import InterpError, run
from gen.ir.nodes import Const, Expr, Intent, Kernel, Loop, LoopKind, Node, Seq
from gen.ir.rules.verify import IRError, verify_any
from gen.ir.types import INDEX
from gen.ir.walk import map_children, replace_stmt, substitute, walk
from gen.poly.certificate import Scheduled, Source
from gen.poly.prove import Refused, prove
from gen.poly.workbench import Workbench

from . import test_blur, test_order, test_reductions, test_refusals, test_softmax, test_surplus
from .script import certificate

INPUT = Source(initial=True)
GUARD = "where=i != k and j != k"


@dataclass(frozen=True)
class Case:
    plain: Kernel
    tree: Kernel
    changes: Mapping[str, Source]
    sizes: tuple[int, ...] = (0, 1, 3, 9)


CASES = {
    "overlapped": Case(
        test_blur.PLAIN,
        test_blur.overlapped(rows=6, fold=6, tile=4),
        {"by_0": test_blur.TILED, "by_1": test_blur.TILED},
    ),
    "window": Case(test_blur.PLAIN, test_blur.windowed(), {}),
    "sum": Case(test_reductions.PLAIN, test_reductions.fused("before"), {}),
    "partial": Case(
        test_reductions.PLAIN,
        test_reductions.partial(),
        {"s_0": test_reductions.JOIN, "s_rf_0": test_reductions.INPUT},
    ),
    "packed": Case(
        test_reductions.PLAIN_MATMUL,
        test_reductions.packed(m=4, n=4, depth=2, mr=2, nr=2),
        test_reductions.PACKED,
        (1, 5),
    ),
    "softmax": Case(test_softmax.PLAIN, test_softmax.one_pass(lanes=2), test_softmax.ROWS),
    "cached": Case(test_softmax.matvec(True), test_softmax.cached(), test_softmax.LOCAL),
    "updated": Case(
        test_softmax.matvec(False),
        test_softmax.cached(init="c[i]"),
        {**test_softmax.LOCAL, "acc.init_0": test_softmax.INPUT},
    ),
    "peeled": Case(
        test_softmax.PLAIN_SHIFT, test_softmax.peeled("y[i] = x[i - 1]"), {"y_0": INPUT}
    ),
    "pairs": Case(
        test_softmax.argmax(),
        test_refusals.pairs("r"),
        {"v_0": Source(("w",)), "v_1": Source(("w",)), "w_0": INPUT},
    ),
    "seidel": Case(test_order.PLAIN_SEIDEL, test_order.interchanged(), {}, (0, 1, 3, 5)),
    "floyd": Case(test_order.floyd("range", GUARD), test_order.floyd("parallel", GUARD), {}),
    "skewed": Case(test_order.PLAIN_HEAT, test_order.skewed(1, steps=2), {}),
    "scan": Case(test_order.PLAIN_SCAN, test_order.strip_mined(), {}),
    "ring": Case(test_order.PLAIN_BANDS, test_order.bands(3), {}),
    "surplus sums": Case(test_surplus.PLAIN_SUM, test_surplus.sums(), test_surplus.SUM_FLOW),
    "surplus stores": Case(
        replace(test_surplus.PLAIN_TWICE, assumptions=test_surplus.stores().assumptions),
        test_surplus.stores(),
        test_surplus.STORED,
        (1, 2, 5),
    ),
    "fused": Case(
        test_order.PLAIN_ADD,
        test_order.fused(
            "f_0 * 4 + f_1", "for f_0 in parallel((m * n + 3) // 4)", "for f_1 in range(4)"
        ),
        {},
    ),
}


def mutants(tree: Kernel) -> Iterator[Kernel]:
    """The tree with one index constant one more or one less, one loop in any order, or two
    statements exchanged.
    """
    for node in walk(tree.body):
        match node:
            case Loop(kind=LoopKind.SERIAL | LoopKind.UNROLLED):
                for kind in (LoopKind.PARALLEL, LoopKind.VECTORIZED):
                    body = replace_stmt(tree.body, node, replace(node, kind=kind))
                    yield replace(tree, body=body)
            case Seq((*before, one, two)):
                exchanged = Seq((*before, two, one))
                yield replace(tree, body=replace_stmt(tree.body, node, exchanged))
            case _:
                pass
    count = sum(_is_index(n) for n in walk(tree.body))
    for position, change in product(range(count), (-1, 1)):
        yield replace(tree, body=_changed(tree.body, iter(range(count)), position, change))


def well_formed(kernel: Kernel) -> bool:
    """Whether the prover is ever asked."""
    try:
        verify_any(kernel)
    except IRError:
        return False
    return True


def _changed(node: Node, numbers: Iterator[int], position: int, change: int) -> Node:
    """The node with the constant that gets the number `position` changed."""
    if isinstance(node, Const) and node.dtype is INDEX:
        hit = next(numbers) == position
        return replace(node, value=int(node.value) + change) if hit else node
    return map_children(node, lambda child: _changed(child, numbers, position, change))


def _is_index(node: Node) -> bool:
    return isinstance(node, Const) and node.dtype is INDEX


def agrees(plain: Kernel, tree: Kernel, sizes: tuple[int, ...]) -> bool:
    """Whether the two compute the same for all choices of the sizes."""
    return all(
        _agrees(plain, tree, dict(zip(plain.dims, chosen, strict=True)), seed)
        for seed, chosen in enumerate(product(sizes, repeat=len(plain.dims)))
    )


def _agrees(plain: Kernel, tree: Kernel, dims: Mapping[str, int], seed: int) -> bool:
    random = np.random.default_rng(seed)
    arrays = {
        p.buffer.name: random.integers(-3, 4, [extent(e, dims) for e in p.buffer.shape]).astype(
            np.float32
        )
        for p in plain.parameters
        if p.intent is not Intent.OUT
    }
    expected = run(plain, arrays, dims=dims)
    try:
        got = run(tree, arrays, dims=dims, seed=seed)
    except InterpError:
        return False
    return all(np.allclose(got[name], expected[name]) for name in expected)


def extent(expr: Expr, dims: Mapping[str, int]) -> int:
    match substitute(expr, {name: index(size) for name, size in dims.items()}):
        case Const(int() as value):
            return value
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize("name", CASES)
def test_what_is_accepted_is_right(name: str) -> None:
    case, bench = CASES[name], Workbench()
    flow = certificate(case.plain, dict(case.changes))
    prove(case.plain, Scheduled(case.tree, flow), bench)
    assert agrees(case.plain, case.tree, case.sizes)
    refused = 0
    for mutant in filter(well_formed, mutants(case.tree)):
        try:
            prove(case.plain, Scheduled(mutant, flow), bench)
        except Refused:
            refused += 1
        else:
            assert agrees(case.plain, mutant, case.sizes), mutant
    assert refused
