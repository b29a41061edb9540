"""Recurrences, in-place updates, fused loops, gathers: where the order is the proof."""

import pytest

from gen.ir.nodes import Kernel
from gen.poly.certificate import Source

from .script import accept, block, kernel, nest, refusal

INPUT = Source(initial=True)

# ---------------------------------------------------------------- scans

SCAN = "n, x: float32[n], y: Out[float32[n]]"
FIRST = block("y", "", "y[0] = x[0]", "where=n >= 1")
NEXT = "y[i] = y[i - 1] + x[i]"
PLAIN_SCAN = kernel(SCAN, FIRST, nest("for y_1.i in range(1, n)", block("y_1", "i=y_1.i", NEXT)))


def strip_mined(kind: str = "range") -> Kernel:
    inner = block("y_1", "i:1:n=8*o+p", NEXT, "where=8 * o + p >= 1 and 8 * o + p < n")
    return kernel(
        SCAN, FIRST, nest("for o in range((n + 7) // 8)", nest(f"for p in {kind}(8)", inner))
    )


def test_a_scan() -> None:
    accept(PLAIN_SCAN, PLAIN_SCAN)
    accept(PLAIN_SCAN, strip_mined())


def test_a_scan_in_parallel() -> None:
    assert refusal(PLAIN_SCAN, strip_mined("parallel")).message == (
        "parallel loop 'p' has a race: y_1[i=1] writes 'y' and y_1[i=2] reads it in "
        "another iteration (for example: n=3; y_1[i=1] runs at o=0, p=1; y_1[i=2] runs at"
        " o=0, p=2; element y[1])"
    )


def test_a_scan_backwards() -> None:
    backwards = kernel(SCAN, FIRST, nest("for r in range(1, n)", block("y_1", "i:1:n=n-r", NEXT)))
    assert refusal(PLAIN_SCAN, backwards).message == (
        "y_1[i=2] reads 'y' before y_1[i=1] computes it (for example: n=3; y_1[i=2] runs "
        "at r=1; y_1[i=1] runs at r=2; element y[1])"
    )


# ---------------------------------------------------------------- heat

HEAT = "n, T, a: InOut[float32[2, n]]"
STEP = "a[(t + 1) % 2, i] = a[t % 2, i - 1] + a[t % 2, i + 1]"
PLAIN_HEAT = kernel(
    HEAT,
    nest("for t in range(T)", "for i in range(1, n - 1)", block("a", "t=t, i=i", STEP)),
)
BAND = "m, x: float32[m + 4], y: Out[float32[m]]"


def bands(ring: int = 4) -> Kernel:
    """Two levels of a stencil in one sweep: the first level in a ring."""
    first = block("u", "i:0:m+2=r", f"u[i % {ring}] = x[i] + x[i + 1] + x[i + 2]")
    second = block(
        "y",
        "i:0:m=r-2",
        f"y[i] = u[i % {ring}] + u[(i + 1) % {ring}] + u[(i + 2) % {ring}]",
        "where=r >= 2",
    )
    sweep = nest("for r in range(m + 2)", f"{first}\n{second}")
    return kernel(BAND, sweep, temporaries=f"u=float32[{ring}]")


PLAIN_BANDS = kernel(
    BAND,
    nest("for u.i in range(m + 2)", block("u", "i=u.i", "u[i] = x[i] + x[i + 1] + x[i + 2]")),
    nest("for y.i in range(m)", block("y", "i=y.i", "y[i] = u[i] + u[i + 1] + u[i + 2]")),
    temporaries="u=float32[m + 2]",
)


def test_two_levels_with_a_ring_of_four() -> None:
    accept(PLAIN_BANDS, bands())
    accept(PLAIN_BANDS, bands(3))


PLATE = "m, n, x: float32[n + 4, m + 4], y: Out[float32[n, m]]"
FIVE = "{0}[{2}, j + 1] + {0}[{3}, j] + {0}[{3}, j + 1] + {0}[{3}, j + 2] + {0}[{4}, j + 1]"
ROWS = "i", "i + 1", "i + 2"
PLAIN_PLATE = kernel(
    PLATE,
    nest(
        "for u.i in range(n + 2)",
        "for u.j in range(m + 2)",
        block("u", "i=u.i, j=u.j", "u[i, j] = " + FIVE.format("x", "", *ROWS)),
    ),
    nest(
        "for y.i in range(n)",
        "for y.j in range(m)",
        block("y", "i=y.i, j=y.j", "y[i, j] = " + FIVE.format("u", "", *ROWS)),
    ),
    temporaries="u=float32[n + 2, m + 2]",
)


