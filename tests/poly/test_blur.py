"""Stencils: overlapped tiles, folded storage, sliding windows, inlining, races, bounds."""

from dataclasses import replace

import pytest

from gen.ir.nodes import Allocate, Kernel, Loop, Seq
from gen.poly.certificate import Scheduled, Source
from gen.poly.prove import Refused, prove

from .script import accept, block, certificate, kernel, nest, refusal

SIGNATURE = "m, n, x: float32[n + 2, m], by: Out[float32[n, m]]"
BX = "bx[i, j] = x[i, j] * float32(2)"
BY = "by[i, j] = bx[i, j] + bx[i + 2, j]"

PLAIN = kernel(
    SIGNATURE,
    nest("for bx.i in range(n + 2)", "for bx.j in range(m)", block("bx", "i=bx.i, j=bx.j", BX)),
    nest("for by.i in range(n)", "for by.j in range(m)", block("by", "i=by.i, j=by.j", BY)),
    temporaries="bx=float32[n + 2, m]",
)


def overlapped(
    rows: int = 34, fold: int = 34, tile: int = 32, kind: str = "parallel", guard: str = "n + 2"
) -> Kernel:
    """Tiles of rows; each computes its rows of bx, and 2 more, into a folded buffer of its own."""
    bx = nest(
        f"for bx.i in range({rows})",
        "for bx.j in range(m)",
        block(
            "bx",
            f"i:0:n+2={tile}*by.i_0+bx.i, j=bx.j",
            f"bx[i % {fold}, j] = x[i, j] * float32(2)",
            f"where={tile} * by.i_0 + bx.i < {guard}",
        ),
    )
    by = nest(
        f"for by.i_1 in range({tile})",
        "for by.j in range(m)",
        block(
            "by",
            f"i:0:n={tile}*by.i_0+by.i_1, j=by.j",
            f"by[i, j] = bx[i % {fold}, j] + bx[(i + 2) % {fold}, j]",
            f"where={tile} * by.i_0 + by.i_1 < n",
        ),
    )
    return kernel(
        SIGNATURE,
        nest(
            f"for by.i_0 in {kind}((n + {tile - 1}) // {tile})",
            f"with allocate(bx=float32[{fold}, m])",
            f"{bx}\n{by}",
        ),
    )


TILED = Source(("bx",), shared=("by.i_0",))


def test_overlapped_tiles_with_a_folded_buffer() -> None:
    accept(PLAIN, overlapped(), by_0=TILED, by_1=TILED)


def test_a_buffer_one_row_too_small() -> None:
    refused = refusal(PLAIN, overlapped(fold=33), by_0=TILED, by_1=TILED)
    assert refused.message == (
        "by[i=0, j=0] reads 'bx', which bx[i=0, j=0] computes, but bx[i=33, j=0] "
        "overwrites it in between (for example: m=1, n=32; by[i=0, j=0] runs at by.i_0=0,"
        " by.i_1=0, by.j=0; bx[i=0, j=0] runs at by.i_0=0, bx.i=0, bx.j=0; bx[i=33, j=0] "
        "runs at by.i_0=0, bx.i=33, bx.j=0; element bx[0, 0])"
    )


def test_a_bound_off_by_one() -> None:
    refused = refusal(PLAIN, overlapped(rows=33), by_0=TILED, by_1=TILED)
    assert refused.message == (
        "by[i=31, j=0] needs bx[33, 0] from 'bx', but its source does not put it there "
        "(for example: m=1, n=32; by[i=31, j=0] runs at by.i_0=0, by.i_1=31, by.j=0; "
        "element bx[33, 0])"
    )


def test_a_dropped_predicate() -> None:
    refused = refusal(PLAIN, overlapped(guard="n + 3"), by_0=TILED, by_1=TILED)
    assert refused.message == (
        "bx[i=3, j=0] runs, where 'i' is outside its domain (for example: m=1, n=1; "
        "bx[i=3, j=0] runs at by.i_0=0, bx.i=3, bx.j=0)"
    )


