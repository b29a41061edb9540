"""Kernels whose results may pass the caches by: the same bits, whether they do or not."""

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import tilesmith as ts
from gen.language.build import choices
from gen.targets.cpu.levels import Level

from . import driver
from .support import ROOT, SPECS, Array, call, outputs

STREAMED = sorted(
    name
    for name, spec in SPECS.items()
    if any(step.primitive == "stream" for r in spec.recipes for v in r.variants for step in v.steps)
)
MODELS = [
    name
    for k, name in enumerate(STREAMED)
    if not any(SPECS[name].recipes == SPECS[other].recipes for other in STREAMED[:k])
]  # of the kernels with one and the same recipe, the first
SUPPORTED = [
    level for level in ts.show_config("dicts")["levels_supported"] if level in ("v3", "v4")
]


def placed(like: Array, offset: int) -> Array:
    """An array of that shape and type whose data are `offset` bytes past a line of memory."""
    room = np.full(like.nbytes + 192, 7, np.uint8)
    start = -room.ctypes.data % 64 + offset
    return room[start : start + like.nbytes].view(like.dtype).reshape(like.shape)


def results(name: str, level: str) -> Iterator[Array]:
    """Of every edge case: into a new array, to offsets from a line, strided and in place."""
    spec = SPECS[name]
    in_place = ts.kernels()[name]["arguments"][-1]["in_place"]
    for dtypes in choices(spec):
        for arrays in driver.edge_calls(name, dtypes, Level(level)):
            yield from call(spec, arrays, num_threads=1)
            made = [arrays[o] for o in outputs(spec)]
            for offset in (8, 16, 40, 56):
                out = [placed(array, offset) for array in made]
                yield from call(spec, arrays, num_threads=2, out=_one(out))
            yield from call(spec, arrays, out=_one([driver.spread(array) for array in made]))
            if in_place and arrays[in_place[0]].dtype == made[-1].dtype:
                mine = {k: a.copy() for k, a in arrays.items()}
                yield from call(spec, mine, out=mine[in_place[0]])


def _one(arrays: list[Array]) -> Array | tuple[Array, ...]:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


SCRIPT = """
import hashlib, sys
import numpy as np
from tests.kernels.test_streams import results
for name in sys.argv[2:]:
    digest, count = hashlib.sha256(), 0
    for array in results(name, sys.argv[1]):
        digest.update(np.ascontiguousarray(array).tobytes())
        count += 1
    print(name, count, digest.hexdigest())
"""


def _digests(names: list[str], level: str, streaming: str) -> dict[str, str]:
    """Of each kernel, the number of its results and what stands for their bits."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, level, *names],
        cwd=ROOT,
        env=os.environ | {"TILESMITH_CPU_LEVEL": level, "TILESMITH_STREAM": streaming},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = (line.partition(" ") for line in done.stdout.splitlines())
    return {name: digest for name, _, digest in lines}


@pytest.mark.parametrize(
    ("names", "level"),
    [
        (MODELS, SUPPORTED[-1]),
        *(pytest.param(STREAMED, v, marks=pytest.mark.thorough) for v in SUPPORTED),
    ],
    ids=lambda x: x if isinstance(x, str) else "models" if x is MODELS else "all",
)
def test_the_same_bits(names: list[str], level: str) -> None:
    streamed = _digests(names, level, "on")
    assert [*streamed] == names
    assert all(int(digest.split()[0]) > 20 for digest in streamed.values()), streamed
    assert streamed == _digests(names, level, "off")


@pytest.mark.parametrize("name", STREAMED)
def test_each_streams_on_some_level(name: str) -> None:
    files = [driver.c_file(name, Level(level)) for level in SUPPORTED]
    assert any(push in text for text in files for push in ("ts_row_push", "ts_line_push"))


def test_streamed_results_are_right() -> None:
    """Those kernels in test_shipped.py, with results that pass the caches by."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, "tests/kernels/test_shipped.py", "-k", " or ".join(f"{n}-" for n in MODELS)],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        | {"TILESMITH_STREAM": "on"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
