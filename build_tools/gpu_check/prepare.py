"""What is carried to a machine with a GPU, made here with the generator and the emulator.

Input: the specs' folder, the Python of that machine. Output: a folder with the wheel, the cases,
and this package; and the command to run there.
"""

import itertools
import math
import multiprocessing
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from build_tools.check_kernel_list import for_gpus
from gen import language as specs
from gen.binding.entry import manifest_entry
from gen.commands.data_wheel import data_wheel
from gen.errors import SpecError, TilesmithError
from gen.ir.interpret.sizes import value
from gen.ir.nodes import Expr, Intent
from gen.language import Dtypes
from gen.language.build import shape_of
from gen.language.formulas import oracle
from gen.language.model import KernelSpec
from gen.lower.variants import suffix, whens_of
from gen.pipeline import load
from gen.targets.cuda.compilers import nvcc
from gen.targets.registry import TARGETS
from gen.targets.target import Runnable
from gen.trial.inputs import random_arrays
from gen.trial.kinds import InputKind
from gen.trial.plain import Reference
from gen.trial.run import scheduled
from gen.trial.sizes import (
    allowed,
    changed,
    edges,
    kernel_dims,
    other_scalars,
    sides,
    values_of,
)

from . import cases
from .cases import Array, Case

ROOT = Path(__file__).resolve().parents[2]


