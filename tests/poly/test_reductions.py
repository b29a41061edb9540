"""Reductions: placing, partial sums, tiles, packing; and what goes wrong with each."""

from gen.ir.nodes import Kernel
from gen.poly.certificate import Source

from .script import accept, block, kernel, nest, refusal

# ---------------------------------------------------------------- a sum

SIGNATURE = "m, n, x: float32[m, n], y: Out[float32[m]]"
INIT = "s[i] = identity.sum"
ADD = "s[i] = combine.sum(s[i], x[i, j])"
COPY = "y[i] = s[i] * float32(2)"


def total(lower: str = "0", upper: str = "n") -> str:
    add = block("s", "i=s.i, j:0:n+=s.j", ADD, "initialises=True")
    return nest("for s.i in range(m)", f"for s.j in range({lower}, {upper})", add)


WRITE = nest("for y.i in range(m)", block("y", "i=y.i", COPY))
PLAIN = kernel(SIGNATURE, total(), WRITE, temporaries="s=float32[m]")


def fused(init: str, *, repeat: int = 1, kind: str = "range") -> Kernel:
    """The sum in the loop of y, with its init written out where asked."""
    start = block("s.init", "i:0:m=y.i", INIT, "origin=None")
    add = block("s", "i:0:m=y.i, j:0:n+=s.j", ADD)
    again = nest(f"for r in {kind}({repeat})", nest(f"for s.j in {kind}(n)", add))
    inside = nest("for s.j in range(n)", f"{start}\n{add}")
    body = {"before": f"{start}\n{again}", "inside": inside, "none": again}[init]
    write = block("y", "i=y.i", COPY)
    return kernel(
        SIGNATURE, nest("for y.i in range(m)", f"{body}\n{write}"), temporaries="s=float32[m]"
    )


def test_a_sum_at_its_use() -> None:
    accept(PLAIN, fused("before"), y_0=Source(("s",), shared=("y.i",)))
    accept(PLAIN, fused("before"))


def test_an_init_inside_its_own_loop() -> None:
    assert refusal(PLAIN, fused("inside")).message == (
        "y[i=0] reads 's' before it is written (for example: m=1, n=0; y[i=0] runs at "
        "y.i=0; element s[0])"
    )


def test_an_init_outside_the_loop_of_its_value() -> None:
    start = block("s.init", "", "s[0] = identity.sum", "origin=None")
    add = block("s", "i:0:m=y.i, j:0:n+=s.j", "s[0] = combine.sum(s[0], x[i, j])")
    write = block("y", "i=y.i", "y[i] = s[0] * float32(2)")
    rows = nest("for y.i in range(m)", nest("for s.j in range(n)", add) + "\n" + write)
    tree = kernel(SIGNATURE, start, rows, temporaries="s=float32[1]")
    assert refusal(PLAIN, tree).message == (
        "what y[i=1] reads from 's' holds the term s[0, 0] as well (for example: m=2, "
        "n=1; y[i=1] runs at y.i=1; element s[0])"
    )


def test_no_init() -> None:
    assert refusal(PLAIN, fused("none")).message == (
        "y[i=0] reads 's' before it is written (for example: m=1, n=0; y[i=0] runs at "
        "y.i=0; element s[0])"
    )


def test_a_term_added_twice() -> None:
    assert refusal(PLAIN, fused("before", repeat=2)).message == (
        "what y[i=0] reads from 's' holds the term s[0, 0] twice (for example: m=1, n=1; "
        "y[i=0] runs at y.i=0; element s[0])"
    )


def test_a_term_added_by_two_loops() -> None:
    start = block("s.init", "i:0:m=y.i", INIT, "origin=None")
    again = nest("for s.k in range(1, n)", block("s", "i:0:m=y.i, j:0:n+=s.k", ADD))
    all_of_them = nest("for s.j in range(n)", block("s", "i:0:m=y.i, j:0:n+=s.j", ADD))
    rows = "\n".join((start, all_of_them, again, block("y", "i=y.i", COPY)))
    tree = kernel(SIGNATURE, nest("for y.i in range(m)", rows), temporaries="s=float32[m]")
    assert refusal(PLAIN, tree).message == (
        "what y[i=0] reads from 's' holds the term s[0, 1] twice (for example: m=1, n=2; "
        "y[i=0] runs at y.i=0; element s[0])"
    )


