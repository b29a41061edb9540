"""Instances that the plain schedule does not have, and that write what nothing reads: legal ones,
and what each of the others is refused for.
"""

import pytest

from gen.ir.nodes import Kernel
from gen.poly.certificate import Source

from .script import accept, block, kernel, nest, refusal

INPUT = Source(initial=True)
SUM = "n, x: float32[n, n], y: Out[float32[n]]"
PLAIN_SUM = kernel(
    SUM,
    nest(
        "for y.i in range(n)",
        "for y.k in range(n)",
        block("y", "i=y.i, k+=y.k", "y[i] = combine.sum(y[i], x[i, k])", "initialises=True"),
    ),
)
SUM_FLOW = {"p_0": INPUT, "y_0": Source(("p",)), "y_1": Source(("p",)), "out_0": Source(("y",))}


def sums(
    value: str = "p[i, k]", to: str = "t[i]", copied: str = "n + 4", started: str = "n + 4"
) -> Kernel:
    """Sums of four rows more than there are, of which `p` has copies."""
    copy = nest(
        f"for p.i in range({copied})",
        "for p.k in range(n)",
        block("p", "i=p.i, k=p.k", "p[i, k] = x[i, k] if i < n else 0.0", "origin=None"),
    )
    init = nest(
        f"for init.i in range({started})",
        block("init", "i=init.i", "t[i] = identity.sum", "origin=None"),
    )
    add = nest(
        "for y.i in range(n + 4)",
        "for y.k in range(n)",
        block("y", "i=y.i, k+=y.k", f"{to} = combine.sum({to}, {value})"),
    )
    out = nest("for out.i in range(n)", block("out", "i=out.i", "y[i] = t[i]", "origin=None"))
    return kernel(SUM, copy, init, add, out, temporaries="p=float32[n + 4, n], t=float32[n + 4]")


@pytest.mark.parametrize("value", ["p[i, k]", "p[i, k] if i < n else p[0, k] * 2.0"])
def test_sums_that_nothing_reads(value: str) -> None:
    accept(PLAIN_SUM, sums(value), **SUM_FLOW)


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (
            sums(to="t[i if i < n else 0]"),
            "out[i=0] reads 't', to which y[i=1, k=0] adds, an instance that the plain schedule"
            " does not have (for example: n=1; out[i=0] runs at out.i=0; y[i=1, k=0] runs at"
            " y.i=1, y.k=0; element t[0])",
        ),
        (
            sums(copied="n"),
            "y[i=1, k=0] reads 'p', which nothing has written, in an instance that the plain"
            " schedule does not have (for example: n=1; y[i=1, k=0] runs at y.i=1, y.k=0;"
            " element p[1, 0])",
        ),
        (sums(started="n"), "reads 't', which nothing has written, in an instance that the"),
        (
            sums("p[i, k] if i < n else 0.0", started="n"),  # padding, not surplus
            "reads 't', which nothing has written, in an instance that the plain schedule",
        ),
        (sums("x[i, k]"), "y[i=1, k=0] reads 'x' outside its bounds, at [1, 0]"),
        (sums(to="t[i if i < n else i + 1]"), "writes 't' outside its bounds, at [5]"),
    ],
)
def test_sums_that_something_reads_or_that_leave_their_arrays(tree: Kernel, reason: str) -> None:
    assert reason in refusal(PLAIN_SUM, tree, **SUM_FLOW).message


def test_an_argument_is_the_callers_to_read() -> None:
    """Though what a surplus instance leaves there is overwritten."""
    into = "n, x: float32[n], y: Out[float32[n + 4]]"
    zeros = nest("for z.i in range(n, n + 4)", block("z", "i:n:n+4=z.i", "y[i] = 0.0"))
    plain = kernel(into, nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = x[i]")), zeros)
    longer = block("y", "i=y.i", "y[i] = x[i] if i < n else 1.0")
    tree = kernel(into, nest("for y.i in range(n + 4)", longer), zeros)
    assert "runs, an instance that block 'y' of the plain schedule does not have" in (
        refusal(plain, tree).message
    )


# ---------------------------------------------------------------- stores

TWICE = "n, x: float32[n], y: Out[float32[n]]"
PLAIN_TWICE = kernel(
    TWICE,
    nest("for t.i in range(n)", block("t", "i=t.i", "t[i] = x[i] * 2.0")),
    nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = t[i]")),
    temporaries="t=float32[n]",
)


def stores(
    at: str = "i", value: str = "x[i] * 2.0 if i < n else x[0]", copied: str = "n + 4"
) -> Kernel:
    """Four more than there are, and copies of them."""
    return kernel(
        TWICE,
        nest("for t.i in range(n + 4)", block("t", "i=t.i", f"t[{at}] = {value}")),
        nest(f"for c.i in range({copied})", block("c", "i=c.i", "c[i] = t[i]", "origin=None")),
        nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = c[i]")),
        temporaries="t=float32[n + 4], c=float32[n + 4]",
        assume="n >= 1",
    )


STORED = {"t_0": INPUT, "t_1": INPUT, "c_0": Source(("t",)), "y_0": Source(("c",))}


def test_stores_that_nothing_reads_but_copies() -> None:
    accept(PLAIN_TWICE, stores(), **STORED)


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (
            stores("i if i < n else 0", copied="n"),
            "y[i=0] needs t[0] from 'c', but its source does not put it",
        ),
        (stores("i + 4 if i < n else i - n"), "'c', but its source does not put it there"),
        (stores(copied="n + 5"), "reads 't' outside its bounds"),
    ],
)
def test_stores_that_something_reads(tree: Kernel, reason: str) -> None:
    assert reason in refusal(PLAIN_TWICE, tree, **STORED).message


def test_a_store_over_what_is_read() -> None:
    tree = kernel(
        TWICE,
        nest(
            "for t.i in range(n + 4)",
            block("t", "i=t.i", "t[i if i < n else 0] = x[i] * 2.0 if i < n else 1.0"),
        ),
        nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = t[i]")),
        temporaries="t=float32[n + 4]",
    )
    assert "y[i=0] reads 't', which t[i=0] computes, but t[i=4] overwrites it in between" in (
        refusal(PLAIN_TWICE, tree).message
    )


# ---------------------------------------------------------------- what may not run at all


def test_divisions_by_what_may_be_0() -> None:
    signature = "n, x: int32[n], d: int32[n], y: Out[int32[n]]"
    plain = kernel(
        signature,
        nest("for t.i in range(n)", block("t", "i=t.i", "t[i] = x[i] // d[i]")),
        nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = t[i]")),
        temporaries="t=int32[n]",
    )

    def tree(divisor: str) -> Kernel:
        zeros = "e[i] = d[i] if i < n else int32(0)"
        return kernel(
            signature,
            nest("for e.i in range(n + 4)", block("e", "i=e.i", zeros, "origin=None")),
            nest(
                "for t.i in range(n + 4)",
                block("t", "i=t.i", f"t[i] = (x[i] if i < n else int32(0)) // {divisor}"),
            ),
            nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = t[i]")),
            temporaries="t=int32[n + 4], e=int32[n + 4]",
        )

    flow = {"e_0": INPUT, "t_0": INPUT, "t_1": Source(("e",)), "y_0": Source(("t",))}
    assert "t[i=3] runs, an instance that block 't' of the plain schedule does not have" in (
        refusal(plain, tree("e[i]"), **flow).message
    )