def windowed(fold: int = 3, second: str = "i + 2") -> Kernel:
    """One row of bx an iteration; the last three are kept."""
    bx = nest(
        "for bx.j in range(m)",
        block("bx", "i:0:n+2=r, j=bx.j", f"bx[i % {fold}, j] = x[i, j] * float32(2)"),
    )
    by = nest(
        "for by.j in range(m)",
        block(
            "by",
            "i:0:n=r-2, j=by.j",
            f"by[i, j] = bx[i % {fold}, j] + bx[({second}) % {fold}, j]",
            "where=r >= 2",
        ),
    )
    rows = nest("for r in range(n + 2)", f"{bx}\n{by}")
    return kernel(SIGNATURE, rows, temporaries=f"bx=float32[{fold}, m]")


def test_sliding_window() -> None:
    accept(PLAIN, windowed(), by_0=Source(("bx",)), by_1=Source(("bx",), shared=("r",)))


def test_sliding_window_that_is_too_short() -> None:
    assert refusal(PLAIN, windowed(fold=2)).message == (
        "by[i=0, j=0] reads 'bx', which bx[i=0, j=0] computes, but bx[i=2, j=0] "
        "overwrites it in between (for example: m=1, n=1; by[i=0, j=0] runs at r=2, "
        "by.j=0; bx[i=0, j=0] runs at r=0, bx.j=0; bx[i=2, j=0] runs at r=2, bx.j=0; "
        "element bx[0, 0])"
    )


def test_sliding_window_read_at_the_wrong_row() -> None:
    assert refusal(PLAIN, windowed(second="i + 1")).message == (
        "by[i=0, j=0] needs bx[2, 0] from 'bx', but its source does not put it there (for"
        " example: m=1, n=1; by[i=0, j=0] runs at r=2, by.j=0; element bx[1, 0])"
    )


def test_a_wrong_certificate_for_a_right_tree() -> None:
    claims_too_much = Source(("bx",), shared=("r",))
    assert refusal(PLAIN, windowed(), by_0=claims_too_much).message == (
        "by[i=0, j=0] needs bx[0, 0] from 'bx', but its source does not put it there (for"
        " example: m=1, n=1; by[i=0, j=0] runs at r=2, by.j=0; element bx[0, 0])"
    )
    assert refusal(PLAIN, windowed(), by_0=Source(("by",))).message == (
        "block 'by' computes `bx[i % 3, j]` where block 'bx' of the plain schedule "
        "computes `x[i, j] * 2.0`"
    )
    assert refusal(PLAIN, windowed(), by_0=Source(("gone",))).message == (
        "block 'by' computes `bx[i % 3, j]` where block 'bx' of the plain schedule "
        "computes `x[i, j] * 2.0`"
    )
    assert refusal(PLAIN, windowed(), by_0=Source(initial=True)).message == (
        "block 'by' computes `bx[i % 3, j]` where block 'bx' of the plain schedule "
        "computes `x[i, j] * 2.0`"
    )


def test_a_read_that_the_certificate_leaves_out() -> None:
    flow = certificate(PLAIN, {})
    partial = {key: source for key, source in flow.items() if key != ("by", 1)}
    with pytest.raises(Refused) as refused:
        prove(PLAIN, Scheduled(PLAIN, partial))
    assert refused.value.message == (
        "the certificate does not say where read 1 of block 'by' (of 'bx') takes its value"
    )


def inlined(offset: int = 2) -> Kernel:
    body = f"by[i, j] = x[i, j] * float32(2) + x[i + {offset}, j] * float32(2)"
    return kernel(
        SIGNATURE,
        nest("for by.i in range(n)", "for by.j in range(m)", block("by", "i=by.i, j=by.j", body)),
    )


def test_an_inlined_producer() -> None:
    initial = Source(initial=True)
    accept(PLAIN, inlined(), by_0=initial, by_1=initial)
    assert refusal(PLAIN, inlined(1), by_0=initial, by_1=initial).message == (
        "by[i=0, j=0] needs x[2, 0] as it was at the call from 'x', but its source does "
        "not put it there (for example: m=1, n=1; by[i=0, j=0] runs at by.i=0, by.j=0; "
        "element x[1, 0])"
    )


def test_a_body_that_computes_something_else() -> None:
    other = kernel(
        SIGNATURE,
        nest("for bx.i in range(n + 2)", "for bx.j in range(m)", block("bx", "i=bx.i, j=bx.j", BX)),
        nest(
            "for by.i in range(n)",
            "for by.j in range(m)",
            block("by", "i=by.i, j=by.j", "by[i, j] = bx[i, j] - bx[i + 2, j]"),
        ),
        temporaries="bx=float32[n + 2, m]",
    )
    assert refusal(PLAIN, other).message == (
        "block 'by' computes `bx[i, j] - bx[i + 2, j]` where block 'by' of the plain "
        "schedule computes `bx[i, j] + bx[i + 2, j]`"
    )


