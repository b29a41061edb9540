"""What `tilesmith show --html` writes: one page, which needs no other file and no network.

Input: a spec, dtypes and a target. Output: HTML: the recipe, the tree after each step, the C and
its instructions, side by side. What belongs to one block or loop has one colour, and lights up in
all of them. Invariant: the same input gives the same page, but for the seconds that proofs took.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from pathlib import Path
from typing import final

from ..errors import TilesmithError
from ..ir.text.print_expr import spec_text
from ..ir.text.printer import to_text
from ..ir.text.script_names import from_script
from ..ir.walk import blocks
from ..language import Dtypes, build
from ..language.model import KernelSpec
from ..lower.variants import Variant, suffix
from ..pipeline import emit, schedule
from ..poly.prove import prove
from ..progress import SILENT, Progress
from ..schedule.base import Prover
from ..targets.c.marks import Owner, owned, unmarked
from ..targets.target import CompiledFunction, Target, joined
from .costs import CostedAt, costs
from .count import counts
from .differences import Mark, differences
from .story import Moment, Status, story
from .text import named, unproved

TEMPLATE = Path(__file__).parent / "page.html"

MOST_BYTES = 980_000
"""Of a page: instructions that would go beyond are left out, and the page says so."""

_Json = dict[str, object]
_Code = Sequence[tuple[str, tuple[str, ...]]]  # lines of C, each with its owners


def page(
    spec: KernelSpec,
    dtypes: Dtypes,
    target: Target,
    variant: str | None = None,
    shown: Progress = SILENT,
    prove: Prover = prove,
    asked: CostedAt | None = None,
) -> str:
    """The page of a variant, or of all. Raises TilesmithError, also where there is no such variant.

    shown: gets two parts. asked: for what sizes costs are told; None: for none.
    """
    variants = schedule(spec, dtypes, target, unproved)
    chosen = variants if variant is None else (named(variants, variant),)
    shown.part(f"{spec.name} {suffix(dtypes)} {target.level}")
    stories = [story(v, shown, prove) for v in chosen]
    shown.part("compiling")
    sources = emit(spec, {suffix(dtypes): variants}, target, keep_marks=True)
    lines = owned(joined(sources))
    functions, missing = _compiled({n: unmarked(text) for n, text in sources.items()}, target)
    strings = _Numbers()
    own = [_lines_of(v, lines) for v in chosen]
    views = [
        _view(v, moments, lines[o.start : o.stop], strings)
        for v, moments, o in zip(chosen, stories, own, strict=True)
    ]
    parts = {
        "title": escape(f"{spec.name} {suffix(dtypes)} {target.level}"),
        "variants": "".join(_option(k, v) for k, v in enumerate(chosen)),
        "recipes": "\n".join(_recipe(k, moments) for k, moments in enumerate(stories)),
        "missing": escape(missing),
        "costs": "",
        "data": _json({"strings": strings.all, "views": views}),
    }
    symbols = (f"ts_{spec.name}_{suffix(dtypes)}_{target.level}_{v.name}" for v in chosen)
    owned_ = [[f for f in functions if re.fullmatch(rf"{s}([_.].*)?", f.name)] for s in symbols]
    if asked is not None:
        each = [(v, made, o.start) for v, made, o in zip(chosen, owned_, own, strict=True)]
        parts["costs"] = costs(build(spec, dtypes), each, asked)
    room = MOST_BYTES - len(_filled(parts).encode())
    for made, view, o in zip(owned_, views, own, strict=True):
        begun = _begun(text for text, _ in lines[o.start : o.stop])
        view["instructions"], room = _instructions(
            made, dict(zip(range(o.start + 1, o.stop + 1), begun, strict=True)), room, strings
        )
    return _filled({**parts, "data": _json({"strings": strings.all, "views": views})})


def _filled(parts: Mapping[str, str]) -> str:
    return re.sub(r"@(\w+)@", lambda m: parts[m[1]], TEMPLATE.read_text("utf-8"))


def _compiled(
    sources: Mapping[str, str], target: Target
) -> tuple[tuple[CompiledFunction, ...], str]:
    """The functions; or none, and why."""
    try:
        return target.instructions(sources), ""
    except TilesmithError as error:
        return (), f"No instructions: {error.message}."


def _json(data: _Json) -> str:
    """As the text of a script element, which must neither end early nor seem to begin another."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return re.sub(r"<(?=/|!--|script)", r"\\u003c", text, flags=re.IGNORECASE)


