"""A whole kernel, scheduled: producers at their use, copies of results, tails, selects, tuples."""

from gen.ir.nodes import Kernel
from gen.poly.certificate import Source

from .script import accept, block, kernel, nest, refusal

INPUT = Source(initial=True)
SIGNATURE = "m, n, x: float32[m, n], y: Out[float32[m, n]]"
PEAK = block(
    "peak", "i:0:m=y.i, j+=peak.j", "peak[i] = combine.max(peak[i], x[i, j])", "initialises=True"
)
EXP = "e[i, j] = exp(x[i, j] - peak[i])"
TOTAL = "total[i] = combine.sum(total[i], e[i, j])"
DIVIDE = "y[i, j] = e[i, j] / total[i]"

PLAIN = kernel(
    SIGNATURE,
    nest("for peak.i in range(m)", "for peak.j in range(n)", PEAK.replace("y.i", "peak.i")),
    nest("for e.i in range(m)", "for e.j in range(n)", block("e", "i=e.i, j=e.j", EXP)),
    nest(
        "for total.i in range(m)",
        "for total.j in range(n)",
        block("total", "i=total.i, j+=total.j", TOTAL, "initialises=True"),
    ),
    nest("for y.i in range(m)", "for y.j in range(n)", block("y", "i=y.i, j=y.j", DIVIDE)),
    temporaries="peak=float32[m], e=float32[m, n], total=float32[m]",
)


def one_pass(exp_at: str = "e[i, j]", lanes: int = 8) -> Kernel:
    """All of a row in one iteration of y.i; e and total in one pass over it, in lanes."""
    lane = f"pass_0 * {lanes} + pass_1"
    tail = f"where={lane} < n"
    vector = (
        block("e", f"i:0:m=y.i, j:0:n={lane}", EXP, tail)
        + "\n"
        + block("total", f"i:0:m=y.i, j:0:n+={lane}", TOTAL, tail)
    )
    start = block("total.init", "i:0:m=y.i", "total[i] = identity.sum", "origin=None")
    rows = "\n".join(
        (
            nest("for peak.j in range(n)", PEAK),
            start,
            nest(
                f"for pass_0 in range((n + {lanes - 1}) // {lanes})",
                nest(f"for pass_1 in vectorized({lanes})", vector),
            ),
            nest(
                "for y.j in range(n)", block("y", "i=y.i, j=y.j", DIVIDE.replace("e[i, j]", exp_at))
            ),
        )
    )
    allocate = "with allocate(peak=float32[m], e=float32[m, n], total=float32[m])"
    return kernel(SIGNATURE, nest("for y.i in parallel(m)", allocate, rows))


ROW = ("y.i",)
ROWS = {
    "e_1": Source(("peak",), shared=ROW),
    "total_0": Source(("e",), shared=ROW),
    "y_0": Source(("e",), shared=ROW),
    "y_1": Source(("total",), shared=ROW),
}


def test_a_row_an_iteration() -> None:
    accept(PLAIN, one_pass(), **ROWS)


def test_the_wrong_element() -> None:
    assert refusal(PLAIN, one_pass("e[i, n - 1 - j]"), **ROWS).message == (
        "y[i=0, j=0] needs e[0, 0] from 'e', but its source does not put it there (for "
        "example: m=1, n=2; y[i=0, j=0] runs at y.i=0, y.j=0; element e[0, 1])"
    )


def test_inlined_in_one_use() -> None:
    inlined = one_pass("exp(x[i, j] - peak[i])")
    flow = {**ROWS, "y_0": INPUT, "y_1": ROWS["e_1"], "y_2": ROWS["y_1"]}
    accept(PLAIN, inlined, **flow)


# ---------------------------------------------------------------- a reduction through a copy

MATVEC = "m, l, A: float32[m, l], b: float32[l], c: InOut[float32[m]]"


def matvec(initialises: bool) -> Kernel:
    add = block(
        "c",
        "i=c.i, k+=c.k",
        "c[i] = combine.sum(c[i], A[i, k] * b[k])",
        "initialises=True" if initialises else "",
    )
    return kernel(MATVEC, nest("for c.i in range(m)", "for c.k in range(l)", add))


