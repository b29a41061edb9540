"""Reductions joined by a law: what fits, what is refused, what is proved, and compiled code."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gen import language as specs
from gen import pipeline
from gen.display.text import unproved
from gen.errors import ScheduleError
from gen.ir.nodes import Block, Const, Update
from gen.ir.types import DType
from gen.ir.walk import blocks
from gen.poly.certificate import PROVED, Given, Scheduled, Standing
from gen.poly.prove import prove
from gen.poly.witness import Refused
from gen.schedule.edit.tree import rebuild, tree, update_blocks
from gen.schedule.examples import ROW_EXPONENTIALS, ROW_SPREAD
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.trial.proofs import proofs
from tests.targets.conftest import has

from .compiled import Case, compile_all
from .support import schedule, start

EXPONENTIALS = "- rescale: {blocks: [peak, y]}\n"
SPREAD = "- rescale: {blocks: [total, y]}\n"

SHIFTED = ROW_EXPONENTIALS.replace(
    "exp(x[i, j] - peak[i])",
    'exp(x[i, j] - (peak[i] if abs(peak[i]) < float32("inf") else 0.0))',
)


def refusal(text: str, step: str, before: str = "") -> str:
    with pytest.raises(ScheduleError) as refused:
        schedule(start(text), f"{before}- rescale: {step}")
    return refused.value.message


# ---------------------------------------------------------------- what fits


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (ROW_EXPONENTIALS, "x[i, j] - peak[i]", "-peak[i] + x[i, j]"),
        (ROW_EXPONENTIALS.replace("x[i, j]", "x[i, j] * 2.0"), "* 2.0 - peak", "/ 0.5 - peak"),
        (ROW_SPREAD, "(x[i, j] - mean[i]) * (x", "(mean[i] - x[i, j]) * -(x"),
        (ROW_SPREAD, "total[i] / float32(n)", "total[i] * (1.0 / float32(n))"),
        (ROW_SPREAD, "(x[i, j] - mean[i]) * (", "fma(x[i, j], 1.0, -mean[i]) * ("),
        (SHIFTED, "x[i, j]", "x[i, j]"),
    ],
)
def test_terms_are_compared_over_the_reals(text: str, old: str, new: str) -> None:
    assert old in text
    step = SPREAD if text is ROW_SPREAD else EXPONENTIALS
    after = schedule(start(text.replace(old, new)), step)[-1].state
    assert len(blocks(after.kernel.body)) == (2 if "z[" in text else 1)


def test_a_triangle_has_as_many_terms_as_its_rows() -> None:
    text = ROW_SPREAD.replace("range(n)", "range(total.i + 1)", 1)
    text = text.replace("for y.j in range(n)", "for y.j in range(y.i + 1)")
    text = text.replace("reduction(total.j)", "reduction(total.j, i + 1)")
    text = text.replace("reduction(y.j)", "reduction(y.j, i + 1)")
    text = text.replace("float32(n)", "float32(i + 1)").replace("m, n]", "m, m]")
    text = text.replace("(m, n, x", "(m, x")
    assert schedule(start(text), SPREAD)[-1].state.laws == (
        Given("one_pass_moments", ("total", "y")),
    )


def test_terms_that_are_copied_before() -> None:
    """The copy is still read, by the one reduction, though nothing else reads its result."""
    before = "- reindex: {block: total, buffer: x}\n"
    after = schedule(start(ROW_SPREAD), before + SPREAD)[-1].state.kernel
    assert [b.name for b in blocks(after.body)] == ["x_reindex", "total"]


def test_a_window_of_a_part_that_nothing_reads() -> None:
    with pytest.raises(ScheduleError) as refused:
        schedule(start(ROW_SPREAD), SPREAD + "- reuse_at: {buffer: total, loop: total.j}")
    assert "nothing reads what block 'total' computes" in refused.value.message


def test_a_window_of_a_part_where_another_is_read_outside() -> None:
    text = ROW_EXPONENTIALS.replace("y[i] = combine.sum(y[i]", "t[i] = combine.sum(t[i]")
    text = text.replace("allocate(", "allocate(t=float32[m], ") + (
        '        for z.i in range(m):\n            with block("z", i=spatial(z.i)):\n'
        "                y[i] = peak[i]\n"
    )
    with pytest.raises(ScheduleError) as refused:
        schedule(start(text), EXPONENTIALS + "- reuse_at: {buffer: t, loop: peak.j}")
    assert "block 'z' uses 'peak' outside loop 'peak.j'" in refused.value.message


REFUSED = [
    (ROW_SPREAD, "{blocks: [total]}", "it takes two reductions or more, each once"),
    (ROW_SPREAD, "{blocks: [y, y]}", "it takes two reductions or more, each once"),
    (ROW_SPREAD, "{blocks: [mean, y]}", "block 'mean' is not a reduction of the spec by sum"),
    (ROW_SPREAD, "{blocks: [total, z]}", "there is no block 'z'"),
    (
        ROW_SPREAD,
        "{blocks: [y, total]}",
        "one_pass_moments: block 'total' reduces `x[i, j]`, and 'square' `",
    ),
    (
        ROW_SPREAD.replace("float32(n)", "float32(m)"),
        "{blocks: [total, y]}",
        "and 'square' `(x[i, j] - ",
    ),
    (
        ROW_EXPONENTIALS.replace("exp(x[i, j] - peak[i])", "exp(x[i, j] - 0.5 * peak[i])"),
        "{blocks: [peak, y]}",
        "online_softmax: block 'y' reduces `exp(x[i, j] - 0.5 * ",
    ),
    (
        ROW_EXPONENTIALS.replace("combine.max(peak[i], x", "combine.min(peak[i], x"),
        "{blocks: [peak, y]}",
        "online_softmax: block 'peak' is a min, and 'peak' a max",
    ),
    (
        ROW_EXPONENTIALS.replace("for y.j in range(n)", "for y.j in range(1, n)").replace(
            "reduction(y.j)", "reduction(y.j, 1, n)"
        ),
        "{blocks: [peak, y]}",
        "blocks 'peak' and 'y' run over other iterations",
    ),
    (
        ROW_EXPONENTIALS.replace("reduction(y.j)", "reduction(y.j), where=y.j < m"),
        "{blocks: [peak, y]}",
        "block 'y' has a condition: y.j < m",
    ),
    (
        ROW_EXPONENTIALS.replace("e[i, j] =", "e[i, n - 1 - j] ="),
        "{blocks: [peak, y]}",
        "block 'e' does not write elements named by its iterations",
    ),
    (
        ROW_SPREAD.replace("float32[m, n]", "int64[m, n]")
        .replace("total=float32", "total=int64")
        .replace("total[i] /", "float32(total[i]) /")
        .replace("x[i, j] - mean", "float32(x[i, j]) - mean"),
        "{blocks: [total, y]}",
        "the reductions must be of one type of floats, not int64, float32",
    ),
]


@pytest.mark.parametrize(("text", "step", "why"), REFUSED)
def test_what_fits_no_law(text: str, step: str, why: str) -> None:
    assert why in refusal(text, step)


def test_a_decomposed_reduction() -> None:
    before = "- decompose_reduction: {block: y, loop: y.j}\n"
    why = "block 'y' does not start from the identity by itself"
    assert why in refusal(ROW_SPREAD, "{blocks: [total, y]}", before)


def test_values_of_several_places() -> None:
    text = ROW_EXPONENTIALS.replace(
        "        for y.i in range(m):\n            for y.j",
        "        for e_1.i in range(m):\n"
        '            with block("e_1", i=spatial(e_1.i), where=n > 0):\n'
        "                e[i, 0] = 1.0\n"
        "        for y.i in range(m):\n            for y.j",
    )
    why = "what is read of 'e' comes from several places"
    assert why in refusal(text, "{blocks: [peak, y]}")


def test_three_reductions() -> None:
    text = ROW_SPREAD.replace("y: Out", "z: Out[float32[m]], y: Out") + (
        "        for z.i in range(m):\n            for z.j in range(n):\n"
        '                with block("z", i=spatial(z.i), j=reduction(z.j), initialises=True):\n'
        "                    z[i] = combine.sum(z[i], x[i, j])\n"
    )
    assert "it joins 2 reductions" in refusal(text, "{blocks: [total, y, z]}")


def test_another_reduction_of_the_name() -> None:
    text = ROW_EXPONENTIALS.replace(
        "    with allocate",
        "    @combiner(value=float32(0.0))\n"
        "    def online_softmax(a, b, c):\n        c.value = a.value + b.value\n"
        "    with allocate",
    )
    text = text.replace("y: Out", "z: Out[float32[m]], y: Out") + (
        "        for z.i in range(m):\n            for z.j in range(n):\n"
        '                with block("z", i=spatial(z.i), j=reduction(z.j), initialises=True):\n'
        "                    z[i] = combine.online_softmax(z[i], x[i, j])\n"
    )
    why = "there is another reduction 'online_softmax' already"
    assert why in refusal(text, "{blocks: [peak, y]}")


def test_a_value_that_another_block_would_miss() -> None:
    """z takes what y held at the call; the one reduction would overwrite it before."""
    text = ROW_EXPONENTIALS.replace("y: Out", "z: Out[float32[m]], y: InOut").replace(
        "        for e.i in range(m):\n",
        "        for z.i in range(m):\n"
        '            with block("z", i=spatial(z.i)):\n                z[i] = y[i]\n'
        "        for e.i in range(m):\n",
        1,
    )
    why = "the reductions cannot be one in the place of the first: block 'z' would take other"
    assert why in refusal(text, "{blocks: [peak, y]}")


# ---------------------------------------------------------------- what is proved


def rescaled() -> tuple[Scheduled, Scheduled]:
    before = start(ROW_EXPONENTIALS)
    return before, schedule(before, EXPONENTIALS)[-1].state


def test_steps_keep_the_laws() -> None:
    done = schedule(start(ROW_EXPONENTIALS), EXPONENTIALS + "- parallel: {loop: peak.i}")
    given = (Given("online_softmax", ("peak", "y")),)
    assert [step.state.laws for step in done] == [given, given]


def test_without_the_law_it_is_refused() -> None:
    before, after = rescaled()
    with pytest.raises(Refused) as refused:
        prove(before.kernel, replace(after, standing=PROVED))
    assert "is a online_softmax update" in refused.value.reason


def test_a_law_that_the_spec_does_not_fit() -> None:
    before, after = rescaled()
    laws = (Given("one_pass_moments", ("peak", "y")),)
    with pytest.raises(Refused) as refused:
        prove(before.kernel, replace(after, standing=Standing(laws)))
    assert "law 'one_pass_moments' is not one of this kernel" in refused.value.reason


def test_what_is_known_without_the_law_is_not_with_it() -> None:
    before, after = rescaled()
    plain = before.kernel
    prove(plain, before)
    with pytest.raises(Refused) as refused:
        prove(plain, replace(before, standing=after.standing))
    assert "block 'y' computes 'y', which the plain schedule does not have" in refused.value.reason


def test_another_term_is_refused() -> None:
    before, after = rescaled()

    def doubled(block: Block) -> Block:
        body = block.body
        assert isinstance(body, Update)
        terms = (body.values[0], Const(2.0, DType.FLOAT32))
        return replace(block, body=replace(body, values=terms))

    body = update_blocks(tree(after.kernel), doubled)
    flow = {read: source for read, source in after.flow.items() if read[1] == 0}
    with pytest.raises(Refused) as refused:
        prove(before.kernel, replace(after, kernel=rebuild(after.kernel, body), flow=flow))
    assert "computes `float32(2.0)` where block 'peak'" in refused.value.reason


def test_another_combination_is_refused() -> None:
    before, after = rescaled()

    def swapped(block: Block) -> Block:
        body = block.body
        assert isinstance(body, Update)
        places = (body.targets[1], body.targets[0])
        return replace(block, body=replace(body, targets=places))

    body = update_blocks(tree(after.kernel), swapped)
    with pytest.raises(Refused) as refused:
        prove(before.kernel, replace(after, kernel=rebuild(after.kernel, body)))
    assert "'y'" in refused.value.reason


SPEC = """\
tilesmith: 1
kernel: normalizer
doc: Sums of exponentials.
signature: (n)->()
dtypes: {T: [float32]}
arguments:
  x: {type: "T[m, n]"}
  y: {type: "T[m]", intent: out}
