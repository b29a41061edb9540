"""Random kernels: maps, stencils, reductions, triangles, recurrences, gathers, sweeps.

Input: a source of random numbers. Output: a draft of one to four statements, each of which reads
what the one before it defined.
"""

import ast
from random import Random

from gen import language as specs
from gen.errors import SpecError

from .draft import Draft
from .names import hostile
from .patterns import LAST, PATTERNS
from .writer import DIMS, Writer, at, dim_of, indices_of

ELEMENTS = (
    *("float32",) * 8,
    *("float64",) * 4,
    *("int32", "int64", "int64", "int16", "int8", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "complex64", "complex128"),
)
DATA = ("small", "small", "ties", "special", "extreme")
_HOSTILE = 0.25  # of all drafts have names of the pool


def draw(random: Random) -> Draft:
    """A kernel that is a spec, and of which every size is one of an input's."""
    while True:
        draft = _draw(random)
        if not _sized(draft) or not _is_spec(draft):
            continue
        if random.random() < _HOSTILE:
            named = hostile(draft, random)
            if _is_spec(named):
                return named
        return draft


def _sized(draft: Draft) -> bool:
    roles = draft.arrays
    given = [draft.shapes[a] for a, role in roles.items() if role in ("in", "inout")]
    return set(draft.dims) == {dim_of(extent) for shape in given for extent in shape}


def _is_spec(draft: Draft) -> bool:
    try:
        spec = specs.loads(draft.text(), "drawn.yaml")
        specs.build(spec, specs.choices(spec)[0])
    except SpecError:
        return False
    return True


def _draw(random: Random) -> Draft:
    w = Writer(random, random.choice(ELEMENTS), random.choice(DATA))
    if random.random() < 0.25:
        random.choice((_sweep, _time_steps, _escape, _until, _accumulate, _scatter, _count))(w)
    else:
        rank = random.choice((1, 2, 2))
        square = random.random() < 0.2
        dims = [random.choice(DIMS)] * rank if square else random.sample(DIMS, rank)
        wide = random.random() < 0.3
        w.last = w.array("x", tuple(f"{d} + 2" if wide and d == dims[-1] else d for d in dims))
        for _ in range(random.choice((1, 1, 2, 2, 3, 4))):
            random.choice(PATTERNS[len(w.shapes[w.last])])(w)
        if random.random() < 0.15:
            random.choice(LAST[len(w.shapes[w.last])])(w)
    compute = "\n".join(w.lines)
    return Draft(
        w.element,
        w.shapes,
        w.types,
        frozenset(w.inout),
        tuple(dict.fromkeys(w.constraints)),
        w.scalars,
        compute,
        data_of(w.element, w.data, compute),
        tuple(dict.fromkeys(w.reductions)),
    )


def data_of(element: str, data: str, compute: str) -> str:
    """The kind of numbers, where what comes of them is known to the last bit."""
    if "complex" in element and data in ("special", "extreme"):
        return "small"
    return data if data != "extreme" or "float" not in element or unordered(compute) else "special"


def unordered(compute: str) -> bool:
    """Whether no rounding depends on an order or on what is contracted: nothing is added up, and no
    product is part of a sum.
    """
    words = ("sum(", "prod(", "*", "fma(", "moments(", "exp(")
    tree = ast.parse(compute)
    loops = any(isinstance(n, ast.For | ast.AugAssign) for n in ast.walk(tree))
    return not loops and not any(word in compute for word in words)


# ---------------------------------------------------------------- in place


def _sweep(w: Writer) -> None:
    """Gauss-Seidel sweeps: values of this sweep and of the one before."""
    a = w.array("a", ("n",) if w.chance(0.5) else ("m", "n"))
    w.inout.add(a)
    w.scalars["steps"] = 3
    lines, indices = ["for t in range(steps):"], indices_of(w.shapes[a])
    for depth, (index, extent) in enumerate(zip(indices, w.shapes[a], strict=True), 1):
        lines.append(f"{'    ' * depth}for {index} in range(1, {extent} - 1):")
    j = indices[-1]
    near = [at(a, (*indices[:-1], p)) for p in (f"{j} - 1", f"{j} + 1")]
    if len(indices) > 1:
        near += [at(a, ("i - 1", "j")), at(a, ("i + 1", w.random.choice(("j", "j - 1"))))]
    value = f"{at(a, indices)} + {' - '.join(w.random.sample(near, 2))}"
    lines.append(f"{'    ' * (len(indices) + 1)}{at(a, indices)} = {value}")
    w.lines += lines


