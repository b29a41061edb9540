"""What an instruction does with data, by its text as objdump prints it: x86-64 or AArch64.

Input: a mnemonic and its operands. Output: kinds. What only counts, jumps or makes addresses has
none, and a scalar instruction on integers neither: what kernels compute is in vector registers.
"""

import re

from ..target import Does

_MEMORY = re.compile(r"\([^)]*%|\[[^\]]*[xs]")
_VECTOR = re.compile(r"%[xyz]mm|\bv\d+\.|\bq\d+\b")
_SCALAR_X86 = re.compile(r"(?!v?broadcast)v?[a-z0-9]*(ss|sd)")
_SCALAR_ARM = re.compile(r"\b[sdh]\d+\b")
_FUSED = re.compile(r"^v?fn?m(add|sub|la|ls|addsub|subadd)|^vfn?m")
_NONE = re.compile(
    r"^(lea|nop|j|call|ret|prefetch|prfm|push|pop|cmp\b|test|endbr|b\b|b\.|bl|data16)"
)
_MASKS = re.compile(r"%k\d")


def kinds(text: str) -> frozenset[Does]:
    name, _, rest = text.partition(" ")
    operands = rest.partition("#")[0].partition("//")[0].strip()
    if _NONE.match(name):
        return frozenset()
    found = set[Does]()
    if _VECTOR.search(operands) and not _SCALAR_X86.fullmatch(name):
        found.add(Does.VECTOR)
    elif _VECTOR.search(operands) or _SCALAR_ARM.search(operands):
        found.add(Does.SCALAR)
    if found and _FUSED.match(name):
        found.add(Does.FUSED)
    if _MEMORY.search(operands):
        found.add(Does.STORE if _stores(name, operands) else Does.LOAD)
    return frozenset(found)


def _stores(name: str, operands: str) -> bool:
    """Whether memory is what it writes: on x86-64 the last operand, as AT&T writes them."""
    if "%" not in operands:
        return name.startswith("st")
    last = _MASKS.sub("", operands).rstrip("{}z")
    return last.endswith(")") and not name.startswith(("cmp", "ucomis", "vucomis", "vptest"))
