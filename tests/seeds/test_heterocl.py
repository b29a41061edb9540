"""HeteroCL's `reuse_at`, pattern by pattern: the seven of its pull request and what follows them.

Each is a spec and a recipe of ours. The IR before and after is a golden, `tests/golden/heterocl/`.
Every step is proved, and so is the lowered tree, which is compiled and run against NumPy on shapes
that are not square and do not divide: empty ones, one element, and below, at and above the window.
Two of the seven are refused, 2 and 7, and so are windows of symbolic size.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from gen import spec as specs
from gen.emit.c import LoweredVariant, emit_file, emit_kernel
from gen.errors import ScheduleError
from gen.ir.nodes import Allocate, Kernel
from gen.ir.print_expr import expr_to_text
from gen.ir.printer import to_text
from gen.ir.verify import verify
from gen.ir.walk import walk
from gen.jit import Compiled, build, compiler_command, native_level
from gen.lower.lower import lower
from gen.lower.target import Level, Target
from gen.poly.certificate import Scheduled
from gen.poly.flow import plain_flow
from gen.poly.prove import prove

from ..conftest import Golden
from ..schedule.support import inputs, schedule

Arrays = Mapping[str, np.ndarray]

SIZES = ((0, 5), (5, 0), (1, 1), (2, 3), (3, 2), (4, 13), (17, 7))


@dataclass(frozen=True)
class Pattern:
    """A spec's arguments and statements, each of all i < h and j < w unless it says more; a recipe;
    the buffers that lowering leaves; and what NumPy says.
    """

    arguments: str
    compute: str
    steps: str
    buffers: tuple[str, ...]
    wanted: Callable[[Arrays], np.ndarray]


def windows(x: np.ndarray, *shape: int) -> np.ndarray:
    """The windows of an array's last axes, each one's elements on one axis at the end."""
    places = [max(n - k + 1, 0) for n, k in zip(x.shape[-len(shape) :], shape, strict=True)]
    parts = [
        x[(..., *(slice(o, o + n) for o, n in zip(at, places, strict=True)))]
        for at in np.ndindex(*shape)
    ]
    return np.stack(parts, axis=-1)


def convolved(x: np.ndarray, k: np.ndarray) -> np.ndarray:
    return windows(x, *k.shape) @ k.ravel()


PATTERNS: dict[str, Pattern] = {
    # 1. Along the row: three registers, since the loop is unrolled by three.
    "blur_x": Pattern(
        "x[h, w + 2] -> y[h, w]",
        "y[i, j] = x[i, j] + x[i, j + 1] + x[i, j + 2]",
        """\
- reuse_at: {buffer: x, loop: y.j}
- set_scope: {buffer: x_reuse, scope: register}
- unroll: {loop: y.j, factor: 3}
- parallel: {loop: y.i}
""",
        ("x_reuse[1, 3]",),
        lambda a: windows(a["x"], 3).sum(-1),
    ),
    # 3. Along the column: three lines, each as long as a row; strips of rows run in parallel.
    "blur_y": Pattern(
        "x[h + 2, w] -> y[h, w]",
        "y[i, j] = x[i, j] + x[i + 1, j] + x[i + 2, j]",
        """\
- split: {loop: y.i, factors: [null, 4], as: [y.strip, y.i]}
- reuse_at: {buffer: x, loop: y.i}
- vectorize: {loop: x_reuse.d1, width: $lanes}
- vectorize: {loop: y.j, width: $lanes}
- parallel: {loop: y.strip}
""",
        ("x_reuse[3, w]",),
        lambda a: windows(a["x"].T, 3).sum(-1).T,
    ),
    # 4. A diagonal: the box around it is kept.
    "diagonal": Pattern(
        "x[h + 2, w + 2] -> y[h, w]",
        "y[i, j] = x[i, j] + x[i + 1, j + 1] + x[i + 2, j + 2]",
        "- reuse_at: {buffer: x, loop: y.j, as: [box, first]}",
        ("box[3, 3]",),
        lambda a: a["x"][:-2, :-2] + a["x"][1:-1, 1:-1] + a["x"][2:, 2:],
    ),
    # 5. A reduction.
    "reduction": Pattern(
        "x[h, w + 2] -> y[h, w]",
        "y[i, j] = sum(x[i, j + r] for r in range(3))",
        "- reuse_at: {buffer: x, loop: y.j}\n- parallel: {loop: y.i}",
        ("x_reuse[1, 3]",),
        lambda a: windows(a["x"], 3).sum(-1),
    ),
    # 6. A stride: HeteroCL's pull request refused it.
    "stride": Pattern(
        "x[h, w + 2] -> y[h, (w + 1)//2]",
        "h, (w + 1)//2: y[i, j] = sum(x[i, 2*j + r] for r in range(3))",
        """\
