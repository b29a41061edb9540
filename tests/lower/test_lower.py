"""Lowered trees: bounds, storage and certificates; the interpreter's and the prover's word."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen.errors import TilesmithError
from gen.ir.algebra import TRUE, index
from gen.ir.index.facts import of_kernel
from gen.ir.index.linear import Linear, linear, tidy
from gen.ir.index.simplify import resolve
from gen.ir.interpret.interp import run
from gen.ir.interpret.sizes import value
from gen.ir.nodes import Allocate, Binary, Buffer, If, Kernel, Loop, LoopKind, Scope, Var
from gen.ir.rules.verify import verify
from gen.ir.text.parser import from_text
from gen.ir.text.print_expr import expr_to_text
from gen.ir.text.printer import to_text
from gen.ir.types import DType
from gen.ir.walk import blocks, loops, nested, variables, walk
from gen.lower.loop_bounds import implied, split_guards
from gen.lower.lower import lower
from gen.poly.certificate import Scheduled, Source
from gen.poly.prove import prove
from gen.poly.witness import Refused
from gen.targets.cpu.levels import Level, Processor
from gen.targets.cpu.target import Cpu
from tests.schedule.support import assert_same, schedule, start
from tests.targets import kernels
from tests.targets.kernels import Case, lowered

CASES = {"softmax": kernels.softmax(4), "matmul": kernels.matmul(4), "blur": kernels.blur(4)}


def buffers(kernel: Kernel) -> dict[str, Buffer]:
    return {b.name: b for n in walk(kernel) if isinstance(n, Allocate) for b in n.buffers}


def shape(kernel: Kernel, name: str) -> str:
    return ", ".join(str(linear(e).constant) for e in buffers(kernel)[name].shape)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_lowered_trees_are_proved(case: Case) -> None:
    prove(from_text(case.plain), lower(case.state(), Cpu(Level.V2).lowering))


def test_a_wrong_lowering_is_refused() -> None:
    case = CASES["blur"]
    state = lower(case.state(), Cpu(Level.V2).lowering)
    text = to_text(state.kernel).replace("range(1, (n + 3) // 4 - 1)", "range(2, (n + 3) // 4 - 1)")
    assert text != to_text(state.kernel)
    with pytest.raises(Refused):
        prove(from_text(case.plain), Scheduled(from_text(text), state.flow))


@pytest.mark.parametrize("n", [0, 1, 3, 4, 9])
def test_interpreted_as_before(n: int) -> None:
    case = CASES["blur"]
    x = np.random.default_rng(1).standard_normal((3, n)).astype("f")
    result = lower(case.state(), Cpu(Level.V2).lowering).kernel
    before = run(from_text(case.scheduled), {"x": x})["y"]
    np.testing.assert_array_equal(run(result, {"x": x}, seed=3)["y"], before)


def test_a_block_that_never_runs_is_gone_from_the_certificate() -> None:
    """What peel leaves of a loop of one iteration."""
    plain = """\
def twice(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = x[i] * 2.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i]
"""
    once = """\
        for t.unit in range(1, 1):
            for t_2.i in range(n):
                with block("t_2", i=spatial(t_2.i), origin=t[i]):
                    t[i] = x[i] * 2.0
        for y.i"""
    tree = from_text(plain.replace("        for y.i", once))
    given = Source(initial=True)
    flow = {("t", 0): given, ("t_2", 0): given, ("y", 0): Source(("t", "t_2"))}
    state = Scheduled(tree, flow)
    prove(from_text(plain), state)
    after = lower(state, Cpu(Level.V2).lowering)
    assert [block.name for block in blocks(after.kernel)] == ["t", "y"]
    prove(from_text(plain), after)


def test_loops_around_nothing_are_gone() -> None:
    """Around barriers, which order nothing in C, and around loops that never run."""
    plain = """\
