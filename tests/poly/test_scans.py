"""Running reductions in one pass: what the carry and the chunks hold; and what goes wrong."""

import pytest

from gen.ir.nodes import Kernel
from gen.poly.certificate import Source

from .script import accept, block, kernel, nest, refusal

SIGNATURE = "m, n, x: float32[m, n], y: Out[float32[m, n]]"


def plain(value: str = "x[i, k]") -> Kernel:
    add = block(
        "y",
        "i=y.i, j=y.j, k:0:j + 1+=y.k",
        f"y[i, j] = combine.sum(y[i, j], {value})",
        "initialises=True",
    )
    return kernel(
        SIGNATURE,
        nest("for y.i in range(m)", "for y.j in range(n)", "for y.k in range(y.j + 1)", add),
    )


PLAIN = plain()

# ---------------------------------------------------------------- one result after the other

ONE = {"carry_0": Source(initial=True), "y_0": Source(("carry",), shared=("y.i",))}
TERM = block(
    "carry",
    "i=y.i, j+=y.j",
    "carry[i] = combine.sum(carry[i], x[i, j])",
    "initialises=True, origin=y[i, j, j]",
)
COPY = block("y", "i=y.i, j=y.j", "y[i, j] = carry[i]", "origin=None")


def one_by_one(*body: str, loop: str = "for y.j in range(n)") -> Kernel:
    rows = nest("for y.i in range(m)", loop, "\n".join(body))
    return kernel(SIGNATURE, rows, temporaries="carry=float32[m]")


def test_a_carry() -> None:
    accept(PLAIN, one_by_one(TERM, COPY), **ONE)


def test_a_carry_that_is_copied_too_early() -> None:
    assert refusal(PLAIN, one_by_one(COPY, TERM), **ONE).message == (
        "element [0, 0] of 'y' must end as y[0, 0], and does not (for example: m=1, n=1; element"
        " y[0, 0])"
    )


def test_a_carry_in_a_parallel_loop() -> None:
    tree = one_by_one(TERM, COPY, loop="for y.j in parallel(n)")
    assert "carry" in refusal(PLAIN, tree, **ONE).message


def test_a_term_that_depends_on_the_result_is_not_shared() -> None:
    """x[i, k] * j is another term for each y[i, j]: the carry holds none of the next one's."""
    term = TERM.replace("x[i, j])", "x[i, j] * float32(j))")
    found = refusal(plain("x[i, k] * float32(j)"), one_by_one(term, COPY), **ONE)
    assert "y[i=0, j=1] reads from 'carry' lacks the term y[0, 1, 0]" in found.message


def test_a_term_of_another_row_is_not_shared() -> None:
    term = TERM.replace("x[i, j])", "x[0, j])").replace("origin=y[i, j, j]", "origin=y[0, j, j]")
    found = refusal(PLAIN, one_by_one(term, COPY), **ONE)
    assert "element [1, 0] of 'y' must end as y[1, 0], and does not" in found.message


def test_terms_of_what_changes_are_not_shared() -> None:
    """t[0] holds another value for each result."""
    signature = "n, x: float32[n], y: Out[float32[n]]"
    put = block("t", "j=y.j", "t[0] = x[j]")
    add = block("y", "j=y.j, k:0:j + 1+=y.k", "y[j] = combine.sum(y[j], t[0])", "initialises=True")
    rows = nest("for y.j in range(n)", put + "\n" + nest("for y.k in range(y.j + 1)", add))
    spec = kernel(signature, rows, temporaries="t=float32[1]")
    accept(spec, spec)
    term = block(
        "carry",
        "j+=y.j",
        "carry[0] = combine.sum(carry[0], t[0])",
        "initialises=True, origin=y[j, j]",
    )
    copy = block("y", "j=y.j", "y[j] = carry[0]", "origin=None")
    tree = kernel(
        signature,
        nest("for y.j in range(n)", "\n".join((put, term, copy))),
        temporaries="t=float32[1], carry=float32[1]",
    )
    sources = {"carry_0": Source(("t",), shared=("y.j",)), "y_0": Source(("carry",))}
    assert "lacks the term y[1, 0]" in refusal(spec, tree, **sources).message


# ---------------------------------------------------------------- chunks