- reuse_at: {buffer: x, loop: y.j, layout: circular, as: [row, first]}
- set_scope: {buffer: row, scope: register}
- unroll: {loop: row.d1}
- unroll: {loop: y.r}
- unroll: {loop: y.j, factor: 3}
""",
        ("row[1, 3]",),
        lambda a: windows(a["x"], 3)[:, ::2].sum(-1),
    ),
    # 6, where each place is read in two iterations at most, so that two halves are enough.
    "stride_halves": Pattern(
        "x[h, w + 2] -> y[h, (w + 1)//2]",
        "h, (w + 1)//2: y[i, j] = sum(x[i, 2*j + r] for r in range(3))",
        "- reuse_at: {buffer: x, loop: y.j}",
        ("x_reuse[1, 4]",),
        lambda a: windows(a["x"], 3)[:, ::2].sum(-1),
    ),
    # A reuse buffer of a reuse buffer: lines, then a window of them, in registers.
    "conv2d": Pattern(
        "x[h + 2, w + 2], k[3, 3] -> y[h, w]",
        "y[i, j] = sum(x[i + r, j + c] * k[r, c] for r in range(3) for c in range(3))",
        """\
- reuse_at: {buffer: x, loop: y.i, as: [lines, lines_first]}
- reuse_at: {buffer: lines, loop: y.j, as: [patch, patch_first]}
- set_scope: {buffer: patch, scope: register}
- unroll: {loop: patch_first.d0}
- unroll: {loop: patch_first.d1}
- unroll: {loop: patch.d0}
- unroll: {loop: y.r}
- unroll: {loop: y.c}
- unroll: {loop: y.j, factor: 3}
""",
        ("lines[3, w + 2]", "patch[3, 3]"),
        lambda a: convolved(a["x"], a["k"]),
    ),
    "conv2d_stride": Pattern(
        "x[h + 2, w + 2], k[3, 3] -> y[(h + 1)//2, (w + 1)//2]",
        "(h + 1)//2, (w + 1)//2: "
        "y[i, j] = sum(x[2*i + r, 2*j + c] * k[r, c] for r in range(3) for c in range(3))",
        """\
- reuse_at: {buffer: x, loop: y.i, layout: circular, as: [lines, lines_first]}
- reuse_at: {buffer: lines, loop: y.j, as: [patch, patch_first, patch_move]}
""",
        ("lines[3, w + 2]", "patch[3, 4]"),
        lambda a: convolved(a["x"], a["k"])[::2, ::2],
    ),
    # Strips of a tile: the window is one of a tile's columns, and rows have their own.
    "conv2d_tiled": Pattern(
        "x[h + 2, w + 2], k[3, 3] -> y[h, w]",
        "y[i, j] = sum(x[i + r, j + c] * k[r, c] for r in range(3) for c in range(3))",
        """\
