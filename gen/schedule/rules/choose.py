"""Which rules take which blocks of a kernel, and the recipe that they write together.

Input: a draft without steps, and a target's rules. Output: a `Choice`: for each variant the
steps, which rule took which block, and why the rules before it declined. Blocks are asked for from
the last to the first, since a block that is read is best placed by what reads it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

from ...errors import TilesmithError
from ...ir.walk import blocks
from ..edit.tree import CannotApply
from .parts.draft import Declined, Draft
from .parts.nest import Nest, nest_of

Apply = Callable[[Draft, Nest], Iterable[Draft]]
"""Takes a draft, and a block that none has scheduled; gives a draft for each variant, the last for
all sizes. Raises Declined. Not all may be asked for.
"""

Works = Callable[[Draft], None]
"""Raises TilesmithError where a target has no code for what a draft makes under its conditions, or
the proof refuses what lowering makes of it.
"""

MOST_VARIANTS = 16

MOST_BLOCKS = 64
"""Of a kernel that rules take: each of them is asked of each block, and each answer is proved."""

FAULT = "its own fault"
"""How a reason begins that is none: tests and the fuzzer look for it."""


@final
@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    apply: Apply


@final
@dataclass(frozen=True, slots=True)
class Rules:
    """Those of a target. normalise: what is done to every kernel first. fallback: the last one,
    which never declines.
    """

    normalise: Callable[[Draft], Draft]
    rules: tuple[Rule, ...]
    fallback: Rule


@final
@dataclass(frozen=True, slots=True)
class TakenBlock:
    """A block, the rule that took it, and those that declined, with their reasons."""

    block: str
    rule: str
    declined: tuple[tuple[str, str], ...]


@final
@dataclass(frozen=True, slots=True)
class Chosen:
    """A variant: a draft, and who wrote it. refused: why what rules wrote first could not run."""

    draft: Draft
    taken: tuple[TakenBlock, ...] = ()
    refused: str | None = None

    @property
    def faults(self) -> tuple[str, ...]:
        """Where a rule failed that should have declined."""
        reasons = (f"{name}: {why}" for each in self.taken for name, why in each.declined)
        return tuple(reason for reason in reasons if FAULT in reason)


def choose(plain: Draft, rules: Rules, works: Works | None) -> tuple[Chosen, ...]:
    """The variants of the recipe, in the order in which they are tried; the last is for all sizes
    for which `plain`, a draft without steps, is.

    works: asked of each variant. Where one does not, it is asked of what each rule makes, and the
        rule declines; if that cannot be, the fallback takes all blocks. None: whoever takes the
        recipe finds out.
    """
    many = len(plain.blocks)
    if many > MOST_BLOCKS:
        return (Chosen(plain, refused=f"it has {many} blocks; rules take up to {MOST_BLOCKS}"),)
    normal = _sound(plain, rules.normalise)
    found = list(_chosen(Chosen(normal), rules))
    chosen = [_working(c, rules, plain, normal, works) for c in found] if works else found
    distinct = {c.draft.when: c for c in reversed(chosen)}  # the first of each condition
    return tuple(reversed(distinct.values()))


def _sound(draft: Draft, f: Callable[[Draft], Draft]) -> Draft:
    try:
        return f(draft).proved()
    except Declined:
        return draft


def _working(chosen: Chosen, rules: Rules, plain: Draft, normal: Draft, works: Works) -> Chosen:
    reason = _refusal(chosen.draft, works)
    if reason is None:
        return chosen
    start = Chosen(replace(normal, when=chosen.draft.when))
    simple = Rules(rules.normalise, (), rules.fallback)
    for asked, each in ((rules, works), (simple, works), (simple, None)):
        if each is None or _refusal(start.draft, works) is None:
            (found,) = _chosen(start, asked, each, most=1)
            if found.draft.when == start.draft.when and _refusal(found.draft, works) is None:
                return replace(found, refused=reason)
    return Chosen(replace(plain, when=chosen.draft.when), refused=reason)


def _refusal(draft: Draft, works: Works) -> str | None:
    """Why what comes of it cannot run; None where it can."""
    try:
        works(draft)
    except TilesmithError as error:
        return error.message
    return None


def _chosen(
    chosen: Chosen,
    rules: Rules,
    works: Works | None = None,
    made: Sequence[Chosen] = (),
    most: int = MOST_VARIANTS,
) -> Iterator[Chosen]:
    """All variants that go on from here, `most` of them at most. works: of what each rule makes,
    if it is asked. made: the variants that come before.
    """
    block = _next(chosen.draft)
    if block is None:
        yield chosen
        return
    own = chosen.draft.when
    before = [c.draft.when for c in made if c.draft.when[: len(own)] == own]
    elsewhere = frozenset(when[len(own) :] for when in before)
    asked = replace(chosen.draft, elsewhere=elsewhere)
    drafts, taken = _asked(asked, block, rules, works, most)
    found = [*made]
    for draft in drafts:
        # The last, which is for all sizes that are left, has what the others did not need.
        left = most - (len(found) - len(made))
        share = left if draft is drafts[-1] else most // len(drafts)
        for each in _chosen(Chosen(draft, (*chosen.taken, taken)), rules, works, found, share):
            found.append(each)
            yield each


def _next(draft: Draft) -> str | None:
    """The last block of the plain schedule that is there and not done."""
    plain = [b.name for b in blocks(draft.context.plain.body)]
    here = draft.blocks
    return next((b for b in reversed(plain) if b in here and b not in draft.done), None)


def _asked(
    draft: Draft, block: str, rules: Rules, works: Works | None, most: int
) -> tuple[Sequence[Draft], TakenBlock]:
    declined: list[tuple[str, str]] = []
    nest, free = nest_of(draft.kernel, block), replace(draft, when=())
    for rule in (*rules.rules, rules.fallback):
        try:
            drafts = _made(rule.apply(free, nest), block, draft.when, most)
            if works is not None:
                drafts = _working_ones(drafts, works)
        except Declined as reason:
            declined.append((rule.name, str(reason)))
        except CannotApply as refusal:  # of what a rule asks of the tree
            declined.append((rule.name, refusal.reason))
        except (LookupError, StopIteration) as fault:  # a tree of which the rule did not think
            declined.append((rule.name, f"{FAULT}: {fault!r}"))
        else:
            within = [replace(d, when=draft.when).under(*d.when) for d in drafts]
            return within, TakenBlock(block, rule.name, tuple(declined))
    return [draft.settled(block)], TakenBlock(block, "none", tuple(declined))


def _made(drafts: Iterable[Draft], block: str, when: tuple[str, ...], most: int) -> Sequence[Draft]:
    """Those that a rule makes, proved: where another block has variants of the same conditions,
    `when`, its like alone; else `most` of them, or the last alone.
    """
    found: list[Draft] = []
    for draft in drafts:
        found.append(draft.settled(block))
        if when and draft.when == when:
            return [found[-1].proved()]
    return [draft.proved() for draft in (found if len(found) <= most else found[-1:])]


def _working_ones(drafts: Sequence[Draft], works: Works) -> Sequence[Draft]:
    """Without variants that do not work: the last one is for their sizes, too. Raises Declined
    where that does not.
    """
    *_, last = drafts
    if reason := _refusal(last, works):
        raise Declined(reason)
    return [d for d in drafts if d is last or _refusal(d, works) is None]


def to_yaml(target: str, chosen: Sequence[Chosen]) -> str:
    """The recipe, as the one item of a list."""
    lines = [f"- target: {target}", "  variants:"]
    for variant in chosen:
        when = " and ".join(variant.draft.when)
        lines += [f"    - when: {when}", "      steps:"] if when else ["    - steps:"]
        lines += [f"        - {line}" for line in variant.draft.lines]
        if not variant.draft.lines:
            lines[-1] += " []"
    return "\n".join(lines) + "\n"
