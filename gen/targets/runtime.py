"""What a Python extension is made of beside its kernels: for the binding and for builds.

RUNTIME: the folder of the C and Cython that every extension compiles in. LEVELS: in the order of
its `ts_level`, which tables of kernels have, too. ARCHITECTURES: the levels behind those, which are
of GPUs.
"""

from pathlib import Path

from .cpu.levels import LEVELS

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")

RUNTIME = Path(__file__).parent / "cpu" / "runtime"

__all__ = ["ARCHITECTURES", "LEVELS", "RUNTIME"]
