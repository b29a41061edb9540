"""What each decision of a proof depends on, so that none is made again after a step that changed
nothing of it.

Input: the outline of a tree, its certificate, and what is known of its plain kernel. Output: `Part`s
of the tree, of which each decision sees nothing else (`Execution.within`), with a digest of all that
they hold. Invariant: a part whose digest is known was proved, against the same plain kernel.

Numbers that only tell loops, buffers and textual positions apart count by their order, since a step
elsewhere changes them.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from hashlib import sha256
from typing import final

from ..ir.nodes import Block, Intent, Kernel
from ..ir.walk import accessed, remembered, targets
from .certificate import Flow
from .extract import Outline, Standing
from .statement import AtLeast, Guarded, Level


@final
@dataclass(frozen=True, slots=True)
class Part:
    """Statements, by their number, that one decision sees.

    subject: the statement, or the buffer, that it is about. followed: those of whose reads it asks
    where their values come from. buffers: those of which it has all writes.
    """

    subject: int | str
    members: frozenset[int]
    followed: frozenset[int]
    buffers: frozenset[str]
    digest: bytes


@final
@dataclass(frozen=True, slots=True)
class Parts:
    """values: a part for what each statement computes and reads, in textual order; ends: for what
    each output holds at the end; places: for what meets at each buffer's places in loops whose
    iterations have another order than the text's.
    """

    values: tuple[Part, ...]
    ends: tuple[Part, ...]
    places: tuple[Part, ...]

    def without(self, known: frozenset[bytes]) -> "Parts":
        values, ends, places = (
            tuple(part for part in parts if part.digest not in known)
            for parts in (self.values, self.ends, self.places)
        )
        return Parts(values, ends, places)

    @property
    def all(self) -> tuple[Part, ...]:
        return (*self.values, *self.ends, *self.places)


@remembered
def proved(plain: Kernel) -> set[bytes]:
    """The digests of the parts that were proved against a plain kernel; `prove` adds to them."""
    return set()


def parts(outline: Outline, flow: Flow) -> Parts:
    """All decisions that a tree needs, but for those on the threads of launches."""
    index = _Index(outline, flow)
    outputs = [p for p in outline.empty.kernel.parameters if p.intent is not Intent.IN]
    unordered = {s.uid for s in outline.blocks if any(map(_is_unordered, s.around.path))}
    places = (_places(index, name, unordered) for name in index.writers)
    return Parts(
        tuple(_values(index, s.uid, (s.uid,), frozenset()) for s in outline.blocks),
        tuple(_values(index, p.buffer.name, (), frozenset({p.buffer.name})) for p in outputs),
        tuple(part for part in places if part),
    )


def _is_unordered(item: int | Level) -> bool:
    if isinstance(item, int):
        return False
    return item.turned is not None or any(kind.is_unordered for kind in item.kinds)


class _Index:
    """Who writes and touches which buffers, each found once."""

    def __init__(self, outline: Outline, flow: Flow) -> None:
        self.standing = {s.uid: s for s in outline.blocks}
        self.touched = {uid: _touched(s) for uid, s in self.standing.items()}
        kernel = outline.empty.kernel
        self.common = repr((kernel.phases, kernel.assumptions))
        self.contents = {uid: _content(s) for uid, s in self.standing.items()}
        self.writers: dict[str, list[int]] = {}
        self.named: dict[str, list[int]] = {}
        for uid, s in self.standing.items():
            self.named.setdefault(s.block.name, []).append(uid)
            for target in targets(s.block.body):
                self.writers.setdefault(target.buffer, []).append(uid)
        self.sources: dict[str, list[str]] = {}
        self.flow: dict[str, list[str]] = {}
        for (name, number), source in flow.items():
            self.sources.setdefault(name, []).extend(source.writers)
            self.flow.setdefault(name, []).append(repr((number, source)))


def _touched(standing: Standing) -> frozenset[str]:
    """The buffers that a block accesses, its conditions' included."""
    result = accessed(standing.block)
    for step in standing.around.steps:
        match step:
            case (_, e) | AtLeast(value=e) | Guarded(condition=e):
                result |= accessed(e)
            case _:
                result |= accessed(step)
    return result


