"""A kernel as the fuzzer writes it: the few facts that a spec of one element type is made of.

Input: shapes, constraints and statements, or a spec's file. Output: a spec's text. Which arrays are
inputs, outputs and temporaries follows from the statements, so that they can be changed freely.
"""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import final

from gen.language import yaml

from .reductions import REDUCTIONS

_HEAD = re.compile(r"^# Data: (\w+)", re.MULTILINE)


@final
@dataclass(frozen=True, slots=True)
class Draft:
    """A kernel. element: what T is. shapes, types: of every array; extents are texts. inout: arrays
    that are updated in place. scalars: integers and their values. data: the kind of numbers that
    it is tried on. reductions: those of its own, of REDUCTIONS.
    """

    element: str
    shapes: Mapping[str, tuple[str, ...]]
    types: Mapping[str, str]
    inout: frozenset[str]
    constraints: tuple[str, ...]
    scalars: Mapping[str, int]
    compute: str
    data: str = "small"
    reductions: tuple[str, ...] = ()
    kernel: str = "drawn"

    @property
    def used(self) -> frozenset[str]:
        """The names in the statements."""
        return frozenset(names(ast.parse(self.compute)))

    @property
    def arrays(self) -> dict[str, str]:
        """What each array is: `in`, `out`, `inout` or `temporary`; those without a use left out."""
        defined, read = _uses(self.compute)
        roles = {}
        for name in self.shapes:
            if name in defined:
                kept = "inout" if name in self.inout else "temporary" if name in read else "out"
                roles[name] = kept
            elif name in read:
                roles[name] = "in"
        return roles

    @property
    def dims(self) -> tuple[str, ...]:
        """The sizes that a call gives, in the order of their appearance."""
        return tuple(dict.fromkeys(d for a in self.arrays for d in names_in(self.shapes[a])))

    @property
    def numbers(self) -> dict[str, int]:
        """The scalars that the statements use, and their values in the spec."""
        return {name: value for name, value in self.scalars.items() if name in self.used}

    def allows(self, sizes: Mapping[str, int]) -> bool:
        """Whether the constraints hold; they are all of the form `dim >= number`."""
        pairs = (c.split(" >= ") for c in self._constraints())
        return all(sizes[dim] >= int(least) for dim, least in pairs)

    def _constraints(self) -> tuple[str, ...]:
        return tuple(c for c in self.constraints if c.split()[0] in self.dims)

    def text(self, steps: Iterable[object] = (), head: Sequence[str] = ()) -> str:
        """The spec, with a recipe of these steps; head: lines of a comment before it."""
        roles = self.arrays
        arguments = {a: role for a, role in roles.items() if role != "temporary"}
        lines = [f"# {line}".rstrip() for line in (*head, f"Data: {self.data}")]
        lines += ["tilesmith: 1", f"kernel: {self.kernel}", "doc: Drawn by build_tools.fuzz."]
        ins = [self._axes(a) for a, role in arguments.items() if role != "out"]
        outs = [self._axes(a) for a, role in arguments.items() if role != "in"]
        lines += [f"signature: {','.join(ins)}->{','.join(outs)}"]
        lines += [f"dtypes: {{T: [{self.element}]}}"]
        if own := [name for name in self.reductions if name in self.used]:
            lines.append("reductions:")
            lines += [f"  {x}" for n in own for x in REDUCTIONS[n](self.element).splitlines()]
        lines.append("arguments:")
        for a, role in arguments.items():
            intent = "" if role == "in" else f", intent: {role}"
            lines.append(f'  {a}: {{type: "{self._type(a)}"{intent}}}')
        if numbers := self.numbers:
            lines.append("scalars:")
            lines += [f"  {s}: {{type: int64, default: {v}}}" for s, v in numbers.items()]
        if temporaries := [a for a, role in roles.items() if role == "temporary"]:
            lines.append("temporaries:")
            lines += [f'  {a}: "{self._type(a)}"' for a in temporaries]
        if constraints := self._constraints():
            lines.append(f"constraints: [{', '.join(constraints)}]")
        lines += ["compute: |", *(f"  {line}" for line in self.compute.splitlines())]
        given = [f"          - {step}" for step in steps]
        lines += ["recipes:", "  - target: cpu", "    variants:"]
        lines += ["      - steps:", *given] if given else ["      - steps: []"]
        return "\n".join(lines) + "\n"

    def _axes(self, array: str) -> str:
        return f"({','.join(self.shapes[array])})"

    def _type(self, array: str) -> str:
        return f"{self.types.get(array, 'T')}[{', '.join(self.shapes[array])}]"


