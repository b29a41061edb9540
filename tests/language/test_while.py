"""Loops that end early: what they mean, as they are written and as they are scheduled."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from gen.errors import SpecError
from gen.ir.interpret.interp import run
from gen.ir.nodes import Intent, Kernel, Leave
from gen.ir.types import DType
from gen.ir.walk import statements
from gen.language import KernelSpec, build, loads
from gen.lower.finish import interpretable
from gen.pipeline import emit, schedule
from gen.poly.prove import prove
from gen.targets.cpu import jit
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from gen.targets.cuda.target import Cuda
from gen.targets.target import joined

Array = np.ndarray[Any, Any]
DTYPES = {"T": DType.FLOAT64}
NATIVE = jit.native_level()
RNG = np.random.default_rng(7)


def spec(compute: str, signature: str, arguments: str, rest: str = "") -> KernelSpec:
    lines = "\n".join("  " + line for line in compute.strip().splitlines())
    return loads(
        f"tilesmith: 1\nkernel: k\ndoc: d\nsignature: {signature}\ndtypes: {{T: [float64]}}\n"
        f"arguments: {{{arguments}}}\n{rest}compute: |\n{lines}\n",
        "k.yaml",
    )


def recipe(steps: str) -> str:
    lines = "".join(f"          - {s}\n" for s in steps.strip().splitlines())
    found = f"      - steps:\n{lines}" if lines else "      - steps: []\n"
    return f"recipes:\n  - target: cpu\n    variants:\n{found}"


# ---------------------------------------------------------------- each element for itself

COLLATZ = """
for i in m:
    for j in n:
        v[i, j] = x[i, j]
        count[i, j] = 0
        while t in range(limit) and v[i, j] > 1.5:
            half[i, j] = floor(v[i, j] / 2)
            v[i, j] = half[i, j] if half[i, j] * 2 == v[i, j] else 3 * v[i, j] + 1
            count[i, j] += 1
"""
COLLATZ_ARGUMENTS = 'x: {type: "T[m, n]"}, count: {type: "int32[m, n]", intent: out}'
LIMIT = "scalars: {limit: {type: int64, default: 50}}\n"


def collatz(steps: str | None = None) -> KernelSpec:
    """steps: None where rules write them."""
    rest = LIMIT + ("" if steps is None else recipe(steps))
    return spec(COLLATZ, "(m,n)->(m,n)", COLLATZ_ARGUMENTS, rest)


def collatz_of(x: Array, limit: int) -> Array:
    count = np.zeros(x.shape, "i4")
    for at in np.ndindex(x.shape):
        v = x[at]
        while count[at] < limit and v > 1.5:
            v = v / 2 if v % 2 == 0 else 3 * v + 1
            count[at] += 1
    return count


def numbers(m: int, n: int) -> Array:
    x = RNG.integers(0, 40, (m, n)).astype("f8")  # some of which run nothing
    x.ravel()[::7] = np.nan
    return x


def lowered(kernel: KernelSpec, level: Level = Level.V3) -> Kernel:
    (variant,) = schedule(kernel, DTYPES, Cpu(level), prove)
    return interpretable(variant.lowered.kernel, Cpu(level).finishing)


def text(kernel: KernelSpec, level: Level) -> str:
    made = schedule(kernel, DTYPES, Cpu(level), prove)
    return joined(emit(kernel, {"float64": made}, Cpu(level)))


def leaves(kernel: Kernel) -> list[Leave]:
    return [s for s in statements(kernel.body) if isinstance(s, Leave)]


VECTORS = """
split: {loop: v.j, factors: [null, WIDTH], as: [v.j0, v.j1]}
vectorize: {loop: v.j1, width: WIDTH}
"""
SCHEDULES = {  # each with how many loops of its code are left early
    "plain": ("", 1),
    "rows on threads": ("parallel: {loop: v.i}", 1),
    "lanes": (VECTORS.replace("WIDTH", "4"), 2),  # and those of the tail
    "many lanes": (
        VECTORS.replace("WIDTH", "16") + "".join(
            f"set_scope: {{buffer: {b}, scope: register}}\n" for b in ("going", "v", "half")
        ),
        2,
    ),
    "fused": ("fuse: {loops: [v.i, v.j], as: v.all}\nparallel: {loop: v.all}", 1),
    "turns in fours": ("split: {loop: going_1.t, factors: [null, 4], as: [v.t0, v.t1]}", 1),
    "turns written out": (
        "split: {loop: going_1.t, factors: [null, 4], as: [v.t0, v.t1]}\nunroll: {loop: v.t1}", 5,
    ),
    "lanes inside of turns": (
        "fission: {loop: v.j, as: [v.j0, v.j1, v.j2, v.j3]}\n"
        "reorder: {loops: [going_1.t, v.j3]}\nvectorize: {loop: v.j3, width: 4}", 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_elements(name: str) -> None:
    steps, left = SCHEDULES[name]
    tree = lowered(collatz(steps))
    assert len(leaves(tree)) == left
    for limit in (0, 1, 30):
        x = numbers(2, 5)
        (count,) = run(tree, {"x": x}, {"limit": limit}, seed=limit).values()
        np.testing.assert_array_equal(count, collatz_of(x, limit))


@pytest.mark.parametrize("level", sorted({Level.V2, NATIVE}))
@pytest.mark.parametrize("steps", [None, SCHEDULES["many lanes"][0]], ids=["rules", "by hand"])
def test_elements_compiled(level: Level, steps: str | None) -> None:
    """With lanes that are done at different times, and sizes around the lanes."""
    kernel = collatz(steps)
    source = joined(
        emit(kernel, {"float64": schedule(kernel, DTYPES, Cpu(level), prove)}, Cpu(level))
    )
    assert "break;" in source
    loaded = jit.load(kernel, DTYPES, source, level)
    for n in (0, 1, 3, 7, 8, 9, 15, 16, 17, 33):
        for limit in (0, 1, 3, 1000):
            x = numbers(3, n)
            arrays = {"x": x, "count": np.full((3, n), -1, "i4")}
            loaded.compiled(arrays, {"limit": limit}, threads=1 + n % 2)
            np.testing.assert_array_equal(arrays["count"], collatz_of(x, limit))


def test_elements_on_gpus() -> None:
    (variant,) = schedule(collatz(), DTYPES, Cuda.at("sm_90"), prove)
    tree = interpretable(variant.lowered.kernel, Cuda.at("sm_90").finishing)
    assert len(leaves(tree)) == 1
    x = numbers(3, 5)
    (count,) = run(tree, {"x": x}, {"limit": 30}, seed=1).values()
    np.testing.assert_array_equal(count, collatz_of(x, 30))


# ---------------------------------------------------------------- a whole step

HALVED = """
change = inf
turns = 0
while t in range(limit) and change > least:
    next[i] = x[i] / 2
    change = max(abs(next[i] - x[i]) for i in n)
    x[i] = next[i]
    turns = t + 1
