"""Random kernels: maps, stencils, reductions, triangles, recurrences, gathers, sweeps.

Input: a source of random numbers. Output: a draft of one to four statements, each of which reads
what the one before it defined. Values stay small, so that sums are exact in any order.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import final

from .draft import Draft

ELEMENTS = ("float32", "float32", "float64", "int32", "int64", "int16")
_DIMS = ("m", "n")


@final
@dataclass
class _Writer:
    """The kernel so far. last: the array that the next statement reads."""

    random: Random
    element: str
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    inout: set[str] = field(default_factory=set)
    constraints: list[str] = field(default_factory=list)
    scalars: dict[str, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    last: str = ""

    def array(self, prefix: str, shape: tuple[str, ...], of: str = "T") -> str:
        count = sum(name[0] == prefix for name in self.shapes)
        name = f"{prefix}{count}"
        self.shapes[name], self.types[name] = shape, of
        return name

    def define(self, shape: tuple[str, ...]) -> str:
        self.last = self.array("t", shape)
        return self.last

    def least(self, dim: str, size: int) -> None:
        self.constraints.append(f"{dim} >= {size}")

    def term(self, main: str, indices: tuple[str, ...], extents: tuple[str, ...]) -> str:
        """An expression of `main` and of other arrays at the indices."""
        pick = self.random.random
        if pick() < 0.3:
            return self.random.choice((main, f"2 * {main}", f"abs({main})", f"-{main} + 1"))
        kept = [k for k in range(len(indices)) if pick() < 0.7]
        shape = tuple(extents[k] for k in kept)
        known = [a for a, s in self.shapes.items() if s == shape and self.types[a] == "T"]
        fresh = not known or pick() < 0.6
        other = self.array("x", shape) if fresh else self.random.choice(known)
        value = other + (f"[{', '.join(indices[k] for k in kept)}]" if kept else "")
        forms = [
            f"{main} + {value}",
            f"{main} - {value}",
            f"min({main}, {value})",
            f"max({main}, {value}) - 1",
            f"{main} if {main} > {value} else {value} + 1",
            f"{main} + abs({value})",
        ]
        if indices:  # a choice that may be the same for a whole vector
            forms.append(f"{main} if {self.random.choice(indices)} % 2 == 0 else {value} - 1")
        if other[0] == "x":  # of inputs alone, so that values stay small
            forms += [f"{main} * {value}"] * 3
        return self.random.choice(forms)


def draw(random: Random) -> Draft:
    """A kernel of which every size is one of an input's, as a spec's must be."""
    while True:
        draft = _draw(random)
        roles = draft.arrays
        given = [draft.shapes[a] for a, role in roles.items() if role in ("in", "inout")]
        if set(draft.dims) == {_dim(extent) for shape in given for extent in shape}:
            return draft


def _draw(random: Random) -> Draft:
    w = _Writer(random, random.choice(ELEMENTS))
    if random.random() < 0.35:
        random.choice((_sweep, _time_steps, _accumulate))(w)
    else:
        rank = random.choice((1, 2, 2))
        square = random.random() < 0.2
        dims = [random.choice(_DIMS)] * rank if square else random.sample(_DIMS, rank)
        wide = random.random() < 0.3
        w.last = w.array("x", tuple(f"{d} + 2" if wide and d == dims[-1] else d for d in dims))
        for _ in range(random.choice((1, 1, 2, 2, 3, 4))):
            random.choice(_PATTERNS[len(w.shapes[w.last])])(w)
    return Draft(
        w.element,
        w.shapes,
        w.types,
        frozenset(w.inout),
        tuple(dict.fromkeys(w.constraints)),
        w.scalars,
        "\n".join(w.lines),
    )


def _indices(shape: tuple[str, ...]) -> tuple[str, ...]:
    return ("i", "j", "k")[: len(shape)]


def _at(array: str, indices: tuple[str, ...]) -> str:
    return f"{array}[{', '.join(indices)}]" if indices else array


def _dim(extent: str) -> str:
    return extent.split(" ")[0]


# ---------------------------------------------------------------- statements of a chain


def _map(w: _Writer) -> None:
    read, shape = w.last, w.shapes[w.last]
    indices = _indices(shape)
    value = w.term(_at(read, indices), indices, shape)
    w.lines.append(f"{_at(w.define(shape), indices)} = {value}")


def _transpose(w: _Writer) -> None:
    read, shape = w.last, w.shapes[w.last]
    indices = _indices(shape)
    value = w.term(_at(read, indices[::-1]), indices, shape[::-1])
    w.lines.append(f"{_at(w.define(shape[::-1]), indices)} = {value}")


def _spread(w: _Writer) -> None:
    """A vector along the rows or columns of a matrix."""
    read, (extent,) = w.last, w.shapes[w.last]
    shape = w.random.choice(((extent, "m"), ("n", extent)))
    index = "i" if shape[0] == extent else "j"
    value = w.term(f"{read}[{index}]", ("i", "j"), shape)
    w.lines.append(f"{w.define(shape)}[i, j] = {value}")


def _reduce(w: _Writer) -> None:
    """Over one axis, or all of them."""
    read, shape = w.last, w.shapes[w.last]
    indices = _indices(shape)
    over = list(range(len(shape)))
    if len(shape) > 1 and w.random.random() < 0.8:
        over = [w.random.choice(over)]
    combiner = w.random.choice(("sum", "sum", "sum", "max", "min"))
    if combiner != "sum":
        for k in over:
            w.least(_dim(shape[k]), 1)
    value = w.term(_at(read, indices), indices, shape)
    condition = f" if {indices[over[-1]]} % 2 == 0" if w.random.random() < 0.1 else ""
    if combiner != "sum":
        condition = ""
    loops = " ".join(f"for {indices[k]} in range({shape[k]})" for k in over)
    kept = [k for k in range(len(shape)) if k not in over]
    result = w.define(tuple(shape[k] for k in kept))
    at = _at(result, tuple(indices[k] for k in kept))
    w.lines.append(f"{at} = {combiner}({value} {loops}{condition})")


def _product(w: _Writer) -> None:
    read, (rows, inner) = w.last, w.shapes[w.last]
    other = w.array("x", (inner, w.random.choice(_DIMS)))
    columns = w.shapes[other][1]
    result = w.define((rows, columns))
    w.lines.append(f"{result}[i, j] = sum({read}[i, k] * {other}[k, j] for k in range({inner}))")


def _stencil(w: _Writer) -> None:
    """Over neighbours along the last axis: clamped, around a ring, or those of a wider array."""
    read, shape = w.last, w.shapes[w.last]
    indices = _indices(shape)
    j, extent = indices[-1], shape[-1]
    if extent.endswith("+ 2"):
        inner = _dim(extent)
        places = [j, f"{j} + 1", f"{j} + 2"]
    elif w.random.random() < 0.3:
        inner = extent
        places = [f"({j} - 1) % {extent}", j, f"({j} + {w.random.choice((1, 2))}) % {extent}"]
    else:
        inner = extent
        places = [f"max({j} - 1, 0)", j, f"min({j} + {w.random.choice((1, 2))}, {extent} - 1)"]
    taken = w.random.sample(places, w.random.choice((2, 3)))
    value = " + ".join(_at(read, (*indices[:-1], p)) for p in taken)
    result = w.define((*shape[:-1], inner))
    explicit = list(zip(indices, w.shapes[result], strict=True)) if inner != extent else []
    for depth, (index, size) in enumerate(explicit):
        w.lines.append(f"{'    ' * depth}for {index} in range({size}):")
    w.lines.append(f"{'    ' * len(explicit)}{_at(result, indices)} = {value}")


def _triangle(w: _Writer) -> None:
    """Sums of rows of a triangle, lower or upper, or a running sum."""
    read, (rows, columns) = w.last, w.shapes[w.last]
    if w.random.random() < 0.5 or rows != columns:
        result = w.define((rows, columns))
        w.lines.append(f"{result}[i, j] = sum({read}[i, k] for k in range(j + 1))")
        return
    domain = w.random.choice(("i + 1", f"i, {rows}"))
    value = w.term(f"{read}[i, j]", ("i", "j"), (rows, columns))
    w.lines.append(f"{w.define((rows,))}[i] = sum({value} for j in range({domain}))")


def _running(w: _Writer) -> None:
    read, (extent,) = w.last, w.shapes[w.last]
    combiner = w.random.choice(("sum", "max"))
    w.lines.append(f"{w.define((extent,))}[i] = {combiner}({read}[j] for j in range(i + 1))")


def _halves(w: _Writer) -> None:
    """An array defined in two parts."""
    read, (rows, columns) = w.last, w.shapes[w.last]
    value = w.term(f"{read}[i, j]", ("i", "j"), (rows, columns))
    result = w.define((rows, columns))
    w.least(_dim(columns), 1)
    w.lines += [
        f"for i in range({rows}):",
        f"    {result}[i, 0] = {read}[i, 0]",
        f"    for j in range(1, {columns}):",
        f"        {result}[i, j] = {value}",
    ]


def _recurrence(w: _Writer) -> None:
    """Each element from the one before it, along the last axis."""
    read, shape = w.last, w.shapes[w.last]
    indices = _indices(shape)
    j, extent = indices[-1], shape[-1]
    w.least(_dim(extent), 1)
    result = w.define(shape)
    here, first = _at(read, indices), _at(read, (*indices[:-1], "0"))
    before = _at(result, (*indices[:-1], f"{j} - 1"))
    value = w.random.choice((f"{before} + {here}", f"max({before}, {here})", f"{here} - {before}"))
    depth = "    " * (len(shape) - 1)
    w.lines += [f"for i in range({shape[0]}):"] if len(shape) > 1 else []
    w.lines += [
        f"{depth}{_at(result, (*indices[:-1], '0'))} = {first}",
        f"{depth}for {j} in range(1, {extent}):",
        f"{depth}    {_at(result, indices)} = {value}",
    ]


def _gather(w: _Writer) -> None:
    read, shape = w.last, w.shapes[w.last]
    indices = _indices(shape)
    axis = w.random.randrange(len(shape))
    length = w.random.choice(_DIMS)
    at = w.array("p", (length,), "int64")
    w.least(_dim(shape[axis]), 1)
    position = f"min(max({at}[{indices[axis]}], 0), {shape[axis]} - 1)"
    places = tuple(position if k == axis else v for k, v in enumerate(indices))
    result = w.define(tuple(length if k == axis else e for k, e in enumerate(shape)))
    w.lines.append(f"{_at(result, indices)} = {_at(read, places)}")


_PATTERNS: dict[int, tuple[Callable[[_Writer], None], ...]] = {
    0: (_map,),
    1: (_map, _map, _spread, _spread, _reduce, _stencil, _running, _recurrence, _gather),
    2: (
        *(_map, _map, _map, _transpose, _reduce, _reduce, _reduce, _product, _stencil, _stencil),
        *(_triangle, _triangle, _halves, _recurrence, _gather),
    ),
}


# ---------------------------------------------------------------- in place


def _sweep(w: _Writer) -> None:
    """Gauss-Seidel sweeps: values of this sweep and of the one before."""
    a = w.array("a", ("n",) if w.random.random() < 0.5 else ("m", "n"))
    w.inout.add(a)
    w.scalars["steps"] = 3
    lines, indices = ["for t in range(steps):"], _indices(w.shapes[a])
    for depth, (index, extent) in enumerate(zip(indices, w.shapes[a], strict=True), 1):
        lines.append(f"{'    ' * depth}for {index} in range(1, {extent} - 1):")
    j = indices[-1]
    near = [_at(a, (*indices[:-1], p)) for p in (f"{j} - 1", f"{j} + 1")]
    if len(indices) > 1:
        near += [_at(a, ("i - 1", "j")), _at(a, ("i + 1", w.random.choice(("j", "j - 1"))))]
    value = f"{_at(a, indices)} + {' - '.join(w.random.sample(near, 2))}"
    lines.append(f"{'    ' * (len(indices) + 1)}{_at(a, indices)} = {value}")
    w.lines += lines


def _time_steps(w: _Writer) -> None:
    """Jacobi steps between two arrays."""
    a, b = w.array("a", ("n",)), w.array("t", ("n",))
    w.inout.add(a)
    w.scalars["steps"] = 3
    w.lines += [
        "for t in range(steps):",
        "    for i in range(1, n - 1):",
        f"        {b}[i] = {a}[i - 1] + {a}[i] - {a}[i + 1]",
        "    for i in range(1, n - 1):",
        f"        {a}[i] = {b}[i]",
    ]


def _accumulate(w: _Writer) -> None:
    """Updates of what an argument held, over a rectangle or a triangle."""
    a = w.array("a", ("m",) if w.random.random() < 0.5 else ("m", "n"))
    w.inout.add(a)
    indices = _indices(w.shapes[a])
    over = w.random.choice(("n", "i + 1"))
    read = w.array("x", ("m", "n" if over == "n" else "m"))
    lines = []
    for depth, (index, extent) in enumerate(zip(indices, w.shapes[a], strict=True)):
        lines.append(f"{'    ' * depth}for {index} in range({extent}):")
    depth = len(indices)
    lines.append(f"{'    ' * depth}for k in range({over}):")
    sign = w.random.choice(("+", "-"))
    lines.append(f"{'    ' * (depth + 1)}{_at(a, indices)} {sign}= {read}[i, k]")
    w.lines += lines
