"""Places, sizes, notes and padding: why a step does not apply, and what the proof finds."""

from dataclasses import replace

import pytest

from gen.errors import ScheduleError
from gen.ir.nodes import Alignment, Allocate
from gen.ir.rules.verify import IRError, verify
from gen.ir.text.parser import from_text
from gen.ir.text.printer import to_text
from gen.ir.walk import blocks, loads
from gen.lower.lower import lower
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.witness import Refused
from gen.schedule.base import StepContext, trace
from gen.schedule.examples import (
    CHAIN,
    PADDED,
    ROW_SQUARES,
    ROW_SUM,
    SCALE,
    SHARE,
    TRIANGLE,
    TURNED,
    TWICE,
)
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu

from .support import assert_same, schedule, start, steps

ARGMAX = """\
def argmax(n, x: float32[n], y: Out[int64[()]]):
    with allocate(v=float32[1], k=int64[1]):
        for v.i in range(n):
            with block("v", i=reduction(v.i), initialises=True):
                v[0], k[0] = combine.argmax((v[0], k[0]), (x[i], i))
        with block("y"):
            y[()] = k[0]
"""

DOUBLED = """\
def doubled(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[2*n]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[2*i] = x[i]
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[2*i] + 1.0
"""

WELFORD = """\
def welford(n, x: float32[n], y: Out[float32[()]]):
    @combiner(a=float32(0.0))
    def half(a, b, c):
        c.a = a.a + b.a * 0.5
    for y.i in range(n):
        with block("y", i=reduction(y.i), initialises=True):
            y[()] = combine.half(y[()], x[i])
"""

GATHER = """\
def gather(n, x: float32[n], at: int64[n], y: Out[float32[n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = x[min(max(at[i], 0), n - 1)]
"""

IN_PLACE = """\
def in_place(n, y: InOut[float32[n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = y[i] * 2.0
"""

SPLIT = "- split: {loop: y.i, factors: [null, 4]}\n"

