"""The targets that there are.

`TARGETS` is what commands take where they are not given others: a project with a target of its own
has a command line `main(targets=Registry((*TARGETS.targets, Own)))`.
"""

from .cpu.jit import lowest_level
from .cpu.target import Cpu
from .cuda.target import Cuda
from .target import Registry, Target

TARGETS = Registry((Cpu, Cuda))

HOST: Target = Cpu(lowest_level())
"""What runs wherever Python does: plain schedules are compiled for it, to compare kernels with."""
