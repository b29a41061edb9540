"""Which types and functions GPUs have code for.

Input: a tree. Output: the same, or NoCode at the first that has no form in device text yet.
"""

from ....errors import NoCode
from ....ir.nodes import Kernel
from ....ir.types import DType
from ....ir.walk import externals, walk


def has_code_for(dtype: DType) -> bool:
    """Whether a GPU's arrays may have the type; complex numbers are for later."""
    return not dtype.is_complex


def within_types(kernel: Kernel) -> Kernel:
    """The kernel. Raises NoCode for complex numbers, and for C functions that a spec names."""
    for node in walk(kernel):
        dtype = getattr(node, "dtype", None)
        if isinstance(dtype, DType) and not has_code_for(dtype):
            raise NoCode(
                f"there is no code for {dtype.value} on a GPU yet", node.span, "use float32"
            )
    for called in externals(kernel):
        raise NoCode(f"the C function '{called.symbol}' is not there on a GPU", kernel.span)
    return kernel
