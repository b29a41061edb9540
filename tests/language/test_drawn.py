"""`drawn`: how an argument's values are drawn where its kernel is tried."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen.errors import SpecError
from gen.language import KernelSpec, build, choices, loads
from gen.pipeline import made
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.trial.inputs import Array, random_arrays
from gen.trial.kinds import InputKind
from gen.trial.run import run

TEXT = """\
tilesmith: 1
kernel: used
doc: Uses its arguments.
signature: (n,n),(n,k),(k),()->()
dtypes: {T: [float32, complex64], I: [int8, int32]}
arguments:
  a: {type: "T[n, n]"}
  w: {type: "float32[n, k]"}
  b: {type: "I[k]"}
  o: {type: "float32[]"}
  y: {type: "T[]", intent: out}
compute: |
  r = sum(w[i, l] + float32(b[l]) for i in n for l in k)
  y = sum(a[i, j] for i in n for j in n) + T(r + o)
"""
MATRIX, WIDE, INTEGERS, ONE, OUTPUT = range(7, 12)
HINT = (
    "write positive definite, diagonally dominant, permutation, probabilities, or a map such as"
    " {from: 0, below: n, sorted: true}"
)


def with_drawn(line: int, how: str, text: str = TEXT) -> str:
    """The text in which the argument of a line has `drawn`."""
    lines = text.splitlines()
    lines[line - 1] = lines[line - 1].replace("{", f"{{drawn: {how}, ")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("line", "how", "column", "message", "hint"),
    [
        (MATRIX, "spd", 14, "'drawn' of argument 'a' cannot be 'spd'", HINT),
        (MATRIX, "symmetric positive definite", 14,
         "'drawn' of argument 'a' cannot be 'symmetric positive definite'",
         "did you mean 'positive definite'?"),
        (MATRIX, "sorted", 14, "'drawn' of argument 'a' cannot be 'sorted'",
         "write {sorted: true}"),
        (MATRIX, "[sorted]", 14, "'drawn' of argument 'a' cannot be a list", HINT),
        (MATRIX, "{}", 14, "'drawn' of argument 'a' says nothing", HINT),
        (MATRIX, "{sorted: false}", 14, "'drawn' of argument 'a' says nothing", HINT),
        (MATRIX, "{sorted: 1}", 23,
         "'sorted' of 'drawn' of argument 'a' must be true or false, not '1'", None),
        (MATRIX, "{over: 1}", 15, "unknown key 'over' in 'drawn' of argument 'a'",
         "its keys are from, below, sorted"),
        (MATRIX, "permutation", 14,
         "a permutation is of int32, int64, uint32 or uint64, and 'a' may be float32", None),
        (INTEGERS, "permutation", 14,
         "a permutation is of int32, int64, uint32 or uint64, and 'b' may be int8", None),
        (MATRIX, "probabilities", 14, "probabilities are floats, and 'a' may be complex64", None),
        (MATRIX, "{below: 1}", 14,
         "bounds and order are of floats and integers, and 'a' may be complex64", None),
        (INTEGERS, "positive definite", 14,
         "a positive definite matrix is of floats or complex numbers, and 'b' may be int8", None),
        (INTEGERS, "diagonally dominant", 14,
         "a diagonally dominant matrix is of floats or complex numbers, and 'b' may be int8", None),
        (WIDE, "positive definite", 14,
         "'w' has no two last axes of one size: it holds no square matrix",
         'its type would be "T[n, n]"'),
        (ONE, "diagonally dominant", 14, "'o' has fewer than two axes: it holds no matrix",
         'its type would be "T[m, n]"'),
        (ONE, "probabilities", 14, "'o' has no axis along which it could be probabilities", None),
        (ONE, "{sorted: true}", 14, "'o' has no axis along which it could be sorted", None),
        (OUTPUT, "{below: 1}", 14, "'y' is an output: nothing is drawn for it", None),
        (INTEGERS, "{from: 3, below: 2}", 31, "nothing is from 3 and below 2", None),
        (INTEGERS, "{below: 0}", 22, "nothing is from 0 and below 0",
         "'from' is 0 where it is left out"),
        (INTEGERS, "{below: 1.5}", 22, "'b' has integers: its bounds are integers", None),
        (INTEGERS, "{below: m}", 22, "unknown name 'm'", None),
        (INTEGERS, "{below: w}", 22, "unknown name 'w'", None),
        (INTEGERS, "{below: np.prod(n)}", 22,
         "a bound has sizes, numbers, operators, min, max and abs", None),
        (INTEGERS, "{below: n and k}", 22, "this is not part of a formula", None),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn(
    line: int, how: str, column: int, message: str, hint: str | None
) -> None:
    with pytest.raises(SpecError) as refused:
        loads(with_drawn(line, how), "used.yaml")
    assert (refused.value.message, refused.value.hint) == (message, hint)
    assert str(refused.value.span) == f"used.yaml:{line}:{column}"


def test_a_message_as_it_is_printed() -> None:
    with pytest.raises(SpecError) as refused:
        loads(with_drawn(WIDE, "positive definite"), "used.yaml")
    assert str(refused.value) == (
        "used.yaml:8:14: error: 'w' has no two last axes of one size: it holds no square matrix\n"
        '      w: {drawn: positive definite, type: "float32[n, k]"}\n'
        "                 ^^^^^^^^^^^^^^^^^\n"
        '  hint: its type would be "T[n, n]"'
    )


def test_nothing_is_as_if_it_were_not_there() -> None:
    assert loads(with_drawn(MATRIX, ""), "used.yaml").arguments[0].drawn is None


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ("n / 2", "integers are drawn between integers, not 2.5"),
        ("n == 5", "a bound must be a finite number"),
        ("10 // (n - 5)", "this fails: integer division or modulo by zero"),
    ],
)
def test_bounds_that_sizes_make_no_numbers(bound: str, message: str) -> None:
    spec = loads(with_drawn(INTEGERS, f"{{below: {bound}}}"), "used.yaml")
    with pytest.raises(SpecError) as refused:
        random_arrays(spec, choices(spec)[0], {"n": 5, "k": 2}, np.random.default_rng(0))
    assert refused.value.message.startswith(message)
    assert refused.value.span is not None and refused.value.span.line == INTEGERS


# ---------------------------------------------------------------- what is drawn


def drawn(line: int, how: str, dtype: str, kind: InputKind, seed: int, n: int, k: int) -> Array:
    """The argument of a line, with another type."""
    spec = spec_of(line, how, dtype)
    rng = np.random.default_rng(seed)
    arrays = random_arrays(spec, choices(spec)[0], {"n": n, "k": k}, rng, kind=kind)
    return arrays[spec.arguments[line - MATRIX].name]


@cache
def spec_of(line: int, how: str, dtype: str) -> KernelSpec:
    text = TEXT.replace("[float32, complex64]", f"[{dtype if line == MATRIX else 'float32'}]")
    text = text.replace("float32[n, k]", f"{dtype if line == WIDE else 'float32'}[n, k]")
    text = text.replace("[int8, int32]", f"[{dtype}]" if line == INTEGERS else "[int32]")
    text = text.replace("w[i, l] +", "float32(w[i, l]) +")
    return loads(with_drawn(line, how, text), "used.yaml")


KINDS = [InputKind.RANDOM, InputKind.TIES, InputKind.STRIDED, InputKind.LONG]
AS_DRAWN = st.sampled_from(KINDS)
SEED, SIZE = st.integers(0, 2**32), st.integers(0, 9)


@given(
    st.sampled_from([*KINDS, InputKind.SMALL]),
    st.sampled_from(["float16", "float32", "float64", "complex64"]),
    SEED,
    st.integers(1, 40),
)
@settings(max_examples=30, deadline=None)
def test_matrices(kind: InputKind, dtype: str, seed: int, n: int) -> None:
    """A factor of Cholesky is there, and LU divides by no small pivot, zeros on the way or not."""
    a = drawn(MATRIX, "positive definite", dtype, kind, seed, n, 1)
    assert a.dtype == dtype and np.array_equal(a, np.conj(a.T))
    values = np.linalg.eigvalsh(a.astype("c16"))
    assert values.min() > 0.9 and values.max() < 20
    b = np.abs(drawn(MATRIX, "diagonally dominant", dtype, kind, seed, n, 1).astype("c16"))
    rest = b - np.diag(np.diag(b))
    assert (np.diag(b) > 0.9 + np.maximum(rest.sum(0), rest.sum(1))).all()


@given(AS_DRAWN, SEED, SIZE, SIZE)
@settings(max_examples=30, deadline=None)
def test_rows(kind: InputKind, seed: int, n: int, k: int) -> None:
    rows = drawn(WIDE, "permutation", "int64", kind, seed, n, k)
    assert np.array_equal(np.sort(rows), np.broadcast_to(np.arange(k), (n, k)))
    weights = drawn(WIDE, "probabilities", "float32", kind, seed, n, k)
    assert (weights >= 0).all() and np.allclose(weights.sum(-1), 1 if k else 0)
    tall = np.abs(drawn(WIDE, "diagonally dominant", "float64", kind, seed, n, k))
    for i in range(min(n, k)):
        assert 2 * tall[i, i] > max(tall[i].sum(), tall[:, i].sum())


@given(AS_DRAWN, SEED, SIZE, st.integers(1, 9), st.sampled_from(["uint8", "int8", "int64"]))
@settings(max_examples=30, deadline=None)
def test_ranges(kind: InputKind, seed: int, n: int, k: int, dtype: str) -> None:
    whole = drawn(INTEGERS, "{from: -2, below: n * 50, sorted: true}", dtype, kind, seed, n, k)
    limits = np.iinfo(dtype)
    lower = max(-2, limits.min)
    assert whole.min() >= lower and whole.max() < max(min(n * 50, limits.max + 1), lower + 1)
    assert (np.diff(whole.astype(int)) >= 0).all()
    for how, least, end in (
        ("{from: 0.25, below: 0.75}", 0.25, 0.75),
        ("{from: 1}", 1, np.inf),
        ("{from: -1 / k, below: -1 / (2 * k)}", -1 / k, -1 / (2 * k)),
    ):
        for type_ in ("float16", "float64"):
            found = drawn(WIDE, how, type_, kind, seed, n, k)
            assert (found >= np.array(least, type_)).all() and (found < end).all()


def test_values_differ_and_ties_do_not() -> None:
    for kind, most in ((InputKind.RANDOM, 200), (InputKind.TIES, 3)):
        found = np.unique(drawn(WIDE, "{below: 1}", "float64", kind, 0, 20, 10))
        assert found.size == most


@pytest.mark.parametrize("how", ["{from: 1, below: 2}", "positive definite"])
def test_numbers_beyond_a_type_replace_some(how: str) -> None:
    line = MATRIX if how.startswith("p") else WIDE
    special = drawn(line, how, "float32", InputKind.SPECIAL, 0, 20, 20)
    assert 0 < np.isnan(special).sum() < 100 and 0 < np.isinf(special).sum() < 100
    largest = drawn(line, how, "float32", InputKind.EXTREME, 0, 20, 20)
    assert (np.abs(largest) == np.finfo("f4").max).sum() == 1


# ---------------------------------------------------------------- what it is for

CHOLESKY = """\
tilesmith: 1
kernel: cholesky
doc: The lower Cholesky factor, in place.
signature: (n,n)->(n,n)
dtypes: {T: [float64]}
arguments:
  a: {type: "T[n, n]", intent: inout}