REFUSALS = [
    # layouts
    (
        TWICE,
        "- fold_storage: {buffer: t, axis: 1, factor: 2}",
        "'t' has 1 axes: there is no axis 1",
    ),
    (TWICE, "- fold_storage: {buffer: t, axis: 0, factor: 0}", "factor 0 is not positive"),
    (
        TWICE,
        "- set_size: {buffer: t, sizes: [n]}\n- fold_storage: {buffer: t, axis: 0, factor: 2}",
        "'t' is of a stated size: do this before",
    ),
    (
        ROW_SQUARES,
        "- storage_align: {buffer: t, axis: 0, factor: 16}\n"
        '- store_in: {block: t, indices: "j, i"}',
        "'t' is aligned: do this before",
    ),
    (TWICE, "- store_in: {block: t, indices: k}", "there is no index 'k' here"),
    (TWICE, "- store_in: {block: t, indices: i +}", "'i +' is not a list of index expressions"),
    (TWICE, '- store_in: {block: t, indices: "i % n"}', "does not divide by a positive integer"),
    (TWICE, '- store_in: {block: t, indices: "i / 2"}', "'i / 2' is not an index expression"),
    (TWICE, '- store_in: {block: t, indices: "x[i]"}', "'x[i]' is not an index expression"),
    (
        TWICE,
        '- store_in: {block: t, indices: "{ [i, j] -> [i] }"}',
        "has 2 inputs for 1 indices",
    ),
    (SHARE, "- store_in: {block: t, indices: i}", "'i' does not index 't'"),
    (DOUBLED, "- store_in: {block: t, indices: i}", "axis 0 of 't' is at `2 * i`"),
    (ARGMAX, "- store_in: {block: v, indices: i}", "writes several buffers: say which by `buffer`"),
    (ARGMAX, "- store_in: {block: v, indices: i, buffer: y}", "block 'v' does not write 'y'"),
    (TWICE, "- set_size: {buffer: t, sizes: [m]}", "there is no index 'm' here"),
    (TWICE, '- set_size: {buffer: t, sizes: ["n, n"]}', "'n, n' is not one size"),
    (
        ROW_SQUARES,
        "- storage_align: {buffer: t, axis: -3, factor: 4}",
        "'t' has 2 axes: there is no axis -3",
    ),
    (ROW_SQUARES, "- storage_align: {buffer: t, axis: 0, factor: 0}", "factor 0 is not positive"),
    (
        ROW_SQUARES,
        "- storage_align: {buffer: t, axis: 0, factor: 4}\n"
        "- storage_align: {buffer: t, axis: -2, factor: 8}",
        "axis -2 of 't' is aligned already",
    ),
    # several results in one place
    (
        ROW_SUM,
        "- cache_write: {block: y, at: y.i}\n- decompose_reduction: {block: y, loop: y.i}\n"
        "- fold_storage: {buffer: y_cache, axis: 0, factor: 4}",
        "what y_cache[i=4] copies from 'y_cache' holds the terms of several results",
    ),
    (
        TRIANGLE,
        "- cache_write: {block: y}\n- decompose_reduction: {block: y, loop: y.i}\n"
        '- store_in: {block: y, indices: "i % 4"}',
        "what y_cache[i=0] copies from 'y_cache' holds the terms of several results",
    ),
    # iteration spaces
    (
        SCALE,
        SPLIT + '- transform_block_layout: {block: y, indices: "j, i"}',
        "'i' of block 'y' is `y.i_0 * 4 + y.i_1`, which is not a loop of the block's own",
    ),
    (
        SCALE,
        '- parallel: {loop: y.i}\n- transform_block_layout: {block: y, indices: "j, i"}',
        "loop 'y.i' is parallel already",
    ),
    (
        SCALE,
        "- annotate: {loop: y.i, key: k, value: 1}\n"
        '- transform_block_layout: {block: y, indices: "j, i"}',
        "loop 'y.i' is annotated already",
    ),
    (
        SCALE,
        '- peel: {loop: y.i, at: 1}\n- transform_block_layout: {block: y, indices: "j, i"}',
        "loop 'y.i_1' runs over a part of 'i'",
    ),
    (SCALE, '- transform_block_layout: {block: y, indices: "j, i", as: [a]}', "must give 2 names"),
    (
        SCALE,
        '- transform_block_layout: {block: y, indices: "n*i + j"}',
        "`n * i + j` is not affine, or has no bounds",
    ),
    (
        TWICE,
        '- transform_block_layout: {block: y, indices: "min(i, n - i)"}',
        "two instances have one place in the new space",
    ),
    # notes
    (TWICE, "- annotate: {key: a, value: 1}", "give `loop` or `block`, one of them"),
    (TWICE, "- annotate: {loop: y.i, block: y, key: a, value: 1}", "give `loop` or `block`, one"),
    (
        TWICE,
        "- annotate: {loop: y.i, key: pragma_auto_unroll_max_step, value: many}",
        "takes a number that is not negative",
    ),
    (TWICE, "- annotate: {loop: y.i, key: pragma_unroll_explicit, value: 2}", "takes 0 or 1"),
    (TWICE, "- annotate: {loop: y.i, key: unroll, value: 2}", "a mark of the emitted code's own"),
    (
        TWICE,
        "- annotate: {loop: t.i, key: a, value: 1}\n- compute_inline: {block: t}",
        "compute_inline (block t): loop 't.i' would be gone, which is annotated with 'a'",
    ),
    # copies
    (GATHER, "- reindex: {block: y, buffer: x}", "where block 'y' reads 'x' depends on data"),
    (IN_PLACE, "- reindex: {block: y, buffer: y}", "block 'y' reads 'y', too"),
    (ROW_SUM, "- reindex: {block: y, buffer: y, as: y}", "the name 'y' is taken"),
    (
        ROW_SUM,
        "- decompose_reduction: {block: y, loop: y.j}\n- reindex: {block: y, buffer: y}",
        "block 'y' adds to what is in 'y'",
    ),
    (
        TURNED,
        "- pack: {block: y, buffer: x, axis: 1, factors: [null, 4], parallel: 2}",
        "'x' has 2 axes: there is no axis 2",
    ),
    (TURNED, "- pack: {block: y, buffer: x, order: [0, 0]}", "`order` must list the axes 0 to 1"),
    # padding
    (ROW_SUM, "- pad: {block: y, multiples: {k: 4}}", "has no iteration variable 'k'"),
    (ROW_SUM, "- pad: {block: y, multiples: {j: 0}}", "0, which 'j' is padded to, is not positive"),
    (ROW_SUM, "- pad: {block: y, multiples: {}}", "`multiples` names no iteration variable"),
    (WELFORD, "- pad: {block: y, multiples: {i: 4}}", "the identity of half of float32 changes"),
    (
        ROW_SUM,
        "- decompose_reduction: {block: y, loop: y.j}\n- pad: {block: y.init, multiples: {i: 4}}",
        "block 'y.init' is the init of a reduction: pad that before",
    ),
    (
        TWICE,
        "- transform_layout: {buffer: t, axis: 0, factors: [null, 8]}\n"
        "- pad: {block: t, multiples: {i: 4}}",
        "'i' does not run along all of an axis of 't'; pad before its layout changes",
    ),
    (
        ROW_SQUARES,
        "- storage_align: {buffer: t, axis: 0, factor: 16}\n- pad: {block: t, multiples: {i: 4}}",
        "'t' is aligned: do this before",
    ),
    (
        ROW_SUM,
        "- split: {loop: y.j, factors: [null, 4]}\n- pad: {block: y, multiples: {j: 4}}",
        "'j' of block 'y' has no loop of its own any more; pad before",
    ),
    (
        ROW_SUM,
        "- decompose_reduction: {block: y, loop: y.j}\n- peel: {loop: y.j, at: 1}\n"
        "- pad: {block: y, multiples: {j: 4}}",
        "loop 'y.j_1' runs over a part of 'j'",
    ),
    (
        PADDED,
        "- parallel: {loop: t.i}\n- decompose_padding: {block: t}",
        "loop 't.i' is parallel already",
    ),
    (PADDED, "- decompose_padding: {block: t, as: y}", "the name 'y' is taken"),
]


