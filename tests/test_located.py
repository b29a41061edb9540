"""Every error of a spec has a place: those of stages that know none are at the statement, the
argument or the variant that they are about.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from gen.cli import main
from gen.errors import Span, TilesmithError, located
from gen.targets.registry import TARGETS
from gen.trial import check

V3 = TARGETS.chosen(None, ["v3"])
FAR = "9223372036854775807 - 9"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(compute: str, rest: str = "", types: str = "T: [float32]", of: str = "T") -> Path:
        lines = "\n".join("  " + line for line in compute.splitlines())
        path = tmp_path / "k.yaml"
        path.write_text(
            f"tilesmith: 1\nkernel: k\ndoc: d\nsignature: (n)->(n)\ndtypes: {{{types}}}\n"
            f'arguments:\n  x: {{type: "{of}[n]"}}\n  y: {{type: "{of}[n]", intent: out}}\n'
            f"compute: |\n{lines}\n{rest}"
        )
        return path

    return written


@pytest.mark.parametrize(
    ("compute", "message", "line", "column"),
    [
        (f"y[i] = x[min(max(i - {FAR}, 0), n - 1)]",
         "the index arithmetic of block 'y' leaves 64 bits at sizes of 1024", 10, 3),
        (f"for i in n:\n    if i - {FAR} < 0:\n        y[i] = x[i]",
         "the spec leaves element [9223372036854775816] of 'y' unwritten", 8, 3),
        (f"for i in range(n - {FAR}):\n    y[i] = x[i]",
         "the spec leaves element [0] of 'y' unwritten", 8, 3),
        (f"y[i] = sum(x[j] for j in n if j - {FAR} < i)",
         "the constant 9223372036854775816 does not fit int64", 10, 23),
        ("for i in n:\n    t[i + 9223372036854775807 + 9] = x[i]\n"
         "y[i] = t[i + 9223372036854775807 + 9]",
         "the constant 9223372036854775816 does not fit int64", 11, 7),
        ("y[i] = x[i] * 2 ** 70", "the integer does not fit in 64 bits", 10, 17),
        ("y[i] = x[i] * (2**64 - 1)", "the integer does not fit in 64 bits", 10, 18),
        ("y[i] = x[i] * ~(2 ** 63)", "9223372036854775808 does not fit in int64", 10, 17),
    ],
)  # fmt: skip
def test_numbers_beyond_64_bits(
    compute: str, message: str, line: int, column: int, write: Write
) -> None:
    path = write(compute)
    told = check.checked(path, TARGETS, V3).error
    assert told is not None
    assert told.startswith(f"{path}:{line}:{column}: error: {message}")


def test_a_condition_of_a_variant_beyond_64_bits(write: Write) -> None:
    variants = f"[{{when: n - {FAR} < 0, steps: [parallel: {{loop: y.i}}]}}, {{steps: []}}]"
    path = write("y[i] = x[i]", f"recipes: [{{target: cpu, variants: {variants}}}]\n")
    told = check.checked(path, TARGETS, V3).error
    assert told is not None
    assert told.startswith(
        f"{path}:11:36: error: index arithmetic leaves 64 bits at sizes of 1024\n"
    )


def test_there_is_a_type_variable(write: Write) -> None:
    path = write("y[i] = x[i]", types="", of="float32")
    assert check.checked(path, TARGETS, V3).error == (
        f"{path}:2:9: error: 'k' has no type variable\n    kernel: k\n            ^\n"
        "  hint: write {T: [float32, float64]} under 'dtypes', and T where an element type stands"
    )


def test_registers_of_a_copy_are_at_the_step_that_asked(write: Write) -> None:
    steps = "[cache_read: {block: y, buffer: x, as: c}, set_scope: {buffer: c, scope: register}]"
    path = write("y[i] = x[i]", f"recipes: [{{target: cpu, variants: [steps: {steps}]}}]\n")
    told = check.checked(path, TARGETS, V3).error
    assert told is not None
    assert told.startswith(f"{path}:11:86: error: 'c' cannot be kept in registers: what is used of")


def test_bools_without_a_vector_form(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    steps = "[vectorize: {loop: y.i, width: 8}]"
    path = write(
        "y[i] = x[i // 2]", f"recipes: [{{target: cpu, variants: [steps: {steps}]}}]\n", of="bool",
        types="T: [bool]",
    )  # fmt: skip
    assert main(["show", str(path), "--stage", "c", "--level", "v3"]) == 1
    assert capsys.readouterr().err.startswith(
        f"{path}:11:44: error: block 'y', of bool, has no vector form on v3 in loop"
    )


@pytest.mark.parametrize(
    "compute",
    [
        "y[i] = x[min(max(i - -2**62, 0), n - 1)]",
        "for i in range(2**0 - 1):\n    y[i] = 0\nfor i in n:\n    y[i] = x[i] + T(i % 2**20)",
    ],
)
def test_powers_of_numbers_are_numbers(compute: str, write: Write) -> None:
    told = check.checked(write(compute), TARGETS, V3).error
    assert told is None


def test_the_innermost_place_counts() -> None:
    outer, inner = Span("k.yaml", 1, 1), Span("k.yaml", 2, 3)
    error = r"^k\.yaml:2:3: error: no$"
    with pytest.raises(TilesmithError, match=error), located(outer), located(inner), located(None):
        raise TilesmithError("no")


TWICE = "t[i] = 2 * x[i]\ny[i] = t[i] + 1"
RECIPE = "recipes:\n  - target: cpu\n    variants:\n      - steps:\n"


def test_what_is_too_large_for_registers_is_shown_at_the_step_that_asked(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not at the last step, nor at the statement; `show` prints what is before it, then why."""
    steps = (
        "          - split: {loop: t.i, factors: [null, 4]}\n"
        "          - set_scope: {buffer: t, scope: register}\n"
        "          - unroll: {loop: t.i_1}\n"
    )
    path = write(TWICE, RECIPE + steps)
    error = (
        f"{path}:17:13: error: 't' cannot be kept in registers: what is used of it has the shape"
        " [n]\n              - set_scope: {buffer: t, scope: register}\n                ^\n"
        "  hint: compute it at a loop around which its indices are constant, or give it another"
        " scope"
    )
    assert check.checked(path, TARGETS, V3).error == error
    assert main(["show", str(path)]) == 1
    printed = capsys.readouterr()
    assert "for t.i_1 in range(4)" in printed.out and "register" not in printed.out
    assert printed.err == error + "\n"
    mended = (
        "          - compute_at: {block: t, loop: y.i}\n"
        "          - set_scope: {buffer: t, scope: register}\n"
    )
    assert check.checked(write(TWICE, RECIPE + mended), TARGETS, V3).error is None


