"""Random steps of every registered primitive, drawn over the names of a tree.

Input: the registry, a tree, a source of random numbers. Output: a step. What a primitive's
arguments may be is read off its EXAMPLES: the names of loops, blocks and buffers in an example's
step are holes, filled with names of the tree that stand to each other as those of the example do;
numbers are varied. So a primitive that is registered is drawn, whatever its arguments are.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import cache
from itertools import pairwise, product
from random import Random
from typing import Any, Literal, final, get_args, get_origin, get_type_hints

from gen.errors import TilesmithError
from gen.ir.nodes import Allocate, Kernel, Loop, Seq
from gen.ir.text.parser import from_text
from gen.ir.walk import ancestors, blocks, loads, loops, walk
from gen.poly.certificate import Scheduled
from gen.poly.values.flow import plain_flow
from gen.schedule import recipe
from gen.schedule.base import OF_ANY, Example, Primitive, StepContext
from gen.schedule.edit.tree import reduction_loops, written
from gen.schedule.registry import PRIMITIVES

from . import maps

_TRIES = 12
_WORDS = (
    *("around", "innermost", "before", "reads", "writes", "feeds", "takes"),
    *("temporary", "reduction"),
)
_WIDE = (8, 16, 32)  # a vector, and vectors of several native ones
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")


@final
class Kind(Enum):
    """What a name names."""

    LOOP = "loop"
    BLOCK = "block"
    BUFFER = "buffer"


Hole = tuple[Kind, str]
Relation = tuple[str, Hole, Hole]


@final
@dataclass(frozen=True, slots=True)
class Pattern:
    """An example's step: its holes, and how the names in them stand to each other."""

    step: Primitive
    holes: tuple[Hole, ...]
    relations: frozenset[Relation]


@cache
def patterns(primitive: type[Primitive]) -> tuple[Pattern, ...]:
    """One for each legal use of the primitive in its examples."""
    return tuple(p for e in primitive.EXAMPLES if not e.refused for p in _patterns(primitive, e))


def draw(
    kernel: Kernel, random: Random, among: Sequence[type[Primitive]] = PRIMITIVES
) -> Primitive:
    """A step on names that the kernel has; most do not apply."""
    primitive = random.choice(among)
    if primitive.name in maps.OWN and random.random() < 0.7:
        own = maps.OWN[primitive.name](kernel, random)
        if own is not None:
            return own
    pattern = random.choice(patterns(primitive))
    filled = _filled(pattern, kernel, random)
    step = _varied(_renamed(pattern.step, filled), random)
    return maps.named(step, pattern.step, random)


# ---------------------------------------------------------------- names, and how they stand


def _names(kernel: Kernel) -> dict[Kind, tuple[str, ...]]:
    arrays = dict.fromkeys(x for b in blocks(kernel.body) for x in (*_read(b), *sorted(written(b))))
    return {
        Kind.LOOP: tuple(loop.var for loop in loops(kernel.body)),
        Kind.BLOCK: tuple(dict.fromkeys(b.name for b in blocks(kernel.body))),
        Kind.BUFFER: tuple(arrays),
    }


def _read(block: Any) -> tuple[str, ...]:
    return tuple(x.buffer for x in loads(block.body))


def _relations(kernel: Kernel) -> frozenset[Relation]:
    """Which loop is around which loop or block, which block or loop reads and writes which buffer,
    which loop has a reader or a writer of what a block writes inside, and which comes after which;
    which blocks and buffers are of temporaries, and which blocks and loops of reductions.
    """
    found: set[Relation] = set()
    local = {b.name for n in walk(kernel.body) if isinstance(n, Allocate) for b in n.buffers}
    inside: dict[str, list[Any]] = {}
    for block in blocks(kernel.body):
        around = [s.var for s in ancestors(kernel.body, block) if hasattr(s, "var")]
        for k, var in enumerate(around):
            inside.setdefault(var, []).append(block)
            found.add(("around", (Kind.LOOP, var), (Kind.BLOCK, block.name)))
            found |= {("around", (Kind.LOOP, var), (Kind.LOOP, x)) for x in around[k + 1 :]}
            found |= {("reads", (Kind.LOOP, var), (Kind.BUFFER, x)) for x in _read(block)}
            found |= {("writes", (Kind.LOOP, var), (Kind.BUFFER, x)) for x in written(block)}
            if var == around[-1]:
                found.add(("innermost", (Kind.LOOP, var), (Kind.BLOCK, block.name)))
        found |= {("reads", (Kind.BLOCK, block.name), (Kind.BUFFER, x)) for x in _read(block)}
        found |= {("writes", (Kind.BLOCK, block.name), (Kind.BUFFER, x)) for x in written(block)}
    for block, (var, others) in product(blocks(kernel.body), inside.items()):
        if any(block is other for other in others):
            continue
        pair = ((Kind.BLOCK, block.name), (Kind.LOOP, var))
        if any(set(written(block)) & set(_read(other)) for other in others):
            found.add(("feeds", *pair))
        if any(set(_read(block)) & set(written(other)) for other in others):
            found.add(("takes", *pair))
    for block in blocks(kernel.body):
        kept = set(written(block)) & local
        if kept:
            found.add(_itself("temporary", Kind.BLOCK, block.name))
        found |= {_itself("temporary", Kind.BUFFER, name) for name in kept}
        if block.initialises:
            found.add(_itself("reduction", Kind.BLOCK, block.name))
        found |= {_itself("reduction", Kind.LOOP, name) for name in reduction_loops(block)}
    for node in walk(kernel.body):
        pairs = pairwise(node.body) if isinstance(node, Seq) else ()
        found |= {
            ("before", (Kind.LOOP, a.var), (Kind.LOOP, b.var))
            for a, b in pairs
            if isinstance(a, Loop) and isinstance(b, Loop)
        }
    return frozenset(found)


