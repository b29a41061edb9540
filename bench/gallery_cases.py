"""The gallery: operators of deep learning, of images and of signals, and their sizes.

Each is a spec of `tests/language/corpus/gallery/`, in a folder for each class.
`bench/peers/gallery.py` has what else computes it.
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
    product_tn m=256 n=256 k=256
    product_tt m=256 n=256 k=256
    batched_product b=4 h=8 m=64 k=64 n=64
    bilinear_form m=64 o=32 p=64 q=64
    outer_product m=512 n=512
    gram_matrix k=512 n=256
    attention_scores b=2 h=8 t=128 s=128 d=64
    complex_product m=128 k=128 n=128
    expert_product m=64 e=8 k=128 n=128
convolutions
    conv1d_dilated b=4 c=32 n=512 o=32 k=3
    conv1d_causal b=4 c=128 n=512 k=4
    conv2d_valid b=1 c=32 h=58 w=58 o=32 kh=3 kw=3
    conv2d_same b=1 c=32 h=56 w=56 o=32
    conv2d_grouped b=1 g=4 c=16 h=58 w=58 o=16 kh=3 kw=3
    conv3d_valid b=1 c=8 d=18 h=34 w=34 o=16 kd=3 kh=3 kw=3
    conv2d_transposed b=1 c=32 h=32 w=32 o=32
    patches b=1 c=3 h=224 w=224 o=64
    pointwise b=1 c=64 h=56 w=56 o=64
poolings
    max_pool1d_with_place m=64 n=4096
    max_pool3d m=8 d=16 h=64 w=64
    lp_pool2d m=32 h=112 w=112
    global_mean b=8 c=128 h=28 w=28
    sliding_mean m=64 n=4096
norms
    instance_norm b=4 c=32 h=56 w=56
    batch_norm_inference b=4 c=32 h=56 w=56
    l2_normalise m=512 n=512
activations
    elu n=262144
    selu n=262144
    leaky_relu n=262144
    hardswish n=262144
    mish n=262144
    prelu b=4 c=64 n=1024
    glu m=256 n=1024
    swiglu m=256 n=1024
    geglu m=256 n=1024
losses
    mse m=256 n=1024
    huber m=256 n=1024
scans
    logcumsumexp m=256 n=1024
    running_max m=256 n=1024
    exclusive_product m=256 n=1024
    masked_sum m=256 n=1024
    smoothing m=256 n=1024
    gated_recurrence b=4 t=256 c=256
    biquad m=256 n=1024
resampling
    upsample_nearest m=16 h=128 w=128
    upsample_bilinear m=16 h=128 w=128
    upsample_cubic m=64 n=4096
    downsample_box m=16 h=256 w=256
    grid_sample m=8 h=128 w=128 n=16384
    pixel_shuffle c=16 h=64 w=64
reductions
    max_with_place m=1024 n=1024
    nearest_neighbour m=512 n=512 d=8
chains
    product_gelu_residual m=256 k=256 n=256
    conv_norm_relu b=1 c=32 h=58 w=58 o=32
    feed_forward m=128 k=128 n=512
images
    laplacian m=1 h=1024 w=1024
    median3x3 m=1 h=512 w=512
    dilation m=1 h=512 w=512
    sobel_edges m=1 h=512 w=512
    harris m=1 h=512 w=512
    ycbcr h=512 w=512
    equalise m=1 n=262144
signals
    fir m=16 n=16384 k=32
    autocorrelation m=64 n=4096 lags=16
    haar m=64 n=4096
    decimate m=16 n=16384 k=32
lookups
    one_hot n=1024 classes=1000
    embedding_bag n=256 k=16 v=4096 d=128
    gather m=256 n=1024 k=256
    scatter_add n=4096 d=64 nodes=512
    rope_pairs m=32 t=128 d=64 h=32
"""

ENTRIES = _entries()