- split: {loop: y.j, factors: [null, 5], as: [y.j0, y.j1]}
- reorder: {loops: [y.j0, y.i, y.j1]}
- reuse_at: {buffer: x, loop: y.i, as: [lines, lines_first]}
- reuse_at: {buffer: lines, loop: y.j1, as: [patch, patch_first]}
- parallel: {loop: y.j0}
""",
        ("lines[3, w + 2]", "patch[3, 3]"),
        lambda a: convolved(a["x"], a["k"]),
    ),
    "channels": Pattern(
        "x[2, h + 2, w + 1], k[2, 3, 2] -> y[h, w]",
        "y[i, j] = sum(x[c, i + r, j + s] * k[c, r, s]"
        " for c in range(2) for r in range(3) for s in range(2))",
        """\
- reuse_at: {buffer: x, loop: y.i, as: [lines, lines_first]}
- reuse_at: {buffer: lines, loop: y.j, as: [patch, patch_first, patch_move]}
""",
        ("lines[2, 3, w + 1]", "patch[2, 3, 2]"),
        lambda a: sum(convolved(x, k) for x, k in zip(a["x"], a["k"], strict=True)),
    ),
    # Three axes, the middle one kept.
    "volume": Pattern(
        "x[h, w + 2, 4] -> y[h, w, 4]",
        "h, w, 4: y[i, j, l] = x[i, j, l] + x[i, j + 2, l]",
        "- reuse_at: {buffer: x, loop: y.j}\n- vectorize: {loop: y.l, width: 4}",
        ("x_reuse[1, 3, 4]",),
        lambda a: a["x"][:, :-2] + a["x"][:, 2:],
    ),
    "pool": Pattern(
        "x[h + 1, w + 1] -> y[h, w]",
        "y[i, j] = max(x[i + r, j + c] for r in range(2) for c in range(2))",
        """\
- reuse_at: {buffer: x, loop: y.i, as: [lines, lines_first, lines_move]}
- reuse_at: {buffer: lines, loop: y.j, layout: circular, as: [patch, patch_first]}
""",
        ("lines[2, w + 1]", "patch[2, 2]"),
        lambda a: windows(a["x"], 2, 2).max(-1),
    ),
    # Values that are computed, not read: two passes, of which the first keeps its rows.
    "two_passes": Pattern(
        "x[h + 2, w + 2] -> y[h, w]",
        """\
h + 2, w: t[i, j] = x[i, j] + x[i, j + 1] + x[i, j + 2]
y[i, j] = t[i, j] + t[i + 1, j] + t[i + 2, j]
""",
        """\
- split: {loop: y.i, factors: [null, 5], as: [y.strip, y.i]}
- compute_at: {block: t, loop: y.i}
- reuse_at: {buffer: t, loop: y.i}
- vectorize: {loop: t_first.j, width: $lanes}
- vectorize: {loop: t.j, width: $lanes}
- vectorize: {loop: y.j, width: $lanes}
- parallel: {loop: y.strip}
""",
        ("t[3, w]",),
        lambda a: windows(a["x"], 3, 3).sum(-1),
    ),
    # Halide's sliding windows: stage after stage in one loop over rows, none computed twice.
    "pipeline": Pattern(
        "x[h + 3, w] -> y[h, w]",
        """\
h + 1, w: s[i, j] = x[i, j] + x[i + 1, j] + x[i + 2, j]
h, w: t[i, j] = s[i, j] - s[i + 1, j]
y[i, j] = t[i, j] * t[max(i - 1, 0), j]
""",
        """\
- split: {loop: y.i, factors: [null, 4], as: [y.strip, y.i]}
- compute_at: {block: t, loop: y.i}
- reuse_at: {buffer: t, loop: y.i, fill: inside}
- compute_at: {block: s, loop: y.i}
- reuse_at: {buffer: s, loop: y.i, fill: inside}
- reuse_at: {buffer: x, loop: y.i, fill: inside, as: [lines]}
- vectorize: {loop: lines.d1, width: $lanes}
- vectorize: {loop: s.j, width: $lanes}
- vectorize: {loop: t.j, width: $lanes}
- vectorize: {loop: y.j, width: $lanes}
- parallel: {loop: y.strip}
""",
        ("t[2, w]", "s[2, w]", "lines[3, w]"),
        lambda a: _pipeline(a["x"]),
    ),
    # Rows of which each is a sum; a window of them along the row.
    "sums": Pattern(
        "x[h + 2, w + 2] -> y[h, w]",
        """\
