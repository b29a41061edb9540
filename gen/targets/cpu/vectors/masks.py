"""Which lanes of a vector statement are active, as C.

A mask is all lanes, the first `count` lanes, or one vector mask a part. A value of W lanes of B
bits is held in W*B / vector bits native vectors, rounded up, its *parts*; where W lanes do not fill
the last one, its upper lanes mean nothing: in a value they hold anything, in a mask they are off.
"""

from dataclasses import dataclass
from typing import assert_never, final


@final
@dataclass(frozen=True, slots=True)
class Shape:
    """lanes of a vectorized loop on a level with `vector_bits`."""

    lanes: int
    vector_bits: int

    def native(self, bits: int) -> int:
        return self.vector_bits // bits

    def parts(self, bits: int) -> int:
        return max(1, -(-self.lanes // self.native(bits)))

    def room(self, bits: int) -> int:
        """How many lanes the parts have together."""
        return self.parts(bits) * self.native(bits)

    def partial(self, bits: int) -> bool:
        """Whether the last part has lanes that mean nothing."""
        return self.lanes < self.room(bits)

    def count(self, bits: int, part: int) -> int:
        """How many lanes of a part mean something."""
        n = self.native(bits)
        return min(self.lanes - part * n, n)


@final
@dataclass(frozen=True, slots=True)
class All:
    pass


@final
@dataclass(frozen=True, slots=True)
class First:
    """count: C text of an int64_t in [0, lanes]."""

    count: str


@final
@dataclass(frozen=True, slots=True)
class Bits:
    """parts: C text of masks of lanes `bits` wide, off where lanes mean nothing (see `clipped`)."""

    bits: int
    parts: tuple[str, ...]


Mask = All | First | Bits


def count_in(shape: Shape, bits: int, part: int, count: str) -> str:
    """How many lanes of a part are among the first `count`."""
    if shape.parts(bits) == 1:
        return count
    n = shape.native(bits)
    start = f"{count} - {part * n}" if part else count
    return f"ts_min_i64_s(ts_max_i64_s({start}, 0), {shape.count(bits, part)})"


def as_bits(mask: Mask, bits: int, shape: Shape) -> Bits:
    match mask:
        case All():
            return as_bits(First(str(shape.lanes)), bits, shape)
        case First(count):
            counts = (count_in(shape, bits, q, count) for q in range(shape.parts(bits)))
            return Bits(bits, tuple(f"ts_first_m{bits}({k})" for k in counts))
        case Bits(own, parts):
            return mask if own == bits else clipped(bits, widths(parts, own, bits, shape), shape)
        case _:
            assert_never(mask)


def clipped(bits: int, parts: tuple[str, ...], shape: Shape) -> Bits:
    """The mask of parts that may be on in lanes that mean nothing."""
    if not shape.partial(bits):
        return Bits(bits, parts)
    *full, last = parts
    within = f"ts_first_m{bits}({shape.count(bits, len(full))})"
    return Bits(bits, (*full, f"ts_mand_m{bits}({last}, {within})"))


def widths(parts: tuple[str, ...], old: int, new: int, shape: Shape) -> tuple[str, ...]:
    """Masks of lanes of one width as masks of another. Lanes that mean nothing may be on."""
    while old != new:
        step = 2 * old if new > old else old // 2
        parts = convert(parts, (f"m{old}", old), (f"m{step}", step), shape)
        old = step
    return parts


def convert(
    parts: tuple[str, ...], old: tuple[str, int], new: tuple[str, int], shape: Shape
) -> tuple[str, ...]:
    """Lanes of one (type, width) as lanes of another, a factor of two in width at most.

    Lanes that mean nothing may hold copies of others.
    """
    (a, narrow), (b, wide) = old, new
    if wide > narrow:
        halves = [f"ts_{half}_{b}_{a}({p})" for p in parts for half in ("lo", "hi")]
        return tuple(halves[: shape.parts(wide)])
    if wide < narrow:
        pairs = [(parts[i], parts[min(i + 1, len(parts) - 1)]) for i in range(0, len(parts), 2)]
        return tuple(f"ts_narrow_{b}_{a}({lo}, {hi})" for lo, hi in pairs)
    return parts


def some(mask: Mask) -> str:
    """Whether a lane is on."""
    match mask:
        case All():
            return "true"
        case First(count):
            return f"{count} > 0"
        case Bits(bits, parts):
            return " || ".join(f"ts_any_m{bits}({p})" for p in parts)
        case _:
            assert_never(mask)


def beyond(mask: Mask, first: Mask, shape: Shape) -> str:
    """Whether a lane of `mask` is not in `first`, where both are counts; else empty."""
    match mask, first:
        case All(), First(count):
            return f"{count} < {shape.lanes}"
        case First(active), First(count):
            return f"{count} < {active}"
        case _:
            return ""


def both(a: Mask, b: Mask, shape: Shape) -> Mask:
    """Lanes that are active in both."""
    match a, b:
        case All(), _:
            return b
        case _, All():
            return a
        case First(x), First(y):
            return First(f"ts_min_i64_s({x}, {y})")
        case _:
            bits = a.bits if isinstance(a, Bits) else b.bits if isinstance(b, Bits) else 32
            return combine("and", as_bits(a, bits, shape), as_bits(b, bits, shape), shape)


def combine(op: str, a: Bits, b: Mask, shape: Shape) -> Bits:
    """Mand, mor or mxor, lane by lane."""
    rhs = as_bits(b, a.bits, shape)
    pairs = zip(a.parts, rhs.parts, strict=True)
    return Bits(a.bits, tuple(f"ts_m{op}_m{a.bits}({x}, {y})" for x, y in pairs))


def negate(a: Bits, shape: Shape) -> Bits:
    return clipped(a.bits, tuple(f"ts_mnot_m{a.bits}({p})" for p in a.parts), shape)