CHUNKS = {
    "part_0": Source(initial=True),
    "y_0": Source(("carry",), shared=("y.i",)),
    "y_1": Source(("part",), shared=("y.i", "y.c")),
    "carry_0": Source(("part",), shared=("y.i", "y.c")),
}
WHERE = "where=y.c * 4 + {} < n"
RESULT = "y[i, c * 4 + l] = carry[i] + part[i, l]"
PASS = "carry[i] = combine.sum(carry[i], part[i, 3])"


def chunks(
    *,
    last: str = "3",
    result: str = RESULT,
    to: str = PASS,
    terms: str = "p.l + 1",
    order: str = "psc",
) -> Kernel:
    """The parts' own running sums (p), the results (s), and what is carried on (c), in an order."""
    prefix = block(
        "part",
        "i=y.i, c:0:(n + 3)//4=y.c, l=p.l, k:0:4+=p.k",
        "part[i, l] = combine.sum(part[i, l], x[i, c * 4 + k])",
        f"initialises=True, origin=y[i, c * 4 + l, c * 4 + k], {WHERE.format('p.l')}",
    )
    parts = {
        "p": nest("for p.l in range(4)", f"for p.k in range({terms})", prefix),
        "s": nest(
            "for s.l in range(4)",
            block(
                "y",
                "i=y.i, c:0:(n + 3)//4=y.c, l=s.l",
                result,
                f"origin=None, {WHERE.format('s.l')}",
            ),
        ),
        "c": block(
            "carry", "i=y.i, c+=y.c", to, f"initialises=True, origin=None, {WHERE.format(last)}"
        ),
    }
    rows = nest(
        "for y.i in range(m)",
        "for y.c in range((n + 3)//4)",
        "with allocate(part=float32[m, 4])",
        "\n".join(parts[k] for k in order),
    )
    return kernel(SIGNATURE, rows, temporaries="carry=float32[m]")


def test_chunks() -> None:
    accept(PLAIN, chunks(), **CHUNKS)


def test_no_carry_into_a_last_chunk_that_is_full() -> None:
    accept(PLAIN, chunks(last="4"), **CHUNKS)


REFUSED = [
    ({"order": "pcs"}, "holds the term y[0, 0, 0] twice"),  # carried on before it is used
    ({"order": "ps"}, "reads 'carry' before it is written"),
    ({"last": "7"}, "lacks the term y[0, 0, 0]"),  # a chunk is left out
    ({"to": PASS.replace("3]", "2]")}, "lacks the term y[0, 3, 3]"),
    ({"to": PASS.replace("part[i, 3]", "carry[i]")}, "a block that its source does not name"),
    ({"result": RESULT.replace("part[i, l]", "part[i, 0]")}, "lacks the term y[0, 1, 1]"),
    ({"result": RESULT.replace("part[i, l]", "carry[i]")}, "a block that its source does not name"),
    ({"result": RESULT.replace("] + ", "] * ")}, "does not start from the identity of prod"),
    ({"result": RESULT.replace("] + ", "] - ")}, "neither a copy, an init nor a join"),
    ({"result": RESULT.replace("carry[i] + ", "")}, "its source does not put it there"),
    ({"terms": "4"}, "reads 'x' outside its bounds"),
    ({"terms": "p.l"}, "lacks the term y[0, 0, 0]"),
]


@pytest.mark.parametrize(("changed", "text"), REFUSED)
def test_a_wrong_chunk(changed: dict[str, str], text: str) -> None:
    assert text in refusal(PLAIN, chunks(**changed), **CHUNKS).message


def test_a_sum_of_one_part_with_itself() -> None:
    result = RESULT.replace("carry[i]", "part[i, l]")
    sources = {**CHUNKS, "y_0": CHUNKS["y_1"]}
    found = refusal(PLAIN, chunks(result=result), **sources)
    assert "reads from 'part' holds the term y[0, 0, 0] twice" in found.message


def test_a_carry_that_adds_itself() -> None:
    to = PASS.replace("part[i, 3]", "carry[i]")
    found = refusal(PLAIN, chunks(to=to), **{**CHUNKS, "carry_0": Source(("carry",))})
    assert "block 'carry' copies what it copied itself" in found.message