h, w + 2: t[i, j] = sum(x[i + r, j] for r in range(3))
y[i, j] = t[i, j] + t[i, j + 1] + t[i, j + 2]
""",
        "- compute_at: {block: t, loop: y.j}\n- reuse_at: {buffer: t, loop: y.j}",
        ("t[1, 3]",),
        lambda a: windows(a["x"], 3, 3).sum(-1),
    ),
    "window_of_rows": Pattern(
        "x[h + 1, w + 2] -> y[h, w]",
        """\
h + 1, w + 2: t[i, j] = 2*x[i, j]
y[i, j] = t[i, j] + t[i + 1, j + 1] - t[i, j + 2]
""",
        """\
- compute_at: {block: t, loop: y.i}
- reuse_at: {buffer: t, loop: y.i, layout: circular}
- reuse_at: {buffer: t, loop: y.j, as: [patch, patch_first]}
""",
        ("t[2, w + 2]", "patch[2, 3]"),
        lambda a: 2 * (a["x"][:-1, :-2] + a["x"][1:, 1:-1] - a["x"][:-1, 2:]),
    ),
    "transposed": Pattern(
        "x[w + 2, h] -> y[h, w]",
        "y[i, j] = x[j, i] + x[j + 1, i] + x[j + 2, i]",
        "- reuse_at: {buffer: x, loop: y.j}",
        ("x_reuse[3, 1]",),
        lambda a: windows(a["x"].T, 3).sum(-1),
    ),
    # A true convolution reads backwards.
    "backwards": Pattern(
        "x[h, w + 2], k[3] -> y[h, w]",
        "y[i, j] = sum(x[i, w - 1 - j + r] * k[r] for r in range(3))",
        "- reuse_at: {buffer: x, loop: y.j}",
        ("x_reuse[1, 3]",),
        lambda a: convolved(a["x"], a["k"])[:, ::-1],
    ),
    # The window of a skewed loop starts where the other loop is.
    "wavefront": Pattern(
        "x[h, w + 2] -> y[h, w]",
        "y[i, j] = x[i, j] - x[i, j + 2]",
        "- skew: {loops: [y.i, y.j], factor: 1}\n- reuse_at: {buffer: x, loop: y.j}",
        ("x_reuse[1, 3]",),
        lambda a: a["x"][:, :-2] - a["x"][:, 2:],
    ),
    # Clamped at the borders: what lies outside is neither read nor kept.
    "border": Pattern(
        "x[h, w] -> y[h, w]",
        """\
y[i, j] = x[max(i - 1, 0), j] + x[i, j] * x[min(i + 1, h - 1), max(j - 1, 0)]
""",
        """\
- reuse_at: {buffer: x, loop: y.i, as: [lines, lines_first]}
- reuse_at: {buffer: lines, loop: y.j, as: [patch, patch_first, patch_move]}
""",
        ("lines[3, w]", "patch[max(1, h), 2]"),
        lambda a: _border(a["x"]),
    ),
    # A choice between what is kept: HeteroCL got it wrong (its issue 155).
    "choice": Pattern(
        "x[h, w + 2] -> y[h, w]",
        "y[i, j] = x[i, j] if x[i, j + 1] > 0 else x[i, j + 2]",
        "- reuse_at: {buffer: x, loop: y.j}",
        ("x_reuse[1, 3]",),
        lambda a: np.where(a["x"][:, 1:-1] > 0, a["x"][:, :-2], a["x"][:, 2:]),
    ),
    # Nine taps: more than a vector's step is kept, and vectors wrap around in the circle.
    "vectors_in_a_circle": Pattern(
        "x[h, w + 8] -> y[h, w]",
        "y[i, j] = x[i, j] + x[i, j + 3] - x[i, j + 8]",
        """\
