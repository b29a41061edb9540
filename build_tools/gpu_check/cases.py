"""Small cases that are carried along: inputs, what is right, how near, and the emulator's bits.

Files: for each kernel a `.json`, which says what there is, and an `.npz` with the arrays. What is
right is kept as two float64, of which the second has what the first is rounded by.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@final
@dataclass(frozen=True, slots=True)
class Expected:
    """An output. exact: float64, `low` to be added, or integers; None where only the bits are
    known. bound: the errors allowed. bits: the emulator's result, None where it did not run.
    """

    name: str
    exact: Array | None
    low: Array | None
    bound: Array | None
    bits: Array | None


@final
@dataclass(frozen=True, slots=True)
class Case:
    """A call. kind: of the inputs' values. variant: that the emulator ran. options: keywords."""

    kernel: str
    dtypes: str
    sizes: Mapping[str, int]
    kind: str
    variant: str
    options: Mapping[str, Any]
    inputs: Mapping[str, Array]
    outputs: tuple[Expected, ...]

    def __str__(self) -> str:
        sizes = " ".join(f"{name}={size}" for name, size in self.sizes.items())
        return f"{self.dtypes} {sizes} {self.kind}"


def expected(name: str, exact: Array | None, bound: Array | None, bits: Array | None) -> Expected:
    """exact: in any type, long double included."""
    if exact is None or exact.dtype.kind in "biu":
        return Expected(name, exact, None, bound, bits)
    with np.errstate(invalid="ignore", over="ignore"):
        high = exact.astype(np.float64)
        low = np.where(np.isfinite(high), exact - high, 0).astype(np.float64)
    return Expected(name, high, low if low.any() else None, bound, bits)


_PARTS = ("exact", "low", "bound", "bits")


def save(folder: Path, kernel: str, cases: Sequence[Case]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Array] = {}
    told = []
    for number, case in enumerate(cases):
        for name, array in case.inputs.items():
            arrays[f"{number}.in.{name}"] = array
        for output in case.outputs:
            for part in _PARTS:
                if (array := getattr(output, part)) is not None:
                    arrays[f"{number}.{part}.{output.name}"] = array
        told.append({
            **{n: getattr(case, n) for n in ("dtypes", "kind", "variant")},
            "sizes": dict(case.sizes),
            "options": dict(case.options),
            "inputs": [*case.inputs],
            "outputs": [output.name for output in case.outputs],
        })  # fmt: skip
    (folder / f"{kernel}.json").write_text(json.dumps(told), "utf-8")
    np.savez_compressed(folder / f"{kernel}.npz", **arrays)  # type: ignore[arg-type]


def load(folder: Path, kernel: str) -> Iterator[Case]:
    told = json.loads((folder / f"{kernel}.json").read_text("utf-8"))
    with np.load(folder / f"{kernel}.npz") as arrays:
        for number, one in enumerate(told):
            inputs = {name: arrays[f"{number}.in.{name}"] for name in one["inputs"]}
            outputs = tuple(
                Expected(name, *(
                    arrays[key] if (key := f"{number}.{part}.{name}") in arrays else None
                    for part in _PARTS
                ))
                for name in one["outputs"]
            )  # fmt: skip
            yield Case(kernel, one["dtypes"], one["sizes"], one["kind"], one["variant"],
                       one["options"], inputs, outputs)  # fmt: skip


def kernels(folder: Path) -> list[str]:
    """Those that there are cases of."""
    return sorted(path.stem for path in folder.glob("*.json"))
