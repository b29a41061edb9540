"""The gallery: operators of deep learning, of images and of signals, and their sizes.

Each is a spec of `tests/language/corpus/gallery/`, in a folder for each class. `bench/peers/gallery.py`
has what else computes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from gen import language as specs
from gen.language.model import KernelSpec

from . import ROOT
from .suite import Problem, problem_of

FOLDER = ROOT / "tests" / "language" / "corpus" / "gallery"


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """An operator. sizes: of its dims, and scalars, in the page's row."""

    kind: str
    name: str
    sizes: Mapping[str, int]

    @property
    def path(self) -> Path:
        return FOLDER / self.kind / f"{self.name}.yaml"


def _entries() -> tuple[Entry, ...]:
    found, kind = [], ""
    for line in _SIZES.split("\n"):
        match line.split():
            case [only]:
                kind = only
            case [name, *sizes]:
                pairs = (size.split("=") for size in sizes)
                found.append(Entry(kind, name, {dim: int(value) for dim, value in pairs}))
    return tuple(found)


def first_types(spec: KernelSpec) -> specs.Dtypes:
    return specs.choices(spec)[0]


def problem(entry: Entry) -> Problem:
    return problem_of(entry.path, entry.sizes, first_types)


_SIZES = """
products
    product_nt m=256 n=256 k=256
convolutions
    conv2d_valid b=1 c=32 h=58 w=58 o=32 kh=3 kw=3
poolings
    max_pool3d m=8 d=16 h=64 w=64
norms
    instance_norm b=4 c=32 h=56 w=56
activations
    mish n=262144
losses
    huber m=256 n=1024
scans
    logcumsumexp m=256 n=1024
resampling
    upsample_bilinear m=16 h=128 w=128
reductions
    max_with_place m=1024 n=1024
chains
    product_gelu_residual m=256 k=256 n=256
images
    laplacian m=1 h=1024 w=1024
signals
    fir m=16 n=16384 k=32
lookups
    one_hot n=1024 classes=1000
"""

ENTRIES = _entries()
