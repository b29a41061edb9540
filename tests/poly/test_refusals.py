"""The prover's other refusals, each by the smallest kernel that calls for it; and the witness."""

import pytest

from gen.ir.nodes import Kernel
from gen.poly.certificate import Source
from gen.poly.prove import Refused
from gen.poly.values.flow import plain_flow
from gen.poly.witness import Instance, Witness

from .script import accept, block, kernel, nest, refusal

INPUT = Source(initial=True)
SIGNATURE = "n, x: float32[n], y: Out[float32[n]]"
PLAIN = kernel(SIGNATURE, nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = x[i]")))


def tree(*statements: str, temporaries: str = "", signature: str = SIGNATURE) -> Kernel:
    return kernel(signature, *statements, temporaries=temporaries)


def of_plain(plain: Kernel) -> Refused:
    with pytest.raises(Refused) as refused:
        plain_flow(plain)
    return refused.value


def test_the_witness_as_data() -> None:
    late = tree(nest("for y.i in range(n - 1)", block("y", "i:0:n=y.i+2", "y[i - 1] = x[i]")))
    witness = refusal(PLAIN, late).witness
    assert witness == Witness({"n": 2}, (Instance("y", {"i": 2}, {"y.i": 0}),))


# ---------------------------------------------------------------- what isl cannot say


def test_what_is_not_affine() -> None:
    square = tree(nest("for y.i in range(n)", block("y", "i:0:n=y.i*y.i", "y[i] = x[i]")))
    assert refusal(PLAIN, square).message == (
        "block 'y' depends on `y.i * y.i`, which is not affine"
    )
    guarded = nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = x[i]", "where=y.i * n < 5"))
    assert refusal(PLAIN, tree(guarded)).message == (
        "block 'y' runs where `y.i * n < 5`, which is neither affine nor a condition on inputs"
    )
    shaped = tree(
        nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = x[i]")),
        temporaries="t=float32[n*n]",
    )
    assert refusal(PLAIN, shaped).message == "the shape of 't' has `n * n`, which is not affine"


def test_division_by_a_dim() -> None:
    divided = nest("for y.i in range(n)", block("y", "i:0:n=y.i*50//n", "y[i] = x[i]"))
    assert refusal(PLAIN, tree(divided)).message == (
        "block 'y' depends on `y.i * 50 // n`, which is not affine"
    )


def test_narrow_integers_wrap() -> None:
    """The sum of the two is negative, whatever the integers say."""
    wraps = "x[i] if int8(100) + int8(100) < int8(0) else float32(0)"
    plain = tree(nest("for y.i in range(n)", block("y", "i=y.i", f"y[i] = {wraps}")))
    zero = tree(nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = float32(0)")))
    assert refusal(plain, zero).message == (
        "block 'y' computes `float32(0.0)` where block 'y' of the plain schedule computes"
        " `x[i] if int8(100) + int8(100) < int8(0) else 0.0`"
    )


def test_another_number() -> None:
    def index(value: str) -> Kernel:
        body = block("y", "i=y.i", f"y[i] = float32({value})")
        return tree(nest("for y.i in range(n)", body))

    accept(index("i + i"), index("2 * i"))
    assert refusal(index("i"), index("i + 1")).message == (
        "block 'y' computes `i + 1` where block 'y' of the plain schedule computes `i`"
    )


TABLE = "m, n, x: float32[m, n], y: Out[float32[m, n]]"
WHOLE_TABLE = nest(
    "for y.i in range(m)", "for y.j in range(n)", block("y", "i=y.i, j=y.j", "y[i, j] = x[i, j]")
)
PLAIN_TABLE = kernel(TABLE, WHOLE_TABLE)


def fused(extents: str, loop: str, *more: str) -> str:
    body = block("y", "i:0:m=y.i, j:0:n=y.j", "y[i, j] = x[i, j]", "where=y.i < m and y.j < n")
    return nest(loop, *more, f"with delinearize(f, {extents}) as (y.i, y.j)", body)


def parts(extents: str, loop: str, *more: str) -> Kernel:
    return kernel(TABLE, fused(extents, loop, *more))


def test_parts_of_a_fused_loop() -> None:
    sixteen = kernel(TABLE, WHOLE_TABLE, assume="n == 16")
    tree = kernel(TABLE, fused("m, 16", "for f in range(m * 16)"), assume="n == 16")
    accept(sixteen, tree)
    between = parts("m, n", "for f in range(m * n)", "for one in range(1)")
    assert refusal(PLAIN_TABLE, between).message == (
        "the loops around 'y.i' do not count up to the product of its symbolic extents"
    )
    apart = parts("m, n", "for f in range(m * n)", "with allocate(t=float32[1])")
    assert refusal(PLAIN_TABLE, apart).message == (
        "the parts of 'y.i' have symbolic extents and its loops are not directly around it"
    )
    negative = parts("m - 2, n - 2", "for f in range((m - 2) * (n - 2))")
    assert refusal(PLAIN_TABLE, negative).message == (
        "the extent `m - 2` of a fused loop around block 'y' may be negative (for "
        "example: m=0, n=0)"
    )


def test_a_product_with_its_terms_gathered() -> None:
    """As lowering leaves the bound of a fused loop, and not the extents of its parts."""
    inner = block("y", "i:0:4=y.i, j:0:m=y.j", "y[i, j] = y[i, j] * 2.0")
    rest = nest("for y.i in range(4)", "for y.j in range(m - min(m, 2))", inner)

    def tree(upper: str) -> Kernel:
        parts = "with delinearize(f, 4, m - min(m, 2)) as (y.i, y.j)"
        return kernel(FOUR_ROWS, nest(f"for f in range({upper})", parts, inner))

    accept(kernel(FOUR_ROWS, rest), tree("4 * (m - min(m, 2))"))
    accept(kernel(FOUR_ROWS, rest), tree("m * 4 - min(m, 2) * 4"))
    for upper in ("m * 4 - min(m, 2) * 3", "m * 4 - min(m, 3) * 4", "m * 4 - 8"):
        reason = refusal(kernel(FOUR_ROWS, rest), tree(upper)).message
        assert "do not count up to the product" in reason


FOUR_ROWS = "m, y: InOut[float32[4, m]]"


# ---------------------------------------------------------------- plain schedules without a flow


def test_a_scatter() -> None:
    scatter = kernel(
        "n, at: int64[n], y: InOut[float32[n]]",
        nest("for y.i in range(n)", block("y", "i=y.i", "y[at[i]] = float32(1)")),
    )
    assert of_plain(scatter).message == (
        "block 'y' writes 'y' at places that depend on data, so what it holds afterwards "
        "cannot be known"
    )


def test_a_read_of_what_was_never_written() -> None:
    unwritten = kernel(
        SIGNATURE,
        nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = t[i]")),
        temporaries="t=float32[n]",
    )
    assert of_plain(unwritten).message == (
        "y[i=0] reads 't' before it is written (for example: n=1; y[i=0] runs at y.i=0; "
        "element t[0])"
    )


def test_an_output_that_the_spec_leaves_unwritten() -> None:
    short = tree(nest("for y.i in range(1, n)", block("y", "i=y.i", "y[i] = x[i]")))
    assert of_plain(short).message == (
        "the spec leaves element [0] of 'y' unwritten (for example: n=1; element y[0])"
    )


def test_an_instance_that_runs_twice() -> None:
    twice = nest("for r in range(2)", "for y.i in range(n)", block("y", "i=y.i", "y[i] = x[i]"))
    assert of_plain(tree(twice)).message == "block 'y' runs one instance twice"


def test_a_read_of_an_unfinished_sum() -> None:
    add = block("s", "k+=s.k", "s[0] = combine.sum(s[0], x[k])")
    init = block("t", "", "s[0] = float32(0)")
    use = block("y", "i=s.k", "y[i] = s[0]")
    unfinished = tree(
        init, nest("for s.k in range(n)", f"{add}\n{use}"), temporaries="s=float32[1]"
    )
    assert of_plain(unfinished).message == (
        "y[i=0] reads 's' between the updates of block 's' (for example: n=2; y[i=0] runs"
        " at s.k=0; element s[0])"
    )


def test_updates_of_several_values() -> None:
    start = block("t", "k=s.k", "s[0] = x[k]")
    add = block("s", "k+=s.k", "s[0] = combine.sum(s[0], x[k])")
    signature = "n, x: float32[n], s: InOut[float32[1]]"
    several = tree(nest("for s.k in range(n)", f"{start}\n{add}"), signature=signature)
    assert of_plain(several).message == "the updates of block 's' do not all add to one value"


# ---------------------------------------------------------------- trees


def test_another_signature() -> None:
    other = kernel(
        SIGNATURE.replace("y: Out", "y: InOut"),
        nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = x[i]")),
    )
    assert refusal(PLAIN, other).message == (
        "the tree's dims, arguments or scalars are not the plain schedule's"
    )


def test_a_write_to_an_input() -> None:
    write = nest("for z.i in range(n)", block("z", "i=z.i", "x[i] = y[i]", "origin=None"))
    copy = nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = x[i]"))
    assert refusal(PLAIN, tree(copy, write), z_0=Source(("y",))).message == (
        "block 'z' writes 'x', an input"
    )


def test_an_iteration_variable_outside_its_domain() -> None:
    outside = nest("for y.i in range(n)", block("y", "i:1:n=y.i", "y[i] = x[i]"))
    assert refusal(PLAIN, tree(outside)).message == (
        "y[i=0] runs, where 'i' is outside its domain (for example: n=1; y[i=0] runs at y.i=0)"
    )


def test_a_block_of_another_kernel() -> None:
    other = nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = x[i]", "origin=z[i]"))
    assert refusal(PLAIN, tree(other)).message == (
        "block 'y' computes 'z', which the plain schedule does not have"
    )


def test_an_argument_that_is_overwritten_too_early() -> None:
    signature = "n, x: InOut[float32[n]], y: Out[float32[n]]"
    copy = nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = x[i]"))
    double = nest("for x.i in range(n)", block("x", "i=x.i", "x[i] = x[i] + x[i]"))
    plain = kernel(signature, copy, double)
    assert refusal(plain, kernel(signature, double, copy)).message == (
        "y[i=0] reads what 'x' held at the call, but x[i=0] writes it before (for "
        "example: n=1; y[i=0] runs at y.i=0; x[i=0] runs at x.i=0; element x[0])"
    )


def test_data_decides_what_runs() -> None:
    chosen = block("y", "i=y.i", "y[i] = x[i]", "where=x[y.i] < float32(0)")
    picked = tree(nest("for y.i in range(n)", chosen))
    assert refusal(PLAIN, picked).message == (
        "block 'y' runs where data says so, which only the terms of a reduction may"
    )
    changing = "n, x: InOut[float32[n]], y: Out[float32[n]]"
    assert refusal(
        kernel(changing, nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = x[i]"))),
        kernel(changing, nest("for y.i in range(n)", chosen)),
    ).message == (
        "block 'y' runs where `x[y.i] < 0.0`, which is neither affine nor a condition on inputs"
    )
    signature = "n, at: int64[n], y: InOut[float32[n]]"
    plain = kernel(signature, nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = float32(1)")))
    scatter = nest("for y.i in range(n)", block("y", "i=y.i", "y[at[i]] = float32(1)"))
    assert refusal(plain, kernel(signature, scatter), y_0=INPUT).message == (
        "block 'y' writes at places that depend on data"
    )


SUM = "n, x: float32[n], y: Out[float32[1]]"
ADD = "y[0] = combine.sum(y[0], x[k])"
PLAIN_SUM = kernel(SUM, nest("for y.k in range(n)", block("y", "k+=y.k", ADD, "initialises=True")))


def test_sums_of_chosen_terms() -> None:
    """Which terms data chooses is the same in both trees, or it is refused."""
    signature = "n, x: float32[n], y: Out[float32[1]]"

    def chosen(bound: str) -> Kernel:
        where = f"where=x[y.k] < float32({bound}), initialises=True"
        return kernel(signature, nest("for y.k in range(n)", block("y", "k+=y.k", ADD, where)))

    accept(chosen("0"), chosen("0"))
    assert refusal(chosen("0"), chosen("1")).message == (
        "block 'y' computes `float32(1.0)` where block 'y' of the plain schedule computes"
        " `float32(0.0)`"
    )
    assert refusal(PLAIN_SUM, chosen("1")).message == (
        "block 'y' runs under other conditions on inputs than the plain one"
    )


# ---------------------------------------------------------------- copies


def copied(*copies: str, last: str = "b") -> Kernel:
    use = nest("for y.i in range(n)", block("y", "i=y.i", f"y[i] = {last}[i]"))
    return kernel(SIGNATURE, *copies, use, temporaries="a=float32[n], b=float32[n + 1]")


def copy(name: str, body: str) -> str:
    return nest(f"for {name}.i in range(n)", block(name, f"i={name}.i", body, "origin=None"))


def test_a_copy_of_a_copy() -> None:
    chain = (copy("a", "a[i] = x[i]"), copy("b", "b[i] = a[i]"))
    flow = {"a_0": INPUT, "b_0": Source(("a",)), "y_0": Source(("b",))}
    accept(PLAIN, copied(*chain), **flow)
    shifted = (chain[0], copy("b", "b[i] = a[n - 1 - i]"))
    assert refusal(PLAIN, copied(*shifted), **flow).message == (
        "y[i=0] needs x[0] as it was at the call from 'b', but its source does not put it"
        " there (for example: n=2; y[i=0] runs at y.i=0; element b[0])"
    )


def test_padding_is_no_value() -> None:
    padded = nest(
        "for b.i in range(n + 1)",
        block("b", "i=b.i", "b[i] = x[i] if i < n else float32(0)", "origin=None"),
    )
    flow = {"b_0": INPUT, "y_0": Source(("b",))}
    accept(PLAIN, copied(padded), **flow)
    assert refusal(PLAIN, copied(padded.replace("i < n", "i < n - 1")), **flow).message == (
        "y[i=0] needs x[0] as it was at the call from 'b', but its source does not put it"
        " there (for example: n=1; y[i=0] runs at y.i=0; element b[0])"
    )


def test_a_copy_of_nothing() -> None:
    flow = {"b_0": Source(("a",)), "y_0": Source(("b",))}
    assert refusal(PLAIN, copied(copy("b", "b[i] = a[i]")), **flow).message == (
        "the certificate says that block 'b' reads what block 'a' writes, but there is no"
        " such block"
    )
    short = copy("a", "a[i] = x[i]").replace("range(n)", "range(1, n)")
    tree = copied(short, copy("b", "b[i] = a[i]"))
    assert refusal(PLAIN, tree, a_0=INPUT, **flow).message == (
        "b[i=0] copies from 'a', but its source does not put it there (for "
        "example: n=1; b[i=0] runs at b.i=0; element a[0])"
    )


def test_copies_in_a_circle() -> None:
    circle = nest("for r in range(2)", copy("a", "a[i] = b[i]") + "\n" + copy("b", "b[i] = a[i]"))
    flow = {"a_0": Source(("b",)), "b_0": Source(("a",)), "y_0": Source(("b",))}
    first = copy("b_0", "b[i] = x[i]")
    assert refusal(PLAIN, copied(first, circle), b_0_0=INPUT, **flow).message == (
        "block 'a' copies what it copied itself, which the proof does not follow"
    )


# ---------------------------------------------------------------- joins


def joined(
    join: str = "combine.sum(y[0], a[0])", kept: str = "", identity: str = "identity.sum"
) -> Kernel:
    """A partial sum in `a`, perhaps copied to `b`, then joined."""
    partial = nest(
        "with seq()",
        block("a.init", "", f"a[0] = {identity}", "origin=None")
        + "\n"
        + nest(
            "for a.k in range(n)",
            block("a", "k+=a.k", "a[0] = combine.sum(a[0], x[k])", "origin=y[k]"),
        ),
    )
    init = block("y.init", "", "y[0] = identity.sum", "origin=None")
    last = block("y", "r+=r", f"y[0] = {join}", "origin=None")
    body = "\n".join(filter(None, (partial, kept, init, nest("for r in range(1)", last))))
    return kernel(SUM, body, temporaries="a=float32[1], b=float32[1]")


def test_a_partial_through_a_copy() -> None:
    kept = block("b", "", "b[0] = a[0]", "origin=None")
    through = joined("combine.sum(y[0], b[0])", kept)
    accept(PLAIN_SUM, through, a_0=INPUT, b_0=Source(("a",)), y_0=Source(("b",)))


def test_a_sum_on_top_of_padding() -> None:
    padded = block("p", "", "a[0] = x[0] if n < 0 else float32(0)", "origin=None")
    add = nest(
        "for a.k in range(n)", block("a", "k+=a.k", "a[0] = combine.sum(a[0], x[k])", "origin=y[k]")
    )
    out = block("y", "", "y[0] = a[0]", "origin=None")
    tree = kernel(SUM, padded, add, out, temporaries="a=float32[1]")
    assert refusal(PLAIN_SUM, tree, p_0=INPUT, a_0=INPUT, y_0=Source(("a",))).message == (
        "the reduction that y reads from 'a' starts from padding (for example: n=0; element a[0])"
    )


def test_outputs_of_several_ranks() -> None:
    signature = "n, x: float32[n, n], y: Out[float32[n]], z: Out[float32[n, n]]"
    one = nest("for y.i in range(n)", block("y", "i=y.i", "y[i] = x[i, 0]"))
    two = nest(
        "for z.i in range(n)",
        "for z.j in range(n)",
        block("z", "i=z.i, j=z.j", "z[i, j] = x[j, i]"),
    )
    accept(kernel(signature, one, two), kernel(signature, two, one))


def test_another_combiner_of_partials() -> None:
    tree = joined("combine.max(y[0], a[0])")
    assert refusal(PLAIN_SUM, tree, a_0=INPUT, y_0=Source(("a",))).message == (
        "block 'y' joins a partial of 'a' that does not start from the identity of max"
    )
    tree = joined("combine.max(y[0], a[0])", identity="identity.max")
    assert refusal(PLAIN_SUM, tree, a_0=INPUT, y_0=Source(("a",))).message == (
        "block 'y' combines a partial of 'a' by max, which does not make it"
    )


def test_an_update_that_the_source_does_not_name() -> None:
    extra = nest(
        "for z.k in range(n)", block("z", "k+=z.k", "a[0] = combine.sum(a[0], x[k])", "origin=y[k]")
    )
    tree = joined(kept=extra)
    assert refusal(PLAIN_SUM, tree, a_0=INPUT, z_0=INPUT, y_0=Source(("a",))).message == (
        "y[r=0] reads 'a', to which z[k=0] adds, a block that its source does not name "
        "(for example: n=1; y[r=0] runs at r=0; z[k=0] runs at z.k=0; element a[0])"
    )


def test_several_combiners_on_one_value() -> None:
    signature = "n, x: float32[n], y: InOut[float32[1]]"
    add = nest("for s.k in range(n)", block("s", "k+=s.k", "y[0] = combine.sum(y[0], x[k])"))
    scale = nest("for p.k in range(n)", block("p", "k+=p.k", "y[0] = combine.prod(y[0], x[k])"))
    plain = kernel(signature, add, scale)
    mixed = nest(
        "for k in range(n)",
        block("s", "k+=k", "y[0] = combine.sum(y[0], x[k])")
        + "\n"
        + block("p", "k+=k", "y[0] = combine.prod(y[0], x[k])"),
    )
    assert refusal(plain, kernel(signature, mixed)).message == (
        "'y' is reduced by several combiners, whose order the proof does not follow"
    )


def test_two_sums_on_one_value_in_any_order() -> None:
    signature = "n, x: float32[n], y: InOut[float32[1]]"
    one = nest("for s.k in range(n)", block("s", "k+=s.k", "y[0] = combine.sum(y[0], x[k])"))
    two = nest("for p.k in range(n)", block("p", "k+=p.k", "y[0] = combine.sum(y[0], x[k] * x[k])"))
    accept(kernel(signature, one, two), kernel(signature, two, one))


def test_a_reduction_that_starts_from_itself() -> None:
    signature = "m, n, x: float32[n], y: InOut[float32[1]]"
    add = block("s", "t=t, k+=s.k", "y[0] = combine.sum(y[0], x[k])")
    plain = kernel(signature, nest("for t in range(m)", "for s.k in range(n)", add))
    assert refusal(plain, plain).message == (
        "the reduction 's' starts from what it computed itself, which the proof does not follow"
    )


PAIR = "n, x: float32[n], v: Out[float32[1]], p: Out[int64[1]]"


def pairs(place: str) -> Kernel:
    """An argmax in two partials, each a half of x; the pairs are joined."""
    partial = block(
        "w",
        "i:0:n+=i, r:0:2=i%2",
        "w[r], q[r] = combine.argmax((w[r], q[r]), (x[i], i))",
        "origin=v[i]",
    )
    init = block("w.init", "r=r0", "w[r], q[r] = identity.argmax", "origin=None")
    start = block("v.init", "", "v[0], p[0] = identity.argmax", "origin=None")
    join = block(
        "v",
        "r+=r1",
        f"v[0], p[0] = combine.argmax((v[0], p[0]), (w[r], q[{place}]))",
        "origin=None",
    )
    return kernel(
        PAIR,
        nest("for r0 in range(2)", init),
        nest("for i in range(n)", partial),
        start,
        nest("for r1 in range(2)", join),
        temporaries="w=float32[2], q=int64[2]",
    )


def test_pairs_stay_together() -> None:
    body = "v[0], p[0] = combine.argmax((v[0], p[0]), (x[i], i))"
    plain = kernel(
        PAIR, nest("for v.i in range(n)", block("v", "i+=v.i", body, "initialises=True"))
    )
    flow = {"v_0": Source(("w",)), "v_1": Source(("w",)), "w_0": INPUT}
    accept(plain, pairs("r"), **flow)
    assert refusal(plain, pairs("1 - r"), **flow).message == (
        "block 'v' joins parts of different partials in one tuple"
    )