def heat(ring: int) -> Kernel:
    """Two levels in overlapped bands of 16 rows, the first in a ring of rows of each band's own."""
    row = "16 * b + r"
    level_one = nest(
        "for u.j in range(m + 2)",
        block(
            "u",
            f"i:0:n+2={row}, j=u.j",
            f"u[i % {ring}, j] = " + FIVE.format("x", "", *ROWS),
            f"where={row} < n + 2",
        ),
    )
    rows = (f"({i}) % {ring}" for i in ROWS)
    level_two = nest(
        "for y.j in range(m)",
        block(
            "y",
            f"i:0:n={row}-2, j=y.j",
            "y[i, j] = " + FIVE.format("u", "", *rows),
            f"where=r >= 2 and {row} < n + 2",
        ),
    )
    return kernel(
        PLATE,
        nest(
            "for b in parallel((n + 15) // 16)",
            f"with allocate(u=float32[{ring}, m + 2])",
            "for r in range(18)",
            f"{level_one}\n{level_two}",
        ),
    )


def test_heat_in_overlapped_bands() -> None:
    flow = {f"y_{k}": Source(("u",), shared=("b",)) for k in range(5)}
    accept(PLAIN_PLATE, heat(4), **flow)
    assert refusal(PLAIN_PLATE, heat(2), **flow).message == (
        "y[i=0, j=0] reads 'u', which u[i=0, j=1] computes, but u[i=2, j=1] overwrites it"
        " in between (for example: m=1, n=1; y[i=0, j=0] runs at b=0, r=2, y.j=0; u[i=0, "
        "j=1] runs at b=0, r=0, u.j=1; u[i=2, j=1] runs at b=0, r=2, u.j=1; element u[0, "
        "1])"
    )


def test_a_ring_of_two() -> None:
    assert refusal(PLAIN_BANDS, bands(2)).message == (
        "y[i=0] reads 'u', which u[i=0] computes, but u[i=2] overwrites it in between "
        "(for example: m=1; y[i=0] runs at r=2; u[i=0] runs at r=0; u[i=2] runs at r=2; "
        "element u[0])"
    )


def skewed(slope: int, steps: int = 8) -> Kernel:
    t, i = f"{steps} * t_0 + t_1", f"z - {slope} * t_1"
    guard = f"where={t} < T and {i} >= 1 and {i} < n - 1"
    return kernel(
        HEAT,
        nest(
            f"for t_0 in range((T + {steps - 1}) // {steps})",
            f"for z in range(1, n + {slope * steps})",
            f"for t_1 in range({steps})",
            block("a", f"t:0:T={t}, i:1:n-1={i}", STEP, guard),
        ),
    )


def test_time_skewing() -> None:
    accept(PLAIN_HEAT, PLAIN_HEAT)
    accept(PLAIN_HEAT, skewed(2))
    accept(PLAIN_HEAT, skewed(1))
    assert refusal(PLAIN_HEAT, skewed(0)).message == (
        "a[t=1, i=2] reads 'a', which a[t=0, i=1] computes, but a[t=2, i=1] overwrites it"
        " in between (for example: n=4, T=3; a[t=1, i=2] runs at t_0=0, z=2, t_1=1; "
        "a[t=0, i=1] runs at t_0=0, z=1, t_1=0; a[t=2, i=1] runs at t_0=0, z=1, t_1=2; "
        "element a[1, 1])"
    )


# ---------------------------------------------------------------- in place

SEIDEL = "n, T, a: InOut[float32[n, n]]"
SWEEP = "a[i, j] = a[i - 1, j] + a[i, j - 1] + a[i, j] + a[i + 1, j] + a[i, j + 1]"
PLAIN_SEIDEL = kernel(
    SEIDEL,
    nest(
        "for t in range(T)",
        "for i in range(1, n - 1)",
        "for j in range(1, n - 1)",
        block("a", "t=t, i=i, j=j", SWEEP),
    ),
)


def interchanged() -> Kernel:
    return kernel(
        SEIDEL,
        nest(
            "for t in range(T)",
            "for j in range(1, n - 1)",
            "for i in range(1, n - 1)",
            block("a", "t=t, i=i, j=j", SWEEP),
        ),
    )


