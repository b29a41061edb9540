"""Running reductions compiled: by scans of lanes, or lane by lane where there is no such form."""

from types import SimpleNamespace

import numpy as np
import pytest

from gen.ir.nodes import Kernel
from gen.ir.text.parser import from_text
from gen.lower.lower import lower
from gen.poly.certificate import Scheduled
from gen.poly.values.flow import plain_flow
from gen.schedule.base import StepContext
from gen.schedule.recipe import run
from gen.targets.c.library import Compiled
from gen.targets.cpu.emit import emit_kernel
from gen.targets.cpu.jit import compile_kernel
from gen.targets.cpu.levels import Level, Processor
from gen.targets.cpu.target import Cpu
from tests.schedule.support import steps

from .kernels import WARNINGS, finished

NUMPY = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
VECTORIZED = """\
- scan: {{block: y, width: {chunk}}}
- set_scope: {{buffer: y_scan, scope: register}}
- set_scope: {{buffer: y_carry, scope: register}}
- vectorize: {{loop: y_scan.j_1, width: {chunk}}}
- vectorize: {{loop: y.j_1, width: {chunk}}}
- vectorize: {{loop: y_carry.j_1, width: {chunk}}}
"""


def running(dtype: str, combiner: str = "sum", value: str = "x[i, k]", terms: str = "j + 1") -> str:
    return f"""
def k(m, n, x: {dtype}[m, n], y: Out[{dtype}[m, n]]):
    for y.i in range(m):
        for y.j in range(n):
            for y.k in range({terms.replace("j", "y.j")}):
                with block("y", i=spatial(y.i), j=spatial(y.j), k=reduction(y.k, {terms}), initialises=True):
                    y[i, j] = combine.{combiner}(y[i, j], {value})
"""  # noqa: E501


def lowered(text: str, recipe: str, level: Level) -> Kernel:
    kernel = from_text(text)
    done = run(Scheduled(kernel, plain_flow(kernel)), steps(recipe), StepContext(kernel))
    return lower(done[-1].state, Cpu(level).lowering).kernel


def compiled(text: str, recipe: str, level: Level, flags: tuple[str, ...] = WARNINGS) -> Compiled:
    return compile_kernel(lowered(text, recipe, level), level, flags=flags)


def text(kernel: Kernel, level: Level) -> str:
    return emit_kernel("k", "t", [finished(kernel, level)], level, packed=())


DTYPES = ("float32", "float64", "int32", "int64", "uint32", "uint64")


@pytest.mark.parametrize(
    ("dtype", "combiner"),
    [*((d, "sum") for d in DTYPES), *((d, c) for d in ("float32", "int64") for c in NUMPY)],
)
def test_chunks_of_vectors(level: Level, dtype: str, combiner: str) -> None:
    lanes = Processor(level).vector_bytes // np.dtype(dtype).itemsize
    kernel = lowered(running(dtype, combiner), VECTORIZED.format(chunk=lanes), level)
    source = text(kernel, level)
    assert "ts_scan_" in source and "y_scan_k" not in source
    run_ = compile_kernel(kernel, level, flags=WARNINGS)
    random = np.random.default_rng(3)
    for n in (0, 1, lanes - 1, lanes, lanes + 1, 3 * lanes, 5 * lanes - 1):
        x = random.integers(1, 3, (3, n)).astype(dtype)
        y = np.full((3, n + 1), 7, dtype)  # what is right of a row must stay
        run_({"x": x, "y": y[:, :n]})
        np.testing.assert_array_equal(y[:, :n], NUMPY[combiner].accumulate(x, axis=1, dtype=dtype))
        assert (y[:, n] == 7).all()


OTHER_FORMS = ("j", "j, n", "j + 1, n")


def accumulated(combiner: str, x: np.ndarray, terms: str) -> np.ndarray:
    """What NumPy makes of the terms before, from or after each place."""
    combine, rows, n = NUMPY[combiner], len(x), x.shape[1]
    wide = np.float64 if x.dtype.kind == "f" else x.dtype
    least, most = (
        (-np.inf, np.inf) if x.dtype.kind == "f" else (np.iinfo(wide).min, np.iinfo(wide).max)
    )
    nothing = {"sum": 0, "prod": 1, "min": most, "max": least}[combiner]
    turned = x[:, ::-1] if "n" in terms else x
    whole = combine.accumulate(turned, axis=1, dtype=wide)
    if terms != "j, n":
        whole = np.concatenate([np.full((rows, 1), nothing, wide), whole], axis=1)[:, :n]
    return whole[:, ::-1] if "n" in terms else whole


