"""Statements of a chain: each reads what the one before it defined."""

from collections.abc import Callable

from .reductions import OF_NUMBERS, PARTS, REDUCTIONS, TERMS
from .writer import DIMS, Writer, at, dim_of, indices_of

_WIDER = {
    "int8": "int32", "int16": "int64", "int32": "int64", "uint8": "uint32", "uint16": "int32",
    "float32": "float64", "float16": "float32", "bfloat16": "float32",
}  # fmt: skip


def _map(w: Writer) -> None:
    read, shape = w.last, w.shapes[w.last]
    indices = indices_of(shape)
    value = w.term(at(read, indices), indices, shape)
    w.lines.append(f"{at(w.define(shape), indices)} = {value}")


def _widen(w: Writer) -> None:
    """A product, or a copy, in a wider type."""
    read, shape = w.last, w.shapes[w.last]
    wider = _WIDER.get(w.named)
    if wider is None:
        return _map(w)
    indices = indices_of(shape)
    a, b = at(read, indices), w.other(indices, shape)
    value = w.random.choice(
        (f"{wider}({a})", f"{wider}({a}) * {wider}({b})", f"{wider}({a} + {b})")
    )
    w.lines.append(f"{at(w.define(shape, wider), indices)} = {value}")
    return None


def _transpose(w: Writer) -> None:
    read, shape = w.last, w.shapes[w.last]
    indices = indices_of(shape)
    value = w.term(at(read, indices[::-1]), indices, shape[::-1])
    w.lines.append(f"{at(w.define(shape[::-1]), indices)} = {value}")


def _spread(w: Writer) -> None:
    """A vector along the rows or columns of a matrix."""
    read, (extent,) = w.last, w.shapes[w.last]
    shape = w.random.choice(((extent, "m"), ("n", extent)))
    index = "i" if shape[0] == extent else "j"
    value = w.term(f"{read}[{index}]", ("i", "j"), shape)
    w.lines.append(f"{w.define(shape)}[i, j] = {value}")


def _axes(w: Writer) -> tuple[list[int], str]:
    """The axes that a reduction runs over, and its loops."""
    shape = w.shapes[w.last]
    over = list(range(len(shape)))
    if len(shape) > 1 and w.chance(0.8):
        over = [w.random.choice(over)]
    indices = indices_of(shape)
    return over, " ".join(f"for {indices[k]} in range({shape[k]})" for k in over)


def _reduce(w: Writer) -> None:
    """Over one axis, or all of them."""
    read, shape = w.last, w.shapes[w.last]
    indices = indices_of(shape)
    over, loops = _axes(w)
    combiner = w.random.choice(("sum", "sum", "sum", "max", "min", "prod"))
    if w.kind == "c" or (combiner == "prod" and w.kind == "f" and w.data != "ties"):
        combiner = "sum"
    value = w.term(at(read, indices), indices, shape)
    condition = ""
    if combiner in ("max", "min"):
        for k in over:
            w.least(dim_of(shape[k]), 1)
    elif w.chance(0.2):
        index = indices[over[-1]]
        sign = "!=" if w.kind == "c" else ">"
        condition = w.random.choice((f" if {index} % 2 == 0", f" if {at(read, indices)} {sign} 0"))
    kept = [k for k in range(len(shape)) if k not in over]
    result = w.define(tuple(shape[k] for k in kept))
    place = at(result, tuple(indices[k] for k in kept))
    w.lines.append(f"{place} = {combiner}({value} {loops}{condition})")


def _extreme(w: Writer) -> None:
    """The position of the largest or smallest along an axis."""
    read, shape = w.last, w.shapes[w.last]
    indices = indices_of(shape)
    k = w.random.randrange(len(shape))
    w.least(dim_of(shape[k]), 1)
    value = at(read, indices) if w.chance(0.6) else w.term(at(read, indices), indices, shape)
    kept = [a for a in range(len(shape)) if a != k]
    result = w.define(tuple(shape[a] for a in kept), "int64")
    place, name = at(result, tuple(indices[a] for a in kept)), w.random.choice(("argmax", "argmin"))
    line = f"{place} = {name}({value} for {indices[k]} in range({shape[k]}))"
    if kept and w.chance(0.5):
        (a,) = kept
        w.lines += [f"for {indices[a]} in range({shape[a]}):", f"    {line}"]
    else:
        w.lines.append(line)


