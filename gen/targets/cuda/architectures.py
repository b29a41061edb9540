"""GPU architectures: what lowering, emission and compilers know of them.

Output: names as nvcc has them, and the limits that each has alike.
"""

from enum import StrEnum
from typing import final


@final
class Architecture(StrEnum):
    """What a kernel is compiled for; the value is its name in recipes, symbols and for nvcc."""

    SM_75 = "sm_75"
    SM_80 = "sm_80"
    SM_86 = "sm_86"
    SM_89 = "sm_89"
    SM_90 = "sm_90"
    SM_100 = "sm_100"
    SM_120 = "sm_120"


ARCHITECTURES = tuple(a.value for a in Architecture)

WARP = 32
"""Threads of a warp."""

SHARED_BYTES = 48 * 1024
"""Of shared memory that a block has without asking the driver for more."""

LOCAL_BYTES = 16 * 1024
"""Of memory that a thread's own arrays may take: beyond registers it is slow, and there are many
threads."""
