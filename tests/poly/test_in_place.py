"""Which inputs may be the output's own array: the answer, and the interpreter's on one array."""

from dataclasses import replace

import numpy as np
import pytest

from gen.ir.interpret.interp import run
from gen.ir.nodes import Intent, Kernel, Load, Node
from gen.ir.text.parser import from_text
from gen.ir.walk import map_children
from gen.poly.checks.in_place import in_place, of_other_sizes

from .script import block, kernel, nest

XY = "m, n, x: float32[m, n], y: Out[float32[m, n]]"


def rows(*statements: str, kind: str = "range", temporaries: str = "") -> Kernel:
    """The statements in one loop over rows i, which is of that kind."""
    return kernel(XY, nest(f"for i in {kind}(m)", "\n".join(statements)), temporaries=temporaries)


def columns(value: str, kind: str = "range", bounds: str = "n", more: str = "") -> str:
    """y's row i, column by column."""
    return nest(
        f"for y.j in {kind}({bounds})", block("y", "i=i, j=y.j", f"y[i, j] = {value}", more)
    )


TOTAL = "\n".join(
    [
        block("s.init", "i=i", "s[i] = identity.sum", "origin=None"),
        nest("for s.j in range(n)", block("s", "i=i, j+=s.j", "s[i] = combine.sum(s[i], x[i, j])")),
    ]
)
SCALED = nest("for z.j in range(n)", block("z", "i=i, j=z.j", "y[i, j] = y[i, j] / s[i]"))
S = "s=float32[m]"


def launched(value: str, barrier: str = "barrier()") -> Kernel:
    """A block a row; a thread reads `value` of x, then writes its element of y behind a barrier."""
    return rows(
        nest(
            "for s.j in threadIdx.x(8)",
            block("s", "i=i, j=s.j", f"s[i, j] = {value}", "where=s.j < n"),
        ),
        *([barrier] if barrier else []),
        nest(
            "for y.j in threadIdx.x(8)",
            block("y", "i=i, j=y.j", "y[i, j] = s[i, j]", "where=y.j < n"),
        ),
        kind="blockIdx.x",
        temporaries="s=float32[m, 8]",
    )


SHARED = {
    "a thread's own element": launched("x[i, j] * 2", barrier=""),
    "another thread's element, before a barrier": launched("x[i, n - 1 - j]"),
    "elementwise": rows(columns("x[i, j] * 2", "vectorized"), kind="parallel"),
    "normalised": rows(TOTAL, columns("x[i, j] / s[i]"), kind="parallel", temporaries=S),
    "prefix": rows(columns("x[i, j] + (y[i, j - 1] if j > 0 else 0.0)")),
    "ahead": rows(columns("x[i, j] + x[i, j + 1]", bounds="n - 1")),
    "ahead of an outer loop": kernel(
        XY,
        nest(
            "for i in range(m - 1)",
            columns("x[i, j] + x[i + 1, j + 1]", "vectorized", "n - 1"),
        ),
    ),
    "later statements on the output": rows(
        nest("for y.j in range(n)", block("y", "i=i, j=y.j", "y[i, j] = x[i, j]")),
        nest("for z.j in range(n)", block("z", "i=i, j=z.j", "y[i, j] = y[i, j] + y[i, 0]")),
    ),
}
ALONE = {
    "another thread's element, with no barrier": launched("x[i, n - 1 - j]", barrier=""),
    "another block's element": launched("x[m - 1 - i, j]"),
    "read after it is written": rows(columns("x[i, j] + x[i, j - 1]", bounds="1, n")),
    "total taken too late": rows(
        columns("x[i, j] * 2"), TOTAL, SCALED, kind="parallel", temporaries=S
    ),
    "neighbouring lane": rows(columns("x[i, j] + x[i, j + 1]", "vectorized", "n - 1")),
    "neighbouring thread": kernel(
        XY,
        nest(
            "for i in parallel(m - 1)",
            "for y.j in range(n)",
            block("y", "i=i, j=y.j", "y[i, j] = x[i, j] + x[i + 1, j]"),
        ),
    ),
    "gather": rows(columns("x[i, (j * j + 1) % n]")),
    "init before the reads": kernel(
        XY,
        nest(
            "for i in range(m)",
            "for j in range(n)",
            block("y.init", "i=i, j=j", "y[i, j] = identity.sum", "origin=None")
            + "\n"
            + block("y", "i=i, j=j", "y[i, j] = combine.sum(y[i, j], x[i, j])"),
        ),
    ),
    "transposed": kernel(
        "n, x: float32[n, n], y: Out[float32[n, n]]",
        nest("for i in range(n)", "for j in range(n)", block("y", "i=i, j=j", "y[i, j] = x[j, i]")),
    ),
}


@pytest.mark.parametrize("name", SHARED)
def test_shared(name: str) -> None:
    tree = SHARED[name]
    assert in_place(tree) == {("x", "y")}
    assert keeps_its_result(tree)


@pytest.mark.parametrize("name", ALONE)
def test_alone(name: str) -> None:
    tree = ALONE[name]
    assert in_place(tree) == frozenset()
    assert not keeps_its_result(tree)  # so that none of these is refused in vain


def test_only_arrays_of_one_shape_and_type() -> None:
    body = nest("for i in range(m)", block("y", "i=i", "y[i] = float32(x[i, 0])"))
    assert not in_place(kernel("m, x: float32[m, 1], y: Out[float32[m]]", body))
    assert not in_place(
        kernel("m, x: float64[m, 1], y: Out[float32[m, 1]]", body.replace("y[i]", "y[i, 0]"))
    )


def test_conditions_on_an_input_are_asked_again() -> None:
    body = nest(
        "for i in range(m)",
        "for k in range(x[i])",
        block("y", "i=i, k+=k", "y[i] = combine.sum(y[i], k)"),
    )
    assert not in_place(kernel("m, x: int64[m], y: Out[int64[m]]", body))


def test_what_isl_cannot_say_is_not_shared() -> None:
    tree = rows(columns("x[i, j]", more="where=i * j < n"))
    assert in_place(tree) == frozenset()


# ---------------------------------------------------------------- one array for both


def keeps_its_result(tree: Kernel) -> bool:
    """Whether the result is the same with x and y in one array, in any order of the iterations."""
    x = np.random.default_rng(0).integers(1, 9, (5, 5)).astype(np.float32)
    dims = dict.fromkeys(tree.dims, 5)
    expected = run(tree, {"x": x}, dims=dims, check=False)["y"]
    written = ~np.isnan(expected)
    for seed in range(4):
        got = run(one_array(tree), {"y": x}, dims=dims, seed=seed, check=False)["y"]
        if not np.array_equal(got[written], expected[written]):
            return False
    return True


def one_array(tree: Kernel) -> Kernel:
    """The tree that reads y where it reads x."""

    def go(node: Node) -> Node:
        new = map_children(node, go)
        return replace(new, buffer="y") if isinstance(new, Load) and new.buffer == "x" else new

    y = next(p for p in tree.parameters if p.buffer.name == "y")
    parameters = (replace(y, intent=Intent.INOUT),)
    return replace(tree, parameters=parameters, body=map_children(tree, go).body)


def test_elements_of_other_sizes_are_never_one_array() -> None:
    sizes = from_text("""
def sizes(n, x: int8[n], w: int64[n], y: Out[int64[n]]):
    for y.i in range(n):
        with block("y", i=spatial(y.i)):
            y[i] = int64(x[i]) + w[i]
""")
    assert of_other_sizes(sizes) == {("x", "y")}
    assert in_place(sizes) == {("w", "y")}