def from_text(text: str, path: str) -> Draft:
    """The draft of a spec that the fuzzer wrote. Raises SpecError where the file is no YAML, and
    KeyError or ValueError where it is another kind of spec.
    """
    file = dict(_entries(yaml.parse(text, path)))
    data = found[1] if (found := _HEAD.search(text)) else "small"
    own = tuple(name for name, _ in _entries(file.get("reductions")))
    (elements,) = (value for _, value in _entries(file["dtypes"]))
    (element,) = _items(elements)
    shapes: dict[str, tuple[str, ...]] = {}
    types: dict[str, str] = {}
    inout = set()
    for name, entry in _entries(file["arguments"]):
        fields = {k: _text(v) for k, v in _entries(entry)}
        shapes[name], types[name] = _typed(fields["type"])
        if fields.get("intent") == "inout":
            inout.add(name)
    for name, entry in _entries(file.get("temporaries")):
        shapes[name], types[name] = _typed(_text(entry))
    scalars = {
        name: int(_text(dict(_entries(entry))["default"]))
        for name, entry in _entries(file.get("scalars"))
    }
    constraints = tuple(_items(file["constraints"])) if "constraints" in file else ()
    compute = _text(file["compute"]).rstrip("\n")
    return Draft(
        element,
        shapes,
        types,
        frozenset(inout),
        constraints,
        scalars,
        compute,
        data,
        own,
        _text(file["kernel"]),
    )


def renamed(draft: Draft, names: Mapping[str, str], kernel: str) -> Draft:
    """The draft with other names for some arrays, dims, scalars and indices."""

    def one(text: str) -> str:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                node.id = names.get(node.id, node.id)
        return ast.unparse(tree)

    return replace(
        draft,
        shapes={names.get(a, a): tuple(map(one, s)) for a, s in draft.shapes.items()},
        types={names.get(a, a): t for a, t in draft.types.items()},
        inout=frozenset(names.get(a, a) for a in draft.inout),
        constraints=tuple(map(one, draft.constraints)),
        scalars={names.get(s, s): v for s, v in draft.scalars.items()},
        compute=one(draft.compute),
        kernel=kernel,
    )


def _entries(node: yaml.Node | None) -> list[tuple[str, yaml.Node]]:
    if node is None:
        return []
    if not isinstance(node, yaml.Map):
        raise ValueError(f"{node.span}: not a spec that the fuzzer wrote")
    return [(key.text, value) for key, value in node.entries]


def _items(node: yaml.Node) -> list[str]:
    if not isinstance(node, yaml.List):
        raise ValueError(f"{node.span}: not a spec that the fuzzer wrote")
    return [_text(item) for item in node.items]


def _text(node: yaml.Node) -> str:
    if not isinstance(node, yaml.Scalar):
        raise ValueError(f"{node.span}: not a spec that the fuzzer wrote")
    return node.text


def _typed(text: str) -> tuple[tuple[str, ...], str]:
    """The shape and the element type of `T[m, n + 2]`."""
    element, _, axes = text.removesuffix("]").partition("[")
    return tuple(a.strip() for a in axes.split(",") if a.strip()), element


def names(tree: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


def names_in(extents: Iterable[str]) -> list[str]:
    """The dims in a shape, in order."""
    trees = (ast.parse(extent, mode="eval") for extent in extents)
    return [n.id for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Name)]


def target_name(target: ast.expr) -> str:
    """The array that an assignment defines an element of."""
    match target:
        case ast.Subscript(value=ast.Name(id=name)) | ast.Name(id=name):
            return name
        case _:
            raise ValueError(f"no target: {ast.unparse(target)}")


@lru_cache(256)
def _uses(compute: str) -> tuple[frozenset[str], frozenset[str]]:
    """The arrays that statements define, and the names that statements of other arrays read, as
    those in positions on the left and in bounds.
    """
    defined: set[str] = set()
    read: set[str] = set()
    for node in ast.walk(ast.parse(compute)):
        match node:
            case ast.Assign(targets=[target]) | ast.AugAssign(target=target):
                own = {target_name(t) for t in targets_of(target)}
                defined |= own
                read |= (names(target) | names(node.value)) - own
            case ast.For(iter=domain):
                read |= names(domain)
            case ast.If(test=test):
                read |= names(test)
            case _:
                continue
    return frozenset(defined), frozenset(read)


def targets_of(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple) else [target]