@pytest.mark.parametrize(("text", "recipe", "reason"), REFUSALS, ids=lambda x: str(x)[-50:])
def test_refusals(text: str, recipe: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        schedule(start(text), recipe)
    assert reason in refusal.value.message


@pytest.mark.parametrize(
    ("text", "recipe"),
    [
        (TRIANGLE, "- pad: {block: y, multiples: {j: 4}}"),
        (TRIANGLE, "- reindex: {block: y, buffer: x}"),
        (TRIANGLE, '- transform_block_layout: {block: y, indices: "j, n - 1 - i"}'),
        (ARGMAX, "- pad: {block: v, multiples: {i: 4}}"),
        (TWICE, "- pad: {block: t, multiples: {i: 4}}"),
        (ROW_SQUARES, "- pad: {block: t, multiples: {i: 4, j: 8}}"),
        (
            ROW_SUM,
            "- cache_write: {block: y, as: sums}\n- pad: {block: y, multiples: {i: 4, j: 2}}\n"
            "- split: {loop: y.i, factors: [null, 4]}",
        ),
        (ROW_SUM, "- reindex: {block: y, buffer: y}"),
        (CHAIN, '- store_in: {block: t, indices: "{ t[a] -> [floor(a/4), 3 - a mod 4] }"}'),
        (ROW_SQUARES, '- store_in: {block: t, indices: "i + j, j"}'),
        (
            ROW_SUM,
            "- cache_write: {block: y, at: y.i}\n"
            "- fold_storage: {buffer: y_cache, axis: 0, factor: 4}",
        ),
        (
            PADDED.replace("1 <= i and i <= n", "0 < i and n + 1 > i"),
            "- decompose_padding: {block: t}",
        ),
        (PADDED.replace("1 <= i", "i != 0"), "- decompose_padding: {block: t}"),
    ],
)
def test_steps(text: str, recipe: str) -> None:
    state = start(text)
    assert_same(state.kernel, schedule(state, recipe)[-1].state.kernel)


AHEAD = """\
def ahead(n, x: float32[n], y: Out[float32[n]]):
    with allocate(t=float32[n + 3]):
        for t.i in range(n):
            with block("t", i=spatial(t.i)):
                t[i + 3] = x[i]
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[i + 3] + 1.0
"""


def test_places_are_those_of_the_instances() -> None:
    """Wherever the spec has put them."""
    state = schedule(start(AHEAD), "- store_in: {block: t, indices: i}")[-1].state
    text = to_text(state.kernel)
    assert "t=float32[n]" in text and "y[i] = t[i] + 1.0" in text
    assert_same(start(AHEAD).kernel, state.kernel)


def test_a_block_without_its_unit_axis() -> None:
    """What NormalizePrimFunc does to each block."""
    text = SCALE.replace("y.j in range(n)", "y.j in range(1)").replace("[m, n]", "[m, 1]")
    done = schedule(start(text), "- transform_block_layout: {block: y, indices: i}")[-1].state
    assert "y[i, 0] = x[i, 0] * 2.0" in to_text(done.kernel)
    assert [v.name for v in from_text(to_text(done.kernel)).body.body.iters] == ["i"]


def test_a_step_prints_as_a_recipe_writes_it() -> None:
    text = '- store_in: {block: t, indices: "i % 2, j"}'
    (step,) = steps(text)
    assert f"- {step}" == text


# ---------------------------------------------------------------- what proofs find

PADDED_SUM = "- pad: {block: y, multiples: {j: 4}}"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "else 0.0",
            "else 1.0",
            "an instance that block 'y' of the plain schedule does not have",
        ),
        ("if j < n", "if j < n - 1", "computes"),
        ("if j < n", "if j < n + 1", "reads 'x' outside its bounds"),
        ("(n + 3) // 4 * 4", "n // 4 * 4", "lacks the term y"),
    ],
)
def test_other_padding_is_refused(old: str, new: str, reason: str) -> None:
    plain = start(ROW_SUM)
    state = schedule(plain, PADDED_SUM)[-1].state
    wrong = to_text(state.kernel).replace(old, new)
    assert wrong != to_text(state.kernel)
    with pytest.raises(Refused, match=reason):
        prove(plain.kernel, Scheduled(from_text(wrong), state.flow))


