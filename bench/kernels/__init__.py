"""The kernels that are measured, by family."""

from . import elementwise, images, matrices, reductions, rows, sequences
from .kernel import Kernel

FAMILIES = (matrices, rows, reductions, elementwise, images, sequences)

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel for family in FAMILIES for kernel in family.kernels()
}