@final
@dataclass
class _Numbers:
    """Each text once, and the number that stands for it."""

    known: dict[str, int] = field(default_factory=dict)

    def __call__(self, text: str) -> int:
        return self.known.setdefault(text, len(self.known))

    @property
    def all(self) -> list[str]:
        return list(self.known)


# ---------------------------------------------------------------- the recipe


def _option(number: int, variant: Variant) -> str:
    when = "" if variant.when is None else f" when {spec_text(variant.when)}"
    return f'<option value="{number}">variant {escape(variant.name + when)}</option>'


def _recipe(number: int, moments: Sequence[Moment]) -> str:
    """The recipe's lines, each with the steps that it stands for: a button a moment."""
    items: list[str] = []
    numbered = enumerate(moments)
    for span, group in groupby(numbered, key=lambda pair: pair[1].span):
        steps = list(group)
        buttons = "".join(_button(k, moment, len(moments)) for k, moment in steps)
        text = "" if span is None else " ".join(span.text.split())
        line = ""
        if span is not None and [f"- {moment.title}" for _, moment in steps] != [text]:
            used = "".join(f", used in line {use.span.line}" for use in span.uses)
            where = f"line {span.line}{used}"
            line = f'<p class="line"><span class="no">{where}</span> {escape(text)}</p>'
        items.append(f"<li>{line}{buttons}</li>")
    hidden = " hidden" if number else ""
    return f'<ol class="recipe" data-view="{number}"{hidden}>{"".join(items)}</ol>'


def _button(number: int, moment: Moment, count: int) -> str:
    name = f"{number}: {moment.title}" if 0 < number < count - 1 else moment.title
    status = moment.proof.status
    passed = "tested" if moment.proof.standing.tested else "proved"
    kind = passed if status is Status.PROVED else "unproved"
    detail = "".join(f"<br>{escape(line)}" for line in moment.proof.detail)
    return (
        f'<button type="button" class="step" data-moment="{number}">{escape(name)}'
        f'<span class="{kind}">{escape(str(moment.proof))}{detail}</span></button>'
    )


# ---------------------------------------------------------------- what is beside it


def _lines_of(variant: Variant, lines: _Code) -> range:
    """The lines of the file, from 0, that are the variant's."""
    own = [k for k, (_, owners) in enumerate(lines) if f"{Owner.VARIANT} {variant.name}" in owners]
    return range(own[0], own[-1] + 1)


def _view(variant: Variant, moments: Sequence[Moment], code: _Code, strings: _Numbers) -> _Json:
    """A variant's trees and C, in numbers of strings and of owners; 0: nobody's."""
    scheduled = {b.name for b in blocks(variant.scheduled.kernel)}
    owner = _Numbers({"": 0})

    def whose(name: str) -> int:
        """An init that lowering wrote out is its block's."""
        kind, _, block = name.partition(" ")
        stem = block.removesuffix(".init")
        written_out = kind == Owner.BLOCK and block not in scheduled
        return owner(f"{kind} {stem}" if written_out else name)

    trees = list(_trees(moments, whose, strings))
    c: list[int] = []
    for (text, owners), first in zip(code, _begun(text for text, _ in code), strict=True):
        c += [strings(text), whose(owners[-1] if owners[1:] else ""), first]
    return {"trees": trees, "c": c, "owners": owner.all}