def test_seidel() -> None:
    accept(PLAIN_SEIDEL, PLAIN_SEIDEL)
    accept(PLAIN_SEIDEL, interchanged())
    reverse = kernel(
        SEIDEL,
        nest(
            "for t in range(T)",
            "for r in range(1, n - 1)",
            "for j in range(1, n - 1)",
            block("a", "t=t, i:1:n-1=n-1-r, j=j", SWEEP),
        ),
    )
    assert refusal(PLAIN_SEIDEL, reverse).message == (
        "a[t=0, i=2, j=1] reads 'a' before a[t=0, i=1, j=1] computes it (for example: "
        "n=4, T=1; a[t=0, i=2, j=1] runs at t=0, r=1, j=1; a[t=0, i=1, j=1] runs at t=0, "
        "r=2, j=1; element a[1, 1])"
    )


def floyd(kind: str, guard: str) -> Kernel:
    body = "d[i, j] = min(d[i, j], d[i, k] + d[k, j])"
    return kernel(
        "n, d: InOut[float32[n, n]]",
        nest(
            "for k in range(n)",
            f"for i in {kind}(n)",
            "for j in range(n)",
            block("d", "k=k, i=i, j=j", body, guard),
        ),
    )


def test_floyd_warshall_in_parallel() -> None:
    guard = "where=i != k and j != k"
    accept(floyd("range", guard), floyd("parallel", guard))
    assert refusal(floyd("range", ""), floyd("parallel", "")).message == (
        "parallel loop 'i' has a race: d[k=0, i=0, j=1] writes 'd' and d[k=0, i=1, j=1] "
        "reads it in another iteration (for example: n=2; d[k=0, i=0, j=1] runs at k=0, "
        "i=0, j=1; d[k=0, i=1, j=1] runs at k=0, i=1, j=1; element d[0, 1])"
    )


CHOLESKY = kernel(
    "n, a: InOut[float64[n, n]]",
    nest(
        "for i in range(n)",
        nest(
            "for j in range(i)",
            nest(
                "for k in range(j)",
                block("a", "i=i, j=j, k=k", "a[i, j] = a[i, j] - a[i, k] * a[j, k]"),
            )
            + "\n"
            + block("a_1", "i=i, j=j", "a[i, j] = a[i, j] / a[j, j]"),
        )
        + "\n"
        + nest(
            "for k2 in range(i)", block("a_2", "i=i, k=k2", "a[i, i] = a[i, i] - a[i, k] * a[i, k]")
        )
        + "\n"
        + block("a_3", "i=i", "a[i, i] = sqrt(a[i, i])"),
    ),
)


def test_cholesky() -> None:
    accept(CHOLESKY, CHOLESKY)


# ---------------------------------------------------------------- fused loops

ADD = "m, n, x: float32[m, n], y: Out[float32[m, n]]"
DOUBLE = "y[i, j] = x[i, j] * float32(2)"
PLAIN_ADD = kernel(
    ADD, nest("for y.i in range(m)", "for y.j in range(n)", block("y", "i=y.i, j=y.j", DOUBLE))
)


def fused(value: str, *loops: str) -> Kernel:
    body = block("y", "i=y.i, j=y.j", DOUBLE)
    return kernel(ADD, nest(*loops, f"with delinearize({value}, m, n) as (y.i, y.j)", body))


def test_a_fused_loop() -> None:
    accept(PLAIN_ADD, fused("f", "for f in parallel(m * n)"))


def test_a_split_fused_loop() -> None:
    outer = "for f_0 in parallel((m * n + 7) // 8)"
    accept(PLAIN_ADD, fused("f_0 * 8 + f_1", outer, "for f_1 in vectorized(8)"))


