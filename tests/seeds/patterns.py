"""The patterns of HeteroCL's `reuse_at`: specs, recipes, and what NumPy says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Arrays = Mapping[str, np.ndarray]


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
