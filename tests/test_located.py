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
    told = check.error(path, TARGETS, V3)
    assert told is not None
    assert told.startswith(f"{path}:{line}:{column}: error: {message}")


def test_a_condition_of_a_variant_beyond_64_bits(write: Write) -> None:
    variants = f"[{{when: n - {FAR} < 0, steps: [parallel: {{loop: y.i}}]}}, {{steps: []}}]"
    path = write("y[i] = x[i]", f"recipes: [{{target: cpu, variants: {variants}}}]\n")
    told = check.error(path, TARGETS, V3)
    assert told is not None
    assert told.startswith(
        f"{path}:11:36: error: index arithmetic leaves 64 bits at sizes of 1024\n"
    )


def test_there_is_a_type_variable(write: Write) -> None:
    path = write("y[i] = x[i]", types="", of="float32")
    assert check.error(path, TARGETS, V3) == (
        f"{path}:2:9: error: 'k' has no type variable\n    kernel: k\n            ^\n"
        "  hint: write {T: [float32, float64]} under 'dtypes', and T where an element type stands"
    )


def test_registers_of_a_copy_are_at_what_is_copied(write: Write) -> None:
    steps = "[cache_read: {block: y, buffer: x, as: c}, set_scope: {buffer: c, scope: register}]"
    path = write("y[i] = x[i]", f"recipes: [{{target: cpu, variants: [steps: {steps}]}}]\n")
    told = check.error(path, TARGETS, V3)
    assert told is not None
    assert told.startswith(f"{path}:7:3: error: 'c' cannot be kept in registers: what is used of")


def test_bools_without_a_vector_form(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    steps = "[vectorize: {loop: y.i, width: 8}]"
    path = write(
        "y[i] = x[i]", f"recipes: [{{target: cpu, variants: [steps: {steps}]}}]\n", of="bool",
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
    told = check.error(write(compute), TARGETS, V3)
    assert told is None


def test_the_innermost_place_counts() -> None:
    outer, inner = Span("k.yaml", 1, 1), Span("k.yaml", 2, 3)
    error = r"^k\.yaml:2:3: error: no$"
    with pytest.raises(TilesmithError, match=error), located(outer), located(inner), located(None):
        raise TilesmithError("no")
