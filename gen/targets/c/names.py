"""Names and types as C has them.

Input: names and types of the IR. Output: C identifiers, distinct. All names in a C function that
are not written out in the emitter come from one `Distinct`: those of the spec and the recipe, and
those that are made from them, such as strides. Invariant: it hands out no word of C, none that a
header defines, and none that the emitter writes out; `check` holds the emitter to that.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from ...errors import TilesmithError
from ...ir.nodes import Buffer, Delinearize, External, Kernel, Loop
from ...ir.types import DType
from ...ir.walk import buffers, statements

# What C computes in, or moves: float16 and bfloat16 as their bits.
SUFFIX = {
    DType.FLOAT16: "u16",
    DType.BFLOAT16: "u16",
    DType.INT8: "i8",
    DType.INT16: "i16",
    DType.INT32: "i32",
    DType.INT64: "i64",
    DType.UINT8: "u8",
    DType.UINT16: "u16",
    DType.UINT32: "u32",
    DType.UINT64: "u64",
    DType.FLOAT32: "f32",
    DType.FLOAT64: "f64",
    DType.COMPLEX64: "c64",
    DType.COMPLEX128: "c128",
}

C_TYPE = {
    DType.BOOL: "bool",
    DType.FLOAT32: "float",
    DType.FLOAT64: "double",
    DType.FLOAT16: "uint16_t",
    DType.BFLOAT16: "uint16_t",
    DType.COMPLEX64: "ts_complex64",
    DType.COMPLEX128: "ts_complex128",
} | {d: f"{d.value}_t" for d in SUFFIX if d.is_integer}

# As conversions name types.
NUMBER = SUFFIX | {DType.FLOAT16: "f16", DType.BFLOAT16: "bf16"}

# What C, or a macro of a header, reads otherwise; by their form macros in capitals, the types of
# headers, and what C and its headers keep for themselves.
_WORDS = frozenset(
    word
    for line in (
        "alignas alignof arm asm auto bool break case char complex const constexpr continue",
        "default do double else enum errno extern false float for goto i386 if imaginary",
        "inline int linux long main noreturn nullptr register restrict return short signed",
        "sizeof static static_assert stderr stdin stdout struct switch thread_local true",
        "typedef typeof typeof_unqual union unix unsigned void volatile while I",
    )
    for word in line.split()
)
_FORMS = re.compile(
    r"[A-Z][A-Z0-9_]+|(ts|TS)_.*|_.*|math_errhandling"
    r"|(u?int\w*|size|ssize|ptrdiff|wchar|wint|max_align|float\w*|double\w*|bfloat\w*|poly\w*)_t"
)
# What the emitter writes out itself. Those that it numbers are reserved with any number.
_OWN = re.compile(
    r"call|env|lower|upper|status|unit|self|l|top|first|moved|stream|ahead|hits|grain"
    r"|(lanes|widened|active|value|held|ats?|best|best_at|wins|on|line|kept|scan|exps|first)\d*"
    r"|half|(old|new|both)\d+(_\d+)?",
    re.IGNORECASE,
)
_MACRO = re.compile(r"#\s*define\s+(\w+)")
_NO_NAMES = re.compile(r'"[^"\n]*"|^ *#pragma .*$', re.MULTILINE)
_WORD = re.compile(r"(?<![\w.>])[A-Za-z_]\w*")  # that is no member


def is_word_of_c(name: str) -> bool:
    """Whether C, or a header that C code includes, may give the name a meaning."""
    return name in _WORDS or _FORMS.fullmatch(name) is not None


def is_own(name: str) -> bool:
    """Whether the emitter declares such a name itself."""
    return _OWN.fullmatch(name) is not None


def is_reserved(name: str) -> bool:
    """Whether the name means something in emitted code whatever the kernel is."""
    return is_word_of_c(name) or is_own(name)


@final
@dataclass(slots=True)
class Distinct:
    """Hands out C identifiers, each once. taken: what it does not hand out, or has already.
    reserved: what it never hands out. other: what it makes of a name that it does not.
    """

    taken: set[str] = field(default_factory=set)
    reserved: Callable[[str], bool] = is_reserved
    other: Callable[[str], str] = "v_{}".format

    def name(self, wish: str) -> str:
        """The wish, or what is nearest to it and free."""
        text = re.sub(r"\W", "_", wish, flags=re.ASCII)
        while text in self.taken or self.reserved(text) or not text.isidentifier():
            text = self.other(text)
        self.taken.add(text)
        return text

    def names(self, wishes: Iterable[str]) -> dict[str, str]:
        """A name for each of the wishes, by the wish."""
        return {wish: self.name(wish) for wish in dict.fromkeys(wishes)}


@final
@dataclass(frozen=True, slots=True)
class CNames:
    """The C names of what a kernel names, all distinct. variables: dims, scalars, phases and loops'
    variables; arrays: arguments and temporaries; strides: of each axis of an argument; ends: where
    a loop's end is kept; other: C functions that the kernel calls, and macros of their sources.
    """

    variables: Mapping[str, str]
    arrays: Mapping[str, str]
    strides: Mapping[str, Sequence[str]]
    ends: Mapping[str, str]
    other: frozenset[str] = frozenset()

    @property
    def given(self) -> frozenset[str]:
        """All of them."""
        strides = (name for names in self.strides.values() for name in names)
        named = (*self.variables.values(), *self.arrays.values(), *self.ends.values())
        return self.other.union(named, strides)


def c_names(
    kernel: Kernel,
    called: Collection[External],
    reserved: Callable[[str], bool] = is_reserved,
) -> CNames:
    """The names of a kernel that calls these functions, in a file that has their sources. reserved:
    what none is.

    Raises TilesmithError where a function has a name that the emitter declares itself.
    """
    for function in called:
        if is_own(function.symbol):
            raise TilesmithError(
                f"the C function '{function.symbol}' has the name of a variable of emitted code",
                hint="define a function of another name that calls it, in 'source'",
            )
    nodes = statements(kernel)
    loops = [n.var for n in nodes if isinstance(n, Loop)]
    bound = [
        v
        for n in nodes
        for v in ((n.var,) if isinstance(n, Loop) else n.vars if isinstance(n, Delinearize) else ())
    ]
    parameters: list[Buffer] = [p.buffer for p in kernel.parameters]
    other = frozenset(w for e in called for w in (e.symbol, *_MACRO.findall(e.source)))
    free = Distinct({*other}, reserved)
    own = [*kernel.dims, *(s.name for s in kernel.scalars), *(p.name for p in kernel.phases)]
    variables = free.names(own)
    arrays = free.names(buffers(kernel))
    variables |= free.names(v for v in bound if v not in variables)
    strides = {
        b.name: tuple(free.name(f"{arrays[b.name]}_s{k}") for k in range(len(b.shape)))
        for b in parameters
    }
    ends = {v: free.name(f"{variables[v]}_end") for v in dict.fromkeys(loops)}
    return CNames(variables, arrays, strides, ends, other)


def check(text: str, names: CNames, reserved: Callable[[str], bool] = is_reserved) -> None:
    """Raises AssertionError for a word of emitted text that might be the name of something else."""
    given = names.given
    for word in set(_WORD.findall(_NO_NAMES.sub("", text))) - given:
        assert reserved(word), f"'{word}' is in the text, and is not reserved"
