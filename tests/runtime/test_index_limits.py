"""What the engine says of scalars that index, asked of ts_measure itself."""

import subprocess

import pytest

from gen.binding.descriptors import descriptors
from gen.binding.manifest import (
    Entry,
    EntryArgument,
    EntryParameter,
    entry_from_json,
    entry_to_json,
)
from gen.ir.nodes import Intent
from gen.targets.runtime import RUNTIME

ENTRY = Entry(
    "reach", "d", "(n)->(n)", {"T": ("float32",)}, ("m", "n"), "m",
    (EntryArgument("x", Intent.IN, "T", True, ("n",)),
     EntryArgument("y", Intent.OUT, "T", True, ("n",))),
    (EntryParameter("s", "int64"), EntryParameter("other", "int64")), {}, ("v2",),
    limits={"s": (2**30, 2**14)}, products=("m * (n // 2) * 8",),
)  # fmt: skip

ASK = """
#include <stdio.h>
#include <stdlib.h>
#include "ts_engine.h"
const ts_variant ts_reach_float32_v2[1];
int main(int count, char **words)
{
    ts_invocation v = {.kernel = ts_kernels, .overload = ts_kernels[0].overloads};
    for (int i = 1; i + 2 < count; i += 3) {
        const int64_t shape[2] = {atoll(words[i]), atoll(words[i + 1])}, strides[2] = {0, 0};
        const ts_given x = {{NULL, 2, shape, strides}, false};
        v.scalars[0].i64 = atoll(words[i + 2]);
        v.scalars[1].i64 = INT64_MAX;
        puts(ts_measure(&v, &x, -1) == TS_OK ? "right" : ts_message());
    }
}
"""

RANGE = "reach: scalar s must be at {0} {1}, or indices would leave 64 bits, got {2}"
PRODUCT = "reach: m * (n // 2) * 8 is too large for m = {}, n = {}"
CASES = [
    ((1, 2**31, 2**30), "right"),
    ((1, 5, -(2**30)), "right"),
    ((1, 5, 2**30 + 1), RANGE.format("most", 2**30, 2**30 + 1)),
    ((1, 5, -(2**63)), RANGE.format("least", -(2**30), -(2**63))),
    ((1, 2**31 + 1, 2**14), "right"),
    ((1, 2**31 + 1, 2**14 + 1), RANGE.format("most", 2**14, 2**14 + 1)),
    ((2**31 + 1, 1, -(2**14) - 1), RANGE.format("least", -(2**14), -(2**14) - 1)),
    ((1, 2**47, 0), "right"),
    ((2**30, 2**27, 0), "right"),
    (
        (2**30, 2**27 + 2, 0),
        f"reach: m * (n // 2) * 8 is too large for m = {2**30}, n = {2**27 + 2}",
    ),
    ((2**46, 2**46, 0), f"reach: m * (n // 2) * 8 is too large for m = {2**46}, n = {2**46}"),
    ((1, 2**47 + 1, 0), f"reach: a size of {2**47 + 1} is more than its indices allow: {2**47}"),
]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("limits")
    (folder / "ask.c").write_text(ASK)
    (folder / "ts_kernels.c").write_text(descriptors([ENTRY]))
    sources = [folder / "ask.c", folder / "ts_kernels.c", *sorted(RUNTIME.glob("ts_*.c"))]
    program = folder / "ask"
    command = ["cc", "-std=gnu11", "-pthread", f"-I{RUNTIME}", *map(str, sources), "-lm"]
    subprocess.run([*command, "-o", str(program)], check=True)
    words = [str(number) for given, _ in CASES for number in given]
    done = subprocess.run([str(program), *words], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("number", range(len(CASES)))
def test_calls_are_held_to_the_limits(number: int, asked: list[str]) -> None:
    assert asked[number] == CASES[number][1]


def test_limits_are_in_the_manifest() -> None:
    assert entry_from_json(entry_to_json(ENTRY)) == ENTRY