def test_a_term_missing() -> None:
    tree = kernel(SIGNATURE, total(lower="1"), WRITE, temporaries="s=float32[m]")
    assert refusal(PLAIN, tree).message == (
        "what y[i=0] reads from 's' lacks the term s[0, 0] (for example: m=1, n=1; y[i=0]"
        " runs at y.i=0; element s[0])"
    )


def test_a_wrong_init() -> None:
    init = nest(
        "for s.init.i in range(m)",
        block("s.init", "i=s.init.i", "s[i] = identity.prod", "origin=None"),
    )
    add = nest("for s.i in range(m)", "for s.j in range(n)", block("s", "i=s.i, j+=s.j", ADD))
    tree = kernel(SIGNATURE, init, add, WRITE, temporaries="s=float32[m]")
    assert refusal(PLAIN, tree).message == (
        "the reduction that y[i=0] reads from 's' starts from the identity of prod (for "
        "example: m=1, n=0; y[i=0] runs at y.i=0; element s[0])"
    )


def test_another_combiner() -> None:
    add = block("s", "i=s.i, j+=s.j", "s[i] = combine.max(s[i], x[i, j])", "initialises=True")
    tree = kernel(
        SIGNATURE,
        nest("for s.i in range(m)", "for s.j in range(n)", add),
        WRITE,
        temporaries="s=float32[m]",
    )
    assert refusal(PLAIN, tree).message == (
        "block 's' is a max update of float32, where block 's' of the plain schedule is a"
        " sum update of float32"
    )


def test_a_parallel_reduction_loop() -> None:
    assert refusal(PLAIN, fused("before", kind="parallel")).message == (
        "parallel loop 's.j' has a race: s[i=0, j=0] writes 's' and s[i=0, j=1] writes it"
        " in another iteration (for example: m=1, n=2; s[i=0, j=0] runs at y.i=0, r=0, "
        "s.j=0; s[i=0, j=1] runs at y.i=0, r=0, s.j=1; element s[0])"
    )


def test_lanes_may_update_one_place() -> None:
    accept(PLAIN, fused("before", kind="vectorized"))


def test_a_block_of_its_own_making() -> None:
    extra = nest(
        "for y.i in range(m)", block("z", "i=y.i", "y[i] = s[i] + float32(1)", "origin=None")
    )
    tree = kernel(SIGNATURE, total(), WRITE, extra, temporaries="s=float32[m]")
    assert refusal(PLAIN, tree).message == (
        "block 'z' has no origin and is neither a copy, an init nor a join"
    )


# ---------------------------------------------------------------- partial sums


def partial(joined: int = 4, fold: int = 4, init: str = "identity.sum") -> Kernel:
    """Four accumulators a row, joined afterwards: rfactor."""
    rf = nest(
        "for s.j_0 in range((n + 3) // 4)",
        "for s.j_1 in range(4)",
        block(
            "s_rf",
            "i:0:m=s.i, j:0:n+=4*s.j_0+s.j_1",
            f"s_rf[j % {fold}] = combine.sum(s_rf[j % {fold}], x[i, j])",
            "where=4 * s.j_0 + s.j_1 < n, origin=s[i, j]",
        ),
    )
    rf_init = nest(
        "for r.init in range(4)", block("rf.init", "r=r.init", f"s_rf[r] = {init}", "origin=None")
    )
    init_ = block("s.init", "i=s.i", INIT, "origin=None")
    join = nest(
        f"for r in range({joined})",
        block("s", "i=s.i, r+=r", f"s[i] = combine.sum(s[i], s_rf[r % {fold}])", "origin=None"),
    )
    row = nest("with allocate(s_rf=float32[4])", f"{rf_init}\n{rf}\n{init_}\n{join}")
    return kernel(SIGNATURE, nest("for s.i in parallel(m)", row), WRITE, temporaries="s=float32[m]")


JOIN = Source(("s_rf",), shared=("s.i",))
INPUT = Source(initial=True)


def test_several_accumulators() -> None:
    accept(PLAIN, partial(), s_0=JOIN, s_rf_0=INPUT)


def test_a_partial_that_is_not_joined() -> None:
    assert refusal(PLAIN, partial(joined=3), s_0=JOIN, s_rf_0=INPUT).message == (
        "what y[i=0] reads from 's' lacks the term s[0, 3] (for example: m=1, n=4; y[i=0]"
        " runs at y.i=0; element s[0])"
    )


def test_a_partial_that_is_joined_twice() -> None:
    assert refusal(PLAIN, partial(fold=3), s_0=JOIN, s_rf_0=INPUT).message == (
        "what y[i=0] reads from 's' holds the term s[0, 0] twice (for example: m=1, n=1; "
        "y[i=0] runs at y.i=0; element s[0])"
    )