def _values(
    index: _Index, subject: int | str, first: Sequence[int], buffers: frozenset[str]
) -> Part:
    """Who may have made what is in the buffers, as far as blocks go that only copy and combine."""
    followed: set[int] = set()
    pending, members = set(first), set(first)
    while True:
        for uid in pending:
            followed.add(uid)
            buffers |= index.touched[uid]
            for name in index.sources.get(index.standing[uid].block.name, ()):
                members.update(index.named.get(name, ()))
        for name in buffers:
            members.update(index.writers.get(name, ()))
        pending = {m for m in members - followed if index.standing[m].block.origin is None}
        if not pending:
            return _part(index, "values", subject, members, followed, buffers)


def _places(index: _Index, name: str, unordered: set[int]) -> Part | None:
    """Who meets at a buffer's places; None where all do in the text's order."""
    members = {uid for uid, touched in index.touched.items() if name in touched}
    if not members & unordered:
        return None
    return _part(index, "places", name, members, set(), frozenset({name}))


def _part(
    index: _Index,
    question: str,
    subject: int | str,
    members: Set[int],
    followed: Set[int],
    buffers: frozenset[str],
) -> Part:
    standing = [index.standing[uid] for uid in sorted(members)]
    numbers: dict[object, int] = {}
    about = subject if isinstance(subject, str) else sorted(members).index(subject)
    held = (
        (index.contents[s.uid], path, _storages(s, numbers), _stated(index, s, followed))
        for s, path in zip(standing, _paths(standing, numbers), strict=True)
    )
    text = repr((index.common, question, about, sorted(buffers), tuple(held)))
    digest = sha256(text.encode()).digest()
    return Part(subject, frozenset(members), frozenset(followed), buffers, digest)


def _stated(index: _Index, standing: Standing, followed: Set[int]) -> object:
    """What the certificate says of a block's reads."""
    return sorted(index.flow.get(standing.block.name, ())) if standing.uid in followed else None


def _content(standing: Standing) -> str:
    """All that isl is told of a statement, but for where in the text its loops and it stand."""
    around, names = standing.around, _touched(standing)
    buffers = {s.name: s for s in around.storages if s.name in names}
    storages = [(s.buffer, s.kept, s.owners, s.entries, s.parameter) for s in buffers.values()]
    return repr((_text(standing.block), around.dims, around.steps, storages))


@remembered
def _text(block: Block) -> str:
    return repr(block)  # and no hash of it: 0.0 equals -0.0


def _storages(standing: Standing, numbers: dict[object, int]) -> object:
    """Which buffer each name is."""
    names = _touched(standing)
    return {
        s.name: numbers.setdefault(s, len(numbers))
        for s in standing.around.storages
        if s.name in names
    }


def _paths(standing: Sequence[Standing], numbers: dict[object, int]) -> list[object]:
    """The paths, without the positions at which there is nothing else of the part."""
    trails = [_trails(s.around.path) for s in standing]
    positions: dict[tuple[int, ...], set[int]] = {}
    for s, before in zip(standing, trails, strict=True):
        for item, trail in zip(s.around.path, before, strict=True):
            if isinstance(item, int):
                positions.setdefault(trail, set()).add(item)

    def told(item: int | Level, trail: tuple[int, ...]) -> object:
        if isinstance(item, int):
            return sorted(positions[trail]).index(item)
        nodes = (
            None if node is None else numbers.setdefault(node, len(numbers))
            for node in (item.node, item.turned)
        )
        return (*nodes, item.loops, item.kinds, item.dims)

    return [
        [
            told(item, trail)
            for item, trail in zip(s.around.path, before, strict=True)
            if not isinstance(item, int) or len(positions[trail]) > 1
        ]
        for s, before in zip(standing, trails, strict=True)
    ]


def _trails(path: Sequence[int | Level]) -> list[tuple[int, ...]]:
    """What is before each item of a path."""
    result: list[tuple[int, ...]] = [()]
    for item in path[:-1]:
        result.append((*result[-1], item if isinstance(item, int) else item.node))
    return result
