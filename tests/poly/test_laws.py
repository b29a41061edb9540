"""Laws: their algebraic proofs, laws that are wrong, and what they make of special values."""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from gen.errors import SpecError
from gen.ir.interpret.machine import Machine, defined, expression
from gen.ir.nodes import Expr
from gen.ir.types import DType
from gen.poly import laws
from gen.poly.laws.law import TERM, Form, Law, read
from gen.poly.laws.proof import Unproved, check
from gen.poly.laws.real import (
    Positive,
    atom,
    exponential,
    is_zero,
    number,
    reciprocal,
)

State = tuple[np.floating, ...]
SOFTMAX, MOMENTS = "online_softmax", "one_pass_moments"


def text_of(name: str) -> str:
    return (laws.FOLDER / f"{name}.yaml").read_text("utf-8")


def changed(name: str, old: str, new: str, count: int = -1) -> Law:
    text = text_of(name)
    assert old in text
    return read(text.replace(old, new, count), Path(f"{name}.yaml"), DType.FLOAT32)


# ---------------------------------------------------------------- proofs


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT64])
@pytest.mark.parametrize("name", laws.names())
def test_every_law_is_proved(name: str, dtype: DType) -> None:
    assert laws.lookup(name, dtype).name == name


WRONG = [
    # what is joined
    (SOFTMAX, "* exp(min(a.peak, b.peak) - peak)", "* 1", "of two sets together"),
    (SOFTMAX, "exp(min(a.peak, b.peak) - peak)", "exp(peak - min(a.peak, b.peak))", "together"),
    (SOFTMAX, "(a.total + b.total)", "a.total", "together, both alike"),
    (SOFTMAX, "((a.total if a.peak == peak else b.total)\n", "((a.total)\n", "B's the larger"),
    (SOFTMAX, "peak = max(a.peak, b.peak)", "peak = min(a.peak, b.peak)", "'peak'"),
    (SOFTMAX, "peak = max(a.peak, b.peak)", "peak = a.peak", "'peak' of two sets together, B's"),
    (MOMENTS, "(a.count * b.count / count)", "(b.count / count)", "'square' of two sets together"),
    (MOMENTS, "(b.total / b.count - a.total / a.count)\n", "1\n", "'square' of two sets together"),
    (MOMENTS, "b.total / b.count - a", "b.total / a.count - a", "'square' of two sets together"),
    (MOMENTS, "(a.square + b.square)", "b.square", "'square' of two sets together"),
    (MOMENTS, "total = a.total + b.total", "total = a.total - b.total", "'total' of two sets"),
    (MOMENTS, "count = a.count + b.count", "count = a.count + 1", "'count' of two sets together"),
    # one term
    (SOFTMAX, "total: 1 + (x - x)", "total: 2 + (x - x)", "'total' of one term"),
    (MOMENTS, "total: x\n      square: x - x", "total: x\n      square: x", "'square' of one term"),
    (MOMENTS, "count: 1\n", "count: 2\n", "'count' of one term"),
    # no term
    (SOFTMAX, "identity: {peak: -inf", "identity: {peak: 0", "'peak' of no terms is not -inf"),
    (SOFTMAX, "total: 0}", "total: 1}", "'total' of no terms is not 0"),
    (SOFTMAX, "0 if min(a.peak, b.peak) == -inf else", "0 if a.peak == inf else", "an infinity"),
    (MOMENTS, "identity: {count: 0", "identity: {count: 1", "'count' of no terms is not 0"),
    (MOMENTS, "a.count == 0 or b.count == 0", "a.count == 0", "not known to be above 0"),
    # what it means
    (SOFTMAX, "sum: exp(x - peak)", "sum: exp(peak - x)", "'total' of two sets together"),
    (SOFTMAX, "sum: exp(x - peak)", "sum: exp(x * peak - peak * peak)", "mixes the term"),
    (SOFTMAX, "sum: exp(x - peak)", "prod: exp(x - peak)", "'total' is neither a sum nor"),
    (SOFTMAX, "abs(peak) < inf", "abs(peak) < 1", "a comparison is not known to hold or not"),
    (MOMENTS, "(x - total / count) ** 2", "abs(x) - abs(total)", "does not look into"),
    (MOMENTS, "(x - total / count) ** 2", "sqrt(x - total / count)", "nothing that the proof"),
    (MOMENTS, "(x - total / count) ** 2", "(x - 2 * total / count) ** 2", "'square' of one term"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "why"), WRONG)
def test_a_wrong_law_is_refused(name: str, old: str, new: str, why: str) -> None:
    with pytest.raises(Unproved) as refusal:
        check(changed(name, old, new, 1))
    assert why in str(refusal.value)


def test_two_extremes_are_too_many() -> None:
    text = text_of(SOFTMAX).replace("total: {sum: exp(x - peak)}", "total: {max: x}")
    text = text.replace("total: 1 + (x - x)", "total: x")
    with pytest.raises(Unproved) as refusal:
        check(read(text, Path("law.yaml"), DType.FLOAT32))
    assert "several extremes" in str(refusal.value)


def test_a_form_must_say_all_parts() -> None:
    with pytest.raises(SpecError) as refusal:
        changed(MOMENTS, "      count: 1\n", "")
    assert "a meaning and a term for each part, in their order" in refusal.value.message


