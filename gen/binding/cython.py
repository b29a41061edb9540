"""The Cython module `_kernels`: one thin function a kernel over the calling engine.

Input: manifest entries in the order of `ts_kernels.c`. Output: Cython text.
"""

import math
import re
from collections.abc import Mapping, Sequence

from ..ir.nodes import Intent
from ..targets.runtime import RUNTIME
from .manifest import PACKAGE_FUNCTIONS, Entry, EntryParameter, choices

_HEADER = """\
# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: binding=True, cdivision=True
# Generated: this package's kernels.

{binding}
_PACKAGE = {package!r}
__version__ = {version!r}
__all__ = {names!r}

_set_up()
"""


def module(entries: Sequence[Entry], package: str, version: str) -> str:
    """`_kernels.pyx` of a package for the entries, in the order of their descriptors."""
    names = sorted([*PACKAGE_FUNCTIONS, *(entry.kernel for entry in entries)])
    binding = _with_includes("ts_binding.pxi")
    header = _HEADER.format(binding=binding, package=package, version=version, names=names)
    return "\n\n".join([header, *(_function(k, entry) for k, entry in enumerate(entries))])


def _with_includes(name: str) -> str:
    """The runtime file's text with its includes written out.

    Cython would compile the path of an included file into the module, and paths differ by machine.
    """
    text = (RUNTIME / name).read_text("utf-8")
    return re.sub(r'^include "(.*)"$', lambda m: _with_includes(m[1]), text, flags=re.MULTILINE)


def parameters(entry: Entry) -> list[str]:
    """The parameters of the Python function, as its signature spells them.

    Where there is axis=, it is the one that may follow the arrays by position, as in NumPy and
    PyTorch: a scalar there would take `var(x, 1)`, which is meant for axis 1.
    """
    required = [p.name for p in entry.parameters if p.default is None]
    optional = [f"{p.name}={_default(p)}" for p in entry.parameters if p.default is not None]
    scalars = required + optional
    options = ["keepdims=False"] if entry.reduces else []
    options += ["out=None"] if entry.outputs else []
    options += ["num_threads=None"]
    options += ["workspace=None"] if entry.architectures else []
    arrays = [a.name for a in entry.inputs]
    if not entry.has_axis:
        return [*arrays, *scalars, "*", *options]
    return [*arrays, "axis=None" if entry.reduces else "axis=-1", "*", *scalars, *options]


def _default(parameter: EntryParameter) -> str:
    """The value as an expression; Python spells what is not finite as no literal."""
    value = parameter.default
    if parameter.members and isinstance(value, int):
        return repr(parameter.members[value])
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def _function(number: int, entry: Entry) -> str:
    arrays = _tuple([a.name for a in entry.inputs])
    scalars = _tuple([p.name for p in entry.parameters])
    axis = "axis" if entry.has_axis else "_LAST"
    out = "out" if entry.outputs else "None"
    options = f"num_threads, {'workspace' if entry.architectures else 'None'}"
    call = f"_call(&ts_kernels[{number}], {arrays}, {scalars}, {axis}, {out}, {options})"
    if entry.reduces:
        call = (
            f"_reduce(&ts_kernels[{number}], {entry.ordered}, {entry.inputs[0].name}, {scalars},"
            f" axis, out, keepdims, {options})"
        )
    words = "".join(
        f"    {p.name} = _member({entry.kernel!r}, {p.name!r}, {p.members}, {p.name})\n"
        for p in entry.parameters
        if p.members
    )
    return (
        f"def {entry.kernel}({', '.join(parameters(entry))}):\n"
        f"    {docstring(entry)!r}\n"
        f"{words}"
        f"    return {call}\n"
    )


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)},)" if names else "()"


def docstring(entry: Entry) -> str:
    """The function's documentation: the spec's, what every call takes, and what it promises."""
    arrays = [
        f"{a.name} : array of {_dtypes(entry, a.dtype)}{_note(a.intent)}" for a in entry.inputs
    ]
    scalars = [f"{p.name} : {_scalar(entry, p)}" for p in entry.parameters]
    axis = ["axis : the axis that the core dim is"] if entry.has_axis else []
    options = []
    if entry.reduces:
        several = "" if entry.ordered else ", a tuple of several"
        axis = [f"axis : the axis to reduce{several}, or None for all"]
        options = ["keepdims : whether reduced axes are kept, of length 1"]
    if entry.outputs:
        kind = "array" if len(entry.outputs) == 1 else f"tuple of {len(entry.outputs)} arrays"
        options.append(f"out : {kind} for the result")
    options.append("num_threads : the most threads to use")
    if entry.architectures:
        options.append("workspace : an array on the GPU for what a call there keeps meanwhile")
    lines = [entry.doc.strip(), "", f"Signature: {entry.signature}; leading axes broadcast.", ""]
    if rules := entry.size_rules:
        lines[-1:] = [f"Sizes: {', '.join(rules)}.", ""]
    return "\n".join([*lines, *arrays, *axis, *scalars, *options, *_promises(entry), ""])


def _promises(entry: Entry) -> list[str]:
    """Whom the kernel follows, how exact it is, and an example, as far as the spec says them."""
    follows, bounds, example = (entry.details.get(k) for k in ("follows", "accuracy", "example"))
    lines = [f"Follows {follows}."] if follows else []
    for output, bound in bounds.items() if isinstance(bounds, Mapping) else ():
        exact = str(bound) == "0"
        most = "has no error." if exact else f"is off by at most {' '.join(str(bound).split())}"
        lines.append(f"{output} {most}")
    return [*([""] if lines else []), *lines, *(["", str(example).strip()] if example else [])]


def _scalar(entry: Entry, parameter: EntryParameter) -> str:
    if parameter.members:
        return " or ".join(map(repr, parameter.members))
    return f"{_dtypes(entry, parameter.dtype)} scalar"


def _dtypes(entry: Entry, dtype: str) -> str:
    return " or ".join(choices(entry, dtype))


def _note(intent: Intent) -> str:
    return ", changed in place" if intent is Intent.INOUT else ""