def test_terms_that_there_are_not_are_refused() -> None:
    """Though what they read is there, and though others after them add nothing."""
    plain = start(
        ROW_SUM.replace("x[i, j]", "x[i, i]")
        .replace("m, n,", "m,")
        .replace("[m, n]", "[m, m]")
        .replace("range(n)", "range(m)")
    )
    state = schedule(plain, PADDED_SUM)[-1].state
    wrong = to_text(state.kernel).replace("if j < m", "if j < m + 1")
    assert wrong != to_text(state.kernel)
    with pytest.raises(
        Refused, match="runs, an instance that block 'y' of the plain schedule does"
    ):
        prove(plain.kernel, Scheduled(from_text(wrong), state.flow))


def test_a_padded_product_of_complex_numbers_is_refused() -> None:
    text = ROW_SUM.replace("float32", "complex64").replace("combine.sum", "combine.prod")
    plain = start(text)
    padded = (
        text.replace("y.j in range(n)", "y.j in range(n + 1)")
        .replace("j=reduction(y.j)", "j=reduction(y.j, n + 1)")
        .replace("x[i, j])", "x[i, j] if j < n else complex64(1.0, 0.0))")
    )
    with pytest.raises(Refused, match="that block 'y' of the plain schedule does not have"):
        prove(plain.kernel, Scheduled(from_text(padded), plain.flow))


@pytest.mark.parametrize(
    ("old", "new"),
    [("t_pad.i < 1", "t_pad.i < 2"), ("n < t_pad_2.i", "n - 1 < t_pad_2.i"), ("0.0\n", "1.0\n")],
)
def test_another_border_is_refused(old: str, new: str) -> None:
    plain = start(PADDED)
    state = schedule(plain, "- decompose_padding: {block: t}")[-1].state
    wrong = to_text(state.kernel).replace(old, new, 1)
    assert wrong != to_text(state.kernel)
    with pytest.raises(Refused):
        prove(plain.kernel, Scheduled(from_text(wrong), state.flow))


def test_a_fill_of_nothing_is_gone_after_lowering() -> None:
    """And with it what the certificate says of it."""
    recipe = "- decompose_padding: {block: t}\n- peel: {loop: t_pad_2.i, at: -1}"
    plain = start(PADDED)
    state = schedule(plain, recipe)[-1].state
    after = lower(state, Cpu(Level.V2).lowering)
    assert "t_pad_2_2" in to_text(state.kernel) and "t_pad_2_2" not in to_text(after.kernel)
    prove(plain.kernel, after)