- split: {loop: y.j, factors: [null, $lanes], as: [y.j0, y.j1]}
- reuse_at: {buffer: x, loop: y.j0, as: [row, first]}
- vectorize: {loop: row.d1, width: $lanes}
- vectorize: {loop: y.j1, width: $lanes}
- unroll: {loop: y.j0, factor: 3}
""",
        ("row[1, 12]",),
        lambda a: a["x"][:, :-8] + a["x"][:, 3:-5] - a["x"][:, 8:],
    ),
    "aligned": Pattern(
        "x[h, w + 2] -> y[h, w]",
        """\
h, w + 2: t[i, j] = 2*x[i, j]
y[i, j] = t[i, j] + t[i, j + 2]
""",
        """\
- align: {loop: y.j, buffer: y}
- split: {loop: y.j, factors: [null, $lanes], as: [y.j0, y.j1]}
- compute_at: {block: t, loop: y.j0}
- reuse_at: {buffer: t, loop: y.j0}
- set_scope: {buffer: t, scope: register}
- vectorize: {loop: t_first.j, width: $lanes}
- vectorize: {loop: t.j, width: $lanes}
- vectorize: {loop: t_move.j, width: $lanes}
- vectorize: {loop: y.j1, width: $lanes}
""",
        ("t[1, 8]",),
        lambda a: 2 * (a["x"][:, :-2] + a["x"][:, 2:]),
    ),
}


def _pipeline(x: np.ndarray) -> np.ndarray:
    s = x[:-2] + x[1:-1] + x[2:]
    t = s[:-1] - s[1:]
    return t * np.concatenate((t[:1], t[:-1])) if len(t) else t


def _border(x: np.ndarray) -> np.ndarray:
    above = np.concatenate((x[:1], x[:-1])) if len(x) else x
    below = np.concatenate((x[1:], x[-1:])) if len(x) else x
    left = np.concatenate((below[:, :1], below[:, :-1]), axis=1)
    return above + x * left


def plain(name: str, arguments: str, compute: str) -> Scheduled:
    """The plain schedule of a spec."""
    inputs_, outputs = (_arguments(side) for side in arguments.split("->"))
    lines = [f'  {a}: {{type: "T[{shape}]"}}' for a, shape in inputs_.items()]
    lines += [f'  {a}: {{type: "T[{s}]", intent: out}}' for a, s in outputs.items()]
    sides = [",".join(f"({shape})" for shape in side.values()) for side in (inputs_, outputs)]
    given, body = "\n".join(lines), "\n".join(map(_nest, compute.splitlines()))
    text = f"""\
tilesmith: 1
kernel: {name}
doc: A pattern of reuse.
signature: {"->".join(sides)}
dtypes: {{T: [float32]}}
arguments:
{given}
compute: |
{body}
"""
    spec = specs.loads(text, name)
    kernel = specs.build(spec, specs.choices(spec)[0])
    return Scheduled(kernel, plain_flow(kernel))


@cache
def original(name: str) -> Scheduled:
    return plain(name, PATTERNS[name].arguments, PATTERNS[name].compute)


def _nest(statement: str) -> str:
    """A statement, after the extents of its loops where these are not h and w: `h + 2, w: ...`."""
    extents, colon, rest = statement.rpartition(": ")
    if not colon:
        extents, rest = "h, w", statement
    names = zip("ijl", extents.split(", "), strict=False)
    lines = [*(f"for {i} in range({extent}):" for i, extent in names), rest]
    return "\n".join("  " * (depth + 1) + line for depth, line in enumerate(lines))


def _arguments(text: str) -> dict[str, str]:
    """Shapes by name, of a text such as `x[h, w + 2], k[3]`."""
    parts = (part.strip(" ,") for part in text.split("]") if part.strip())
    return {part.partition("[")[0]: part.partition("[")[2] for part in parts}


@cache
def last(name: str) -> Scheduled:
    """The proved state after the recipe."""
    return schedule(original(name), PATTERNS[name].steps)[-1].state


@cache
def lowered(name: str) -> Kernel:
    """What is emitted, proved against the plain schedule."""
    result = lower(last(name), Target(native_level()))
    verify(result.kernel, lowered=True)
    prove(original(name).kernel, result)
    return result.kernel


@pytest.fixture(scope="module")
def compiled() -> Callable[[str], Compiled]:
    """The patterns' kernels, of one library."""
    level: Level = native_level()
    parts = []
    for name in PATTERNS:
        kernel = lowered(name)
        arrays = [p.buffer.name for p in kernel.parameters]
        variants = (LoweredVariant("0", kernel),)
        parts.append(emit_kernel(name, "float32", variants, level, packed=arrays))
    source = emit_file("heterocl", parts, level)
    library = build(source, compiler_command(level, ("-Wall", "-Wextra", "-Werror")))

    def one(name: str) -> Compiled:
        return Compiled(lowered(name), source, library, f"ts_{name}_float32_{level.value}", 1)

    return one


