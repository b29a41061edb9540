"""Passes by which C-like targets finish a lowered tree."""

from dataclasses import replace

from ...ir.index.facts import of_kernel
from ...ir.nodes import Contraction, Kernel
from ...ir.types import DType
from ...ir.walk import buffers
from ...lower.contraction import contract
from ...lower.leaving import leave_early
from ...lower.narrowing import narrow
from ...lower.passes import Pass
from .inline import inline


def dtypes_of(kernel: Kernel) -> dict[str, DType]:
    """The element types of all buffers."""
    return {name: buffer.dtype for name, buffer in buffers(kernel).items()}


def _inlined(kernel: Kernel) -> Kernel:
    return replace(kernel, body=inline(kernel.body, of_kernel(kernel)))


def _narrowed(kernel: Kernel) -> Kernel:
    shapes = {name: buffer.shape for name, buffer in buffers(kernel).items()}
    return replace(kernel, body=narrow(kernel.body, of_kernel(kernel), shapes))


def fuses(kernel: Kernel) -> bool:
    """Whether emission adds the products that sums take by fused multiply-adds."""
    return kernel.contraction is Contraction.FUSED


FUSED = Pass(
    "fused multiply-adds",
    contract,
    "a product that is added to something is rounded with the sum, once in place of twice: what is"
    " computed over the reals is the same, and the error is no larger",
)
INLINED = Pass("inline", _inlined)
NARROWED = Pass("narrow", _narrowed)
LEFT = Pass("leave early", leave_early)
