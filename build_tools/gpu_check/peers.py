"""What else could be called: CuPy's own functions (cuBLAS for products), and PyTorch's."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from .formulas import F, Work
from .times import Peer


def functions() -> F:
    """Of CuPy. Raises ImportError where it is not installed."""
    cupy = import_module("cupy")
    special = import_module("cupyx.scipy.special")
    return F(cupy, special, import_module("cupyx.scipy.ndimage"))


def torch() -> tuple[ModuleType | None, str]:
    """PyTorch, on the stream that CuPy's events are on; or None, and why."""
    try:
        module = import_module("torch")
        if not module.cuda.is_available():
            return None, "PyTorch sees no GPU"
    except Exception as error:
        return None, f"PyTorch: {type(error).__name__}: {error}"
    module.backends.cuda.matmul.allow_tf32 = False
    module.backends.cudnn.allow_tf32 = False
    module.set_grad_enabled(False)
    return module, ""


def peers_of(f: F, module: ModuleType | None) -> Callable[[Work, str], Mapping[str, Peer]]:
    """CuPy and, where there is a module, PyTorch eager."""

    def found(work: Work, dtype: str) -> dict[str, Peer]:
        peers: dict[str, Peer] = {_cupy_name(work): _of_cupy(f, work)}
        if module is not None:
            peers["torch"] = _of_torch(module, work, work.formula.torch)
        return peers

    return found


def compiled_peers_of(module: ModuleType) -> Callable[[Work, str], Mapping[str, Peer]]:
    """torch.compile alone: it takes many seconds a kernel."""

    def found(work: Work, dtype: str) -> dict[str, Peer]:
        def call(*given: Any) -> Any:
            return work.formula.torch(module, *given, **work.options)

        compiled = module.compile(call, dynamic=False)
        return {"torch.compile": _of_torch(module, work, lambda _, *given, **__: compiled(*given))}

    return found


def _cupy_name(work: Work) -> str:
    return "cuBLAS (cupy)" if work.kernel in ("matmul", "matvec") else "cupy"


def _of_cupy(f: F, work: Work) -> Peer:
    return lambda given: lambda: work.formula.cupy(f, *given, **work.options)


def _of_torch(module: ModuleType, work: Work, function: Callable[..., Any]) -> Peer:
    def peer(given: list[Any]) -> Callable[[], object]:
        tensors = [module.from_dlpack(x) for x in given]
        return lambda: function(module, *tensors, **work.options)

    return peer