def copy(n, x: float32[n], y: Out[float32[n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = x[i]
"""
    more = """\
    for b.i in range(n):
        barrier()
    for z.i in range(n):
        for z.j in range(1, 1):
            with block("z", i=spatial(z.i), origin=y[i]):
                y[i] = x[i]
"""
    state = Scheduled(from_text(plain + more), {})
    kernel = lower(state, Cpu(Level.V2).lowering).kernel
    assert [loop.var for loop in loops(kernel.body)] == ["y.i"]
    assert to_text(kernel) == plain


def test_round_trip() -> None:
    kernel = lowered(CASES["matmul"].scheduled)
    assert from_text(to_text(kernel)) == kernel


def test_full_parts_have_no_guards_and_tails_have() -> None:
    kernel = lowered(kernels.elementwise(4))
    full, tail = [loop for loop in loops(kernel.body) if loop.var == "y.j_0"]
    assert to_text(kernel).count("n // 4") == 2
    assert [b.predicate == TRUE for part in (full, tail) for b in blocks(part)] == [True, False]


def test_a_parallel_loops_tail_of_one_step_runs_beside_the_rest() -> None:
    """After it, the other threads would wait."""
    kernel = lowered(CASES["matmul"].scheduled)
    (loop,) = [loop for loop in loops(kernel.body) if loop.var == "acc.i_0"]
    assert loop.kind is LoopKind.PARALLEL
    full, tail = nested(loop.body)
    assert isinstance(full, If) and isinstance(tail, If)
    assert to_text(kernel).count("if acc.i_0 < m // 3:") == 1


def test_a_tail_ends_with_its_last_active_lane() -> None:
    """Tiles of 128 vectors: what is masked is one vector, not all those past the end."""
    kernel = lowered("""
def copy(n, x: float32[n], y: Out[float32[n]]):
    for y.i_0 in range((n + 511)//512):
        for y.i_1 in range(128):
            for y.i_2 in vectorized(4):
                with block(
                    "y",
                    i=spatial(y.i_0*512 + y.i_1*4 + y.i_2, n),
                    where=y.i_0*512 + y.i_1*4 + y.i_2 < n,
                ):
                    y[i] = x[i]
""")
    *_, tail = [loop for loop in loops(kernel.body) if loop.var == "y.i_1"]
    assert to_text(kernel).count("min(128, (n + 3) // 4 - y.i_0 * 128)") == 1
    assert any(loop.kind is LoopKind.VECTORIZED for loop in loops(tail.body))


BLOCKED = """
def rows(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    with allocate(all=float32[(n + 3)//4, m, 4]):
        for part.i in range(m):
            for part.j_0 in range((n + 7)//8):
                with allocate(part=float32[m, n] @ register):
                    for part.j_1 in unrolled(2):
                        for part.j_2 in vectorized(4):
                            with block(
                                "part",
                                i=spatial(part.i),
                                j=spatial(part.j_0*8 + part.j_1*4 + part.j_2, n),
                                where=part.j_0*8 + part.j_1*4 + part.j_2 < n,
                            ):
                                part[i, j] = x[i, j]
                    for all.j_1 in unrolled(2):
                        for all.j_2 in vectorized(4):
                            with block(
                                "all",
                                i=spatial(part.i),
                                j=spatial(part.j_0*8 + all.j_1*4 + all.j_2, n),
                                where=part.j_0*8 + all.j_1*4 + all.j_2 < n,
                            ):
                                all[j // 4, i, j % 4] = part[i, j]
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = all[j // 4, i, j % 4]
"""


def test_a_tiles_edge_is_found_in_a_blocked_layout() -> None:
    """A vector at a time, not a guard at each unrolled statement."""
    kernel = lowered(BLOCKED)
    *_, edge = [loop for loop in loops(kernel.body) if loop.var == "part.j_1"]
    assert edge.kind is LoopKind.SERIAL
    assert {loop.var for loop in loops(edge.body)} == {"part.j_2", "all.j_2"}
    x = np.arange(3 * 13, dtype="f").reshape(3, 13)
    np.testing.assert_array_equal(run(kernel, {"x": x})["y"], x)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("(n*8 + y.i)//8", "n"),
        ("(n*8 + y.i)%8", "y.i"),
        ("(n*16 + y.i*2 + 1)//16 + (n*8 + y.i + 1)//8", "n + (n*8 + y.i + 1)//8"),
        ("min(y.i, 7)", "y.i"),
        ("max(y.i, n)", "max(y.i, n)"),
        ("(n*8 + y.i)//4", "n*2 + y.i//4"),
        ("(y.i - 1)//8", "(y.i - 1)//8"),
        ("(n*8 + y.i)%16", "(n*8)%16 + y.i"),
        ("(n*24 + y.i + 3)%32", "(n*24 + y.i + 3)%32"),
        ("(n*32 + y.i*2 + 17)%64", "(n*32)%64 + y.i*2 + 17"),
        ("(n*4 + y.i)%16", "(n*4 + y.i)%16"),
        ("(n*8 + y.i) // 16", "n*8 // 16"),
        ("(n*24 + y.i + 8) // 16", "(n*24 + 8) // 16"),
        ("(n*4 + y.i) // 16", "(n*4 + y.i) // 16"),
        ("(n*8 + y.i + 1) // 16", "(n*8 + y.i + 1) // 16"),
    ],
)
def test_indices_resolved_by_facts(text: str, result: str) -> None:
    kernel = from_text(f"""
def k(n, y: Out[int64[n]]):
    for y.i in range(8):
        with block("y", i=spatial(y.i, n), where={text} == {result}):
            y[i] = 1
""")
    block = blocks(kernel.body)[0]
    assert isinstance(block.predicate, Binary)
    facts = of_kernel(kernel).inside(loops(kernel.body)[0])
    found, wanted = resolve(block.predicate.lhs, facts), block.predicate.rhs
    assert linear(found) - linear(wanted) == Linear()


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("(y.i - 1) % n", "y.i - 1"),
        ("(y.i + 1) % n", "y.i + 1"),
        ("(y.i - 2) % n", "(y.i - 2) % n"),  # the first of them is the last of the ring
        ("(y.i + n - 1) % n", "y.i - 1"),
        ("(y.i - n - 2) % n", "(y.i - n - 2) % n"),  # two turns back, of the first of them
        ("(y.i - n) % n", "y.i"),
        ("(y.i + 1) // n", "0"),
        ("(y.i - n) // n * n + (y.i + n) // n * 3", "3 - n"),
        ("(y.i - 1) % (n + 1) + 5 % s", "y.i - 1 + 5 % s"),
    ],
)
def test_turns_around_a_ring_are_decided_away_from_its_ends(text: str, result: str) -> None:
    kernel = from_text(f"""
def k(n, s: int64, y: Out[int64[n]]):
    for y.i in range(1, n - 1):
        with block("y", i=spatial(y.i, n), where={text} == {result}):
            y[i] = 1
""")
    block = blocks(kernel.body)[0]
    assert isinstance(block.predicate, Binary)
    facts = of_kernel(kernel).inside(loops(kernel.body)[0])
    found, wanted = resolve(block.predicate.lhs, facts), block.predicate.rhs
    assert linear(found) - linear(wanted) == Linear()


@settings(max_examples=60, deadline=None)
@given(st.integers(-12, 12), st.integers(-3, 3), st.integers(0, 4), st.integers(0, 4))
def test_what_is_decided_of_turns_is_their_value(c: int, more: int, first: int, last: int) -> None:
    """For all sizes and all iterations that there are."""
    kernel = from_text(f"""
def k(n, y: Out[int64[n]]):
    for y.i in range({first}, n - {last}):
        with block("y", i=spatial(y.i, n), where=(y.i + {c} + n*{more}) % n == (y.i + {c}) // n):
            y[i] = 1
""")
    (block,), (loop,) = blocks(kernel.body), loops(kernel.body)
    facts = of_kernel(kernel).inside(loop)
    assert isinstance(block.predicate, Binary)
    for expr in (block.predicate.lhs, block.predicate.rhs):
        found = resolve(expr, facts)
        for n in range(1, 9):
            for i in range(first, n - last):
                assert value(found, {"n": n, "y.i": i}) == value(expr, {"n": n, "y.i": i})


def test_guards_of_serial_loops_become_bounds() -> None:
    kernel = lowered("""
def copy(n, x: float32[n], y: Out[float32[n]]):
    for y.i_0 in range((n + 3)//4):
        for y.i_1 in range(4):
            with block("y", i=spatial(y.i_0*4 + y.i_1, n), where=y.i_0*4 + y.i_1 < n):
                y[i] = x[i]
""")
    assert "for y.i_1 in range(min(4, n - y.i_0 * 4))" in to_text(kernel)
    assert blocks(kernel.body)[0].predicate == TRUE


def test_guards_that_a_loop_does_not_change_stand_around_it() -> None:
    kernel = lowered(CASES["matmul"].scheduled)
    parts = nested(loops(kernel.body)[0].body)  # with the edge beside the rest
    ifs = [n for n in walk(kernel.body) if isinstance(n, If) and n not in parts]
    around = [n for n in ifs if "k" not in variables(n.condition)]
    assert around and all(isinstance(n.body, Loop) for n in around)


def test_temporaries_shrink_to_what_their_allocation_uses() -> None:
    softmax, matmul = lowered(CASES["softmax"].scheduled), lowered(CASES["matmul"].scheduled)
    assert [shape(softmax, name) for name in ("peak", "p_rf")] == ["1", "1, 2, 4"]
    assert linear(buffers(softmax)["e"].shape[1]).expr() == Var("n")
    assert tiles(matmul) == [(3, 8), (3, 4), (1, 8), (3, 8), (1, 4), (3, 4)]


def test_rows_left_of_a_tile_are_walked_where_what_they_all_read_is_near() -> None:
    """A copy is; an argument is read once for all of them, under guards."""
    head, *body = CASES["matmul"].scheduled.strip().splitlines()
    copied = f"""{head}
    with allocate(near=float32[k, n]):
        for near.i in range(k):
            for near.j in range(n):
                with block("near", i=spatial(near.i), j=spatial(near.j)):
                    near[i, j] = b[i, j]
""" + "\n".join("    " + line.replace("b[p, j]", "near[p, j]") for line in body)
    assert tiles(lowered(copied))[-4:] == [(3, 8), (3, 4), (1, 8), (1, 4)]


def test_rows_left_of_a_tile_are_walked_where_little_is_read_again() -> None:
    """A loop of few iterations reads it again for each row; both are there where it has a size."""
    kernel = lowered(CASES["matmul"].scheduled)
    assert tiles(kernel)[2:] == [(1, 8), (3, 8), (1, 4), (3, 4)]
    conditions = [expr_to_text(n.condition) for n in walk(kernel.body) if isinstance(n, If)]
    assert conditions.count("(k + 1) // 2 < 17") == conditions.count("16 < (k + 1) // 2") == 2


def tiles(kernel: Kernel) -> list[tuple[int, ...]]:
    buffers = (b for n in walk(kernel.body) if isinstance(n, Allocate) for b in n.buffers)
    return [tuple(linear(e).constant for e in buffer.shape) for buffer in buffers]


def test_a_window_that_slides_is_folded() -> None:
    kernel = lowered("""
def rows(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in range(1, m - 1):
        with allocate(t=float32[m, n]):
            for t.i in range(3):
                for t.j in range(n):
                    with block("t", i=spatial(y.i + t.i - 1, 0, m), j=spatial(t.j)):
                        t[i, j] = x[i, j] * 2.0
            for y.j in range(n):
                with block("y", i=spatial(y.i, 1, m - 1), j=spatial(y.j)):
                    y[i, j] = t[i - 1, j] + t[i, j] + t[i + 1, j]
""")
    assert buffers(kernel)["t"].shape[0] == index(3)
    x = np.random.default_rng(1).standard_normal((5, 2)).astype("f")
    y = run(kernel, {"x": x}, check=False)["y"]
    np.testing.assert_array_equal(y[1:4], 2 * x[:3] + 2 * x[1:4] + 2 * x[2:])


@pytest.mark.parametrize(
    ("declared", "scope"),
    [
        ("float64[2048]", Scope.STACK),
        ("float64[2049]", Scope.HEAP),
        ("float64[n]", Scope.HEAP),
        ("float64[n] @ stack", Scope.HEAP),
        ("float64[8] @ heap", Scope.HEAP),
        ("float64[8] @ register", Scope.REGISTER),
    ],
)
def test_scopes(declared: str, scope: Scope) -> None:
    size = "n" if "n]" in declared else declared.split("[")[1].split("]")[0]
    kernel = lowered(f"""
def k(n, y: Out[float64[n]]):
    with allocate(t={declared}):
        for t.i in range({size}):
            with block("t", i=spatial(t.i)):
                t[i] = 1.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[0]
""")
    assert buffers(kernel)["t"].scope is scope


def test_register_buffers_have_a_constant_size() -> None:
    words = r"'t' cannot be kept in registers: what is used of it has the shape \[n\]"
    with pytest.raises(TilesmithError, match=words):
        lowered("""
def k(n, y: Out[float64[n]]):
    with allocate(t=float64[n] @ register):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i] = 1.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i]
""")


def test_unit_loops_are_folded_and_leave_the_certificate() -> None:
    kernel = from_text("""
def k(n, x: float32[n], y: Out[float32[n]]):
    for y.one in range(1):
        for y.i in range(n):
            with block("y", i=spatial(y.one + y.i, n)):
                y[i] = x[i]
""")
    source = Source(initial=True, shared=("y.one", "y.i"))
    state = lower(Scheduled(kernel, {("y", 0): source}), Cpu(Level.V3).lowering)
    assert [loop.var for loop in loops(state.kernel.body)] == ["y.i"]
    assert blocks(state.kernel.body)[0].bindings == (Var("y.i"),)
    assert state.flow["y", 0].shared == ("y.i",)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("(n*16 + 5)//16", "n"),
        ("(n*16 + 21 + m)//16", "(m + 5)//16 + n + 1"),
        ("min(n + 1, n)", "n"),
        ("max(n + 1, n - 1)", "n + 1"),
        ("n - (n - m)", "m"),
    ],
)
def test_index_algebra(text: str, result: str) -> None:
    kernel = from_text(f"""
def k(m, n, y: Out[int64[n]]):
    assume({text} == {result})
    with block("y"):
        y[0] = 1
""")
    equal = kernel.assumptions[0]
    assert isinstance(equal, Binary)
    assert linear(tidy(equal.lhs)) - linear(equal.rhs) == Linear()


@pytest.mark.parametrize(
    ("goal", "holds"),
    [
        ("n // 4 >= 0", True),
        ("n - 4*(n // 4) >= 0", True),
        ("n - 4*(n // 4) <= 3", True),
        ("n - 4*(n // 4) <= 2", False),
        ("(n + 3)//4 <= n//4 + 1", True),
        ("(n + 3)//4 <= n//4", False),
        ("min(n, 7) <= 7", True),
        ("max(n, 7) <= 7", False),
        ("n >= 1", False),
    ],
)
def test_facts(goal: str, holds: bool) -> None:
    kernel = from_text(f"""
def k(n, y: Out[int64[n]]):
    assume({goal})
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = 1
""")
    facts = of_kernel(Kernel("k", ("n",), (), (), (), kernel.body))
    assert implied(kernel.assumptions[0], facts) is holds


def test_levels() -> None:
    lanes = [Processor(level).lanes(DType.FLOAT32) for level in Level]
    assert lanes == [4, 8, 16, 4]
    assert Processor(Level.V3).flags == ("-march=x86-64-v3",)


def test_a_guard_stands_around_all_loops_that_share_it() -> None:
    kernel = lowered("""
def k(m, n, x: float32[m, n], y: Out[float32[m, n]]):
    for y.i in range(m):
        for y.j_0 in range((n + 7) // 8):
            for y.j_1 in vectorized(8):
                with block("y", i=spatial(y.i), j=spatial(y.j_0*8 + y.j_1, n), where=y.j_0*8 + y.j_1 < n and m > 4):
                    y[i, j] = x[i, j]
""")  # noqa: E501
    assert isinstance(kernel.body, If)
    assert not any(isinstance(n, If) for n in walk(kernel.body.body))


def test_a_guard_with_the_loops_variable_in_a_remainder_is_no_bound() -> None:
    kernel = from_text("""\
def diagonals(n, x: float32[n, n], y: InOut[float32[n]]):
    for t in range(n):
        for k in range(n):
            with block("y", i=spatial(t), j=spatial(k), where=t + 3 >= (t - k) % 4 + 2 * k):
                y[i] = x[i, j]
""")
    done = split_guards(kernel)
    verify(done, lowered=True)
    x = np.random.default_rng(2).standard_normal((9, 9)).astype("f")
    before, after = (run(k, {"x": x, "y": np.zeros(9, "f")})["y"] for k in (kernel, done))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("place", ["i*s + k", "i*s + k - 3", "(i - s)*n + k", "s // (i + 1) + k"])
def test_a_loop_is_cut_at_no_place_that_proofs_do_not_know(place: str) -> None:
    """A clamp there stays one, and is a mask of vectors; the tail is cut off all the same."""
    text = f"""
def k(n, s: int64, x: float32[n], y: Out[float32[n]]):
    assume(s >= 1)
    assume(n >= 1)
    for y.i in range(n):
        for y.k in range(s):
            with block("y", i=spatial(y.i), k=reduction(y.k), initialises=True):
                y[i] = combine.max(y[i], x[min(max({place}, 0), n - 1)])
"""
    plain = start(text)
    (*_, last) = schedule(plain, "- vectorize: {loop: y.k, width: 4}")
    state = lower(last.state, Cpu(Level.V3).lowering)
    prove(plain.kernel, state)
    bounds = [loop.upper for loop in loops(state.kernel.body) if loop.var == "y.k_0"]
    assert {expr_to_text(b) for b in bounds} == {"s // 4", "(s + 3) // 4"}
    assert_same(plain.kernel, state.kernel, (1, 2, 9), {"s": 6})


FUSED_TILES = """\
def product(m, n, p, a: float32[m, p], b: float32[p, n], y: Out[float32[m, n]]):
    with allocate(t=float32[m, n]):
        for t.i in range(m):
            for t.j in range(n):
                for t.k in range(p):
                    with block(
                        "t",
                        i=spatial(t.i),
                        j=spatial(t.j),
                        k=reduction(t.k),
                        initialises=True,
                    ):
                        t[i, j] = combine.sum(t[i, j], a[i, k] * b[k, j])
        for y.i in range(m):
            for y.j in range(n):
                with block("y", i=spatial(y.i), j=spatial(y.j)):
                    y[i, j] = t[i, j]
"""


def test_whole_tiles_in_a_fused_loop_have_no_masks() -> None:
    """Parts of it are no ranges that could be cut: an If is around the whole tiles, and another."""
    before = start(FUSED_TILES)
    recipe = """\
- split: {loop: t.j, factors: [null, 4]}
- reorder: {loops: [t.i, t.j_0, t.k, t.j_1]}
- reverse_compute_at: {block: y, loop: t.j_0}
- decompose_reduction: {block: t, loop: t.k}
- set_scope: {buffer: t, scope: register}
- vectorize: {loop: t.init.j_1, width: 4}
- vectorize: {loop: t.j_1, width: 4}
- vectorize: {loop: y.j, width: 4}
- fuse: {loops: [t.i, t.j_0], as: t.tiles}"""
    state = lower(schedule(before, recipe)[-1].state, Cpu(Level.V2).lowering)
    prove(before.kernel, state)
    assert_same(before.kernel, state.kernel, (0, 1, 4, 7, 9))
    whole, edge = (n for n in walk(state.kernel) if isinstance(n, If))
    assert expr_to_text(whole.condition) == "t.j_0 < n // 4"
    assert all(b.predicate == TRUE for b in blocks(whole))
    assert expr_to_text(edge.condition) == "n // 4 <= t.j_0"
    assert all(b.predicate != TRUE for b in blocks(edge))


def test_tiles_that_are_whole_both_ways_in_a_fused_loop_have_no_guards() -> None:
    before = start(FUSED_TILES)
    recipe = """\
- split: {loop: t.i, factors: [null, 2]}
- split: {loop: t.j, factors: [null, 4]}
- reorder: {loops: [t.i_0, t.j_0, t.k, t.i_1, t.j_1]}
- reverse_compute_at: {block: y, loop: t.j_0}
- decompose_reduction: {block: t, loop: t.k}
- set_scope: {buffer: t, scope: register}
- unroll: {loop: t.init.i_1}
- vectorize: {loop: t.init.j_1, width: 4}
- unroll: {loop: t.i_1}
- vectorize: {loop: t.j_1, width: 4}
- unroll: {loop: y.i}
- vectorize: {loop: y.j, width: 4}
- fuse: {loops: [t.i_0, t.j_0], as: t.tiles}"""
    state = lower(schedule(before, recipe)[-1].state, Cpu(Level.V2).lowering)
    prove(before.kernel, state)
    assert_same(before.kernel, state.kernel, (0, 1, 2, 3, 5, 9))
    whole = [
        n
        for n in walk(state.kernel)
        if isinstance(n, If) and all(b.predicate == TRUE for b in blocks(n))
    ]
    assert [expr_to_text(n.condition) for n in whole] == ["t.j_0 < n // 4"]
    (rows,) = (n for n in walk(state.kernel) if isinstance(n, If) and whole[0] in (*walk(n),)[1:])
    assert expr_to_text(rows.condition) == "t.i_0 < m // 2"