def test_a_meaning_must_be_a_reduction() -> None:
    with pytest.raises(SpecError) as refusal:
        changed(MOMENTS, "count: {sum: 1}", "count: {mean: 1}")
    assert "'count' must be a reduction" in refusal.value.message


# ---------------------------------------------------------------- the reals

A, B = atom("a"), atom("b")


def test_exponentials_multiply_by_sums() -> None:
    one, two = exponential(A), exponential(B)
    assert one is not None and two is not None
    assert one * two == exponential(A + B)
    assert exponential(one) is None, "an exponential of an exponential is not looked into"


def test_a_quotient_is_not_cancelled() -> None:
    assert A * B * reciprocal(B) != A
    assert is_zero(A * B * reciprocal(B) - A, Positive(frozenset({"b"})))
    assert not is_zero(A * B * reciprocal(B) - A, Positive(frozenset())), "b may be 0"


def test_divisors_are_multiplied_out() -> None:
    positive = Positive(frozenset({"a", "b"}))
    halves = A * reciprocal(A + B) + B * reciprocal(A + B)
    assert is_zero(halves - number(1), positive)
    assert not is_zero(halves - number(2), positive)
    with pytest.raises(ZeroDivisionError):
        reciprocal(A - A)


# ---------------------------------------------------------------- floats

SPECIAL = tuple(map(np.float32, (-np.inf, np.inf, np.nan, 2.5, 1e-45, 3e38)))


def combined(law: Law, form: Form, terms: Sequence[np.float32]) -> list[State]:
    """The state of the terms: one after another, from both ends, and in halves."""
    machine = Machine({}, {}, {}, None, check=False)
    values = {name: expression(value, machine) for name, value in form.terms.items()}
    join = defined(law.combiner, machine)
    states: list[State] = []
    for term in terms:
        machine.values[TERM] = term
        states.append(tuple(value() for value in values.values()))
    none: State = tuple(np.float32(float(c.value.real)) for c in law.combiner.identity)

    def halves(parts: Sequence[State]) -> State:
        if len(parts) < 2:
            return parts[0] if parts else none
        return join(halves(parts[: len(parts) // 2]), halves(parts[len(parts) // 2 :]))

    mixed = [none, *(s for state in states for s in (state, none))]
    return [reduce(join, states, none), reduce(join, states[::-1], none), halves(mixed)]


def two_passes(form: int, name: str, x: np.ndarray) -> tuple[np.float32, ...]:
    if name == MOMENTS:
        total = x.sum(dtype=x.dtype)
        return x.dtype.type(len(x)), total, np.sum((x - total / len(x)) ** 2, dtype=x.dtype)
    peak = np.max(x)
    shift = peak if form == 0 or np.isfinite(peak) else x.dtype.type(0)
    return peak, np.sum(np.exp(x - shift), dtype=x.dtype)


@pytest.mark.parametrize(("name", "form"), [(SOFTMAX, 0), (SOFTMAX, 1), (MOMENTS, 0)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values_are_as_in_two_passes(name: str, form: int) -> None:
    law = laws.lookup(name, DType.FLOAT32)
    # Squares of large numbers overflow, or those of what rounding left of them.
    values = SPECIAL[:5] if name == MOMENTS else SPECIAL
    for count in (1, 2, 3):
        for terms in product(values, repeat=count):
            wanted = two_passes(form, name, np.array(terms, np.float32))
            for state in combined(law, law.forms[form], terms):
                np.testing.assert_allclose(state, wanted, rtol=1e-5, err_msg=str(terms))


def test_no_terms_are_the_identity() -> None:
    for name in laws.names():
        law = laws.lookup(name, DType.FLOAT32)
        for state in combined(law, law.forms[0], ()):
            assert state == tuple(c.value for c in law.combiner.identity)


def bound_of(law: Law, part: str, known: dict[str, float]) -> float:
    machine = Machine({}, {}, {}, None, check=False)
    machine.values.update({name: np.float64(value) for name, value in known.items()})
    value: Expr = law.bound[part]
    return float(expression(value, machine)())


random = np.random.default_rng(0)
DATA: dict[str, Callable[[int], np.ndarray]] = {
    "normal": lambda n: random.normal(size=n),
    "far from 0": lambda n: 1000 + random.normal(size=n),
    "all alike": lambda n: np.full(n, 0.1),
    "rising": lambda n: np.linspace(-40, 40, n),
    "falling": lambda n: np.linspace(40, -40, n),
    "huge range": lambda n: random.choice([-1, 1], n) * 10.0 ** random.uniform(-18, 18, n),
    "subnormal": lambda n: random.uniform(-1e-40, 1e-40, n),
}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", laws.names())
def test_errors_keep_to_the_bound(name: str, data: str) -> None:
    law, exact_law = laws.lookup(name, DType.FLOAT32), laws.lookup(name, DType.FLOAT64)
    for n in (1, 2, 17, 200):
        x = DATA[data](n).astype(np.float32)
        exact = dict(
            zip(law.combiner.parts, two_passes(0, name, x.astype(np.float64)), strict=True)
        )
        known = {"n": n, "eps": np.finfo(np.float32).eps, "largest": np.max(abs(x)), **exact}
        for state in combined(law, law.forms[0], tuple(x)):
            for part, value in zip(law.combiner.parts, state, strict=True):
                error = abs(np.float64(value) - exact[part])
                assert error <= bound_of(exact_law, part, known) + 2e-45, (n, part)
