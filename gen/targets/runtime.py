"""What a Python extension is made of beside its kernels: for the binding and for builds.

RUNTIME: the folder of the C and Cython that every extension compiles in. LEVELS: in the order of
its `ts_level`, which tables of kernels have, too.
"""

from pathlib import Path

from .cpu.levels import LEVELS

RUNTIME = Path(__file__).parent / "cpu" / "runtime"

__all__ = ["LEVELS", "RUNTIME"]