def _tuple(w: Writer) -> None:
    """A reduction of the kernel's own."""
    read, shape = w.last, w.shapes[w.last]
    indices = indices_of(shape)
    k = w.random.randrange(len(shape))
    numbers = w.kind != "f" or w.data in ("small", "ties")
    names = [n for n in REDUCTIONS if w.of == "T" and (numbers or n not in OF_NUMBERS)]
    names = ["moments"] if w.kind == "c" and w.of == "T" else names
    if not names or "float16" in w.element:
        return _extreme(w)
    name = w.random.choice(names)
    w.reductions.append(name)
    terms = ", ".join(t.format(x=at(read, indices), j=indices[k]) for t in TERMS[name])
    kept = [a for a in range(len(shape)) if a != k]
    left = tuple(shape[a] for a in kept)
    parts = [w.array("t", left, of) for of in PARTS[name]]
    targets = ", ".join(at(p, tuple(indices[a] for a in kept)) for p in parts)
    w.lines.append(f"{targets} = {name}(({terms}) for {indices[k]} in range({shape[k]}))")
    chosen = w.random.randrange(len(parts))
    w.last, w.of = parts[chosen], PARTS[name][chosen]
    return None


def _product(w: Writer) -> None:
    read, (rows, inner) = w.last, w.shapes[w.last]
    other = w.array("x", (inner, w.random.choice(DIMS)))
    columns = w.shapes[other][1]
    result = w.define((rows, columns))
    w.lines.append(f"{result}[i, j] = sum({read}[i, k] * {other}[k, j] for k in range({inner}))")


def _stencil(w: Writer) -> None:
    """Over neighbours along the last axis: clamped, around a ring, or those of a wider array."""
    read, shape = w.last, w.shapes[w.last]
    indices = indices_of(shape)
    j, extent = indices[-1], shape[-1]
    far = w.random.choice((1, 1, 2, 7))
    if extent.endswith("+ 2"):
        inner = dim_of(extent)
        places = [j, f"{j} + 1", f"{j} + 2"]
    elif w.chance(0.35):
        inner = extent
        places = [
            f"({j} - {far}) % {extent}",
            j,
            f"({j} + {w.random.choice((1, 2, 5))}) % {extent}",
        ]
        places.append(f"(2 * {j} + 1) % {extent}")
    else:
        inner = extent
        places = [f"max({j} - {far}, 0)", j, f"min({j} + {w.random.choice((1, 2))}, {extent} - 1)"]
        places += [f"{extent} - 1 - {j}", f"{j} // 2"]
        if w.chance(0.1):
            huge = w.random.choice((1 << 31, 1 << 40, 3 << 61))
            places.append(f"min({j} * {huge}, {extent} - 1)")
    taken = w.random.sample(places, w.random.choice((2, 3)))
    value = w.random.choice((" + ", " - ")).join(at(read, (*indices[:-1], p)) for p in taken)
    result = w.define((*shape[:-1], inner))
    explicit = list(zip(indices, w.shapes[result], strict=True)) if inner != extent else []
    for depth, (index, size) in enumerate(explicit):
        w.lines.append(f"{'    ' * depth}for {index} in range({size}):")
    w.lines.append(f"{'    ' * len(explicit)}{at(result, indices)} = {value}")


def _triangle(w: Writer) -> None:
    """Sums of rows of a triangle, lower or upper, or a running sum."""
    read, (rows, columns) = w.last, w.shapes[w.last]
    if w.chance(0.5) or rows != columns:
        result = w.define((rows, columns))
        w.lines.append(f"{result}[i, j] = sum({read}[i, k] for k in range(j + 1))")
        return
    domain = w.random.choice(("i + 1", f"i, {rows}"))
    value = w.term(f"{read}[i, j]", ("i", "j"), (rows, columns))
    w.lines.append(f"{w.define((rows,))}[i] = sum({value} for j in range({domain}))")


def _running(w: Writer) -> None:
    read, (extent,) = w.last, w.shapes[w.last]
    combiner = w.random.choice(("sum", "max", "min", "argmax"))
    of = "int64" if combiner == "argmax" else None
    w.lines.append(f"{w.define((extent,), of)}[i] = {combiner}({read}[j] for j in range(i + 1))")


def _halves(w: Writer) -> None:
    """An array defined in two parts."""
    read, (rows, columns) = w.last, w.shapes[w.last]
    value = w.term(f"{read}[i, j]", ("i", "j"), (rows, columns))
    result = w.define((rows, columns))
    w.least(dim_of(columns), 1)
    w.lines += [
        f"for i in range({rows}):",
        f"    {result}[i, 0] = {read}[i, 0]",
        f"    for j in range(1, {columns}):",
        f"        {result}[i, j] = {value}",
    ]