def _time_steps(w: Writer) -> None:
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


def _goes_on(w: Writer, of: str) -> str:
    """A condition of a `while` on a value."""
    value = f"real({of})" if w.kind == "c" else of
    return w.random.choice((f"{value} < 3", f"not {value} > 2", f"{value} != 0 and t < 2"))


def _escape(w: Writer) -> None:
    """Elements that each leave a loop by themselves."""
    a = w.array("a", ("n",) if w.chance(0.5) else ("m", "n"))
    w.inout.add(a)
    w.scalars["steps"] = 3
    indices = indices_of(w.shapes[a])
    here, x = at(a, indices), at(w.array("x", w.shapes[a]), indices)
    for depth, (index, extent) in enumerate(zip(indices, w.shapes[a], strict=True)):
        w.lines.append(f"{'    ' * depth}for {index} in range({extent}):")
    pad = "    " * len(indices)
    body = [f"{here} = {here} + {x}"]
    if w.chance(0.5):
        new = at(w.array("t", w.shapes[a]), indices)
        body = [f"{new} = {here} - {x}", f"{here} = {new} + 1"]
    w.lines.append(f"{pad}while t in range(steps) and {_goes_on(w, here)}:")
    w.lines += [f"{pad}    {line}" for line in body]


def _until(w: Writer) -> None:
    """Steps of a whole array, until something holds of all of it."""
    a, b = w.array("a", ("n",)), w.array("t", ("n",))
    left = w.array("t", ())
    w.inout.add(a)
    w.scalars["steps"] = 3
    w.lines += [
        f"{left} = {'T(2)' if w.chance(0.5) else 'sum(x0[i] for i in n)'}",
        f"while t in range(steps) and {_goes_on(w, left)}:",
        f"    {b}[i] = {a}[i] - {w.array('x', ('n',))}[i]",
        f"    {left} = sum({b}[i] for i in n)",
        f"    {a}[i] = {b}[i]",
    ]


def _accumulate(w: Writer) -> None:
    """Updates of what an argument held, over a rectangle or a triangle."""
    a = w.array("a", ("m",) if w.chance(0.5) else ("m", "n"))
    w.inout.add(a)
    indices = indices_of(w.shapes[a])
    over = w.random.choice(("n", "i + 1"))
    read = w.array("x", ("m", "n" if over == "n" else "m"))
    lines = []
    for depth, (index, extent) in enumerate(zip(indices, w.shapes[a], strict=True)):
        lines.append(f"{'    ' * depth}for {index} in range({extent}):")
    depth = len(indices)
    lines.append(f"{'    ' * depth}for k in range({over}):")
    sign = w.random.choice(("+", "-"))
    lines.append(f"{'    ' * (depth + 1)}{at(a, indices)} {sign}= {read}[i, k]")
    w.lines += lines


def _scatter(w: Writer) -> None:
    """Updates of places that an array gives."""
    a, rows = w.array("a", ("m",) if w.chance(0.5) else ("m", "n")), ("n", "i")
    w.inout.add(a)
    p, x = w.array("p", ("n",), "int64"), w.array("x", ("n",))
    inner = len(w.shapes[a]) > 1
    place = at(a, (f"{p}[i]", "j")) if inner else f"{a}[{p}[i]]"
    w.lines.append(f"for {rows[1]} in range({rows[0]}):")
    w.lines += ["    for j in range(n):"] if inner else []
    w.lines.append(f"{'    ' * (1 + inner)}{place} {w.random.choice('+-')}= {x}[i]")


def _count(w: Writer) -> None:
    """How often each number is there."""
    p = w.array("p", ("n",), w.random.choice(("int64", "uint8", "int8")))
    w.array("x", ("m",))
    t = w.array("t", ("m",), "int64")
    w.lines += [
        *("for v in range(m):", f"    {t}[v] = int64(0)" if w.chance(0.5) else f"    {t}[v] = 0"),
        *("for i in range(n):", f"    {t}[{p}[i]] += 1"),
        f"{w.define(('m',))}[i] = x0[i] if {t}[i] > 1 else x0[i] + 1",
    ]
