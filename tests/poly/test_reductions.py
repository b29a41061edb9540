"""Reductions: placing, partial sums, tiles, packing; and what goes wrong with each."""

import time

import pytest

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
    assert refusal(PLAIN, fused("inside")).message == ""


def test_no_init() -> None:
    assert refusal(PLAIN, fused("none")).message == ""


def test_a_term_added_twice() -> None:
    assert refusal(PLAIN, fused("before", repeat=2)).message == ""


def test_a_term_missing() -> None:
    tree = kernel(SIGNATURE, total(lower="1"), WRITE, temporaries="s=float32[m]")
    assert refusal(PLAIN, tree).message == ""


def test_a_wrong_init() -> None:
    init = nest("for s.init.i in range(m)", block("s.init", "i=s.init.i", "s[i] = identity.prod", "origin=None"))
    add = nest("for s.i in range(m)", "for s.j in range(n)", block("s", "i=s.i, j+=s.j", ADD))
    tree = kernel(SIGNATURE, init, add, WRITE, temporaries="s=float32[m]")
    assert refusal(PLAIN, tree).message == ""


def test_another_combiner() -> None:
    add = block("s", "i=s.i, j+=s.j", "s[i] = combine.max(s[i], x[i, j])", "initialises=True")
    tree = kernel(
        SIGNATURE, nest("for s.i in range(m)", "for s.j in range(n)", add), WRITE,
        temporaries="s=float32[m]",
    )
    assert refusal(PLAIN, tree).message == ""


def test_a_parallel_reduction_loop() -> None:
    assert refusal(PLAIN, fused("before", kind="parallel")).message == ""


def test_lanes_may_update_one_place() -> None:
    accept(PLAIN, fused("before", kind="vectorized"))


def test_a_block_of_its_own_making() -> None:
    extra = nest("for y.i in range(m)", block("z", "i=y.i", "y[i] = s[i] + float32(1)", "origin=None"))
    tree = kernel(SIGNATURE, total(), WRITE, extra, temporaries="s=float32[m]")
    assert refusal(PLAIN, tree).message == ""


# ---------------------------------------------------------------- partial sums


def partial(joined: int = 4, start: str = "float32", step: int = 4, init: str = "identity.sum") -> Kernel:
    """Four accumulators a row, joined afterwards: rfactor."""
    rf = nest(
        "for s.j_0 in range((n + 3) // 4)",
        "for s.j_1 in range(4)",
        block(
            "s_rf",
            "i:0:m=s.i, j:0:n+=4*s.j_0+s.j_1",
            f"s_rf[j % {step}] = combine.sum(s_rf[j % {step}], x[i, j])",
            "where=4 * s.j_0 + s.j_1 < n, origin=s[i, j]",
        ),
    )
    rf_init = nest("for r.init in range(4)", block("rf.init", "r=r.init", f"s_rf[r] = {init}", "origin=None"))
    init_ = block("s.init", "i=s.i", INIT, "origin=None")
    join = nest(
        f"for r in range({joined})",
        block("s", "i=s.i, r+=r", "s[i] = combine.sum(s[i], s_rf[r])", "origin=None"),
    )
    row = nest("with allocate(s_rf=float32[4])", f"{rf_init}\n{rf}\n{init_}\n{join}")
    return kernel(SIGNATURE, nest("for s.i in parallel(m)", row), WRITE, temporaries="s=float32[m]")


JOIN = Source(("s_rf",), shared=("s.i",))
INPUT = Source(initial=True)


def test_several_accumulators() -> None:
    accept(PLAIN, partial(), s_0=JOIN, s_rf_0=INPUT)


def test_a_partial_that_is_not_joined() -> None:
    assert refusal(PLAIN, partial(joined=3), s_0=JOIN, s_rf_0=INPUT).message == ""


def test_a_partial_that_is_joined_twice() -> None:
    assert refusal(PLAIN, partial(step=3), s_0=JOIN, s_rf_0=INPUT).message == ""


def test_a_partial_that_starts_wrong() -> None:
    assert refusal(PLAIN, partial(init="identity.prod"), s_0=JOIN, s_rf_0=INPUT).message == ""


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


def packed(lanes: int = 32) -> Kernel:
    """Three levels of tiles as in BLIS, A and B packed into panels."""
    pack_b = nest(
        "for pb.k in range(512)",
        "for pb.j in range(1024)",
        block(
            "B_pack",
            "k=512*kc+pb.k, j=1024*jc+pb.j".replace("k=", "k:0:l=").replace("j=1", "j:0:n=1"),
            f"Bp[(j % 1024) // {lanes}, k % 512, j % {lanes}] = B[k, j]",
            "where=512 * kc + pb.k < l and 1024 * jc + pb.j < n, origin=None",
        ),
    )
    pack_a = nest(
        "for pa.i in range(96)",
        "for pa.k in range(512)",
        block(
            "A_pack",
            "i:0:m=96*ic+pa.i, k:0:l=512*kc+pa.k",
            "Ap[(i % 96) // 6, k % 512, i % 6] = A[i, k]",
            "where=96 * ic + pa.i < m and 512 * kc + pa.k < l, origin=None",
        ),
    )
    update = nest(
        "for jr in range(32)",
        "for ir in range(16)",
        "for k in range(512)",
        "for i in unrolled(6)",
        "for j in vectorized(32)",
        block(
            "C",
            "i:0:m=96*ic+6*ir+i, j:0:n=1024*jc+32*jr+j, k:0:l+=512*kc+k",
            "C[i, j] = combine.sum(C[i, j], Ap[(i % 96) // 6, k % 512, i % 6]"
            " * Bp[(j % 1024) // 32, k % 512, j % 32])",
            "where=96 * ic + 6 * ir + i < m and 1024 * jc + 32 * jr + j < n and 512 * kc + k < l",
        ),
    )
    init = nest(
        "for C.init.i in range(m)",
        "for C.init.j in range(n)",
        block("C.init", "i=C.init.i, j=C.init.j", "C[i, j] = identity.sum", "origin=None"),
    )
    per_a = nest(
        "for ic in parallel((m + 95) // 96)",
        "with allocate(Ap=float32[16, 512, 6])",
        f"{pack_a}\n{update}",
    )
    tiles = nest(
        "for jc in range((n + 1023) // 1024)",
        "for kc in range((l + 511) // 512)",
        "with allocate(Bp=float32[32, 512, 32])",
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
    assert refusal(PLAIN_MATMUL, packed(lanes=16), **PACKED).message == ""
