"""Whom tilesmith is measured against: one module a library, imported in that peer's process alone.

A module says `VERSION` and gives `KERNELS`: from a kernel's name to a function of the array for the
result (None where the call is to allocate it) and the arguments. It prepares what the library
prepares once, and returns the call to be timed, or None where it has nothing for this size.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from .. import CACHE
from ..cases import UnknownName

# With these, glibc keeps freed memory, in large pages: a library that allocates each result gets
# the last one's pages again, and is not charged for page faults that `out=` does not cause either.
_KEEP_MEMORY = {
    "GLIBC_TUNABLES": ":".join(
        f"glibc.malloc.{setting}"
        for setting in ("mmap_max=0", f"trim_threshold={1 << 40}", "arena_max=1", "hugetlb=1")
    )
}

# What holds each library to the instructions of a level, for those that have such a setting.
_LEVEL_V3 = {
    "TILESMITH_CPU_LEVEL": "v3",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Haswell",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "",
    "HL_JIT_TARGET": "x86-64-linux-avx-avx2-f16c-fma-sse41",
    "BENCH_LLVM_CPU": "haswell",  # read by the peer TVM
}


@dataclass(frozen=True)
class Peer:
    """A process: which module it runs, what becomes of its results, and with what settings."""

    name: str
    module: str
    results: str = "kept"  # in an array made once; "new": allocated by every call
    environment: dict[str, str] = field(default_factory=dict)
    pinned: bool = False  # to as many processors as threads: no setting limits its threads
    yardstick: bool = False  # nothing that one could use instead, so never the best peer

    @property
    def ours(self) -> bool:
        return self.name.startswith("tilesmith")

    def variables(self, threads: int, level: str | None) -> dict[str, str]:
        n = str(threads)
        counts = ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR", "HL", "TVM", "TILESMITH")
        return {
            **{f"{name}_NUM_THREADS": n for name in counts},
            "NUMBA_THREADING_LAYER": "omp",
            # Inductor's cache does not know of levels: code for one gives wrong results at another.
            "TORCHINDUCTOR_CACHE_DIR": str(CACHE / f"inductor-{level or 'native'}-{n}"),
            "NUMEXPR_MAX_THREADS": n,
            "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
            + (" --xla_cpu_max_isa=AVX2" if level == "v3" else ""),
            **(_KEEP_MEMORY if self.results == "kept" else {}),
            **(_LEVEL_V3 if level == "v3" else {}),
            **self.environment,
        }


_V3 = {"TILESMITH_CPU_LEVEL": "v3"}
_COMPILED = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}  # in the process itself: no children to stop

PEERS = {
    peer.name: peer
    for peer in (
        Peer("tilesmith", "bench.peers.tilesmith"),
        Peer("tilesmith v3", "bench.peers.tilesmith", environment=_V3),
        Peer("numpy", "bench.peers.numpy"),
        Peer("scipy", "bench.peers.scipy"),
        Peer("numexpr", "bench.peers.numexpr"),
        Peer("numba", "bench.peers.numba"),
        Peer("torch", "bench.peers.torch"),
        Peer("torch compiled", "bench.peers.torch_compiled", environment=_COMPILED),
        Peer("jax", "bench.peers.jax", pinned=True),
        Peer("halide", "bench.peers.halide"),
        Peer("tvm", "bench.peers.tvm"),
        Peer("probe", "bench.peers.probe", yardstick=True),
        Peer("tilesmith new", "bench.peers.tilesmith", "new"),
        Peer("numpy new", "bench.peers.numpy", "new"),
        Peer("torch new", "bench.peers.torch", "new"),
    )
}


def choose(names: Iterable[str]) -> list[Peer]:
    """The peers of these names, or all."""
    names = list(names) or list(PEERS)
    for name in names:
        if name not in PEERS:
            raise UnknownName(f"no peer {name!r}; there are {', '.join(PEERS)}")
    return [PEERS[name] for name in names]