def _begun(code: Iterable[str]) -> Iterator[int]:
    """For each line of C the number, from 1, of the line in which its statement begins: a compiler
    says of an instruction what statement it is of, and seldom which of its lines.
    """
    first = 1
    for number, text in enumerate(code, 1):
        yield first
        if not text or text.startswith("#") or text.endswith((";", "{", "}")):
            first = number + 1


def _instructions(
    functions: Sequence[CompiledFunction], lines: Mapping[int, int], room: int, strings: _Numbers
) -> tuple[list[int], int]:
    """Three numbers each: a label, a text and a line of the variant's C, from 1; 0: of none. And
    what is left of the room, in bytes.

    lines: by line of the file, that in which its statement begins.
    """
    found: list[int] = []
    for function in functions:
        targets = {i.text.split()[-1] for i in function.instructions}
        found += [strings(""), strings(f"{function.name}:"), 0]
        for k, i in enumerate(function.instructions):
            label = i.offset if i.offset in targets else ""
            room -= 20 + sum(len(text) + 3 for text in (label, i.text) if text not in strings.known)
            if room < 0:
                left = len(function.instructions) - k
                found += [strings(""), strings(f"... {left} more are left out"), 0]
                break
            found += [strings(label), strings(i.text), lines.get(i.line, 0)]
    return found, room


def _trees(
    moments: Sequence[Moment], whose: Callable[[str], int], strings: _Numbers
) -> Iterator[_Json]:
    """Each tree by its lines. rows: -n for the next n lines of the tree before; else three numbers,
    a string, a mark and an owner. Lines that are kept or removed take the place of one before.
    costs: a row of this tree, and what it costs. touched: what the step names, the blocks of which
    it changed a line, and the loops whose head it changed.
    """
    before = ""
    owners_before: list[str] = []
    for moment in moments:
        after = to_text(moment.kernel)
        owners = owners_of(after)
        rows: list[int] = []
        said = set(re.findall(r"[\w.]+\b(?!:)", moment.title))
        touched = {whose(o): None for o in owners if before and o.partition(" ")[2] in said}
        old = new = 0
        for line in differences(before, after):
            here = owners_before[old] if line.mark is Mark.REMOVED else owners[new]
            same = line.mark is Mark.KEPT and owners_before[old] == here
            head = here.startswith(f"{Owner.BLOCK} ") or _LOOP.match(line.text)
            if line.mark is not Mark.KEPT and here and head and before:
                touched[whose(here)] = None
            if same and rows and rows[-1] < 0:
                rows[-1] -= 1
            elif same:
                rows.append(-1)
            else:
                rows += [strings(line.text), list(Mark).index(line.mark), whose(here)]
            old += line.mark is not Mark.ADDED
            new += line.mark is not Mark.REMOVED
        heads = [k for k, text in enumerate(after.splitlines()) if _BLOCK.match(text)]
        costs = [
            n
            for k, c in zip(heads, counts(moment.kernel), strict=True)
            for n in (k, strings(str(c)))
        ]
        yield {"rows": rows, "costs": costs, "touched": list(touched)}
        before, owners_before = after, owners


_LOOP = re.compile(r" *for (\S+) in ")
_BLOCK = re.compile(r" *with block\(")


def owners_of(script: str) -> list[str]:
    """For each line of a printed tree the innermost loop or block that it is of."""
    lines = script.splitlines()
    owners: list[str] = []
    open_: list[tuple[int, str]] = []  # indentation and owner of what the line may be inside of
    for k, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        if not line.lstrip().startswith(")"):
            while open_ and open_[-1][0] >= depth:
                open_.pop()
        if match := _LOOP.match(line):
            open_.append((depth, f"{Owner.LOOP} {from_script(match[1])}"))
        elif _BLOCK.match(line):
            name = "".join(lines[k : k + 2]).split('"')[1]
            open_.append((depth, f"{Owner.BLOCK} {name}"))
        owners.append(open_[-1][1] if open_ else "")
    return owners
