"""A kernel as it is written: the arrays so far, and random expressions of them.

Input: a source of random numbers. Output: texts of the language. Values stay small, so that sums of
floats are exact in any order; integers may wrap, which no order changes.
"""

from dataclasses import dataclass, field
from random import Random
from typing import final

from .reductions import limits

DIMS = ("m", "n")


@final
@dataclass
class Writer:
    """The kernel so far. last: the array that the next statement reads; of: its type."""

    random: Random
    element: str
    data: str
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    inout: set[str] = field(default_factory=set)
    constraints: list[str] = field(default_factory=list)
    scalars: dict[str, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    reductions: list[str] = field(default_factory=list)
    last: str = ""
    of: str = "T"

    @property
    def kind(self) -> str:
        """Of the values of `last`: f, i, u or c."""
        named = self.element if self.of == "T" else self.of
        return "f" if "float" in named else named[0]

    @property
    def named(self) -> str:
        return self.element if self.of == "T" else self.of

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def array(self, prefix: str, shape: tuple[str, ...], of: str | None = None) -> str:
        count = sum(name[0] == prefix for name in self.shapes)
        name = f"{prefix}{count}"
        self.shapes[name], self.types[name] = shape, self.of if of is None else of
        return name

    def define(self, shape: tuple[str, ...], of: str | None = None) -> str:
        """A new array, which the next statement reads."""
        self.of = self.of if of is None else of
        self.last = self.array("t", shape)
        return self.last

    def least(self, dim: str, size: int) -> None:
        self.constraints.append(f"{dim} >= {size}")

    def position(self, dim: str, at: str) -> str:
        """Around what an array of positions holds, held inside the dim."""
        self.least(dim_of(dim), 1)
        moved = self.random.choice((at, at, f"{at} + 1", f"2 * {at} - 1", f"-{at}", f"{at} // 2"))
        return self.random.choice((
            f"min(max({moved}, 0), {dim} - 1)",
            f"({moved}) % {dim}",
        ))  # fmt: skip

    # ------------------------------------------------------------ expressions

    def term(self, main: str, indices: tuple[str, ...], extents: tuple[str, ...]) -> str:
        """An expression of `main` and of other arrays at the indices."""
        if self.chance(0.2) and self.kind != "c":
            return self.random.choice((main, f"2 * {main}", f"abs({main})", f"-{main} + 1"))
        terms = _Terms(self, indices, extents)
        return terms.numeric(self.random.choice((1, 1, 2, 2, 3)), main)

    def condition(self, main: str, indices: tuple[str, ...], extents: tuple[str, ...]) -> str:
        """What may hold of `main`."""
        return _Terms(self, indices, extents).truth(self.random.choice((0, 1)), main)

    def other(self, indices: tuple[str, ...], extents: tuple[str, ...]) -> str:
        """An element of another array at some of the indices."""
        kept = [k for k in range(len(indices)) if self.chance(0.7)]
        shape = tuple(extents[k] for k in kept)
        known = [a for a, s in self.shapes.items() if s == shape and self.types[a] == self.of]
        fresh = not known or self.chance(0.5)
        name = self.array("x", shape) if fresh else self.random.choice(known)
        return at(name, tuple(indices[k] for k in kept))


@final
@dataclass(frozen=True)
class _Terms:
    """Expressions at some indices, each operator in every other."""

    w: Writer
    indices: tuple[str, ...]
    extents: tuple[str, ...]

    def leaf(self) -> str:
        if self.w.chance(0.6):
            return self.w.other(self.indices, self.extents)
        return self.constant()

    def constant(self) -> str:
        if self.w.kind == "c":
            return self.w.random.choice(("1", "2j", "(1 - 1j)"))
        if self.w.kind != "f" and self.w.chance(0.25):
            return f"({self.w.random.choice(limits(self.w.named))})"
        return self.w.random.choice(("0", "1", "2", "3", "(-1)"))

    def small(self) -> str:
        """What a value may be multiplied with."""
        if self.w.chance(0.5):
            return self.constant() if self.w.kind != "f" else self.w.random.choice("0123")
        return (
            at(self.w.array("x", (self.extents[-1],)), (self.indices[-1],)) if self.indices else "2"
        )

    def numeric(self, depth: int, main: str | None = None) -> str:
        """A number; with `main` somewhere in it, if there is one."""
        if depth == 0:
            return main or self.leaf()
        a = self.numeric(depth - 1, main)
        b = self.numeric(self.w.random.randrange(depth), None)
        a, b = (f"({a})", f"({b})") if self.w.chance(0.9) else (f"({b})", f"({a})")
        if self.w.kind == "c":
            return self._complex(a, b, depth)
        forms = [
            *(f"{a} + {b}", f"{a} - {b}", f"{a} - {b}", f"-{a}", f"{b} - {a}", f"1 - {a}"),
            *self._minus(a, b),
            *(f"min({a}, {b})", f"max({a}, {b}) - 1", f"abs({a})", f"min({a}, {b}, 1)"),
            *(f"{a} * {self.small()}", f"{a} * {self.small()} + {b}", f"{self.small()} * -{a}"),
        ]
        if depth > 1 or self.w.chance(0.4):
            test = self.truth(depth - 1, a)
            forms += [f"{a} if {test} else {b}", f"select({test}, {a}, {b} + 1)"] * 2
        forms += self._floats(a, b) if self.w.kind == "f" else self._integers(a, b)
        return self.w.random.choice(forms)

    def _complex(self, a: str, b: str, depth: int) -> str:
        test = self.truth(depth - 1, a)
        forms = [f"{a} + {b}", f"{a} - {b}", f"-{a}", f"{a} * {self.small()}", f"conj({a})"]
        forms += [f"{a} if {test} else {b}", f"complex(imag({a}), real({b}))", f"{a} ** 2"]
        return self.w.random.choice(forms + self._minus(a, b))

    def _minus(self, a: str, b: str) -> list[str]:
        """Signs before signs: rarely, since each is of the same kind."""
        return [f"{a} - -{b}", f"-(-{a})", f"- -{a} + {b}"] if self.w.chance(0.15) else []

    def _floats(self, a: str, b: str) -> list[str]:
        forms = [f"floor({a} / 2)", f"fma({a}, {self.small()}, {b})", f"{a} * 0.5", f"ceil({a})"]
        forms += [f"round({a} / 2)", f"trunc({a} / 2)", f"sign({a})", f"fmod({a}, 3)"]
        forms += [f"copysign({a}, {self.constant()})"]
        if self.w.data in ("small", "ties"):
            forms += [f"T(int32({a}))"] if self.w.of == "T" else []
        return forms

    def _integers(self, a: str, b: str) -> list[str]:
        bits = int(self.w.named.lstrip("uint"))
        by = self.w.random.choice(("1", "2", "3", str(bits - 1), f"({b} & {bits - 1})", b))
        divisor = self.w.random.choice(("2", "3", "7", f"(({b} & 3) + 1)", b))
        if self.w.kind == "i" and self.w.chance(0.3):
            divisor = self.w.random.choice(("(-1)", "(-3)"))
        cast = self.w.random.choice(
            ("int8", "uint8", "int16", "uint16", "int32", "int64", "uint64")
        )
        return [
            *(f"{a} & {b}", f"{a} | {b}", f"{a} ^ {b}", f"~{a}", f"{a} << {by}", f"{a} >> {by}"),
            *(f"{a} // {divisor}", f"{a} % {divisor}", f"{self.w.of}({cast}({a}))", f"{a} * {b}"),
            *(f"{a} ** 2", f"{a} * {a} * {b}", f"min({a}, {a} + 1)", f"max({a} - {b}, {a})"),
        ]

    def truth(self, depth: int, main: str) -> str:
        """A condition; `main` is a number to compare."""
        signs = ("==", "!=") if self.w.kind == "c" else ("<", "<=", ">", ">=", "==", "!=")
        other, sign = self.leaf(), self.w.random.choice(signs)
        forms = [f"{main} {sign} {other}"] * 3
        if self.indices:  # a choice that may be the same for a whole vector
            k = self.w.random.randrange(len(self.indices))
            index, extent = self.indices[k], self.extents[k]
            forms += [f"{index} % 2 == 0", f"{index} < {extent} // 2", f"0 < {index} <= 3"]
        if self.w.kind == "f":
            forms.append(
                self.w.random.choice((f"isnan({main})", f"isinf({main})", f"isfinite({main})"))
            )
        elif self.w.kind != "c":  # what holds of numbers that do not wrap
            forms += [f"{main} + 1 {sign} {main}", f"{main} - {other} {sign} 0"]
        if depth > 0:
            a, b = self.truth(depth - 1, main), self.truth(depth - 1, other)
            forms += [f"({a}) and ({b})", f"({a}) or not ({b})", f"not ({a})"]
            forms += [f"0 < {main} <= 3"] if self.w.kind != "c" else []
        return self.w.random.choice(forms)


def at(array: str, indices: tuple[str, ...]) -> str:
    return f"{array}[{', '.join(indices)}]" if indices else array


def indices_of(shape: tuple[str, ...]) -> tuple[str, ...]:
    return ("i", "j", "k")[: len(shape)]


def dim_of(extent: str) -> str:
    return extent.split(" ")[0]
