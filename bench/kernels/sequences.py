"""Networks over sequences."""

from collections.abc import Iterator

from .. import references
from .kernel import Kernel, same, two


def kernels() -> Iterator[Kernel]:
    yield Kernel(
        "attention",
        lambda heads, m, d: ((heads, m, d),) * 3,
        same,
        references.attention,
        lambda heads, m, d: heads * m * m * (4 * d + 3),
        two((8, 1024, 64), (4, 128, 32)),
        most=(64, 4096, 256),
    )
    yield Kernel(
        "rope",
        lambda heads, t, half: ((heads, t, 2 * half), (t, half), (t, half)),
        lambda heads, t, half: (heads, t, 2 * half),
        references.rope,
        lambda heads, t, half: 6 * heads * t * half,
        two((32, 1024, 32), (8, 64, 32)),
    )
    yield Kernel(
        "lstm",
        lambda t, b, d, h: (
            *((t, b, d), (4 * h, d), (4 * h, h), (4 * h,), (4 * h,)),
            *((b, h), (b, h)),
        ),
        lambda t, b, d, h: (t, b, h),
        references.lstm,
        lambda t, b, d, h: t * b * (8 * h * (d + h) + 20 * h),
        two((64, 32, 256, 256), (16, 8, 32, 32)),
        limit=1e-3,
        most=(128, 64, 512, 512),
    )
