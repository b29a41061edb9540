"""HeteroCL's `reuse_at`, pattern by pattern: the seven of its pull request and what follows them.

Each is a spec and a recipe of ours. The IR before and after is a golden, `tests/golden/heterocl/`.
Every step is proved, and so is the lowered tree, which is compiled and run against NumPy on shapes
that are not square and do not divide: empty ones, one element, and below, at and above the window.
Two of the seven are refused, 2 and 7, and so are windows of symbolic size.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from gen import language as specs
from gen.errors import ScheduleError
from gen.ir.nodes import Allocate, Kernel
from gen.ir.rules.verify import verify
from gen.ir.text.print_expr import expr_to_text
from gen.ir.text.printer import to_text
from gen.ir.walk import walk
from gen.lower.finish import Finished, finish
from gen.lower.lower import lower
from gen.poly.certificate import Scheduled
from gen.poly.prove import prove
from gen.poly.values.flow import plain_flow
from gen.targets.c.library import Compiled, build
from gen.targets.cpu.emit import emit_file, emit_kernel
from gen.targets.cpu.jit import compiler_command, native_level
from gen.targets.cpu.levels import Level
from gen.targets.cpu.target import Cpu
from tests.conftest import Golden
from tests.schedule.support import inputs, schedule

from .patterns import PATTERNS

SIZES = ((0, 5), (5, 0), (1, 1), (2, 3), (3, 2), (4, 13), (17, 7))


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
    result = lower(last(name), Cpu(native_level()).lowering)
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
        variants = (Finished("0", finish(kernel, Cpu(level).finishing)),)
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
        "what an iteration of loop 'y.j' reads of 'x' is not a box: along axis 1, an index is not"
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