def _recurrence(w: Writer) -> None:
    """Each element from the one before it, or after it, along the last axis."""
    read, shape = w.last, w.shapes[w.last]
    indices = indices_of(shape)
    j, extent = indices[-1], shape[-1]
    w.least(dim_of(extent), 1)
    result = w.define(shape)
    backwards = w.chance(0.25)
    start, step = (f"{extent} - 1", f"{j} + 1") if backwards else ("0", f"{j} - 1")
    domain = f"reversed(range({extent} - 1))" if backwards else f"range(1, {extent})"
    here, first = at(read, indices), at(read, (*indices[:-1], start))
    before = at(result, (*indices[:-1], step))
    value = w.random.choice(
        (
            f"{before} + {here}",
            f"max({before}, {here})",
            f"{here} - {before}",
            f"{here} - -{before}",
        )
    )
    depth = "    " * (len(shape) - 1)
    w.lines += [f"for i in range({shape[0]}):"] if len(shape) > 1 else []
    w.lines += [
        f"{depth}{at(result, (*indices[:-1], start))} = {first}",
        f"{depth}for {j} in {domain}:",
        f"{depth}    {at(result, indices)} = {value}",
    ]


def _gather(w: Writer) -> None:
    read, shape = w.last, w.shapes[w.last]
    indices = indices_of(shape)
    axis = w.random.randrange(len(shape))
    length = w.random.choice(DIMS)
    positions = w.array(
        "p", (length,), w.random.choice(("int64", "int64", "int32", "uint8", "int8"))
    )
    place = w.position(shape[axis], f"{positions}[{indices[axis]}]")
    places = tuple(place if k == axis else v for k, v in enumerate(indices))
    result = w.define(tuple(length if k == axis else e for k, e in enumerate(shape)))
    w.lines.append(f"{at(result, indices)} = {at(read, places)}")


def _ragged(w: Writer) -> None:
    """Sums over ranges that two arrays give."""
    read = w.last
    rows, of = w.random.choice(DIMS), w.random.choice(("int64", "int32", "int8"))
    first, last = w.array("p", (rows,), of), w.array("p", (rows,), of)
    by = w.random.choice(("", " - 3", " + 1"))
    result = w.define((rows,))
    w.lines += [
        f"for i in range({rows}):",
        f"    {result}[i] = sum({read}[k] for k in range({first}[i]{by}, {last}[i] + 3))",
    ]


def _exponentials(w: Writer) -> None:
    """Sums of exponentials and their largest term: what one pass does by a law."""
    read, (rows, columns) = w.last, w.shapes[w.last]
    if w.kind != "f" or "16" in w.named:
        return _reduce(w)
    w.least(dim_of(columns), 1)
    peak, result = w.array("t", (rows,)), w.define((rows,))
    held = w.random.choice((f"{peak}[i]", f"({peak}[i] if abs({peak}[i]) < inf else 0)"))
    w.lines += [
        f"{peak}[i] = max({read}[i, j] for j in range({columns}))",
        f"{result}[i] = sum(exp({read}[i, j] - {held}) for j in range({columns}))",
    ]
    return None


def _spreads(w: Writer) -> None:
    """Squares of distances from the mean."""
    read, (rows, columns) = w.last, w.shapes[w.last]
    if w.kind != "f" or "16" in w.named:
        return _reduce(w)
    total, result = w.array("t", (rows,)), w.define((rows,))
    w.lines += [
        f"{total}[i] = sum({read}[i, j] for j in range({columns}))",
        f"{result}[i] = sum(({read}[i, j] - {total}[i] / {columns}) ** 2"
        f" for j in range({columns}))",
    ]
    return None


def _holds(w: Writer) -> None:
    """Whether something holds anywhere, or everywhere."""
    read, shape = w.last, w.shapes[w.last]
    if not shape:
        return _map(w)
    indices = indices_of(shape)
    over, loops = _axes(w)
    test = w.condition(at(read, indices), indices, shape)
    kept = [k for k in range(len(shape)) if k not in over]
    result = w.define(tuple(shape[k] for k in kept), "bool")
    place = at(result, tuple(indices[k] for k in kept))
    w.lines.append(f"{place} = {w.random.choice(('any', 'all'))}({test} {loops})")
    return None


LAST: dict[int, tuple[Callable[[Writer], None], ...]] = {
    0: (_map,),
    1: (_holds,),
    2: (_holds, _exponentials, _exponentials, _spreads, _spreads),
}
PATTERNS: dict[int, tuple[Callable[[Writer], None], ...]] = {
    0: (_map,),
    1: (
        *(_map, _map, _spread, _spread, _reduce, _stencil, _running, _recurrence, _gather),
        *(_extreme, _tuple, _ragged, _widen),
    ),
    2: (
        *(_map, _map, _map, _transpose, _reduce, _reduce, _reduce, _product, _stencil, _stencil),
        *(_triangle, _triangle, _halves, _recurrence, _gather, _extreme, _extreme, _tuple, _tuple),
        _widen,
    ),
}