"""
HALVED_ARGUMENTS = (
    'x: {type: "T[n]", intent: inout}, change: {type: "T[]", intent: out},'
    ' turns: {type: "int64[]", intent: out}'
)
HALVED_REST = (
    "scalars: {least: {type: T, default: 0.1}, limit: {type: int64, default: 50}}\n"
    "constraints: [n >= 1]\n"
)


def halved(x: Array, least: float, limit: int) -> dict[str, Array]:
    change, turns = np.inf, 0
    while turns < limit and change > least:
        change = np.max(np.abs(x / 2 - x))
        x, turns = x / 2, turns + 1
    return {"x": x, "change": np.array(change), "turns": np.array(turns)}


@pytest.mark.parametrize("steps", [None, "", "vectorize: {loop: next.i, width: 4}"])
def test_whole_steps(steps: str | None) -> None:
    rest = HALVED_REST + ("" if steps is None else recipe(steps))
    kernel = spec(HALVED, "(n)->(n),(),()", HALVED_ARGUMENTS, rest)
    made = schedule(kernel, DTYPES, Cpu(NATIVE), prove)
    finished = interpretable(made[-1].lowered.kernel, Cpu(NATIVE).finishing)
    assert len(leaves(finished)) == 1
    loaded = jit.load(kernel, DTYPES, text(kernel, NATIVE), NATIVE)
    for n, least, limit in (
        (1, 0.1, 50),
        (5, 0.1, 0),
        (9, np.inf, 50),
        (33, np.nan, 9),
        (7, -1, 3),
    ):
        x = RNG.standard_normal(n)
        expected = halved(x, least, limit)
        found = run(finished, {"x": x}, {"least": least, "limit": limit})
        arrays = {"x": x.copy(), "change": np.array(0.0), "turns": np.array(0)}
        loaded.compiled(arrays, {"least": least, "limit": limit}, threads=2)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)
            np.testing.assert_array_equal(arrays[name], value)


def test_whole_steps_on_gpus() -> None:
    """The host asks the GPU for the flag; what it launches asks on, since it may not be told."""
    kernel, target = spec(HALVED, "(n)->(n),(),()", HALVED_ARGUMENTS, HALVED_REST), Cuda.at("sm_90")
    made = schedule(kernel, DTYPES, target, prove)
    finished = interpretable(made[-1].lowered.kernel, target.finishing)
    assert len(leaves(finished)) == 1
    x = RNG.standard_normal(5)
    found = run(finished, {"x": x}, {"least": 0.1, "limit": 50}, seed=2)
    for name, value in halved(x, 0.1, 50).items():
        np.testing.assert_array_equal(found[name], value)
    source = joined(emit(kernel, {"float64": made}, target))
    assert source.count("->is_zero(") == 1
    assert "(going[0] != (int32_t)0) ?" in source


def test_after_the_end_nothing_asks() -> None:
    """Where all leave at once, statements after the test are not under it."""
    kernel = spec(HALVED, "(n)->(n),(),()", HALVED_ARGUMENTS, HALVED_REST + recipe(""))
    source = text(kernel, Level.V3)
    assert source.count("going[0] !=") == 2


# ---------------------------------------------------------------- what it means


def result(compute: str, arguments: str, arrays: Mapping[str, Array], signature: str) -> Array:
    """The only output, as it is written, and as it is finished."""
    kernel = spec(compute, signature, arguments, recipe(""))
    out = next(a.name for a in kernel.arguments if a.intent is not Intent.IN)
    found = [run(tree, arrays)[out] for tree in (build(kernel, DTYPES), lowered(kernel))]
    np.testing.assert_array_equal(*found)
    return found[0]


def test_what_holds_again_does_not_go_on() -> None:
    """The condition may read anything, the index, too: the loop is left for good."""
    compute = "s = T(0)\nwhile t in n and x[t] > 0:\n    s += x[t]\ny = s\n"
    x = np.array([1.0, 2.0, -1.0, 4.0])
    y = result(compute, 'x: {type: "T[n]"}, y: {type: "T[]", intent: out}', {"x": x}, "(n)->()")
    assert y == 3


def test_a_loop_inside_of_one() -> None:
    compute = (
        "for i in n:\n"
        "    y[i] = 0\n"
        "    while s in range(3) and x[i] > s:\n"
        "        a[i] = T(0)\n"
        "        while t in range(9) and a[i] < x[i]:\n"
        "            a[i] += 1\n"
        "            y[i] += a[i]\n"
    )
    x = np.array([-1.0, 0.5, 2.0, 7.0])
    expected = [0, 1, 2 * 3, 3 * 28]
    arguments = 'x: {type: "T[n]"}, y: {type: "T[n]", intent: out}'
    np.testing.assert_array_equal(result(compute, arguments, {"x": x}, "(n)->(n)"), expected)


def test_downwards_with_conditions_and_positions() -> None:
    compute = (
        "h[k] = 0\n"
        "c = int64(0)\n"
        "while t in reversed(range(n)) and c < 3:\n"
        "    if x[t] > 0:\n"
        "        h[min(max(at[t], 0), 3)] += 1\n"
        "        c += 1\n"
    )
    x = np.array([1.0, 1.0, -1.0, 1.0, 1.0])
    arguments = 'x: {type: "T[n]"}, at: {type: "int64[n]"}, h: {type: "T[4]", intent: out}'
    arrays = {"x": x, "at": np.array([3, 2, 1, 0, 2])}
    h = result(compute, arguments, arrays, "(n),(n)->(4)")
    np.testing.assert_array_equal(h, [1, 0, 2, 0])


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("loop", "message", "hint"),
    [
        (
            "while x[0] > 0: y[i] = 1",
            "a 'while' says how many iterations it has at most",
            "write 'while t in range(limit) and ...:', the bound first",
        ),
        (
            "while t in range(9): y[i] = 1",
            "this 'while' has no condition under which it ends",
            "write 'for', or 'and' with the condition",
        ),
        (
            "while t in range(9) and x[0] > 0: y[i] = 1",
            "'y' holds nothing before this 'while', which may end at once",
            "define it before the loop, or declare it with intent: inout",
        ),
        (
            "for t in range(9): break",
            "'break' is not part of the language",
            "a loop that ends early is 'while t in range(limit) and ...:'",
        ),
        (
            "for t in range(9): continue",
            "'continue' is not part of the language",
            "write 'if' around what then does not run",
        ),
        (
            "while t in range(9) and x[i] > 0: s = x[0]",
            "unknown name 'i'",
            None,
        ),
        (
            "y[i] = 0\nwhile t in range(9) and x[0]: y[i] = 1",
            "'and' needs bools, not float64",
            None,
        ),
    ],
)  # fmt: skip
def test_errors(loop: str, message: str, hint: str | None) -> None:
    with pytest.raises(SpecError) as info:
        kernel = spec(loop, "(n)->(n)", 'x: {type: "T[n]"}, y: {type: "T[n]", intent: out}')
        build(kernel, DTYPES)
    assert info.value.message == message
    assert info.value.span is not None
    assert hint is None or info.value.hint == hint


def test_several_targets() -> None:
    compute = (
        "a = T(0)\nb = T(0)\n"
        "while t in range(9) and a < 3:\n    a, b = both((x[i], 1) for i in n)\ny = b"
    )
    rest = (
        "reductions:\n  both:\n    parts: {p: T, q: T}\n    identity: {p: 0, q: 0}\n"
        "    combine: |\n      p = a.p + b.p\n      q = a.q + b.q\n"
    )
    with pytest.raises(SpecError) as info:
        spec(compute, "(n)->()", 'x: {type: "T[n]"}, y: {type: "T[]", intent: out}', rest)
    assert info.value.message == (
        "a statement with several targets changes what is used outside of its 'while'"
    )
    assert info.value.hint == (
        "give its values to temporaries, and these to the arrays, one by one"
    )
