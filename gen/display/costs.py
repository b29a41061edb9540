"""The part of the page that says what a kernel costs: needed, done, and by which instructions.

Input: variants, sizes, compiled functions, and lines that others count. Output: HTML.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import final

from ..ir.nodes import Kernel
from ..lower.variants import Variant
from ..targets.target import CompiledFunction
from .mix import mixes
from .work import Work, done, needed

MOST_LOOPS = 12  # of a variant that are listed, those with the most vector instructions


@final
@dataclass(frozen=True, slots=True)
class CostedAt:
    """sizes: of the dims that costs are told for. values: of all that sizes follow from. further:
    lines that a run or a compiler tells.
    """

    sizes: Mapping[str, int]
    values: Mapping[str, int]
    further: tuple[str, ...] = ()


def costs(
    plain: Kernel,
    variants: Sequence[tuple[Variant, Sequence[CompiledFunction], int]],
    asked: CostedAt,
) -> str:
    """variants: each with its functions, and the line of the source before its first."""
    told = " ".join(f"{name}={size}" for name, size in asked.sizes.items())
    rows = [_row("needed", needed(plain, asked.values))]
    rows += [
        _row(f"variant {v.name}", done(v.lowered.kernel, asked.values)) for v, _, _ in variants
    ]
    head = "".join(f"<th>{name}</th>" for name in ("", "operations", "bytes read", "bytes written"))
    parts = [f"<details><summary>Costs at {escape(told)}</summary>"]
    parts.append(f'<table class="costs"><tr>{head}</tr>{"".join(rows)}</table>')
    for variant, functions, before in variants:
        lines = _loops(functions, before)
        if lines:
            title = f"Innermost loops of variant {variant.name}, of their instructions"
            parts.append(f"<p>{escape(title)}</p>{_text(lines)}")
    return "".join([*parts, _text(asked.further) if asked.further else "", "</details>"])


def _row(name: str, work: Work | None) -> str:
    if work is None:
        cells = ["cannot be counted", "", ""]
    elif not (work.operations or work.read or work.written):
        cells = ["not for these sizes", "", ""]
    else:
        cells = [f"{n:,}" for n in (work.operations, work.read, work.written)]
    return f"<tr><th>{escape(name)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _loops(functions: Sequence[CompiledFunction], before: int) -> list[str]:
    found = sorted((m for f in functions for m in mixes(f)), key=lambda m: m.weight, reverse=True)
    left = len(found) - MOST_LOOPS
    lines = [f"line {max(m.line - before, 0):4}  {m}" for m in found[:MOST_LOOPS]]
    return [*lines, f"and {left} more, of fewer"] if left > 0 else lines


def _text(lines: Sequence[str]) -> str:
    return f'<pre class="costs">{escape(chr(10).join(lines))}</pre>'
