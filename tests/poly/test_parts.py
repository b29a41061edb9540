"""Proofs by parts: what a step left alone is not proved again, and all else is."""

from collections.abc import Mapping
from itertools import islice

import pytest

from gen.ir.nodes import Kernel
from gen.poly.certificate import Scheduled, Source
from gen.poly.limit import prove_within
from gen.poly.prove import Refused, prove
from gen.poly.sets.extract import extract
from gen.poly.sets.order import Relations
from gen.poly.workbench import Workbench
from gen.schedule.examples import ROW_EXPONENTIALS
from tests.schedule.support import schedule, start

from .script import block, certificate, kernel, nest
from .test_mutations import CASES, mutants, well_formed


def stage(name: str, value: str, loop: str = "range(n)", more: str = "") -> str:
    return nest(
        f"for {name}.i in {loop}", block(name, f"i:0:n={name}.i", f"{name}[i] = {value}", more)
    )


A, B, Y = stage("a", "x[i] + 0.0"), stage("b", "a[i] * 3.0"), stage("y", "b[i] + a[n - 1 - i]")


def chain(*statements: str, assume: str = "") -> Kernel:
    return kernel(
        "n, x: float32[n], y: Out[float32[n]]",
        *statements,
        temporaries="a=float32[n], b=float32[n]",
        assume=assume,
    )


def more_known(bench: Workbench, plain: Kernel, tree: Kernel) -> int:
    """How many parts of a tree were not known before."""
    before = len(bench.proved(plain))
    prove(plain, Scheduled(tree, certificate(plain, {})), bench)
    return len(bench.proved(plain)) - before


def split(kind: str = "range") -> str:
    loops = ("for b.i_0 in range((n + 3) // 4)", f"for b.i_1 in {kind}(4)")
    at = "b.i_0 * 4 + b.i_1"
    return nest(*loops, block("b", f"i:0:n={at}", "b[i] = a[i] * 3.0", f"where={at} < n"))


def test_a_step_proves_what_it_touches() -> None:
    plain, bench = chain(A, B, Y), Workbench()
    assert more_known(bench, plain, plain) == 4  # three statements, and what y is at the end
    assert more_known(bench, plain, plain) == 0
    assert more_known(bench, plain, chain(A, split(), Y)) == 2  # b, and y, which reads it
    assert (
        more_known(bench, plain, chain(A, split("parallel"), Y)) == 4
    )  # and the places of a and b


def test_positions_count_by_their_order() -> None:
    """A statement elsewhere moves what follows, and changes no part but its own."""
    plain, bench = chain(A, B, Y), Workbench()
    prove(plain, Scheduled(plain, certificate(plain, {})), bench)
    unused = nest("for c.i in range(n)", block("c", "i=c.i", "b[i] = x[i]", "origin=None"))
    before = len(bench.proved(plain))
    flow = {**certificate(plain, {}), ("c", 0): Source(initial=True)}
    prove(plain, Scheduled(chain(A, unused, B, Y), flow), bench)
    assert len(bench.proved(plain)) - before == 3  # it, b, which writes there too, and y
    with pytest.raises(Refused, match=r"but c.* overwrites it in between"):
        prove(plain, Scheduled(chain(A, B, unused, Y), flow), bench)


