"""Type stubs `_kernels.pyi` of the generated module.

Input: manifest entries. Output: the stub's text, which mypy --strict accepts.
"""

from collections.abc import Sequence

from ..ir.nodes import Intent
from ..ir.types import DType, Kind
from .manifest import PACKAGE_FUNCTIONS, Entry, EntryParameter, choices

_HEADER = '''\
"""Generated: the types of this package's functions."""

from collections.abc import Callable
from typing import Any, Literal, Protocol, final, overload

from numpy.typing import ArrayLike, NDArray

# Arrays on a GPU: CuPy's, PyTorch's and JAX's; Numba's have the interface alone.
class _DLPack(Protocol):
    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...
class _CudaArray(Protocol):
    @property
    def __cuda_array_interface__(self) -> Any: ...

__all__ = {names!r}
__version__: str

def free_workspace() -> None: ...
def get_include() -> str: ...
def get_num_threads() -> int: ...
def kernels() -> dict[str, dict[str, Any]]: ...
def last_call() -> dict[str, Any] | None: ...
def set_num_threads(num_threads: int) -> None: ...
@final
class threads:
    def __init__(self, num_threads: int) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

@overload
def show_config(mode: Literal["stdout"] = "stdout") -> None: ...
@overload
def show_config(mode: Literal["dicts"]) -> dict[str, Any]: ...
def warmup(*functions: Callable[..., Any], device: Any = None) -> None: ...
'''


def stubs(entries: Sequence[Entry]) -> str:
    """`_kernels.pyi` for the entries."""
    names = sorted([*PACKAGE_FUNCTIONS, *(entry.kernel for entry in entries)])
    functions = [_function(entry) for entry in sorted(entries, key=lambda e: e.kernel)]
    return _HEADER.format(names=names) + "".join(functions)


def _function(entry: Entry) -> str:
    gpus = " | _DLPack | _CudaArray" if entry.architectures else ""
    arrays = [
        f"{a.name}: {'NDArray[Any]' if a.intent is Intent.INOUT else 'ArrayLike'}{gpus}"
        for a in entry.inputs
    ]
    types = {p.name: f"{_scalar(entry, p)}{'' if p.members else gpus}" for p in entry.parameters}
    required = [f"{p.name}: {types[p.name]}" for p in entry.parameters if p.default is None]
    optional = [
        f"{p.name}: {types[p.name]} = ..." for p in entry.parameters if p.default is not None
    ]
    scalars, axis, options = [*required, *optional], "axis: int = -1", list[str]()
    if entry.reduces:
        several = "int | None" if entry.ordered else "int | tuple[int, ...] | None"
        axis, options = f"axis: {several} = None", ["keepdims: bool = False"]
    if entry.outputs:
        options.append(f"out: {_out(len(entry.outputs), f'NDArray[Any]{gpus}')} = None")
    options.append("num_threads: int | None = None")
    if entry.architectures:
        options.append("workspace: Any = None")
    if entry.has_axis:
        parameters = [*arrays, axis, "*", *scalars, *options]
    else:
        parameters = [*arrays, *scalars, "*", *options]
    lines = "".join(f"    {parameter},\n" for parameter in parameters)
    return f"def {entry.kernel}(\n{lines}) -> {_result(entry)}: ...\n"


def _out(count: int, array: str) -> str:
    if count == 1:
        return f"{array} | tuple[{array} | None] | None"
    return f"tuple[{', '.join([f'{array} | None'] * count)}] | None"


def _result(entry: Entry) -> str:
    """Arrays, or NumPy scalars of 0 dimensions: Any, as NumPy's own ufuncs are typed. So are those
    on a GPU, which are of the arguments' library.
    """
    match len(entry.outputs):
        case 0:
            return "None"
        case 1:
            return "Any"
        case count:
            return f"tuple[{', '.join(['Any'] * count)}]"


def _scalar(entry: Entry, parameter: EntryParameter) -> str:
    if parameter.members:
        return f"Literal[{', '.join(map(repr, parameter.members))}]"
    kinds = {DType(choice).kind for choice in choices(entry, parameter.dtype)}
    if kinds == {Kind.BOOL}:
        return "bool"
    if Kind.COMPLEX in kinds:
        return "complex"
    return "float" if Kind.FLOAT in kinds else "int"
