"""PyTorch, compiled by Inductor for the very shape. Its results come from kept memory."""

import torch
import torch._dynamo

from ..worker import Array, Call, Maker
from .torch import FUNCTIONS, VERSION

__all__ = ["KERNELS", "VERSION"]


def _maker(name: str) -> Maker:
    def make(out: Array | None, *arguments: Array) -> Call:
        torch._dynamo.reset()  # else it gives up after a few shapes
        compiled = torch.compile(FUNCTIONS[name], dynamic=False, fullgraph=True)
        tensors = [torch.from_numpy(x) for x in arguments]
        compiled(*tensors)
        return lambda: compiled(*tensors)

    return make


KERNELS = {name: _maker(name) for name in FUNCTIONS}