def test_what_no_instruction_computes_is_shown_at_tensorize(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the finished tree tells; `prove` and `show` point at the step alike."""
    path = tmp_path / "k.yaml"
    path.write_text("""\
tilesmith: 1
kernel: k
doc: d
signature: (n,k),(k,m)->(n,m)
dtypes: {T: [int32]}
arguments:
  a: {type: "uint8[n, k]"}
  b: {type: "int8[k, m]"}
  c: {type: "T[n, m]", intent: out}
compute: |
  c[i, j] = sum(T(a[i, l]) * T(b[l, j]) for l in k if (i + l) % 2 == 0)
recipes:
  - target: cpu
    variants:
      - steps:
          - cache_read: {block: c, buffer: b, as: panel}
          - transform_layout: {buffer: panel, axis: 0, factors: [null, 4], order: [0, 2, 1]}
          - split: {loop: c.l, factors: [null, 4], as: [c.l0, c.l1]}
          - split: {loop: c.j, factors: [null, $lanes], as: [c.j0, c.j1]}
          - reorder: {loops: [c.i, c.j0, c.l0, c.j1, c.l1]}
          - decompose_reduction: {block: c, loop: c.l0}
          - tensorize: {loop: c.j1, intrinsic: dot_4x_u8s8}
          - parallel: {loop: c.i}
""")
    error = (
        f"{path}:22:13: error: loop 'c.j1' is tensorized by 'dot_4x_u8s8', and guards leave out"
        " some of each group, everywhere\n"
        "              - tensorize: {loop: c.j1, intrinsic: dot_4x_u8s8}\n                ^\n"
        "  hint: leave `tensorize` out, or take the condition out of the sum: an array in which"
        " what it leaves out is 0 gives the same\n"
    )
    assert main(["prove", "--levels", "v3", str(path)]) == 1
    assert error in capsys.readouterr().out
    assert main(["show", "--stage", "finished", str(path)]) == 1
    assert capsys.readouterr().err == error