def test_a_fused_loop_that_stops_early() -> None:
    outer = "for f_0 in parallel((m * n) // 8)"
    tree = fused("f_0 * 8 + f_1", outer, "for f_1 in vectorized(8)")
    assert refusal(PLAIN_ADD, tree).message == (
        "the loops around 'y.i' do not count up to the product of its symbolic extents"
    )
    tree = fused("f_0 * 8 + f_1", "for f_1 in range(8)", "for f_0 in range((m * n + 7) // 8)")
    assert refusal(PLAIN_ADD, tree).message == (
        "the loops around 'y.i' do not count up to the product of its symbolic extents"
    )
    outer = "for f_0 in range((m * n + 7) // 8)"
    tree = fused("f_0 * 4 + f_1", outer, "for f_1 in range(4)")
    assert refusal(PLAIN_ADD, tree).message == (
        "the loops around 'y.i' do not count up to the product of its symbolic extents"
    )
    outer = "for f_0 in range((m * n + 3) // 8)"
    tree = fused("f_0 * 8 + f_1", outer, "for f_1 in range(8)")
    assert refusal(PLAIN_ADD, tree).message == (
        "the loops around 'y.i' do not count up to the product of its symbolic extents"
    )


# ---------------------------------------------------------------- data

GATHER = "n, l, x: float32[l], at: int64[n], y: Out[float32[n]]"
CLAMPED = "y[i] = x[min(max(at[i], 0), l - 1)]"


def gather(loop: str, iters: str, body: str = CLAMPED, assume: str = "l >= 1") -> Kernel:
    return kernel(GATHER, nest(f"for {loop} in range(n)", block("y", iters, body)), assume=assume)


PLAIN_GATHER = gather("y.i", "i=y.i")


def test_a_gather() -> None:
    accept(PLAIN_GATHER, gather("r", "i:0:n=n-1-r"))
    other = gather("r", "i=r", "y[i] = x[min(max(at[n - 1 - i], 0), l - 1)]")
    assert refusal(PLAIN_GATHER, other).message == (
        "y[i=0] needs at[0] as it was at the call from 'at', but its source does not put "
        "it there (for example: n=2, l=1; y[i=0] runs at r=0; element at[1])"
    )


@pytest.mark.parametrize(
    ("index", "assume", "place"),
    [
        ("at[i]", "l >= 1", -1),
        ("max(at[i], 0)", "l >= 1", 1),
        ("min(at[i], l - 1)", "l >= 1", -1),
        ("min(max(at[i], 0), l)", "l >= 1", 1),
        ("min(max(at[i], 0), l - 1)", "l >= 0", -1),
        ("i * i", "l >= n", -1),
    ],
)
def test_an_index_that_is_not_affine_must_be_clamped(index: str, assume: str, place: int) -> None:
    wild = gather("y.i", "i=y.i", f"y[i] = x[{index}]", assume)
    message = refusal(wild, wild).message
    assert (
        f"may read 'x', by an index that is not affine, outside its bounds, at [{place}]" in message
    )


def test_a_remainder_of_what_is_not_affine_is_in_range() -> None:
    table = GATHER.replace("float32[l]", "float32[8]")
    body = block("y", "i=y.i", "y[i] = x[at[i] % 8]")
    fits = kernel(table, nest("for y.i in range(n)", body))
    accept(fits, fits)


CSR = (
    "m, n, z, at: int64[m + 1], to: int64[m + 1], col: int64[z], v: float32[z], x: float32[n],"
    " y: Out[float32[m]]"
)
AT = "min(max(p, 0), z - 1)"
TERM = f"y[i] = combine.sum(y[i], v[{AT}] * x[min(max(col[{AT}], 0), n - 1)])"


def csr(lower: str = "at[y.i]", kind: str = "range", rows: str = "m + 1") -> Kernel:
    add = block("y", "i=y.i, p+=y.p", TERM, "initialises=True")
    loops = f"for y.i in {kind}(m)", f"for y.p in range({lower}, at[y.i + 1])"
    return kernel(CSR.replace("m + 1", rows), nest(*loops, add), assume="z >= 1 and n >= 1")


def test_bounds_from_an_array() -> None:
    accept(csr(), csr(kind="parallel"))
    assert refusal(csr(), csr("at[y.i] + 1")).message == (
        "block 'y' computes `at[y.i] + 1` where block 'y' of the plain schedule computes `at[y.i]`"
    )
    assert refusal(csr(), csr("to[y.i]")).message == (
        "block 'y' computes `to[y.i]` where block 'y' of the plain schedule computes `at[y.i]`"
    )
    short = csr(rows="m")
    assert refusal(short, short).message == (
        "y[i=0, p=0] reads 'at' outside its bounds, at [1] (for example: m=1, n=1, z=1; "
        "y[i=0, p=0] runs at y.i=0, y.p=0; element at[1])"
    )
