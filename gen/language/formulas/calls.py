"""What a formula may call: the functions that `formula_functions.txt` names, with their arguments.

Input: a call in a formula's syntax tree. Output: a SpecError where it is none of these, or has an
argument that is not named there. Invariant: what is not listed is refused, functions and arguments
alike, before anything is imported.
"""

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ...errors import SpecError
from ...ir.types import DType
from .. import yaml
from ..syntax import grammar

LISTED = Path(__file__).with_name("formula_functions.txt")
OWN = "own"
"""The section of what is called without a module."""

_TEXTS = """UPLO assume_a bitorder boundary btype center dtype ftype illuminant indexing kind method
    interpolation metric mode norm observer ord padtype pass_zero reflect_type scale side subscripts
    trans type window"""
TEXTS = frozenset(_TEXTS.split())
"""The arguments that may be texts. No text is a value: a formula computes with numbers alone."""

_DTYPES = frozenset((*(dtype.value for dtype in DType), "longdouble", "clongdouble"))


@final
@dataclass(frozen=True, slots=True)
class CallSignature:
    """A function's arguments: those that may be given by position, in order, and by name.

    rest: what all further positions are, where there may be any number.
    """

    positions: tuple[str, ...]
    names: tuple[str, ...]
    rest: str = ""

    def at(self, position: int) -> str | None:
        """The argument at a position; None where there is none."""
        return self.positions[position] if position < len(self.positions) else self.rest or None


def _read(text: str) -> Iterator[tuple[str, CallSignature]]:
    module = ""
    for line in text.splitlines():
        if found := re.fullmatch(r"([\w.]+):", line):
            module = "" if found[1] == OWN else f"{found[1]}."
        elif found := re.fullmatch(r" +(\w+)\((.*)\)", line):
            before, star, after = found[2].partition("*")
            rest, *more = re.findall(r"\w*", after) if star else [""]
            positions = tuple(re.findall(r"\w+", before))
            yield module + found[1], CallSignature(positions, tuple(filter(None, more)), rest)


SIGNATURES = dict(_read(LISTED.read_text("utf-8")))
"""By name, with its module as a formula has it, NumPy's as `np`: "np.linalg.norm", "abs"."""

MODULES = tuple(dict.fromkeys(name.rpartition(".")[0] for name in SIGNATURES if "." in name))


def known_as(chain: str) -> str:
    """The name in the list of what a formula calls `numpy.sum`, too."""
    return re.sub(r"^numpy\.", "np.", chain)


def check(node: ast.Call, chain: str, place: grammar.Positions, own: Collection[str]) -> None:
    """Refuses a call of what is not listed, and arguments that are not. The values of its arguments
    are not looked at but for where a text may stand.

    chain: the function's name, empty where it is none. own: what may be called without a module.
    """
    known = known_as(chain)
    if known not in SIGNATURES or ("." not in known and known not in own):
        message = f"'{chain[:64] or 'this'}' is not a function that a formula may call"
        raise SpecError(message, place.span(node.func), _hint(known, own))
    signature = SIGNATURES[known]
    for position, value in enumerate(node.args):
        if signature.at(position) is None:
            most = len(signature.positions)
            plural = "" if most == 1 else "s"
            message = f"'{chain}' takes {most} argument{plural} by position in a formula"
            raise SpecError(message, place.span(value), _arguments(signature))
    taken = (*signature.positions, *signature.names)
    for keyword in node.keywords:
        if keyword.arg is None:
            raise SpecError("'**' is not allowed in a formula", place.span(keyword.value))
        if keyword.arg not in taken:
            message = f"'{chain}' has no argument '{keyword.arg[:64]}' in a formula"
            raise SpecError(message, place.span(keyword.value), _arguments(signature))
    for name, value in arguments(node, signature):
        if name == "dtype" and not (isinstance(value, ast.Constant) and value.value in _DTYPES):
            message = "'dtype' must be the name of an element type"
            raise SpecError(message, place.span(value), 'such as dtype="float64"')


def arguments(node: ast.Call, signature: CallSignature) -> Iterator[tuple[str, ast.expr]]:
    """The arguments of a call that `check` passed, each with its name."""
    for position, value in enumerate(node.args):
        yield signature.at(position) or "", value
    for keyword in node.keywords:
        yield keyword.arg or "", keyword.value


def _hint(chain: str, own: Collection[str]) -> str:
    """The nearest functions that there are: of that name, or of the same module."""
    module, _, name = chain.rpartition(".")
    known = [*own, *(name for name in SIGNATURES if "." in name)]
    same = [k for k in known if k.rpartition(".")[0] == module]
    elsewhere = [k for k in known if k.rpartition(".")[2] == name]
    if elsewhere:
        return f"did you mean '{elsewhere[0]}'?"
    near = yaml.hint(chain, same) or yaml.hint(chain, known)
    return near or "the page of the language lists what there is"


def _arguments(signature: CallSignature) -> str:
    taken = [*signature.positions, *([f"*{signature.rest}"] if signature.rest else [])]
    return f"it takes {', '.join([*taken, *signature.names])}"


def listing(width: int = 100) -> str:
    """The names of all functions, module by module, as docs/language.md shows them."""
    lines: list[str] = []
    for module in ("", *MODULES):
        line = f"{module or OWN}:"
        for name in (n for n in SIGNATURES if n.rpartition(".")[0] == module):
            word = name.rpartition(".")[2]
            if len(line) + 1 + len(word) > width:
                lines, line = [*lines, line], "   "
            line += f" {word}"
        lines.append(line)
    return "\n".join(lines) + "\n"