def test_reads_of_one_block_are_kept_apart() -> None:
    swapped = kernel(
        SIGNATURE,
        nest("for bx.i in range(n + 2)", "for bx.j in range(m)", block("bx", "i=bx.i, j=bx.j", BX)),
        nest(
            "for by.i in range(n)",
            "for by.j in range(m)",
            block("by", "i=by.i, j=by.j", "by[i, j] = bx[i + 2, j] + bx[i, j]"),
        ),
        temporaries="bx=float32[n + 2, m]",
    )
    assert refusal(PLAIN, swapped).message == (
        "by[i=0, j=0] needs bx[0, 0] from 'bx', but its source does not put it there (for"
        " example: m=1, n=1; by[i=0, j=0] runs at by.i=0, by.j=0; element bx[2, 0])"
    )


def test_a_buffer_shared_by_parallel_tiles() -> None:
    shared = overlapped()
    assert isinstance(shared.body, Loop) and isinstance(shared.body.body, Allocate)
    hoisted = replace(shared.body, body=shared.body.body.body)
    tree = replace(shared, body=replace(shared.body.body, body=hoisted))
    assert refusal(PLAIN, tree, by_0=TILED, by_1=TILED).message == (
        "parallel loop 'by.i_0' has a race: bx[i=0, j=0] writes 'bx' and bx[i=34, j=0] "
        "writes it in another iteration (for example: m=1, n=33; bx[i=0, j=0] runs at "
        "by.i_0=0, bx.i=0, bx.j=0; bx[i=34, j=0] runs at by.i_0=1, bx.i=2, bx.j=0; "
        "element bx[0, 0])"
    )


def test_a_missing_output_element() -> None:
    tree = nest(
        "for by.i in range(1, n)", "for by.j in range(m)", block("by", "i:0:n=by.i, j=by.j", BY)
    )
    bx = nest("for bx.i in range(n + 2)", "for bx.j in range(m)", block("bx", "i=bx.i, j=bx.j", BX))
    missing = kernel(SIGNATURE, bx, tree, temporaries="bx=float32[n + 2, m]")
    assert refusal(PLAIN, missing).message == (
        "element [0, 0] of 'by' must end as by[0, 0], and does not (for example: m=1, "
        "n=1; element by[0, 0])"
    )


def test_a_read_before_the_write() -> None:
    bx, by = PLAIN.body.body.body
    tree = replace(PLAIN, body=replace(PLAIN.body, body=Seq((by, bx))))
    assert refusal(PLAIN, tree).message == (
        "by[i=0, j=0] reads 'bx' before bx[i=0, j=0] computes it (for example: m=1, n=1; "
        "by[i=0, j=0] runs at by.i=0, by.j=0; bx[i=0, j=0] runs at bx.i=0, bx.j=0; "
        "element bx[0, 0])"
    )


def test_an_instance_that_the_plain_schedule_has_not() -> None:
    bx = nest(
        "for bx.i in range(n + 3)",
        "for bx.j in range(m)",
        block("bx", "i=bx.i, j=bx.j", "bx[i, j] = x[min(i, n + 1), j] * float32(2)"),
    )
    by = nest("for by.i in range(n)", "for by.j in range(m)", block("by", "i=by.i, j=by.j", BY))
    accept(PLAIN, kernel(SIGNATURE, bx, by, temporaries="bx=float32[n + 3, m]"))  # of a temporary
    moved = BY.replace("by[i, j]", "by[i - 1, j]")
    by = by.replace("i=spatial(by.i)", "i=spatial(by.i + 1, 1, n + 1)").replace(BY, moved)
    tree = kernel(SIGNATURE, bx, by, temporaries="bx=float32[n + 3, m]")
    assert refusal(PLAIN, tree).message == (
        "by[i=1, j=0] runs, an instance that block 'by' of the plain schedule does not have "
        "(for example: m=1, n=1; by[i=1, j=0] runs at by.i=0, by.j=0)"
    )
