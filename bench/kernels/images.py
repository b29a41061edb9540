"""Stencils, convolutions, and what else is of images."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from .. import references
from .kernel import IMAGES, Kernel, mapped, one, per_element, same, two


def kernels() -> Iterator[Kernel]:
    yield mapped("blur", references.blur, 5, IMAGES, headline=True)
    yield Kernel(
        "grey",
        lambda m: ((m, 3),),
        same,
        references.grey,
        per_element(5),
        two((3000 * 4000,), (1 << 15,)),
    )
    yield mapped("sobel", references.sobel, 13, two((3000, 4000), (256, 256)))
    yield mapped("unsharp", lambda x: 2 * x - references.blur(x), 7, two((3000, 4000), (256, 256)))
    yield mapped("gaussian", references.gaussian, 36, two((3000, 4000), (256, 256)))
    yield mapped("heat2d", references.heat2d, 6, two((3000, 4000), (256, 256)))
    yield Kernel(
        "resize",
        one,
        lambda h, w: (224, 224),
        references.resize,
        lambda h, w: 6 * 224 * 224,
        two((3000, 4000), (256, 256)),
    )
    yield Kernel(
        "conv2d",
        lambda n, c, h, w, o, k: ((n, c, h, w), (o, c, k, k), (o,)),
        lambda n, c, h, w, o, k: (n, o, h - k + 1, w - k + 1),
        references.conv2d,
        lambda n, c, h, w, o, k: 2 * n * o * (h - k + 1) * (w - k + 1) * c * k * k,
        two((8, 64, 58, 58, 64, 3), (1, 32, 30, 30, 32, 3)),
        limit=1e-3,
        most=(16, 512, 256, 256, 512, 7),
    )
    yield Kernel(
        "depthwise_conv2d",
        lambda n, c, h, w, k: ((n, c, h, w), (c, k, k), (c,)),
        lambda n, c, h, w, k: (n, c, h - k + 1, w - k + 1),
        references.depthwise_conv2d,
        lambda n, c, h, w, k: 2 * n * c * (h - k + 1) * (w - k + 1) * k * k,
        two((16, 144, 114, 114, 3), (1, 32, 30, 30, 3)),
        most=(16, 512, 512, 512, 7),
    )
    yield from _windows()


def _windows() -> Iterator[Kernel]:
    yield mapped("unsharp_mask", references.unsharp_mask, 39, two((3000, 4000), (256, 256)))
    for name, border, f in (("max_pool2d", -np.inf, np.max), ("avg_pool2d", 0.0, np.mean)):
        yield Kernel(
            name,
            one,
            lambda n, h, w: (n, (h + 1) // 2, (w + 1) // 2),
            partial(references.pooled, border=border, f=f),
            lambda n, h, w: 9 * n * ((h + 1) // 2) * ((w + 1) // 2),
            two((512, 112, 112), (16, 56, 56)),
        )
    yield Kernel(
        "conv1d",
        lambda n, c, w, o, k: ((n, c, w), (o, c, k), (o,)),
        lambda n, c, w, o, k: (n, o, w - k + 1),
        references.conv1d,
        lambda n, c, w, o, k: 2 * n * o * (w - k + 1) * c * k,
        two((16, 64, 1026, 64, 3), (1, 32, 514, 32, 3)),
        limit=1e-3,
        most=(64, 512, 1 << 16, 512, 9),
    )
    yield Kernel(
        "conv3d",
        lambda n, c, d, h, w, o, k: ((n, c, d, h, w), (o, c, k, k, k), (o,)),
        lambda n, c, d, h, w, o, k: (n, o, d - k + 1, h - k + 1, w - k + 1),
        references.conv3d,
        lambda n, c, d, h, w, o, k: 2 * n * o * (d - k + 1) * (h - k + 1) * (w - k + 1) * c * k**3,
        two((2, 32, 18, 34, 34, 32, 3), (1, 16, 10, 18, 18, 32, 3)),
        limit=1e-3,
        most=(8, 128, 64, 128, 128, 128, 5),
    )
    yield Kernel(
        "conv_transpose2d",
        lambda n, c, h, w, o, k: ((n, c, h, w), (c, o, k, k), (o,)),
        lambda n, c, h, w, o, k: (n, o, 2 * h + k - 4, 2 * w + k - 4),
        references.conv_transpose2d,
        lambda n, c, h, w, o, k: 2 * n * o * h * w * c * k * k,
        two((4, 64, 28, 28, 64, 4), (1, 32, 14, 14, 32, 4)),
        limit=1e-3,
        most=(16, 512, 128, 128, 512, 7),
    )