compute: |
  for i in range(n):
      for j in range(i):
          a[i, j] = (a[i, j] - sum(a[i, k] * a[j, k] for k in range(j))) / a[j, j]
      a[i, i] = sqrt(a[i, i] - sum(a[i, k] ** 2 for k in range(i)))
oracle: np.tril(np.linalg.cholesky(np.tril(a) + np.tril(a, -1).T)) + np.triu(a, 1)
"""


def test_a_kernel_is_tried_on_what_it_is_for() -> None:
    target = Cpu(Level.V2)
    spec = loads(with_drawn(7, "positive definite", CHOLESKY), "cholesky.yaml")
    report = run(spec, choices(spec)[0], target, {})
    assert report.right and report.case.finite == 64 * 64
    wrong = CHOLESKY.replace("for k in range(i))", "for k in range(1, i))")
    other = loads(with_drawn(7, "positive definite", wrong), "cholesky.yaml")
    assert not run(other, choices(other)[0], target, {}).right
    with pytest.raises(SpecError) as refused:
        run(loads(CHOLESKY, "cholesky.yaml"), choices(spec)[0], target, {})
    assert refused.value.message == "this fails: Matrix is not positive definite"
    assert refused.value.hint == "`drawn` of an argument says on what it is tried"


def test_it_takes_no_part_in_what_is_made() -> None:
    """Nor would a wrong `drawn` make anything else be proved."""
    texts = (CHOLESKY, with_drawn(7, "positive definite", CHOLESKY))
    specs = [loads(text, "cholesky.yaml") for text in texts]
    plain = [build(spec, choices(spec)[0]) for spec in specs]
    assert plain[0] == plain[1]
    sources = [made(s, choices(s)[0], Cpu(Level.V3), lambda *_: None)[1] for s in specs]
    assert sources[0] == sources[1]
