"""Steps that a draw from examples has too little of: maps of iterations, and names by `as`.

Input: a tree and a source of random numbers. Output: steps of `set_schedule` and
`transform_block_layout` with coordinates that are negated, divided and mixed; names of loops.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from random import Random
from typing import Any, get_type_hints

from gen.ir.nodes import Block, Kernel, Loop
from gen.ir.walk import ancestors, blocks
from gen.schedule.base import Primitive
from gen.schedule.registry import lookup

from .names import HOSTILE


def set_schedule(kernel: Kernel, random: Random) -> Primitive | None:
    """Another order of the innermost loops around a block."""
    block, loops = _nest(kernel, random)
    if not loops:
        return None
    inner = loops[-random.randint(1, min(3, len(loops))) :]
    indices = [f"a{k}" for k in range(len(inner))]
    coordinates = _coordinates(indices, kernel.dims, random)
    text = f"{{ {block.name}[{', '.join(indices)}] -> [{', '.join(coordinates)}] }}"
    return lookup("set_schedule")(block=block.name, map=text)  # type: ignore[call-arg]


def transform_block_layout(kernel: Kernel, random: Random) -> Primitive | None:
    block, _ = _nest(kernel, random)
    names = [i.name for i in block.iters] if block is not None else []
    if not names:
        return None
    coordinates = _coordinates(names, kernel.dims, random)
    return lookup("transform_block_layout")(  # type: ignore[call-arg]
        block=block.name, indices=", ".join(coordinates)
    )


OWN: Mapping[str, Callable[[Kernel, Random], Primitive | None]] = {
    "set_schedule": set_schedule,
    "transform_block_layout": transform_block_layout,
}


def _nest(kernel: Kernel, random: Random) -> tuple[Any, list[str]]:
    known: Sequence[Block] = list(blocks(kernel.body))
    if not known:
        return None, []
    block = random.choice(known)
    return block, [s.var for s in ancestors(kernel.body, block) if isinstance(s, Loop)]


def _coordinates(names: Sequence[str], dims: Sequence[str], random: Random) -> list[str]:
    """One or two for each name: as it is, negated, from the other end, in parts, or skewed."""
    found: list[str] = []
    for k, name in enumerate(names):
        by, other = random.choice((2, 3, 4, 4, 8)), random.choice(names[:k]) if k else None
        forms = [(name,), (name,), (f"-{name}",), (f"{name} // {by}", f"{name} % {by}")]
        forms += [(f"-({name} // {by})", name), (f"-({name} // {by})", f"-({name} % {by})")]
        forms += [(f"({name} + 1) // {by}", f"-{name}"), (f"(-{name}) // {by}", name)]
        if dims:
            forms.append((f"{random.choice(dims)} - 1 - {name}",))
        if other is not None:
            forms += [(f"{name} + {other}",), (f"{name} - 2*{other}",)]
        found += random.choice(forms)
    if random.random() < 0.6:
        random.shuffle(found)
    return found


def named(step: Primitive, example: Primitive, random: Random) -> Primitive:
    """The step with names by `as` in some cases: as many as the example has, or as there are
    factors.
    """
    default = next((f.default for f in fields(step) if f.name == "as_"), MISSING)
    if default is MISSING:
        return step
    several = "tuple" in str(get_type_hints(type(step))["as_"])
    given = getattr(example, "as_", None) or (getattr(step, "factors", None) if several else None)
    if not given or random.random() < 0.7:
        return replace(step, as_=default) if default in (None, ()) else step  # type: ignore[call-arg]
    prefix = next((p for p in map(_prefix, _named(step)) if p), "y.")

    def one(name: object) -> str:
        word = random.choice(HOSTILE)
        return word if isinstance(name, str) and "." not in name else f"{prefix}{word}"

    new = one(given) if isinstance(given, str) else tuple(one(name) for name in given)
    return replace(step, as_=new)  # type: ignore[call-arg]


def _named(step: Primitive) -> list[str]:
    values = [getattr(step, f.name) for f in fields(step)]
    return [v for v in values if isinstance(v, str)]


def _prefix(name: str) -> str:
    return name[: name.index(".") + 1] if "." in name else ""
