"""The spec's flow: which writes a read is asked about, and what stays the same by that."""

from dataclasses import replace

import pytest

from gen.ir.nodes import Kernel
from gen.poly.sets.statement import Access
from gen.poly.values import flow
from gen.poly.values.flow import Logical, Values, logical_flow, plain_flow
from gen.poly.witness import Refused

from .script import block, kernel, nest

VECTOR = "n, x: float32[n], y: InOut[float32[n]]"
TOTAL = "m, x: float32[m], z: InOut[float32[m]]"


def rows(*statements: str) -> Kernel:
    """Statements on all elements of y, one after the other."""
    loops = (
        nest(f"for y_{k}.i in range(n)", block(f"y_{k}", f"i=y_{k}.i", body))
        for k, body in enumerate(statements)
    )
    return kernel(VECTOR, *loops)


def together(*statements: str, around: str = "for t in range(n)") -> Kernel:
    """Statements on element t of y, all in one loop."""
    return kernel(
        VECTOR,
        nest(around, "\n".join(block(f"y_{k}", "i=t", body) for k, body in enumerate(statements))),
    )


def totals(read: str, reset: str) -> Kernel:
    """Sums that go on from one iteration to the next, read and reset in between."""
    body = (
        block("y", "t+=t", "y[0] = combine.sum(y[0], x[t])", "initialises=True"),
        block("z", "t=t", "z[t] = y[0]", read),
        block("y_1", "t=t", "y[0] = 0.0", reset),
    )
    return kernel(TOTAL, nest("for t in range(m)", "\n".join(body)), temporaries="y=float32[1]")


ADD, STORE = "y[i] = combine.sum(y[i], x[i])", "y[i] = y[i] + x[i]"
TREES = {
    "stores": rows(STORE, "y[i] = x[i] * 2.0", STORE, STORE),
    "updates": rows("y[i] = x[i]", ADD, ADD, STORE, ADD),
    "in one loop": together(STORE, "y[i] = x[i]", STORE, ADD, STORE),
    "updates in one loop": together(ADD, ADD, "y[i] = x[i]", ADD, STORE, ADD),
    "from the iteration before": together(
        "y[i] = y[i - 1] + x[i]", "y[i] = y[i] + y[i - 1]", around="for t in range(1, n)"
    ),
    "every other": kernel(
        VECTOR,
        nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = x[i]", "where=y.i % 2 == 0")),
        nest("for y_1.i in range(n)", block("y_1", "i=y_1.i", STORE, "where=y_1.i % 2 == 1")),
        nest("for y_2.i in range(n)", block("y_2", "i=y_2.i", STORE)),
    ),
    "a sum read at the end of a loop around it": totals("where=t == m - 1", "where=t > m"),
    "now and then": kernel(
        TOTAL,
        nest(
            "for t in range(m)",
            "\n".join(
                (
                    block("y", "t=t", "y[0] = x[t]", "where=t % 2 == 0"),
                    block("z", "t=t", "z[t] = y[0]"),
                    block("y_1", "t=t", "y[0] = x[t] * 2.0"),
                )
            ),
        ),
        temporaries="y=float32[1]",
    ),
    "sweeps": kernel(
        VECTOR,
        nest(
            "for t in range(n)",
            "\n".join(
                nest(
                    f"for y_{k}.i in range(1, n)",
                    block(f"y_{k}", f"t=t, i=y_{k}.i", "y[i] = y[i] + y[i - 1]"),
                )
                for k in range(3)
            ),
        ),
    ),
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_what_is_left_out_changes_nothing(tree: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = logical_flow(tree)
    monkeypatch.setattr(flow, "_seen", all_seen)
    _require_equal(fewer, logical_flow(replace(tree)))


def all_seen(read: Access, logical: Logical, own: bool) -> dict[Access, object]:
    """Every write to the array that may come before the read, however long before."""
    found = {}
    for w in logical.relations.writes(read.storage):
        found[w] = logical.relations.earlier(read, w)
        if not own and w.statement is read.statement:
            found[w] = found[w].subtract(flow._same_key(w, logical))
    return found


def _require_equal(a: Logical, b: Logical) -> None:
    for ours, theirs in ((a.reads, b.reads), (a.bases, b.bases), (a.finals, b.finals)):
        assert set(ours) == set(theirs)
        for key in ours:
            _require_equal_values(ours[key], theirs[key])


def _require_equal_values(ours: Values, theirs: Values) -> None:
    assert set(ours) == set(theirs)
    assert all(ours[value].is_equal(theirs[value]) for value in ours)


def test_a_sum_that_is_reset_between_its_terms_is_none() -> None:
    """Terms of this iteration hide those of the last, unless it is one sum: so what came between
    has to be looked at.
    """
    with pytest.raises(Refused, match=r"z\[t=4\] reads 'y' between the updates of block 'y'"):
        plain_flow(totals("where=t == m - 1", "where=t == 3"))


@pytest.mark.parametrize("make", [rows, together])
def test_reads_of_a_long_body_are_asked_about_few_writes(make: object) -> None:
    assert callable(make)
    relations = logical_flow(make(*[STORE] * 60)).relations
    assert len(relations._earlier) < 60 * 6, "of 3600 pairs"