compute: |
  peak[i] = max(x[i, j] for j in n)
  y[i]    = sum(exp(x[i, j] - peak[i]) for j in n)
recipes:
  - target: cpu
    variants:
      - steps:
          - rescale: {blocks: [peak, y]}
"""


def test_what_is_said_of_it(tmp_path: Path) -> None:
    path = tmp_path / "normalizer.yaml"
    path.write_text(SPEC)
    said = [p.status for p in proofs(specs.load(path), [Cpu(Level.V3)])]
    assert said == ["proved", *["proved given online_softmax"] * 3]
    manifest = pipeline.generate(specs.load(path), [Cpu(Level.V3)], unproved).manifest
    assert manifest["details"]["proof"]["status"] == "proved given online_softmax"  # type: ignore[index]


# ---------------------------------------------------------------- compiled code

VECTORS = """\
- vectorize: {{loop: {0}.j, width: 8, accumulators: 2, tail: mask}}
- parallel: {{loop: {0}.i}}
"""
CASES = {
    "exponentials": Case(start(ROW_EXPONENTIALS), EXPONENTIALS + VECTORS.format("peak"), dict),
    "shifted": Case(start(SHIFTED), EXPONENTIALS + VECTORS.format("peak"), dict),
    "spread": Case(start(ROW_SPREAD), SPREAD + VECTORS.format("total"), dict),
}
SIZES = (0, 1, 7, 16, 17, 1021)
LEVELS = [Level(name) for name in ("v2", "v3", "v4")]


def exponentials(x: np.ndarray) -> np.ndarray:
    peak = np.max(x, 1, keepdims=True, initial=-np.inf)
    return np.sum(np.exp(x - peak), 1)


def shifted(x: np.ndarray) -> np.ndarray:
    peak = np.max(x, 1, keepdims=True, initial=-np.inf)
    return np.sum(np.exp(x - np.where(np.isfinite(peak), peak, 0)), 1)


def spread(x: np.ndarray) -> np.ndarray:
    mean = np.sum(x, 1, keepdims=True) / x.shape[1]
    return np.sum((x - mean) ** 2, 1)


REFERENCES = {"exponentials": exponentials, "shifted": shifted, "spread": spread}


def rows(n: int) -> np.ndarray:
    """Rows of usual and of special values."""
    random = np.random.default_rng(n)
    x = random.normal(0, 3, (12, n)).astype(np.float32)
    x[1] = 0.1
    x[2] = np.sort(x[2])
    x[3] = -np.sort(-x[3])
    x[4] *= 1e-40
    x[5] = 1000 + x[5]
    x[6] *= 10.0 ** random.uniform(-15, 15, n)
    x[7] = -np.inf
    if n:
        x[8, random.integers(n)] = -np.inf
        x[9, random.integers(n)] = np.inf
        x[10, random.integers(n)] = np.nan
        x[11, : n // 2] = -np.inf
    return x


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.value)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_compiled(level: Level) -> None:
    if not has(level):
        pytest.skip(f"this processor has no {level.value}")
    compiled = compile_all(CASES, level)
    for name, n in ((name, n) for name in CASES for n in SIZES):
        x = rows(n)
        got = np.full(len(x), 77, np.float32)
        compiled[name]({"x": x, "y": got}, dims={"m": len(x), "n": n}, threads=2)
        wanted = REFERENCES[name](x.astype(np.float64))
        largest = np.max(abs(x), 1, initial=0).astype(np.float64)
        grain = 4 * (n + 2) * 2.0**-23
        near = grain * wanted  # as the laws' bounds say
        if REFERENCES[name] is spread:
            near = grain * np.sqrt(wanted * n) * largest + grain**2 * n * largest**2
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(got[~finite], wanted[~finite], f"{name} {n}")
        assert np.all(abs(got - wanted)[finite] <= near[finite] + 1e-44), f"{name} {n}"
