"""A scheduled tree tested against the plain one, where data hides from the proof what reads take.

Input: both trees. Output: nothing; a Refused with sizes, the arrays that decide, the element, what
the spec has there and what the tree. Both run in the interpreter, the tree's parallel iterations in
a drawn order: on sizes at the edges, those around 0, around each number of the trees and around
twice that, and at three times that; and integer arrays that are as bad as positions can be
(`FORMS`). The same cases each time. Blocks that data may make meet have to meet in one of them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...ir.algebra import conjuncts
from ...ir.interpret.evaluate import InterpError, numpy_dtype
from ...ir.interpret.interp import run
from ...ir.interpret.machine import Trace
from ...ir.interpret.sizes import SizeError, value
from ...ir.nodes import Binary, BinaryOp, Buffer, Const, Intent, Kernel, Var
from ...ir.types import INDEX, DType, Kind
from ...ir.walk import externals, walk
from ..witness import Refused, Witness
from .hidden_sources import Meeting

Array = NDArray[Any]
Sizes = Mapping[str, int]

SIZES = 64  # at most, and of each as many cases as there are FORMS
POINTS = (
    4096  # of the largest box of all sizes together: the interpreter takes microseconds a point
)
LARGEST = 513  # distances, and sizes of tiles, that the interpreter has the time for


def compare(plain: Kernel, tree: Kernel, meetings: frozenset[Meeting]) -> None:
    """Raises Refused where the tree gives something else than the plain schedule, or where there is
    nothing to compare. meetings: what has to happen in some case.
    """
    if externals(tree):
        raise Refused("data hides where values come from, and external functions cannot be tested")
    random, trace = np.random.default_rng(0), Trace()
    any_ = False
    for sizes in _edges(plain, tree, random):
        for form in range(len(FORMS)):
            arrays = _inputs(plain, sizes, form, random)
            any_ |= _compared(plain, tree, sizes, arrays, form, trace)
            trace = Trace(trace.met)
    if not any_:
        raise Refused(
            "data hides where values come from, and there are no sizes small enough for a test"
        )
    for reader, buffer, writer, later in sorted(meetings - trace.met):
        does = "writes later" if later else "has made"
        raise Refused(
            "data hides where values come from, and no test tells: with none of the sizes and"
            f" arrays that were tried does block '{reader}' read elements of '{buffer}' that"
            f" another iteration, of block '{writer}', {does}"
        )


def _compared(
    plain: Kernel,
    tree: Kernel,
    sizes: Sizes,
    arrays: Mapping[str, Array],
    seed: int,
    trace: Trace,
) -> bool:
    """Whether there was something to compare. Raises Refused for a difference."""
    scalars = {
        s.name: sizes[s.name] if s.dtype is INDEX else _scalar(s.dtype) for s in plain.scalars
    }
    dims = {name: sizes[name] for name in plain.dims}
    try:
        wanted = run(plain, arrays, scalars, dims=dims, trace=trace)
    except InterpError:
        return False  # the spec itself says nothing here, as of the largest of no integers
    try:
        got = run(tree, arrays, scalars, dims=dims, seed=seed)
    except InterpError as error:
        raise _differs(sizes, arrays, error.message) from None
    for name, expected in wanted.items():
        wrong = np.argwhere(~_close(expected, got[name]))
        if len(wrong):
            at = tuple(map(int, wrong[0]))
            what = f"{name}{list(at)} is {got[name][at]}, and by the spec {expected[at]}"
            raise _differs(sizes, arrays, what, name, at)
    return any(array.size > 1 for array in wanted.values())


def _differs(
    sizes: Sizes,
    arrays: Mapping[str, Array],
    what: str,
    name: str | None = None,
    at: tuple[int, ...] = (),
) -> Refused:
    deciding = {n: a for n, a in arrays.items() if a.dtype.kind in "iub"} or arrays
    given = ", ".join(f"{n} = {_text(a)}" for n, a in deciding.items())
    return Refused(
        f"data hides where values come from, and a test finds a difference: {what}; with {given}",
        Witness(sizes, (), name, at),
    )


def _text(array: Array) -> str:
    return np.array2string(array, threshold=32, separator=", ", max_line_width=10**6).replace(
        "\n", ""
    )


def _close(expected: Array, got: Array) -> NDArray[np.bool_]:
    """Element for element: as integers, or up to another order of sums."""
    if expected.dtype.kind in "iub":
        return np.asarray(expected == got)
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    a, b = expected.astype(wide), got.astype(wide)
    finite = np.abs(a[np.isfinite(a)])
    part = expected.dtype.itemsize // (2 if expected.dtype.kind == "c" else 1)
    tolerance = {2: 2.0**-6, 4: 2.0**-17, 8: 2.0**-42}[part]
    scale = tolerance * float(finite.max(initial=0))
    return np.isclose(a, b, rtol=tolerance, atol=scale, equal_nan=True)


# ---------------------------------------------------------------- sizes


def _edges(plain: Kernel, tree: Kernel, random: np.random.Generator) -> list[dict[str, int]]:
    """Sizes that the kernel takes: each edge for all dims, then for each alone. Of more than SIZES
    some from all over. Refuses numbers that are too large for such sizes.
    """
    names = (*plain.dims, *(s.name for s in plain.scalars if s.dtype is INDEX))
    numbers = {
        abs(n.value)
        for n in (*walk(plain), *walk(tree))
        if isinstance(n, Const) and isinstance(n.value, int) and n.dtype is INDEX
    } - {0, 1}
    if too_large := [c for c in numbers if c > LARGEST]:
        raise Refused(
            f"data hides where values come from, and no test tells: {min(too_large)} is too large"
            f" a number, since sizes around it take too long (up to {LARGEST} they do not)"
        )
    around = {m * c + k for c in numbers for m in (1, 2) for k in (-1, 0, 1, 2)}
    edges = sorted({0, 1, 2, 3, 5} | around | {3 * c for c in numbers})
    if not names:
        edges = [0]
    drawn = [dict.fromkeys(names, e) for e in edges]
    for e in edges:
        for name in names if len(names) > 1 else ():
            others = {n: int(random.choice(edges[:6])) for n in names}
            drawn.append({**others, name: e})
    settled = (_settled(plain, sizes) for sizes in drawn)
    distinct = {tuple(sizes.values()): sizes for sizes in settled}.values()
    found = [s for s in distinct if _taken(plain, s) and _taken(tree, s)]
    chosen = np.linspace(0, len(found) - 1, min(len(found), SIZES)).astype(int)
    return [found[k] for k in chosen]


def _settled(plain: Kernel, sizes: dict[str, int]) -> dict[str, int]:
    """The sizes, but for those of which an assumption says what they are: none that was drawn would
    be right. What is a number comes first, since others may follow from it.
    """
    parts = [part for assumption in plain.assumptions for part in conjuncts(assumption)]
    told = [
        (part.lhs.name, part.rhs)
        for part in parts
        if isinstance(part, Binary) and part.op is BinaryOp.EQ and isinstance(part.lhs, Var)
    ]
    for name, expr in sorted(told, key=lambda pair: not isinstance(pair[1], Const)):
        try:
            sizes = {**sizes, name: value(expr, sizes)}
        except SizeError:
            return sizes  # which are not taken
    return sizes


def _taken(kernel: Kernel, sizes: Sizes) -> bool:
    """Whether the kernel takes the sizes, and the interpreter has the time."""
    values = {**{s.name: _scalar(s.dtype).real for s in kernel.scalars}, **sizes}
    try:
        right = all(value(a, values) for a in kernel.assumptions)
        extents = [value(e, values) for p in kernel.parameters for e in p.buffer.shape]
    except SizeError:
        return False
    points = int(np.prod([max(n, 1) for n in sizes.values()], dtype=np.int64))
    extents += [sizes[dim] for dim in kernel.dims]
    return right and all(e >= 0 for e in extents) and points <= POINTS


def _scalar(dtype: DType) -> complex:
    """What a scalar that is no size is: no number that leaves others as they are."""
    match dtype.kind:
        case Kind.BOOL:
            return True
        case Kind.SIGNED | Kind.UNSIGNED:
            return 3
        case Kind.FLOAT | Kind.COMPLEX:
            return 1.5


# ---------------------------------------------------------------- arrays


def _inputs(
    kernel: Kernel, sizes: Sizes, form: int, random: np.random.Generator
) -> dict[str, Array]:
    """The arrays that a call gives: the first of integers in the form, the others in drawn ones."""
    arrays: dict[str, Array] = {}
    forms = iter((form,))
    for buffer in (p.buffer for p in kernel.parameters if p.intent is not Intent.OUT):
        shape = tuple(value(e, sizes) for e in buffer.shape)
        if buffer.dtype.kind in (Kind.FLOAT, Kind.COMPLEX):
            low = 1 if form % 2 else -8  # no NaN of roots and logarithms in every other case
            numbers = random.integers(low, 9, shape)
        else:
            chosen = next(forms, int(random.integers(len(FORMS))))
            numbers = FORMS[chosen](int(np.prod(shape)), max(sizes.values(), default=1), random)
        arrays[buffer.name] = _of_type(numbers.reshape(shape), buffer)
    return arrays


def _of_type(numbers: Array, buffer: Buffer) -> Array:
    dtype = numpy_dtype(buffer.dtype)
    if dtype.kind in "iu":
        numbers = numbers.clip(np.iinfo(dtype).min, np.iinfo(dtype).max)
    return np.asarray(numbers % 2 if dtype.kind == "b" else numbers).astype(dtype)


Form = Callable[[int, int, np.random.Generator], Array]

FORMS: tuple[Form, ...] = (
    lambda count, size, random: random.permutation(count),
    lambda count, size, random: np.arange(count)[::-1],
    lambda count, size, random: np.full(count, size - 1),
    lambda count, size, random: random.integers(0, size + 1, count),
    lambda count, size, random: np.arange(count),
    lambda count, size, random: np.sort(random.integers(0, size + 1, count)),
    lambda count, size, random: np.zeros(count, np.int64),
    lambda count, size, random: random.integers(-2, size + 3, count),
)
"""Integers that may be positions, in arrays whose axes have up to `size` elements: a permutation,
reversed, the last alone, repeated out of order, in order, ascending, the first alone, and outside.
"""