def cached(copied: str = "acc[0]", init: str = "identity.sum") -> Kernel:
    """Accumulated in a local, then stored."""
    start = block("acc.init", "i=c.i", f"acc[0] = {init}", "origin=None")
    add = block(
        "acc", "i=c.i, k+=c.k", "acc[0] = combine.sum(acc[0], A[i, k] * b[k])", "origin=c[i, k]"
    )
    store = block("c", "i=c.i", f"c[i] = {copied}", "origin=None")
    inside = "\n".join((start, nest("for c.k in range(l)", add), store))
    return kernel(MATVEC, nest("for c.i in parallel(m)", "with allocate(acc=float32[1])", inside))


LOCAL = {"acc_0": INPUT, "acc_1": INPUT, "c_0": Source(("acc",))}


def test_an_accumulator_copied_out() -> None:
    accept(matvec(True), cached(), **LOCAL)


def test_an_update_of_what_is_there() -> None:
    accept(matvec(False), matvec(False))
    loaded = {**LOCAL, "acc.init_0": INPUT}
    accept(matvec(False), cached(init="c[i]"), **loaded)
    assert refusal(matvec(False), matvec(True)).message == (
        "the reduction that the caller reads from 'c' starts from the identity of "
        "sum (for example: m=1, l=1; element c[0])"
    )
    assert refusal(matvec(False), cached(), **LOCAL).message == (
        "the reduction that c[i=0] reads from 'acc' starts from the identity of sum (for "
        "example: m=1, l=1; c[i=0] runs at c.i=0; element acc[0])"
    )


# ---------------------------------------------------------------- copies of a block

SHIFT = "n, x: float32[n], y: Out[float32[n]]"
EDGE = "y[i] = x[i - 1] if i > 0 else x[i]"
PLAIN_SHIFT = kernel(SHIFT, nest("for y.i in range(n)", block("y", "i=y.i", EDGE)))


def peeled(body: str, first: str = "y[i] = x[i]") -> Kernel:
    """The first iteration apart, with the side of the select that it takes."""
    head = nest("if 0 < n", block("y", "i:0:n=0", first))
    rest = nest("for y.i in range(1, n)", block("y", "i:0:n=y.i", body))
    return kernel(SHIFT, head, rest)


def test_a_peeled_iteration() -> None:
    accept(PLAIN_SHIFT, peeled("y[i] = x[i - 1]"), y_0=INPUT)
    accept(PLAIN_SHIFT, peeled(EDGE), y_0=INPUT, y_1=INPUT)
    assert refusal(PLAIN_SHIFT, peeled("y[i] = x[i]"), y_0=INPUT).message == (
        "y[i=1] needs x[0] as it was at the call from 'x', but its source does not put it"
        " there (for example: n=2; y[i=1] runs at y.i=1; element x[1])"
    )


def test_a_select_guards_its_load() -> None:
    unguarded = EDGE.replace("i > 0", "i >= 0")
    tree = kernel(SHIFT, nest("for y.i in range(n)", block("y", "i=y.i", unguarded)))
    assert refusal(PLAIN_SHIFT, tree).message == (
        "y[i=0] reads 'x' outside its bounds, at [-1] (for example: n=1; y[i=0] runs at "
        "y.i=0; element x[-1])"
    )


def test_fused_multiply_add() -> None:
    signature = "n, a: float32[n], b: float32[n], c: float32[n], y: Out[float32[n]]"

    def tree(body: str) -> Kernel:
        return kernel(signature, nest("for y.i in range(n)", block("y", "i=y.i", body)))

    plain = tree("y[i] = c[i] + a[i] * b[i]")
    flow = {"y_0": INPUT, "y_1": INPUT, "y_2": INPUT}
    accept(plain, tree("y[i] = fma(a[i], b[i], c[i])"), **flow)
    assert refusal(plain, tree("y[i] = fma(a[i], c[i], b[i])"), **flow).message == (
        "y[i=0] needs b[0] as it was at the call from 'c', but its source does not put it"
        " there (for example: n=1; y[i=0] runs at y.i=0; element c[0])"
    )


# ---------------------------------------------------------------- tuples

ARGMAX = "n, x: float32[n], v: Out[float32[1]], p: Out[int64[1]]"


def argmax(start: str = "0") -> Kernel:
    body = "v[0], p[0] = combine.argmax((v[0], p[0]), (x[i], i))"
    add = block("v", "i:0:n+=v.i", body, "initialises=True")
    return kernel(ARGMAX, nest(f"for v.i in range({start}, n)", add))


def test_a_reduction_of_pairs() -> None:
    accept(argmax(), argmax())
    assert refusal(argmax(), argmax("1")).message == (
        "what the caller reads from 'v' lacks the term v[0] (for example: n=1; element v[0])"
    )