@pytest.mark.parametrize("name", PATTERNS)
def test_ir_after(name: str, golden: Golden) -> None:
    steps = "".join(f"# {line}\n" for line in PATTERNS[name].steps.splitlines())
    parts = (to_text(original(name).kernel), steps, to_text(last(name).kernel))
    golden(f"heterocl/{name}.txt", "\n".join(parts))


@pytest.mark.parametrize("name", PATTERNS)
def test_what_is_kept(name: str) -> None:
    found = [b for n in walk(lowered(name)) if isinstance(n, Allocate) for b in n.buffers]
    shapes = (", ".join(map(expr_to_text, b.shape)) for b in found)
    assert tuple(dict.fromkeys(f"{b.name}[{s}]" for b, s in zip(found, shapes, strict=True))) == (
        PATTERNS[name].buffers
    )


@pytest.mark.parametrize("name", PATTERNS)
def test_runs_as_numpy_does(name: str, compiled: Callable[[str], Compiled]) -> None:
    kernel = compiled(name)
    for h, w in SIZES:
        dims = {dim: {"h": h, "w": w}[dim] for dim in kernel.kernel.dims}
        given = inputs(kernel.kernel, dims)
        wanted = PATTERNS[name].wanted(given)
        for threads in (1, 2):
            y = np.full(wanted.shape, np.nan, np.float32)
            kernel({**given, "y": y}, dims=dims, threads=threads)
            np.testing.assert_array_equal(y, wanted, err_msg=str(dims))


REFUSED = {
    # 2. Along the row, but for the column.
    "no_overlap": (
        "x[h, w + 2] -> y[h, w]",
        "y[i, j] = x[i, j] + x[i, j + 1] + x[i, j + 2]",
        "- reuse_at: {buffer: x, loop: y.i}",
        "no two iterations of loop 'y.i' read the same of 'x': along axis 0, each reads 1 and moves"
        " by 1",
    ),
    # 7. What is read moves further each time.
    "square": (
        "x[h, w] -> y[h, w]",
        "y[i, j] = sum(x[i, min(j*j + r, w - 1)] for r in range(3))",
        "- reuse_at: {buffer: x, loop: y.j}",
        "what an iteration of loop 'y.j' reads of 'x' is no box: along axis 1, an index is not"
        " affine or comes from data",
    ),
    # As many taps as the call says: a place modulo a symbolic size is nothing that isl can follow.
    "taps": (
        "x[h, w], k[n] -> y[h, w]",
        "y[i, j] = sum(x[i, min(j + r, w - 1)] * k[r] for r in range(n))",
        "- reuse_at: {buffer: x, loop: y.j}",
        "what loop 'y.j' reads of 'x' along axis 1, min(y.j, w - 1) to min(y.j + n - 1, w - 1), is"
        " not of constant size, or does not move by a constant from one iteration to the next",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    arguments, compute, steps, reason = REFUSED[name]
    with pytest.raises(ScheduleError) as refusal:
        schedule(plain(name, arguments, compute), steps)
    assert refusal.value.message.startswith("reuse_at (loop y.")
    assert refusal.value.message.endswith(reason)