def _itself(what: str, kind: Kind, name: str) -> Relation:
    """What a name is by itself."""
    return what, (kind, name), (kind, name)


def _filled(pattern: Pattern, kernel: Kernel, random: Random) -> dict[Hole, str]:
    """Names for the holes: of several draws the one that stands as the example does, mostly."""
    known, standing = _names(kernel), _relations(kernel)

    def score(named: Mapping[Hole, str]) -> int:
        of = {hole: (hole[0], name) for hole, name in named.items()}
        here = {
            (what, a, b)
            for what, a, b in product(_WORDS, of, of)
            if (what, of[a], of[b]) in standing
        }
        return -len(here ^ pattern.relations)

    tries = _TRIES if random.random() < 0.85 else 1
    return max((_any(pattern.holes, known, random) for _ in range(tries)), key=score)


def _any(
    holes: Iterable[Hole], known: Mapping[Kind, tuple[str, ...]], random: Random
) -> dict[Hole, str]:
    """Different names for different holes, where there are enough."""
    named: dict[Hole, str] = {}
    for hole in holes:
        used = {(other[0], name) for other, name in named.items()}
        free = [name for name in known[hole[0]] if (hole[0], name) not in used]
        named[hole] = random.choice(free or list(known[hole[0]]) or [hole[1]])
    return named


# ---------------------------------------------------------------- from examples


def _patterns(primitive: type[Primitive], example: Example) -> Iterator[Pattern]:
    plain = from_text(example.before)
    state = Scheduled(plain, plain_flow(plain))
    context = StepContext(plain, lambda *_: None)
    for step in recipe.steps_of(example.steps):
        if isinstance(step, primitive):
            holes = tuple(dict.fromkeys(_holes(step, _names(state.kernel))))
            standing = _relations(state.kernel)
            kept = frozenset(r for r in standing if r[1] in holes and r[2] in holes)
            yield Pattern(step, holes, kept)
        try:
            state = step(state, context)
        except TilesmithError:
            return


def _holes(step: Primitive, known: Mapping[Kind, tuple[str, ...]]) -> Iterator[Hole]:
    for name in _arguments(step):
        for text in _texts(getattr(step, name)):
            for token in _NAME.findall(text):
                if (kind := _kind(name, token, known)) is not None:
                    yield kind, token


def _arguments(step: Primitive) -> list[str]:
    """The arguments that are drawn: names that a step creates are left to their defaults."""
    return [f.name for f in fields(step) if f.name not in (*OF_ANY, "as_")]


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case tuple() | list():
            for item in value:
                yield from _texts(item)
        case dict():
            for key, item in value.items():
                yield from _texts(key)
                yield from _texts(item)
        case _:
            return


def _kind(field: str, token: str, known: Mapping[Kind, tuple[str, ...]]) -> Kind | None:
    """What a word of an argument names: a block before a buffer unless the argument says so."""
    kinds = [kind for kind in Kind if token in known[kind]]
    return Kind.BUFFER if "buffer" in field and Kind.BUFFER in kinds else next(iter(kinds), None)


# ---------------------------------------------------------------- arguments


def _renamed(step: Primitive, named: Mapping[Hole, str]) -> Primitive:
    known = {kind: tuple(n for k, n in named if k is kind) for kind in Kind}

    def in_text(field: str, text: str) -> str:
        def one(found: re.Match[str]) -> str:
            kind = _kind(field, found[0], known)
            return found[0] if kind is None else named[kind, found[0]]

        return _NAME.sub(one, text)

    def go(field: str, value: Any) -> Any:
        match value:
            case str() if not isinstance(value, Enum):
                return in_text(field, value)
            case tuple():
                return tuple(go(field, item) for item in value)
            case dict():
                return {go(field, k): go(field, v) for k, v in value.items()}
            case _:
                return value

    return replace(step, **{name: go(name, getattr(step, name)) for name in _arguments(step)})


def _varied(step: Primitive, random: Random) -> Primitive:
    """The step with other numbers and choices in half of the cases."""
    hints = get_type_hints(type(step))
    changed = {}
    for name in _arguments(step):
        value = getattr(step, name)
        if get_origin(hints[name]) is Literal and random.random() < 0.3:
            changed[name] = random.choice(get_args(hints[name]))
        elif random.random() < 0.5:
            changed[name] = _number(value, random)
    return replace(step, **changed)


def _number(value: Any, random: Random) -> Any:
    match value:
        case bool():
            return random.random() < 0.5
        case int():
            if abs(value) >= 4 and random.random() < 0.25:
                return random.choice(_WIDE)
            return random.choice((-1, 1, 1, 1, 1)) * random.randint(1, 5 if abs(value) < 5 else 9)
        case tuple():
            return tuple(_number(item, random) for item in value)
        case dict():
            return {key: _number(item, random) for key, item in value.items()}
        case _:
            return value