WRONG = {
    "a reader before what it reads": (chain(B, A, Y), {}, "before"),
    "another value": (chain(A, stage("b", "a[i] * 4.0"), Y), {}, "computes"),
    "a zero of another sign": (chain(stage("a", "x[i] + -0.0"), B, Y), {}, "computes"),
    "fewer iterations": (chain(A, stage("b", "a[i] * 3.0", "range(n - 1)"), Y), {}, "its source"),
    "a guard": (chain(A, stage("b", "a[i] * 3.0", more="where=b.i < 7"), Y), {}, "its source"),
    "another source": (chain(A, B, Y), {"y_1": Source(("b",))}, "computes"),
    "what the call began with": (chain(A, B, Y), {"y_0": Source(initial=True)}, "computes"),
    "two in one place": (
        chain(A, B.replace("b[i] =", "b[i // 2] ="), Y),
        {},
        "its source|overwrites",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_known_proves_nothing_else(name: str) -> None:
    tree, changes, reason = WRONG[name]
    plain, bench = chain(A, B, Y), Workbench()
    prove(plain, Scheduled(plain, certificate(plain, {})), bench)
    before = bench.proved(plain)
    with pytest.raises(Refused, match=reason):
        prove(plain, Scheduled(tree, certificate(plain, changes)), bench)
    assert bench.proved(plain) == before  # a refusal teaches nothing


def test_nothing_is_assumed_but_by_the_plain_schedule() -> None:
    plain, short = chain(A, B, Y), stage("b", "a[i] * 3.0", "range(max(n, 5))")
    large, bench = chain(A, B, Y, assume="n > 5"), Workbench()
    prove(large, Scheduled(chain(A, short, Y), certificate(large, {})), bench)
    with pytest.raises(Refused, match="outside"):
        prove(plain, Scheduled(chain(A, short, Y), certificate(plain, {})), bench)
    tree = chain(A, short, Y, assume="n > 5")
    with pytest.raises(Refused) as refused:
        prove(plain, Scheduled(tree, certificate(plain, {})), bench)
    assert refused.value.message == ("the tree assumes `n > 5`, which the plain schedule does not")


def in_turns(*, inside: bool) -> Kernel:
    """a in the first iteration of a loop, y in the second; a's buffer in or around the loop."""
    a = nest("for a.i in range(n)", block("a", "i=a.i", "a[i] = x[i] + 0.0", "where=o < 1"))
    y = nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = a[i]", "where=o >= 1"))
    headers = ["for o in range(2)", "with allocate(a=float32[n])"]
    tree = nest(*(headers if inside else reversed(headers)), f"{a}\n{y}")
    return kernel("n, x: float32[n], y: Out[float32[n]]", tree)


def test_where_a_buffer_is_allocated_counts() -> None:
    plain = kernel(
        "n, x: float32[n], y: Out[float32[n]]", A, stage("y", "a[i]"), temporaries="a=float32[n]"
    )
    bench = Workbench()
    prove(plain, Scheduled(in_turns(inside=False), certificate(plain, {})), bench)
    with pytest.raises(Refused, match="its source does not put it there"):
        prove(plain, Scheduled(in_turns(inside=True), certificate(plain, {})), bench)


def answer(bench: Workbench, plain: Kernel, tree: Kernel, changes: Mapping[str, Source]) -> str:
    try:
        prove(plain, Scheduled(tree, certificate(plain, dict(changes))), bench)
    except Refused as refused:
        return refused.message
    return "proved"


@pytest.mark.parametrize("name", ["overlapped", "cached", "partial", "ring", "peeled"])
def test_what_is_known_changes_no_answer(name: str) -> None:
    """Nearly right trees, asked after the right one and each other, and alone."""
    case, bench = CASES[name], Workbench()
    assert answer(bench, case.plain, case.tree, case.changes) == "proved"
    answers = set()
    for tree in islice(filter(well_formed, mutants(case.tree)), 0, None, 4):
        found = answer(bench, case.plain, tree, case.changes)
        assert found == answer(Workbench(), case.plain, tree, case.changes)
        answers.add(found)
    assert len(answers) > 2


def test_a_part_has_all_writes_that_it_asks_for() -> None:
    tree = extract(chain(A, B, Y))
    part = Relations(tree).within(tree, frozenset({"a"}))
    a, b = (s.writes[0].storage for s in tree.statements[:2])
    assert [w.statement.name for w in part.writes(a)] == ["a"]
    with pytest.raises(LookupError, match="asks for the writes to 'b'"):
        part.writes(b)


def test_what_a_child_proved_is_known() -> None:
    plain, bench = chain(A, B, Y), Workbench()
    prove_within(plain, Scheduled(plain, certificate(plain, {})), 60, bench=bench)
    assert len(bench.proved(plain)) == 4
    assert more_known(bench, plain, chain(A, split(), Y)) == 2


def test_values_under_laws_are_no_others() -> None:
    """What is asked without the law first is answered without it, and with it afterwards."""
    before, bench = start(ROW_EXPONENTIALS), Workbench()
    after, plain = schedule(before, "- rescale: {blocks: [peak, y]}")[-1].state, before.kernel
    prove(plain, before, bench)
    prove(plain, after, bench)
    prove(plain, before, bench)
    assert bench.values(plain) is not bench.values(plain, after.laws)