@pytest.mark.parametrize("terms", OTHER_FORMS)
@pytest.mark.parametrize(
    ("dtype", "combiner"),
    [*((d, "sum") for d in DTYPES), ("float32", "min"), ("int64", "prod")],
)
def test_the_terms_before_from_and_after_a_place(
    level: Level, dtype: str, combiner: str, terms: str
) -> None:
    """Of terms that are not the identity where lanes hold nothing: chunks that fill no vectors."""
    lanes = Processor(level).vector_bytes // np.dtype(dtype).itemsize
    term = "x[i, k] + 1.0" if dtype.startswith("float") else "x[i, k] + 1"
    for chunk in (2 * lanes,) if combiner == "sum" else (lanes, max(2, lanes // 2)):
        recipe = VECTORIZED.format(chunk=chunk)
        kernel = lowered(running(dtype, combiner, term, terms), recipe, level)
        source = text(kernel, level)
        assert f"ts_scan_{'back_' if 'n' in terms else ''}" in source and "y_scan_k" not in source
        whole = chunk % lanes == 0  # else GCC warns of lanes that a mask leaves out
        run_ = compile_kernel(kernel, level, flags=WARNINGS if whole else ())
        random = np.random.default_rng(3)
        for n in (0, 1, 2, chunk - 1, chunk, chunk + 1, chunk + 2, 3 * chunk, 5 * chunk - 1):
            drawn = random.integers(1, 3, (3, n))
            x = (2 - 2 * drawn if combiner == "prod" else drawn).astype(dtype)  # 1 and -1: no inf
            y = np.full((3, n + 2), 7, dtype)  # what is left and right of a row must stay
            run_({"x": x, "y": y[:, 1:-1]})
            np.testing.assert_array_equal(y[:, 1:-1], accumulated(combiner, x + 1, terms))
            assert (y[:, [0, -1]] == 7).all()


@pytest.mark.parametrize("terms", OTHER_FORMS)
@pytest.mark.parametrize("chunk", [3, 6])
def test_other_forms_in_parts_of_vectors(level: Level, chunk: int, terms: str) -> None:
    kernel = compiled(
        running("float32", terms=terms), VECTORIZED.format(chunk=chunk), level, flags=()
    )
    for n in (chunk - 1, 2 * chunk, 3 * chunk + 2):
        x = np.arange(2.0 * n, dtype="f").reshape(2, n)
        y = np.zeros((2, n), "f")
        kernel({"x": x, "y": y})
        np.testing.assert_array_equal(y, accumulated("sum", x, terms))


@pytest.mark.parametrize("chunk", [3, 6, 8, 32])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chunks_of_any_width(level: Level, dtype: str, chunk: int) -> None:
    """Parts of a vector, and several vectors."""
    # GCC takes an element of a masked vector for unwritten, so no -Werror.
    kernel = compiled(running(dtype), VECTORIZED.format(chunk=chunk), level, flags=())
    for n in (chunk - 1, 2 * chunk, 3 * chunk + 2):
        x = np.arange(2.0 * n, dtype=dtype).reshape(2, n)
        y = np.zeros((2, n), dtype)
        kernel({"x": x, "y": y})
        np.testing.assert_array_equal(y, np.cumsum(x, axis=1))


@pytest.mark.parametrize("dtype", ["int8", "bool"])
def test_what_has_no_scan_runs_lane_by_lane(level: Level, dtype: str) -> None:
    recipe = "- scan: {block: y, width: 4}\n- vectorize: {loop: y_scan.j_1, width: 4}"
    combiner = "any" if dtype == "bool" else "sum"
    if dtype == "bool":
        recipe = "- scan: {block: y}"
    kernel = lowered(running(dtype, combiner), recipe, level)
    assert "ts_scan_" not in text(kernel, level)
    x = np.array([[0, 0, 1, 0, 1, 1, 0]] * 2, dtype)
    y = np.zeros_like(x)
    compile_kernel(kernel, level)({"x": x, "y": y})
    np.testing.assert_array_equal(
        y, (np.logical_or if dtype == "bool" else np.add).accumulate(x, 1)
    )


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_specials_reach_what_follows_them_alone(level: Level, special: float) -> None:
    lanes = Processor(level).vector_bytes // 4
    kernel = compiled(running("float32"), VECTORIZED.format(chunk=lanes), level)
    n = 4 * lanes + 3
    for first in range(0, n, 5):
        for second in (first + 1, first + lanes, n - 1):
            x = np.ones((1, n), "f")
            x[0, first] = special
            x[0, min(second, n - 1)] = np.inf  # after -inf: NaN from there on
            y = np.zeros_like(x)
            kernel({"x": x, "y": y})
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(y, np.cumsum(x, axis=1))


def test_values_that_are_computed(level: Level) -> None:
    lanes = Processor(level).vector_bytes // 4
    value = "sqrt(x[i, k]) * float32(k) + x[i, k]"
    kernel = compiled(running("float32", value=value), VECTORIZED.format(chunk=lanes), level)
    x = np.full((2, 37), 4, "f")
    y = np.zeros_like(x)
    kernel({"x": x, "y": y})
    np.testing.assert_array_equal(y, np.cumsum(np.sqrt(x) * np.arange(37, dtype="f") + x, axis=1))


NOT_SCANS = {
    "a value that depends on the lane": ("x[i, k] * float32(j)", "range(t.l + 1)", "True"),
    "more terms than lanes so far": ("x[i, k]", "range(4)", "True"),
    "a guard on the terms": ("x[i, k]", "range(t.l + 1)", "t.k != 1"),
    "a guard that leaves lanes out": ("x[i, k]", "range(t.l + 1)", "t.l != 1"),
    "backwards, a guard that keeps the first lanes": ("x[i, k]", "range(t.l, 4)", "t.l < 3"),
    "lanes that end before the last": ("x[i, k]", "range(t.l, 3)", "True"),
}


@pytest.mark.parametrize("case", NOT_SCANS)
def test_what_is_no_scan_of_lanes(level: Level, case: str) -> None:
    """It runs lane by lane, and is right."""
    value, terms, where = NOT_SCANS[case]
    script = f"""
def k(m, x: float32[m, 4], y: InOut[float32[m, 4]]):
    for t.i in range(m):
        for t.l in vectorized(4):
            for t.k in {terms}:
                with block("t", i=spatial(t.i), j=spatial(t.l), k=reduction(t.k, 4), where={where}):
                    y[i, j] = combine.sum(y[i, j], {value})
"""
    kernel = lower(Scheduled(from_text(script), {}), Cpu(level).lowering).kernel
    assert "ts_scan_" not in text(kernel, level)
    x, y = np.arange(8, dtype="f").reshape(2, 4), np.ones((2, 4), "f")
    compile_kernel(kernel, level, flags=WARNINGS)({"x": x, "y": y})
    want = np.ones((2, 4), "f")
    for j in range(4):
        for k in eval(terms, {"t": SimpleNamespace(l=j)}):
            if where == "t.l < 3" and j == 3:
                continue
            if (where == "t.k != 1" and k == 1) or (where == "t.l != 1" and j == 1):
                continue
            want[:, j] += x[:, k] * (j if "float32(j)" in value else 1)
    np.testing.assert_array_equal(y, want)


def test_what_was_there_before_stays_in_a_running_sum(level: Level) -> None:
    """Updates of a caller's array, which no init comes before."""
    lanes = Processor(level).vector_bytes // 4
    kernel = from_text(f"""
def k(x: float32[{lanes}], y: InOut[float32[{lanes}]]):
    for l in vectorized({lanes}):
        for k in range(l + 1):
            with block("y", i=spatial(l), j=reduction(k, i + 1)):
                y[i] = combine.sum(y[i], x[j])
""")
    assert "ts_scan_" in text(kernel, level)
    x, y = np.arange(lanes, dtype="f"), np.full(lanes, 100, "f")
    compile_kernel(kernel, level)({"x": x, "y": y})
    np.testing.assert_array_equal(y, 100 + np.cumsum(x))
