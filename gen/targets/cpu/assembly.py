"""The instructions that the C compiler makes of a kernel, each with the line of C that it is of.

Input: a C source and a level. Output: its functions as `objdump` prints them. What was inlined from
the runtime's headers belongs to the source's line that called it, the innermost where there are
several.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ...errors import TilesmithError
from ..target import CompiledFunction, Instruction
from .jit import compiler_command
from .levels import Level
from .mix import kinds

_SOURCE = "kernel.c"
_OPTIONS = ("--disassemble", "--reloc", "--line-numbers", "--inlines", "--no-show-raw-insn")

_FUNCTION = re.compile(r"([0-9a-f]+) <(.+)>:")
_PLACE = re.compile(r"(inlined by )?(.+):(\d+|\?)(?: \(.*\))?")
_INSTRUCTION = re.compile(r" *([0-9a-f]+):\t(.+)")
_RELOCATION = re.compile(r"\t+[0-9a-f]+: R_\w+\t(.+?)(?:[-+]0x[0-9a-f]+)?")
_TARGET = re.compile(r"\b[0-9a-f]+ <([^>+]+)(\+0x[0-9a-f]+)?>")
_CALL = re.compile(r"(call|jmp|bl|b)\b")


def assembly(source: str, level: Level) -> tuple[CompiledFunction, ...]:
    """The functions in the order in which the compiler has them.

    Raises TilesmithError where there is no compiler for the level, or no objdump.
    """
    objdump = shutil.which("objdump")
    if objdump is None:
        raise TilesmithError("there is no objdump to read instructions with")
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / _SOURCE).write_text(source, encoding="utf-8")
        # Line numbers are all that -g1 adds: the instructions are those without it.
        _output(compiler_command(level, ("-g1", "-c", _SOURCE, "-o", "kernel.o")), scratch)
        return tuple(_functions(_output((objdump, *_OPTIONS, "kernel.o"), scratch)))


def _output(command: tuple[str, ...], folder: str) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except OSError as error:
        raise TilesmithError(f"{command[0]} does not run: {error.strerror}") from error
    if done.returncode:
        words = done.stderr.strip().splitlines() or ["it says no more"]
        raise TilesmithError(f"{Path(command[0]).name} refuses the kernel: {words[0]}")
    return done.stdout


def _functions(listing: str) -> Iterator[CompiledFunction]:
    name, start, line = "", 0, 0
    found: list[Instruction] = []
    for text in listing.splitlines():
        if match := _FUNCTION.fullmatch(text):
            if found:
                yield CompiledFunction(name, tuple(found))
            name, start, line, found = match[2], int(match[1], 16), 0, []
        elif match := _INSTRUCTION.fullmatch(text):
            offset = hex(int(match[1], 16) - start)
            text = match[2].strip()
            found.append(Instruction(offset, _named(text, name), line, kinds(text)))
        elif match := _RELOCATION.fullmatch(text):
            last = found.pop()
            found.append(replace(last, text=_referring(last.text, match[1])))
        elif match := _PLACE.fullmatch(text):
            if not match[1]:  # the innermost place; those that it was inlined into follow
                line = 0
            if not line and Path(match[2]).name == _SOURCE and match[3] != "?":
                line = int(match[3])
    if found:
        yield CompiledFunction(name, tuple(found))


def _named(text: str, function: str) -> str:
    """An instruction with the places that it names told without addresses."""

    def place(match: re.Match[str]) -> str:
        name, offset = match[1], match[2] or ""
        return offset.removeprefix("+") if offset and name == function else name + offset

    return _TARGET.sub(place, text)


def _referring(text: str, symbol: str) -> str:
    """An instruction with the name of what the linker fills in."""
    code = text.partition("#")[0].rstrip()
    return f"{code.split()[0]:6} {symbol}" if _CALL.match(code) else f"{code}  # {symbol}"