def prepare(
    out: Path,
    python: str,
    packages: Sequence[Path] = (),
    folder: Path | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[str]:
    """Makes the folder anew. packages: wheels, or folders to put on sys.path, that there are
    already. folder: of the specs. names: of kernels, by default all that have a recipe for CUDA.

    Tells what is done while it is done, and at last what to do with it. Raises TilesmithError.
    """
    paths = sorted((folder or ROOT / "kernels_spec").glob("*.yaml"))
    chosen = [s for s in map(TARGETS.load, paths) if on_gpus(s) and (not names or s.name in names)]
    if not chosen:
        raise TilesmithError("no spec has a recipe for cuda")
    if out.exists():
        shutil.rmtree(out)
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(partial(_written, out / "cases"), chosen)
    own = Path(__file__).parent
    shutil.copytree(own, out / "build_tools" / own.name,
                    ignore=shutil.ignore_patterns("__pycache__", "prepare.py"))  # fmt: skip
    shutil.copytree(ROOT / "bench", out / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    (out / "packages").mkdir()
    for package in packages:
        copy = shutil.copytree if package.is_dir() else shutil.copy
        copy(package, out / "packages" / package.name)
    if not packages:
        yield from build(interpreter(python), out / "packages")
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 2**20
    yield f"{out}: {size:.1f} MiB; on the machine with the GPU, in that folder:"
    yield f"    {COMMAND}"


COMMAND = "python3 -m build_tools.gpu_check run --seconds 480 --to results"


def on_gpus(spec: KernelSpec) -> bool:
    """Whether the kernel has a recipe for CUDA, or is listed for GPUs beside its spec."""
    own = any(recipe.target.partition(".")[0] == "cuda" for recipe in spec.recipes)
    return own or spec.name in for_gpus(Path(spec.path).parent)


def _written(folder: Path, spec: KernelSpec) -> str:
    made = list(cases_of(spec))
    cases.save(folder, spec.name, made)
    bits = sum(all(output.bits is not None for output in case.outputs) for case in made)
    return f"{spec.name}: {len(made)} cases, {bits} of them emulated"


# ---------------------------------------------------------------- the wheel


def interpreter(python: str) -> str:
    """The interpreter that `cp312`, or a path, means. Raises TilesmithError where there is none."""
    if not (tag := re.fullmatch(r"cp3(\d+)", python)):
        return python
    name = f"3.{tag[1]}"
    pyenv = Path.home() / ".pyenv" / "versions"
    for found in (f"python{name}", *map(str, sorted(pyenv.glob(f"{name}.*/bin/python"))[::-1])):
        if _runs(found):
            return found
    raise TilesmithError(f"there is no Python {name}: install it, or give --python its path")


def _runs(python: str) -> bool:
    try:
        return not subprocess.run([python, "-c", ""], capture_output=True).returncode
    except OSError:
        return False


def build(python: str, packages: Path) -> list[str]:
    """The wheel of this checkout, built in a folder that is kept, so that the next time is short.

    With nvcc, that of its machine code, too. Returns what was made. Raises TilesmithError with the
    build's last words.
    """
    tag = subprocess.run([python, "-c", _TAG], capture_output=True, text=True).stdout.strip()
    command = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(packages)]
    command += [f"-Cbuild-dir={ROOT / 'build' / f'gpu_check-{tag}'}", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
        raise TilesmithError(f"the wheel could not be built:\n{last}")
    (wheel,) = packages.iterdir()
    if nvcc() is None:
        return [wheel.name, "without machine code, as there is no nvcc here: NVRTC has to be there"]
    return [wheel.name, data_wheel(wheel, packages).name]


_TAG = "import sys; print('cp%d%d' % sys.version_info[:2])"


# ---------------------------------------------------------------- cases


TILES = (63, 64, 65, 127, 128, 129, 255, 256, 257, 1025)
MOST_POINTS = 4500  # of a pair of the small sizes
MOST_ELEMENTS = 120_000  # of a choice of dtypes: all that is carried is some tens of MiB
MOST_OTHERS = 6  # of other scalars
MOST_EMULATED = 3e6  # points, so that a case is emulated in about a second
KINDS = (InputKind.TIES, InputKind.SMALL, InputKind.EXTREME, InputKind.SPECIAL)


def cases_of(spec: KernelSpec) -> Iterator[Case]:
    """Of every choice of dtypes that NumPy has: each size with random numbers, and a few with those
    that go wrong where random ones do not, of which the emulator's bits alone say what is right;
    a few of each word that a scalar may be, and of scalars by which other variants run.
    """
    for dtypes in specs.choices(spec):
        if any(dtype.value == "bfloat16" for dtype in dtypes.values()):
            continue
        (target,) = TARGETS.chosen("cuda")
        variants = scheduled(spec, dtypes, target)
        kernel, whens = load(spec, dtypes, variants, target.emulating()), whens_of(variants)
        maker = _Maker(spec, dtypes, Reference(spec, dtypes), kernel, options(spec))
        rng = np.random.default_rng(0)
        tried = list(sizes(spec, target.width(dtypes), whens))
        for one in tried:
            yield maker.case(one, InputKind.RANDOM, rng)
        for kind, telling in itertools.product(KINDS, _telling(spec, tried)):
            yield maker.case(telling, kind, rng)
        for other, beside in other_scalars(spec, whens):
            made = maker.of(other)
            for few in [*_telling(other, tried), *beside][:MOST_OTHERS]:
                if allowed(other, few):
                    yield made.case(few, InputKind.RANDOM, rng)


def sizes(spec: KernelSpec, width: int, whens: Sequence[Expr]) -> Iterator[dict[str, int]]:
    """0, 1, around a warp, on either side of each `when`; and around tiles, a dim at a time."""
    small = [s for s in edges(spec, width) if _points(s) <= MOST_POINTS]
    pairs = [*zip(TILES, itertools.cycle((3, 2, 5)), strict=False)]
    tiles = [
        {d: n if d == dim else few for d in spec.dims} for dim in spec.dims for n, few in pairs
    ]
    squares = [dict.fromkeys(spec.dims, n) for n in (8, 16, 32, 64, 129)]
    square = [s for s in squares if _points(s) <= MOST_EMULATED][-2:]
    near = [s for s in sides(spec, whens) if _points(s) <= MOST_POINTS]
    seen: set[tuple[int, ...]] = set()
    room = MOST_ELEMENTS
    for one in [*small, *near, *tiles, *square]:
        key = tuple(one.values())
        if key not in seen and allowed(spec, one) and (size := _elements(spec, one)) <= room:
            seen.add(key)
            room -= size
            yield one


def _elements(spec: KernelSpec, one: Mapping[str, int]) -> int:
    values = values_of(spec, one)
    shapes = [[value(extent, values) for extent in shape_of(a.shape)] for a in spec.arguments]
    return sum(map(math.prod, shapes))


def _points(one: Mapping[str, int]) -> int:
    return int(np.prod([*one.values()], dtype=float))


def _telling(spec: KernelSpec, tried: Sequence[Mapping[str, int]]) -> list[Mapping[str, int]]:
    found = [one for one in tried if 200 <= _points(one) <= MOST_POINTS]
    return found[:: max(1, len(found) // 3)][:3]


@final
@dataclass(frozen=True, slots=True)
class _Maker:
    spec: KernelSpec
    dtypes: Dtypes
    reference: Reference
    kernel: Runnable
    options: Mapping[str, Any]

    def of(self, other: KernelSpec) -> "_Maker":
        """With the defaults that scalars have there."""
        kernel = self.kernel.with_scalars(oracle.defaults(other))
        reference = Reference(other, self.dtypes)
        return _Maker(
            other, self.dtypes, reference, kernel, {**self.options, **changed(self.spec, other)}
        )

    def case(self, one: Mapping[str, int], kind: InputKind, rng: np.random.Generator) -> Case:
        spec = self.spec
        arrays = random_arrays(spec, self.dtypes, one, rng, kind=kind)
        outputs = [a.name for a in spec.arguments if a.intent is not Intent.IN]
        inputs = {name: x.copy() for name, x in arrays.items() if name not in outputs}
        right = self._right(inputs, arrays, one) if kind is InputKind.RANDOM else {}
        dims = kernel_dims(spec, one)
        variant = self.kernel.variant(arrays, dims)
        self.kernel(arrays, dims)
        found = [(name, *right.get(name, (None, None)), arrays[name]) for name in outputs]
        expected = tuple(itertools.starmap(cases.expected, found))
        return Case(spec.name, suffix(self.dtypes), dict(one), kind.value, variant, self.options,
                    inputs, expected)  # fmt: skip

    def _right(
        self, inputs: Mapping[str, Array], arrays: Mapping[str, Array], one: Mapping[str, int]
    ) -> dict[str, tuple[Array, Array | None]]:
        """What is right, and the errors allowed: of the results rounded, whoever computes them."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of the mean of nothing
            exact = self._exact(inputs, one)
            rounded = {n: x.astype(arrays[n].dtype) for n, x in exact.items()}
            if not any(x.size for x in rounded.values()):
                return {n: (x, None) for n, x in exact.items()}
            further = self.reference.temporaries(inputs, one)
            bounds = oracle.accuracy_bound(self.spec, {**inputs, **further, **rounded})
        return {n: (x, _upwards(bounds.get(n))) for n, x in exact.items()}

    def _exact(self, inputs: Mapping[str, Array], one: Mapping[str, int]) -> dict[str, Array]:
        try:
            return oracle.evaluate(self.spec, inputs)
        except SpecError:  # not every oracle takes nothing
            return self.reference.results(inputs, one)


def _upwards(bound: Array | None) -> Array | None:
    """The bound in float32, which takes half the room."""
    return None if bound is None else np.nextafter(bound.astype(np.float32), np.float32(np.inf))


def options(spec: KernelSpec) -> dict[str, Any]:
    """As keywords: reductions are over all axes, where none is given."""
    return {"axis": -1} if manifest_entry(spec, [], {}).reduces else {}
