"""How many of a GPU's threads a kernel's blocks can fill, from what the compiler tells of it.

Input: registers, shared memory and threads of a block. Output: the share of a multiprocessor's
threads that run at once; it is what CUDA's occupancy calculator gives.
"""

from dataclasses import dataclass
from typing import final

from .architectures import WARP, Architecture


@final
@dataclass(frozen=True, slots=True)
class _Multiprocessor:
    """Of a multiprocessor: threads, blocks, bytes of shared memory, and those of them that each
    block takes for the system.
    """

    threads: int
    blocks: int
    shared: int
    reserved: int


_LIMITS = {
    Architecture.SM_75: _Multiprocessor(1024, 16, 64 * 1024, 0),
    Architecture.SM_80: _Multiprocessor(2048, 32, 164 * 1024, 1024),
    Architecture.SM_86: _Multiprocessor(1536, 16, 100 * 1024, 1024),
    Architecture.SM_89: _Multiprocessor(1536, 24, 100 * 1024, 1024),
    Architecture.SM_90: _Multiprocessor(2048, 32, 228 * 1024, 1024),
    Architecture.SM_100: _Multiprocessor(2048, 32, 228 * 1024, 1024),
    Architecture.SM_120: _Multiprocessor(1536, 24, 100 * 1024, 1024),
}

_REGISTERS = 64 * 1024
"""Of each multiprocessor. Warps take them by 256, shared out among four schedulers."""

_SHARED_UNIT = {Architecture.SM_75: 256}
"""What blocks take shared memory by; 128 bytes on all later ones."""


def occupancy(architecture: Architecture, threads: int, registers: int, shared: int) -> float:
    """The share of threads that run at once, from 0 to 1. threads and shared: of a block."""
    limits = _LIMITS[architecture]
    warps = -(-threads // WARP)
    of_warp = max(-(-registers * WARP // 256) * 256, 256)
    by_registers = _REGISTERS // 4 // of_warp * 4 // warps
    unit = _SHARED_UNIT.get(architecture, 128)
    taken = -(-(shared + limits.reserved) // unit) * unit
    by_shared = limits.shared // taken if taken else limits.blocks
    by_threads = limits.threads // (warps * WARP)
    blocks = min(limits.blocks, by_registers, by_shared, by_threads)
    return blocks * warps * WARP / limits.threads