# ---------------------------------------------------------------- the tree

FIXED = ROW_SQUARES.replace("t=float32[m, n]", "t=float32[m, n] @ heap @ align(0, 16, 8) @ fixed")


def test_what_is_said_of_memory_round_trips() -> None:
    kernel = from_text(FIXED)
    assert isinstance(kernel.body, Allocate)
    (buffer,) = kernel.body.buffers
    assert buffer.aligned == (Alignment(0, 16, 8),) and buffer.fixed
    assert to_text(kernel) == FIXED


@pytest.mark.parametrize("wrong", [Alignment(1, 16, 8), Alignment(0, 16, 16), Alignment(-1, 4, 0)])
def test_an_alignment_that_is_none(wrong: Alignment) -> None:
    kernel = from_text(FIXED)
    assert isinstance(kernel.body, Allocate)
    (buffer,) = kernel.body.buffers
    body = replace(kernel.body, buffers=(replace(buffer, aligned=(wrong,)),))
    with pytest.raises(IRError, match="'t' cannot be aligned by"):
        verify(replace(kernel, body=body))


TILE = """\
- split: {loop: y.i, factors: [null, 2]}
- split: {loop: y.j, factors: [null, 4]}
- reorder: {loops: [y.i_0, y.j_0, y.i_1, y.j_1]}
"""
NOTE = "- annotate: {{loop: y.i_0, key: pragma_{}, value: {}}}\n"


@pytest.mark.parametrize(
    ("most", "unrolled"), [(3, ()), (4, ("y.j_1",)), (7, ("y.j_1",)), (8, ("y.i_1", "y.j_1"))]
)
def test_loops_that_a_note_unrolls(most: int, unrolled: tuple[str, ...]) -> None:
    state = schedule(start(SCALE), TILE + NOTE.format("auto_unroll_max_step", most))[-1].state
    text = to_text(lower(state, Cpu(Level.V2).lowering).kernel)
    for loop in ("y.i_1", "y.j_1"):
        assert (f"{loop} in unrolled" in text) is (loop in unrolled)
    assert "pragma" not in text


def test_loops_that_the_compiler_unrolls() -> None:
    notes = NOTE.format("auto_unroll_max_step", 8) + NOTE.format("unroll_explicit", 0)
    text = to_text(
        lower(schedule(start(SCALE), TILE + notes)[-1].state, Cpu(Level.V2).lowering).kernel
    )
    assert "unrolled(" not in text
    assert text.count("annotations={'unroll': ") == 2


CLAMPED = """\
def clamped(m, n, x: float32[m, n], p: int64[n], y: Out[float32[n]]):
    assume(m >= 1)
    with allocate(t=float32[m, n], s=float32[n]):
        for t.i in range(m):
            for t.j in range(n):
                with block("t", i=spatial(t.i), j=spatial(t.j)):
                    t[i, j] = x[i, j] * 2.0
        for s.i in range(n):
            with block("s", i=spatial(s.i)):
                s[i] = x[0, i] + 1.0
        for y.i in range(n):
            with block("y", i=spatial(y.i)):
                y[i] = t[min(max(p[i], 0), m - 1), i] + s[i]
"""


@pytest.mark.parametrize("how", ["axis: 0, factors: [null, 2], order: [2, 1, 0]", "order: [1, 0]"])
def test_a_position_that_is_read_from_an_array_may_stand_twice(how: str) -> None:
    """Each read keeps its source, by whatever number it then goes."""
    (step,) = steps(f"- transform_layout: {{buffer: t, {how}}}")
    state = trace(step, start(CLAMPED), StepContext(start(CLAMPED).kernel, lambda *_: None))[
        -1
    ].state
    (block,) = (b for b in blocks(state.kernel.body) if b.name == "y")
    sources = [(x.buffer, state.flow["y", n].writers) for n, x in enumerate(loads(block.body))]
    assert sources[0] == ("t", ("t",)) and sources[-1] == ("s", ("s",))
    assert set(sources[1:-1]) == {("p", ())}
