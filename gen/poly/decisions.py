"""What each decision of a proof depends on, so that none is made again after a step that changed
nothing of it.

Input: the outline of a tree, and its certificate. Output: its parts, each with a digest of all
that is in it. A decision sees its part and nothing else (`Execution.within`), so that it cannot
depend on more. Invariant: what has a digest that a workbench knows (`Workbench.proved`) was proved,
against that plain kernel under the laws that are in the digest.

What loops and buffers statements share, and their order in the text, is in a digest; which loops,
buffers and positions these are in the whole tree is not, since a step elsewhere changes it.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import final

from ..ir.nodes import Intent, Node
from ..ir.walk import accessed, remembered, targets
from .certificate import Scheduled
from .sets.extract import Outline, Placed
from .sets.statement import AtLeast, Guarded, LoopLevel, Step, Storage


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """Statements, by their number, that one decision sees.

    subject: the statement, or the buffer, that it is about. followed: those of whose reads it asks
    where their values come from. buffers: of whose places it asks; it has all writes to them.
    """

    subject: int | str
    members: frozenset[int]
    followed: frozenset[int]
    buffers: frozenset[str]
    digest: bytes


@final
@dataclass(frozen=True, slots=True)
class Decisions:
    """values: a part for what each statement computes and reads, in textual order; ends: for what
    each output holds at the end; places: for what meets at each buffer's places in loops whose
    iterations have another order than the text's.
    """

    values: tuple[Decision, ...]
    ends: tuple[Decision, ...]
    places: tuple[Decision, ...]

    def without(self, known: frozenset[bytes]) -> "Decisions":
        values, ends, places = (
            tuple(part for part in parts if part.digest not in known)
            for parts in (self.values, self.ends, self.places)
        )
        return Decisions(values, ends, places)

    @property
    def all(self) -> tuple[Decision, ...]:
        return (*self.values, *self.ends, *self.places)


def parts(outline: Outline, state: Scheduled) -> Decisions:
    """All decisions that a tree needs, but for those on threads of launches and on messages."""
    index = _Index(outline, state)
    outputs = [p for p in outline.empty.kernel.parameters if p.intent is not Intent.IN]
    unordered = {s.uid for s in outline.blocks if any(map(_is_unordered, s.around.path))}
    places = (_places(index, name, unordered) for name in index.writers)
    return Decisions(
        tuple(_values(index, s.uid, (s.uid,), frozenset()) for s in outline.blocks),
        tuple(_values(index, p.buffer.name, (), frozenset({p.buffer.name})) for p in outputs),
        tuple(part for part in places if part),
    )


def _is_unordered(item: int | LoopLevel) -> bool:
    if isinstance(item, int):
        return False
    return item.turned is not None or any(kind.is_unordered for kind in item.kinds)


class _Index:
    """Who writes and touches which buffers, each found once."""

    def __init__(self, outline: Outline, state: Scheduled) -> None:
        self.placed = {s.uid: s for s in outline.blocks}
        self.touched = {uid: _touched(s) for uid, s in self.placed.items()}
        kernel = outline.empty.kernel
        self.common = _digest(kernel.phases, kernel.assumptions, *_but(state, "kernel", "flow"))
        self.contents = {
            uid: _digest(_text(s.block), s.around.dims, *map(_told, s.around.steps))
            for uid, s in self.placed.items()
        }
        self.storages: dict[Storage, bytes] = {}
        self.levels: dict[LoopLevel, bytes] = {}
        self.writers: dict[str, list[int]] = {}
        self.named: dict[str, list[int]] = {}
        for uid, s in self.placed.items():
            self.named.setdefault(s.block.name, []).append(uid)
            for target in targets(s.block.body):
                self.writers.setdefault(target.buffer, []).append(uid)
        self.sources: dict[str, list[str]] = {}
        flow: dict[str, list[object]] = {}
        for (name, number), source in sorted(state.flow.items(), key=lambda item: item[0]):
            self.sources.setdefault(name, []).extend(source.writers)
            flow.setdefault(name, []).append((number, source))
        self.flow = {name: _digest(*sources) for name, sources in flow.items()}

    def storage(self, storage: Storage, numbers: dict[object, int]) -> tuple[int, bytes]:
        """Which buffer of a part it is, and a digest of all that is known of it."""
        if storage not in self.storages:
            self.storages[storage] = _digest(*_but(storage, "box"))
        return numbers.setdefault(storage, len(numbers)), self.storages[storage]

    def level(self, level: LoopLevel, numbers: dict[object, int]) -> object:
        """Which loop of a part it is, of which nest, and a digest of all that is known of it."""
        if level not in self.levels:
            self.levels[level] = _digest(*_but(level, "node", "turned"))
        node = numbers.setdefault(level.node, len(numbers))
        nest = None if level.turned is None else numbers.setdefault(level.turned, len(numbers))
        return node, nest, self.levels[level]


def _touched(placed: Placed) -> frozenset[str]:
    """The buffers that a block accesses, its conditions' included."""
    result = accessed(placed.block)
    for step in placed.around.steps:
        match step:
            case (_, e) | AtLeast(value=e) | Guarded(condition=e):
                result |= accessed(e)
            case _:
                result |= accessed(step)
    return result


def _values(
    index: _Index, subject: int | str, first: Sequence[int], buffers: frozenset[str]
) -> Decision:
    """Who may have made what is in the buffers, as far as blocks go that only copy and combine."""
    followed: set[int] = set()
    pending, members = set(first), set(first)
    while True:
        for uid in pending:
            followed.add(uid)
            buffers |= index.touched[uid]
            for name in index.sources.get(index.placed[uid].block.name, ()):
                members.update(index.named.get(name, ()))
        for name in buffers:
            members.update(index.writers.get(name, ()))
        pending = {m for m in members - followed if index.placed[m].block.origin is None}
        if not pending:
            return _part(index, "values", subject, members, followed, buffers)


def _places(index: _Index, name: str, unordered: set[int]) -> Decision | None:
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
) -> Decision:
    placed = [index.placed[uid] for uid in sorted(members)]
    numbers: dict[object, int] = {}
    about = subject if isinstance(subject, str) else sorted(members).index(subject)
    held = [
        (
            index.contents[s.uid],
            [index.level(item, numbers) for item in s.around.path if isinstance(item, LoopLevel)],
            [index.storage(b, numbers) for b in s.around.storages if b.name in buffers],
            index.flow.get(s.block.name) if s.uid in followed else None,
        )
        for s in placed
    ]
    digest = _digest(index.common, question, about, sorted(buffers), held)
    return Decision(subject, frozenset(members), frozenset(followed), buffers, digest)


def _but(held: Scheduled | Storage | LoopLevel, *names: str) -> list[object]:
    """All that is held, but for what is told in another way."""
    return [getattr(held, f.name) for f in fields(held) if f.name not in names]


def _digest(*held: object) -> bytes:
    """Of what is printed: -0.0 is not 0.0 there, though they are equal."""
    return sha256(repr(held).encode()).digest()


@remembered
def _text(node: Node) -> str:
    return repr(node)


def _told(step: Step) -> str:
    return _text(step) if isinstance(step, Node) else repr(step)