def test_a_partial_that_starts_wrong() -> None:
    assert refusal(PLAIN, partial(init="identity.prod"), s_0=JOIN, s_rf_0=INPUT).message == (
        "block 's' joins a partial of 's_rf' that does not start from the identity of sum"
    )


# ---------------------------------------------------------------- matmul

MATMUL = "m, n, l, A: float32[m, l], B: float32[l, n], C: Out[float32[m, n]]"
PRODUCT = "C[i, j] = combine.sum(C[i, j], A[i, k] * B[k, j])"
PLAIN_MATMUL = kernel(
    MATMUL,
    nest(
        "for C.i in range(m)",
        "for C.j in range(n)",
        "for C.k in range(l)",
        block("C", "i=C.i, j=C.j, k+=C.k", PRODUCT, "initialises=True"),
    ),
)


def packed(
    m: int = 96,
    n: int = 1024,
    depth: int = 512,
    mr: int = 6,
    nr: int = 32,
    lanes: int | None = None,
) -> Kernel:
    """Three levels of tiles as in BLIS, A and B packed into panels."""
    pb = f"(j % {n}) // {lanes or nr}, k % {depth}, j % {nr}"
    pa = f"(i % {m}) // {mr}, k % {depth}, i % {mr}"
    pack_b = nest(
        f"for pb.k in range({depth})",
        f"for pb.j in range({n})",
        block(
            "B_pack",
            f"k:0:l={depth}*kc+pb.k, j:0:n={n}*jc+pb.j",
            f"Bp[{pb}] = B[k, j]",
            f"where={depth} * kc + pb.k < l and {n} * jc + pb.j < n, origin=None",
        ),
    )
    pack_a = nest(
        f"for pa.i in range({m})",
        f"for pa.k in range({depth})",
        block(
            "A_pack",
            f"i:0:m={m}*ic+pa.i, k:0:l={depth}*kc+pa.k",
            f"Ap[{pa}] = A[i, k]",
            f"where={m} * ic + pa.i < m and {depth} * kc + pa.k < l, origin=None",
        ),
    )
    i, j, k = f"{m} * ic + {mr} * ir + C.i", f"{n} * jc + {nr} * jr + C.j", f"{depth} * kc + C.k"
    update = nest(
        f"for jr in range({n // nr})",
        f"for ir in range({m // mr})",
        f"for C.k in range({depth})",
        f"for C.i in unrolled({mr})",
        f"for C.j in vectorized({nr})",
        block(
            "C",
            f"i:0:m={i}, j:0:n={j}, k:0:l+={k}",
            f"C[i, j] = combine.sum(C[i, j], Ap[{pa}] * Bp[{pb}])",
            f"where={i} < m and {j} < n and {k} < l",
        ),
    )
    init = nest(
        "for C.init.i in range(m)",
        "for C.init.j in range(n)",
        block("C.init", "i=C.init.i, j=C.init.j", "C[i, j] = identity.sum", "origin=None"),
    )
    per_a = nest(
        f"for ic in parallel((m + {m - 1}) // {m})",
        f"with allocate(Ap=float32[{m // mr}, {depth}, {mr}])",
        f"{pack_a}\n{update}",
    )
    tiles = nest(
        f"for jc in range((n + {n - 1}) // {n})",
        f"for kc in range((l + {depth - 1}) // {depth})",
        f"with allocate(Bp=float32[{n // nr}, {depth}, {nr}])",
        f"{pack_b}\n{per_a}",
    )
    return kernel(MATMUL, init, tiles)


PACKED = {
    "C_0": Source(("A_pack",), shared=("jc", "kc", "ic")),
    "C_1": Source(("B_pack",), shared=("jc", "kc")),
    "A_pack_0": INPUT,
    "B_pack_0": INPUT,
}


def test_packed_matmul() -> None:
    accept(PLAIN_MATMUL, packed(), **PACKED)


def test_matmul_packed_for_other_lanes() -> None:
    assert refusal(PLAIN_MATMUL, packed(lanes=16), **PACKED).message == (
        "B_pack[k=0, j=512] writes 'Bp' outside its bounds, at [32, 0, 0] (for example: "
        "m=0, n=513, l=1; B_pack[k=0, j=512] runs at jc=0, kc=0, pb.k=0, pb.j=512; "
        "element Bp[32, 0, 0])"
    )
